//! Records of the archive, opened: proven bytes in, the head and the body of what was captured out.
//!
//! Owns the bridge between the archive, whose bytes are waited for, and the readers of formats, which wait themselves.
//! A record has a thread while it is read; a body of up to [`WHOLE`] bytes is read at once and its thread is free, a
//! longer one comes in pieces, and no faster than its client takes them. Memory is bounded for each record, and so is
//! the number of records.
//!
//! Not promised: that the payload is what its digest says. That is checked while it passes, and reported.

mod fed;
mod outlet;
mod read;

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use archive_client::{Access, ClientError, record, record_of_length};
use archive_formats::warc::{Header, Kind};
use archive_model::FileName;
use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::spawn_blocking;
use viewer_replay::response::StoredMessage;

pub(crate) use fed::FedReceiver;
pub(crate) use outlet::{ClientOutlet, fill};
use read::{ArchiveInput, BodyPiece, BodyRest, RecordOpening};

/// The longest body that is held in memory as a whole, in bytes.
const WHOLE: usize = 256 * 1024;

/// The most pieces that wait between the archive and the reader, and between the reader and the client.
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
    pub(crate) kind: Kind,
    pub(crate) header: Header,
    /// The head of the record's block.
    pub(crate) message: StoredMessage,
    pub(crate) body: RecordBody,
}

/// The body behind the head: without the framing of chunks, and with its content encodings.
#[derive(Debug)]
pub(crate) enum RecordBody {
    /// The body was read as a whole.
    Whole(WholeBody),
    /// The beginning of the body was read.
    Streamed(StreamedBody),
}

/// A body that was read to its end.
#[derive(Clone, Debug)]
pub(crate) struct WholeBody {
    pub(crate) bytes: Bytes,
    pub(crate) verdict: PayloadVerdict,
    /// The fault in the chunks of the body, if there is one: the body is then shorter than it was.
    pub(crate) fault: Option<String>,
}

/// A body that comes in pieces.
pub(crate) struct StreamedBody {
    prefix: Bytes,
    length: Option<u64>,
    plan: oneshot::Sender<Range<u64>>,
    pieces: Pieces,
}

/// The bytes of a body that are left, and the work that reads them. Dropping it ends that work.
struct Pieces {
    thread: FedReceiver<Result<BodyPiece, RecordError>>,
    _permit: OwnedSemaphorePermit,
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
    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit, RecordError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.map_err(|_closed| RecordError::Stopped)
    }

    /// Begins to read a record byte for byte as it is archived.
    pub(crate) async fn open_stored(
        &self,
        place: &RecordPlace,
    ) -> Result<StoredRecord, RecordError> {
        let permit = self.turn().await?;
        let (to, from) = mpsc::channel(QUEUED);
        Ok(StoredRecord {
            pieces: FedReceiver::new(self.feed(place, to), from),
            _permit: permit,
        })
    }

    /// Opens a record, and reads its head and the beginning of its body.
    pub(crate) async fn open(&self, place: &RecordPlace) -> Result<OpenRecord, RecordError> {
        let permit = self.turn().await?;
        let (to_reader, input) = mpsc::channel(QUEUED);
        let (to_client, from) = mpsc::channel(QUEUED);
        let (opened, opening) = oneshot::channel();
        let (plan, planned) = oneshot::channel();
        let mut thread = FedReceiver::new(self.feed(place, to_reader), from);
        let outlet = ClientOutlet::new(to_client, self.unread);
        let input = ArchiveInput::new(input);
        drop(spawn_blocking(move || {
            read::read(input, opened, planned, &outlet);
        }));
        let RecordOpening {
            kind,
            header,
            message,
            prefix,
            rest,
        } = thread.first_answer(opening).await?;
        let body = match rest {
            BodyRest::Nothing { verdict, fault } => RecordBody::Whole(WholeBody {
                bytes: prefix,
                verdict,
                fault,
            }),
            BodyRest::More { length } => RecordBody::Streamed(StreamedBody {
                prefix,
                length,
                plan,
                pieces: Pieces {
                    thread,
                    _permit: permit,
                },
            }),
        };
        Ok(OpenRecord {
            kind,
            header,
            message,
            body,
        })
    }

    fn feed(
        &self,
        place: &RecordPlace,
        to: mpsc::Sender<Result<Bytes, ClientError>>,
    ) -> impl Future<Output = ()> + Send + use<> {
        feed(Arc::clone(&self.archive), place.clone(), to)
    }
}

