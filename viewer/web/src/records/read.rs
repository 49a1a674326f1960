//! The blocking half: parses one record as its bytes come.
//!
//! Owns the order: head, beginning of the body, then what the client wants of the rest. Each wait for the client has a
//! limit.

use std::io::{self, Read};
use std::ops::Range;

use archive_client::ClientError;
use archive_formats::digest::Digest;
use archive_formats::http::{HeadError, PayloadCheck};
use archive_formats::warc::{Header, Kind, Reader, Record};
use bytes::{Buf, Bytes};
use tokio::sync::{mpsc, oneshot};

use viewer_replay::response::{AuditedBody, PayloadAudit, StoredMessage};

use super::outlet::{ClientOutlet, fill};
use super::{PayloadVerdict, RecordError, WHOLE};

/// The longest head of an HTTP message that is read, in bytes.
const LONGEST_HEAD: usize = 1 << 20;

/// The number of bytes that are handed to a client at once.
const PIECE: usize = 64 * 1024;

/// The facts of a record whose head was read.
pub(super) struct RecordOpening {
    pub(super) kind: Kind,
    pub(super) header: Header,
    pub(super) message: StoredMessage,
    pub(super) prefix: Bytes,
    pub(super) rest: BodyRest,
}

/// The rest of a body, behind its beginning.
pub(super) enum BodyRest {
    /// The beginning was the whole body.
    Nothing {
        verdict: PayloadVerdict,
        fault: Option<String>,
    },
    /// More, up to this length where that is known.
    More { length: Option<u64> },
}

/// A piece of the rest of a body.
pub(super) enum BodyPiece {
    Bytes(Bytes),
    /// The end, to which everything that was wanted has come.
    End(PayloadVerdict),
}

/// The bytes of the archive, as a reader takes them.
pub(super) struct ArchiveInput {
    from: mpsc::Receiver<Result<Bytes, ClientError>>,
    current: Bytes,
}

impl ArchiveInput {
    pub(super) fn new(from: mpsc::Receiver<Result<Bytes, ClientError>>) -> Self {
        Self {
            from,
            current: Bytes::new(),
        }
    }
}

impl Read for ArchiveInput {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.from.blocking_recv() {
                Some(Ok(bytes)) => self.current = bytes,
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(0),
            }
        }
        let count = self.current.len().min(out.len());
        if let Some(out) = out.get_mut(..count) {
            self.current.copy_to_slice(out);
        }
        Ok(count)
    }
}

/// Reads a record: answers `opened`, then sends the range that is `planned` for, if the body is long.
pub(super) fn read(
    input: ArchiveInput,
    opened: oneshot::Sender<Result<RecordOpening, RecordError>>,
    planned: oneshot::Receiver<Range<u64>>,
    outlet: &ClientOutlet<BodyPiece>,
) {
    let mut reader = Reader::new(input);
    let mut record = match reader.next_record() {
        Ok(Some(record)) => record,
        Ok(None) => {
            let nothing = "no record begins there; the index may be of another file";
            _ = opened.send(Err(RecordError::Broken(nothing.to_owned())));
            return;
        }
        Err(error) => {
            _ = opened.send(Err(io::Error::from(error).into()));
            return;
        }
    };
    let header = record.header().clone();
    let message = StoredMessage::read(record.kind(), &header, &mut record, LONGEST_HEAD);
    let message = match message {
        Ok(message) => message,
        Err(HeadError::Io(error)) => {
            _ = opened.send(Err(error.into()));
            return;
        }
        Err(error @ HeadError::TooLarge { .. }) => {
            _ = opened.send(Err(RecordError::Broken(error.to_string())));
            return;
        }
    };
    if let Err(error) = body(record, header, message, opened, planned, outlet) {
        outlet.fail(error);
    }
}

fn body<R: Read>(
    mut record: Record<'_, R>,
    header: Header,
    message: StoredMessage,
    opened: oneshot::Sender<Result<RecordOpening, RecordError>>,
    planned: oneshot::Receiver<Range<u64>>,
    outlet: &ClientOutlet<BodyPiece>,
) -> Result<(), RecordError> {
    let kind = record.kind();
    // The payload of a revisit is elsewhere.
    let digest = header.text_of("WARC-Payload-Digest");
    let digest = digest.filter(|_| kind != Kind::Revisit);
    let digest = digest.and_then(|text| text.trim().parse::<Digest>().ok());
    let length = record
        .announced()
        .and_then(|length| message.entity_length(length));
    let mut body = AuditedBody::new(&message, &mut record, digest);
    let mut prefix = Vec::new();
    let fault = match fill(&mut body, &mut prefix, WHOLE + 1) {
        Ok(fault) => fault,
        Err(error) => {
            _ = opened.send(Err(error));
            return Ok(());
        }
    };
    let mut at = prefix.len() as u64;
    let answer = |rest| RecordOpening {
        kind,
        header,
        message,
        prefix: prefix.into(),
        rest,
    };
    if at <= WHOLE as u64 {
        let audit = body.finish().map_err(RecordError::from);
        let ended = audit.and_then(|audit| finish(record).map(|()| verdict(&audit)));
        let opening = ended.map(|verdict| answer(BodyRest::Nothing { verdict, fault }));
        _ = opened.send(opening);
        return Ok(());
    }
    if opened.send(Ok(answer(BodyRest::More { length }))).is_err() {
        return Ok(());
    }
    // Only the head was wanted.
    let Ok(range) = planned.blocking_recv() else {
        return Ok(());
    };
    while at < range.end {
        let mut piece = Vec::with_capacity(PIECE);
        let fault = fill(&mut body, &mut piece, PIECE)?;
        let is_end = piece.is_empty();
        let piece = Bytes::from(piece);
        let wanted = within(&piece, at, &range);
        at += piece.len() as u64;
        if !wanted.is_empty() {
            outlet.send(BodyPiece::Bytes(wanted))?;
        }
        if let Some(fault) = fault {
            return Err(RecordError::Broken(fault));
        }
        if is_end {
            break;
        }
    }
    if range.start > 0 || length.is_some_and(|length| range.end < length) {
        return outlet.send(BodyPiece::End(PayloadVerdict::Unchecked));
    }
    let audit = body.finish().map_err(RecordError::from)?;
    finish(record)?;
    outlet.send(BodyPiece::End(verdict(&audit)))
}

fn verdict(audit: &PayloadAudit) -> PayloadVerdict {
    match &audit.verdict {
        Some(PayloadCheck::Matches(_)) => PayloadVerdict::Matches,
        Some(PayloadCheck::Differs { .. }) => PayloadVerdict::Differs,
        Some(PayloadCheck::CannotCheck(_)) | None => PayloadVerdict::Unchecked,
    }
}

/// Returns the part of a piece, which begins at `at`, that lies in a range.
fn within(piece: &Bytes, at: u64, range: &Range<u64>) -> Bytes {
    let place = |wanted: u64| {
        let inside = wanted.saturating_sub(at);
        usize::try_from(inside)
            .unwrap_or(usize::MAX)
            .min(piece.len())
    };
    let start = place(range.start);
    let end = place(range.end);
    piece.slice(start..end.max(start))
}

/// Refuses a record that is shorter than it says, or damaged.
fn finish<R: Read>(record: Record<'_, R>) -> Result<(), RecordError> {
    let end = record.end().map_err(io::Error::from)?;
    if end.complete {
        return Ok(());
    }
    let defect = end.defects.first().map(ToString::to_string);
    let words =
        defect.unwrap_or_else(|| "its block does not have the length that it says".to_owned());
    Err(RecordError::Broken(format!(
        "the record is not whole: {words}"
    )))
}
