//! One delivery of bytes into one replica that do not come from a depositor: a file from other replicas or from a disk
//! of the repository, with its signed admission behind it.
//!
//! Owns how a delivery ends. The admission is sent only once the source was read to its end. A source that fails cuts
//! the upload off where it stands, so that no node can commit what it received. What fails first is reported, and the
//! other side is stopped: a replica that failed waits for no source, nor the other way round. If both have failed when
//! that is noticed, the source is reported. Only the answer to the opening of the upload is always awaited, also after
//! the source has failed: a replica whose node has the file already needs no source.
//!
//! Not promised: that the coordinator hears of it. The caller knows whether the upload was ordered, and reports its
//! outcome with [`Transfers::report_progress`]. The stream of a depositor is another thing: it goes to several replicas, and its
//! admission is made while it comes ([`Transfers::start_transfer`]).

use std::path::PathBuf;
use std::sync::Arc;

use archive_model::{ReplicaId, StoreFailure};
use archive_rpc::answers::{FeedError, Outlet, feed_messages};
use archive_rpc::{CallError, CallErrorKind};
use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use crate::assemble::{AssembledPart, Assembly};
use crate::file_blocks::FileBlocks;
use crate::transfer::{
    Pace, Route, StoringFile, Transfers, UploadFeed, UploadStart, UploadVerdict, UploadedCopy,
};

/// The most chunks that were read and that the replica has not taken yet.
const WINDOW: usize = 4;

/// The outcome of the upload of a delivery.
pub type UploadOutcome = Result<UploadedCopy, CallError>;

/// A file on its way into one replica.
#[derive(Debug)]
pub struct ReplicaDelivery<'a> {
    /// The means of the upload.
    pub transfers: &'a Transfers,
    /// The replica that gets the file.
    pub replica: &'a ReplicaId,
    /// The upload.
    pub item: &'a StoringFile,
    /// The way into the replica.
    pub route: Route,
    /// The signed admission, which follows the bytes.
    pub admission: Arc<str>,
}

impl ReplicaDelivery<'_> {
    /// Delivers the whole file out of `reading`, no faster than `pace` if there is one. Returns the outcome of the
    /// upload.
    ///
    /// # Errors
    ///
    /// [`StoreFailure::Unreachable`] if no replica gives some of the bytes.
    pub async fn send_assembly(
        self,
        reading: &mut Assembly,
        pace: Option<&Pace>,
    ) -> Result<UploadOutcome, StoreFailure> {
        let (sender, chunks) = mpsc::channel(WINDOW);
        self.send(chunks, read_assembly(reading, sender, pace))
            .await
    }

    /// Delivers the whole file at `path`. Returns the outcome of the upload.
    ///
    /// # Errors
    ///
    /// [`CallError`] of the kind `Storage` if the file at `path` cannot be read, and `Unavailable` if the repository
    /// stops.
    pub async fn send_file(self, path: PathBuf) -> Result<UploadOutcome, CallError> {
        let (sender, chunks) = mpsc::channel(WINDOW);
        self.send(chunks, read_file(path, sender)).await
    }

    /// Delivers the bytes that `reading` sends into `chunks`: all of them, unless it fails.
    async fn send<E>(
        self,
        chunks: mpsc::Receiver<Bytes>,
        reading: impl Future<Output = Result<(), E>>,
    ) -> Result<UploadOutcome, E> {
        let Self {
            transfers,
            replica,
            item,
            route,
            admission,
        } = self;
        let opening = transfers.begin_upload(replica, item, route);
        let mut opening = Box::pin(opening);
        let mut reading = Box::pin(reading);
        let mut read = None;
        let opened = tokio::select! {
            biased;
            ended = &mut reading => {
                read = Some(ended);
                opening.await
            }
            opened = &mut opening => opened,
        };
        let upload = match opened {
            Ok(UploadStart::Stored(copy)) => return Ok(Ok(copy)),
            Ok(UploadStart::Ready(upload)) => upload,
            Err(error) => return read.transpose().map(|_read| Err(error)),
        };
        // A failure of the source drops the upload here or below, which has sent no admission.
        let is_read = read.transpose()?.is_some();
        let (seal, sealed) = watch::channel(None);
        let verdict = Some(UploadVerdict::Admitted(admission));
        let mut feed = UploadFeed { chunks, sealed };
        let mut uploading = Box::pin(transfers.send_bytes(replica, item, upload, &mut feed));
        let uploaded = if is_read {
            seal.send_replace(verdict);
            uploading.await
        } else {
            tokio::select! {
                biased;
                read = &mut reading => {
                    read?;
                    seal.send_replace(verdict);
                    uploading.await
                }
                uploaded = &mut uploading => uploaded,
            }
        };
        let unanswered =
            || CallErrorKind::Unavailable.to_error("the transfer ended without an answer");
        Ok(uploaded.and_then(|copy| copy.ok_or_else(unanswered)))
    }
}

async fn read_assembly(
    reading: &mut Assembly,
    sender: mpsc::Sender<Bytes>,
    pace: Option<&Pace>,
) -> Result<(), StoreFailure> {
    while let Some(part) = reading.next().await {
        match part {
            AssembledPart::Proven(proven) => {
                if let Some(pace) = pace {
                    pace.take_bytes(proven.length).await;
                }
                let ended = |_| StoreFailure::Unreachable("the upload has ended".to_owned());
                sender.send(proven.bytes).await.map_err(ended)?;
            }
            AssembledPart::Refused(group) => {
                let start = group.range.start;
                let end = group.range.end.saturating_sub(1);
                let reason = format!("no replica gives bytes {start}-{end}: {}", group.said);
                return Err(StoreFailure::Unreachable(reason));
            }
        }
    }
    Ok(())
}

async fn read_file(path: PathBuf, sender: mpsc::Sender<Bytes>) -> Result<(), CallError> {
    let mut blocks = FileBlocks::new(path.clone());
    let fed = feed_messages(&sender, move |outlet: &mut Outlet<Bytes>| {
        blocks.send_blocks(outlet, |bytes| bytes)
    });
    fed.await
        .map_err(|error: FeedError<std::io::Error>| match error {
            FeedError::Work(error) => {
                CallErrorKind::Storage.to_error(format!("{}: {error}", path.display()))
            }
            FeedError::Stopped => CallErrorKind::Unavailable.to_error("the repository is stopping"),
        })
}

#[cfg(test)]
mod tests;
