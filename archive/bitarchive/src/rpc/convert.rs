//! The translation between the node's own types and the wire.

use archive_durable::{Space, VolumeProblem};
use archive_model::{
    CopyCondition, CopyPlace, FileCopy, FileName, Gap, Groups, Mode, NodeId, NodeState, ReplicaId,
    UploadId, VolumeName, VolumeState,
};
use archive_rpc::CallErrorKind;
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use crate::catalog::{CatalogEntry, Condition};
use crate::error::NodeError;
use crate::node::Node;
use crate::volumes::{Volume, VolumesError};

/// Writes an entry.
pub(crate) fn wire_entry(node: &Node, entry: CatalogEntry) -> wire::FileEntry {
    entry_of(&node.id, entry)
}

/// Writes an entry of `node`.
pub(crate) fn entry_of(node: &NodeId, entry: CatalogEntry) -> wire::FileEntry {
    let CatalogEntry { name, volume, row } = entry;
    fields::file_entry(FileCopy {
        name,
        size: row.size,
        root: row.root,
        place: CopyPlace {
            node: node.clone(),
            volume,
        },
        condition: condition(&row.condition),
        stored: row.stored,
        verified: row.verified,
    })
}

/// Returns the condition of a copy in the words of the archive.
fn condition(condition: &Condition) -> CopyCondition {
    match condition {
        Condition::Present => CopyCondition::Present,
        Condition::Missing { .. } => CopyCondition::Missing,
        Condition::Damaged {
            corrupt,
            unreadable,
            ..
        } => CopyCondition::Damaged {
            corrupt: coarse(corrupt, MOST_RANGES),
            unreadable: coarse(unreadable, MOST_RANGES),
        },
        Condition::Unexpected { .. } => CopyCondition::Unexpected,
    }
}

/// The most ranges that are sent of one copy: damage all over is described more coarsely, and never as less.
const MOST_RANGES: usize = 1000;

/// Returns at most `most` ranges (at least one) that cover the groups: the nearest ones are joined.
fn coarse(groups: &Groups, most: usize) -> Groups {
    let ranges: Vec<_> = groups.ranges().collect();
    if ranges.len() <= most {
        return groups.clone();
    }
    let gaps = ranges.iter().zip(ranges.iter().skip(1));
    let mut gaps: Vec<_> = gaps
        .enumerate()
        .map(|(at, (one, next))| (next.start - one.end, at))
        .collect();
    gaps.sort_unstable();
    let mut is_closed = vec![false; ranges.len()];
    for (_, at) in gaps.iter().take(ranges.len() - most.max(1)) {
        if let Some(closed) = is_closed.get_mut(*at) {
            *closed = true;
        }
    }
    let mut merged = Groups::none();
    let mut start = None;
    for (range, is_closed) in ranges.into_iter().zip(is_closed) {
        let first = start.take().unwrap_or(range.start);
        if is_closed {
            start = Some(first);
        } else {
            merged.insert_range(first..range.end);
        }
    }
    merged
}

/// Writes the places of a file, and the volumes that could not be asked. While a file is being received, nobody can say
/// that it is absent. With `on_disk`, which is the time, the disks are asked too.
pub(crate) fn find_response(
    node: &Node,
    name: &FileName,
    on_disk: Option<Timestamp>,
) -> Result<wire::FindResponse, NodeError> {
    // First: an upload that ends from now on is among the entries, or is still under way when somebody asks again.
    let receiving = node.files.find_upload(name);
    let mut gaps = wire_gaps(node);
    gaps.extend(being_received(&node.replica, &node.id, receiving.as_ref()));
    let entries = match on_disk {
        Some(now) => node.files.find_copies_on_disk(name, now)?,
        None => node.files.find_copies(name)?,
    }
    .into_iter();
    Ok(wire::FindResponse {
        entries: entries.map(|found| wire_entry(node, found)).collect(),
        gaps,
        receiving: receiving.map(String::from).unwrap_or_default(),
    })
}

/// Returns the gap in an answer about a file that is being received.
pub(crate) fn being_received(
    replica: &ReplicaId,
    node: &NodeId,
    upload: Option<&UploadId>,
) -> Option<wire::Gap> {
    upload.map(|upload| {
        let reason = format!("it is being received or moved now (`{upload}`)");
        fields::gap_message(Gap::of_node(replica.clone(), node.clone(), reason))
    })
}

/// Returns the volumes that nobody can look at now. A retired one is not among them: its files are missing.
pub fn wire_gaps(node: &Node) -> Vec<wire::Gap> {
    node.disks
        .volumes
        .list_volumes()
        .into_iter()
        .filter_map(|volume| match volume.problem {
            None | Some(VolumeProblem::Retired) => None,
            Some(problem) => {
                let path = || VolumeName::Path(volume.path.display().to_string());
                let name = volume.id.map_or_else(path, VolumeName::Id);
                Some(volume_gap(node, name, &problem))
            }
        })
        .collect()
}

/// Returns the gap in an answer that lacks a volume of the node.
pub(crate) fn volume_gap(
    node: &Node,
    volume: VolumeName,
    reason: &impl std::fmt::Display,
) -> wire::Gap {
    let replica = node.replica.clone();
    let id = node.id.clone();
    fields::gap_message(Gap::of_volume(replica, id, volume, reason.to_string()))
}

