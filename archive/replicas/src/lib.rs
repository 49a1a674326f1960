//! Calls to the replicas of the archive: to their monitors, and to the nodes that these name.
//!
//! Owns who is asked: a node is dialled under its own name, so that no other one answers for it, and parts out of service
//! are neither asked nor heard. A door: wire messages are read here, once, and become nouns of the archive.
//!
//! Not promised: that an answer is true. A node may lie about a copy; callers check proofs against roots.
//!
//! The rooms in reading order:
//!
//! - `members` (which nodes and volumes belong to which replica), `settings` (of one replica), `nodes` (their states);
//! - `copies` (where a file is, its bytes, and a second read of them), `listing` (all that a replica has), `page` (a part
//!   of a long answer);
//! - `upload` (bytes into a node), `mend` (groups replaced in place), `people` (copies moved into attics, restored, adopted);
//! - `admissions` and `removals` (the contents of sidecars and attics of a node, for a restore).
//!
//! # Errors
//! All functions fail with a [`CallError`] if the monitor or node cannot be reached, refuses the call, or sends an invalid
//! answer.

mod admissions;
mod copies;
mod listing;
mod members;
mod mend;
mod nodes;
mod page;
mod people;
mod removals;
mod settings;
mod upload;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archive_ledger::standing::{Now, View};
use archive_model::{
    FileName, Gap, NodeId, NodeState, ReplicaId, ReplicaKind, StoreFailure, UploadId, VolumeId,
    VolumeKey,
};
use archive_rpc::{
    CallError, ConnectError, Credentials, Expected, Grant, InvalidMessage, Kind, Limits, Role,
    connect_lazy,
};
use proto_archive::wire::node_client::NodeClient;
use proto_archive::wire::replica_client::ReplicaClient;
use proto_archive::{convert as fields, wire};
use tonic::transport::Channel;

pub use admissions::Admissions;
pub use copies::{Located, ReadSegments, Segment, Verified, VerifiedCopy, admitted};
pub use listing::ListedCopies;
use members::Members;
pub use mend::{MendOrder, Mended, Mending};
pub use page::Page;
pub use people::{Cause, ListedAttic, unreported, volumes_in_service};
pub use settings::ReplicaSettings;
pub use upload::{ChosenNode, Opened, Upload};

/// The time in which a monitor must report the states of its nodes: it knows them without asking.
const STATE: Duration = Duration::from_secs(5);

/// The address where a node was dialled, and the channel to it.
type Dialled = (String, NodeClient<Channel>);

/// The replicas of the archive, as the repository calls them.
#[derive(Debug)]
pub struct Replicas {
    monitors: BTreeMap<ReplicaId, ReplicaClient<Channel>>,
    credentials: Credentials,
    limits: Limits,
    /// The connections by replica and id: two replicas may each have a node of one name, and each is asked for its own copies.
    nodes: Mutex<BTreeMap<(ReplicaId, NodeId), Dialled>>,
    /// Nodes that were silent when their monitor was last asked.
    silent: Mutex<BTreeMap<ReplicaId, BTreeSet<NodeId>>>,
    /// The nodes, and the volumes with copies, of each replica: each monitor is told with every question about its state.
    members: Mutex<Members>,
    reinstating: Mutex<Option<VolumeKey>>,
    /// The parts out of service, which are neither asked nor heard.
    standing: View,
}

impl Replicas {
    /// Creates clients that dial each monitor at the first call.
    ///
    /// # Errors
    /// [`ConnectError`] if the address of a monitor is invalid.
    pub fn new(
        replicas: &[ReplicaSettings],
        credentials: Credentials,
        limits: Limits,
        standing: View,
    ) -> Result<Self, ConnectError> {
        // A caller that does not read must not delay the answers of others.
        let limits = limits.with_independent_streams();
        let mut monitors = BTreeMap::new();
        for replica in replicas {
            let expected = expected(Role::Monitor, replica.id.as_str())?;
            let channel = connect_lazy(&replica.monitor, &credentials, &expected, &limits)?;
            monitors.insert(replica.id.clone(), ReplicaClient::new(channel));
        }
        let is_checksum = |one: &&ReplicaSettings| one.kind == ReplicaKind::Checksum;
        let checksum = replicas.iter().filter(is_checksum);
        let members = Members {
            checksum: checksum.map(|one| one.id.clone()).collect(),
            ..Members::default()
        };
        Ok(Self {
            monitors,
            credentials,
            limits,
            nodes: Mutex::default(),
            silent: Mutex::default(),
            members: Mutex::new(members),
            reinstating: Mutex::default(),
            standing,
        })
    }

    /// Returns the parts that are out of service now.
    pub fn now(&self) -> Arc<Now> {
        self.standing.now()
    }

