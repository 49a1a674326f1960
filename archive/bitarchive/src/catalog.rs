//! The catalog: the node's knowledge of its files without a look at the disks. It is a cache over the volumes, in
//! RocksDB.
//!
//! Deleted, stale or damaged, it comes back from files and sidecars ([`crate::reconcile`]). It is never believed over
//! the disk, and the row of a file stays when the file is absent: that row is the alarm.
//!
//! # Errors
//!
//! Every function fails with a [`DbError`] if the database does.

mod findings;
mod stamp;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use archive_db::{
    BrokenDatabase, Database, DatabaseOptions, DbError, Reach, Table, TableValue, Text,
};
use archive_model::{FileName, Groups, Root, VolumeId};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

pub use self::findings::{FindingCounts, Findings};

type Key = (Text<FileName>, Text<VolumeId>);

/// A file on a volume of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// The file.
    pub name: FileName,
    /// The volume that has the copy.
    pub volume: VolumeId,
    /// The state of the copy.
    pub row: Row,
}

/// The known state of one file on one volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The size in bytes: as admitted, or as found on disk where there is no admission.
    pub size: u64,
    /// The root as admitted; `None` for a file without a readable sidecar, until it was hashed.
    pub root: Option<Root>,
    /// The time at which it was stored here, or found.
    pub stored: Timestamp,
    /// The time of its last verification as intact; `None` if it was not verified since the catalog was built.
    pub verified: Option<Timestamp>,
    /// The condition of the copy.
    pub condition: Condition,
}

/// The condition of one file, as far as the node has looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// The file is there with the right size; its bytes were good when they were last read.
    Present,
    /// The sidecar or the row of the file is there, and the file is not.
    Missing {
        /// The time at which the absence was noticed.
        since: Timestamp,
    },
    /// The file is there, and its bytes differ from the admitted ones.
    Damaged {
        /// The time at which the damage was noticed.
        since: Timestamp,
        /// The groups that differ from the admitted ones; empty if they were not located yet.
        corrupt: Groups,
        /// The groups that the disk cannot read.
        unreadable: Groups,
    },
    /// The file is there without a readable sidecar: the repository decides about it. If the row has a root, the bytes
    /// had it when they were last read.
    Unexpected {
        /// The reason why it has no usable sidecar.
        why: String,
    },
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present => f.write_str("present"),
            Self::Missing { since } => write!(f, "missing since {since}"),
            Self::Damaged {
                since,
                corrupt,
                unreadable,
            } => {
                let corrupt = corrupt.len();
                let unreadable = unreadable.len();
                write!(
                    f,
                    "damaged since {since}: {corrupt} groups corrupt, {unreadable} unreadable"
                )
            }
            Self::Unexpected { why } => write!(f, "without a usable sidecar: {why}"),
        }
    }
}

impl Row {
    /// Returns the row of a copy that was stored at `stored` and whose bytes all had this root at `verified`.
    pub const fn intact_row(size: u64, root: Root, stored: Timestamp, verified: Timestamp) -> Self {
        Self {
            size,
            root: Some(root),
            stored,
            verified: Some(verified),
            condition: Condition::Present,
        }
    }

    /// Returns whether bytes can be served from the copy: they are proven by the root, if the copy has one.
    pub const fn is_readable(&self) -> bool {
        match self.condition {
            Condition::Present | Condition::Damaged { .. } => true,
            Condition::Unexpected { .. } => self.root.is_some(),
            Condition::Missing { .. } => false,
        }
    }
}

impl TableValue for Row {}

/// The catalog of one node. Every row is in `files`; a finding is also in `findings`, by the same batch.
#[derive(Debug)]
pub struct Catalog {
    database: Database,
    files: Table<Key, Row>,
    findings: Findings,
    /// The number of writes since it was opened.
    writes: AtomicU64,
    /// The content of the stamp beside the catalog, once it was written.
    stamped: Mutex<Option<Reach>>,
}

/// A catalog that was opened, and whether it has to be rebuilt.
#[derive(Debug)]
pub struct OpenedCatalog {
    /// The catalog.
    pub catalog: Catalog,
    /// The reason why the catalog is empty and has to be built from the volumes; `None` if it was there.
    pub rebuild: Option<String>,
}

impl Catalog {
    /// Opens the catalog in `path`. A damaged or outdated catalog is destroyed: nothing in it is worth keeping. A
    /// catalog of another version is refused and left alone. `stamp` is a new number at each start, such as the time,
    /// from which the stamps of findings count.
    pub fn open(path: &Path, stamp: u64) -> Result<OpenedCatalog, DbError> {
        let was_there = path.join("CURRENT").try_exists().unwrap_or(true);
        let options = DatabaseOptions::new("catalog", 2, &["files", FINDINGS]);
        let (database, rebuild) = match open_checked(path, &options, was_there) {
            Ok(database) => (database, (!was_there).then(|| "there was none".to_owned())),
            Err(error) if error.is_damage() => {
                Database::destroy(path)?;
                (Database::open(path, &options)?, Some(error.to_string()))
            }
            Err(error) => return Err(error),
        };
        let files = database.table("files")?;
        let findings = Findings::open(&database, &files, stamp)?;
        let catalog = Self {
            database,
            files,
            findings,
            writes: AtomicU64::new(0),
            stamped: Mutex::default(),
        };
        catalog.stamp_reach();
        Ok(OpenedCatalog { catalog, rebuild })
    }

