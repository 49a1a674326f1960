//! What people have nodes do: put a copy aside, bring it back, destroy it, adopt it, verify it; disks and modes.
//!
//! A door: wire types end here, but for the answers that are handed on as they are.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use archive_daemon::Clock;
use archive_ledger::requests::{AtticItem, AtticPlace};
use archive_ledger::standing::Now;
use archive_model::{
    Approval, FileName, Mode, NodeId, NodeState, ReplicaId, Root, VolumeId, VolumeKey, VolumeState,
};
use archive_rpc::Kind;
use jiff::Timestamp;
use proto_archive::wire::node_client::NodeClient;
use proto_archive::{convert as fields, wire};
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use super::{Replicas, describe, is_given_up};

/// How a copy is, as far as its node has looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// There, and good when it was last read.
    Present,
    /// Known, and not there.
    Missing,
    /// There, and not what was admitted.
    Damaged,
    /// There without a readable sidecar.
    Unexpected,
}

/// One copy of a file in a replica, of whichever condition.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) node: NodeId,
    pub(crate) volume: VolumeId,
    pub(crate) how: How,
    pub(crate) entry: wire::FileEntry,
}

/// What was put aside.
#[derive(Clone, Debug)]
pub(crate) struct Aside(pub(crate) wire::AtticItem);

/// A copy as it was read just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) how: How,
    pub(crate) size: u64,
    /// The root of its bytes; none where they could not all be read.
    pub(crate) root: Option<Root>,
}

impl Found {
    /// The root that its sidecar admits, and when it was stored.
    pub(crate) fn admitted(&self) -> Result<(Root, Timestamp), Status> {
        let root = fields::root("root", &self.entry.root)?;
        Ok((root, fields::time("stored", &self.entry.stored)?))
    }
}

