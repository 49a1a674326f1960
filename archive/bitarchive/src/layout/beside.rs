//! The names of a mend in `incoming/`: the name of its file, with endings that no upload has.
//!
//! The last two parts of a name always say its purpose (before the `.bao` or `.json` of a copy). So no two files ever
//! share such a name.

use std::path::PathBuf;

use archive_durable::replace;
use archive_model::FileName;

use super::Layout;

/// The endings, each after the name of the archived file.
const COPY: &str = ".copy.mend";
const COPY_OUTBOARD: &str = ".copy.mend.bao";
const COPY_SIDECAR: &str = ".copy.mend.json";
const OUTBOARD: &str = ".outboard.mend";
const JOURNAL: &str = ".journal.mend";
const GROUPS: &str = ".groups.mend";
const POSITIONS: &str = ".pos.mend";

/// The paths that a mend uses.
#[derive(Clone, Debug)]
pub(crate) struct MendPaths {
    /// The directory `incoming/`.
    pub(crate) incoming: PathBuf,
    /// The name of the repaired copy there; its outboard has this name and `.bao`.
    pub(crate) copy: String,
    /// An outboard that is computed again.
    pub(crate) outboard: PathBuf,
    /// The journal of a mend in place.
    pub(crate) journal: PathBuf,
    /// The groups that are replaced.
    pub(crate) groups: PathBuf,
    /// The positions of the groups that are replaced.
    pub(crate) positions: PathBuf,
}

impl MendPaths {
    pub(crate) fn new(layout: &Layout, name: &FileName) -> Self {
        let incoming = layout.incoming();
        let at = |ending: &str| incoming.join(format!("{name}{ending}"));
        Self {
            copy: format!("{name}{COPY}"),
            outboard: at(OUTBOARD),
            journal: at(JOURNAL),
            groups: at(GROUPS),
            positions: at(POSITIONS),
            incoming,
        }
    }

    /// Returns everything but the journal: all that may be removed at any time.
    pub(crate) fn leftovers(&self) -> [PathBuf; 7] {
        [
            self.incoming.join(&self.copy),
            self.incoming.join(format!("{}.bao", self.copy)),
            self.incoming.join(format!("{}.json", self.copy)),
            self.outboard.clone(),
            self.groups.clone(),
            self.positions.clone(),
            replace::unfinished_path(&self.positions),
        ]
    }
}

/// Returns whether a name in `incoming/` is that of a mend. The id of an upload has no dot, so no upload has these
/// endings.
pub(crate) fn is_mend_name(name: &str) -> bool {
    let name = match name.strip_prefix('.') {
        // A state file that was not finished.
        Some(name) => name.strip_suffix(".new").unwrap_or_default(),
        None => name,
    };
    [".mend", COPY_OUTBOARD, COPY_SIDECAR]
        .iter()
        .any(|ending| name.ends_with(ending))
}

/// Returns the archived file that a journal in `incoming/` belongs to.
pub(crate) fn journal_file(name: &str) -> Option<FileName> {
    FileName::new(name.strip_suffix(JOURNAL)?).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Fails if the names of a mend are longer than a file system allows, or those of an upload are removed as
    /// leftovers of a mend.
    #[test]
    fn longest_name_fits_and_uploads_differ() {
        let layout = Layout::new(Path::new("/v"));
        let name = FileName::new(&"n".repeat(240)).unwrap();
        let beside = MendPaths::new(&layout, &name);
        let all = beside
            .leftovers()
            .into_iter()
            .chain([beside.journal.clone()]);
        for path in all {
            let last = path.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(last.len() <= 255, "{last}");
            assert!(is_mend_name(&last), "{last}");
        }
        for upload in [
            "u1",
            "u1.json",
            "u1.bao",
            "mend",
            "mend.bao",
            ".u1.json.new",
        ] {
            assert!(!is_mend_name(upload), "{upload}");
        }
        assert_eq!(
            journal_file("a.warc.journal.mend").unwrap().as_str(),
            "a.warc"
        );
        assert_eq!(journal_file("a.warc.copy.mend"), None);
    }

    /// Fails if a file whose name ends like that of a part of another file shares a path with it.
    #[test]
    fn no_two_files_share_a_name() {
        let layout = Layout::new(Path::new("/v"));
        let endings = [
            "",
            ".outboard",
            ".journal",
            ".groups",
            ".pos",
            ".copy",
            ".mend",
            ".bao",
            ".json",
        ];
        let mut seen = std::collections::BTreeMap::new();
        for (one, two, three) in endings.iter().flat_map(|one| {
            let pairs = endings
                .iter()
                .flat_map(|two| endings.iter().map(move |three| (two, three)));
            pairs.map(move |(two, three)| (one, two, three))
        }) {
            let name = FileName::new(&format!("x{one}{two}{three}")).unwrap();
            let beside = MendPaths::new(&layout, &name);
            let all = beside
                .leftovers()
                .into_iter()
                .chain([beside.journal.clone()]);
            for path in all {
                assert!(
                    is_mend_name(path.file_name().unwrap().to_str().unwrap()),
                    "{}",
                    path.display()
                );
                if let Some(other) = seen.insert(path.clone(), name.clone()) {
                    assert_eq!(other, name, "both own {}", path.display());
                }
            }
            let last = beside.journal.file_name().unwrap().to_str().unwrap();
            assert_eq!(journal_file(last).as_ref(), Some(&name));
        }
    }
}
