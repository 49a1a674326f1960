//! What a replica, or one node of it, lists: message by message, each with a limit of time by the caller.

use archive_model::{FileName, NodeId, ReplicaId, VolumeId};
use archive_rpc::Kind;
use proto_archive::{convert as fields, wire};
use tonic::{Status, Streaming};

use super::copies::{copy, named};
use super::{Copy, Replicas, describe};

/// A listing under way.
#[derive(Debug)]
pub(crate) struct ListedCopies(Streaming<wire::FilesResponse>);

/// One copy of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedCopy {
    pub(crate) name: FileName,
    pub(crate) copy: Copy,
}

/// A part of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) copies: Vec<ListedCopy>,
    pub(crate) end: Option<End>,
}

/// How a listing ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The nodes, and volumes of them, that could not be asked.
    pub(crate) gaps: Vec<(NodeId, Option<VolumeId>, String)>,
    /// What else the listing lacks: nobody can be named for it.
    pub(crate) unnamed: Vec<String>,
}

impl Replicas {
    /// Everything that the replica has, sorted by name, as it comes over the wire.
    pub(crate) async fn listing(
        &self,
        replica: &ReplicaId,
        after: &str,
    ) -> Result<Streaming<wire::FilesResponse>, Status> {
        let request = wire::FilesRequest {
            after: after.to_owned(),
            only_findings: false,
        };
        let mut monitor = self.monitor(replica)?.max_decoding_message_size(16 << 20);
        Ok(monitor.listing(request).await?.into_inner())
    }

    /// Everything that the replica has, sorted by name.
    pub(crate) async fn copies(&self, replica: &ReplicaId) -> Result<ListedCopies, Status> {
        self.listing(replica, "").await.map(ListedCopies)
    }

    /// The copies of one node that are not as they should be.
    pub(crate) async fn findings(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<ListedCopies, Status> {
        let mut client = self.node_client(replica, node).await?;
        let request = wire::FilesRequest {
            after: String::new(),
            only_findings: true,
        };
        let answer = client.files(request).await;
        answer
            .map(|answer| ListedCopies(answer.into_inner()))
            .map_err(|status| self.failed(node, status))
    }
}

impl ListedCopies {
    /// The next part. A listing that ends without [`Page::end`] was cut, which is an error.
    pub(crate) async fn next(&mut self) -> Result<Page, Status> {
        let cut = || Kind::Unavailable.status("the listing ended before its end");
        let message = self.0.message().await?.ok_or_else(cut)?;
        let copies = message.entries.iter().map(|entry| {
            Ok(ListedCopy {
                name: fields::file_name("name", &entry.name)?,
                copy: copy(entry)?,
            })
        });
        Ok(Page {
            copies: copies.collect::<Result<_, Status>>()?,
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
