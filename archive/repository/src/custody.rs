//! The custody receipt of a file: said when it was stored, and again whenever it is asked for.

use archive_proof::receipt::Custody;
use archive_proof::{Envelope, Receipt, SigningKey};
use jiff::Timestamp;

use crate::store::FileRecord;

/// The custody receipt of a file: its admission and every replica that has it.
pub(crate) fn receipt(
    record: &FileRecord,
    admission: &str,
    now: Timestamp,
    key: &SigningKey,
) -> Result<String, String> {
    let admission = Envelope::parse(admission.as_bytes()).map_err(|error| error.to_string())?;
    let completed = record
        .replicas
        .iter()
        .filter(|(_, copy)| copy.state.is_completed());
    let replicas = completed
        .filter_map(|(id, copy)| {
            Some(Custody {
                replica: id.clone(),
                kind: copy.kind,
                completed: copy.since,
                node: copy.node.clone()?,
                volume: copy.volume.clone(),
            })
        })
        .collect();
    let receipt = Receipt {
        admission,
        replicas,
        issued: now,
    };
    receipt
        .sign(key)
        .map(|envelope| envelope.as_str().to_owned())
        .map_err(|error| error.to_string())
}

/// Which required replicas do not have the file yet, and how far it is there; none: it is acknowledged.
pub(crate) fn missing(record: &FileRecord) -> Option<String> {
    if record.is_acknowledged() {
        return None;
    }
    let open = record.open().filter(|(_, copy)| copy.required);
    let said: Vec<String> = open
        .map(|(id, copy)| format!("{id}: {}", copy.state))
        .collect();
    Some(if said.is_empty() {
        "its content is not known yet".to_owned()
    } else {
        said.join("; ")
    })
}
