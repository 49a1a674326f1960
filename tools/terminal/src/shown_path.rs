//! Paths in JSON documents: a name that is no UTF-8 is shown with `U+FFFD` for each part that is not, as on a terminal.
//! Every deed stays in the document, whatever the name of its file.
//!
//! # Errors
//!
//! The serializer's own.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// Writes one path, for `serialize_with`.
pub fn one<S: Serializer>(path: &impl AsRef<Path>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.as_ref().display())
}

/// Writes a path that may be absent.
pub fn optional<P: AsRef<Path>, S: Serializer>(
    path: &Option<P>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let shown = path
        .as_ref()
        .map(|path| path.as_ref().display().to_string());
    shown.serialize(serializer)
}

/// Writes several paths.
pub fn list<S: Serializer>(
    paths: &impl AsRef<[PathBuf]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let shown = paths.as_ref().iter().map(|path| path.display().to_string());
    serializer.collect_seq(shown)
}