/// A record as it is archived, on its way to a client.
pub(crate) struct StoredRecord {
    pieces: FedReceiver<Result<Bytes, ClientError>>,
    _permit: OwnedSemaphorePermit,
}

impl Stream for StoredRecord {
    type Item = Result<Bytes, ClientError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ClientError>>> {
        self.pieces.poll_next_piece(cx)
    }
}

/// Sends the proven bytes of a record to its reader, until the reader takes no more.
async fn feed(
    archive: Arc<dyn Access>,
    place: RecordPlace,
    to: mpsc::Sender<Result<Bytes, ClientError>>,
) {
    let sent = async {
        let archive = archive.as_ref();
        let mut record = match place.length {
            Some(length) => record_of_length(archive, &place.file, place.offset, length).await?,
            None => record(archive, &place.file, place.offset, None).await?,
        };
        while let Some(bytes) = record.next().await? {
            if to.send(Ok(bytes)).await.is_err() {
                break;
            }
        }
        Ok::<(), ClientError>(())
    };
    if let Err(error) = sent.await {
        // A reader that has left does not need it.
        _ = to.send(Err(error)).await;
    }
}

impl RecordBody {
    /// Returns the length of the body, if it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Whole(whole) => Some(whole.bytes.len() as u64),
            Self::Streamed(streamed) => streamed.length,
        }
    }

    /// Streams a range of the body. The digest is checked only if the range is the whole body.
    pub(crate) fn slice(self, range: Range<u64>) -> BodySlice {
        match self {
            Self::Whole(whole) => BodySlice {
                first: cut(&whole.bytes, &range),
                left: None,
                verdict: Some(whole.verdict),
            },
            Self::Streamed(streamed) => {
                let first = cut(&streamed.prefix, &range);
                // Without a reader of the plan there is an error in the pieces.
                _ = streamed.plan.send(range);
                BodySlice {
                    first,
                    left: Some(streamed.pieces),
                    verdict: None,
                }
            }
        }
    }

    /// Streams the whole body.
    pub(crate) fn all(self) -> BodySlice {
        self.slice(0..u64::MAX)
    }
}

/// Returns the part of the first bytes of a body that lies in a range.
fn cut(bytes: &Bytes, range: &Range<u64>) -> Bytes {
    let at = |place: u64| {
        usize::try_from(place)
            .unwrap_or(usize::MAX)
            .min(bytes.len())
    };
    let start = at(range.start);
    let end = at(range.end);
    bytes.slice(start..end.max(start))
}

/// A part of a body on its way to a client. An error in it is its end, and nothing that came before may pass for the
/// whole.
pub(crate) struct BodySlice {
    first: Bytes,
    left: Option<Pieces>,
    /// The worth of the digest of the payload, once that is known.
    pub(crate) verdict: Option<PayloadVerdict>,
}

impl BodySlice {
    /// Returns the next bytes.
    pub(crate) fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, RecordError>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.first))));
        }
        let Some(pieces) = &mut self.left else {
            return Poll::Ready(None);
        };
        let piece = ready!(pieces.thread.poll_next_piece(cx));
        match piece {
            Some(Ok(BodyPiece::Bytes(bytes))) => Poll::Ready(Some(Ok(bytes))),
            Some(Ok(BodyPiece::End(verdict))) => {
                self.verdict = Some(verdict);
                self.left = None;
                Poll::Ready(None)
            }
            Some(Err(error)) => {
                self.left = None;
                Poll::Ready(Some(Err(error)))
            }
            // A reader says how it ends.
            None => {
                self.left = None;
                Poll::Ready(Some(Err(RecordError::Stopped)))
            }
        }
    }
}

impl Stream for BodySlice {
    type Item = Result<Bytes, RecordError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, RecordError>>> {
        self.poll_bytes(cx)
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("permits", &self.permits.available_permits())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StreamedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedBody")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BodySlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodySlice")
            .field("verdict", &self.verdict)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
