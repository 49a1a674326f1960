//! Receipts on demand: what the archive has of a file as it stands now.

use archive_ledger::custody::Vouched;
use archive_model::ArchiveError;
use archive_rpc::{Identity, Kind};
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
        let identity = Identity::of(request)?;
        let asked = &request.get_ref().name;
        let name = fields::file_name("name", asked)?;
        let row = self
            .admin
            .file(&name)
            .map_err(|error| admin_failed(&error))?
            // What is not the caller's business is not there for it.
            .filter(|row| may_know(&identity, &row.depositor))
            .ok_or_else(|| fields::to_status(&ArchiveError::NotFound(asked.clone())))?;
        let anomalies = &self.preserver.anomalies;
        let filed = anomalies
            .rows_of(&name)
            .map_err(|error| admin_failed(&error))?;
        let vouched = Vouched {
            record: &row.record,
            now: &self.preserver.standing.now(),
            filed: &filed,
        };
        if let Some(missing) = vouched.missing() {
            let text = format!("not every required replica has a good copy of {name}: {missing}");
            return Err(Kind::NotEnoughReplicas.status(text));
        }
        let admission = row.admission.as_deref().unwrap_or_default();
        let receipt = vouched
            .receipt(admission, self.clock.now(), &self.key)
            .map_err(|why| {
                Kind::Storage.status(format!("{name}: no receipt can be made: {why}"))
            })?;
        Ok(wire::ReceiptResponse { receipt })
    }
}
