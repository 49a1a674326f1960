//! Acts of people on nodes: move a copy into the attic, restore it, destroy it, adopt it; volumes and modes.
//!
//! A door: wire types end here.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the node or its monitor cannot be reached or refuses the act.

use std::error::Error;

use archive_ledger::standing::StandingSnapshot;
use archive_model::{
    AtticItem, AtticPlace, Cause, DiskOrder, FileCopy, FileName, Gap, Mode, NodeId, NodeState,
    ReplicaId, Root, VolumeKey, VolumeState,
};
use archive_rpc::{CallError, CallErrorKind, ConnectError, InvalidMessage};
use parking_lot::MutexGuard;
use proto_archive::wire::node_client::NodeClient;
use proto_archive::{convert as fields, wire};
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};

use super::view::NodeView;
use super::{AnswerPage, Replicas, gaps_within, is_given_up};

/// The attics of a node, page by page.
#[derive(Debug)]
pub struct ListedAttic {
    replica: ReplicaId,
    messages: Streaming<wire::AtticResponse>,
}

/// An item in an attic of a node, or the fault of one that breaks a rule.
type FoundItem = Result<AtticItem, InvalidMessage>;

/// An order that changes the state of a replica's nodes: answers from before its end are not fresh, even if the caller
/// goes away before the node has answered.
struct ViewChange<'a> {
    view: &'a NodeView,
    replica: &'a ReplicaId,
}

impl Drop for ViewChange<'_> {
    fn drop(&mut self) {
        self.view.note_change(self.replica);
    }
}

/// Marks the parts of a node that are out of service.
pub(super) fn mark_retired(now: &StandingSnapshot, replica: &ReplicaId, node: &mut NodeState) {
    if now.is_retired_node(replica, &node.node) {
        node.mode = Some(Mode::Retired);
    }
    for volume in &mut node.volumes {
        let id = volume.volume.as_ref();
        volume.retired |= id.is_some_and(|id| is_given_up(now, replica, &node.node, id));
    }
}

impl Replicas {
    /// Calls a node that is alive. Calls that change something are made this way; reads use [`Replicas::node_client`],
    /// which may be of a node that was removed.
    ///
    /// The address is the one in the last answer of the monitor while that is fresh. If there is no connection to the
    /// node there, it may have moved: the monitor is asked, and the call is made once more if it reports another
    /// address. A call whose connection broke under way is not repeated: the node may have done what was asked.
    pub(crate) async fn call_live<M: Clone, T, C>(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        request: M,
        call: impl Fn(NodeClient<Channel>, M) -> C,
    ) -> Result<T, CallError>
    where
        C: Future<Output = Result<Response<T>, Status>>,
    {
        let mut unreachable = None;
        if let Some(nodes) = self.fresh_nodes(replica)
            && let Some(endpoint) = self.live_endpoint(replica, node, &nodes)
        {
            let client = self.dialer.dial_node(replica, node, &endpoint)?;
            match call(client, request.clone()).await {
                Ok(answer) => return Ok(answer.into_inner()),
                Err(status) if ConnectError::within(&status).is_some() => {
                    unreachable = Some((endpoint, self.call_failed(replica, node, status)));
                }
                Err(status) => return Err(self.call_error(replica, node, status)),
            }
        }
        let nodes = self.ask_nodes(replica).await?;
        let silent = || {
            CallErrorKind::Unavailable
                .to_error(format!("node {node} of replica {replica} is silent"))
        };
        let endpoint = self.live_endpoint(replica, node, &nodes);
        let endpoint = endpoint.ok_or_else(silent)?;
        if let Some((tried, error)) = unreachable
            && tried == endpoint
        {
            return Err(error);
        }
        let client = self.dialer.dial_node(replica, node, &endpoint)?;
        let answer = call(client, request).await;
        let answer = answer.map_err(|status| self.call_error(replica, node, status))?;
        Ok(answer.into_inner())
    }

    /// Returns the error of a call to a node. What the node says itself is no reason to connect anew; a connection that
    /// broke is.
    fn call_error(&self, replica: &ReplicaId, node: &NodeId, status: Status) -> CallError {
        if status.source().is_some() {
            self.call_failed(replica, node, status)
        } else {
            status.into()
        }
    }

