//! The trail, the export and the test of notifications, on the wire.

use std::io::{self, Write};

use archive_daemon::notify::Outcome;
use archive_model::FileName;
use archive_rpc::Kind;
use bytes::Bytes;
use proto_archive::{convert as fields, wire};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::{AnswerStream, Answers, Door, send};
use crate::audit::{Trail, Wanted};
use crate::audit_log::{Entry, LogError};
use crate::export::{Export, ExportError};

/// How many lines one message has at most, and about how many bytes.
const LINES: usize = 1000;
const BYTES: usize = 256 << 10;

impl Door {
    /// Begins to send the trail.
    pub(super) fn send_audit(
        &self,
        request: &wire::AuditRequest,
    ) -> Result<AnswerStream<wire::AuditResponse>, Status> {
        let file = match request.file.as_str() {
            "" => None,
            name => Some(fields::file_name("file", name)?),
        };
        let since = fields::optional_time("since", &request.since)?;
        let wanted = Wanted { file, since };
        let (answers, stream) = mpsc::channel(4);
        let door = self.clone();
        self.in_background("audit", answers.clone(), move |runtime| {
            let log = door.settings.data.join("audit");
            let trail = Trail::read(&door.admin, &log).map_err(|error| failed(&error))?;
            let mut page = Page::default();
            for entry in trail {
                let entry = entry.map_err(|error| failed(&error))?;
                if wanted.has(&entry.line) {
                    page.add(entry);
                }
                if page.is_full() {
                    runtime.block_on(send(&answers, page.take()))?;
                }
                if answers.is_closed() {
                    return Ok(());
                }
            }
            runtime.block_on(send(&answers, page.take()))
        });
        Ok(Box::pin(ReceiverStream::new(stream)))
    }

    /// Begins to send the export.
    pub(super) fn send_export(&self) -> AnswerStream<wire::ExportResponse> {
        let (answers, stream) = mpsc::channel(4);
        let (door, now) = (self.clone(), self.clock.now());
        self.in_background("export-rpc", answers.clone(), move |runtime| {
            let log = door.settings.data.join("audit");
            let mut pages = Pages {
                runtime: runtime.clone(),
                answers,
                bytes: Vec::with_capacity(2 * BYTES),
            };
            let stop = door.tasks.stop();
            let export = Export {
                admin: &door.admin,
                log: &log,
                archive: &door.settings.archive,
                time: now,
                is_stopping: &|| stop.is_cancelled(),
            };
            match export.write(&mut pages) {
                Ok(_) => Ok(()),
                Err(ExportError::Log(error)) => Err(failed(&error)),
                Err(ExportError::Database(error)) => Err(super::admin_failed(&error)),
                Err(error @ ExportError::Stopped) => {
                    Err(Kind::Unavailable.status(error.to_string()))
                }
                Err(error @ ExportError::Write(_)) => Err(Status::cancelled(error.to_string())),
            }
        });
        Box::pin(ReceiverStream::new(stream))
    }

    /// Sends a test notification.
    pub(super) async fn test_notifications(&self) -> wire::NotifyTestResponse {
        let outcomes = self.notifier.test().await;
        if outcomes.is_empty() {
            let text =
                "no way is set: set notify.command or [notify.smtp] in the repository's settings";
            return wire::NotifyTestResponse {
                outcomes: vec![text.to_owned()],
                failed: true,
            };
        }
        let failed = outcomes.iter().any(|outcome| outcome.failure.is_some());
        let outcomes = outcomes.into_iter().map(|outcome| {
            let Outcome { way, target, .. } = outcome;
            match (outcome.is_taken, outcome.failure) {
                (true, None) => format!("{way} ({target}): sent"),
                (true, Some(why)) => format!("{way} ({target}): sent, but not to all: {why}"),
                (false, why) => {
                    let why = why.unwrap_or_default();
                    format!("{way} ({target}): not sent: {why}")
                }
            }
        });
        wire::NotifyTestResponse {
            outcomes: outcomes.collect(),
            failed,
        }
    }

    /// Runs `work` on a blocking thread; its error is the stream's last item.
    fn in_background<T: Send + 'static>(
        &self,
        name: &str,
        answers: Answers<T>,
        work: impl FnOnce(&Handle) -> Result<(), Status> + Send + 'static,
    ) {
        self.tasks.spawn_once(name, async move {
            let runtime = Handle::current();
            let ended = spawn_blocking(move || work(&runtime)).await;
            let ended = ended.unwrap_or_else(|bug| Err(Kind::Internal.status(bug.to_string())));
            if let Err(status) = ended {
                drop(answers.send(Err(status)).await);
            }
            Ok::<(), std::convert::Infallible>(())
        });
    }
}

fn failed(error: &LogError) -> Status {
    tracing::error!(%error, "the audit trail cannot be read");
    Kind::Storage.status(error.to_string())
}

/// Lines that wait for a message to be full.
#[derive(Default)]
struct Page {
    lines: Vec<wire::AuditLineState>,
    bytes: usize,
}

impl Page {
    fn add(&mut self, entry: Entry) {
        self.bytes += entry.line.who.len() + entry.line.what.len() + 256;
        let line = wire::AuditLineState {
            number: entry.number,
            at: entry.line.at.to_string(),
            who: entry.line.who,
            file: entry
                .line
                .file
                .as_ref()
                .map(FileName::to_string)
                .unwrap_or_default(),
            what: entry.line.what,
            previous: entry
                .previous
                .map(|hash| hash.to_string())
                .unwrap_or_default(),
        };
        self.lines.push(line);
    }

    fn is_full(&self) -> bool {
        self.lines.len() >= LINES || self.bytes >= BYTES
    }

    fn take(&mut self) -> wire::AuditResponse {
        self.bytes = 0;
        let lines = std::mem::take(&mut self.lines);
        wire::AuditResponse { lines }
    }
}

/// Sends what is written in messages.
struct Pages {
    runtime: Handle,
    answers: Answers<wire::ExportResponse>,
    bytes: Vec<u8>,
}

impl Pages {
    fn send(&mut self) -> io::Result<()> {
        let lines = Bytes::from(std::mem::replace(
            &mut self.bytes,
            Vec::with_capacity(2 * BYTES),
        ));
        let sent = self
            .runtime
            .block_on(send(&self.answers, wire::ExportResponse { lines }));
        sent.map_err(|status| io::Error::other(status.message().to_owned()))
    }
}

impl Write for Pages {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(line);
        if self.bytes.len() >= BYTES {
            self.send()?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        self.send()
    }
}
