//! Records of the archive, opened: proven bytes in, the head and the body of what was captured out.
//!
//! Owns the bridge between the archive, whose bytes are waited for, and the readers of formats, which wait themselves.
//! A record has one thread and two channels:
//!
//! ```text
//! archive ── feed_chunks ──► chunks ──► read_record, on a thread: ──► parts of the answer ──► AnswerBody ──► client
//!            (archive_chunks)           head, then the body work      (answer)
//! ```
//!
//! The thread hands out the head and waits until it is told what to make of the body: a range of it, or a document that
//! is decoded and rewritten on the same thread while its bytes come, and no faster than its client takes them. A body
//! of up to [`WHOLE`] bytes was read by then; where it is wanted as it is, the thread is not asked again. Memory is
//! bounded for each record, and so is the number of records.
//!
//! Not promised: that the payload is what its digest says. That is checked while it passes, and reported.

mod answer;
mod archive_chunks;
mod body;
mod fed;
mod read;

use std::fmt;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use archive_client::{Access, ClientError};
use archive_formats::warc::{Header, WarcType};
use archive_model::FileName;
use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::spawn_blocking;
use viewer_replay::response::StoredMessage;

pub(crate) use answer::{AnswerBody, AnswerSender, DocumentStart};
use answer::{AnswerPart, AnswerReceiver};
use archive_chunks::{ArchiveChunks, feed_chunks};
use body::cut_chunk;
pub(crate) use body::{StoredBody, read_chunk};
use fed::FedReceiver;
use read::{BodyWork, read_record};

/// The longest body that is held in memory as a whole, in bytes.
const WHOLE: usize = 256 * 1024;

/// The number of bytes that a thread reads at once.
pub(crate) const CHUNK: usize = 64 * 1024;

/// The most chunks that wait between the archive and the thread, and the most parts between the thread and the client.
const QUEUED: usize = 4;

/// The reason why a record cannot be had, or breaks off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// The archive does not hand out the bytes of the record.
    #[error("{0}")]
    Archive(ClientError),
    /// The record is damaged as it was archived, or no record begins at its place.
    #[error("{0}")]
    Broken(String),
    /// The record is whole, and cannot be shown as a part of a page.
    #[error("{0}")]
    Unfit(String),
    /// The client did not read the record for this time.
    #[error("the client did not read for {0:?}")]
    Unread(Duration),
    /// The viewer stops.
    #[error("the viewer stops")]
    Stopped,
}

impl RecordError {
    /// Returns whether the record may be there when it is asked for again.
    pub(crate) const fn is_passing(&self) -> bool {
        match self {
            Self::Archive(error) => error.is_passing(),
            Self::Stopped | Self::Unread(_) => true,
            Self::Broken(_) | Self::Unfit(_) => false,
        }
    }
}

/// The meaning of an error of reading: the words of the archive or of the record, where they are in it.
impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> Self {
        let archive = |error: io::Error| error.downcast::<ClientError>().map(Self::Archive);
        error
            .downcast::<Self>()
            .or_else(archive)
            .unwrap_or_else(|error| Self::Broken(format!("cannot read the record: {error}")))
    }
}

/// The worth of the digest of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadVerdict {
    /// The payload has the digest.
    Matches,
    /// The payload has the digest in no reading.
    Differs,
    /// The record has no digest of its payload, one of an unknown kind, or the payload was not read to its end.
    Unchecked,
}

/// The place of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    pub(crate) file: FileName,
    pub(crate) offset: u64,
    /// The length of the record as the index has it; the record is read to its own end.
    pub(crate) length: Option<u64>,
}

/// The records of an archive. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Records {
    archive: Arc<dyn Access>,
    permits: Arc<Semaphore>,
    unread: Duration,
}

/// A record whose head was read.
#[derive(Debug)]
pub(crate) struct OpenRecord {
    pub(crate) kind: WarcType,
    pub(crate) header: Header,
    /// The head of the record's block.
    pub(crate) message: StoredMessage,
    pub(crate) body: RecordBody,
}

/// A body that was read to its end.
#[derive(Clone, Debug)]
pub(crate) struct WholeBody {
    pub(crate) bytes: Bytes,
    pub(crate) verdict: PayloadVerdict,
    /// The fault in the chunks of the body, if there is one: the body is then shorter than it was.
    pub(crate) fault: Option<String>,
}

/// The body behind the head, and the thread that has it. Without the framing of chunks, and with its content encodings.
/// Dropping it ends the thread.
pub(crate) struct RecordBody {
    whole: Option<WholeBody>,
    length: Option<u64>,
    work_tx: oneshot::Sender<BodyWork>,
    answer: AnswerReceiver,
}

