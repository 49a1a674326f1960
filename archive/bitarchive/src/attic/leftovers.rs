//! Leftovers: what lies under the names of a file that is absent.

use std::path::{Path, PathBuf};

use archive_durable::DiskError;
use archive_model::FileName;
use jiff::Timestamp;

use super::{Reason, put_aside};
use crate::layout::{Layout, is_file};
use crate::node::Node;

impl Node {
    /// Puts aside what lies under the final names of an absent file: the leftovers of an upload that died between
    /// linking the sidecar and linking the file, and anything else (a directory, a link) in the place of the file.
    pub(crate) fn put_leftovers_aside(
        &self,
        layout: &Layout,
        id: &str,
        name: &FileName,
        now: Timestamp,
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
        let why = "leftover of an upload that was cut, or of a file that is missing";
        let reason = Reason::of_leftover(name, now, self.id(), why);
        put_aside(layout, id, &reason, &paths).map(|_| ())
    }
}
