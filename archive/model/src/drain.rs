//! The volumes and nodes that are being drained before people retire them. The JSON is what `holdfast status --json`
//! prints under `drains`.

use jiff::Timestamp;
use serde::Serialize;

use crate::replica::{NodeId, ReplicaId, VolumeId};

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a script that reads the state of a drain finds another field.
    #[test]
    fn json_of_drain_keeps_its_fields() {
        let whole = Drain {
            replica: "one".parse().unwrap(),
            node: "n".parse().unwrap(),
            volume: Some("v".parse().unwrap()),
            since: Timestamp::UNIX_EPOCH,
            left: Some(FilesToLeave { files: 1, bytes: 2 }),
            drained: Some(Timestamp::UNIX_EPOCH),
            held: Some("why".to_owned()),
        };
        let json = |drain: &Drain| serde_json::to_string(drain).unwrap();
        let time = "1970-01-01T00:00:00Z";
        assert_eq!(
            json(&whole),
            format!(
                r#"{{"replica":"one","node":"n","volume":"v","since":"{time}","left":{{"files":1,"bytes":2}},"drained":"{time}","held":"why"}}"#
            )
        );
        let begun = Drain {
            volume: None,
            left: None,
            drained: None,
            held: None,
            ..whole
        };
        assert_eq!(
            json(&begun),
            format!(r#"{{"replica":"one","node":"n","since":"{time}"}}"#)
        );
    }
}
