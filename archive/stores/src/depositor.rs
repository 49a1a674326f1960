//! One depositor's call, as the coordinator sees it: bytes that come, answers that go. No wire types.

use std::fmt;
use std::pin::Pin;

use archive_decisions::store::{Claim, FileRecord};
use archive_model::{ArchiveError, Root, UploadId};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

/// The number of bytes that are taken between two reports of progress.
const STRIDE: u64 = 4 << 20;

/// A message from a depositor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// The next bytes.
    Data(Bytes),
    /// All bytes have been sent.
    End,
}

/// A message to a depositor.
#[derive(Clone, Debug)]
pub enum DepositReply {
    /// The depositor may send its bytes, beginning at `offset`.
    Ready {
        /// The id of the upload.
        upload: UploadId,
        /// The first byte to send.
        offset: u64,
    },
    /// The number of bytes that the archive has taken so far.
    Taken(u64),
    /// The file is in every required replica.
    Stored(Box<CustodyAnswer>),
    /// The file was not stored, and the reason.
    Failed(ArchiveError),
}

/// The answer to a depositor whose file the archive has.
#[derive(Clone, Debug)]
pub struct CustodyAnswer {
    /// The custody receipt, a DSSE envelope in JSON.
    pub receipt: String,
    /// Whether the archive had the file already.
    pub already: bool,
    /// The record of the file, with its state in every replica.
    pub record: FileRecord,
}

/// A depositor's bytes.
pub struct DepositStream {
    stream: Pin<Box<dyn Stream<Item = Result<Chunk, String>> + Send>>,
    replies: mpsc::Sender<DepositReply>,
    /// The number of bytes up to which the depositor was told that they were taken.
    reported: u64,
    /// Whether the stream can begin later than with the first byte.
    pub can_resume: bool,
    /// The claim of the depositor that sends these bytes.
    pub claim: Claim,
}

impl fmt::Debug for DepositStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DepositStream")
            .field("claim", &self.claim)
            .finish_non_exhaustive()
    }
}

/// A depositor that asks to store a file.
#[derive(Debug)]
pub struct DepositRequest {
    /// The depositor's name, as `role/name`.
    pub who: String,
    /// The bytes of the file; taken when the depositor may send.
    pub source: Option<DepositStream>,
    /// The channel for the answers to the depositor.
    pub replies: mpsc::Sender<DepositReply>,
    /// Whether the depositor was told to send bytes that the archive will keep, and not bytes to be compared with those
    /// that the archive has.
    pub sent: bool,
    /// The depositor's claim about the bytes.
    pub claim: Claim,
    /// The root of the bytes that the depositor sent, once all have come.
    pub received: Option<Root>,
    /// Cancelled once the depositor has its answer.
    pub answered: CancellationToken,
}

impl DepositStream {
    /// Makes a source of the bytes of `stream`. A stream that ends without [`Chunk::End`] was cut.
    pub fn new(
        stream: impl Stream<Item = Result<Chunk, String>> + Send + 'static,
        replies: mpsc::Sender<DepositReply>,
        claim: Claim,
    ) -> Self {
        Self {
            stream: Box::pin(stream),
            replies,
            reported: 0,
            can_resume: true,
            claim,
        }
    }

    /// Marks the source as one that always begins with the first byte, so that no earlier stream is resumed.
    #[must_use]
    pub fn whole_stream(self) -> Self {
        Self {
            can_resume: false,
            ..self
        }
    }

    /// Tells the depositor to send, beginning at `offset`. That a depositor has gone away is noticed by its stream.
    pub fn begin_reading(&mut self, upload: UploadId, offset: u64) {
        self.reported = offset;
        _ = self
            .replies
            .try_send(DepositReply::Ready { upload, offset });
    }

    /// Returns the channel for the answers to the depositor. It is closed once the depositor has gone away.
    pub fn answer_sender(&self) -> mpsc::Sender<DepositReply> {
        self.replies.clone()
    }

    /// Tells the depositor that it is to wait.
    pub fn wait_until_ready(&self) {
        _ = self.replies.try_send(DepositReply::Taken(0));
    }

    /// Returns the next chunk of the stream.
    ///
    /// # Errors
    ///
    /// The reason why the stream ended, for people.
    pub async fn next(&mut self) -> Result<Chunk, String> {
        self.stream
            .next()
            .await
            .unwrap_or_else(|| Err("the stream ended before `close`".to_owned()))
    }

    /// Tells the depositor now and then how many bytes were taken. Does not wait for a depositor that does not listen.
    pub fn note_taken(&mut self, bytes: u64) {
        if bytes.saturating_sub(self.reported) < STRIDE {
            return;
        }
        if let Ok(place) = self.replies.try_reserve() {
            self.reported = bytes;
            place.send(DepositReply::Taken(bytes));
        }
    }
}
