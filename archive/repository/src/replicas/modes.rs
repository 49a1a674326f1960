//! Which nodes and volumes of a replica are drained, and all that one node has.

use archive_model::{NodeId, ReplicaId};
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::Replicas;
use super::listing::{ListedCopies, Listing};
use crate::drain::{Mode, NodeModes};

impl Replicas {
    /// What the nodes of a replica say of their modes.
    pub(crate) async fn modes(&self, replica: &ReplicaId) -> Result<Vec<NodeModes>, Status> {
        let nodes = self.state(replica).await?;
        nodes.iter().map(modes).collect()
    }

    /// Everything that one node has, sorted by name.
    pub(crate) async fn copies_of(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<ListedCopies, Status> {
        let mut client = self.node_client(replica, node).await?;
        let answer = client.files(wire::FilesRequest::default()).await;
        answer
            .map(|answer| {
                let now = self.standing.now();
                ListedCopies(Listing::new(replica, answer.into_inner(), now))
            })
            .map_err(|status| self.failed(replica, node, status))
    }
}

fn modes(status: &wire::NodeStatus) -> Result<NodeModes, Status> {
    let mut volumes = Vec::new();
    for volume in status.volumes.iter().filter(|one| !one.volume.is_empty()) {
        let mode = if volume.retired {
            Mode::Retired
        } else {
            mode(&volume.mode)
        };
        volumes.push((fields::volume_id(&volume.volume)?, mode));
    }
    Ok(NodeModes {
        node: fields::node_id(&status.node)?,
        is_alive: status.alive,
        mode: mode(&status.mode),
        volumes,
    })
}

fn mode(word: &str) -> Mode {
    match word {
        "draining" => Mode::Draining,
        "retired" => Mode::Retired,
        _ => Mode::Stays,
    }
}
