//! The stamp of a frontier: how far its database was durable, in a second file.
//!
//! A log that has lost its end looks as if the end had never been written. Owns that such a frontier is refused. The
//! stamp follows each sync, so that no power cut leaves it ahead of the database.

use std::path::{Path, PathBuf};

use archive_db::{DbError, Reach};
use archive_durable::stamp::StampFile;
use archive_durable::{DiskError, StampWriter};

/// The name of the stamp in the directory of the frontier.
const FILE_NAME: &str = "stamp";

/// The stamp of one frontier.
#[derive(Debug)]
pub(super) struct FrontierStamp {
    path: PathBuf,
    stamp: Option<StampWriter>,
}

impl FrontierStamp {
    /// Reads the stamp of the frontier in a directory. Returns how far the frontier has to reach; `None` if it was
    /// never synced.
    pub(super) fn open(directory: &Path) -> Result<(Self, Option<Reach>), DbError> {
        let path = directory.join(FILE_NAME);
        let damaged = |what: &str| DbError::Damaged {
            path: path.clone(),
            what: what.to_owned(),
        };
        match StampWriter::open(&path).map_err(|error| stamp_error(&error))? {
            StampFile::Absent => Ok((Self { path, stamp: None }, None)),
            StampFile::Whole(stamp, bytes) => {
                let reach = String::from_utf8_lossy(&bytes).parse();
                let reach = reach
                    .ok()
                    .ok_or_else(|| damaged("it names no sequence number"))?;
                let stamp = Some(stamp);
                Ok((Self { path, stamp }, Some(reach)))
            }
            StampFile::Foreign(_) | StampFile::Damaged => Err(damaged("it is no stamp")),
        }
    }

    /// Writes how far the frontier is durable.
    pub(super) fn write(&mut self, reach: &Reach) -> Result<(), DbError> {
        let text = reach.to_string();
        let written = match &mut self.stamp {
            Some(stamp) => stamp.write(text.as_bytes()),
            None => StampWriter::begin(&self.path, text.as_bytes()).map(|stamp| {
                self.stamp = Some(stamp);
            }),
        };
        written.map_err(|error| stamp_error(&error))
    }
}

fn stamp_error(error: &DiskError) -> DbError {
    DbError::Io {
        path: error.path.clone(),
        what: error.to_string(),
    }
}
