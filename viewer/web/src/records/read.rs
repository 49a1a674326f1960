//! The blocking half: parses one record as its bytes come.
//!
//! Owns the order: head, beginning of the body, then what the client wants of the rest. Each wait for the client has a limit.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::time::Duration;

use archive_client::ClientError;
use archive_formats::http::{Body, BodyError, Head, HeadError, MediaType};
use archive_formats::warc::{Header, Kind, Reader, Record};
use bytes::{Buf, Bytes};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{mpsc, oneshot};

use super::payload_check::{PayloadCheck, PayloadVerdict};
use super::{RecordError, WHOLE};

/// The longest head of an HTTP message that is read, in bytes.
const LONGEST_HEAD: usize = 1 << 20;

/// How much is handed to a client at once, in bytes.
const PIECE: usize = 64 * 1024;

/// What is known of a record once its head was read.
pub(super) struct Opening {
    pub(super) kind: Kind,
    pub(super) header: Header,
    pub(super) head: Option<Head>,
    pub(super) prefix: Bytes,
    pub(super) rest: Rest,
}

/// What comes after the beginning of a body.
pub(super) enum Rest {
    /// The beginning was all of it.
    Nothing {
        verdict: PayloadVerdict,
        fault: Option<String>,
    },
    /// More, up to this length where that is known.
    More { length: Option<u64> },
}

/// A piece of the rest of a body.
pub(super) enum Piece {
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

/// Where the rest of a body goes.
pub(super) struct Outlet {
    to: mpsc::Sender<Result<Piece, RecordError>>,
    unread: Duration,
}

impl Outlet {
    pub(super) fn new(to: mpsc::Sender<Result<Piece, RecordError>>, unread: Duration) -> Self {
        Self { to, unread }
    }

    /// Sends a piece, and waits for the client as long as the limit says.
    fn send(&self, piece: Piece) -> Result<(), RecordError> {
        let sending = self.to.send_timeout(Ok(piece), self.unread);
        Handle::current().block_on(sending).map_err(|error| match error {
            SendTimeoutError::Timeout(_) => RecordError::Unread(self.unread),
            SendTimeoutError::Closed(_) => RecordError::Stopped,
        })
    }