/// Returns the state of the node. Blocks, because the disks are asked for their room.
pub(crate) fn node_report(node: &Node) -> NodeState {
    let volumes = node.disks.volumes.list_volumes();
    let mode = node.disks.volumes.mode();
    let open = volumes.iter().filter(|_| mode == Mode::ReadWrite);
    let mut rooms: Vec<u64> = open.map(|volume| usable(node, volume)).collect();
    rooms.sort_unstable();
    let usable = rooms.pop().unwrap_or_default();
    rooms.retain(|room| *room > 0);
    let counts = node.files.count_findings();
    NodeState {
        volumes: volumes
            .into_iter()
            .map(|volume| volume_state(node, volume))
            .collect(),
        usable,
        usable_elsewhere: rooms,
        alive: true,
        findings: counts.total(),
        findings_stamp: counts.stamp,
        oldest_verification: node.files.scrub_age.oldest_verification(),
        mode: Some(mode),
        verify_by: node.files.scrub_age.verify_by(),
        ..NodeState::unheard_node(node.id.clone())
    }
}

fn usable(node: &Node, volume: &Volume) -> u64 {
    match (volume.layout(), volume.mode) {
        (Some(layout), Mode::ReadWrite) => node.disks.volumes.room_on(&layout).unwrap_or_default(),
        _ => 0,
    }
}

fn volume_state(node: &Node, volume: Volume) -> VolumeState {
    let warnings = volume
        .id
        .as_ref()
        .map(|id| node.disks.volumes.volume_warnings(id));
    let space = match volume.problem {
        None => node.disks.volumes.measure_space(&volume.path),
        Some(_) => Ok(Space { total: 0, free: 0 }),
    };
    let (space, unknown) = match space {
        Ok(space) => (space, None),
        Err(error) => (Space { total: 0, free: 0 }, Some(error.to_string())),
    };
    VolumeState {
        volume: volume.id,
        path: volume.path.display().to_string(),
        retired: volume.problem == Some(VolumeProblem::Retired),
        unreported: false,
        problem: volume
            .problem
            .map(|problem| problem.to_string())
            .or(unknown),
        mode: volume.mode,
        total: space.total,
        free: space.free,
        warnings: warnings.unwrap_or_default(),
    }
}

/// Writes an error as a status: its text for people, its kind for programs.
pub fn error_status(error: &NodeError) -> Status {
    use archive_durable::DiskSeverity;
    let kind = match error {
        NodeError::NotFound(_) | NodeError::NoItem { .. } => CallErrorKind::NotFound,
        NodeError::Taken { .. } | NodeError::Admitted { .. } => CallErrorKind::Exists,
        NodeError::Busy { .. } | NodeError::AtWork { .. } => CallErrorKind::Busy,
        NodeError::Several(_) | NodeError::NotMended { .. } => CallErrorKind::Invalid,
        NodeError::Mismatch { .. }
        | NodeError::Admission { .. }
        | NodeError::Segment { .. }
        | NodeError::OtherCopy { .. }
        | NodeError::Attic { .. } => CallErrorKind::Mismatch,
        NodeError::TooYoung { .. } | NodeError::TooManyRemovals { .. } => CallErrorKind::Refused,
        NodeError::NoSpace(_) => CallErrorKind::NoSpace,
        NodeError::Offline { .. } | NodeError::Stopped(_) | NodeError::TakesNothing { .. } => {
            CallErrorKind::Unavailable
        }
        NodeError::Disk(error) if error.severity() == DiskSeverity::NoSpace => {
            CallErrorKind::NoSpace
        }
        NodeError::ReadBack { .. }
        | NodeError::Sidecar { .. }
        | NodeError::Disk(_)
        | NodeError::ChecksumTable(_)
        | NodeError::Removals { .. } => CallErrorKind::Storage,
        NodeError::Catalog(_) | NodeError::Bug(_) => CallErrorKind::Internal,
        NodeError::Volumes(error) => volumes_kind(error),
    };
    kind.to_status(error.to_string())
}

fn volumes_kind(error: &VolumesError) -> CallErrorKind {
    match error {
        VolumesError::Path { .. } => CallErrorKind::Invalid,
        VolumesError::Unknown(_) => CallErrorKind::NotFound,
        VolumesError::Known(_)
        | VolumesError::Labelled { .. }
        | VolumesError::NotEmpty(_)
        | VolumesError::Nested { .. }
        | VolumesError::InUse { .. } => CallErrorKind::Exists,
        VolumesError::OtherVolume { .. }
        | VolumesError::Unusable { .. }
        | VolumesError::Retired(_) => CallErrorKind::Mismatch,
        VolumesError::Memory { .. } | VolumesError::Disk(_) => CallErrorKind::Storage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a damaged group is left out of the ranges that are sent.
    #[test]
    fn scattered_damage_is_joined_and_never_less() {
        let groups = Groups::from_iter([0, 2, 10, 11, 13, 40, 100, 102]);
        let ranges = |most| -> Vec<_> {
            let coarse = coarse(&groups, most);
            assert!(groups.difference(&coarse).is_empty(), "{most}");
            coarse.ranges().collect()
        };
        assert_eq!(ranges(7).len(), 7);
        assert_eq!(ranges(4), [0..3, 10..14, 40..41, 100..103]);
        assert_eq!(ranges(3), [0..14, 40..41, 100..103]);
        for most in [0, 1] {
            let all = ranges(most);
            assert_eq!((all.first(), all.len()), (Some(&(0..103)), 1));
        }
        assert_eq!(coarse(&Groups::none(), 1), Groups::none());
        let every_other: Groups = (0..10_000).map(|group| group * 2).collect();
        let coarse = coarse(&every_other, MOST_RANGES);
        assert_eq!(coarse.ranges().count(), MOST_RANGES);
        assert!(every_other.difference(&coarse).is_empty());
    }
}
