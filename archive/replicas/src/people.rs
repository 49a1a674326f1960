//! What people have nodes do: put a copy aside, bring it back, destroy it, adopt it, verify it; disks and modes.
//!
//! A door: wire types end here.

use std::sync::{MutexGuard, PoisonError};

use archive_ledger::standing::Now;
use archive_model::{
    Approval, AtticItem, AtticPlace, FileCopy, FileName, Gap, Mode, NodeId, NodeState, ReplicaId,
    Root, VolumeId, VolumeKey, VolumeState,
};
use archive_rpc::{CallError, InvalidMessage, Kind};
use proto_archive::wire::node_client::NodeClient;
use proto_archive::{convert as fields, wire};
use tonic::Streaming;
use tonic::transport::Channel;

use super::{Replicas, gaps_within, is_given_up};

/// The attics of a node, page by page.
#[derive(Debug)]
pub struct ListedAttic {
    replica: ReplicaId,
    messages: Streaming<wire::AtticResponse>,
}

/// A part of what lies in the attics of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtticPage {
    /// The items, or what is wrong with one that breaks a rule.
    pub items: Vec<Result<AtticItem, InvalidMessage>>,
    /// In the last page: what could not be looked at.
    pub end: Option<Vec<Gap>>,
}

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
        let id = volume.volume.as_ref();
        volume.retired |= id.is_some_and(|id| is_given_up(now, replica, &node.node, id));
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
    ) -> Result<AtticItem, CallError> {
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
        Ok(fields::attic_item(replica, item)?)
    }

    /// Brings a file back from an attic.
    pub async fn take_back(
        &self,
        replica: &ReplicaId,
        (node, volume): (&NodeId, &VolumeId),
        id: &str,
        cause: &Cause,
    ) -> Result<FileCopy, CallError> {
        let mut client = self.live_node_client(replica, node).await?;
        let entry = client.take_back(attic_ref(volume, id, cause)).await?;
        Ok(fields::file_copy(entry.get_ref())?)
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
        let mut attic = self.attic(&place.replica, &place.node, None).await?;
        while let Some(page) = attic.next().await? {
            let mut items = page.items.into_iter().filter_map(Result::ok);
            if let Some(item) = items.find(|item| item.place == *place) {
                return Ok(Some(item));
            }
            let is_there = |gap: &&Gap| gap.volume_id() == Some(&place.volume);
            if let Some(gap) = page.end.iter().flatten().find(is_there) {
                return Err(Kind::Unavailable.error(gap.to_string()));
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
    ) -> Result<FileCopy, CallError> {
        let request = wire::AdoptRequest {
            name: name.to_string(),
            volume: volume.to_string(),
            admission: admission.to_owned(),
        };
        let mut client = self.live_node_client(replica, node).await?;
        Ok(fields::file_copy(client.adopt(request).await?.get_ref())?)
    }

    /// What lies in the attics of a node, only of one file where a name is given.
    pub async fn attic(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: Option<&FileName>,
    ) -> Result<ListedAttic, CallError> {
        let request = wire::AtticRequest {
            name: fields::or_empty(name),
        };
        let mut client = self.live_node_client(replica, node).await?;
        Ok(ListedAttic {
            replica: replica.clone(),
            messages: client.attic(request).await?.into_inner(),
        })
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

    /// The volumes that have copies, as far as is recorded, and that their nodes do not report.
    pub async fn unreported(&self, replica: &ReplicaId) -> Result<Vec<VolumeKey>, CallError> {
        let mut volumes = Vec::new();
        for node in self.heard(replica).await? {
            let unreported = node.volumes.into_iter().filter(|one| one.unreported);
            volumes.extend(keys(replica, &node.node, unreported));
        }
        Ok(volumes)
    }

    /// The volumes that live nodes of a replica still have in service.
    pub async fn volumes_in_service(
        &self,
        replica: &ReplicaId,
    ) -> Result<Vec<VolumeKey>, CallError> {
        let mut volumes = Vec::new();
        for node in self.heard(replica).await? {
            let in_service = node.volumes.into_iter();
            let in_service = in_service.filter(|one| !one.retired && node.alive);
            volumes.extend(keys(replica, &node.node, in_service));
        }
        Ok(volumes)
    }
}

impl ListedAttic {
    /// The next page; none: the stream has ended.
    pub async fn next(&mut self) -> Result<Option<AtticPage>, CallError> {
        let Some(message) = self.messages.message().await? else {
            return Ok(None);
        };
        let items = message.items.into_iter();
        let items = items.map(|item| fields::attic_item(&self.replica, item));
        let end = message.end.map(|end| gaps_within(&self.replica, &end.gaps));
        Ok(Some(AtticPage {
            items: items.collect(),
            end: end.transpose()?,
        }))
    }
}

/// The keys of volumes of one node, but for paths that hold none.
fn keys(
    replica: &ReplicaId,
    node: &NodeId,
    volumes: impl Iterator<Item = VolumeState>,
) -> impl Iterator<Item = VolumeKey> {
    volumes.filter_map(|one| {
        Some(VolumeKey {
            replica: replica.clone(),
            node: node.clone(),
            volume: one.volume?,
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
