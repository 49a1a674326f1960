//! The table of record of a checksum replica: a RocksDB database, with a label that says to which replica it belongs,
//! and a stamp that says how far it has come.
//!
//! The table is made once, by [`ChecksumTable::init`]. From then on a table that is absent, damaged, behind its stamp
//! or of another replica is refused: an empty table in its place would say that nothing was ever stored. The stamp is
//! written before a row is acknowledged; a later write that a power cut tore is cut away and logged.
//!
//! The admissions lie in a table of their own, so that a listing does not read them.
//!
//! # Errors
//!
//! Every function fails with a [`ChecksumTableError`], which says what people have to do.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use archive_db::{
    BrokenDatabase, ChangeBatch, Database, DatabaseOptions, DbError, InvalidReach, Reach, Table,
    TableValue, Text,
};
use archive_durable::{
    AppendFile, DiskError, StampFile, StampWriter, directory, read_state, replace_file,
};
use archive_model::{FileName, NodeId, ReplicaId, Root};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

const FORMAT: &str = "holdfast-checksum-replica/2";

const TABLES: &[&str] = &["files", "admissions"];

/// The row of one file; its admission is kept beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFile {
    /// The size of the file in bytes.
    pub size: u64,
    /// The root of its bytes, as computed here.
    pub root: Root,
    /// The time at which the last byte came.
    pub stored: Timestamp,
}

impl TableValue for RecordedFile {}

/// The reason why a table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ChecksumTableError {
    /// The directory has no table of record.
    #[error(
        "{} holds no checksum replica; if it did, see that its disk is mounted; if it never did, start once with --init",
        .0.display()
    )]
    Absent(PathBuf),
    /// The table belongs to another replica or node.
    #[error("{} is the table of record of {found}, not of {own}; correct `checksum_replica.data`", .path.display())]
    Foreign {
        /// The label.
        path: PathBuf,
        /// The node and replica it belongs to.
        found: String,
        /// The node and replica it should belong to.
        own: String,
    },
    /// The label cannot be read, or is not a label.
    #[error("{}: {why}; put back a backup of that directory", .path.display())]
    Label {
        /// The label.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// The table is absent, damaged or behind its stamp.
    #[error(
        "{error}; without a backup of {}: move it away, start once with --init, and have the replica filled again from \
         the others",
        .data.display()
    )]
    Damaged {
        /// The directory of the table.
        data: PathBuf,
        /// The error of the table.
        error: Box<DbError>,
    },
    /// The table cannot be read or written now.
    #[error(transparent)]
    Database(Box<DbError>),
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// The node and replica that the table belongs to.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksumTableLabel {
    format: String,
    node: NodeId,
    replica: ReplicaId,
}

/// The table of record of a checksum replica, open.
#[derive(Debug)]
pub struct ChecksumTable {
    data: PathBuf,
    database: Database,
    files: Table<Text<FileName>, RecordedFile>,
    admissions: Table<Text<FileName>, String>,
    /// The stamp beside the table, and its content. Locked while it is written.
    stamp: Mutex<(StampWriter, Reach)>,
}

impl ChecksumTable {
    /// Makes an empty table in the directory `data`. An existing table of the same replica stays as it is.
    pub fn init(data: &Path, node: &NodeId, replica: &ReplicaId) -> Result<(), ChecksumTableError> {
        directory::make_directory(data)?;
        if ChecksumTableLabel::read_label(data)?.is_some() {
            return Self::open(data, node, replica).map(|_| ());
        }
        AppendFile::open(&removed_rows_path(data))?.sync()?;
        directory::sync_directory(data)?;
        let database = open(data, &options())?;
        begin_stamp(data, &database.reach())?;
        let label = ChecksumTableLabel {
            format: FORMAT.to_owned(),
            node: node.clone(),
            replica: replica.clone(),
        };
        label.write_label(data)
    }

