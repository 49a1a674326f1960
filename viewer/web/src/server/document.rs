//! Documents on their way through a rewriter: pages and style sheets, decoded and rewritten on a thread while they
//! pass.
//!
//! Owns that thread and its two ends. Memory is bounded: pages pass in pieces, a style sheet has a limit. A body that
//! is cut, or that is a bomb, ends where it can be read no further, and the page says so; a style sheet cannot say so
//! and is refused. An archive that breaks off breaks the answer off.

use std::future::poll_fn;
use std::io::{self, BufReader, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use archive_formats::date::Stamp;
use archive_formats::http::{Head, Limits};
use axum::body::Bytes;
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use url::Url;
use viewer_replay::banner::{Banner, CaptureFault, note};
use viewer_replay::content::ContentKind;
use viewer_replay::request::Addresses;
use viewer_replay::response::decoded_entity;
use viewer_replay::rewrite::{
    PageMode, PageOptions, PageRewriter, RewriteError, START_OF_PAGE, page_encoding, sheet_text,
    style_sheet,
};

use crate::records::{BodySlice, ClientOutlet, FedReceiver, PayloadVerdict, RecordError, fill};

/// The script that stands first in a framed page.
const FIRST: &str = concat!(
    "<script>",
    include_str!("../../worker/first.js"),
    "</script>"
);

/// Ends whatever a page was cut in, so that a note behind it is seen.
const CLOSING: &str = "<!-- --></script></style></textarea></title></select></table>";

/// The limits of a document's encodings: less than a gigabyte, and no bomb.
const LIMITS: Limits = Limits {
    output: 256 << 20,
    ratio: 1100,
    codings: 4,
};

/// The largest style sheet, decoded, in bytes.
const LARGEST_SHEET: usize = 4 << 20;

/// The most memory that the rewriter of a page may take, in bytes.
const PAGE_MEMORY: usize = 2 << 20;

/// The number of bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// The most pieces that wait at each end of the thread.
const QUEUED: usize = 4;

/// The form that a document is given.
#[derive(Clone, Debug)]
pub(super) enum DocumentForm {
    /// A page for the worker.
    Framed,
    /// A page without scripts; with the address of the list of its captures.
    NoScript { calendar: String },
    /// A style sheet.
    Sheet,
}

/// The facts that a document is rewritten by.
#[derive(Debug)]
pub(super) struct DocumentPlan {
    pub(super) form: DocumentForm,
    /// The head of the record that has the bytes: it names their encodings.
    pub(super) head: Option<Head>,
    pub(super) content_type: Option<Vec<u8>>,
    pub(super) addresses: Addresses,
    pub(super) time: Stamp,
    pub(super) url: Url,
    /// The problems that are known before the bytes are read.
    pub(super) problems: Vec<CaptureFault>,
}

/// The beginning of a document: what its bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentStart {
    pub(super) kind: ContentKind,
    /// The charset of the answer, if the document is text that was rewritten.
    pub(super) charset: Option<&'static str>,
}

/// A document as it leaves the thread. Dropping it ends the work.
pub(super) struct DocumentBody {
    thread: FedReceiver<Result<Bytes, RecordError>>,
    verdict: Option<oneshot::Receiver<Option<PayloadVerdict>>>,
    /// The worth of the digest, once the whole body was read.
    pub(super) known_verdict: Option<PayloadVerdict>,
}

/// A part of the stored bytes on their way to the thread.
enum StoredPiece {
    Bytes(Bytes),
    Failed(RecordError),
    End(Option<PayloadVerdict>),
}

/// Begins to rewrite a body, which the client may leave unread for the time `unread`.
pub(super) async fn begin(
    plan: DocumentPlan,
    slice: BodySlice,
    unread: Duration,
) -> Result<(DocumentStart, DocumentBody), RecordError> {
    let (to_thread, input) = mpsc::channel(QUEUED);
    let (to_client, from) = mpsc::channel(QUEUED);
    let (started, starting) = oneshot::channel();
    let (judged, verdict) = oneshot::channel();
    let mut thread = FedReceiver::new(feed(slice, to_thread), from);
    drop(spawn_blocking(move || {
        let mut input = StoredReader {
            from: input,
            current: Bytes::new(),
            verdict: None,
            is_ended: false,
        };
        let outlet = ClientOutlet::new(to_client, unread);
        let mut unsaid = Some(started);
        let outcome = plan.write(&mut input, &mut unsaid, &outlet);
        if judged.send(input.verdict).is_err() {
            tracing::debug!("the client left before the verdict");
        }
        if let Err(error) = outcome {
            match unsaid {
                Some(unsaid) => _ = unsaid.send(Err(error)),
                None => outlet.fail(error),
            }
        }
    }));
    let start = thread.first_answer(starting).await?;
    let body = DocumentBody {
        thread,
        verdict: Some(verdict),
        known_verdict: None,
    };
    Ok((start, body))
}