    /// Returns the address of a node, if it is alive according to an answer of its monitor.
    fn live_endpoint(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        heard: &[NodeState],
    ) -> Option<String> {
        let nodes = self.mark_retired(replica, heard.to_vec());
        let found = nodes.into_iter().find(|one| one.node == *node && one.alive);
        found
            .map(|node| node.endpoint)
            .filter(|endpoint| !endpoint.is_empty())
    }

    /// Gives a node that is alive an order that changes its state, which is asked for anew afterwards.
    async fn order_live<M: Clone, T, C>(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        order: M,
        call: impl Fn(NodeClient<Channel>, M) -> C,
    ) -> Result<T, CallError>
    where
        C: Future<Output = Result<Response<T>, Status>>,
    {
        let _change = ViewChange {
            view: &self.view,
            replica,
        };
        self.call_live(replica, node, order, call).await
    }

    /// Moves the copy on a volume into the attic there.
    pub async fn put_aside(
        &self,
        volume: &VolumeKey,
        name: &FileName,
        checksum: &Root,
        cause: &Cause,
    ) -> Result<AtticItem, CallError> {
        let request = wire::PutAsideRequest {
            name: name.to_string(),
            volume: volume.volume.to_string(),
            checksum: fields::root_bytes(checksum),
            who: cause.who.clone(),
            why: cause.why.clone(),
            approval: cause.approval.clone().map(fields::approval_message),
        };
        let VolumeKey { replica, node, .. } = volume;
        let put = self.call_live(replica, node, request, |mut client, request| async move {
            client.put_aside(request).await
        });
        Ok(fields::attic_item(replica, put.await?)?)
    }

    /// Restores a file from an attic.
    pub async fn restore_item(
        &self,
        place: &AtticPlace,
        cause: &Cause,
    ) -> Result<FileCopy, CallError> {
        let item = attic_ref(place, cause);
        let AtticPlace { replica, node, .. } = place;
        let restored = self.call_live(replica, node, item, |mut client, item| async move {
            client.restore_item(item).await
        });
        Ok(fields::file_copy(&restored.await?)?)
    }

    /// Destroys an item of an attic; returns its size in bytes.
    pub async fn purge_item(
        &self,
        place: &AtticPlace,
        checksum: Option<&Root>,
        cause: &Cause,
    ) -> Result<u64, CallError> {
        let item = wire::AtticRef {
            checksum: checksum.map(fields::root_bytes).unwrap_or_default(),
            ..attic_ref(place, cause)
        };
        let AtticPlace { replica, node, .. } = place;
        let purged = self.call_live(replica, node, item, |mut client, item| async move {
            client.purge(item).await
        });
        Ok(purged.await?.bytes)
    }

    /// Returns the item at a place of an attic, or `None` if there is no such item.
    pub async fn attic_item(&self, place: &AtticPlace) -> Result<Option<AtticItem>, CallError> {
        let mut attic = self.list_attic(&place.replica, &place.node, None).await?;
        while let Some(page) = attic.next().await? {
            let mut items = page.items.into_iter().filter_map(Result::ok);
            if let Some(item) = items.find(|item| item.place == *place) {
                return Ok(Some(item));
            }
            let is_there = |gap: &&Gap| gap.volume_id() == Some(&place.volume);
            if let Some(gap) = page.end.iter().flatten().find(is_there) {
                return Err(CallErrorKind::Unavailable.to_error(gap.to_string()));
            }
        }
        Ok(None)
    }

    /// Gives the file on a volume its admission.
    pub async fn adopt_file(
        &self,
        volume: &VolumeKey,
        name: &FileName,
        admission: &str,
    ) -> Result<FileCopy, CallError> {
        let request = wire::AdoptRequest {
            name: name.to_string(),
            volume: volume.volume.to_string(),
            admission: admission.to_owned(),
        };
        let VolumeKey { replica, node, .. } = volume;
        let adopted = self.call_live(replica, node, request, |mut client, request| async move {
            client.adopt(request).await
        });
        Ok(fields::file_copy(&adopted.await?)?)
    }

