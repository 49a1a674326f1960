//! The worker that writes the trail of the admin data into the log, in order, and deletes the rows once they are
//! durable there.
//!
//! The newest row stays, so that numbers continue. A crash at any point neither loses a line nor writes one twice: what
//! was appended and not yet confirmed is compared with the rows at the next start.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use archive_daemon::{Clock, Gauge, Notifier, Worker, WorkerStep, WorkerStepError};
use archive_durable::DiskSeverity;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::admin::Admin;
use crate::audit_log::{AuditLog, LogError, LogOptions, LogPosition, LogWalk};

/// The number of lines that are written together.
const LINES: usize = 1000;

/// The pause when nothing is left to write.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause before a log that was refused is looked at again.
const REFUSED: Duration = Duration::from_mins(10);

/// The pause before the next try while the disk is full.
const FULL: Duration = Duration::from_secs(10);

/// The time between two readings of the whole log while the repository runs.
const AGAIN: Duration = Duration::from_hours(24);

/// The incident of a log that is refused.
const INCIDENT: &str = "audit-log";

/// The parts that a [`TrailWriter`] is made of.
#[derive(Debug)]
pub struct WriterParts {
    /// The admin data whose trail is written.
    pub admin: Admin,
    /// The directory of the log.
    pub directory: PathBuf,
    /// Notifies people of a log that is refused.
    pub notifier: Notifier,
    /// Is 1 while the log is refused.
    pub refused: Gauge,
    /// The clock.
    pub clock: Clock,
    /// Is cancelled when the repository stops.
    pub stop: CancellationToken,
}

/// The worker that writes the trail of the admin data into the files of the log.
#[derive(Debug)]
pub struct TrailWriter {
    parts: WriterParts,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The log is to be read whole before anything is appended.
    Unread,
    /// The log, and the time when it was last found to be what was written.
    Good(AuditLog, Instant),
    /// A sync failed: the bytes in the cache may not be on the disk, and no later sync would report it.
    Poisoned,
}

impl TrailWriter {
    /// Creates the worker. The log is read whole in its first step.
    pub const fn new(parts: WriterParts) -> Self {
        Self {
            parts,
            state: State::Unread,
        }
    }

    fn refuse(&self, error: &LogError) {
        if self.parts.refused.get() == 0 {
            tracing::error!(%error, "the audit log is refused; nothing is appended to it");
        }
        self.parts.refused.set(1);
        self.parts
            .notifier
            .raise_incident(INCIDENT, error.to_string());
    }

    fn accept(&self) {
        self.parts.refused.set(0);
        self.parts.notifier.resolve_incident(INCIDENT);
    }
}

impl Worker for TrailWriter {
    const NAME: &'static str = "audit-log";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let parts = &self.parts;
        let now = parts.clock.instant();
        let admin = parts.admin.clone();
        let directory = parts.directory.clone();
        let stop = parts.stop.clone();
        match std::mem::replace(&mut self.state, State::Unread) {
            State::Poisoned => {
                self.state = State::Poisoned;
                Ok(WorkerStep::Idle(REFUSED))
            }
            State::Good(log, since) if now.saturating_duration_since(since) < AGAIN => {
                let written = spawn_blocking(move || write_next(log, &admin)).await?;
                match written {
                    Ok((log, is_all)) => {
                        if self.parts.refused.get() != 0 {
                            self.accept();
                        }
                        self.state = State::Good(log, since);
                        Ok(if is_all {
                            WorkerStep::Idle(PAUSE)
                        } else {
                            WorkerStep::Again
                        })
                    }
                    // What was appended in part is cut when the log is read anew.
                    Err(LogError::Disk(error)) if error.severity() == DiskSeverity::NoSpace => {
                        self.refuse(&LogError::Disk(error));
                        Ok(WorkerStep::Idle(FULL))
                    }
                    Err(LogError::Disk(error)) => {
                        self.refuse(&LogError::Disk(error));
                        self.state = State::Poisoned;
                        Ok(WorkerStep::Idle(REFUSED))
                    }
                    // The log is read anew before anything more is appended.
                    Err(error) => Err(error.into()),
                }
            }
            State::Good(..) | State::Unread => {
                let opened = spawn_blocking(move || {
                    open_trail_log(&admin, &directory, &|| stop.is_cancelled())
                });
                match opened.await? {
                    Ok(log) => {
                        self.state = State::Good(log, now);
                        Ok(WorkerStep::Again)
                    }
                    Err(LogError::Stopped) => Ok(WorkerStep::Idle(PAUSE)),
                    Err(error @ LogError::Changed { .. }) => {
                        self.refuse(&error);
                        Ok(WorkerStep::Idle(REFUSED))
                    }
                    Err(error) => Err(error.into()),
                }
            }
        }
    }
}

/// Opens the log of these admin data.
pub(super) fn open_trail_log(
    admin: &Admin,
    directory: &std::path::Path,
    is_stopping: &dyn Fn() -> bool,
) -> Result<AuditLog, LogError> {
    let mut known = admin.log_end()?;
    if known.is_none() && LogWalk::open(directory)?.next().is_none() {
        // From now on the admin data say that the log was empty.
        admin.set_log_end(LogPosition::first_position(), 0)?;
        known = Some(LogPosition::first_position());
    }
    let options = LogOptions {
        known,
        ..LogOptions::default()
    };
    AuditLog::open(directory, admin, options, is_stopping)
}

/// Writes the next lines into the log. Returns the log, and whether nothing is left to write.
pub(super) fn write_next(mut log: AuditLog, admin: &Admin) -> Result<(AuditLog, bool), LogError> {
    if admin.next_line() <= log.next() {
        return Ok((log, true));
    }
    let rows = admin.audit_rows(log.next())?.take(LINES);
    let lines = rows.collect::<Result<Vec<_>, _>>()?;
    if let Some((first, _)) = lines.first()
        && *first != log.next()
    {
        let why = format!(
            "lines from number {} are neither in it nor in the admin data",
            log.next()
        );
        return Err(LogError::Changed {
            file: log.directory().to_owned(),
            line: 0,
            why,
        });
    }
    let Some((last, _)) = lines.last() else {
        return Ok((log, true));
    };
    let last = *last;
    let is_all = lines.len() < LINES;
    let position = log.append(&lines)?;
    admin.set_log_end(position, last)?;
    Ok((log, is_all))
}
