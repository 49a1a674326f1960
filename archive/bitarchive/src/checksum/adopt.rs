//! The adoption of a new admission for a name that people let mean other content.
//!
//! No bytes come here for that, so nothing is computed: the row repeats the admission until the file is stored again.
//! The earlier row is first written into `removed.jsonl`, synced.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use archive_model::{FileName, InvalidId, UploadId};
use archive_proof::Envelope;
use jiff::Timestamp;

use super::put_aside::{RemovedRow, append_removed_row};
use super::replica::ChecksumReplica;
use super::table::{RecordedFile, removed_rows_path};
use crate::admitted;
use crate::catalog::CatalogEntry;
use crate::claims::Claim;
use crate::error::NodeError;

impl ChecksumReplica {
    /// Gives a file that has a row another admission.
    pub fn adopt_row(
        &self,
        name: &FileName,
        admission: &Envelope,
        now: Timestamp,
    ) -> Result<CatalogEntry, NodeError> {
        let admitted = admitted::verify_admission(admission, &self.options.trust, name)?;
        if admitted.name != *name {
            return Err(NodeError::Mismatch {
                name: name.clone(),
                what: "name",
                admitted: admitted.name.to_string(),
                received: name.to_string(),
            });
        }
        let by =
            UploadId::new("adopt").map_err(|error: InvalidId| NodeError::Bug(error.to_string()))?;
        let _claim = Claim::take_name(&self.receiving, name, &by)?;
        let found = self.table.file(name)?;
        let found = found.ok_or_else(|| NodeError::NotFound(name.clone()))?;
        if found.root == admitted.root {
            // The caller asks for the second time.
            return Ok(self.entry(name.clone(), &found));
        }
        let line = RemovedRow {
            at: now,
            name: name.clone(),
            size: found.size,
            root: found.root,
            stored: found.stored,
            who: format!("node {}", self.node()),
            why: format!(
                "people let the name mean other content, root {}",
                admitted.root
            ),
            admission: self.table.admission(name)?,
            approval: None,
        };
        append_removed_row(&removed_rows_path(self.data()), &line)?;
        let recorded = RecordedFile {
            size: admitted.size,
            root: admitted.root,
            stored: now,
        };
        self.table
            .exchange_file(name, recorded, admission.as_str())?;
        tracing::warn!(file = %name, root = %admitted.root, "a row was given another admission; removed.jsonl has the one before");
        Ok(self.entry(name.clone(), &recorded))
    }
}
