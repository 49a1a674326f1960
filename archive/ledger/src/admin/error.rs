//! Errors of admin data that cannot be used, and what to do then.

use std::path::PathBuf;

use archive_db::DbError;
use archive_durable::{DiskError, DiskSeverity};

/// The reason why the admin data cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The database: damaged, behind its stamp, in use, of another version, or the disk.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The directory has no admin data.
    #[error(
        "{}: there are no admin data here; if they were lost, `holdfast admin restore` restores them, and an archive \
         that begins is begun by `holdfast repository --init`",
        .0.display()
    )]
    Absent(PathBuf),
    /// The stamp cannot be read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The stamp says nothing that makes sense.
    #[error(
        "{}: this is no stamp of admin data ({text}); put back a backup of it together with `admin`, or move both away \
         and run `holdfast admin restore`", .path.display()
    )]
    Stamp {
        /// The file.
        path: PathBuf,
        /// The text of the stamp.
        text: String,
    },
    /// The stamp is absent: without it nothing shows whether the data are all there.
    #[error(
        "{}: the stamp of the admin data is gone, and without it nothing tells whether their end is gone, too; put back \
         a backup of it together with `admin`, or move `admin` away and run `holdfast admin restore`", .0.display()
    )]
    Unstamped(PathBuf),
    /// The index of places was corrected, and is still wrong.
    #[error(
        "{}: the index of the places of files is not what the rows of the files say, also after it was corrected; check \
         the disk, and start the repository again", .0.display()
    )]
    Places(PathBuf),
    /// The data are damaged, or end before what was acknowledged.
    #[error(
        "{error}; move {} away, and restore them with `holdfast admin restore`, with --from-replicas what no export has",
        .data.display()
    )]
    Damaged {
        /// The directory of the damaged database.
        data: PathBuf,
        /// The error of the database.
        error: Box<DbError>,
    },
    /// The disk has no room, also not for what opening the data writes.
    #[error("{error}; free some room on the disk of {}, then start again: nothing is lost", .data.display())]
    Full {
        /// The directory of the database.
        data: PathBuf,
        /// The error of the database.
        error: Box<DbError>,
    },
}

impl AdminError {
    /// Returns whether the disk has no room: the same change can be written once there is some.
    pub fn is_full_disk(&self) -> bool {
        match self {
            Self::Database(error) => error.is_full_disk(),
            Self::Disk(error) => error.severity() == DiskSeverity::NoSpace,
            Self::Full { .. } => true,
            Self::Absent(_)
            | Self::Stamp { .. }
            | Self::Unstamped(_)
            | Self::Places(_)
            | Self::Damaged { .. } => false,
        }
    }

    /// Returns the error of a database that could not be opened: what to do depends on whether it is damaged.
    pub(super) fn from_open(data: PathBuf, error: DbError) -> Self {
        if error.is_damage() {
            let error = Box::new(error);
            Self::Damaged { data, error }
        } else if error.is_full_disk() {
            let error = Box::new(error);
            Self::Full { data, error }
        } else {
            Self::Database(error)
        }
    }
}
