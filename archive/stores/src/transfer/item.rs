//! A file on its way, and the depositor that sends it.

use archive_decisions::store::{Claim, Requester};
use archive_model::{FileName, UploadId};

use crate::depositor::DepositStream;

/// A file that is being stored.
#[derive(Clone, Debug)]
pub struct StoringFile {
    /// The file.
    pub name: FileName,
    /// The upload.
    pub upload: UploadId,
    /// The size of the file in bytes.
    pub size: u64,
}

/// A file that a depositor sends.
#[derive(Debug)]
pub struct DepositArrival {
    /// The file.
    pub item: StoringFile,
    /// The claim of the upload, which is that of the depositor that began it. [`DepositStream::claim`] is that of the
    /// depositor that sends now.
    pub claim: Claim,
    /// The depositor's number, which the coordinator gave.
    pub requester: Requester,
    /// The depositor's stream of bytes.
    pub source: DepositStream,
}
