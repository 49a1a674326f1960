//! Writes what a run sends: on a thread of its own, synced at checkpoints, and only then remembered.
//!
//! A checkpoint is at a file boundary: output, errors and manifest are synced, then their lengths are stored in the
//! row. The next run cuts off what lies behind it.

use std::time::{Duration, Instant};

use archive_daemon::Clock;
use archive_db::DbError;
use archive_decisions::batch::life::{JobEvent, JobGap, JobStep};
use archive_model::{BatchFileOutcome, FailureKind, JobId};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::folder::{JobFolder, RunFiles};
use super::lines;
use super::meters::Meters;
use super::table::{Checkpoint, JobRow, JobTable};

/// The most bytes of output, and the longest time, between two checkpoints, as far as files end in between.
const BYTES: u64 = 64 << 20;
const TIME: Duration = Duration::from_secs(5);

/// The part of a run that is written.
#[derive(Debug)]
pub(crate) enum RunPiece {
    /// The next bytes about the next file.
    Output(Bytes),
    /// The end of a file.
    Done(Box<BatchFileOutcome>),
    /// The end of the run; the files of these nodes and volumes are missing.
    End(Vec<JobGap>),
}

/// The way in which a run ended, as far as the keeper knows.
#[derive(Debug)]
pub(crate) enum RunEnd {
    /// The run was completed: all is on disk.
    Whole(Vec<JobGap>),
    /// The run was cut off. The output up to the end of the last finished file is on disk.
    Cut,
    /// The job cannot continue, for this reason.
    Wrong(String),
    /// The job has ended in the meantime.
    Over,
}

/// The writer of one run of a job.
#[derive(Debug)]
pub(crate) struct Keeper {
    jobs: JobTable,
    clock: Clock,
    meters: Meters,
    space: super::space::Space,
    id: JobId,
    files: RunFiles,
    /// The most bytes of output that the job may write.
    most: u64,
    /// The bytes of output, including those of the unfinished file.
    output: u64,
    /// The checkpoint at the end of the last finished file.
    checkpoint: Checkpoint,
    /// The number of files up to the checkpoint that no node has read.
    unread: u64,
    /// Whether the row has the checkpoint.
    is_noted: bool,
    noted: Instant,
    unnoted: u64,
}

/// The reason why no more can be written.
enum WriteError {
    Wrong(String),
    Over,
    Db(DbError),
}

impl From<DbError> for WriteError {
    fn from(error: DbError) -> Self {
        Self::Db(error)
    }
}

fn wrong(error: impl std::fmt::Display) -> WriteError {
    WriteError::Wrong(error.to_string())
}

