//! Calls to the replicas of the archive: to their monitors, and to the nodes that these name.
//!
//! Owns who is asked: a node is dialled under its own name, so that no other one answers for it, and parts out of
//! service are neither asked nor heard. A door: wire messages are read here, once, and become nouns of the archive.
//!
//! Not promised: that an answer is true. A node may lie about a copy; callers check proofs against roots.
//!
//! The rooms in reading order:
//!
//! - `settings` (of one replica), `dialer` (connections, and who answers there), `members` (which nodes and volumes
//!   belong to which replica);
//! - `view` (the last answers of the monitors), `nodes` (the states of the nodes, out of the view or asked for),
//!   `watch` (the worker that asks once a second);
//! - `copies` (where a file is, its bytes, and a second read of them), `listing` (all that a replica has), `page` (a
//!   part of a long answer);
//! - `upload` (bytes into a node), `mend` (groups replaced in place), `people` (copies moved into attics, restored,
//!   adopted);
//! - `admissions` and `removals` (the contents of sidecars and attics of a node, for a restore).
//!
//! # Errors
//! All functions fail with a [`CallError`] if the monitor or node cannot be reached, refuses the call, or sends an
//! invalid answer.

#![warn(missing_docs)]

mod admissions;
mod copies;
mod dialer;
mod listing;
mod members;
mod mend;
mod nodes;
mod page;
mod people;
mod removals;
mod settings;
mod upload;
mod view;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use archive_daemon::Clock;
use archive_ledger::standing::{StandingSnapshot, StandingView};
use archive_model::{
    FileName, Gap, NodeId, NodeState, ReplicaId, ReplicaKind, StoreFailure, UploadId, VolumeId,
    VolumeKey,
};
use archive_rpc::{CallError, CallErrorKind, ConnectError, InvalidMessage};
use parking_lot::{Mutex, MutexGuard};
use proto_archive::wire::node_client::NodeClient;
use proto_archive::wire::replica_client::ReplicaClient;
use proto_archive::{convert as fields, wire};
use tonic::transport::Channel;

pub use admissions::Admissions;
pub use copies::{
    LocatedCopies, ReadSegments, Segment, VerifiedCopy, VerifyAnswer, admitted_content,
};
pub use dialer::Dialer;
use dialer::Lane;
pub use listing::ListedCopies;
use members::Members;
pub use mend::{MendAnswer, MendCall};
pub use page::AnswerPage;
pub use people::{ListedAttic, answering_volumes, unreported_volumes, volumes_in_service};
pub use settings::ReplicaSettings;
pub use upload::{ChosenNode, ReplicaUpload, UploadOpening};
use view::NodeView;
pub use view::{LastMonitorAnswer, Silence};
pub use watch::NodeWatch;

/// The replicas of the archive, as the repository calls them.
#[derive(Debug)]
pub struct Replicas {
    monitors: BTreeMap<ReplicaId, ReplicaClient<Channel>>,
    dialer: Dialer,
    /// The last answers of the monitors.
    view: NodeView,
    /// The nodes, and the volumes with copies, of each replica: each monitor receives them with every question about
    /// its state.
    members: Mutex<Members>,
    reinstating: Mutex<Option<VolumeKey>>,
    /// The parts out of service, which are neither asked nor heard.
    standing: StandingView,
    clock: Clock,
}

impl Replicas {
    /// Creates clients that dial each monitor at the first call.
    ///
    /// # Errors
    /// [`ConnectError`] if the address of a monitor is invalid.
    pub fn new(
        replicas: &[ReplicaSettings],
        dialer: Dialer,
        standing: StandingView,
        clock: Clock,
    ) -> Result<Self, ConnectError> {
        let mut monitors = BTreeMap::new();
        for replica in replicas {
            monitors.insert(replica.id.clone(), dialer.dial_monitor(replica)?);
        }
        let is_checksum = |one: &&ReplicaSettings| one.kind == ReplicaKind::Checksum;
        let checksum = replicas.iter().filter(is_checksum);
        let members = Members {
            checksum: checksum.map(|one| one.id.clone()).collect(),
            ..Members::default()
        };
        Ok(Self {
            monitors,
            dialer,
            view: NodeView::default(),
            members: Mutex::new(members),
            reinstating: Mutex::default(),
            standing,
            clock,
        })
    }

