//! Both ends of the channel from the thread that reads a record to its client.
//!
//! Owns the parts of an answer and their order, how long the thread waits for its client, and that an answer without
//! its end never passes for whole.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use archive_formats::warc::{Header, WarcType};
use bytes::Bytes;
use futures_util::Stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use viewer_replay::content::ContentKind;
use viewer_replay::response::StoredMessage;

use super::fed::FedReceiver;
use super::{PayloadVerdict, RecordError, WholeBody};

/// A part of an answer; they come in this order.
pub(super) enum AnswerPart {
    /// The head of the record. Behind it the thread waits until it is told what to answer with.
    Opening(Box<RecordOpening>),
    /// What the bytes of a document are. A part of the body as it is stored does not begin with it.
    Start(DocumentStart),
    /// Bytes of the answer.
    Chunk(Bytes),
    /// The end, to which everything that was wanted has come.
    End(PayloadVerdict),
}

/// The facts of a record whose head was read.
pub(super) struct RecordOpening {
    pub(super) kind: WarcType,
    pub(super) header: Header,
    pub(super) message: StoredMessage,
    /// The body; `None` if it is long, and not read yet.
    pub(super) whole: Option<WholeBody>,
    /// The length of the body, if it is known.
    pub(super) length: Option<u64>,
}

/// The beginning of a document: what its bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentStart {
    pub(crate) kind: ContentKind,
    /// The charset of the answer, if the document is text that was rewritten.
    pub(crate) charset: Option<&'static str>,
}

/// The end of the thread. Each wait for the client has a limit, and its departure is an error, which ends the work.
pub(crate) struct AnswerSender {
    part_tx: mpsc::Sender<Result<AnswerPart, RecordError>>,
    unread: Duration,
}

impl AnswerSender {
    /// Makes the end of a thread whose client may leave a part unread for the time `unread`.
    pub(super) const fn new(
        part_tx: mpsc::Sender<Result<AnswerPart, RecordError>>,
        unread: Duration,
    ) -> Self {
        Self { part_tx, unread }
    }

    /// Sends what the bytes of a document are.
    pub(crate) fn send_start(&self, start: DocumentStart) -> Result<(), RecordError> {
        self.send_part(AnswerPart::Start(start))
    }

    /// Sends bytes, if there are any.
    pub(crate) fn send_chunk(&self, bytes: impl Into<Bytes>) -> Result<(), RecordError> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Ok(());
        }
        self.send_part(AnswerPart::Chunk(bytes))
    }

    pub(super) fn send_part(&self, part: AnswerPart) -> Result<(), RecordError> {
        let sending = self.part_tx.send_timeout(Ok(part), self.unread);
        Handle::current()
            .block_on(sending)
            .map_err(|error| match error {
                SendTimeoutError::Timeout(_) => RecordError::Unread(self.unread),
                SendTimeoutError::Closed(_) => RecordError::Stopped,
            })
    }

    /// Sends the reason why nothing more comes. A client that has left, or does not read, does not get it; for one that
    /// reads later, an answer without its end is an error as well.
    pub(super) fn send_error(&self, error: RecordError) {
        _ = self.part_tx.try_send(Err(error));
    }
}

/// The end of the client. Dropping it ends the work of the thread.
pub(super) struct AnswerReceiver {
    parts: FedReceiver<Result<AnswerPart, RecordError>>,
    /// The permit to read the record; `None` once it was read.
    permit: Option<OwnedSemaphorePermit>,
}

impl AnswerReceiver {
    pub(super) const fn new(
        parts: FedReceiver<Result<AnswerPart, RecordError>>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            parts,
            permit: Some(permit),
        }
    }

    /// Gives the permit back, and ends the reading from the archive, where the record was read to its end.
    pub(super) fn release_archive(&mut self) {
        self.parts.stop_feed();
        drop(self.permit.take());
    }

    /// Waits for the next part.
    pub(super) async fn next_part(&mut self) -> Result<AnswerPart, RecordError> {
        poll_fn(|cx| self.poll_part(cx)).await
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<AnswerPart, RecordError>> {
        let part = ready!(self.parts.poll_next(cx));
        // The thread says how it ends, unless its client did not read for too long, or the runtime ends.
        Poll::Ready(part.unwrap_or(Err(RecordError::Stopped)))
    }
}

/// The bytes of an answer on their way to the client. An error in it is its end, and nothing that came before may pass
/// for the whole.
pub(crate) struct AnswerBody {
    /// The bytes that are there already, in front of those of the thread.
    held: Bytes,
    /// The end of the client, until the answer has ended.
    answer: Option<AnswerReceiver>,
    /// What the digest of the payload is worth; `None` until that is known.
    pub(crate) verdict: Option<PayloadVerdict>,
}

impl AnswerBody {
    /// Makes the body of bytes that were read.
    pub(super) const fn from_bytes(held: Bytes, verdict: PayloadVerdict) -> Self {
        Self {
            held,
            answer: None,
            verdict: Some(verdict),
        }
    }

    /// Makes the body of what a thread sends from now on.
    pub(super) const fn from_thread(answer: AnswerReceiver) -> Self {
        Self {
            held: Bytes::new(),
            answer: Some(answer),
            verdict: None,
        }
    }
}

impl Stream for AnswerBody {
    type Item = Result<Bytes, RecordError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, RecordError>>> {
        if !self.held.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.held))));
        }
        let Some(answer) = &mut self.answer else {
            return Poll::Ready(None);
        };
        let end = match ready!(answer.poll_part(cx)) {
            Ok(AnswerPart::Chunk(bytes)) => return Poll::Ready(Some(Ok(bytes))),
            Ok(AnswerPart::End(verdict)) => {
                self.verdict = Some(verdict);
                None
            }
            Ok(AnswerPart::Opening(_) | AnswerPart::Start(_)) => {
                unreachable!("the parts before the bytes of an answer come once")
            }
            Err(error) => Some(Err(error)),
        };
        self.answer = None;
        Poll::Ready(end)
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Arc;

    use futures_util::StreamExt;
    use tokio::sync::Semaphore;

    use super::*;

    /// Fails if an answer whose thread ends without a word passes for whole.
    #[tokio::test]
    async fn answer_without_end_is_an_error() {
        for is_ended in [true, false] {
            let (part_tx, part_rx) = mpsc::channel(2);
            let chunk = AnswerPart::Chunk(Bytes::from_static(b"chunk"));
            part_tx.try_send(Ok(chunk)).unwrap();
            if is_ended {
                let end = AnswerPart::End(PayloadVerdict::Matches);
                part_tx.try_send(Ok(end)).unwrap();
            }
            drop(part_tx);
            let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
            let parts = FedReceiver::new(ready(()), part_rx);
            let mut body = AnswerBody::from_thread(AnswerReceiver::new(parts, permit));
            assert_eq!(body.next().await.unwrap().unwrap(), "chunk");
            match body.next().await {
                None => assert!(is_ended && body.verdict == Some(PayloadVerdict::Matches)),
                Some(end) => {
                    let error = end.unwrap_err();
                    assert!(
                        !is_ended && matches!(error, RecordError::Stopped),
                        "{error}"
                    );
                }
            }
            assert!(body.next().await.is_none());
        }
    }
}
