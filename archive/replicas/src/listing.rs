//! The listing of a replica, or of one node: message by message, each with a time limit of the caller.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the monitor or node cannot be reached, or the listing is cut off or
//! invalid.

use std::sync::Arc;

use archive_ledger::standing::StandingSnapshot;
use archive_model::{FileCopy, FileName, NodeId, ReplicaId};
use archive_rpc::{CallError, CallErrorKind};
use proto_archive::{convert as fields, wire};
use tonic::Streaming;

use super::{AnswerPage, Replicas, gap_is_given_up, gaps_within, is_given_up};

/// The files of a replica, without parts out of service.
#[derive(Debug)]
pub struct ListedCopies {
    replica: ReplicaId,
    messages: Streaming<wire::FilesResponse>,
    now: Arc<StandingSnapshot>,
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
            .map(|answer| self.listed(replica, answer.into_inner()))
            .map_err(|error| self.call_failed(replica, node, error))
    }

    /// Lists all copies that the replica has after a name, sorted by name, as its nodes know them.
    pub async fn copies_after(
        &self,
        replica: &ReplicaId,
        after: Option<&FileName>,
    ) -> Result<ListedCopies, CallError> {
        self.list(replica, after, false).await
    }

    async fn list(
        &self,
        replica: &ReplicaId,
        after: Option<&FileName>,
        on_disk: bool,
    ) -> Result<ListedCopies, CallError> {
        let request = wire::FilesRequest {
            after: fields::or_empty(after),
            only_findings: false,
            on_disk,
        };
        let mut monitor = self.monitor(replica)?.max_decoding_message_size(16 << 20);
        let messages = monitor.listing(request).await?.into_inner();
        Ok(self.listed(replica, messages))
    }

    /// Lists the files of the replica, sorted by name, according to its disks.
    pub async fn list_copies(&self, replica: &ReplicaId) -> Result<ListedCopies, CallError> {
        self.list(replica, None, true).await
    }

    fn listed(
        &self,
        replica: &ReplicaId,
        messages: Streaming<wire::FilesResponse>,
    ) -> ListedCopies {
        ListedCopies {
            replica: replica.clone(),
            messages,
            now: self.standing.current_snapshot(),
        }
    }

    /// Lists the copies of one node with findings.
    pub async fn list_findings(
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
            .map(|answer| self.listed(replica, answer.into_inner()))
            .map_err(|error| self.call_failed(replica, node, error))
    }
}

impl ListedCopies {
    /// Returns the next page, in the order of the names. A listing that ends without its last page was cut off, which
    /// is an error.
    pub async fn next(&mut self) -> Result<AnswerPage<FileCopy>, CallError> {
        let cut = || CallErrorKind::Unavailable.to_error("the listing ended before its end");
        let message = self.messages.message().await?.ok_or_else(cut)?;
        let now = &self.now;
        let replica = &self.replica;
        let copies = message.entries.iter().map(fields::file_copy);
        let mut copies: Vec<FileCopy> = copies.collect::<Result<_, _>>()?;
        copies.retain(|copy| !is_given_up(now, replica, &copy.place.node, &copy.place.volume));
        let end = message.end.map(|end| gaps_within(replica, &end.gaps));
        let mut end = end.transpose()?;
        if let Some(gaps) = &mut end {
            gaps.retain(|gap| !gap_is_given_up(now, gap));
        }
        Ok(AnswerPage { items: copies, end })
    }
}
