//! The remains of a crash in `incoming/`, tidied before a volume is taken into use. What was received stays.

use archive_durable::directory::{self, EntryKind};
use archive_durable::{DiskError, Reservation, Severity};
use archive_model::VolumeId;

use crate::layout::Layout;

/// A file in `incoming/` with two names is published: a crash came before the first name was taken away. Of an upload
/// that was cut, a crash leaves reserved what its bytes do not take.
pub(super) fn tidy_incoming(id: &VolumeId, layout: &Layout) -> Result<(), DiskError> {
    let incoming = layout.incoming();
    for (name, kind) in directory::look(&incoming)? {
        let Ok(EntryKind::File { links, .. }) = kind else {
            continue;
        };
        if links > 1 {
            tidied(id, directory::remove_name(&incoming.join(name)))?;
        } else if let Some(upload) = name.to_str().filter(|name| !name.contains('.')) {
            let left = Reservation::left(&incoming, upload);
            let given = left.and_then(|left| left.map_or(Ok(()), Reservation::give_back));
            tidied(id, given)?;
        }
    }
    Ok(())
}

/// Tidying that cannot be done now (the disk is full, something odd lies in the way) is done at a later start.
/// A disk that fails is told.
pub(crate) fn tidied<T>(
    id: &VolumeId,
    tidied: Result<T, DiskError>,
) -> Result<Option<T>, DiskError> {
    match tidied {
        Err(error) if error.severity() != Severity::Disk => {
            tracing::warn!(volume = %id, %error, "not tidied; it is tried at the next start");
            Ok(None)
        }
        other => other.map(Some),
    }
}
