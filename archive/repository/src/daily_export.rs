//! The daily export into the archive itself: an archived file like any other, in every replica.
//!
//! If nothing has changed since the last export, the day is skipped. The admin data remember when the next one is due.
//! The repository is the depositor: an export whose store was not completed is stored again, before another one is
//! made, until the archive has it.

mod spool;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use archive_daemon::{Clock, Notifier, Tasks, Worker, WorkerStep, WorkerStepError};
use archive_db::{DbError, Table, TableValue};
use archive_decisions::store::Claim;
use archive_durable::{DiskError, directory};
use archive_ledger::admin::{Admin, AuditLine};
use archive_ledger::export::ExportTablesError;
use archive_model::{Digests, FileName, time_after};
use archive_rpc::answers::{Outlet, WorkProgress, feed_messages};
use archive_stores::depositor::{Chunk, DepositReply, DepositRequest, DepositStream};
use archive_stores::file_blocks::FileBlocks;
use archive_stores::limits;
use archive_stores::mail::Mail;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use spool::{Spool, SpooledExport, WrittenExport};

/// The pause after the first start, a stop, or a failed store of a spooled export.
const LOOK: Duration = Duration::from_mins(1);

/// The longest sleep until an export is due: a clock that was set forward is noticed then.
const LONGEST_SLEEP: Duration = Duration::from_hours(1);

/// The pause after a failed export.
const AGAIN: Duration = Duration::from_mins(15);

/// The key of the incident of a failing export.
const INCIDENT: &str = "export";

/// An export that was made, or the first row, which starts the period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExportRow {
    /// The time of the export.
    at: Timestamp,
    /// The archived file; `None` if nothing had changed, or nothing was exported yet.
    name: Option<FileName>,
    /// The hash of its content, which is compared with the next export.
    content: String,
}

impl TableValue for ExportRow {}

impl ExportRow {
    const fn new(at: Timestamp, name: Option<FileName>, content: String) -> Self {
        Self { at, name, content }
    }
}

/// The worker that exports the admin data.
pub(crate) struct AdminExportWorker {
    pub(crate) admin: Admin,
    pub(crate) archive: String,
    /// The directory of the admin data.
    pub(crate) data: PathBuf,
    /// The time between two exports.
    pub(crate) period: Duration,
    pub(crate) mail: Mail,
    pub(crate) notifier: Notifier,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
}

/// The reason why an export is not in the archive.
#[derive(Debug, thiserror::Error)]
enum AdminExportError {
    #[error("the repository is stopping")]
    Stopped,
    #[error("{0}")]
    Export(Box<ExportTablesError>),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("cannot name the export: {0}")]
    Name(#[from] archive_model::InvalidFileName),
    #[error("the archive refused the export: {0}")]
    Store(String),
    #[error(transparent)]
    Join(#[from] tokio::task::JoinError),
}

impl From<ExportTablesError> for AdminExportError {
    fn from(error: ExportTablesError) -> Self {
        match error {
            ExportTablesError::Stopped => Self::Stopped,
            ExportTablesError::Database(_)
            | ExportTablesError::Log(_)
            | ExportTablesError::Write(_) => Self::Export(Box::new(error)),
        }
    }
}

impl From<DbError> for AdminExportError {
    fn from(error: DbError) -> Self {
        ExportTablesError::from(error).into()
    }
}

impl Worker for AdminExportWorker {
    const NAME: &'static str = "export";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let now = self.clock.now();
        let book = self.book();
        let last = spawn_blocking(move || book.last()).await??;
        let Some((_, row)) = &last else {
            let book = self.book();
            let first = ExportRow::new(now, None, String::new());
            spawn_blocking(move || book.write(0, first)).await??;
            return Ok(WorkerStep::Idle(LOOK));
        };
        let due = time_after(row.at, self.period);
        let spool = self.spool();
        let pending = spawn_blocking(move || spool.pending_export()).await??;
        if pending.is_none() && now < due {
            // Only this worker writes rows and spools exports: nothing can become due earlier.
            let pause = Duration::try_from(due.duration_since(now)).unwrap_or(LOOK);
            return Ok(WorkerStep::Idle(pause.min(LONGEST_SLEEP)));
        }
        let (done, pause) = match pending {
            Some(spooled) => (self.archive(now, last, spooled).await, LOOK),
            None => (self.export(now, last).await, AGAIN),
        };
        match done {
            Ok(()) => {
                self.notifier.resolve_incident(INCIDENT);
                Ok(WorkerStep::Again)
            }
            Err(AdminExportError::Stopped) => Ok(WorkerStep::Idle(LOOK)),
            Err(error) => {
                tracing::error!(%error, "cannot export the admin data");
                let text = format!("cannot export the admin data into the archive: {error}");
                self.notifier.raise_incident(INCIDENT, text);
                Ok(WorkerStep::Idle(pause))
            }
        }
    }
}

