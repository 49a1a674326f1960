//! Imports and exports: bytes between the wire and the database, in bounded memory.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use super::panicked;
use crate::health::Health;
use archive_rpc::answers::{Answers, send_blocking};
use archive_rpc::{CallErrorKind, IdleTimeout, InvalidMessage};
use bytes::{Buf, Bytes, BytesMut};
use index_captures::{
    CaptureExport, CaptureExportError, CaptureIndex, ExportParts, ExportScope, ImportError,
};
use proto_index::export::ExportFormat;
use proto_index::sets::{ImportFault, ImportOutcome, SetName};
use proto_index::wire;
use proto_index::wire::import_request::Step;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::spawn_blocking;
use tokio_stream::StreamExt;
use tonic::{Status, Streaming};

/// The longest time that the sender of an import may be silent.
const SILENCE: std::time::Duration = std::time::Duration::from_mins(2);

/// The most steps that wait on their way from the wire to the database.
const STEPS: usize = 4;

/// The longest name of an input, in characters.
const LONGEST_INPUT: usize = 1000;

/// About how many bytes of lines one message has.
const MESSAGE_SIZE: usize = 256 << 10;

/// A step of an import, as the thread that writes takes it.
enum InputStep {
    Begin(String),
    Data(Bytes),
    End,
}

/// Imports a set, to its end or not at all.
pub(super) async fn run_import(
    captures: CaptureIndex,
    health: Health,
    steps: Streaming<wire::ImportRequest>,
    place: OwnedSemaphorePermit,
) -> Result<ImportOutcome, Status> {
    let mut steps = IdleTimeout::new(steps, SILENCE);
    let set = match steps.next().await.transpose()?.and_then(|first| first.step) {
        Some(Step::Open(open)) => SetName::read_set("set", &open.set)?,
        _ => return Err(InvalidMessage::missing_field("open").into()),
    };
    let (sender, receiver) = mpsc::channel(STEPS);
    let writing = spawn_blocking(move || {
        let _place = place;
        let imported = write(&captures, &health, &set, receiver)?;
        // The set is named beside the database as soon as it is there.
        let noted = health.note_damage(&captures);
        noted.map_err(|error| CallErrorKind::Storage.to_status(error.to_string()))?;
        Ok(imported)
    });
    let fed = feed(&mut steps, sender).await;
    let written = writing.await.map_err(|error| panicked(&error))?;
    // What was wrong with the messages says more than that they ended.
    fed?;
    written
}

/// Sends the steps to the writing thread until the last one.
async fn feed(
    steps: &mut IdleTimeout<Streaming<wire::ImportRequest>>,
    sender: mpsc::Sender<InputStep>,
) -> Result<(), Status> {
    let mut is_begun = false;
    while let Some(message) = steps.next().await {
        let step = match message?.step {
            Some(Step::Input(input)) => {
                is_begun = true;
                InputStep::Begin(input.name.chars().take(LONGEST_INPUT).collect())
            }
            Some(Step::Data(data)) if is_begun => InputStep::Data(data),
            Some(Step::Data(_)) => return Err(InvalidMessage::missing_field("input").into()),
            Some(Step::End(_)) => {
                _ = sender.send(InputStep::End).await;
                return Ok(());
            }
            Some(Step::Open(_)) => {
                return Err(InvalidMessage::invalid_field("open", "comes a second time").into());
            }
            None => return Err(InvalidMessage::missing_field("step").into()),
        };
        // The writing has failed, and says why.
        if sender.send(step).await.is_err() {
            return Ok(());
        }
    }
    Err(CallErrorKind::Unavailable
        .to_status("the import was cut before its end; nothing of it was taken"))
}

fn write(
    captures: &CaptureIndex,
    health: &Health,
    set: &SetName,
    receiver: mpsc::Receiver<InputStep>,
) -> Result<ImportOutcome, Status> {
    let mut importer = captures
        .begin_import(set.as_str())
        .map_err(|error| import_status(health, error))?;
    let mut inputs = Inputs {
        receiver,
        name: None,
        rest: Bytes::new(),
        state: InputState::Between,
    };
    while let Some(name) = inputs.next_input() {
        let lines = BufReader::with_capacity(64 << 10, &mut inputs);
        let read = importer.read_lines(&name, lines);
        read.map_err(|error| import_status(health, error))?;
    }
    if inputs.state != InputState::Ended {
        return Err(CallErrorKind::Unavailable.to_status("the import was cut before its end"));
    }
    let report = importer.complete_import();
    let report = report.map_err(|error| super::storage(health, &error))?;
    let fault = |damaged: index_captures::DamagedLine| ImportFault {
        input: damaged.input,
        number: damaged.line.number,
        offset: damaged.line.offset,
        reason: damaged.line.why.to_string(),
    };
    Ok(ImportOutcome {
        captures: report.captures,
        bad_lines: report.damaged,
        bad: report.damaged_lines.into_iter().map(fault).collect(),
        replaced: report.replaced,
    })
}

