//! The volumes and nodes that are being drained before people retire them.

use archive_model::{NodeId, ReplicaId, VolumeId};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::{convert, wire};
use serde::Serialize;

use crate::file_status::{some, text};

/// The drain of a volume, or of a whole node: its copies are moved to other places of its replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drain {
    /// The replica of the node.
    pub replica: ReplicaId,
    /// The node that is drained, or that has the volume.
    pub node: NodeId,
    /// The volume; absent: the whole node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeId>,
    /// When the drain began.
    pub since: Timestamp,
    /// The files that are still to leave; absent while they are being counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<FilesToLeave>,
    /// When every copy had left, so that the volume or node may be retired; absent: not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drained: Option<Timestamp>,
    /// The reason why a copy cannot leave, or stays behind; absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// The files that are still to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FilesToLeave {
    /// The number of files.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
}

impl TryFrom<wire::status_response::Drain> for Drain {
    type Error = InvalidMessage;

    fn try_from(message: wire::status_response::Drain) -> Result<Self, InvalidMessage> {
        let left = FilesToLeave {
            files: message.files,
            bytes: message.bytes,
        };
        Ok(Self {
            replica: convert::replica_id(&message.replica)?,
            node: convert::node_id(&message.node)?,
            volume: some(&message.volume, convert::volume_id)?,
            since: convert::time("since", &message.since)?,
            left: message.counted.then_some(left),
            drained: convert::optional_time("drained", &message.drained)?,
            held: text(&message.held),
        })
    }
}