    /// Returns the parts that are out of service now.
    pub fn standing_now(&self) -> Arc<StandingSnapshot> {
        self.standing.current_snapshot()
    }

    fn monitor(&self, replica: &ReplicaId) -> Result<ReplicaClient<Channel>, CallError> {
        let unknown = || {
            CallErrorKind::NotFound.to_error(format!("replica {replica} is not in the settings"))
        };
        if self.standing.current_snapshot().is_retired(replica) {
            return Err(CallErrorKind::NotFound.to_error(format!("replica {replica} is retired")));
        }
        self.monitors.get(replica).cloned().ok_or_else(unknown)
    }

    /// Returns a connection of its own to a node at its reported address: a batch job that does not read delays no
    /// other answers.
    ///
    /// # Errors
    /// `Unavailable` if the reported address is invalid.
    pub fn batch_channel(&self, state: &NodeState) -> Result<Channel, CallError> {
        self.dialer.batch_channel(state)
    }

    /// Returns a client for a node of the replica at its present address. Errors of its calls go through
    /// [`Replicas::call_failed`].
    pub(crate) async fn node_client(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<NodeClient<Channel>, CallError> {
        let endpoint = self.endpoint(replica, node).await?;
        self.dialer.dial_node(replica, node, &endpoint)
    }

    /// Returns a connection to a node of the replica for a stream of bytes.
    pub(crate) async fn node_lane(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<Lane, CallError> {
        let endpoint = self.endpoint(replica, node).await?;
        self.dialer.dial_lane(replica, node, &endpoint)
    }

    /// Returns the address at which a node was dialled, or its present one.
    async fn endpoint(&self, replica: &ReplicaId, node: &NodeId) -> Result<String, CallError> {
        if let Some(endpoint) = self.dialer.dialled_endpoint(replica, node) {
            return Ok(endpoint);
        }
        let nodes = self.nodes_state(replica).await?;
        let found = nodes
            .iter()
            .find(|state| state.node == *node && !state.endpoint.is_empty());
        let silent = || CallErrorKind::Unavailable.to_error(format!("node {node} is silent"));
        Ok(found.ok_or_else(silent)?.endpoint.clone())
    }

    /// Notes that a call to a node failed, and returns the error. The node may have moved: its address is asked for
    /// again next time.
    pub(crate) fn call_failed(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        error: impl Into<CallError>,
    ) -> CallError {
        let error = error.into();
        if matches!(
            error.kind,
            CallErrorKind::Unavailable
                | CallErrorKind::TimedOut
                | CallErrorKind::Refused
                | CallErrorKind::Internal
        ) {
            self.dialer.forget_node(replica, node);
            self.view.note_change(replica);
        }
        error
    }

    /// Asks for the node that is to store the file.
    pub async fn place_file(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        upload: &UploadId,
        size: u64,
        avoid: &[NodeId],
    ) -> Result<ChosenNode, CallError> {
        let avoid = {
            let members = self.lock_members();
            let now = self.standing.current_snapshot();
            let foreign = members.foreign_nodes(&now, replica);
            avoid.iter().chain(foreign).map(NodeId::to_string).collect()
        };
        let request = wire::PlaceRequest {
            name: name.to_string(),
            upload: upload.to_string(),
            size,
            avoid,
        };
        let placed = self.monitor(replica)?.place(request).await?.into_inner();
        let node = fields::node_id(&placed.node)?;
        // The files of the node are missed if it is silent: from now on, and after a restart because of the rows that
        // name it.
        self.add_members(replica, [&node]);
        Ok(ChosenNode {
            lane: self.dialer.dial_lane(replica, &node, &placed.endpoint)?,
            node,
        })
    }

    /// Sets the nodes of a replica.
    pub fn set_members(&self, replica: &ReplicaId, nodes: Vec<NodeId>) {
        self.lock_members()
            .nodes
            .insert(replica.clone(), nodes.into_iter().collect());
        self.view.note_change(replica);
    }

    /// Adds nodes to a replica, once its nodes were set. Retired ones do not count.
    pub fn add_members<'a>(
        &self,
        replica: &ReplicaId,
        nodes: impl IntoIterator<Item = &'a NodeId>,
    ) {
        let mut members = self.lock_members();
        let Some(known) = members.nodes.get_mut(replica) else {
            return;
        };
        let before = known.len();
        known.extend(nodes.into_iter().cloned());
        if known.len() > before {
            self.view.note_change(replica);
        }
    }

    /// Sets the volumes with copies, of all replicas.
    pub fn set_volumes(&self, volumes: BTreeSet<VolumeKey>) {
        let mut members = self.lock_members();
        if members.volumes != volumes {
            members.volumes = volumes;
            for replica in self.monitors.keys() {
                self.view.note_change(replica);
            }
        }
    }

    fn lock_members(&self) -> MutexGuard<'_, Members> {
        self.members.lock()
    }
}

