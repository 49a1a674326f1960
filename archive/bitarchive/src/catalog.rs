//! What the node knows of its files without looking: a cache over the volumes, in RocksDB.
//!
//! Deleted, stale or damaged, it comes back from files and sidecars ([`crate::reconcile`]). It is never believed over
//! the disk, and a file that is gone never makes its row go: that row is the alarm.

mod findings;
mod stamp;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use archive_db::{BrokenDatabase, Database, DbError, Options, Reach, Table, Text, Value};
use archive_model::{FileName, Groups, Root, VolumeId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::findings::{Findings, Tally};

type Key = (Text<FileName>, Text<VolumeId>);

/// One file on one volume of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file.
    pub name: FileName,
    /// The volume it is on.
    pub volume: VolumeId,
    /// What is known of it.
    pub row: Row,
}

/// What is known of one file on one volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The size in bytes: as admitted, or as found on disk where there is no admission.
    pub size: u64,
    /// The root as admitted; `None` for a file without a readable sidecar, until it was hashed.
    pub root: Option<Root>,
    /// When it was stored here, or found.
    pub stored: Timestamp,
    /// When it was last read whole and found intact; `None`: not since the catalog was built.
    pub verified: Option<Timestamp>,
    /// How it is.
    pub condition: Condition,
}

/// How one file is, as far as the node has looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// It is there, with the right size; its bytes were good when they were last read.
    Present,
    /// Its sidecar or its row is there, and it is not.
    Missing {
        /// When that was noticed.
        since: Timestamp,
    },
    /// It is there and not what was admitted.
    Damaged {
        /// When that was noticed.
        since: Timestamp,
        /// Groups that are not what was admitted; empty: not located yet.
        corrupt: Groups,
        /// Groups that the disk cannot read.
        unreadable: Groups,
    },
    /// It is there without a readable sidecar: the repository is to be asked. Where there is a root, the bytes had it
    /// when they were last read.
    Unexpected {
        /// Why there is no sidecar to go by.
        why: String,
    },
}

impl Row {
    /// Whether bytes can be served from it: they prove themselves against the root, where there is one.
    pub const fn is_readable(&self) -> bool {
        match self.condition {
            Condition::Present | Condition::Damaged { .. } => true,
            Condition::Unexpected { .. } => self.root.is_some(),
            Condition::Missing { .. } => false,
        }
    }
}

impl Value for Row {}

/// The catalog of one node. What is no finding is in `files` only; a finding is in `findings` too, in the same batch.
#[derive(Debug)]
pub struct Catalog {
    database: Database,
    files: Table<Key, Row>,
    findings: Findings,
    /// How many times something was written.
    writes: AtomicU64,
    /// The content of the stamp beside it, once it was written.
    stamped: Mutex<Option<Reach>>,
}

/// What opening the catalog found.
#[derive(Debug)]
pub struct OpenedCatalog {
    /// The catalog.
    pub catalog: Catalog,
    /// Why it begins empty and must be built from the volumes; `None`: it was there.
    pub rebuild: Option<String>,
}

