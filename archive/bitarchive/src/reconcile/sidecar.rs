//! The admission in a sidecar, which is believed by its signature only.

use std::path::Path;

use archive_durable::sidecar::MAX_SIDECAR;
use archive_durable::{DiskError, Sidecar, read_small};
use archive_model::{FileName, Root};
use archive_proof::{Admission, Envelope, TrustFile};
use jiff::Timestamp;

use super::unless_exhausted;

/// The size, root and time of storing in a sidecar, or the reason why it is absent, unreadable or not believed.
type AdmittedFile = Result<(u64, Root, Timestamp), String>;

/// Reads the admission of `name` in the sidecar at `path`. An error says nothing about the sidecar.
pub(crate) fn read_sidecar(
    path: &Path,
    name: &FileName,
    trust: &TrustFile,
) -> Result<AdmittedFile, DiskError> {
    Ok(match sidecar_text(path) {
        Ok(None) => Err("there is no sidecar".to_owned()),
        Ok(Some(text)) => believe(&text, name, trust),
        Err(error) => Err(unless_exhausted(error)?.to_string()),
    })
}

/// Reads the bytes of a sidecar. Returns `None` if it is absent.
pub(crate) fn sidecar_text(path: &Path) -> Result<Option<Vec<u8>>, DiskError> {
    read_small(path, MAX_SIDECAR)
}

fn believe(text: &[u8], name: &FileName, trust: &TrustFile) -> AdmittedFile {
    let sidecar = Sidecar::from_json(text).map_err(|error| error.to_string())?;
    let envelope =
        Envelope::parse(sidecar.admission.get().as_bytes()).map_err(|error| error.to_string())?;
    let admission = Admission::verify(&envelope, trust).map_err(|error| error.to_string())?;
    if admission.name != *name {
        return Err(format!("the sidecar is that of {}", admission.name));
    }
    Ok((admission.size, admission.root, sidecar.stored))
}
