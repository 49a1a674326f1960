//! What is put aside: replaced and removed files, replaced groups, leftovers. Moved, never deleted, with the reason.

use std::path::{Path, PathBuf};

use archive_durable::{DiskError, directory, replace};
use archive_model::FileName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::layout::Layout;

/// Why something lies in the attic: `why.json` in each of its directories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// `holdfast-attic/1`.
    pub format: String,
    /// The file it belongs to.
    pub name: FileName,
    /// When it was put aside.
    pub at: Timestamp,
    /// Who asked for it.
    pub who: String,
    /// Why.
    pub why: String,
    /// What it is.
    #[serde(default)]
    pub kind: Kind,
}

/// What lies in one directory of the attic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A whole file, with its sidecar and outboard.
    File,
    /// Groups that were replaced in a file, with their positions.
    Groups,
    /// What was left of something that was cut.
    #[default]
    Leftover,
}

const FORMAT: &str = "holdfast-attic/1";

/// Moves `paths` (those of them that are there) into a new directory of the attic, the reason first. `id` makes the
/// directory's name unique within the second.
pub fn put_aside(
    layout: &Layout,
    id: &str,
    reason: (&FileName, Timestamp, &str, &str),
    paths: &[&Path],
) -> Result<PathBuf, DiskError> {
    put_aside_as(Kind::Leftover, layout, id, reason, paths)
}

/// The same, of any kind.
pub fn put_aside_as(
    kind: Kind,
    layout: &Layout,
    id: &str,
    reason: (&FileName, Timestamp, &str, &str),
    paths: &[&Path],
) -> Result<PathBuf, DiskError> {
    let (name, at, who, why) = reason;
    let place = layout
        .attic()
        .join(format!("{}-{id}", at.strftime("%Y%m%dT%H%M%SZ")));
    directory::make_new(&place)?;
    let reason = Reason {
        format: FORMAT.to_owned(),
        name: name.clone(),
        at,
        who: who.to_owned(),
        why: why.to_owned(),
        kind,
    };
    let text = serde_json::to_vec_pretty(&reason)
        .map_err(|error| DiskError::new("write", &place, std::io::Error::other(error)))?;
    replace(&place.join("why.json"), &text)?;
    for path in paths {
        let Some(last) = path.file_name() else {
            continue;
        };
        match directory::move_new(path, &place.join(last)) {
            Err(error) if error.is_absent() => {}
            other => other?,
        }
    }
    Ok(place)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files")]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_aside_keeps_its_name_and_its_reason() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(directory.path());
        layout.make().unwrap();
        let name = FileName::new("a.warc").unwrap();
        let target = layout.target(&name);
        std::fs::write(&target.sidecar, "old").unwrap();
        let reason = (&name, Timestamp::UNIX_EPOCH, "node n1", "leftover");
        let place = put_aside(&layout, "u1", reason, &[&target.sidecar, &target.outboard]).unwrap();
        assert_eq!(place, layout.attic().join("19700101T000000Z-u1"));
        assert_eq!(std::fs::read(place.join("a.warc.json")).unwrap(), b"old");
        let kept: Reason =
            serde_json::from_slice(&std::fs::read(place.join("why.json")).unwrap()).unwrap();
        assert_eq!(kept.why, "leftover");
        std::fs::write(&target.sidecar, "newer").unwrap();
        assert!(
            put_aside(&layout, "u1", reason, &[&target.sidecar])
                .unwrap_err()
                .is_taken(),
            "never overwritten"
        );
        assert_eq!(std::fs::read(place.join("a.warc.json")).unwrap(), b"old");
    }
}