    /// Opens the table of this replica in the directory `data`.
    pub fn open(
        data: &Path,
        node: &NodeId,
        replica: &ReplicaId,
    ) -> Result<Self, ChecksumTableError> {
        let label = ChecksumTableLabel::read_label(data)?
            .ok_or_else(|| ChecksumTableError::Absent(data.to_owned()))?;
        if label.node != *node || label.replica != *replica {
            let whose = |node: &NodeId, replica: &ReplicaId| format!("{node} of {replica}");
            return Err(ChecksumTableError::Foreign {
                path: label_path(data),
                found: whose(&label.node, &label.replica),
                own: whose(node, replica),
            });
        }
        let stamp = read_stamp(data)?;
        let database = open(data, &options().with_reach(stamp.1.clone()).torn_tail(cut))?;
        if let Some(torn) = database.torn() {
            tracing::warn!("{torn}");
        }
        let table = |error| failed(data, error);
        let opened = Self {
            data: data.to_owned(),
            files: database.table("files").map_err(table)?,
            admissions: database.table("admissions").map_err(table)?,
            database,
            stamp: Mutex::new(stamp),
        };
        opened.stamp()?;
        Ok(opened)
    }

    /// Returns the reason why no write can succeed any more, if there is one.
    pub fn broken(&self) -> Option<BrokenDatabase> {
        self.database.broken()
    }

    /// Returns the row of a file.
    pub fn file(&self, name: &FileName) -> Result<Option<RecordedFile>, ChecksumTableError> {
        self.done(self.files.get(&Text(name.clone())))
    }

    /// Returns the signed admission of a file, a DSSE envelope in JSON.
    pub fn admission(&self, name: &FileName) -> Result<Option<String>, ChecksumTableError> {
        self.done(self.admissions.get(&Text(name.clone())))
    }

    /// Lists every file after the name `after`, sorted by name. Damage ends the listing with an error.
    pub fn files(
        &self,
        after: Option<&FileName>,
    ) -> Result<
        impl Iterator<Item = Result<(FileName, RecordedFile), ChecksumTableError>> + '_,
        ChecksumTableError,
    > {
        use std::ops::Bound::{Excluded, Unbounded};
        let rows = match after {
            None => self.files.scan(),
            Some(after) => self.files.range((Excluded(Text(after.clone())), Unbounded)),
        };
        let rows = self.done(rows)?;
        Ok(rows.map(|row| self.done(row.map(|(Text(name), recorded)| (name, recorded)))))
    }

