//! What people have nodes do: put a copy aside, bring it back, destroy it, adopt it, verify it; disks and modes.
//!
//! A door: wire types end here, but for the answers that are handed on as they are.

use std::sync::{MutexGuard, PoisonError};

use archive_ledger::requests::AtticItem;
use archive_ledger::standing::Now;
use archive_model::{
    Approval, AtticPlace, FileName, Mode, NodeId, NodeState, ReplicaId, Root, VolumeId, VolumeKey,
    VolumeState,
};
use archive_rpc::{CallError, Kind};
use proto_archive::wire::node_client::NodeClient;
use proto_archive::{convert as fields, wire};
use tonic::Streaming;
use tonic::transport::Channel;

use super::copies::copy;
use super::{Copy, Replicas, describe, is_given_up};

/// What was put aside.
#[derive(Clone, Debug)]
pub struct Aside(pub wire::AtticItem);

/// In whose name something is done, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Who asked for it, as `role/name`.
    pub who: String,
    /// Why.
    pub why: String,
    /// Where two persons decided it.
    pub approval: Option<Approval>,
}

/// Shows what is out of service as that.
pub(super) fn mark_retired(now: &Now, replica: &ReplicaId, node: &mut NodeState) {
    if now.is_retired_node(replica, &node.node) {
        node.mode = Some(Mode::Retired);
    }
    for volume in &mut node.volumes {
        volume.retired |= is_given_up(now, replica, node.node.as_str(), volume.name());
    }
}