/// The inputs of an import, one after the other, as something that is read.
struct Inputs {
    receiver: mpsc::Receiver<InputStep>,
    /// The input that comes next.
    name: Option<String>,
    rest: Bytes,
    state: InputState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputState {
    /// The reader is within an input.
    Within,
    /// The reader is behind an input, or before the first one.
    Between,
    /// The last step has come.
    Ended,
    /// The steps ended without it.
    Cut,
}

impl Inputs {
    /// Returns the name of the next input; `None` if there are no more, or the import was cut.
    fn next_input(&mut self) -> Option<String> {
        if self.name.is_none() && self.state == InputState::Between {
            self.receive();
        }
        let name = self.name.take()?;
        self.state = InputState::Within;
        Some(name)
    }

    fn receive(&mut self) {
        match self.receiver.blocking_recv() {
            Some(InputStep::Data(data)) => self.rest = data,
            Some(InputStep::Begin(name)) => {
                self.name = Some(name);
                self.state = InputState::Between;
            }
            Some(InputStep::End) => self.state = InputState::Ended,
            None => self.state = InputState::Cut,
        }
    }
}

impl Read for Inputs {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.state {
                InputState::Within => self.receive(),
                InputState::Between | InputState::Ended => return Ok(0),
                InputState::Cut => {
                    return Err(io::Error::other("the import was cut before its end"));
                }
            }
        }
        let count = self.rest.len().min(out.len());
        self.rest
            .copy_to_slice(out.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}

fn import_status(health: &Health, error: ImportError) -> Status {
    if let ImportError::Database(error) = &error {
        health.check_error(error);
    }
    match error {
        ImportError::Input { source, .. } => {
            CallErrorKind::Unavailable.to_status(source.to_string())
        }
        error @ ImportError::NoName => CallErrorKind::Invalid.to_status(error.to_string()),
        error @ ImportError::Database(_) => CallErrorKind::Storage.to_status(error.to_string()),
    }
}

/// Reads what is to be exported.
pub(super) fn read_export(request: wire::ExportRequest) -> Result<CaptureExport, InvalidMessage> {
    let format = ExportFormat::read_format(request.format)?.into_format();
    let scope = if request.set.is_empty() {
        ExportScope::All
    } else {
        ExportScope::Set(SetName::read_set("set", &request.set)?.to_string())
    };
    Ok(CaptureExport {
        format,
        scope,
        is_unique: true,
        part_size: None,
    })
}

/// Sends an export.
pub(super) fn run_export(
    captures: &CaptureIndex,
    health: &Health,
    export: &CaptureExport,
    temporary: &Path,
    answers: &Answers<wire::ExportResponse>,
) -> Result<(), Status> {
    let mut sending = AnswerParts {
        answers,
        ended: None,
    };
    let report = match captures.begin_export(export, temporary, &mut sending) {
        Ok(report) => report,
        Err(CaptureExportError::Output(error)) => {
            let ended = sending.ended.take();
            return Err(
                ended.unwrap_or_else(|| CallErrorKind::Storage.to_status(error.to_string()))
            );
        }
        Err(error @ CaptureExportError::NoSet(_)) => {
            let said = format!("{error}; `holdfast index status` names the sets");
            return Err(CallErrorKind::NotFound.to_status(said));
        }
        Err(CaptureExportError::Database(error)) => return Err(super::storage(health, &error)),
        Err(error @ CaptureExportError::Sort(_)) => {
            return Err(CallErrorKind::Storage.to_status(error.to_string()));
        }
    };
    let end = wire::export_response::End {
        lines: report.lines,
    };
    send_blocking(
        answers,
        wire::ExportResponse {
            data: Bytes::new(),
            end: Some(end),
        },
    )
}

/// The only part of an export over the wire: the answer.
struct AnswerParts<'a> {
    answers: &'a Answers<wire::ExportResponse>,
    /// The reason why the caller takes no more of it.
    ended: Option<Status>,
}

/// Lines on their way into messages.
struct AnswerPart<'a> {
    answers: &'a Answers<wire::ExportResponse>,
    lines: BytesMut,
}

impl<'a> ExportParts for AnswerParts<'a> {
    type Part = AnswerPart<'a>;

    fn begin(&mut self, _number: u64) -> io::Result<AnswerPart<'a>> {
        Ok(AnswerPart {
            answers: self.answers,
            lines: BytesMut::new(),
        })
    }

    fn finish(&mut self, mut part: AnswerPart<'a>) -> io::Result<()> {
        let rest = part.lines.split();
        let sent = part.send(rest.freeze());
        sent.map_err(|status| {
            let said = status.message().to_owned();
            self.ended = Some(status);
            io::Error::other(said)
        })
    }
}

impl AnswerPart<'_> {
    fn send(&self, data: Bytes) -> Result<(), Status> {
        if data.is_empty() {
            return Ok(());
        }
        send_blocking(self.answers, wire::ExportResponse { data, end: None })
    }
}

impl Write for AnswerPart<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lines.extend_from_slice(bytes);
        if self.lines.len() >= MESSAGE_SIZE
            && let Some(end) = self.lines.iter().rposition(|byte| *byte == b'\n')
        {
            let whole = self.lines.split_to(end + 1).freeze();
            let sent = self.send(whole);
            sent.map_err(|status| io::Error::other(status.message().to_owned()))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