    fn monitor(&self, replica: &ReplicaId) -> Result<ReplicaClient<Channel>, CallError> {
        let unknown = || Kind::NotFound.error(format!("replica {replica} is not in the settings"));
        if self.standing.now().is_retired(replica) {
            return Err(Kind::NotFound.error(format!("replica {replica} is retired")));
        }
        self.monitors.get(replica).cloned().ok_or_else(unknown)
    }

    /// Returns a connection of its own to a node at its reported address: a batch job that does not read delays no other answers.
    ///
    /// # Errors
    /// `Unavailable` if the reported address is invalid.
    pub fn batch_channel(&self, state: &NodeState) -> Result<Channel, CallError> {
        let limits = self.limits.with_small_messages();
        self.dial(&state.node, &state.endpoint, &limits)
    }

    fn dial(&self, node: &NodeId, endpoint: &str, limits: &Limits) -> Result<Channel, CallError> {
        expected(Role::Node, node.as_str())
            .and_then(|expected| connect_lazy(endpoint, &self.credentials, &expected, limits))
            .map_err(|error| Kind::Unavailable.error(error.to_string()))
    }

    fn node(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        endpoint: &str,
    ) -> Result<NodeClient<Channel>, CallError> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (replica.clone(), node.clone());
        if let Some((_, client)) = nodes.get(&key).filter(|(known, _)| known == endpoint) {
            return Ok(client.clone());
        }
        let channel = self.dial(node, endpoint, &self.limits)?;
        let client = NodeClient::new(channel).max_decoding_message_size(16 << 20);
        nodes.insert(key, (endpoint.to_owned(), client.clone()));
        Ok(client)
    }

    /// Returns a client for a node of the replica at its present address. Errors of its calls go through [`Replicas::failed`].
    pub(crate) async fn node_client(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<NodeClient<Channel>, CallError> {
        let known = self
            .nodes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&(replica.clone(), node.clone()))
            .map(|(_, client)| client.clone());
        if let Some(client) = known {
            return Ok(client);
        }
        let nodes = self.state(replica).await?;
        let found = nodes
            .iter()
            .find(|state| state.node == *node && !state.endpoint.is_empty());
        let silent = || Kind::Unavailable.error(format!("node {node} is silent"));
        self.node(replica, node, &found.ok_or_else(silent)?.endpoint)
    }

    /// Notes that a call to a node failed, and returns the error. The node may have moved: its address is asked for
    /// again next time.
    pub(crate) fn failed(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        error: impl Into<CallError>,
    ) -> CallError {
        let error = error.into();
        if matches!(
            error.kind,
            Kind::Unavailable | Kind::TimedOut | Kind::Refused | Kind::Internal
        ) {
            self.nodes
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&(replica.clone(), node.clone()));
        }
        error
    }

    /// Asks for the node that is to store the file.
    pub async fn place(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        upload: &UploadId,
        size: u64,
        avoid: &[NodeId],
    ) -> Result<ChosenNode, CallError> {
        let avoid = {
            let (members, now) = (self.lock_members(), self.standing.now());
            let foreign = members.foreign(&now, replica);
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
            client: self.node(replica, &node, &placed.endpoint)?,
            node,
        })
    }

    /// Sets the nodes of a replica.
    pub fn set_members(&self, replica: &ReplicaId, nodes: Vec<NodeId>) {
        self.lock_members()
            .nodes
            .insert(replica.clone(), nodes.into_iter().collect());
    }

    /// Adds nodes to a replica, once its nodes were set. Retired ones do not count.
    pub fn add_members<'a>(
        &self,
        replica: &ReplicaId,
        nodes: impl IntoIterator<Item = &'a NodeId>,
    ) {
        if let Some(members) = self.lock_members().nodes.get_mut(replica) {
            members.extend(nodes.into_iter().cloned());
        }
    }

    /// Sets the volumes with copies, of all replicas.
    pub fn set_volumes(&self, volumes: BTreeSet<VolumeKey>) {
        self.lock_members().volumes = volumes;
    }

    fn lock_members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the nodes of a replica, as its monitor sees them. The monitor is told which nodes to miss.
    pub async fn state(&self, replica: &ReplicaId) -> Result<Vec<NodeState>, CallError> {
        Ok(self.marked(replica, self.heard(replica).await?))
    }

    /// Returns the nodes of a replica in their own words, without the marks of [`Replicas::marked`].
    pub async fn heard(&self, replica: &ReplicaId) -> Result<Vec<NodeState>, CallError> {
        let (members, volumes) = {
            let members = self.lock_members();
            let volumes = members.volumes.iter();
            let volumes = volumes.filter(|key| key.replica == *replica);
            let volumes: Vec<_> = volumes.cloned().collect();
            (members.nodes.get(replica).cloned(), volumes)
        };
        let unknown =
            || Kind::Unavailable.error(format!("the nodes of replica {replica} are not read yet"));
        let now = self.standing.now();
        let volumes = known_volumes(volumes.iter().filter(|key| !now.volumes.contains_key(*key)));
        let in_service = |node: &&NodeId| !now.is_retired_node(replica, node);
        let known = members.ok_or_else(unknown)?;
        let known = known.iter().filter(in_service);
        let known = known.map(NodeId::to_string).collect();
        let retired = now.retired_nodes(replica);
        let retired = retired.iter().map(NodeId::to_string).collect();
        let request = wire::ReplicaStateRequest {
            known,
            retired,
            volumes,
        };
        let mut monitor = self.monitor(replica)?;
        let answer = tokio::time::timeout(STATE, monitor.replica_state(request)).await;
        let late = |_elapsed| {
            Kind::TimedOut.error(format!(
                "the monitor of replica {replica} did not answer within {STATE:?}; see that it is running"
            ))
        };
        let nodes = answer.map_err(late)??.into_inner().nodes.into_iter();
        let nodes: Vec<NodeState> = nodes.map(fields::node_state).collect::<Result<_, _>>()?;
        let silent = nodes.iter().filter(|node| !node.alive);
        let silent = silent.map(|node| node.node.clone()).collect();
        self.lock_silent().insert(replica.clone(), silent);
        Ok(nodes)
    }

    /// Returns whether a node was silent when its monitor was last asked, which is about every second.
    pub fn is_silent(&self, replica: &ReplicaId, node: &NodeId) -> bool {
        let silent = self.lock_silent();
        silent
            .get(replica)
            .is_some_and(|nodes| nodes.contains(node))
    }

    fn lock_silent(&self) -> MutexGuard<'_, BTreeMap<ReplicaId, BTreeSet<NodeId>>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Groups volumes by their nodes; both ascend.
