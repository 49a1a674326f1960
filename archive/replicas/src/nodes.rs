//! The nodes of a replica, and their scrubs.
//!
//! The states are those of the last answer of the monitor while it is fresh, which [`view`](super::view) decides;
//! otherwise the monitor is asked.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the monitor or node cannot be reached or refuses the call.

use std::sync::Arc;
use std::time::Duration;

use archive_model::{NodeId, NodeScrub, NodeState, ReplicaId, ScrubOrder, VolumeKey};
use archive_rpc::{CallError, CallErrorKind};
use proto_archive::{convert as fields, wire};

use super::Replicas;
use super::people::mark_retired;
use super::view::{LastMonitorAnswer, Question, Silence};

/// The time in which a monitor must report the states of its nodes: it knows them without asking.
const STATE: Duration = Duration::from_secs(5);

impl Replicas {
    /// Returns the nodes of a replica, as its monitor sees them.
    pub async fn nodes_state(&self, replica: &ReplicaId) -> Result<Vec<NodeState>, CallError> {
        Ok(self.mark_retired(replica, self.reported_nodes(replica).await?.to_vec()))
    }

    /// Asks the monitor of a replica for its nodes now, for a person who looks at the archive.
    pub async fn state_now(&self, replica: &ReplicaId) -> Result<Vec<NodeState>, CallError> {
        Ok(self.mark_retired(replica, self.ask_nodes(replica).await?.to_vec()))
    }

    /// Returns the nodes of a replica as they report themselves, without the marks of [`Replicas::mark_retired`].
    pub async fn reported_nodes(&self, replica: &ReplicaId) -> Result<Arc<[NodeState]>, CallError> {
        if let Some(nodes) = self.fresh_nodes(replica) {
            return Ok(nodes);
        }
        self.ask_nodes(replica).await
    }

    /// Returns the nodes of the last answer of a monitor, if it is fresh.
    pub(crate) fn fresh_nodes(&self, replica: &ReplicaId) -> Option<Arc<[NodeState]>> {
        let now = self.clock.instant();
        self.view
            .fresh_nodes(replica, now, &self.standing.current_snapshot())
    }

    /// Asks the monitor of a replica for its nodes.
    pub(crate) async fn ask_nodes(
        &self,
        replica: &ReplicaId,
    ) -> Result<Arc<[NodeState]>, CallError> {
        let question = self.monitor_question(replica);
        let answer = self.ask_monitor(replica).await;
        self.keep_answer(replica, question, answer)
    }

    /// Returns a question that is asked now.
    pub(crate) fn monitor_question(&self, replica: &ReplicaId) -> Question {
        let asked = self.clock.instant();
        let standing = self.standing.current_snapshot();
        self.view.next_question(replica, asked, standing)
    }

    /// Keeps the answer to a question for all readers, and returns it.
    pub(crate) fn keep_answer(
        &self,
        replica: &ReplicaId,
        question: Question,
        answer: Result<Vec<NodeState>, CallError>,
    ) -> Result<Arc<[NodeState]>, CallError> {
        let answer: Result<Arc<[NodeState]>, _> = answer.map(Arc::from);
        let kept = match &answer {
            Ok(nodes) => Ok(Arc::clone(nodes)),
            Err(error) => Err(error.reason.clone()),
        };
        // A replica that is retired meanwhile is neither heard nor missed.
        if !self.standing.current_snapshot().is_retired(replica) {
            self.view
                .keep_answer(replica, question, kept, self.clock.now());
        }
        answer
    }

    /// Sends the question. It tells the monitor which nodes and volumes to miss.
    pub(crate) async fn ask_monitor(
        &self,
        replica: &ReplicaId,
    ) -> Result<Vec<NodeState>, CallError> {
        let (members, volumes) = {
            let members = self.lock_members();
            let volumes = members.volumes.iter();
            let volumes = volumes.filter(|key| key.replica == *replica);
            let volumes: Vec<_> = volumes.cloned().collect();
            (members.nodes.get(replica).cloned(), volumes)
        };
        let unknown = || {
            CallErrorKind::Unavailable
                .to_error(format!("the nodes of replica {replica} are not read yet"))
        };
        let now = self.standing.current_snapshot();
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
        // In the time of the machine: a test that skips minutes makes no monitor silent.
        let answer = tokio::time::timeout(STATE, monitor.replica_state(request)).await;
        let late = |_elapsed| {
            CallErrorKind::TimedOut.to_error(format!(
                "the monitor of replica {replica} did not answer within {STATE:?}; see that it is running"
            ))
        };
        let nodes = answer.map_err(late)??.into_inner().nodes.into_iter();
        Ok(nodes.map(fields::node_state).collect::<Result<_, _>>()?)
    }

    /// Returns the last answer of a monitor about its nodes, as they report themselves; `None` before the first answer,
    /// and if the replica is out of service.
    pub fn last_reported_nodes(&self, replica: &ReplicaId) -> Option<LastMonitorAnswer> {
        self.view.last_answer(replica)
    }

    /// Returns the last answer with the marks of [`Replicas::mark_retired`].
    pub fn last_nodes(&self, replica: &ReplicaId) -> Option<Result<Vec<NodeState>, Silence>> {
        let heard = self.last_reported_nodes(replica)?;
        Some(heard.map(|nodes| self.mark_retired(replica, nodes.to_vec())))
    }

    /// Returns the last answer without the nodes that are out of service, which may be switched off and are not missed.
    pub fn last_in_service(&self, replica: &ReplicaId) -> Option<Result<Vec<NodeState>, Silence>> {
        let mut nodes = self.last_nodes(replica)?;
        if let Ok(nodes) = &mut nodes {
            nodes.retain(|node| !node.is_retired());
        }
        Some(nodes)
    }

    /// Returns whether a node was silent when its monitor last answered, which is about every second.
    pub fn is_silent(&self, replica: &ReplicaId, node: &NodeId) -> bool {
        self.view.is_silent(replica, node)
    }

    /// Marks the nodes and volumes that are out of service, and ids that two parts bear, in the states of nodes that
    /// were heard.
    pub fn mark_retired(&self, replica: &ReplicaId, mut nodes: Vec<NodeState>) -> Vec<NodeState> {
        let now = self.standing.current_snapshot();
        for node in &mut nodes {
            mark_retired(&now, replica, node);
        }
        self.lock_members()
            .mark_namesakes(&now, replica, &mut nodes);
        nodes
    }

    /// Returns the nodes that were heard, except those of another replica.
    pub fn own_nodes(&self, replica: &ReplicaId, heard: &[NodeState]) -> Vec<NodeId> {
        let members = self.lock_members();
        let now = self.standing.current_snapshot();
        let nodes = heard.iter().map(|state| &state.node);
        let own = nodes.filter(|node| !members.is_foreign(&now, replica, node));
        own.cloned().collect()
    }

    /// Returns the nodes of a replica that are in service. A retired one may be switched off, and is not missed.
    pub async fn nodes_in_service(&self, replica: &ReplicaId) -> Result<Vec<NodeState>, CallError> {
        let mut nodes = self.nodes_state(replica).await?;
        nodes.retain(|node| !node.is_retired());
        Ok(nodes)
    }

    /// Sends an order to the scrub of a node, and returns its state.
    pub async fn order_scrub(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        order: ScrubOrder,
    ) -> Result<NodeScrub, CallError> {
        let mut client = self.node_client(replica, node).await?;
        let answer = client.scrub(fields::scrub_request(order)).await;
        let state = answer.map_err(|error| self.call_failed(replica, node, error))?;
        Ok(fields::node_scrub(replica.clone(), state.get_ref())?)
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
