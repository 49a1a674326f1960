//! The feed of the archive: the changes of which files it has, and the position of a reader in them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{FileContent, FileName, Root};

/// A position in the feed: behind one change and before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FeedPosition {
    /// The number of the change; 0 is before the first one.
    pub number: u64,
    /// The lineage of the changes up to this position: admin data that were restored, or put back from a backup and
    /// gone on with differently, have other lineages.
    pub lineage: u64,
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.number, self.lineage)
    }
}

/// The kind of a change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Every required replica has the file: from now on its depositor may be answered so.
    Stored,
    /// People have withdrawn the file from every replica that keeps bytes.
    Withdrawn,
    /// People have put a copy of a withdrawn file back.
    #[serde(rename = "brought-back")]
    Restored,
    /// People have decided that the name means other content from now on.
    NewRoot,
}

impl ChangeKind {
    /// Returns the kind in the words of the rows of the feed, over which the lineages are computed: they never change.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Withdrawn => "withdrawn",
            Self::Restored => "brought-back",
            Self::NewRoot => "new-root",
        }
    }
}

/// A file as the feed names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedFile {
    /// The name of the file.
    pub name: FileName,
    /// The size of the file in bytes.
    pub size: u64,
    /// The BLAKE3 root of its content.
    pub root: Root,
}

impl FeedFile {
    /// Returns the content of the file.
    pub fn content(&self) -> FileContent {
        FileContent {
            root: self.root,
            size: self.size,
        }
    }
}

/// A change of which files the archive has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedChange {
    /// The position behind this change.
    pub position: FeedPosition,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The file as it is from then on; of a withdrawn file, as it was.
    pub file: FeedFile,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the word of a kind changes: lineages are computed over it.
    #[test]
    fn words_of_rows_never_change() {
        let words = ["stored", "withdrawn", "brought-back", "new-root"];
        let kinds = [
            ChangeKind::Stored,
            ChangeKind::Withdrawn,
            ChangeKind::Restored,
            ChangeKind::NewRoot,
        ];
        for (kind, word) in kinds.into_iter().zip(words) {
            assert_eq!(serde_json::to_value(kind).unwrap(), word);
            assert_eq!(kind.word(), word);
        }
    }

    /// Fails if two positions that differ read the same.
    #[test]
    fn position_says_number_and_lineage() {
        let position = FeedPosition {
            number: 57,
            lineage: 0xab,
        };
        assert_eq!(position.to_string(), "57-00000000000000ab");
    }
}