fn known_volumes<'a>(volumes: impl Iterator<Item = &'a VolumeKey>) -> Vec<wire::KnownVolumes> {
    let mut known: Vec<wire::KnownVolumes> = Vec::new();
    for VolumeKey { node, volume, .. } in volumes {
        let volume = volume.to_string();
        match known.last_mut() {
            Some(last) if last.node == node.as_str() => last.volumes.push(volume),
            _ => known.push(wire::KnownVolumes {
                node: node.to_string(),
                volumes: vec![volume],
            }),
        }
    }
    known
}

/// Returns the identity that must answer. A name that no certificate can have is refused, so that no other one answers.
fn expected(role: Role, name: &str) -> Result<Expected, ConnectError> {
    Grant::new(role, name)
        .map(|grant| Expected::named(&grant))
        .map_err(|error| ConnectError::Address(error.to_string()))
}

/// Returns whether a volume of the replica is out of service: its copies do not count, and are not missed.
pub fn is_given_up(now: &Now, replica: &ReplicaId, node: &NodeId, volume: &VolumeId) -> bool {
    let key = VolumeKey {
        replica: replica.clone(),
        node: node.clone(),
        volume: volume.clone(),
    };
    now.volumes.contains_key(&key)
}

/// Whether what a gap names is out of service.
fn gap_is_given_up(now: &Now, gap: &Gap) -> bool {
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
pub fn failure(error: &CallError, doing: &str) -> StoreFailure {
    let said = error.reason.clone();
    match error.kind {
        Kind::NoSpace => StoreFailure::NoSpace,
        Kind::Exists => StoreFailure::Conflict,
        Kind::TimedOut => StoreFailure::TimedOut(doing.to_owned()),
        Kind::Storage => StoreFailure::Disk(said),
        Kind::Busy => StoreFailure::NotAccepting(said),
        Kind::Mismatch => StoreFailure::ReadBackDiffers,
        Kind::Invalid
        | Kind::NotFound
        | Kind::NotEnoughReplicas
        | Kind::Damaged
        | Kind::Refused
        | Kind::Unavailable
        | Kind::Internal => StoreFailure::Unreachable(said),
    }
}

#[cfg(test)]
mod tests {
    use archive_rpc::testing::TestAuthority;

    use super::*;

    fn credentials() -> Credentials {
        TestAuthority::new().credentials(&["repository/kb"])
    }

    /// Fails if a call to a node of one replica goes to the node of the same name in another, because that was dialled first.
    #[tokio::test]
    async fn namesake_in_another_replica_is_not_asked() {
        let (one, two) = (
            ReplicaId::new("one").unwrap(),
            ReplicaId::new("two").unwrap(),
        );
        let node = NodeId::new("n-1").unwrap();
        let replicas =
            Replicas::new(&[], credentials(), Limits::default(), View::default()).unwrap();
        replicas.node(&one, &node, "127.0.0.1:1").unwrap();
        assert!(replicas.node_client(&one, &node).await.is_ok());
        let error = replicas.node_client(&two, &node).await.unwrap_err();
        assert_eq!(error.kind, Kind::Unavailable, "{error}");
        let broken = Kind::Unavailable.error("broken");
        drop(replicas.failed(&two, &node, broken));
        assert!(replicas.node_client(&one, &node).await.is_ok());
    }
}