impl Catalog {
    /// Opens the catalog in `path`. One that is damaged, or older than what was here, is destroyed: nothing in it is worth
    /// keeping. One of a later release is refused and left alone. `stamp` is another number at each start, such as the
    /// time: the stamps of findings begin there.
    pub fn open(path: &Path, stamp: u64) -> Result<OpenedCatalog, DbError> {
        let was_there = path.join("CURRENT").try_exists().unwrap_or(true);
        let options = Options::new("catalog", 2, &["files", FINDINGS]).migration(findings::fill);
        let reached = if was_there {
            stamp::read(path)?
        } else {
            Reach::default()
        };
        let checked =
            Database::open(path, &options.clone().reaches(reached)).and_then(|database| {
                database.verify()?;
                // A row that can be read and not understood is damage as well.
                let rows: Table<Key, Row> = database.table("files")?;
                rows.scan()?.try_for_each(|row| row.map(drop))?;
                Ok(database)
            });
        let (database, rebuild) = match checked {
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
        catalog.stamp();
        Ok(OpenedCatalog { catalog, rebuild })
    }

    /// Keeps beside it how far it has come. Where that cannot be written, it is only told: an older copy of the catalog
    /// might be believed then, and one that was built anew is built once more.
    pub fn stamp(&self) {
        let mut stamped = self.stamped.lock().unwrap_or_else(PoisonError::into_inner);
        let reached = self.database.reach();
        if stamped.as_ref() == Some(&reached) {
            return;
        }
        match stamp::write(self.database.path(), &reached) {
            Ok(()) => *stamped = Some(reached),
            Err(error) => tracing::warn!(%error, "the stamp of the catalog is not written"),
        }
    }

    /// Why nothing can be written into it any more, if a write failed so.
    pub fn broken(&self) -> Option<BrokenDatabase> {
        self.database.broken()
    }

    /// Where it lies.
    pub fn path(&self) -> PathBuf {
        self.database.path().to_owned()
    }

    /// The row of one file on one volume.
    pub fn row(&self, name: &FileName, volume: &VolumeId) -> Result<Option<Row>, DbError> {
        self.files.get(&key(name, volume))
    }

    /// Every volume of this node that has, or had, a file of this name.
    pub fn find(&self, name: &FileName) -> Result<Vec<Entry>, DbError> {
        self.files
            .prefix(&Text(name.clone()))?
            .map(to_entry)
            .collect()
    }

    /// Every entry, sorted by name, then volume, from the first name after `after` on. Damage ends it with an error.
    pub fn list(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<Entry, DbError>> + '_, DbError> {
        let rows = match after {
            None => self.files.scan()?,
            Some(name) => self
                .files
                .range((Text(name.clone()), Text(least_volume()?))..)?,
        };
        let after = after.cloned();
        let is_later = move |entry: &Result<Entry, DbError>| {
            entry
                .as_ref()
                .map_or(true, |entry| Some(&entry.name) != after.as_ref())
        };
        Ok(rows.map(to_entry).filter(is_later))
    }

    /// The findings, sorted as [`Catalog::list`] is: what is not present. It costs what there is of them.
    pub fn list_findings(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<Entry, DbError>> + '_, DbError> {
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
                // It went between the two reads.
                Ok(None) => None,
                Ok(Some(row)) if row.condition == Condition::Present => None,
                Ok(Some(row)) => Some(to_entry(Ok((key, row)))),
                Err(error) => Some(Err(error)),
            }
        };
        Ok(keys.filter_map(entry))
    }

    /// How many findings there are, and the stamp of the last change.
    pub fn tally(&self) -> Tally {
        self.findings.tally()
    }

    /// How many times something was written since the catalog was opened.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Writes entries, all or none, durably. Whoever writes the rows of one copy at the same time holds its name.
    pub fn put(&self, entries: &[Entry]) -> Result<(), DbError> {
        let changes: Vec<(Key, Option<&Row>)> = entries
            .iter()
            .map(|entry| (key(&entry.name, &entry.volume), Some(&entry.row)))
            .collect();
        self.change(&changes)
    }

    /// Forgets a file that was withdrawn or moved away by people.
    pub fn remove(&self, name: &FileName, volume: &VolumeId) -> Result<(), DbError> {
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
        self.findings.commit(batch, &self.files, changes)?;
        self.writes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn key(name: &FileName, volume: &VolumeId) -> Key {
    (Text(name.clone()), Text(volume.clone()))
}

/// The table of findings.
const FINDINGS: &str = "findings";

/// Sorts before or at every volume id.
fn least_volume() -> Result<VolumeId, DbError> {
    VolumeId::new("0").map_err(|error| DbError::Io {
        path: PathBuf::new(),
        what: error.to_string(),
    })
}

fn to_entry(row: Result<(Key, Row), DbError>) -> Result<Entry, DbError> {
    row.map(|((Text(name), Text(volume)), row)| Entry { name, volume, row })
}