/// In whose name something is done, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) who: String,
    pub(crate) why: String,
    /// Where two persons decided it.
    pub(crate) approval: Option<Approval>,
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
    /// Every copy of a file that the replica knows; or who did not answer, and why.
    pub(crate) async fn known(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Vec<Found>, Status> {
        let request = wire::FindRequest {
            name: name.to_string(),
            on_disk: true,
        };
        let answer = self.monitor(replica)?.locate(request).await?.into_inner();
        let now = self.standing.now();
        let gaps = answer.gaps.iter();
        let gaps = gaps.filter(|gap| !is_given_up(&now, replica, &gap.node, &gap.volume));
        let silent = gaps.map(describe).collect::<Vec<_>>().join("; ");
        if !silent.is_empty() {
            let said = format!("not every volume of replica {replica} answered: {silent}");
            return Err(Kind::Unavailable.status(said));
        }
        let counted =
            |entry: &wire::FileEntry| !is_given_up(&now, replica, &entry.node, &entry.volume);
        let entries = answer.entries.into_iter().filter(counted);
        entries.map(found).collect()
    }

    /// A client of a node, at the address that it last gave.
    pub(crate) async fn client(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<NodeClient<Channel>, Status> {
        let nodes = self.state(replica).await?;
        let silent =
            || Kind::Unavailable.status(format!("node {node} of replica {replica} is silent"));
        let found = nodes
            .iter()
            .find(|state| state.node == *node && state.alive)
            .filter(|state| !state.endpoint.is_empty())
            .ok_or_else(silent)?;
        self.node(replica, node, &found.endpoint)
    }

    /// Reads a copy again, past the page cache.
    pub(crate) async fn judge(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        (node, volume): (&NodeId, &VolumeId),
        (clock, idle): (&Clock, Duration),
    ) -> Result<Judged, Status> {
        let request = wire::VerifyRequest {
            name: name.to_string(),
            volume: volume.to_string(),
        };
        let mut client = self.client(replica, node).await?;
        let mut messages = client.verify(request).await?.into_inner();
        loop {
            let ended =
                || Kind::Unavailable.status(format!("node {node} ended before it had verified"));
            let message = clock.timeout(idle, messages.message()).await;
            let message = message.map_err(|late| Kind::TimedOut.status(late.to_string()))??;
            let message = message.ok_or_else(ended)?;
            let Some(entry) = message.entry else {
                continue;
            };
            let how = found(entry.clone())?.how;
            let said = fields::optional_root("found", &message.found)?;
            let admitted = fields::optional_root("root", &entry.root)?;
            return Ok(Judged {
                how,
                size: entry.size,
                root: said.or(admitted.filter(|_| how == How::Present)),
            });
        }
    }

    /// Moves a copy into the attic of its volume.
    pub(crate) async fn put_aside(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        (node, volume): (&NodeId, &VolumeId),
        checksum: &Root,
        cause: &Cause,
    ) -> Result<Aside, Status> {
        let request = wire::PutAsideRequest {
            name: name.to_string(),
            volume: volume.to_string(),
            checksum: fields::root_bytes(checksum),
            who: cause.who.clone(),
            why: cause.why.clone(),
            approval: cause.approval.clone().map(fields::approval_message),
        };
        let mut client = self.client(replica, node).await?;
        let item = client.put_aside(request).await?.into_inner();
        Ok(Aside(item))
    }

    /// Brings a file back from an attic.
    pub(crate) async fn take_back(
        &self,
        replica: &ReplicaId,
        (node, volume): (&NodeId, &VolumeId),
        id: &str,
        cause: &Cause,
    ) -> Result<Found, Status> {
        let mut client = self.client(replica, node).await?;
        let entry = client.take_back(attic_ref(volume, id, cause)).await?;
        found(entry.into_inner())
    }

    /// Destroys what lies in an attic; how many bytes it had.
    pub(crate) async fn purge(
        &self,
        place: &AtticPlace,
        checksum: Option<&Root>,
        cause: &Cause,
    ) -> Result<u64, Status> {
        let mut client = self.client(&place.replica, &place.node).await?;
        let item = wire::AtticRef {
            checksum: checksum.map(fields::root_bytes).unwrap_or_default(),
            ..attic_ref(&place.volume, &place.id, cause)
        };
        let purged = client.purge(item).await?;
        Ok(purged.into_inner().bytes)
    }

    /// Asks for the item at a place of an attic; none: there is no such item.
    pub(crate) async fn attic_item(&self, place: &AtticPlace) -> Result<Option<AtticItem>, Status> {
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
                    kind: item.kind,
                    bytes: item.bytes,
                }));
            }
            let gaps = message.end.map(|end| end.gaps).unwrap_or_default();
            if let Some(gap) = gaps.iter().find(|gap| gap.volume == place.volume.as_str()) {
                return Err(Kind::Unavailable.status(describe(gap)));
            }
        }
        Ok(None)
    }

    /// Gives a file its admission.
    pub(crate) async fn adopt(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        (node, volume): (&NodeId, &VolumeId),
        admission: &str,
    ) -> Result<Found, Status> {
        let request = wire::AdoptRequest {
            name: name.to_string(),
            volume: volume.to_string(),
            admission: admission.to_owned(),
        };
        let mut client = self.client(replica, node).await?;
        found(client.adopt(request).await?.into_inner())
    }

    /// What lies in the attics of a node, message by message.
    pub(crate) async fn attic(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &str,
    ) -> Result<Streaming<wire::AtticResponse>, Status> {
        let request = wire::AtticRequest {
            name: name.to_owned(),
        };
        let mut client = self.client(replica, node).await?;
        Ok(client.attic(request).await?.into_inner())
    }

    /// Tells a node that a volume is out of service.
    pub(crate) async fn tell_retired(&self, volume: &VolumeKey) -> Result<(), Status> {
        if self.reinstating().as_ref() == Some(volume) {
            return Err(Kind::Busy.status(format!("{volume} comes back into service just now")));
        }
        self.tell(volume, wire::set_volume_request::Order::Retire)
            .await
    }

    /// Sets which retired volume comes back into service: until that is remembered, nobody tells its node otherwise.
    pub(crate) fn set_reinstating(&self, volume: Option<&VolumeKey>) {
        *self.reinstating() = volume.cloned();
    }

    fn reinstating(&self) -> MutexGuard<'_, Option<VolumeKey>> {
        self.reinstating
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells a node that a retired volume is in service again.
    pub(crate) async fn tell_reinstated(&self, volume: &VolumeKey) -> Result<(), Status> {
        self.tell(volume, wire::set_volume_request::Order::Reinstate)
            .await
    }

    async fn tell(
        &self,
        volume: &VolumeKey,
        order: wire::set_volume_request::Order,
    ) -> Result<(), Status> {
        let request = wire::SetVolumeRequest {
            order: order.into(),
            volume: volume.volume.to_string(),
            path: String::new(),
        };
        let mut client = self.client(&volume.replica, &volume.node).await?;
        client.set_volume(request).await.map(drop)
    }

    /// The volumes that have copies, as far as is recorded, and that their nodes do not report.
    pub(crate) async fn unreported(&self, replica: &ReplicaId) -> Result<Vec<VolumeKey>, Status> {
        let mut volumes = Vec::new();
        for node in self.heard(replica).await? {
            let unreported = node.volumes.into_iter().filter(|one| one.unreported);
            volumes.extend(keys(replica, &node.node, unreported));
        }
        Ok(volumes)
    }

    /// The volumes that live nodes of a replica still have in service.
    pub(crate) async fn volumes_in_service(
        &self,
        replica: &ReplicaId,
    ) -> Result<Vec<VolumeKey>, Status> {
        let mut volumes = Vec::new();
        for node in self.heard(replica).await? {
            let in_service = node.volumes.into_iter();
            let in_service = in_service.filter(|one| !one.retired && node.alive);
            volumes.extend(keys(replica, &node.node, in_service));
        }
        Ok(volumes)
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

fn found(entry: wire::FileEntry) -> Result<Found, Status> {
    let how = match entry.condition() {
        wire::Condition::Present => How::Present,
        wire::Condition::Missing => How::Missing,
        wire::Condition::Damaged => How::Damaged,
        wire::Condition::Unexpected => How::Unexpected,
        wire::Condition::Unspecified => {
            let said = format!("field `condition`: {} is none", entry.condition);
            return Err(Kind::Internal.status(said));
        }
    };
    Ok(Found {
        node: fields::node_id(&entry.node)?,
        volume: fields::volume_id(&entry.volume)?,
        how,
        entry,
    })
}
