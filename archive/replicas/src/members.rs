//! The nodes and volumes that belong to the replicas, and ids that two parts bear.
//!
//! A node that is heard of for the first time with the id of another replica's node is not used: it is no member, it
//! gets no files, and it is shown with what is wrong. Nodes and volumes that have shared an id since before are
//! distinguished by replica and node, and are shown as well.

use std::collections::{BTreeMap, BTreeSet};

use archive_ledger::standing::StandingSnapshot;
use archive_model::{NodeId, NodeState, ReplicaId, VolumeKey, VolumeState};

/// The nodes and volumes that belong to the replicas.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// The nodes of each replica.
    pub(super) nodes: BTreeMap<ReplicaId, BTreeSet<NodeId>>,
    /// The volumes that have copies.
    pub(super) volumes: BTreeSet<VolumeKey>,
    /// The volumes that were online in the last answer about their replica.
    pub(super) online: BTreeSet<VolumeKey>,
    /// Replicas without volumes: each shows its table as one.
    pub(super) checksum: BTreeSet<ReplicaId>,
}

impl Members {
    /// Returns another replica that has a node with this id.
    fn namesake(
        &self,
        now: &StandingSnapshot,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Option<&ReplicaId> {
        let mut others = self.nodes.iter().filter(|(id, _)| *id != replica);
        let has = |id: &ReplicaId, nodes: &BTreeSet<NodeId>| {
            nodes.contains(node) && !now.is_retired(id) && !now.is_retired_node(id, node)
        };
        others.find(|(id, nodes)| has(id, nodes)).map(|(id, _)| id)
    }

    /// Returns whether a node that the monitor of the replica has heard of does not belong to it: another replica has
    /// that id.
    pub(super) fn is_foreign(
        &self,
        now: &StandingSnapshot,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> bool {
        let own = self.nodes.get(replica);
        !own.is_some_and(|own| own.contains(node)) && self.namesake(now, replica, node).is_some()
    }

    /// Returns the nodes of other replicas, which a monitor must not choose for a file.
    pub(super) fn foreign_nodes<'a>(
        &'a self,
        now: &'a StandingSnapshot,
        replica: &'a ReplicaId,
    ) -> impl Iterator<Item = &'a NodeId> {
        let others = self.nodes.iter().filter(move |(id, _)| *id != replica);
        let all = others.flat_map(|(_, nodes)| nodes);
        all.filter(move |node| self.is_foreign(now, replica, node))
    }

    /// Remembers which volumes of a replica are online, and says at each node which of its ids another part bears too.
    pub(super) fn mark_namesakes(
        &mut self,
        now: &StandingSnapshot,
        replica: &ReplicaId,
        nodes: &mut [NodeState],
    ) {
        self.online.retain(|key| key.replica != *replica);
        let has_volumes = !self.checksum.contains(replica);
        for node in nodes.iter().filter(|node| node.alive && has_volumes) {
            self.online.extend(online(replica, node));
        }
        for node in nodes {
            let id = node.node.clone();
            if now.is_retired_node(replica, &id) {
                continue;
            }
            let mut problems = Vec::new();
            let is_foreign = self.is_foreign(now, replica, &id);
            if let Some(other) = self.namesake(now, replica, &id) {
                problems.push(if is_foreign {
                    format!(
                        "replica {other} has a node {id}: this one is not used; give it an id, and a certificate, of its own"
                    )
                } else {
                    format!("replica {other} has a node {id} too; name one with --replica")
                });
            }
            for key in online(replica, node).filter(|_| has_volumes) {
                let is_other = |other: &&VolumeKey| other.volume == key.volume && **other != key;
                if let Some(other) = self.online.iter().find(is_other) {
                    problems.push(format!(
                        "its volume {} has the id of {other}; name one with --node and --replica",
                        key.volume
                    ));
                }
            }
            node.alive &= !is_foreign;
            node.problem = (!problems.is_empty()).then(|| problems.join("; "));
        }
    }
}

/// Returns the volumes of a node that are online and not retired.
fn online(replica: &ReplicaId, node: &NodeState) -> impl Iterator<Item = VolumeKey> {
    let volumes = node.volumes.iter().filter(|volume| volume.is_online());
    volumes.filter_map(move |volume: &VolumeState| {
        Some(VolumeKey {
            replica: replica.clone(),
            node: node.node.clone(),
            volume: volume.volume.clone()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ReplicaId {
        ReplicaId::new(text).unwrap()
    }

    fn node(name: &str, volumes: &[&str]) -> NodeState {
        let volume = |id: &&str| VolumeState {
            volume: Some(id.parse().unwrap()),
            ..VolumeState::default()
        };
        NodeState {
            alive: true,
            volumes: volumes.iter().map(volume).collect(),
            ..NodeState::unheard_node(name.parse().unwrap())
        }
    }

    fn members(nodes: &[(&str, &str)]) -> Members {
        let mut members = Members::default();
        for (replica, node) in nodes {
            let own = members.nodes.entry(id(replica)).or_default();
            own.insert(node.parse().unwrap());
        }
        members
    }

    /// Fails if a node that bears the id of another replica's node becomes one of its own replica, or one that has been
    /// there before is put out of service for it.
    #[test]
    fn new_node_with_taken_id_is_not_used() {
        let now = StandingSnapshot::default();
        let mut members = members(&[("one", "n-1"), ("two", "n-2")]);
        let mut nodes = [node("n-1", &[]), node("n-2", &[])];
        members.mark_namesakes(&now, &id("two"), &mut nodes);
        let problem = nodes[0].problem.as_deref().unwrap_or_default();
        assert!(!nodes[0].alive && problem.contains("replica one has a node n-1"));
        assert!(nodes[1].alive && nodes[1].problem.is_none());
        let two = id("two");
        let foreign: Vec<_> = members
            .foreign_nodes(&now, &two)
            .map(NodeId::as_str)
            .collect();
        assert_eq!(foreign, ["n-1"]);

        let mut both = self::members(&[("one", "n-1"), ("two", "n-1")]);
        let mut nodes = [node("n-1", &[])];
        both.mark_namesakes(&now, &id("two"), &mut nodes);
        let problem = nodes[0].problem.as_deref().unwrap_or_default();
        assert!(nodes[0].alive && problem.contains("--replica"));
        assert_eq!(both.foreign_nodes(&now, &two).count(), 0);
    }

    /// Fails if two disks with one id are not reported, or the tables of checksum replicas are taken for disks.
    #[test]
    fn volume_id_on_two_nodes_is_reported() {
        let now = StandingSnapshot::default();
        let mut members = members(&[("one", "a"), ("two", "b")]);
        members.checksum = BTreeSet::from([id("three"), id("four")]);
        let said = |members: &mut Members, replica: &str, name: &str, volume: &str| {
            let mut nodes = [node(name, &[volume])];
            members.mark_namesakes(&now, &id(replica), &mut nodes);
            let [node] = nodes;
            assert!(node.alive);
            node.problem.unwrap_or_default()
        };
        assert_eq!(said(&mut members, "one", "a", "disk-1"), "");
        let twice = said(&mut members, "two", "b", "disk-1");
        assert!(
            twice.contains("volume disk-1 of node a of replica one"),
            "{twice}"
        );
        assert!(said(&mut members, "one", "a", "disk-1").contains("replica two"));
        assert_eq!(said(&mut members, "two", "b", "disk-2"), "");
        assert_eq!(said(&mut members, "one", "a", "disk-1"), "");
        for table in ["three", "four"] {
            assert_eq!(
                said(&mut members, table, &format!("{table}-1"), "table"),
                ""
            );
        }
    }
}
