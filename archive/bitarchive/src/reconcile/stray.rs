//! Files that lie in another directory of `files/` than their names belong in: the person who put them there did not
//! know how files are spread.
//!
//! Each is moved to its place, if nothing is there, and is then a file like any: with its sidecar it is what that
//! admits, without one it is *unexpected*: a check names it, and `holdfast adopt` adopts it. If its place is taken, the
//! file stays and is logged.

use std::ffi::OsStr;

use archive_durable::DiskError;
use archive_durable::directory::{self, EntryKind};
use archive_model::{FileName, VolumeId};

use crate::layout::{FileDirectory, Layout};

/// Moves every stray file of a volume to its place.
pub(super) fn move_home(id: &VolumeId, layout: &Layout) -> Result<(), DiskError> {
    for dir in FileDirectory::all() {
        for called in directory::list_names(&layout.files(dir))? {
            if let Some(name) = dir.stray_file_name(&called) {
                super::note_tidied(id, move_one_home(id, layout, dir, &called, &name))?;
            }
        }
    }
    Ok(())
}

/// Moves a stray file to its place, durably. Returns `false` if there is no file under that name, or if its place is
/// taken.
pub(crate) fn move_one_home(
    id: &VolumeId,
    layout: &Layout,
    dir: FileDirectory,
    called: &OsStr,
    name: &FileName,
) -> Result<bool, DiskError> {
    let found = layout.files(dir).join(called);
    let home = layout.target_paths(name).file;
    match directory::entry_kind(&found)? {
        Some(EntryKind::File { .. }) => {}
        Some(EntryKind::Directory | EntryKind::Other) | None => return Ok(false),
    }
    match directory::move_new(&found, &home) {
        Err(error) if error.is_taken() => {
            tracing::warn!(volume = %id, found = %found.display(), home = %home.display(), "a file lies in the wrong directory, and its place is taken; look at both, and take one away");
            Ok(false)
        }
        Err(error) => Err(error),
        Ok(()) => {
            tracing::warn!(volume = %id, file = %name, found = %found.display(), home = %home.display(), "a file lay in the wrong directory; it was moved to its place");
            Ok(true)
        }
    }
}
