//! The export of every day, into the archive itself: an archived file like any other, in every replica.
//!
//! Where nothing has changed since the last one, there is none. When the next is due is remembered in the admin data.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_daemon::{Clock, Notifier, Step, Tasks, Worker, WorkerError};
use archive_db::{DbError, Table, Value};
use archive_durable::{AppendFile, DiskError, directory};
use archive_model::{Digests, FileName, Root};
use archive_rpc::answers::{Outlet, Progress, feed};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::{Export, ExportError, Exported, prefix};
use crate::admin::{Admin, AuditLine};
use crate::coordinator::Mail;
use crate::depositor::{Chunk, Depositor, Reply, Source};
use crate::store::Claim;

/// How often it is looked whether one is due.
const LOOK: Duration = Duration::from_mins(1);

/// The pause after one that failed.
const AGAIN: Duration = Duration::from_mins(15);

/// How long the archive may take to store one, beside the size-dependent part; and the slowest that is waited for.
const STORE: (Duration, u64) = (Duration::from_mins(30), 1_000_000);

/// How much is handed on at once, in bytes.
const CHUNK: usize = 256 << 10;

/// The incident of an export that fails.
const INCIDENT: &str = "export";

/// An export that was made, or the begin of counting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExportRow {
    /// When.
    at: Timestamp,
    /// The archived file; none: nothing had changed, or nothing was exported yet.
    name: Option<FileName>,
    /// What it says, as a hash; compared with the next.
    content: String,
}

impl Value for ExportRow {}

impl ExportRow {
    const fn new(at: Timestamp, name: Option<FileName>, content: String) -> Self {
        Self { at, name, content }
    }
}

/// The job that exports.
pub(crate) struct Daily {
    pub(crate) admin: Admin,
    pub(crate) archive: String,
    /// Where the admin data lie.
    pub(crate) data: PathBuf,
    /// How often.
    pub(crate) period: Duration,
    pub(crate) mail: Mail,
    pub(crate) notifier: Notifier,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
}

/// Why an export is not in the archive.
#[derive(Debug, thiserror::Error)]
enum DailyError {
    #[error("the repository stops")]
    Stopped,
    #[error("{0}")]
    Export(Box<ExportError>),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("its name: {0}")]
    Name(#[from] archive_model::InvalidFileName),
    #[error("the archive does not take it: {0}")]
    Store(String),
    #[error(transparent)]
    Join(#[from] tokio::task::JoinError),
}

impl From<ExportError> for DailyError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Stopped => Self::Stopped,
            ExportError::Database(_) | ExportError::Log(_) | ExportError::Write(_) => {
                Self::Export(Box::new(error))
            }
        }
    }
}

impl From<DbError> for DailyError {
    fn from(error: DbError) -> Self {
        ExportError::from(error).into()
    }
}

/// An export on the disk, not archived yet.
struct Spooled {
    path: PathBuf,
    size: u64,
    root: Root,
    exported: Exported,
}

impl Worker for Daily {
    const NAME: &'static str = "export";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        let now = self.clock.now();
        let book = self.book();
        let last = spawn_blocking(move || book.last()).await??;
        let Some((_, row)) = &last else {
            let (book, first) = (self.book(), ExportRow::new(now, None, String::new()));
            spawn_blocking(move || book.write(0, first)).await??;
            return Ok(Step::Idle(LOOK));
        };
        let due = row.at.checked_add(self.period).unwrap_or(Timestamp::MAX);
        if now < due {
            let pause = Duration::try_from(due.duration_since(now)).unwrap_or(LOOK);
            return Ok(Step::Idle(pause.min(LOOK)));
        }
        match self.export(now, last).await {
            Ok(()) => {
                self.notifier.resolve(INCIDENT);
                Ok(Step::Again)
            }
            Err(DailyError::Stopped) => Ok(Step::Idle(LOOK)),
            Err(error) => {
                tracing::error!(%error, "the admin data were not exported");
                let text = format!("the admin data were not exported into the archive: {error}");
                self.notifier.raise(INCIDENT, text);
                Ok(Step::Idle(AGAIN))
            }
        }
    }
}

impl Daily {
    fn book(&self) -> Book {
        Book {
            admin: self.admin.clone(),
            who: format!("repository/{}", self.archive),
        }
    }

    async fn export(
        &self,
        now: Timestamp,
        last: Option<(u64, ExportRow)>,
    ) -> Result<(), DailyError> {
        let (number, before) = last.map_or((0, None), |(number, row)| (number + 1, Some(row)));
        let spool = Spool {
            admin: self.admin.clone(),
            archive: self.archive.clone(),
            data: self.data.clone(),
            stop: self.stop.clone(),
        };
        let spooled = spawn_blocking(move || spool.write(now)).await??;
        let content = spooled.exported.content.clone();
        let end = &spooled.exported.end;
        let is_same = before.is_some_and(|before| before.content == content);
        let name = if is_same || end.files == 0 {
            None
        } else {
            Some(self.store(now, &spooled).await?)
        };
        directory::remove_name(&spooled.path)?;
        if let Some(name) = &name {
            tracing::info!(%name, files = end.files, audit = end.audit, "admin data exported");
        }
        let (book, row) = (self.book(), ExportRow::new(now, name, content));
        spawn_blocking(move || book.write(number, row)).await??;
        Ok(())
    }