/// Sends the stored bytes to the thread.
async fn feed(mut slice: BodySlice, to: mpsc::Sender<StoredPiece>) {
    loop {
        let stored = match poll_fn(|cx| slice.poll_bytes(cx)).await {
            Some(Ok(bytes)) => StoredPiece::Bytes(bytes),
            Some(Err(error)) => StoredPiece::Failed(error),
            None => StoredPiece::End(slice.verdict.take()),
        };
        let is_last = !matches!(stored, StoredPiece::Bytes(_));
        if to.send(stored).await.is_err() || is_last {
            return;
        }
    }
}

/// The stored bytes, as a reader takes them.
struct StoredReader {
    from: mpsc::Receiver<StoredPiece>,
    current: Bytes,
    verdict: Option<PayloadVerdict>,
    is_ended: bool,
}

impl Read for StoredReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.is_ended {
            match self.from.blocking_recv() {
                Some(StoredPiece::Bytes(bytes)) => self.current = bytes,
                Some(StoredPiece::End(verdict)) => {
                    self.verdict = verdict;
                    self.is_ended = true;
                }
                Some(StoredPiece::Failed(error)) => return Err(io::Error::other(error)),
                // Without its end the document would look whole.
                None => return Err(io::Error::other(RecordError::Stopped)),
            }
        }
        let count = self.current.len().min(out.len());
        if let Some(out) = out.get_mut(..count) {
            out.copy_from_slice(&self.current.split_to(count));
        }
        Ok(count)
    }
}

/// Sends bytes to the client, if there are any.
fn send(outlet: &ClientOutlet<Bytes>, bytes: Vec<u8>) -> Result<(), RecordError> {
    if bytes.is_empty() {
        return Ok(());
    }
    outlet.send(bytes.into())
}

type Starter = Option<oneshot::Sender<Result<DocumentStart, RecordError>>>;

/// Sends the facts of the document. A client that has left ends the work.
fn start(starter: &mut Starter, start: DocumentStart) -> Result<(), RecordError> {
    let starter = starter.take().ok_or(RecordError::Stopped)?;
    starter
        .send(Ok(start))
        .map_err(|_gone| RecordError::Stopped)
}

impl DocumentPlan {
    /// Reads, rewrites and sends the document.
    fn write(
        mut self,
        input: &mut StoredReader,
        starter: &mut Starter,
        outlet: &ClientOutlet<Bytes>,
    ) -> Result<(), RecordError> {
        let head = self.head.clone();
        let stored = BufReader::with_capacity(PIECE, &mut *input);
        let (mut decoded, left_encoded) = decoded_entity(head.as_ref(), stored, LIMITS);
        match self.form {
            DocumentForm::Sheet => {
                let mut bytes = Vec::new();
                let fault = fill(&mut decoded, &mut bytes, LARGEST_SHEET + 1)?;
                drop(decoded);
                drain(input)?;
                if bytes.len() > LARGEST_SHEET {
                    let words = format!("the style sheet has more than {LARGEST_SHEET} bytes");
                    return Err(RecordError::Unfit(words));
                }
                if let Some(names) = left_encoded {
                    let words = format!("the encoding {names} of the style sheet cannot be undone");
                    return Err(RecordError::Unfit(words));
                }
                let known = self.problems.into_iter().find_map(|problem| match problem {
                    CaptureFault::Cut(fault) => Some(fault),
                    _ => None,
                });
                if let Some(fault) = fault.or(known) {
                    return Err(RecordError::Broken(fault));
                }
                let text = sheet_text(self.content_type.as_deref(), &bytes);
                let sheet = style_sheet(&text, &self.addresses, self.time, &self.url);
                let kind = ContentKind::StyleSheet;
                let charset = Some("utf-8");
                start(starter, DocumentStart { kind, charset })?;
                send(outlet, sheet.into_bytes())
            }
            DocumentForm::Framed | DocumentForm::NoScript { .. } => {
                let mut bytes = Vec::new();
                let fault = fill(&mut decoded, &mut bytes, START_OF_PAGE)?;
                let kind = ContentKind::read(self.content_type.as_deref(), &bytes);
                if kind == ContentKind::Page {
                    self.problems
                        .extend(left_encoded.map(CaptureFault::Encoded));
                    let is_known = self.problems.contains(&CaptureFault::Digest);
                    let mut problems = self.write_page(decoded, bytes, fault, starter, outlet)?;
                    drain(input)?;
                    if input.verdict == Some(PayloadVerdict::Differs) && !is_known {
                        problems.push(CaptureFault::Digest);
                    }
                    let notes: String = problems.iter().map(note).collect();
                    if notes.is_empty() {
                        return Ok(());
                    }
                    return send(outlet, format!("{CLOSING}{notes}").into_bytes());
                }
                let charset = None;
                start(starter, DocumentStart { kind, charset })?;
                copy(&mut decoded, bytes, fault, outlet)?;
                drop(decoded);
                drain(input)
            }
        }
    }

