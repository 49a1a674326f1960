//! Leftovers: what lies under the names of a file that is absent.

use std::path::{Path, PathBuf};

use archive_durable::DiskError;
use archive_model::{FileName, NodeId};
use jiff::Timestamp;

use super::put_aside;
use crate::layout::{Layout, is_file};

/// Puts aside what lies under the final names of an absent file: the leftovers of an upload that died between linking the
/// sidecar and linking the file, and anything else (a directory, a link) in the place of the file.
pub(crate) fn put_leftovers_aside(
    layout: &Layout,
    name: &FileName,
    id: &str,
    now: Timestamp,
    node: &NodeId,
) -> Result<(), DiskError> {
    let target = layout.target(name);
    let is_there = |path: &Path| match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DiskError::new("lstat", path, error)),
    };
    let paths = [&target.file, &target.sidecar, &target.outboard].map(PathBuf::as_path);
    let mut is_anything = false;
    for path in paths {
        is_anything |= is_there(path)?;
    }
    if is_file(&target.file)? || !is_anything {
        return Ok(());
    }
    let who = format!("node {node}");
    let reason = (
        name,
        now,
        who.as_str(),
        "leftover of an upload that was cut, or of a file that is missing",
    );
    put_aside(layout, id, reason, &paths).map(|_| ())
}
