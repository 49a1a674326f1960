//! What lies in the sidecars of a node: the admissions beside its files.

use archive_model::{FileName, NodeId, ReplicaId};
use archive_rpc::Kind;
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::{Status, Streaming};

use super::{Replicas, describe};
use crate::restore::combine::Sighting;

/// A node's answer, page by page.
pub(crate) struct Admissions {
    replica: ReplicaId,
    stream: Streaming<wire::AdmissionsResponse>,
}

/// One page.
pub(crate) struct Page {
    /// What was found, or what is wrong with an entry.
    pub(crate) found: Vec<Result<(FileName, Sighting), String>>,
    /// In the last page: how many there were, and what could not be looked at.
    pub(crate) end: Option<(u64, Vec<String>)>,
}

impl Replicas {
    /// Asks a node for every admission that it has, sorted by name.
    pub(crate) async fn admissions(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<Admissions, Status> {
        let nodes = self.state(replica).await?;
        let found = nodes
            .iter()
            .find(|status| status.node == node.as_str() && status.alive);
        let silent = || Kind::Unavailable.status(format!("node {node} is silent"));
        let mut client = self.node(node, &found.ok_or_else(silent)?.endpoint)?;
        let request = wire::FilesRequest {
            after: String::new(),
            only_findings: false,
        };
        Ok(Admissions {
            replica: replica.clone(),
            stream: client.admissions(request).await?.into_inner(),
        })
    }
}

impl Admissions {
    /// The next page; none: the stream has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, Status> {
        let Some(message) = self.stream.message().await? else {
            return Ok(None);
        };
        let found = message.admissions.into_iter().map(|one| self.read(one));
        let found = found.collect();
        let end = message
            .end
            .map(|end| (end.count, end.gaps.iter().map(describe).collect()));
        Ok(Some(Page { found, end }))
    }

    fn read(&self, one: wire::admissions_response::One) -> Result<(FileName, Sighting), String> {
        let entry = one.entry.ok_or("an admission without its entry")?;
        let wrong = |error: archive_rpc::InvalidMessage| format!("{:?}: {error}", entry.name);
        let name = fields::file_name("name", &entry.name).map_err(wrong)?;
        let sighting = Sighting {
            replica: self.replica.clone(),
            node: fields::node_id(&entry.node).map_err(wrong)?,
            volume: fields::volume_id(&entry.volume).map_err(wrong)?,
            stored: fields::optional_time("stored", &entry.stored)
                .map_err(wrong)?
                .unwrap_or(Timestamp::UNIX_EPOCH),
            is_there: entry.condition() != wire::Condition::Missing,
            admission: one.admission,
        };
        Ok((name, sighting))
    }
}