/// A document that is made of a body, once it is known what its bytes are.
pub(crate) struct BegunDocument {
    pub(crate) start: DocumentStart,
    pub(crate) body: AnswerBody,
}

impl Records {
    /// Returns the records of `archive`; at most `most` are read at once, and a client may leave one unread for so
    /// long.
    pub(crate) fn new(archive: Arc<dyn Access>, most: usize, unread: Duration) -> Self {
        Self {
            archive,
            permits: Arc::new(Semaphore::new(most)),
            unread,
        }
    }

    /// Returns the archive that the records are read from.
    pub(crate) fn archive(&self) -> &Arc<dyn Access> {
        &self.archive
    }

    /// Waits for a permit to read something that is streamed.
    pub(crate) async fn take_turn(&self) -> Result<OwnedSemaphorePermit, RecordError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.map_err(|_closed| RecordError::Stopped)
    }

    /// Begins to read a record byte for byte as it is archived.
    pub(crate) async fn open_stored(
        &self,
        place: &RecordPlace,
    ) -> Result<StoredRecord, RecordError> {
        let permit = self.take_turn().await?;
        let (chunk_tx, chunk_rx) = mpsc::channel(QUEUED);
        let feed = feed_chunks(Arc::clone(&self.archive), place.clone(), chunk_tx);
        Ok(StoredRecord {
            chunks: FedReceiver::new(feed, chunk_rx),
            _permit: permit,
        })
    }

    /// Opens a record, and reads its head and the beginning of its body.
    pub(crate) async fn open_record(&self, place: &RecordPlace) -> Result<OpenRecord, RecordError> {
        let permit = self.take_turn().await?;
        let (chunk_tx, chunk_rx) = mpsc::channel(QUEUED);
        let (part_tx, part_rx) = mpsc::channel(QUEUED);
        let (work_tx, work_rx) = oneshot::channel();
        let chunks = ArchiveChunks::new(chunk_rx);
        let answer_sender = AnswerSender::new(part_tx, self.unread);
        drop(spawn_blocking(move || {
            read_record(chunks, work_rx, &answer_sender);
        }));
        let feed = feed_chunks(Arc::clone(&self.archive), place.clone(), chunk_tx);
        let mut answer = AnswerReceiver::new(FedReceiver::new(feed, part_rx), permit);
        let AnswerPart::Opening(opening) = answer.next_part().await? else {
            unreachable!("an answer begins with the head of the record");
        };
        if opening.whole.is_some() {
            answer.release_archive();
        }
        Ok(OpenRecord {
            kind: opening.kind,
            header: opening.header,
            message: opening.message,
            body: RecordBody {
                whole: opening.whole,
                length: opening.length,
                work_tx,
                answer,
            },
        })
    }
}

/// A record as it is archived, on its way to a client.
pub(crate) struct StoredRecord {
    chunks: FedReceiver<Result<Bytes, ClientError>>,
    _permit: OwnedSemaphorePermit,
}

impl Stream for StoredRecord {
    type Item = Result<Bytes, ClientError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ClientError>>> {
        self.chunks.poll_next(cx)
    }
}

impl RecordBody {
    /// Returns the body, if it is short enough to be held in memory.
    pub(crate) const fn whole(&self) -> Option<&WholeBody> {
        self.whole.as_ref()
    }

    /// Returns the length of the body, if it is known.
    pub(crate) const fn length(&self) -> Option<u64> {
        self.length
    }

    /// Streams a range of the body. The digest is checked only if the range is the whole body.
    pub(crate) fn stream_range(self, range: Range<u64>) -> AnswerBody {
        if let Some(whole) = self.whole {
            return AnswerBody::from_bytes(cut_chunk(&whole.bytes, 0, &range), whole.verdict);
        }
        let work = Box::new(move |body: StoredBody<'_>, answer: &AnswerSender| {
            body.send_range(&range, answer)
        });
        // A thread that does not take the work has ended, and that is an error in the answer.
        _ = self.work_tx.send(work);
        AnswerBody::from_thread(self.answer)
    }

    /// Streams the whole body.
    pub(crate) fn stream_all(self) -> AnswerBody {
        self.stream_range(0..u64::MAX)
    }

    /// Has the thread make a document of the body. The work sends what the bytes of the document are before the first
    /// of them.
    pub(crate) async fn begin_document(
        mut self,
        work: BodyWork,
    ) -> Result<BegunDocument, RecordError> {
        _ = self.work_tx.send(work);
        let AnswerPart::Start(start) = self.answer.next_part().await? else {
            unreachable!("a document begins with its start");
        };
        Ok(BegunDocument {
            start,
            body: AnswerBody::from_thread(self.answer),
        })
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("permits", &self.permits.available_permits())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RecordBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordBody")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
