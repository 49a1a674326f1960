//! The listing of a replica, or of one node: message by message, each with a time limit of the caller.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the monitor or node cannot be reached, or the listing is cut off or invalid.

use std::sync::Arc;

use archive_ledger::standing::Now;
use archive_model::{FileName, NodeId, ReplicaId, VolumeId};
use archive_rpc::{CallError, Kind};
use proto_archive::{convert as fields, wire};
use tonic::Streaming;

use super::copies::{copy, named};
use super::{Copy, Replicas, describe, is_given_up};

/// The files of a replica, without parts out of service.
#[derive(Debug)]
pub struct Listing {
    replica: ReplicaId,
    messages: Streaming<wire::FilesResponse>,
    now: Arc<Now>,
    dropped: u64,
}

impl Listing {
    pub(super) fn new(
        replica: &ReplicaId,
        messages: Streaming<wire::FilesResponse>,
        now: Arc<Now>,
    ) -> Self {
        Self {
            replica: replica.clone(),
            messages,
            now,
            dropped: 0,
        }
    }

    /// Returns the next message; the last has its `end`.
    pub async fn message(&mut self) -> Result<Option<wire::FilesResponse>, CallError> {
        let Some(mut message) = self.messages.message().await? else {
            return Ok(None);
        };
        let count = message.entries.len();
        let (now, replica) = (&self.now, &self.replica);
        message
            .entries
            .retain(|entry| !is_given_up(now, replica, &entry.node, &entry.volume));
        let dropped = count.saturating_sub(message.entries.len());
        self.dropped += u64::try_from(dropped).unwrap_or(u64::MAX);
        if let Some(end) = &mut message.end {
            end.count = end.count.saturating_sub(self.dropped);
            end.gaps
                .retain(|gap| !is_given_up(now, replica, &gap.node, &gap.volume));
        }
        Ok(Some(message))
    }
}

/// A listing under way.
#[derive(Debug)]
pub struct ListedCopies(pub(super) Listing);

/// One copy of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCopy {
    pub name: FileName,
    pub copy: Copy,
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub copies: Vec<ListedCopy>,
    pub end: Option<End>,
}

/// The end of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The nodes, and volumes of them, that could not be asked.
    pub gaps: Vec<(NodeId, Option<VolumeId>, String)>,
    /// Other gaps of the listing, whose part cannot be named.
    pub unnamed: Vec<String>,
}

impl Replicas {
    /// Lists the files of one node, sorted by name.
    pub async fn copies_of(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<ListedCopies, CallError> {
        let mut client = self.node_client(replica, node).await?;
        let answer = client.files(wire::FilesRequest::default()).await;
        answer
            .map(|answer| {
                let now = self.standing.now();
                ListedCopies(Listing::new(replica, answer.into_inner(), now))
            })
            .map_err(|error| self.failed(replica, node, error))
    }

    /// Lists the files of the replica, sorted by name, in wire messages.
    pub async fn listing(&self, replica: &ReplicaId, after: &str) -> Result<Listing, CallError> {
        self.list(replica, after, false).await
    }

    async fn list(
        &self,
        replica: &ReplicaId,
        after: &str,
        on_disk: bool,
    ) -> Result<Listing, CallError> {
        let request = wire::FilesRequest {
            after: after.to_owned(),
            only_findings: false,
            on_disk,
        };
        let mut monitor = self.monitor(replica)?.max_decoding_message_size(16 << 20);
        let messages = monitor.listing(request).await?.into_inner();
        Ok(Listing::new(replica, messages, self.standing.now()))
    }

    /// Lists the files of the replica, sorted by name, according to its disks.
    pub async fn copies(&self, replica: &ReplicaId) -> Result<ListedCopies, CallError> {
        self.list(replica, "", true).await.map(ListedCopies)
    }

    /// Lists the copies of one node with findings.
    pub async fn findings(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<ListedCopies, CallError> {
        let mut client = self.node_client(replica, node).await?;
        let request = wire::FilesRequest {
            only_findings: true,
            ..wire::FilesRequest::default()
        };
        let answer = client.files(request).await;
        answer
            .map(|answer| {
                let now = self.standing.now();
                ListedCopies(Listing::new(replica, answer.into_inner(), now))
            })
            .map_err(|error| self.failed(replica, node, error))
    }
}

impl ListedCopies {
    /// Returns the next page. A listing that ends without its last page was cut off, which is an error.
    pub async fn next(&mut self) -> Result<Page, CallError> {
        let cut = || Kind::Unavailable.error("the listing is incomplete: it ended early");
        let message = self.0.message().await?.ok_or_else(cut)?;
        let copies = message.entries.iter().map(|entry| {
            Ok(ListedCopy {
                name: fields::file_name("name", &entry.name)?,
                copy: copy(entry)?,
            })
        });
        Ok(Page {
            copies: copies.collect::<Result<_, CallError>>()?,
            end: message.end.as_ref().map(end),
        })
    }
}

fn end(end: &wire::files_response::End) -> End {
    let (mut gaps, mut unnamed) = (Vec::new(), Vec::new());
    for gap in &end.gaps {
        match named(gap) {
            Some((node, volume)) => gaps.push((node, volume, gap.reason.clone())),
            None => unnamed.push(describe(gap)),
        }
    }
    End { gaps, unnamed }
}
