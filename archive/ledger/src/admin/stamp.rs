//! The stamp: the point that the admin data and the audit log have reached, kept beside both, so that what is gone from
//! their ends is noticed.
//!
//! ```text
//! <data>/admin.stamp      {"sequence":660,"database":"8d1f6a4c-…","audit":{"lines":120,"head":"<64 hex digits>"}}
//! ```
//!
//! Written before a change is acknowledged, and a second after any other: see `Admin::commit_changes`. The form of the file is
//! [`archive_durable::stamp`]'s.

use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_daemon::{Worker, WorkerStep, WorkerStepError};
use archive_db::Reach;
use archive_durable::{DiskError, StampFile};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::{Admin, AdminError, AuditLine};
use crate::audit_log::LogPosition;

/// The name of the file.
pub const STAMP: &str = "admin.stamp";

/// The time after which the stamp follows commits that were not acknowledged.
const PAUSE: Duration = Duration::from_secs(1);

/// The content of a stamp.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampContent {
    /// The sequence number of the last commit.
    pub sequence: u64,
    /// The database, as [`archive_db::Database::identity`]; `None` at sequence 0, before there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The end that the audit log has at least; `None` if it was not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<LogEnd>,
}

impl StampContent {
    /// Returns the point that the database has reached; `None` if there was none yet.
    pub(super) fn reach(&self) -> Option<Reach> {
        let identity = self.database.clone()?;
        Some(Reach {
            sequence: self.sequence,
            identity,
        })
    }
}

/// The end of an audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEnd {
    /// The number of lines in the log, from the first one on.
    pub lines: u64,
    /// The SHA-256 of the last line, in hex.
    pub head: String,
}

impl LogEnd {
    /// Returns the end at a position; `None` if the log has no line.
    fn at(position: &LogPosition) -> Option<Self> {
        let chain = position.chain;
        (chain.next() > 0).then(|| Self {
            lines: chain.next(),
            head: chain.previous().to_string(),
        })
    }
}

/// The stamp as it was found.
#[derive(Debug)]
pub(super) struct StampOnDisk {
    /// The content of the stamp.
    pub(super) content: StampContent,
    /// The file.
    pub(super) file: archive_durable::StampWriter,
}

/// Reads the stamp of admin data. Returns `None` if there is no such file.
///
/// # Errors
/// If the file cannot be read, or its text makes no sense.
pub fn read_stamp(path: &Path) -> Result<Option<StampContent>, AdminError> {
    Ok(find_stamp(path)?.map(|found| found.content))
}

pub(super) fn find_stamp(path: &Path) -> Result<Option<StampOnDisk>, AdminError> {
    let wrong = |text: &[u8]| AdminError::Stamp {
        path: path.to_owned(),
        text: String::from_utf8_lossy(text.get(..100).unwrap_or(text)).into_owned(),
    };
    Ok(match archive_durable::StampWriter::open(path)? {
        StampFile::Absent => None,
        StampFile::Damaged => return Err(wrong(b"damaged")),
        StampFile::Foreign(text) => return Err(wrong(&text)),
        StampFile::Whole(file, text) => {
            let content: StampContent = serde_json::from_slice(&text).or(Err(wrong(&text)))?;
            if content.database.is_none() && content.sequence > 0 {
                return Err(wrong(&text));
            }
            Some(StampOnDisk { content, file })
        }
    })
}

/// The stamp of admin data that are open.
#[derive(Debug)]
pub(super) struct AdminStamp {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The file of the stamp; `None` if it was not written yet.
    file: Option<archive_durable::StampWriter>,
    written: StampContent,
    /// The end of the audit log now.
    audit: Option<LogEnd>,
}

impl AdminStamp {
    /// Goes on with the stamp that was found under `path`.
    pub(super) fn new(path: PathBuf, found: Option<StampOnDisk>) -> Self {
        let (file, written) = found.map_or((None, StampContent::default()), |found| {
            (Some(found.file), found.content)
        });
        let state = State {
            file,
            audit: written.audit.clone(),
            written,
        };
        Self {
            path,
            state: Mutex::new(state),
        }
    }

    /// Notes the end of the audit log, to be written with the next sequence number.
    pub(super) fn log_ends(&self, position: &LogPosition) {
        let mut state = self.state.lock();
        state.audit = LogEnd::at(position);
    }

    /// Writes the stamp of admin data that have no database yet.
    pub(super) fn begin_stamp(&self) -> Result<(), DiskError> {
        self.write_content(&mut self.state.lock(), StampContent::default())
    }

    /// Writes the stamp, durably, unless it is up to date. `reach` is asked once nobody else writes: of several callers
    /// that wait here the first one writes for all.
    pub(super) fn write_stamp(&self, reach: impl FnOnce() -> Reach) -> Result<(), DiskError> {
        let mut state = self.state.lock();
        let Reach { sequence, identity } = reach();
        let content = StampContent {
            sequence,
            database: Some(identity),
            audit: state.audit.clone(),
        };
        if state.file.is_some() && state.written == content {
            return Ok(());
        }
        self.write_content(&mut state, content)
    }

    fn write_content(&self, state: &mut State, content: StampContent) -> Result<(), DiskError> {
        let text = serde_json::to_vec(&content)
            .map_err(|error| DiskError::new("write", &self.path, error))?;
        match &mut state.file {
            Some(file) => file.write(&text)?,
            none => *none = Some(archive_durable::StampWriter::begin(&self.path, &text)?),
        }
        state.written = content;
        Ok(())
    }
}

/// The worker that brings the stamp up to date where the last changes were not acknowledged, however idle the archive
/// is.
#[derive(Debug)]
pub struct StampWorker(pub Admin);

impl Worker for StampWorker {
    const NAME: &'static str = "admin-stamp";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let admin = self.0.clone();
        spawn_blocking(move || admin.write_stamp()).await??;
        Ok(WorkerStep::Idle(PAUSE))
    }
}

impl Admin {
    /// Reports in the log and in the audit trail that a write was cut away which a power cut had torn. Does nothing if
    /// there was none.
    ///
    /// # Errors
    /// [`AdminError`] where the line of the trail cannot be written.
    pub fn report_torn_tail(&self, archive: &str, now: Timestamp) -> Result<(), AdminError> {
        let Some(torn) = self.torn() else {
            return Ok(());
        };
        tracing::warn!("{torn}");
        let mut changes = self.begin_changes();
        changes.note_line(AuditLine {
            at: now,
            who: format!("repository/{archive}"),
            file: None,
            what: format!("at the start of the repository: {torn}"),
        });
        Ok(self.commit_changes(changes)?)
    }
}

#[cfg(test)]
mod tests;