/// Returns whether a volume of the replica is out of service: its copies do not count, and are not missed.
pub fn is_given_up(
    now: &StandingSnapshot,
    replica: &ReplicaId,
    node: &NodeId,
    volume: &VolumeId,
) -> bool {
    let key = VolumeKey {
        replica: replica.clone(),
        node: node.clone(),
        volume: volume.clone(),
    };
    now.volumes.contains_key(&key)
}

/// Whether what a gap names is out of service.
fn gap_is_given_up(now: &StandingSnapshot, gap: &Gap) -> bool {
    let volume = gap.node.as_ref().zip(gap.volume_id());
    volume.is_some_and(|(node, volume)| is_given_up(now, &gap.replica, node, volume))
}

/// Reads what an answer of a part of the replica lacks.
fn gaps_within(replica: &ReplicaId, gaps: &[wire::Gap]) -> Result<Vec<Gap>, InvalidMessage> {
    let gaps = gaps.iter();
    gaps.map(|gap| fields::gap_within(replica.clone(), gap))
        .collect()
}

/// Returns why a replica does not have the file, from the error of a call.
pub fn store_failure(error: &CallError, doing: &str) -> StoreFailure {
    let said = error.reason.clone();
    match error.kind {
        CallErrorKind::NoSpace => StoreFailure::NoSpace,
        CallErrorKind::Exists => StoreFailure::Conflict,
        CallErrorKind::TimedOut => StoreFailure::TimedOut(doing.to_owned()),
        CallErrorKind::Storage => StoreFailure::Disk(said),
        CallErrorKind::Busy => StoreFailure::NotAccepting(said),
        CallErrorKind::Mismatch => StoreFailure::ReadBackDiffers,
        CallErrorKind::Invalid
        | CallErrorKind::NotFound
        | CallErrorKind::NotEnoughReplicas
        | CallErrorKind::Damaged
        | CallErrorKind::Refused
        | CallErrorKind::Unavailable
        | CallErrorKind::Internal => StoreFailure::Unreachable(said),
    }
}

#[cfg(test)]
mod tests {
    use archive_rpc::RpcLimits;
    use archive_rpc::testing::TestAuthority;

    use super::*;

    fn dialer() -> Dialer {
        let credentials = TestAuthority::new().credentials(&["repository/kb"]);
        Dialer::new(credentials, RpcLimits::default())
    }

    /// Fails if a call to a node of one replica goes to the node of the same name in another, because that was dialled
    /// first.
    #[tokio::test]
    async fn namesake_in_another_replica_is_not_asked() {
        let one = ReplicaId::new("one").unwrap();
        let two = ReplicaId::new("two").unwrap();
        let node = NodeId::new("n-1").unwrap();
        let replicas = Replicas::new(
            &[],
            dialer(),
            StandingView::default(),
            Clock::system_clock(),
        )
        .unwrap();
        replicas
            .dialer
            .dial_node(&one, &node, "127.0.0.1:1")
            .unwrap();
        assert!(replicas.node_client(&one, &node).await.is_ok());
        let error = replicas.node_client(&two, &node).await.unwrap_err();
        assert_eq!(error.kind, CallErrorKind::Unavailable, "{error}");
        let broken = CallErrorKind::Unavailable.to_error("broken");
        drop(replicas.call_failed(&two, &node, broken));
        assert!(replicas.node_client(&one, &node).await.is_ok());
    }
}
