//! The way back from lost admin data: from an export, or from the signed admissions in the sidecars of every replica.
//!
//! Owns the reading of an export, and the rule by which admissions become rows ([`combine`]). `archive-repository` asks
//! the nodes for the admissions. Both work while the repository is stopped, and only where there are no admin data. A
//! trail whose log is still there goes on; else it begins with what the export has. What is restored is complete or not
//! there at all: until the last row is written the admin data cannot be opened.
//!
//! Not promised: what no signature vouches for. It is named, and left out.

pub mod combine;
mod export;
mod lines;
mod logged;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use archive_durable::{DiskError, read_state};
use archive_model::FileName;
use archive_proof::TrustFile;
use jiff::Timestamp;

pub use export::{FromExport, begin_export, from_export};
#[doc(hidden)]
pub use export::{judge_export, rewritten};

use logged::LoggedRemovals;

use crate::admin::stamp::{self, STAMP};
use crate::admin::{AdminError, AdminRestore, AuditLine};
use crate::audit_log::{LogError, LogPosition, LogWalk, TrailLine};

/// The most findings that are kept; the rest is counted.
const FINDINGS: usize = 10_000;

/// The place where admin data are restored, and the archive whose they are.
#[derive(Clone, Copy, Debug)]
pub struct RestoreTarget<'a> {
    /// The data directory of the repository.
    pub data: &'a Path,
    /// The name of the archive.
    pub archive: &'a str,
    /// The trust file: the keys whose admissions are believed.
    pub trust: &'a Path,
}

/// Admin data that are being restored.
#[derive(Debug)]
pub struct PartialRestore {
    /// The tables.
    pub restoring: AdminRestore,
    /// The number of the next line of the trail.
    pub next: u64,
    /// The removals that the log knows that is still there.
    logged: LoggedRemovals,
}

impl PartialRestore {
    /// Begins behind the log that is still there.
    ///
    /// # Errors
    /// [`RestoreError::Log`] if the log was changed or cut, [`RestoreError::Database`] if the tables cannot be written.
    pub fn begin_restore(data: &Path) -> Result<Self, RestoreError> {
        let log = kept_log(data)?;
        let mut begun = Self {
            restoring: AdminRestore::begin_restore(data)?,
            next: 0,
            logged: LoggedRemovals::default(),
        };
        if let Some(KeptLog {
            last,
            end,
            removals,
        }) = log
        {
            // The newest line stays in the table, so that numbers continue.
            begun.restoring.restore_line(last.number, &last.line)?;
            begun.restoring.set_log_end(end)?;
            begun.next = end.chain.next();
            begun.logged = removals;
        }
        Ok(begun)
    }

    /// Adds a line to the trail.
    ///
    /// # Errors
    /// [`RestoreError::Database`] if the tables cannot be written.
    pub fn add_line(&mut self, line: &AuditLine) -> Result<(), RestoreError> {
        self.restoring.restore_line(self.next, line)?;
        self.next = self.next.saturating_add(1);
        Ok(())
    }

    /// Withdraws the copies that the log knows to be removed, and adds them to `found`.
    ///
    /// # Errors
    /// [`RestoreError::Database`] if the tables cannot be read or written.
    pub fn withdraw_logged(
        &mut self,
        archive: &str,
        now: Timestamp,
        found: &mut RestoreFindings,
    ) -> Result<(), RestoreError> {
        self.restoring.settle_load()?;
        let next = &mut self.next;
        let line = |restoring: &mut AdminRestore, name: &FileName, what: String| {
            let line = AuditLine {
                file: Some(name.clone()),
                ..restored_line(archive, now, what)
            };
            restoring.restore_line(*next, &line)?;
            *next += 1;
            Ok(())
        };
        self.logged
            .withdraw_copies(&mut self.restoring, found, line)?;
        Ok(self.restoring.settle_load()?)
    }
}

/// A log that is still there.
#[derive(Debug)]
struct KeptLog {
    last: TrailLine,
    end: LogPosition,
    removals: LoggedRemovals,
}