impl Keeper {
    /// Opens the files of a job as they were at its last checkpoint.
    pub(crate) fn open(
        jobs: &JobTable,
        folder: &JobFolder,
        row: &JobRow,
        clock: Clock,
        meters: Meters,
        space: super::space::Space,
    ) -> Result<Self, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut files = folder
            .open_files(&row.checkpoint)
            .map_err(|error| text(&error))?;
        let mut checkpoint = row.checkpoint.clone();
        if checkpoint.manifest == 0 {
            let line = lines::job_line(row).map_err(|error| text(&error))?;
            files.manifest.append(&line).map_err(|error| text(&error))?;
            checkpoint.manifest = length(&line);
        }
        Ok(Self {
            jobs: jobs.clone(),
            id: row.id.clone(),
            files,
            most: row.spec.limits.output,
            output: checkpoint.output,
            is_noted: checkpoint == row.checkpoint,
            checkpoint,
            unread: row.life.unread,
            noted: clock.instant(),
            unnoted: 0,
            clock,
            meters,
            space,
        })
    }

    /// Writes pieces until the channel is closed.
    ///
    /// # Errors
    /// The admin data cannot be written.
    pub(crate) fn run_keeper(
        mut self,
        pieces: mpsc::Receiver<RunPiece>,
        runtime: &Handle,
    ) -> Result<RunEnd, DbError> {
        let kept = match self.write(pieces, runtime) {
            Ok(kept) => kept,
            Err(WriteError::Over) => return Ok(RunEnd::Over),
            Err(WriteError::Db(error)) => return Err(error),
            Err(WriteError::Wrong(why)) => RunEnd::Wrong(why),
        };
        match self.note() {
            Ok(()) => Ok(kept),
            Err(WriteError::Over) => Ok(RunEnd::Over),
            Err(WriteError::Db(error)) => Err(error),
            // The first reason is the cause.
            Err(WriteError::Wrong(why)) => Ok(match kept {
                RunEnd::Wrong(first) => RunEnd::Wrong(first),
                RunEnd::Whole(_) | RunEnd::Cut | RunEnd::Over => RunEnd::Wrong(why),
            }),
        }
    }

    fn write(
        &mut self,
        mut pieces: mpsc::Receiver<RunPiece>,
        runtime: &Handle,
    ) -> Result<RunEnd, WriteError> {
        let mut whole = None;
        loop {
            let waited = runtime.block_on(self.clock.run_with_timeout(TIME, pieces.recv()));
            match waited {
                // Nothing is received: what is there gets its checkpoint in the meantime.
                Err(_late) => self.note()?,
                Ok(None) => return Ok(whole.map_or(RunEnd::Cut, RunEnd::Whole)),
                Ok(Some(RunPiece::Output(bytes))) => self.output(&bytes)?,
                Ok(Some(RunPiece::Done(outcome))) => self.done(&outcome)?,
                Ok(Some(RunPiece::End(gaps))) => whole = Some(gaps),
            }
        }
    }

    fn output(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.output = self.output.saturating_add(length(bytes));
        if self.output > self.most {
            let said = format_args!(
                "the output of the job is longer than its limit of {} bytes; submit the job again with a larger limit on its output",
                self.most
            );
            return Err(wrong(said));
        }
        self.space.take_bytes(length(bytes)).map_err(wrong)?;
        self.unnoted = self.unnoted.saturating_add(length(bytes));
        self.files.output.append(bytes).map_err(wrong)
    }

    fn done(&mut self, outcome: &BatchFileOutcome) -> Result<(), WriteError> {
        let (mut manifest, errors) = lines::outcome_lines(outcome).map_err(wrong)?;
        let is_unread = is_unread(outcome);
        if is_unread {
            // Only the reason is kept.
            manifest.clear();
            if outcome.output > 0 {
                self.files
                    .output
                    .cut(self.checkpoint.output)
                    .map_err(wrong)?;
            }
        }
        self.space
            .take_bytes(length(&manifest).saturating_add(length(&errors)))
            .map_err(wrong)?;
        if !errors.is_empty() {
            self.files.errors.append(&errors).map_err(wrong)?;
        }
        self.files.manifest.append(&manifest).map_err(wrong)?;
        let checkpoint = &mut self.checkpoint;
        checkpoint.after = Some(outcome.name.clone());
        checkpoint.errors = checkpoint.errors.saturating_add(length(&errors));
        if is_unread {
            self.unread = self.unread.saturating_add(1);
        } else {
            checkpoint.output = checkpoint.output.saturating_add(outcome.output);
            checkpoint.manifest = checkpoint.manifest.saturating_add(length(&manifest));
            checkpoint.files = checkpoint.files.saturating_add(1);
            checkpoint.failed = checkpoint
                .failed
                .saturating_add(u64::from(!errors.is_empty()));
            checkpoint.records = checkpoint.records.saturating_add(outcome.records);
            checkpoint.bytes = checkpoint.bytes.saturating_add(outcome.size);
            self.meters.files.inc();
            self.meters.bytes.inc_by(outcome.size);
        }
        // Output of a file that nobody has read does not count towards the limit.
        self.output = checkpoint.output;
        self.is_noted = false;
        let age = self.clock.instant().saturating_duration_since(self.noted);
        if self.unnoted >= BYTES || age >= TIME {
            self.note()?;
        }
        Ok(())
    }

    /// Syncs the files and stores the checkpoint in the row.
    fn note(&mut self) -> Result<(), WriteError> {
        self.noted = self.clock.instant();
        self.unnoted = 0;
        if self.is_noted {
            return Ok(());
        }
        self.files.sync().map_err(wrong)?;
        let checkpoint = self.checkpoint.clone();
        let unread = self.unread;
        let event = if checkpoint.after.is_none() {
            // Only the first line of the manifest.
            JobEvent::Woke
        } else {
            JobEvent::Progress
        };
        let noted = self.jobs.apply_event(&self.id, event, move |row| {
            row.checkpoint = checkpoint;
            row.life.unread = unread;
        })?;
        self.is_noted = true;
        match noted {
            None | Some((_, JobStep::Stop | JobStep::Close)) => Err(WriteError::Over),
            Some((
                _,
                JobStep::Wait
                | JobStep::Look
                | JobStep::Run
                | JobStep::Pause(_)
                | JobStep::Compare
                | JobStep::Reduce,
            )) => Ok(()),
        }
    }
}

fn length(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

/// Returns whether no node has read the file, and nothing else is known of it.
fn is_unread(outcome: &BatchFileOutcome) -> bool {
    let mut kinds = outcome.failures.iter().map(|failure| failure.kind);
    !outcome.failures.is_empty() && kinds.all(|kind| kind == FailureKind::Unread)
}

#[cfg(test)]
mod tests {
    use archive_model::{FileFailure, FileName, NodeId, Root, VolumeId};

    use super::*;

    /// Fails if a file with another failure counts as unread, or one that nobody has read as read.
    #[test]
    fn file_is_unread_where_nothing_else_failed() {
        let is_so = |kinds: &[FailureKind]| {
            let failure = |kind: &FailureKind| FileFailure {
                kind: *kind,
                offset: None,
                reason: "x".to_owned(),
            };
            is_unread(&BatchFileOutcome {
                name: FileName::new("a").unwrap(),
                node: NodeId::new("n").unwrap(),
                volume: VolumeId::new("v").unwrap(),
                root: Root::from_bytes([1; 32]),
                size: 1,
                records: 0,
                output: 90,
                failures: kinds.iter().map(failure).collect(),
                more_failures: 0,
            })
        };
        assert!(is_so(&[FailureKind::Unread]));
        assert!(is_so(&[FailureKind::Unread, FailureKind::Unread]));
        assert!(!is_so(&[]));
        assert!(!is_so(&[FailureKind::Damaged]));
        assert!(!is_so(&[FailureKind::Unread, FailureKind::Job]));
    }
}