    /// Writes a page up to its end, and returns the problems that are to be reported behind it.
    fn write_page(
        self,
        mut decoded: Box<dyn Read + '_>,
        mut bytes: Vec<u8>,
        mut fault: Option<String>,
        starter: &mut Starter,
        outlet: &ClientOutlet<Bytes>,
    ) -> Result<Vec<CaptureFault>, RecordError> {
        let encoding = page_encoding(self.content_type.as_deref(), &bytes);
        let mut late_problems = Vec::new();
        let mode = match &self.form {
            DocumentForm::NoScript { calendar } => {
                let banner = Banner {
                    url: self.url.as_str(),
                    time: self.time,
                    calendar,
                };
                let banner = banner.html(&self.problems);
                PageMode::NoScript { banner }
            }
            DocumentForm::Framed | DocumentForm::Sheet => {
                late_problems.clone_from(&self.problems);
                let first = FIRST.to_owned();
                PageMode::Guided { first }
            }
        };
        let mut rewriter = Some(PageRewriter::new(PageOptions {
            addresses: self.addresses,
            time: self.time,
            url: self.url,
            encoding,
            mode,
            memory: PAGE_MEMORY,
        }));
        let charset = rewriter.as_ref().map(|rewriter| rewriter.encoding().name());
        let kind = ContentKind::Page;
        start(starter, DocumentStart { kind, charset })?;
        let mut refused: Option<RewriteError> = None;
        loop {
            let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 4);
            let is_end = bytes.is_empty();
            if let Some(mut own) = rewriter.take() {
                let written = own.write(&bytes, &mut out);
                let written = match written {
                    Ok(()) if is_end || fault.is_some() => own.end(&mut out),
                    Ok(()) => {
                        rewriter = Some(own);
                        Ok(())
                    }
                    Err(error) => Err(error),
                };
                refused = written.err();
            }
            send(outlet, out)?;
            if is_end || fault.is_some() || refused.is_some() {
                break;
            }
            bytes.clear();
            fault = fill(&mut decoded, &mut bytes, PIECE)?;
        }
        let refused = refused.map(|error| error.to_string());
        late_problems.extend(fault.or(refused).map(CaptureFault::Cut));
        Ok(late_problems)
    }
}

/// Copies bytes unchanged. A fault in them breaks the answer off: the bytes themselves cannot say that they are not
/// whole.
fn copy(
    decoded: &mut dyn Read,
    mut bytes: Vec<u8>,
    mut fault: Option<String>,
    outlet: &ClientOutlet<Bytes>,
) -> Result<(), RecordError> {
    loop {
        let is_end = bytes.is_empty();
        send(outlet, std::mem::take(&mut bytes))?;
        if let Some(fault) = fault {
            return Err(RecordError::Broken(fault));
        }
        if is_end {
            return Ok(());
        }
        fault = fill(decoded, &mut bytes, PIECE)?;
    }
}

/// Reads the rest of a record, so that its digest is known.
fn drain(input: &mut StoredReader) -> Result<(), RecordError> {
    match io::copy(input, &mut io::sink()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Stream for DocumentBody {
    type Item = Result<Bytes, RecordError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, RecordError>>> {
        let next = self.thread.poll_next_piece(cx);
        if let Poll::Ready(None) = &next
            && let Some(mut verdict) = self.verdict.take()
        {
            // The thread judges before it ends.
            self.known_verdict = verdict.try_recv().ok().flatten();
        }
        next
    }
}
