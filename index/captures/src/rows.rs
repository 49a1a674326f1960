//! The tables beside the captures, and what their rows hold.

use archive_db::{Database, DbError, Table, TableValue};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::place::Place;

/// The two tables of captures. One is in use; a change of keys fills the other one.
pub(crate) const CAPTURES: [&str; 2] = ["captures-a", "captures-b"];
pub(crate) const FILES: &str = "files";
pub(crate) const QUEUE: &str = "queue";
pub(crate) const NUMBERS: &str = "numbers";
pub(crate) const DEAD: &str = "dead";
pub(crate) const SETS: &str = "sets";
pub(crate) const IMPORTS: &str = "imports";
pub(crate) const IMPORT_FILES: &str = "import-files";
pub(crate) const FOLLOW: &str = "follow";
pub(crate) const ABOUT: &str = "about";

/// The names of all tables.
pub(crate) const ALL: [&str; 11] = [
    CAPTURES[0],
    CAPTURES[1],
    FILES,
    QUEUE,
    NUMBERS,
    DEAD,
    SETS,
    IMPORTS,
    IMPORT_FILES,
    FOLLOW,
    ABOUT,
];

/// The queue of pending files.
pub(crate) const PENDING: u8 = 0;
/// The queue of parked files.
pub(crate) const PARKED: u8 = 1;

/// A batch is written when it has this many bytes.
pub(crate) const BATCH: usize = 1 << 20;

/// The tables of an open index.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The captures, by where they stand.
    pub(crate) captures: Table<Place, PackedCapture>,
    /// The archived files, by name.
    pub(crate) files: Table<String, FileRow>,
    /// The files that are pending (0) or parked (1), and not withdrawn.
    pub(crate) queue: Table<(u8, String), ()>,
    /// The meanings of the numbers of files.
    pub(crate) numbers: Table<u32, NumberRow>,
    /// The numbers of files whose captures do not count and can be swept.
    pub(crate) dead: Table<u32, ()>,
    /// The imported sets, by name.
    pub(crate) sets: Table<String, SetRow>,
    /// The imports that have rows, complete or not: the name of the set of each.
    pub(crate) imports: Table<u32, String>,
    /// The files of each import, and their numbers.
    pub(crate) import_files: Table<(u32, String), u64>,
    /// The position up to which the archive was followed.
    pub(crate) follow: Table<u8, FollowRow>,
}

impl Tables {
    pub(crate) fn open(database: &Database, about: &AboutRow) -> Result<Self, DbError> {
        Ok(Self {
            captures: database.table(about.table_name())?,
            files: database.table(FILES)?,
            queue: database.table(QUEUE)?,
            numbers: database.table(NUMBERS)?,
            dead: database.table(DEAD)?,
            sets: database.table(SETS)?,
            imports: database.table(IMPORTS)?,
            import_files: database.table(IMPORT_FILES)?,
            follow: database.table(FOLLOW)?,
        })
    }
}

/// Returns the number of a file, from its row in the table of the files of imports.
pub(crate) fn file_number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The packed fields of a capture: see [`crate::packed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackedCapture(pub(crate) Vec<u8>);

impl TableValue for PackedCapture {}

impl Serialize for PackedCapture {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for PackedCapture {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = PackedCapture;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the bytes of a capture")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<PackedCapture, E> {
                Ok(PackedCapture(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// An archived file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRow {
    pub(crate) progress: ProgressRow,
    pub(crate) is_withdrawn: bool,
    /// The number under which the captures of the file stand, and how many there are.
    pub(crate) captures: Option<(u32, u64)>,
    pub(crate) note: Option<String>,
}

impl TableValue for FileRow {}

impl FileRow {
    /// Returns a file of which nothing is known yet.
    pub(crate) const fn new() -> Self {
        Self {
            progress: ProgressRow::Pending {
                attempts: 0,
                reason: None,
            },
            is_withdrawn: false,
            captures: None,
            note: None,
        }
    }

    /// Returns the queue that the file waits in; `None` if it waits in none.
    pub(crate) const fn queue_rank(&self) -> Option<u8> {
        match self.progress {
            _ if self.is_withdrawn => None,
            ProgressRow::Pending { .. } => Some(PENDING),
            ProgressRow::Parked { .. } => Some(PARKED),
            ProgressRow::Indexed | ProgressRow::Empty => None,
        }
    }

    /// Returns the number of the captures that are shown.
    pub(crate) const fn shown_number(&self) -> Option<u32> {
        match self.captures {
            Some((number, _)) if !self.is_withdrawn => Some(number),
            _ => None,
        }
    }
}

/// The progress of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProgressRow {
    Pending {
        attempts: u32,
        reason: Option<String>,
    },
    Indexed,
    Empty,
    Parked {
        attempts: u32,
        reason: String,
    },
}

/// The meaning of the number of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NumberRow {
    /// The set that the file was imported with; `None` for a file of the archive.
    pub(crate) set: Option<String>,
    /// The name of the file; empty: the lines of an import name no file.
    pub(crate) name: String,
}

impl TableValue for NumberRow {}

/// An imported set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetRow {
    /// The import that the set is made of.
    pub(crate) import: u32,
    pub(crate) captures: u64,
}

impl TableValue for SetRow {}

/// The position up to which the archive was followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FollowRow {
    pub(crate) feed: String,
    pub(crate) position: u64,
}

impl TableValue for FollowRow {}

/// The rules that the keys were made by, and the table that has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AboutRow {
    pub(crate) key_version: u16,
    /// Whether the second table of captures is in use.
    pub(crate) is_second: bool,
}

impl TableValue for AboutRow {}

impl AboutRow {
    /// Returns the table of captures in use.
    pub(crate) const fn table_name(&self) -> &'static str {
        let [first, second] = CAPTURES;
        if self.is_second { second } else { first }
    }

    /// Returns the row that puts the other table in use, for keys of this version.
    pub(crate) const fn other_about(&self, key_version: u16) -> Self {
        Self {
            key_version,
            is_second: !self.is_second,
        }
    }
}