    /// Reads every admission to the end of the table, with every checksum: [`ChecksumTable::files`] does not read them.
    /// `progress` is called for each, and may stop the reading. Damage is an error.
    pub(crate) fn verify_admissions(
        &self,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), ChecksumTableError> {
        for row in self.done(self.admissions.scan())? {
            self.done(row)?;
            if progress(1).is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Adds a file, synced, and returns its row. An existing row stays as it is. The caller holds the name.
    pub fn add_file(
        &self,
        name: &FileName,
        recorded: RecordedFile,
        admission: &str,
    ) -> Result<RecordedFile, ChecksumTableError> {
        if let Some(found) = self.file(name)? {
            return Ok(found);
        }
        let key = Text(name.clone());
        let mut batch = self.database.batch();
        self.done(batch.put(&self.files, &key, &recorded))?;
        self.done(batch.put(&self.admissions, &key, &admission.to_owned()))?;
        self.commit(batch)?;
        Ok(recorded)
    }

    /// Replaces a row, synced. The caller holds the name, and has written the earlier row into `removed.jsonl`.
    pub(super) fn exchange_file(
        &self,
        name: &FileName,
        recorded: RecordedFile,
        admission: &str,
    ) -> Result<(), ChecksumTableError> {
        let key = Text(name.clone());
        let mut batch = self.database.batch();
        self.done(batch.put(&self.files, &key, &recorded))?;
        self.done(batch.put(&self.admissions, &key, &admission.to_owned()))?;
        self.commit(batch)
    }

    /// Removes a row, synced. The caller holds the name, and has written the row into `removed.jsonl`.
    pub(super) fn remove_file(&self, name: &FileName) -> Result<(), ChecksumTableError> {
        let key = Text(name.clone());
        let mut batch = self.database.batch();
        self.done(batch.delete(&self.files, &key))?;
        self.done(batch.delete(&self.admissions, &key))?;
        self.commit(batch)
    }

    /// Writes the changes, synced, and then the stamp: from then on their loss would be noticed.
    fn commit(&self, batch: ChangeBatch) -> Result<(), ChecksumTableError> {
        self.done(batch.commit())?;
        self.stamp()
    }

    /// Writes the stamp. The first of several that wait here writes for all of them.
    fn stamp(&self) -> Result<(), ChecksumTableError> {
        let mut stamp = self.stamp.lock();
        let reach = self.database.reach();
        if stamp.1 != reach {
            stamp.0.write(reach.to_string().as_bytes())?;
            stamp.1 = reach;
        }
        Ok(())
    }

    fn done<T>(&self, result: Result<T, DbError>) -> Result<T, ChecksumTableError> {
        result.map_err(|error| failed(&self.data, error))
    }
}

impl ChecksumTableLabel {
    /// Reads the label. Returns `None` if it is absent.
    pub fn read_label(data: &Path) -> Result<Option<Self>, ChecksumTableError> {
        let path = label_path(data);
        let wrong = |why: String| ChecksumTableError::Label {
            path: path.clone(),
            why,
        };
        let Some(text) = read_state(&path)? else {
            return Ok(None);
        };
        let label: Self = serde_json::from_slice(&text)
            .map_err(|error| wrong(format!("not a label: {error}")))?;
        if label.format != FORMAT {
            let found = &label.format;
            return Err(wrong(format!(
                "it is {found}, and this build reads {FORMAT}"
            )));
        }
        Ok(Some(label))
    }

    /// Writes the label, durably.
    pub fn write_label(&self, data: &Path) -> Result<(), ChecksumTableError> {
        let path = label_path(data);
        let text = serde_json::to_string(self).map_err(|error| ChecksumTableError::Label {
            path: path.clone(),
            why: error.to_string(),
        })?;
        Ok(replace_file(&path, format!("{text}\n").as_bytes())?)
    }
}

fn label_path(data: &Path) -> PathBuf {
    data.join("holdfast-checksum-replica.json")
}

/// Returns the path of `removed.jsonl`, in which each removed row leaves a line.
pub(super) fn removed_rows_path(data: &Path) -> PathBuf {
    data.join("removed.jsonl")
}

fn options() -> DatabaseOptions {
    DatabaseOptions::new("checksums", 1, TABLES)
}

fn open(data: &Path, options: &DatabaseOptions) -> Result<Database, ChecksumTableError> {
    Database::open(&data.join("table"), options).map_err(|error| failed(data, error))
}

/// Cuts off the rest of a log that a power cut has torn.
fn cut(log: &Path, length: u64) -> Result<(), String> {
    let cut = AppendFile::open(log).and_then(|mut log| log.cut(length));
    cut.map_err(|error| error.to_string())
}

fn stamp_path(data: &Path) -> PathBuf {
    data.join("table.stamp")
}

fn begin_stamp(data: &Path, reach: &Reach) -> Result<(), ChecksumTableError> {
    StampWriter::begin(&stamp_path(data), reach.to_string().as_bytes())?;
    Ok(())
}

fn read_stamp(data: &Path) -> Result<(StampWriter, Reach), ChecksumTableError> {
    let path = stamp_path(data);
    let wrong = |why: &str| ChecksumTableError::Label {
        path: path.clone(),
        why: format!("{why}, and without it nothing tells whether the table is all there"),
    };
    match StampWriter::open(&path)? {
        StampFile::Whole(stamp, text) => {
            let reach = String::from_utf8_lossy(&text).parse();
            let reach = reach.map_err(|error: InvalidReach| wrong(&error.to_string()))?;
            Ok((stamp, reach))
        }
        StampFile::Absent => Err(wrong("it is gone")),
        StampFile::Foreign(_) | StampFile::Damaged => Err(wrong("it is not a stamp")),
    }
}

fn failed(data: &Path, error: DbError) -> ChecksumTableError {
    let error = Box::new(error);
    if error.is_damage() {
        ChecksumTableError::Damaged {
            data: data.to_owned(),
            error,
        }
    } else {
        ChecksumTableError::Database(error)
    }
}
