//! Both ends of the channel from the archive to the thread that reads a record.
//!
//! Owns the call that has the bytes proven, and the waits of the thread for them.

use std::io::{self, Read};
use std::sync::Arc;

use archive_client::{Access, ClientError, fetch_record, record_of_length};
use bytes::{Buf, Bytes};
use tokio::sync::mpsc;

use super::RecordPlace;

/// Sends the proven bytes of a record, until they end or nobody takes more. An error is sent as the last of them.
pub(super) async fn feed_chunks(
    archive: Arc<dyn Access>,
    place: RecordPlace,
    chunk_tx: mpsc::Sender<Result<Bytes, ClientError>>,
) {
    let sent = async {
        let archive = archive.as_ref();
        let mut record = match place.length {
            Some(length) => record_of_length(archive, &place.file, place.offset, length).await?,
            None => fetch_record(archive, &place.file, place.offset, None).await?,
        };
        while let Some(chunk) = record.next().await? {
            if chunk_tx.send(Ok(chunk)).await.is_err() {
                break;
            }
        }
        Ok::<(), ClientError>(())
    };
    if let Err(error) = sent.await {
        // A thread that has ended does not need it.
        _ = chunk_tx.send(Err(error)).await;
    }
}

/// The bytes of the archive, as the thread reads them.
pub(super) struct ArchiveChunks {
    chunk_rx: mpsc::Receiver<Result<Bytes, ClientError>>,
    /// The part of the last chunk that was not read yet.
    current: Bytes,
}

impl ArchiveChunks {
    pub(super) fn new(chunk_rx: mpsc::Receiver<Result<Bytes, ClientError>>) -> Self {
        Self {
            chunk_rx,
            current: Bytes::new(),
        }
    }
}

impl Read for ArchiveChunks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.chunk_rx.blocking_recv() {
                Some(Ok(chunk)) => self.current = chunk,
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(0),
            }
        }
        (&mut self.current).reader().read(out)
    }
}
