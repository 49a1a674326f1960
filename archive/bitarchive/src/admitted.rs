//! The comparison of received bytes with their signed admission, for a node with disks and for a checksum replica.

use archive_model::{FileContent, FileName, UploadId};
use archive_proof::{Admission, Envelope, TrustFile};

use crate::error::NodeError;

/// Reads the admission of `name`, if a trusted key signed it.
pub(crate) fn verify_admission(
    admission: &Envelope,
    trust: &TrustFile,
    name: &FileName,
) -> Result<Admission, NodeError> {
    Admission::verify(admission, trust).map_err(|error| NodeError::Admission {
        name: name.clone(),
        why: error.to_string(),
    })
}

/// Compares a received file with its admission; the error names the first difference.
pub(crate) fn compare_content(
    admitted: &Admission,
    name: &FileName,
    upload: &UploadId,
    content: FileContent,
) -> Result<(), NodeError> {
    let FileContent { root, size } = content;
    let pairs = [
        ("name", admitted.name.to_string(), name.to_string()),
        ("upload", admitted.upload.to_string(), upload.to_string()),
        ("size", admitted.size.to_string(), size.to_string()),
        ("root", admitted.root.to_string(), root.to_string()),
    ];
    let differs = pairs
        .into_iter()
        .find(|(_, admitted, received)| admitted != received);
    differs.map_or(Ok(()), |(what, admitted, received)| {
        Err(NodeError::Mismatch {
            name: name.clone(),
            what,
            admitted,
            received,
        })
    })
}
