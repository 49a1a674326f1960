//! The receipts of a job: `receipts/NAME.receipt.json`, each as the archive has signed it.
//!
//! Owns which files count as stored. `holdfast verify receipt` says who signed a receipt and what it promises; here a
//! receipt that was verified when it came is only looked at for damage.

use std::path::PathBuf;

use archive_durable::{DiskError, directory, read_small, replace_file};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::directory::JobDirectory;

/// The longest receipt, as the archive has it.
const MAX_RECEIPT: u64 = 1 << 20;

/// The form of a signed document (DSSE). A file that has not all of it was damaged.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignedDocument {
    #[serde(rename = "payload")]
    _payload: IgnoredAny,
    #[serde(rename = "payloadType")]
    _payload_type: IgnoredAny,
    #[serde(rename = "signatures")]
    _signatures: IgnoredAny,
}

impl JobDirectory {
    fn receipt_path(&self, name: &str) -> PathBuf {
        self.path_of("receipts")
            .join(format!("{name}.receipt.json"))
    }

    /// Keeps the receipt of a file.
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub fn keep_receipt(&self, name: &str, envelope: &str) -> Result<(), DiskError> {
        replace_file(&self.receipt_path(name), envelope.as_bytes())
    }

    /// Returns whether a file has a receipt that can be read. One that cannot counts for nothing.
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub fn has_receipt(&self, name: &str) -> Result<bool, DiskError> {
        let path = self.receipt_path(name);
        match directory::entry_kind(&path)? {
            Some(directory::EntryKind::File { size, .. }) if size <= MAX_RECEIPT => {}
            _ => return Ok(false),
        }
        let bytes = read_small(&path, MAX_RECEIPT)?.unwrap_or_default();
        Ok(serde_json::from_slice::<SignedDocument>(&bytes).is_ok())
    }
}
