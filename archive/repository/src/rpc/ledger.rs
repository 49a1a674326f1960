//! The audit trail, the export and the test of notifications, on the wire.

use std::io::{self, Write};

use archive_daemon::notify::SendOutcome;
use archive_ledger::admin::AuditLine;
use archive_ledger::audit::{Trail, TrailFilter};
use archive_ledger::audit_log::{LogError, TrailLine};
use archive_ledger::export::{ExportTablesError, TablesExport};
use archive_model::FileName;
use archive_rpc::answers::send_blocking;
use archive_rpc::{CallErrorKind, Page, run_blocking};
use bytes::Bytes;
use proto_archive::{convert as fields, wire};
use tonic::{Response, Status};

use super::{AnswerStream, Answers, Door};

/// About the most bytes of an export in one message.
const BYTES: usize = 256 << 10;

impl Door {
    /// Sends the audit trail.
    pub(super) fn send_audit(
        &self,
        request: &wire::AuditRequest,
    ) -> Result<Response<AnswerStream<wire::AuditResponse>>, Status> {
        let file = match request.file.as_str() {
            "" => None,
            name => Some(fields::file_name("file", name)?),
        };
        let since = fields::optional_time("since", &request.since)?;
        let wanted = TrailFilter { file, since };
        let door = self.clone();
        Ok(self.answer_blocking("audit", move |answers| {
            let log = door.settings.data.join("audit");
            let trail =
                Trail::read_trail(&door.archive.admin, &log).map_err(|error| failed(&error))?;
            let mut page = Page::new();
            for entry in trail {
                let entry = entry.map_err(|error| failed(&error))?;
                if wanted.matches_line(&entry.line)
                    && let Some(lines) = page.push(line_message(entry))
                {
                    send_blocking(answers, wire::AuditResponse { lines })?;
                }
                if answers.is_closed() {
                    return Ok(());
                }
            }
            let lines = page.take_page();
            send_blocking(answers, wire::AuditResponse { lines })
        }))
    }

    /// Sends the export.
    pub(super) fn send_export(&self) -> Response<AnswerStream<wire::ExportResponse>> {
        let door = self.clone();
        let now = self.archive.calls.clock.now();
        self.answer_blocking("export-rpc", move |answers| {
            let log = door.settings.data.join("audit");
            let mut pages = ExportWriter {
                answers,
                bytes: Vec::with_capacity(2 * BYTES),
            };
            let stop = door.archive.tasks.stop_token();
            let export = TablesExport {
                admin: &door.archive.admin,
                log: &log,
                archive: &door.settings.archive,
                time: now,
                is_stopping: &|| stop.is_cancelled(),
            };
            match export.write_export(&mut pages) {
                Ok(_) => Ok(()),
                Err(ExportTablesError::Log(error)) => Err(failed(&error)),
                Err(ExportTablesError::Database(error)) => Err(super::admin_failed(&error).into()),
                Err(error @ ExportTablesError::Stopped) => {
                    Err(CallErrorKind::Unavailable.to_status(error.to_string()))
                }
                Err(error @ ExportTablesError::Write(_)) => {
                    Err(Status::cancelled(error.to_string()))
                }
            }
        })
    }

    /// Sends a test notification.
    pub(super) async fn test_notifications(&self) -> wire::NotifyTestResponse {
        let outcomes = self.notifier.send_test().await;
        if outcomes.is_empty() {
            let text = "no notification channel is configured: set `notify.command` or \
                        `notify.smtp` in the repository's settings";
            return wire::NotifyTestResponse {
                outcomes: vec![text.to_owned()],
                failed: true,
            };
        }
        let failed = outcomes.iter().any(|outcome| outcome.failure.is_some());
        let outcomes = outcomes.into_iter().map(|outcome| {
            let SendOutcome { way, target, .. } = outcome;
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

    /// Runs blocking work in a task of its own, as [`Door::answer`] does.
    fn answer_blocking<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&Answers<T>) -> Result<(), Status> + Send + 'static,
    ) -> Response<AnswerStream<T>> {
        self.answer(name, |answers| async move {
            run_blocking(move || work(&answers)).await?
        })
    }
}

fn failed(error: &LogError) -> Status {
    tracing::error!(%error, "cannot read the audit trail");
    CallErrorKind::Storage.to_status(error.to_string())
}

fn line_message(entry: TrailLine) -> wire::AuditLineState {
    let AuditLine {
        at,
        who,
        file,
        what,
    } = entry.line;
    wire::AuditLineState {
        number: entry.number,
        at: at.to_string(),
        who,
        file: file.as_ref().map(FileName::to_string).unwrap_or_default(),
        what,
        previous: entry
            .previous
            .map(|hash| hash.to_string())
            .unwrap_or_default(),
    }
}

/// A writer that sends its bytes in messages.
struct ExportWriter<'a> {
    answers: &'a Answers<wire::ExportResponse>,
    bytes: Vec<u8>,
}

impl ExportWriter<'_> {
    fn send(&mut self) -> io::Result<()> {
        let lines = Bytes::from(std::mem::replace(
            &mut self.bytes,
            Vec::with_capacity(2 * BYTES),
        ));
        let sent = send_blocking(self.answers, wire::ExportResponse { lines });
        sent.map_err(|status| io::Error::other(status.message().to_owned()))
    }
}

impl Write for ExportWriter<'_> {
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
