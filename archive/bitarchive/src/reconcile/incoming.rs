//! The remains of a crash in `incoming/`, tidied before a volume is taken into use. Received bytes stay.

use archive_durable::directory::{self, EntryKind};
use archive_durable::{DiskError, DiskSeverity, Reservation};
use archive_model::VolumeId;

use crate::layout::Layout;

/// Tidies `incoming/`. A file there with two names is published: a crash came before its first name was removed. An
/// upload that was cut by a crash still has its reservation, which is given back.
pub(super) fn tidy_incoming(id: &VolumeId, layout: &Layout) -> Result<(), DiskError> {
    let incoming = layout.incoming();
    for (name, kind) in directory::look_up_names(&incoming)? {
        let Ok(EntryKind::File { links, .. }) = kind else {
            continue;
        };
        if links > 1 {
            note_tidied(id, directory::remove_name(&incoming.join(name)))?;
        } else if let Some(upload) = name.to_str().filter(|name| !name.contains('.')) {
            let left = Reservation::find_reservation(&incoming, upload);
            let given = left.and_then(|left| left.map_or(Ok(()), Reservation::give_back));
            note_tidied(id, given)?;
        }
    }
    Ok(())
}

/// Logs an error of tidying: if the disk is full or something odd lies in the way, a later start tidies. The error of a
/// failing disk is returned.
pub(super) fn note_tidied<T>(
    id: &VolumeId,
    tidied: Result<T, DiskError>,
) -> Result<Option<T>, DiskError> {
    match tidied {
        Err(error) if error.severity() != DiskSeverity::Disk => {
            tracing::warn!(volume = %id, %error, "not tidied; it is tried at the next start");
            Ok(None)
        }
        other => other.map(Some),
    }
}