impl AdminExportWorker {
    fn book(&self) -> ExportLog {
        ExportLog {
            admin: self.admin.clone(),
            who: format!("repository/{}", self.archive),
        }
    }

    fn spool(&self) -> Spool {
        Spool {
            admin: self.admin.clone(),
            archive: self.archive.clone(),
            data: self.data.clone(),
            stop: self.stop.clone(),
        }
    }

    /// Writes an export and stores it, if its content is new.
    async fn export(
        &self,
        now: Timestamp,
        last: Option<(u64, ExportRow)>,
    ) -> Result<(), AdminExportError> {
        let spool = self.spool();
        let written = spawn_blocking(move || spool.write_export(now)).await??;
        let WrittenExport {
            spooled,
            files,
            audit,
        } = written;
        let is_same = last
            .as_ref()
            .is_some_and(|(_, before)| before.content == spooled.content);
        if is_same || files == 0 {
            directory::remove_name(&spooled.path)?;
            return self.write(now, last, None, spooled.content).await;
        }
        tracing::info!(name = %spooled.name, files, audit, "admin data exported");
        self.archive(now, last, spooled).await
    }

    /// Has the archive store a spooled export, and records it.
    async fn archive(
        &self,
        now: Timestamp,
        last: Option<(u64, ExportRow)>,
        spooled: SpooledExport,
    ) -> Result<(), AdminExportError> {
        self.store(&spooled).await?;
        directory::remove_name(&spooled.path)?;
        self.write(now, last, Some(spooled.name), spooled.content)
            .await
    }

    async fn write(
        &self,
        now: Timestamp,
        last: Option<(u64, ExportRow)>,
        name: Option<FileName>,
        content: String,
    ) -> Result<(), AdminExportError> {
        let number = last.map_or(0, |(number, _)| number + 1);
        let book = self.book();
        let row = ExportRow::new(now, name, content);
        Ok(spawn_blocking(move || book.write(number, row)).await??)
    }

    /// Deposits the export as any depositor would.
    async fn store(&self, spooled: &SpooledExport) -> Result<(), AdminExportError> {
        let claim = Claim {
            size: spooled.size,
            root: Some(spooled.root),
            digests: Digests::default(),
        };
        let (replies, mut answers) = mpsc::channel(16);
        let (chunks, stream) = mpsc::channel(4);
        let stream = ReceiverStream::new(stream);
        let source = DepositStream::new(stream, replies.clone(), claim.clone()).whole_stream();
        let depositor = DepositRequest {
            who: self.book().who,
            source: Some(source),
            replies,
            sent: false,
            claim: claim.clone(),
            received: None,
            answered: CancellationToken::new(),
        };
        let mut blocks = FileBlocks::new(spooled.path.clone());
        self.tasks.spawn_once("export-source", async move {
            let fed = feed_messages(&chunks, move |outlet: &mut Outlet<_>| {
                let progress = blocks.send_blocks(outlet, |bytes| Ok(Chunk::Data(bytes)))?;
                if progress == WorkProgress::Done {
                    outlet.send_message(Ok(Chunk::End));
                }
                Ok::<_, std::io::Error>(progress)
            })
            .await;
            if let Err(error) = fed {
                // The store may have failed already, and its receiver be gone.
                _ = chunks.send(Err(error.to_string())).await;
            }
        });
        if !self
            .mail
            .ask_store(spooled.name.clone(), claim, depositor)
            .await
        {
            return Err(AdminExportError::Stopped);
        }
        let answered = async {
            while let Some(reply) = answers.recv().await {
                match reply {
                    DepositReply::Ready { .. } | DepositReply::Taken(_) => {}
                    DepositReply::Stored(_) => return Ok(()),
                    DepositReply::Failed(error) => {
                        return Err(AdminExportError::Store(error.to_string()));
                    }
                }
            }
            Err(AdminExportError::Store("it did not answer".to_owned()))
        };
        let limit = limits::store_limit(spooled.size);
        tokio::select! {
            () = self.stop.cancelled() => Err(AdminExportError::Stopped),
            answered = self.clock.run_with_timeout(limit, answered) => {
                answered.map_err(|late| AdminExportError::Store(late.to_string()))?
            }
        }
    }
}

/// The table of exports.
struct ExportLog {
    admin: Admin,
    who: String,
}

impl ExportLog {
    fn table(&self) -> Result<Table<u64, ExportRow>, DbError> {
        self.admin.open_table("exports")
    }

    fn last(&self) -> Result<Option<(u64, ExportRow)>, DbError> {
        self.table()?.last()
    }

    fn write(&self, number: u64, row: ExportRow) -> Result<(), DbError> {
        let mut changes = self.admin.begin_changes();
        changes.batch().put(&self.table()?, &number, &row)?;
        if let Some(name) = row.name {
            changes.note_line(AuditLine {
                at: row.at,
                who: self.who.clone(),
                file: Some(name),
                what: "admin data exported".to_owned(),
            });
        }
        self.admin.commit_changes(changes)
    }
}
