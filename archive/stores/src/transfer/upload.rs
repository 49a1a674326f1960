//! One upload into one replica: opened on a node, or on another one if the first cannot take it, sent, and committed.

use archive_decisions::store::StoringEvent;
use archive_model::{NodeId, ReplicaId};
use archive_replicas::{ReplicaUpload, UploadOpening};
use archive_rpc::{CallError, CallErrorKind};

use super::offset_agreement::OffsetBid;
use super::{PROGRESS, Route, StoringFile, Transfers, UploadFeed, UploadVerdict, UploadedCopy};
use crate::limits;

/// The answer of a replica to the beginning of an upload.
#[derive(Debug)]
pub(crate) enum UploadStart {
    /// A node has the file already.
    Stored(UploadedCopy),
    /// A node takes the bytes.
    Ready(OpenUpload),
}

/// An upload that a node takes, before its first byte.
#[derive(Debug)]
pub(crate) struct OpenUpload {
    upload: ReplicaUpload,
    /// Whether nothing is reported to the coordinator.
    is_quiet: bool,
}

impl Transfers {
    /// Uploads the bytes of `feed` into one replica by `route`, then the admission, and returns the copy. Returns
    /// `None` if the admission never came.
    pub(super) async fn upload_file(
        &self,
        replica: &ReplicaId,
        item: &StoringFile,
        feed: &mut UploadFeed,
        route: Route,
    ) -> Result<Option<UploadedCopy>, CallError> {
        match self.begin_upload(replica, item, route).await? {
            UploadStart::Stored(copy) => Ok(Some(copy)),
            UploadStart::Ready(upload) => self.send_bytes(replica, item, upload, feed).await,
        }
    }

    /// Opens an upload on a node of the replica, and agrees on the first byte to send.
    pub(crate) async fn begin_upload(
        &self,
        replica: &ReplicaId,
        item: &StoringFile,
        route: Route,
    ) -> Result<UploadStart, CallError> {
        let is_quiet = route.is_quiet;
        let points = route
            .offset_bid
            .as_ref()
            .map(OffsetBid::bid_points)
            .unwrap_or_default();
        let (node, opened) = self.open(replica, item, route.avoid, &points).await?;
        if !is_quiet {
            let placed = StoringEvent::Placed {
                replica: replica.clone(),
                node: node.clone(),
            };
            self.mail.send_event(item.name.clone(), placed).await;
        }
        let offer = match opened {
            UploadOpening::Stored(copy) => {
                return Ok(UploadStart::Stored(UploadedCopy {
                    copy,
                    read_back: false,
                }));
            }
            UploadOpening::Ready(offer) => offer,
        };
        let from = match route.offset_bid {
            None => 0,
            Some(bid) => bid.agree_bid(&node, offer.offset, offer.root).await?,
        };
        let upload = offer.start_upload(from).await?;
        Ok(UploadStart::Ready(OpenUpload { upload, is_quiet }))
    }

    /// Sends the bytes of `feed`, then the admission, and returns the copy. Returns `None` if the admission never came.
    pub(crate) async fn send_bytes(
        &self,
        replica: &ReplicaId,
        item: &StoringFile,
        upload: OpenUpload,
        feed: &mut UploadFeed,
    ) -> Result<Option<UploadedCopy>, CallError> {
        let OpenUpload {
            mut upload,
            is_quiet,
        } = upload;
        let tell = async |event| {
            if !is_quiet {
                self.mail.send_event(item.name.clone(), event).await;
            }
        };
        let mut told = self.calls.clock.instant();
        while let Some(bytes) = feed.chunks.recv().await {
            self.calls.taken_call(upload.send_bytes(bytes)).await?;
            if self.calls.clock.elapsed_since(told) >= PROGRESS {
                told = self.calls.clock.instant();
                let replica = replica.clone();
                tell(StoringEvent::Progress { replica }).await;
            }
        }
        // The stream ended or broke off: only the verdict tells which.
        let verdict = match feed.sealed.wait_for(Option::is_some).await {
            Ok(verdict) => verdict.clone(),
            Err(_given_up) => None,
        };
        let admission = match verdict {
            Some(UploadVerdict::Admitted(admission)) => admission,
            Some(UploadVerdict::Forgotten) => {
                // The answer does not matter: a node reaps one day what it still keeps.
                drop(self.calls.answered_call(upload.forget_upload()).await);
                return Ok(None);
            }
            None => return Ok(None),
        };
        let uploaded = StoringEvent::DataUploaded {
            replica: replica.clone(),
        };
        tell(uploaded).await;
        self.commit(upload, &admission, item.size).await.map(Some)
    }

    async fn commit(
        &self,
        upload: ReplicaUpload,
        admission: &str,
        size: u64,
    ) -> Result<UploadedCopy, CallError> {
        let limit = limits::read_limit(size);
        let closing = self
            .calls
            .within_or(limit, upload.close_upload(admission), |_late| {
                CallErrorKind::TimedOut.to_error("the node did not answer after the last byte")
            });
        Ok(UploadedCopy {
            copy: closing.await?,
            read_back: true,
        })
    }

    /// Opens an upload on a node of the replica, or on another node if the first cannot take it.
    async fn open(
        &self,
        replica: &ReplicaId,
        item: &StoringFile,
        mut avoid: Vec<NodeId>,
        points: &[u64],
    ) -> Result<(NodeId, UploadOpening), CallError> {
        let limit = limits::resume_limit(self.calls.stall, points.last().copied().unwrap_or(0));
        let until = self.calls.busy_until();
        let avoided = avoid
            .iter()
            .map(|node| format!("; node {node} is to be avoided"));
        let mut refusals: String = avoided.collect();
        loop {
            let placing = self.calls.replicas.place_file(
                replica,
                &item.name,
                &item.upload,
                item.size,
                &avoid,
            );
            // A monitor asks its nodes, and answers within the limits that it has for them.
            let placed = self.calls.within_or(self.calls.stall, placing, |late| {
                CallErrorKind::TimedOut.to_error(format!("replica {replica}: {late}"))
            });
            let place = placed.await.map_err(|error| {
                let said = format!("{}{refusals}", error.reason);
                error.kind.to_error(said)
            })?;
            let opening = place.open_offer(&item.upload, &item.name, item.size, points.to_vec());
            let error = match self.calls.within_limit(limit, opening).await {
                Ok(opened) => return Ok((place.node, opened)),
                Err(error) => error,
            };
            // A busy node has not yet seen the end of the stream before this one.
            let Err(error) = self.calls.while_busy(until, error).await else {
                continue;
            };
            let another_might = matches!(
                error.kind,
                CallErrorKind::NoSpace
                    | CallErrorKind::Unavailable
                    | CallErrorKind::Storage
                    | CallErrorKind::TimedOut
            );
            if !another_might || avoid.contains(&place.node) {
                return Err(error);
            }
            tracing::info!(file = %item.name, node = %place.node, %error, "another node is tried");
            refusals = format!("{refusals}; node {}: {}", place.node, error.reason);
            avoid.push(place.node);
        }
    }
}

#[cfg(test)]
mod tests;
