//! Receipts on demand: signed statements of which replicas have a file now.

use archive_ledger::custody::FileEvidence;
use archive_model::ArchiveError;
use archive_rpc::{CallErrorKind, Identity};
use proto_archive::{convert as fields, wire};
use tonic::{Request, Status};

use super::ingest::may_know;
use super::{Door, admin_failed};

impl Door {
    /// Signs the receipt of a file that every required replica has.
    pub(super) fn issue_receipt(
        &self,
        request: &Request<wire::ReceiptRequest>,
    ) -> Result<wire::ReceiptResponse, Status> {
        let identity = Identity::from_request(request)?;
        let asked = &request.get_ref().name;
        let name = fields::file_name("name", asked)?;
        let row = self
            .archive
            .admin
            .file(&name)
            .map_err(|error| admin_failed(&error))?
            // A file that the caller may not know of does not exist for it.
            .filter(|row| may_know(&identity, &row.depositor))
            .ok_or_else(|| fields::to_status(&ArchiveError::NotFound(asked.clone())))?;
        let anomalies = &self.archive.anomalies;
        let filed = anomalies
            .rows_of(&name)
            .map_err(|error| admin_failed(&error))?;
        let now = self.archive.standing.current_snapshot();
        let vouched = FileEvidence {
            record: &now.complete_record(&row.record),
            now: &now,
            filed: &filed,
        };
        if let Some(missing) = vouched.missing_reason() {
            let text = format!(
                "cannot issue a receipt: not every required replica has a good copy of {name}: {missing}"
            );
            return Err(CallErrorKind::NotEnoughReplicas.to_status(text));
        }
        let admission = row.admission.as_deref().unwrap_or_default();
        let receipt = vouched
            .write_receipt(admission, self.archive.calls.clock.now(), &self.key)
            .map_err(|why| {
                CallErrorKind::Storage.to_status(format!("cannot issue a receipt of {name}: {why}"))
            })?;
        Ok(wire::ReceiptResponse { receipt })
    }
}
