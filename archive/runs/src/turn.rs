//! What one file writes, until it is its turn: a bounded buffer, and no permit to compute while that is full.
//!
//! Else a job whose files later in the order of the names are full of output could never compute the first of them.

use std::sync::Arc;

use archive_batch::{Control, Sink, Stop};
use archive_model::FileOutcome;
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::ended::Ended;

/// How many bytes are handed on at once.
const PIECE: usize = 64 * 1024;

/// How many pieces wait at most: 1 MiB for each file.
pub(crate) const PIECES: usize = 16;

/// What comes of one file.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The next bytes.
    Output(Bytes),
    /// That was all.
    Done(Box<FileOutcome>),
    /// It is not here any more.
    Gone,
    /// It may be on these volumes, which are offline.
    Offline(Vec<(archive_model::VolumeId, String)>),
    /// The job cannot go on.
    Failed(Ended),
}

/// What a file needs to wait for its turn.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) workers: Arc<Semaphore>,
    pub(crate) control: Control,
    pub(crate) stop: CancellationToken,
    pub(crate) runtime: Handle,
}

/// The way out for one file.
#[derive(Debug)]
pub(crate) struct Turn {
    waiting: Waiting,
    pieces: mpsc::Sender<Piece>,
    permit: Option<OwnedSemaphorePermit>,
    buffer: Vec<u8>,
    written: u64,
}

impl Turn {
    pub(crate) fn new(
        waiting: Waiting,
        pieces: mpsc::Sender<Piece>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            waiting,
            pieces,
            permit: Some(permit),
            buffer: Vec::new(),
            written: 0,
        }
    }

    /// Hands on what is buffered. Says how many bytes there were in all.
    pub(crate) fn finish(&mut self) -> Result<u64, Stop> {
        self.flush(true)?;
        Ok(self.written)
    }

    /// Sends the last word. The permit is not needed any more.
    pub(crate) fn end(mut self, last: Piece) {
        self.permit = None;
        if self.send(last, false).is_err() {
            tracing::debug!("nobody takes the last word of a file: the job has ended");
        }
    }

    fn flush(&mut self, is_last: bool) -> Result<(), Stop> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        self.send(Piece::Output(bytes), !is_last)
    }

    fn send(&mut self, piece: Piece, goes_on: bool) -> Result<(), Stop> {
        let piece = match self.pieces.try_send(piece) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Closed(_)) => return Err(self.why()),
            Err(TrySendError::Full(piece)) => piece,
        };
        self.permit = None;
        let waited = self.waiting.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.waiting.stop.cancelled() => None,
                sent = self.pieces.send(piece) => sent.ok(),
            }
        });
        waited.ok_or_else(|| self.why())?;
        if !goes_on {
            return Ok(());
        }
        let permit = self.waiting.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.waiting.stop.cancelled() => None,
                permit = Arc::clone(&self.waiting.workers).acquire_owned() => permit.ok(),
            }
        });
        self.permit = Some(permit.ok_or_else(|| self.why())?);
        Ok(())
    }

    fn why(&self) -> Stop {
        self.waiting.control.why().unwrap_or(Stop::Cancelled)
    }
}

impl Sink for Turn {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Stop> {
        self.waiting.control.check()?;
        self.written = self.written.saturating_add(bytes.len() as u64);
        loop {
            let room = PIECE.saturating_sub(self.buffer.len()).min(bytes.len());
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.buffer.extend_from_slice(now);
            if self.buffer.len() < PIECE {
                return Ok(());
            }
            self.flush(false)?;
            bytes = later;
        }
    }
}