    /// Gives it to the archive as any depositor would.
    async fn store(&self, now: Timestamp, spooled: &Spooled) -> Result<FileName, DailyError> {
        let time = now.strftime("%Y%m%dT%H%M%SZ");
        let name = FileName::new(&format!("{}{time}.jsonl.gz", prefix(&self.archive)))?;
        let claim = Claim {
            size: spooled.size,
            root: Some(spooled.root),
            digests: Digests::default(),
        };
        let (replies, mut answers) = mpsc::channel(16);
        let (chunks, stream) = mpsc::channel(4);
        let stream = ReceiverStream::new(stream);
        let source = Source::new(stream, replies.clone(), claim.clone()).whole();
        let depositor = Depositor {
            who: self.book().who,
            source: Some(source),
            replies,
            sent: false,
            claim: claim.clone(),
            received: None,
            answered: CancellationToken::new(),
        };
        let path = spooled.path.clone();
        self.tasks.spawn_once("export-source", async move {
            let mut file = None;
            let fed = feed(&chunks, move |outlet| read_on(&path, &mut file, outlet)).await;
            if let Err(error) = fed {
                // The depositor may have gone; then the store has failed already.
                drop(chunks.send(Err(error.to_string())).await);
            }
            Ok::<(), std::convert::Infallible>(())
        });
        if !self.mail.ask(name.clone(), claim, depositor).await {
            return Err(DailyError::Stopped);
        }
        let answered = async {
            while let Some(reply) = answers.recv().await {
                match reply {
                    Reply::Ready { .. } | Reply::Taken(_) => {}
                    Reply::Stored(_) => return Ok(()),
                    Reply::Failed(error) => return Err(DailyError::Store(error.to_string())),
                }
            }
            Err(DailyError::Store("it gave no answer".to_owned()))
        };
        let limit = STORE
            .0
            .saturating_add(Duration::from_secs(spooled.size / STORE.1));
        tokio::select! {
            () = self.stop.cancelled() => Err(DailyError::Stopped),
            answered = self.clock.timeout(limit, answered) => {
                answered.map_err(|late| DailyError::Store(late.to_string()))?.map(|()| name)
            }
        }
    }
}

/// Where it is remembered what was exported.
struct Book {
    admin: Admin,
    who: String,
}

impl Book {
    fn table(&self) -> Result<Table<u64, ExportRow>, DbError> {
        self.admin.table("exports")
    }

    fn last(&self) -> Result<Option<(u64, ExportRow)>, DbError> {
        self.table()?.last()
    }

    fn write(&self, number: u64, row: ExportRow) -> Result<(), DbError> {
        let mut changes = self.admin.change();
        changes.batch().put(&self.table()?, &number, &row)?;
        if let Some(name) = row.name {
            changes.note(AuditLine {
                at: row.at,
                who: self.who.clone(),
                file: Some(name),
                what: "admin data exported".to_owned(),
            });
        }
        self.admin.commit(changes)
    }
}

/// Hands the file on, for as long as somebody takes it.
fn read_on(
    path: &Path,
    file: &mut Option<File>,
    outlet: &mut Outlet<Result<Chunk, String>>,
) -> io::Result<Progress> {
    let file = match file {
        Some(file) => file,
        None => file.insert(directory::open(path).map_err(|error| error.source)?),
    };
    loop {
        let mut buffer = Vec::with_capacity(CHUNK);
        file.take(CHUNK as u64).read_to_end(&mut buffer)?;
        if buffer.is_empty() {
            outlet.send(Ok(Chunk::End));
            return Ok(Progress::Done);
        }
        if !outlet.send(Ok(Chunk::Data(Bytes::from(buffer)))) {
            return Ok(Progress::Paused);
        }
    }
}

/// Where an export is written before it is archived.
struct Spool {
    admin: Admin,
    archive: String,
    data: PathBuf,
    stop: CancellationToken,
}

impl Spool {
    fn write(&self, now: Timestamp) -> Result<Spooled, DailyError> {
        let at = self.data.join("export");
        directory::make(&at)?;
        let path = at.join("export.jsonl.gz");
        // What an attempt before this one left.
        directory::remove_name(&path)?;
        let file = Hashed {
            file: AppendFile::open(&path)?,
            hash: blake3::Hasher::new(),
            size: 0,
        };
        let failed = |error: io::Error| DailyError::from(ExportError::Write(error));
        let mut packed = GzEncoder::new(BufWriter::with_capacity(CHUNK, file), Compression::new(6));
        let log = self.data.join("audit");
        let export = Export {
            admin: &self.admin,
            log: &log,
            archive: &self.archive,
            time: now,
            is_stopping: &|| self.stop.is_cancelled(),
        };
        let exported = export.write(&mut packed)?;
        let written = packed
            .finish()
            .and_then(|rest| rest.into_inner().map_err(io::IntoInnerError::into_error))
            .map_err(failed)?;
        Ok(Spooled {
            path,
            size: written.size,
            root: Root::from_bytes(written.hash.finalize().into()),
            exported,
        })
    }
}

/// A file that is hashed while it is written.
struct Hashed {
    file: AppendFile,
    hash: blake3::Hasher,
    size: u64,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.append(bytes).map_err(|error| error.source)?;
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