    /// Lists the attics of a node, or the items of one file if a name is given.
    pub async fn list_attic(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: Option<&FileName>,
    ) -> Result<ListedAttic, CallError> {
        let request = wire::AtticRequest {
            name: fields::or_empty(name),
        };
        let listed = self.call_live(replica, node, request, |mut client, request| async move {
            client.attic(request).await
        });
        Ok(ListedAttic {
            replica: replica.clone(),
            messages: listed.await?,
        })
    }

    /// Tells a node that a volume is out of service.
    pub async fn tell_retired(&self, volume: &VolumeKey) -> Result<(), CallError> {
        if self.reinstating().as_ref() == Some(volume) {
            return Err(CallErrorKind::Busy
                .to_error(format!("{volume} is being reinstated now; try again later")));
        }
        let order = DiskOrder::Retire(volume.volume.clone());
        self.order_disk(&volume.replica, &volume.node, order)
            .await
            .map(drop)
    }

    /// Sets the retired volume that is being reinstated: until that is stored, its node is not told that it is retired.
    pub fn set_reinstating(&self, volume: Option<&VolumeKey>) {
        *self.reinstating() = volume.cloned();
    }

    fn reinstating(&self) -> MutexGuard<'_, Option<VolumeKey>> {
        self.reinstating.lock()
    }

    /// Tells a node that a retired volume is in service again.
    pub async fn tell_reinstated(&self, volume: &VolumeKey) -> Result<(), CallError> {
        let order = DiskOrder::Reinstate(volume.volume.clone());
        self.order_disk(&volume.replica, &volume.node, order)
            .await
            .map(drop)
    }

    /// Gives a node an order about one of its disks. Returns the state of the node afterwards.
    pub async fn order_disk(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        order: DiskOrder,
    ) -> Result<NodeState, CallError> {
        let order = fields::disk_order_message(order);
        let ordered = self.order_live(replica, node, order, |mut client, order| async move {
            client.set_volume(order).await
        });
        Ok(fields::node_state(ordered.await?)?)
    }

    /// Sets the mode of a node. Returns its state afterwards.
    pub async fn set_mode(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        mode: Mode,
    ) -> Result<NodeState, CallError> {
        let mode = fields::wire_mode(mode).into();
        let order = wire::SetModeRequest { mode };
        let ordered = self.order_live(replica, node, order, |mut client, order| async move {
            client.set_mode(order).await
        });
        Ok(fields::node_state(ordered.await?)?)
    }
}

impl ListedAttic {
    /// Returns the next page, or `None` after the end of the stream.
    pub async fn next(&mut self) -> Result<Option<AnswerPage<FoundItem>>, CallError> {
        let Some(message) = self.messages.message().await? else {
            return Ok(None);
        };
        let items = message.items.into_iter();
        let items = items.map(|item| fields::attic_item(&self.replica, item));
        let end = message.end.map(|end| gaps_within(&self.replica, &end.gaps));
        Ok(Some(AnswerPage {
            items: items.collect(),
            end: end.transpose()?,
        }))
    }
}

/// Lists the volumes that have copies, as far as is recorded, and that their nodes do not report.
pub fn unreported_volumes(replica: &ReplicaId, heard: &[NodeState]) -> Vec<VolumeKey> {
    let keys = heard.iter().flat_map(|node| {
        let unreported = node.volumes.iter().filter(|one| one.unreported);
        keys(replica, &node.node, unreported)
    });
    keys.collect()
}

/// Lists the volumes for which live nodes of a replica answer now: in service, and not offline.
pub fn answering_volumes(replica: &ReplicaId, heard: &[NodeState]) -> Vec<VolumeKey> {
    let keys = heard.iter().filter(|node| node.alive).flat_map(|node| {
        let is_answered = |one: &&VolumeState| !one.retired && one.problem.is_none();
        keys(replica, &node.node, node.volumes.iter().filter(is_answered))
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

/// Returns the keys of the volumes of one node, without paths that have no volume.
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

fn attic_ref(place: &AtticPlace, cause: &Cause) -> wire::AtticRef {
    wire::AtticRef {
        volume: place.volume.to_string(),
        id: place.id.clone(),
        who: cause.who.clone(),
        why: cause.why.clone(),
        ..wire::AtticRef::default()
    }
}
