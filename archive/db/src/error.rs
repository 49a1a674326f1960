//! The errors of a database, sorted by what its user does next.

use std::io;
use std::path::{Path, PathBuf};

use rocksdb::ErrorKind;

use crate::key::InvalidTableKey;
use crate::value::InvalidValue;

/// The reason why an operation of a database failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DbError {
    /// The files of the database contradict themselves or each other. A cache is destroyed and rebuilt, a record is
    /// restored.
    #[error("database {} is damaged: {what}; rebuild it or restore it", path.display())]
    Damaged {
        /// The directory of the database.
        path: PathBuf,
        /// The damage, in RocksDB's words if RocksDB found it.
        what: String,
    },
    /// The database holds less than its user knows to have been committed: a log vanished, or an old copy was put back.
    #[error("database {} ends at sequence {found}, but {stamp} was committed; restore it", path.display())]
    Behind {
        /// The directory of the database.
        path: PathBuf,
        /// The sequence number that [`crate::DatabaseOptions::at_least`] asked for.
        stamp: u64,
        /// The sequence number at which the database ends; 0 if there is no database.
        found: u64,
    },
    /// The database was made at another time than the one that its user had here: somebody put it in its place.
    #[error(
        "database {} is not the one that was here: it was made at another time (it is {found}, and {wanted} was here); \
         restore it",
        path.display()
    )]
    Other {
        /// The directory of the database.
        path: PathBuf,
        /// The identity that [`crate::DatabaseOptions::with_reach`] asked for.
        wanted: String,
        /// The [`crate::Database::identity`] of the database.
        found: String,
    },
    /// The database is open in another process, or by another handle in this one.
    #[error("database {} is in use; stop the process that holds it", path.display())]
    Busy {
        /// The directory of the database.
        path: PathBuf,
    },
    /// The directory has no database of this name, or one of a version that this build does not read.
    #[error("{} holds {found}; this build reads {readable}", path.display())]
    Format {
        /// The directory of the database.
        path: PathBuf,
        /// The name and version that were found, such as `catalog version 7`.
        found: String,
        /// The name and version that this build reads, such as `catalog version 5`.
        readable: String,
    },
    /// A row has a key or value that this build cannot read. No default takes its place.
    #[error("table `{table}` of {}: key {key}: {what}", path.display())]
    Unreadable {
        /// The directory of the database.
        path: PathBuf,
        /// The name of the table.
        table: String,
        /// The key of the row, its bytes escaped.
        key: String,
        /// The half of the row that cannot be read, and why.
        what: InvalidRow,
    },
    /// A value could not be read back if it were written. Nothing was written.
    #[error("table `{table}`: a value cannot be written: {what}")]
    Unwritable {
        /// The name of the table.
        table: String,
        /// The reason why the value could not be read back.
        what: InvalidValue,
    },
    /// The database has no such table, or the table handle belongs to another database.
    #[error("database {} has no table `{table}`", path.display())]
    NoTable {
        /// The directory of the database.
        path: PathBuf,
        /// The name of the table.
        table: String,
    },
    /// A batch was to be written without a sync where every change is synced. Nothing was written.
    #[error("database {} takes synced changes only; commit the batch", path.display())]
    SyncedOnly {
        /// The directory of the database.
        path: PathBuf,
    },
    /// The operating system refused: no space, no permission, a failing disk. The database itself may be well.
    #[error("database {}: {what}", path.display())]
    Io {
        /// The directory of the database.
        path: PathBuf,
        /// The failure, in the words of RocksDB or the system.
        what: String,
    },
}

/// A database that failed while it wrote: RocksDB refuses every later write until it is opened again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; nothing more can be written there: see to its disk, then start this part again")]
pub struct BrokenDatabase(#[from] pub DbError);

/// The reason why a row cannot be read: the half of it, and its fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRow {
    /// The key cannot be read.
    #[error("its key: {0}")]
    Key(#[from] InvalidTableKey),
    /// The value cannot be read.
    #[error("its value: {0}")]
    Value(#[from] InvalidValue),
}

impl DbError {
    /// Wraps an error of the system about the directory `path`.
    pub(crate) fn from_io(path: &Path, error: &io::Error) -> Self {
        Self::Io {
            path: path.to_path_buf(),
            what: error.to_string(),
        }
    }

    /// Sorts an error of RocksDB, which is only text, by what the caller does next.
    pub(crate) fn from_rocksdb(path: &Path, error: &rocksdb::Error) -> Self {
        let path = path.to_path_buf();
        let what = error.as_ref().to_owned();
        if [
            "While lock file",
            "lock hold by current process",
            "lock is already held",
        ]
        .iter()
        .any(|s| what.contains(s))
        {
            return Self::Busy { path };
        }
        // A missing file that the manifest names is damage, not a failing disk.
        let missing = what.contains("No such file or directory");
        match error.kind() {
            ErrorKind::Corruption | ErrorKind::NotFound => Self::Damaged { path, what },
            ErrorKind::IOError | ErrorKind::Unknown if missing => Self::Damaged { path, what },
            ErrorKind::IOError
            | ErrorKind::Unknown
            | ErrorKind::NotSupported
            | ErrorKind::InvalidArgument
            | ErrorKind::MergeInProgress
            | ErrorKind::Incomplete
            | ErrorKind::ShutdownInProgress
            | ErrorKind::TimedOut
            | ErrorKind::Aborted
            | ErrorKind::Busy
            | ErrorKind::Expired
            | ErrorKind::TryAgain
            | ErrorKind::CompactionTooLarge
            | ErrorKind::ColumnFamilyDropped => Self::Io { path, what },
        }
    }

    /// Returns whether no write can succeed after this error. A full disk is not such an error: RocksDB continues by
    /// itself once there is room again.
    pub(crate) fn breaks_writing(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Io { .. } => !self.is_full_disk(),
            Self::Behind { .. }
            | Self::Other { .. }
            | Self::Busy { .. }
            | Self::Format { .. }
            | Self::Unreadable { .. }
            | Self::Unwritable { .. }
            | Self::NoTable { .. }
            | Self::SyncedOnly { .. } => false,
        }
    }

    /// Returns whether the disk has no room.
    pub fn is_full_disk(&self) -> bool {
        matches!(self, Self::Io { what, .. } if what.contains("No space left on device"))
    }

    /// Returns whether it helps to destroy the database and fill it again from elsewhere.
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Damaged { .. }
                | Self::Behind { .. }
                | Self::Other { .. }
                | Self::Unreadable { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an I/O error is passed over as if the next write could succeed, or a full disk ends a part.
    #[test]
    fn io_error_breaks_writing_and_full_disk_not() {
        let io = |what: &str| DbError::Io {
            path: "catalog".into(),
            what: what.to_owned(),
        };
        assert!(io("IO error: While fdatasync: 000015.log: Input/output error").breaks_writing());
        let full = "IO error: No space left on device: While appending to file: 000015.log";
        assert!(!io(full).breaks_writing());
        let said = BrokenDatabase(io("IO error: While fdatasync: Input/output error")).to_string();
        assert!(
            said.contains("catalog") && said.contains("start this part again"),
            "{said}"
        );
    }
}