    /// Says why nothing more comes. A client that is gone, or does not read, is not told.
    fn fail(&self, error: RecordError) {
        drop(self.to.try_send(Err(error)));
    }
}

/// Reads a record: answers `opened`, then sends the range that is `planned` for, if the body is long.
pub(super) fn read(
    input: ArchiveInput,
    opened: oneshot::Sender<Result<Opening, RecordError>>,
    planned: oneshot::Receiver<Range<u64>>,
    outlet: &Outlet,
) {
    let mut reader = Reader::new(input);
    let mut record = match reader.next_record() {
        Ok(Some(record)) => record,
        Ok(None) => {
            let nothing = "no record begins there; the index may be of another file";
            drop(opened.send(Err(RecordError::Broken(nothing.to_owned()))));
            return;
        }
        Err(error) => {
            drop(opened.send(Err(failure(error.into()))));
            return;
        }
    };
    let head = match head(&mut record) {
        Ok(head) => head,
        Err(error) => {
            drop(opened.send(Err(error)));
            return;
        }
    };
    let outcome = body(record, head, opened, planned, outlet);
    if let Err(error) = outcome {
        outlet.fail(error);
    }
}

/// The head of the HTTP message in a record, if it has one.
fn head<R: Read>(record: &mut Record<'_, R>) -> Result<Option<Head>, RecordError> {
    let is_message = record
        .header()
        .get("Content-Type")
        .and_then(|value| MediaType::read(&value))
        .is_some_and(|media| media.essence == "application/http");
    if !is_message {
        return Ok(None);
    }
    match Head::read(record, LONGEST_HEAD) {
        Ok(head) => Ok(Some(head)),
        Err(HeadError::Io(error)) => Err(failure(error)),
        Err(error @ HeadError::TooLarge { .. }) => Err(RecordError::Broken(error.to_string())),
    }
}

fn body<R: Read>(
    mut record: Record<'_, R>,
    head: Option<Head>,
    opened: oneshot::Sender<Result<Opening, RecordError>>,
    planned: oneshot::Receiver<Range<u64>>,
    outlet: &Outlet,
) -> Result<(), RecordError> {
    let (kind, header) = (record.kind(), record.header().clone());
    // The payload of a revisit is elsewhere.
    let digest = match kind == Kind::Revisit {
        true => None,
        false => header.text_of("WARC-Payload-Digest").map(Cow::into_owned),
    };
    let chunked = head.as_ref().is_some_and(Head::is_chunked);
    let mut check = PayloadCheck::new(digest.as_deref(), chunked);
    let before = head.as_ref().map_or(0, |head| head.raw().len() as u64);
    let length = record.announced().filter(|_| !chunked);
    let length = length.map(|length| length.saturating_sub(before));
    if let Some(head) = &head {
        check.add_stored(head.unread());
    }
    let mut stored = check.stored(&mut record);
    let mut body = entity(head.as_ref(), &mut stored);
    let mut prefix = Vec::new();
    let fault = match fill(&mut body, &mut prefix, WHOLE + 1) {
        Ok(fault) => fault,
        Err(error) => {
            drop(opened.send(Err(error)));
            return Ok(());
        }
    };
    check.add_entity(&prefix);
    let mut at = prefix.len() as u64;
    let answer = |rest| Opening {
        kind,
        header,
        head,
        prefix: prefix.into(),
        rest,
    };
    if at <= WHOLE as u64 {
        drop(body);
        let ended = drain(&mut stored).and_then(|()| finish(record));
        let verdict = check.verdict();
        let opening = ended.map(|()| answer(Rest::Nothing { verdict, fault }));
        drop(opened.send(opening));
        return Ok(());
    }
    if opened.send(Ok(answer(Rest::More { length }))).is_err() {
        return Ok(());
    }
    // Only the head was wanted.
    let Ok(range) = planned.blocking_recv() else {
        return Ok(());
    };
    while at < range.end {
        let mut piece = Vec::with_capacity(PIECE);
        let fault = fill(&mut body, &mut piece, PIECE)?;
        let ended = piece.is_empty();
        check.add_entity(&piece);
        let piece = Bytes::from(piece);
        let wanted = within(&piece, at, &range);
        at += piece.len() as u64;
        if !wanted.is_empty() {
            outlet.send(Piece::Bytes(wanted))?;
        }
        if let Some(fault) = fault {
            return Err(RecordError::Broken(fault));
        }
        if ended {
            break;
        }
    }
    drop(body);
    if range.start > 0 || range.end <= at {
        return outlet.send(Piece::End(PayloadVerdict::Unchecked));
    }
    drain(&mut stored)?;
    finish(record)?;
    outlet.send(Piece::End(check.verdict()))
}

/// The body behind a head, without the framing of chunks; without a head, the whole block.
fn entity<'a>(head: Option<&Head>, stored: impl BufRead + 'a) -> Box<dyn Read + 'a> {
    match head {
        Some(head) => Box::new(Body::entity(head, stored)),
        None => Box::new(stored),
    }
}

/// Reads up to so many bytes; fewer come only at the end of the body, or before a fault in its chunks, which is returned.
fn fill(body: &mut impl Read, out: &mut Vec<u8>, most: usize) -> Result<Option<String>, RecordError> {
    match body.take(most as u64).read_to_end(out) {
        Ok(_) => Ok(None),
        Err(error) => match BodyError::of(&error) {
            Some(fault) => Ok(Some(fault.to_string())),
            None => Err(failure(error)),
        },
    }
}

/// The part of a piece, which begins at `at`, that lies in a range.
fn within(piece: &Bytes, at: u64, range: &Range<u64>) -> Bytes {
    let place = |wanted: u64| {
        let inside = wanted.saturating_sub(at);
        usize::try_from(inside).unwrap_or(usize::MAX).min(piece.len())
    };
    let (start, end) = (place(range.start), place(range.end));
    piece.slice(start..end.max(start))
}

/// Reads the stored bytes behind a body: the end of its chunks.
fn drain(stored: &mut impl Read) -> Result<(), RecordError> {
    io::copy(stored, &mut io::sink()).map(drop).map_err(failure)
}

/// Refuses a record that is shorter than it says, or damaged.
fn finish<R: Read>(record: Record<'_, R>) -> Result<(), RecordError> {
    let end = record.end().map_err(|error| failure(error.into()))?;
    if end.complete {
        return Ok(());
    }
    let defect = end.defects.first().map(ToString::to_string);
    let words = defect.unwrap_or_else(|| "its block does not have the length that it says".to_owned());
    Err(RecordError::Broken(format!("the record is not whole: {words}")))
}

/// What an error of reading means: the archive's own words, where they are.
fn failure(error: io::Error) -> RecordError {
    match error.downcast::<ClientError>() {
        Ok(error) => RecordError::Archive(error),
        Err(error) => RecordError::Broken(format!("the record cannot be read: {error}")),
    }
}
