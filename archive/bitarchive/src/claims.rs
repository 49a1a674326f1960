//! The names that are being received or moved: no two work on one name, or write under one id in `incoming/`, at the
//! same time.
//!
//! Claims are in memory only: after a crash, unfinished work is found on the disk at the next start.

use std::collections::HashMap;
use std::sync::Arc;

use archive_model::{FileName, UploadId};
use parking_lot::Mutex;

use crate::error::NodeError;

/// The names that are being received or moved, each with the upload that does it.
pub(crate) type Claims = Arc<Mutex<HashMap<FileName, UploadId>>>;

/// The right to receive or move one name, until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    names: Claims,
    pub(crate) name: FileName,
    /// The upload, or the verb in the place of one.
    pub(crate) upload: UploadId,
}

impl Claim {
    pub(crate) fn take(
        names: &Claims,
        name: &FileName,
        upload: &UploadId,
    ) -> Result<Self, NodeError> {
        let mut taken = names.lock();
        if let Some(other) = taken.get(name) {
            return Err(NodeError::Busy {
                name: name.clone(),
                upload: other.clone(),
            });
        }
        if let Some((other, _)) = taken.iter().find(|(_, held)| *held == upload) {
            return Err(NodeError::Busy {
                name: other.clone(),
                upload: upload.clone(),
            });
        }
        taken.insert(name.clone(), upload.clone());
        Ok(Self {
            names: Arc::clone(names),
            name: name.clone(),
            upload: upload.clone(),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.names.lock().remove(&self.name);
    }
}

/// Makes the id under which a verb holds the file `name`, in the place of an upload. Each file has another id, because
/// the verb also writes under it in `incoming/`.
pub(crate) fn verb(what: &str, name: &FileName) -> Result<UploadId, NodeError> {
    let hash = blake3::hash(name.as_str().as_bytes()).to_hex();
    UploadId::new(&format!("{what}-{hash:.32}")).map_err(|error| NodeError::Bug(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two uploads receive one file, or write under one id.
    #[test]
    fn no_name_or_id_is_held_twice() {
        let claims = Claims::default();
        let name = |text| FileName::new(text).unwrap();
        let id = |text| UploadId::new(text).unwrap();
        let held = Claim::take(&claims, &name("a"), &id("u1")).unwrap();
        let refused = Claim::take(&claims, &name("b"), &id("u1")).unwrap_err();
        assert!(
            matches!(&refused, NodeError::Busy { name, .. } if name.as_str() == "a"),
            "{refused}"
        );
        assert!(Claim::take(&claims, &name("a"), &id("u2")).is_err());
        drop(Claim::take(&claims, &name("b"), &id("u2")).unwrap());
        drop(held);
        Claim::take(&claims, &name("b"), &id("u1")).unwrap();
    }
}
