//! Writes that a power cut tore.

use std::io;
use std::path::{Path, PathBuf};

use crate::{DbError, log};

/// A write that was cut away when the database was opened: a power cut had torn it, and it was never acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}: a power cut tore the last write, of which nobody was told: {cut} bytes after byte {kept} were cut away",
    log.display()
)]
pub struct TornTail {
    /// The path of the log.
    pub log: PathBuf,
    /// The number of bytes of the log that are kept.
    pub kept: u64,
    /// The number of bytes that were cut away.
    pub cut: u64,
}

impl TornTail {
    /// Finds the write that a power cut tore at the end of the newest log. Returns `None` if the damage is of another
    /// kind.
    pub(crate) fn find_torn_tail(path: &Path, at_least: u64) -> Result<Option<Self>, DbError> {
        let io = |error: io::Error| DbError::from_io(path, &error);
        let files = log::list_logs(path).map_err(io)?;
        let logs = files.iter().map(|file| log::read_log(file));
        let mut logs = logs.collect::<io::Result<Vec<_>>>().map_err(io)?;
        let sequence = logs.iter().filter_map(|log| log.sequence).max();
        let Some(newest) = logs.pop() else {
            return Ok(None);
        };
        let is_whole = |log: &log::Log| log.tail == log::Tail::Short && log.whole == log.length;
        if newest.tail != log::Tail::Torn || !logs.iter().all(is_whole) {
            return Ok(None);
        }
        // If no log has a whole write, only the tables show the last commit: it is compared after the cut.
        if let Some(found) = sequence.filter(|found| *found < at_least) {
            return Err(DbError::Behind {
                path: path.to_path_buf(),
                stamp: at_least,
                found,
            });
        }
        Ok(Some(Self {
            cut: newest.length.saturating_sub(newest.whole),
            kept: newest.whole,
            log: newest.path,
        }))
    }
}
