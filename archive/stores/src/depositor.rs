//! One depositor's call, as the coordinator sees it: bytes that come, answers that go. No wire types.

use std::fmt;
use std::pin::Pin;

use archive_decisions::store::{Claim, FileRecord};
use archive_model::{ArchiveError, Root, UploadId};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

/// The number of bytes that are taken between two words about it.
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
pub enum Reply {
    /// Send the bytes, from here.
    Ready {
        /// The upload that this becomes.
        upload: UploadId,
        /// The first byte to send.
        offset: u64,
    },
    /// The number of bytes that were taken.
    Taken(u64),
    /// It is in every required replica.
    Stored(Box<Custody>),
    /// It is not, and why.
    Failed(ArchiveError),
}

/// The answer to a depositor whose file the archive has.
#[derive(Clone, Debug)]
pub struct Custody {
    /// The custody receipt, a DSSE envelope in JSON.
    pub receipt: String,
    /// Whether the archive had the file already.
    pub already: bool,
    /// The record of how it stands in every replica.
    pub record: FileRecord,
}

/// A depositor's bytes.
pub struct Source {
    stream: Pin<Box<dyn Stream<Item = Result<Chunk, String>> + Send>>,
    replies: mpsc::Sender<Reply>,
    told: u64,
    /// Whether it can begin later than with the first byte.
    pub can_resume: bool,
    /// The depositor's claim about the bytes.
    pub claim: Claim,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("claim", &self.claim)
            .finish_non_exhaustive()
    }
}

/// A depositor that asks to store a file.
#[derive(Debug)]
pub struct Depositor {
    /// Who, as `role/name`.
    pub who: String,
    /// Its bytes; taken when it may send.
    pub source: Option<Source>,
    /// Where answers go.
    pub replies: mpsc::Sender<Reply>,
    /// Whether it was told to send what the archive will keep; what is only compared was there already.
    pub sent: bool,
    /// Its claim about the bytes.
    pub claim: Claim,
    /// The root of the bytes that came from it, once all have.
    pub received: Option<Root>,
    /// Cancelled once it has its answer.
    pub answered: CancellationToken,
}

impl Source {
    /// The bytes of `stream`; a stream that ends without [`Chunk::End`] was cut.
    pub fn new(
        stream: impl Stream<Item = Result<Chunk, String>> + Send + 'static,
        replies: mpsc::Sender<Reply>,
        claim: Claim,
    ) -> Self {
        Self {
            stream: Box::pin(stream),
            replies,
            told: 0,
            can_resume: true,
            claim,
        }
    }

    /// One that begins with the first byte, wherever it is told to.
    #[must_use]
    pub fn whole(self) -> Self {
        Self {
            can_resume: false,
            ..self
        }
    }

    /// Tells the depositor to send, from here. One that is gone says so through its stream.
    pub fn ready(&mut self, upload: UploadId, offset: u64) {
        self.told = offset;
        drop(self.replies.try_send(Reply::Ready { upload, offset }));
    }

    /// Where it hears of it: closed, once it is gone.
    pub fn answers(&self) -> mpsc::Sender<Reply> {
        self.replies.clone()
    }

    /// Tells the depositor that it is to wait.
    pub fn wait(&self) {
        drop(self.replies.try_send(Reply::Taken(0)));
    }

    /// The next chunk, or the reason why none comes.
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

    /// Tells the depositor now and then how far it is; one that does not listen is not waited for.
    pub fn taken(&mut self, bytes: u64) {
        if bytes.saturating_sub(self.told) < STRIDE {
            return;
        }
        if let Ok(place) = self.replies.try_reserve() {
            self.told = bytes;
            place.send(Reply::Taken(bytes));
        }
    }
}
