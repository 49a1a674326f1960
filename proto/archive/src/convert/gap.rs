//! Gaps of answers, in both directions.

use archive_model::{Gap, ReplicaId, VolumeName};
use archive_rpc::InvalidMessage;

use super::{optional, replica_id, text_of, visible_text};
use crate::wire;

/// Reads a gap.
///
/// # Errors
/// The replica or the node is not an id.
pub fn read_gap(message: &wire::Gap) -> Result<Gap, InvalidMessage> {
    gap_within(replica_id(&message.replica)?, message)
}

/// Reads a gap that a part of `replica` names: the gap can only be in that replica, whatever the message says.
///
/// # Errors
/// The node is not an id.
pub fn gap_within(replica: ReplicaId, message: &wire::Gap) -> Result<Gap, InvalidMessage> {
    let volume = message.volume.as_str();
    Ok(Gap {
        replica,
        node: optional("node", &message.node)?,
        // A disk that bears no id is named by its path, which is no reason to refuse the whole answer.
        volume: (!volume.is_empty()).then(|| VolumeName::new(&visible_text(volume))),
        reason: visible_text(&message.reason),
    })
}

/// Writes a gap.
pub fn gap_message(gap: Gap) -> wire::Gap {
    wire::Gap {
        replica: gap.replica.into(),
        node: text_of(gap.node),
        volume: text_of(gap.volume),
        reason: gap.reason,
    }
}

#[cfg(test)]
mod tests {
    use archive_model::VolumeId;

    use super::*;

    fn gap_of(volume: &str) -> wire::Gap {
        wire::Gap {
            replica: "one".to_owned(),
            node: "n".to_owned(),
            volume: volume.to_owned(),
            reason: "off".to_owned(),
        }
    }

    /// Fails if one disk without a label makes a whole answer unreadable, or loses its path on the way.
    #[test]
    fn gap_of_unlabelled_disk_is_read() {
        for (volume, id) in [("v", Some("v")), ("/disks/1", None), ("", None)] {
            let gap = read_gap(&gap_of(volume)).unwrap();
            assert_eq!(gap.volume_id().map(VolumeId::as_str), id);
            assert_eq!(gap_message(gap), gap_of(volume));
        }
        let steering = read_gap(&gap_of("/disks/\u{1b}[31m")).unwrap();
        assert_eq!(text_of(steering.volume), "/disks/ [31m");
    }

    /// Fails if the gap of a node is taken for one of another replica, or an invalid node id is believed.
    #[test]
    fn gap_is_within_replica_that_was_asked() {
        let two: ReplicaId = "two".parse().unwrap();
        assert_eq!(gap_within(two.clone(), &gap_of("v")).unwrap().replica, two);
        let whole = wire::Gap::default();
        assert_eq!(gap_within(two.clone(), &whole).unwrap().node, None);
        let wrong = wire::Gap {
            node: "N 1".to_owned(),
            ..whole
        };
        assert!(gap_within(two, &wrong).is_err());
    }
}
