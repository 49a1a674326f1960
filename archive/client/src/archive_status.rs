//! The archive at a glance: replicas, their nodes, the volumes of a node, and what could not be asked.

use std::collections::BTreeMap;

pub use archive_model::{Drain, FilesToLeave};
use archive_model::{NodeState, ReplicaId, ReplicaKind};
use archive_rpc::InvalidMessage;
use proto_archive::{convert, wire};
use serde::Serialize;

use crate::error::visible_text;
use crate::file_status::nonempty_text;

/// The status of the whole archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArchiveStatus {
    /// The status of every replica.
    pub replicas: Vec<ReplicaOverview>,
    /// The number of files in the admin data.
    pub files: u64,
    /// The bytes of all files, each file counted once.
    pub bytes: u64,
    /// The number of files that are not in every required replica.
    pub below_required: u64,
    /// The version of the repository.
    pub version: String,
    /// Open anomalies by the word of their kind; those that were accepted are not counted.
    pub anomalies: BTreeMap<&'static str, u64>,
    /// The reason why nothing is repaired automatically now; absent if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The volumes and nodes that are being drained, or are drained and not retired yet.
    pub drains: Vec<Drain>,
    /// What is wrong with the repository itself.
    pub problems: Vec<String>,
}

/// The status of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaOverview {
    /// The id of the replica.
    pub replica: ReplicaId,
    /// The kind of the replica.
    pub kind: ReplicaKind,
    /// Whether a store waits for the replica.
    pub required: bool,
    /// The reason why the replica did not answer, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The place of the replica, where the settings of the archive name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Whether the replica is out of service permanently.
    pub retired: bool,
    /// The nodes of the replica.
    pub nodes: Vec<NodeState>,
}

impl TryFrom<wire::StatusResponse> for ArchiveStatus {
    type Error = InvalidMessage;

    fn try_from(message: wire::StatusResponse) -> Result<Self, InvalidMessage> {
        let replicas = message.replicas.into_iter().map(ReplicaOverview::try_from);
        let anomalies = convert::anomaly_counts("anomalies", &message.anomalies)?;
        let anomalies = anomalies.into_iter();
        let anomalies = anomalies
            .map(|(kind, count)| (kind.as_str(), count))
            .collect();
        Ok(Self {
            replicas: replicas.collect::<Result<_, _>>()?,
            files: message.files,
            bytes: message.bytes,
            below_required: message.below_required,
            version: visible_text(&message.version),
            anomalies,
            held: nonempty_text(&message.held),
            drains: message
                .drains
                .iter()
                .map(convert::read_drain)
                .collect::<Result<_, _>>()?,
            problems: message
                .problems
                .iter()
                .map(|text| visible_text(text))
                .collect(),
        })
    }
}

impl TryFrom<wire::status_response::ReplicaState> for ReplicaOverview {
    type Error = InvalidMessage;

    fn try_from(message: wire::status_response::ReplicaState) -> Result<Self, InvalidMessage> {
        let kind = convert::replica_kind("kind", message.kind)?;
        let nodes = message.nodes.into_iter().map(convert::node_state);
        Ok(Self {
            replica: convert::replica_id(&message.replica)?,
            kind,
            required: message.required,
            problem: nonempty_text(&message.problem),
            site: nonempty_text(&message.site),
            retired: message.retired,
            nodes: nodes.collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a kind of replica that only a newer archive knows is read as another kind, or a volume without an id
    /// makes the whole status unreadable.
    #[test]
    fn status_of_newer_archive_is_refused() {
        let stray = wire::VolumeStatus {
            problem: "empty".into(),
            ..wire::VolumeStatus::default()
        };
        let state = wire::status_response::ReplicaState {
            replica: "one".into(),
            kind: wire::ReplicaKind::Checksum.into(),
            required: true,
            problem: String::new(),
            nodes: vec![wire::NodeStatus {
                node: "n1".into(),
                alive: true,
                volumes: vec![stray],
                ..wire::NodeStatus::default()
            }],
            ..Default::default()
        };
        let overview = ReplicaOverview::try_from(state.clone()).unwrap();
        assert_eq!(overview.kind, ReplicaKind::Checksum);
        assert_eq!(overview.nodes[0].volumes[0].volume, None);
        let newer = wire::status_response::ReplicaState { kind: 3, ..state };
        let error = ReplicaOverview::try_from(newer).unwrap_err().to_string();
        assert!(error.contains("`kind`") && error.contains('3'), "{error}");
    }
}