/// The reason why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The directory has admin data already.
    #[error(
        "{}: there are admin data already, and they were not touched; move them away if they are to be replaced \
         (also what a restore that was cut off has left)", .0.display()
    )]
    There(PathBuf),
    /// A file that the settings name is absent or not what it should be.
    #[error("{setting}: {}: {why}", .path.display())]
    File {
        /// The setting.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The problem of the file.
        why: String,
    },
    /// The export cannot be read at all.
    #[error("{}: {why}", .path.display())]
    Export {
        /// The file.
        path: PathBuf,
        /// The reason of the refusal.
        why: String,
    },
    /// The audit log that is still there is not to be believed.
    #[error("{0}; or move the log away, and the trail begins with what is restored")]
    Log(#[from] LogError),
    /// The admin data cannot be written.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The database of the admin data cannot be written.
    #[error(transparent)]
    Database(#[from] archive_db::DbError),
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The certificate or an address of the settings cannot be used.
    #[error("{0}")]
    Settings(String),
    /// A bug: the work panicked.
    #[error(transparent)]
    Join(#[from] tokio::task::JoinError),
}

/// A file, node or line that was left out, or could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreFinding {
    /// The file, node or line.
    pub about: String,
    /// The problem of that file, node or line.
    pub what: String,
}

/// The first findings, and the number of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreFindings {
    /// The first findings.
    pub list: Vec<RestoreFinding>,
    /// The number of all findings.
    pub count: u64,
}

impl RestoreFindings {
    /// Counts a finding, and keeps it if it is one of the first.
    pub fn add_finding(&mut self, about: impl Into<String>, what: impl Into<String>) {
        self.count += 1;
        if self.list.len() < FINDINGS {
            self.list.push(RestoreFinding {
                about: about.into(),
                what: what.into(),
            });
        }
    }
}

/// Refuses a directory that has admin data.
///
/// # Errors
/// [`RestoreError::There`] if there are admin data, and [`RestoreError::Disk`] if that cannot be found out.
pub fn refuse_if_there(data: &Path) -> Result<(), RestoreError> {
    if AdminRestore::is_there(data)? {
        return Err(RestoreError::There(data.join("admin")));
    }
    Ok(())
}

/// Reads the trust file at `path`.
///
/// # Errors
/// [`RestoreError::File`] where it is absent or invalid.
pub fn trust_file(path: &Path) -> Result<TrustFile, RestoreError> {
    let wrong = |why: String| RestoreError::File {
        setting: "repository.trust",
        path: path.to_owned(),
        why,
    };
    let text = read_state(path)?.ok_or_else(|| wrong("there is no such file".to_owned()))?;
    TrustFile::parse(&text).map_err(|error| wrong(error.to_string()))
}

/// Reads the log that is still there; `None` if it has no lines. Refuses a log whose end lacks lines that the stamp of
/// the lost admin data knows.
///
/// # Errors
/// [`RestoreError::Log`] if the log was changed or cut.
fn kept_log(data: &Path) -> Result<Option<KeptLog>, RestoreError> {
    let known = stamp::read_stamp(&data.join(STAMP))?;
    let known = known.and_then(|reach| reach.audit);
    let mut walk = LogWalk::open(&data.join("audit"))?;
    let mut last = None;
    let mut removals = LoggedRemovals::default();
    let mut is_known = known.is_none();
    while let Some(entry) = walk.next() {
        let entry = entry?;
        removals.follow_line(&entry.line);
        last = Some(entry);
        let chain = walk.position().chain;
        is_known |= known.as_ref().is_some_and(|end| {
            end.lines == chain.next() && end.head == chain.previous().to_string()
        });
    }
    if let (false, Some(end), Some(_)) = (is_known, known, &last) {
        let last = end.lines.saturating_sub(1);
        let why = format!(
            "by {STAMP} it has a line number {last} with the hash {}, and that is not there",
            end.head
        );
        return Err(walk.log_changed(why).into());
    }
    let end = walk.position();
    Ok(last.map(|last| KeptLog {
        last,
        end,
        removals,
    }))
}

/// Makes the last line of a restored trail, which says that it was restored.
pub fn restored_line(archive: &str, now: Timestamp, what: String) -> AuditLine {
    AuditLine {
        at: now,
        who: format!("repository/{archive}"),
        file: None,
        what,
    }
}