impl Replicas {
    /// A client of a node that is alive, at the address that it last gave: its monitor is asked. For what changes something;
    /// what only reads takes [`Replicas::node_client`], which may be of a node that is gone.
    pub async fn live_node_client(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<NodeClient<Channel>, CallError> {
        let nodes = self.state(replica).await?;
        let silent =
            || Kind::Unavailable.error(format!("node {node} of replica {replica} is silent"));
        let found = nodes
            .iter()
            .find(|state| state.node == *node && state.alive)
            .filter(|state| !state.endpoint.is_empty())
            .ok_or_else(silent)?;
        self.node(replica, node, &found.endpoint)
    }

    /// Moves a copy into the attic of its volume.
    pub async fn put_aside(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        (node, volume): (&NodeId, &VolumeId),
        checksum: &Root,
        cause: &Cause,
    ) -> Result<Aside, CallError> {
        let request = wire::PutAsideRequest {
            name: name.to_string(),
            volume: volume.to_string(),
            checksum: fields::root_bytes(checksum),
            who: cause.who.clone(),
            why: cause.why.clone(),
            approval: cause.approval.clone().map(fields::approval_message),
        };
        let mut client = self.live_node_client(replica, node).await?;
        let item = client.put_aside(request).await?.into_inner();
        Ok(Aside(item))
    }

    /// Brings a file back from an attic.
    pub async fn take_back(
        &self,
        replica: &ReplicaId,
        (node, volume): (&NodeId, &VolumeId),
        id: &str,
        cause: &Cause,
    ) -> Result<(FileName, Copy), CallError> {
        let mut client = self.live_node_client(replica, node).await?;
        let entry = client.take_back(attic_ref(volume, id, cause)).await?;
        let entry = entry.into_inner();
        Ok((fields::file_name("name", &entry.name)?, copy(&entry)?))
    }

    /// Destroys what lies in an attic; how many bytes it had.
    pub async fn purge(
        &self,
        place: &AtticPlace,
        checksum: Option<&Root>,
        cause: &Cause,
    ) -> Result<u64, CallError> {
        let mut client = self.live_node_client(&place.replica, &place.node).await?;
        let item = wire::AtticRef {
            checksum: checksum.map(fields::root_bytes).unwrap_or_default(),
            ..attic_ref(&place.volume, &place.id, cause)
        };
        let purged = client.purge(item).await?;
        Ok(purged.into_inner().bytes)
    }

    /// Asks for the item at a place of an attic; none: there is no such item.
    pub async fn attic_item(&self, place: &AtticPlace) -> Result<Option<AtticItem>, CallError> {
        let mut messages = self.attic(&place.replica, &place.node, "").await?;
        while let Some(message) = messages.message().await? {
            let is_it = |item: &wire::AtticItem| {
                item.id == place.id && item.volume == place.volume.as_str()
            };
            if let Some(item) = message.items.into_iter().find(is_it) {
                let name = (!item.name.is_empty())
                    .then(|| fields::file_name("name", &item.name))
                    .transpose()?;
                return Ok(Some(AtticItem {
                    name,
                    kind: fields::attic_kind("kind", item.kind)?,
                    bytes: item.bytes,
                }));
            }
            let gaps = message.end.map(|end| end.gaps).unwrap_or_default();
            if let Some(gap) = gaps.iter().find(|gap| gap.volume == place.volume.as_str()) {
                return Err(Kind::Unavailable.error(describe(gap)));
            }
        }
        Ok(None)
    }

    /// Gives a file its admission.
    pub async fn adopt(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        (node, volume): (&NodeId, &VolumeId),
        admission: &str,
    ) -> Result<Copy, CallError> {
        let request = wire::AdoptRequest {
            name: name.to_string(),
            volume: volume.to_string(),
            admission: admission.to_owned(),
        };
        let mut client = self.live_node_client(replica, node).await?;
        copy(&client.adopt(request).await?.into_inner())
    }

    /// What lies in the attics of a node, message by message.
    pub async fn attic(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &str,
    ) -> Result<Streaming<wire::AtticResponse>, CallError> {
        let request = wire::AtticRequest {
            name: name.to_owned(),
        };
        let mut client = self.live_node_client(replica, node).await?;
        Ok(client.attic(request).await?.into_inner())
    }

    /// Tells a node that a volume is out of service.
    pub async fn tell_retired(&self, volume: &VolumeKey) -> Result<(), CallError> {
        if self.reinstating().as_ref() == Some(volume) {
            return Err(Kind::Busy.error(format!("{volume} comes back into service just now")));
        }
        self.tell(volume, wire::set_volume_request::Order::Retire)
            .await
    }

    /// Sets which retired volume comes back into service: until that is remembered, nobody tells its node otherwise.
    pub fn set_reinstating(&self, volume: Option<&VolumeKey>) {
        *self.reinstating() = volume.cloned();
    }

    fn reinstating(&self) -> MutexGuard<'_, Option<VolumeKey>> {
        self.reinstating
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells a node that a retired volume is in service again.
    pub async fn tell_reinstated(&self, volume: &VolumeKey) -> Result<(), CallError> {
        self.tell(volume, wire::set_volume_request::Order::Reinstate)
            .await
    }

    async fn tell(
        &self,
        volume: &VolumeKey,
        order: wire::set_volume_request::Order,
    ) -> Result<(), CallError> {
        let request = wire::SetVolumeRequest {
            order: order.into(),
            volume: volume.volume.to_string(),
            path: String::new(),
        };
        let mut client = self.live_node_client(&volume.replica, &volume.node).await?;
        client.set_volume(request).await?;
        Ok(())
    }
}

/// Lists the volumes that have copies, as far as is recorded, and that their nodes do not report.
pub fn unreported(replica: &ReplicaId, heard: &[NodeState]) -> Vec<VolumeKey> {
    let keys = heard.iter().flat_map(|node| {
        let unreported = node.volumes.iter().filter(|one| one.unreported);
        keys(replica, &node.node, unreported)
    });
    keys.collect()
}

/// Lists the volumes that live nodes of a replica still have in service.
pub fn volumes_in_service(replica: &ReplicaId, heard: &[NodeState]) -> Vec<VolumeKey> {
    let keys = heard.iter().filter(|node| node.alive).flat_map(|node| {
        let in_service = node.volumes.iter().filter(|one| !one.retired);
        keys(replica, &node.node, in_service)
    });
    keys.collect()
}

/// The keys of volumes of one node, but for paths that hold none.
fn keys<'a>(
    replica: &ReplicaId,
    node: &NodeId,
    volumes: impl Iterator<Item = &'a VolumeState>,
) -> impl Iterator<Item = VolumeKey> {
    volumes.filter_map(|one| {
        Some(VolumeKey {
            replica: replica.clone(),
            node: node.clone(),
            volume: one.volume.clone()?,
        })
    })
}

fn attic_ref(volume: &VolumeId, id: &str, cause: &Cause) -> wire::AtticRef {
    wire::AtticRef {
        volume: volume.to_string(),
        id: id.to_owned(),
        who: cause.who.clone(),
        why: cause.why.clone(),
        ..wire::AtticRef::default()
    }
}