    /// Writes the stamp beside it. A failure is only logged: an older copy of the catalog might then be believed, or a
    /// new one be built once more.
    pub fn stamp_reach(&self) {
        let mut stamped = self.stamped.lock();
        let reached = self.database.reach();
        if stamped.as_ref() == Some(&reached) {
            return;
        }
        match stamp::write_stamp(self.database.path(), &reached) {
            Ok(()) => *stamped = Some(reached),
            Err(error) => tracing::warn!(%error, "the stamp of the catalog is not written"),
        }
    }

    /// Returns the reason why no write can succeed any more, if there is one.
    pub fn broken(&self) -> Option<BrokenDatabase> {
        self.database.broken()
    }

    /// Returns the directory of the catalog.
    pub fn path(&self) -> PathBuf {
        self.database.path().to_owned()
    }

    /// Returns the row of one file on one volume.
    pub fn row(&self, name: &FileName, volume: &VolumeId) -> Result<Option<Row>, DbError> {
        self.files.get(&key(name, volume))
    }

    /// Returns the entries of a file on every volume of this node that has, or had, it.
    pub fn find_entries(&self, name: &FileName) -> Result<Vec<CatalogEntry>, DbError> {
        self.files
            .prefix(&Text(name.clone()))?
            .map(to_entry)
            .collect()
    }

    /// Lists the entries, sorted by name, then volume, from the first name after `after` on. Damage ends the listing
    /// with an error.
    pub fn list_entries(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<CatalogEntry, DbError>> + '_, DbError> {
        let rows = match after {
            None => self.files.scan()?,
            Some(name) => self
                .files
                .range((Text(name.clone()), Text(least_volume()?))..)?,
        };
        let after = after.cloned();
        let is_later = move |entry: &Result<CatalogEntry, DbError>| {
            entry
                .as_ref()
                .map_or(true, |entry| Some(&entry.name) != after.as_ref())
        };
        Ok(rows.map(to_entry).filter(is_later))
    }

    /// Lists the findings, which are the entries in any condition but present, sorted as by [`Catalog::list_entries`]. The cost
    /// is that of the findings alone.
    pub fn list_findings(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<CatalogEntry, DbError>> + '_, DbError> {
        let keys = self.findings.keys(after)?;
        let after = after.cloned();
        let entry = move |key: Result<(Key, ()), DbError>| {
            let key = match key {
                Ok((key, ())) => key,
                Err(error) => return Some(Err(error)),
            };
            if Some(&key.0.0) == after.as_ref() {
                return None;
            }
            match self.files.get(&key) {
                // The row was removed between the two reads.
                Ok(None) => None,
                Ok(Some(row)) if row.condition == Condition::Present => None,
                Ok(Some(row)) => Some(to_entry(Ok((key, row)))),
                Err(error) => Some(Err(error)),
            }
        };
        Ok(keys.filter_map(entry))
    }

    /// Returns the number of findings, and the stamp of their last change.
    pub fn finding_counts(&self) -> FindingCounts {
        self.findings.finding_counts()
    }

    /// Returns the number of writes since the catalog was opened.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Writes entries, all or none, durably. The caller holds the names of the copies.
    pub fn put_entries(&self, entries: &[CatalogEntry]) -> Result<(), DbError> {
        let changes: Vec<(Key, Option<&Row>)> = entries
            .iter()
            .map(|entry| (key(&entry.name, &entry.volume), Some(&entry.row)))
            .collect();
        self.change(&changes)
    }

    /// Removes the row of a file that people have withdrawn or moved away.
    pub fn remove_entry(&self, name: &FileName, volume: &VolumeId) -> Result<(), DbError> {
        self.change(&[(key(name, volume), None)])
    }

    fn change(&self, changes: &[(Key, Option<&Row>)]) -> Result<(), DbError> {
        let mut batch = self.database.batch();
        for (key, row) in changes {
            match row {
                Some(row) => batch.put(&self.files, key, row)?,
                None => batch.delete(&self.files, key)?,
            }
        }
        self.findings.commit_findings(batch, &self.files, changes)?;
        self.writes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Opens a catalog, and reads all of it; one that was there must have reached its stamp.
fn open_checked(
    path: &Path,
    options: &DatabaseOptions,
    was_there: bool,
) -> Result<Database, DbError> {
    let mut options = options.clone();
    if was_there && let Some(reached) = stamp::read_stamp(path)? {
        options = options.with_reach(reached);
    }
    let database = Database::open(path, &options)?;
    database.verify()?;
    // A row that can be read and not decoded is damage as well.
    let rows: Table<Key, Row> = database.table("files")?;
    rows.scan()?.try_for_each(|row| row.map(drop))?;
    Ok(database)
}

fn key(name: &FileName, volume: &VolumeId) -> Key {
    (Text(name.clone()), Text(volume.clone()))
}

/// The table of findings.
const FINDINGS: &str = "findings";

/// Returns the id that sorts before every other volume id.
fn least_volume() -> Result<VolumeId, DbError> {
    VolumeId::new("0").map_err(|error| DbError::Io {
        path: PathBuf::new(),
        what: error.to_string(),
    })
}

fn to_entry(row: Result<(Key, Row), DbError>) -> Result<CatalogEntry, DbError> {
    row.map(|((Text(name), Text(volume)), row)| CatalogEntry { name, volume, row })
}
