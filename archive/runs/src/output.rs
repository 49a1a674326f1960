//! The output of one file until its turn comes: a bounded buffer, and no permit to compute while the buffer is full.
//!
//! If a full file kept its permit, the first file in the order of the names might never get one.

use std::sync::Arc;

use archive_batch::{Sink, Stop, StopControl};
use archive_model::BatchFileOutcome;
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::early_end::EarlyEnd;

/// The number of bytes that are sent at once.
const PIECE: usize = 64 * 1024;

/// The most events that wait for their turn: 1 MiB for each file.
pub(crate) const MOST_WAITING: usize = 16;

/// An event of one file on its way through a job.
#[derive(Debug)]
pub(crate) enum FileEvent {
    /// The next bytes.
    Output(Bytes),
    /// The file is done.
    Done(Box<BatchFileOutcome>),
    /// The file is no longer here.
    Gone,
    /// The file may be on these volumes, which are offline.
    Offline(Vec<(archive_model::VolumeId, String)>),
    /// The job cannot continue.
    Failed(EarlyEnd),
}

/// The means by which a file waits for its turn and for a permit.
#[derive(Clone, Debug)]
pub(crate) struct WorkerContext {
    pub(crate) workers: Arc<Semaphore>,
    pub(crate) control: StopControl,
    pub(crate) stop: CancellationToken,
    pub(crate) runtime: Handle,
}

/// The output of one file.
#[derive(Debug)]
pub(crate) struct FileOutput {
    waiting: WorkerContext,
    pieces: mpsc::Sender<FileEvent>,
    permit: Option<OwnedSemaphorePermit>,
    buffer: Vec<u8>,
    written: u64,
}

impl FileOutput {
    pub(crate) fn new(
        waiting: WorkerContext,
        pieces: mpsc::Sender<FileEvent>,
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

    /// Sends the buffered bytes. Returns the number of bytes of the whole output.
    pub(crate) fn finish_output(&mut self) -> Result<u64, Stop> {
        self.flush(true)?;
        Ok(self.written)
    }

    /// Sends the last event. The permit is no longer needed.
    pub(crate) fn end_file(mut self, last: FileEvent) {
        self.permit = None;
        if self.send(last, false).is_err() {
            tracing::debug!("nobody takes the last event of a file: the job has ended");
        }
    }

    fn flush(&mut self, is_last: bool) -> Result<(), Stop> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        self.send(FileEvent::Output(bytes), !is_last)
    }

    fn send(&mut self, piece: FileEvent, goes_on: bool) -> Result<(), Stop> {
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
        self.waiting
            .control
            .stop_reason()
            .unwrap_or(Stop::Cancelled)
    }
}

impl Sink for FileOutput {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Stop> {
        self.waiting.control.check_stop()?;
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
