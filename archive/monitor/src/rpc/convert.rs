//! Between the wire and this crate's own types. The answers of a node are checked here, once: afterwards it is known
//! that they are about the node itself, about names that may be archived, and in fields that everybody can read.

use std::collections::{BTreeMap, BTreeSet};

use archive_model::{
    FileName, Gap, Mode, NodeId, NodeState, ReplicaId, VolumeId, VolumeName, VolumeState,
};
use archive_rpc::{CallErrorKind, InvalidMessage};
use prost::Message;
use proto_archive::{convert, wire};
use tonic::Status;

use crate::gap::ReplicaGap;
use crate::listing::ListedFile;
use crate::nodes::{NodeLife, NodeLiveness, UNREPORTED};
use crate::placement::NoPlace;

/// The largest description of a node that is kept, in bytes: some hundred volumes.
const LARGEST_STATUS: usize = 256 * 1024;

/// Reads what a node says of itself.
pub(super) fn read_report(status: wire::NodeStatus) -> Result<NodeState, InvalidMessage> {
    let size = status.encoded_len();
    if size > LARGEST_STATUS {
        return Err(InvalidMessage::invalid_field(
            "status",
            format!("{size} bytes; at most {LARGEST_STATUS} are read"),
        ));
    }
    if status.endpoint.is_empty() {
        return Err(InvalidMessage::missing_field("endpoint"));
    }
    let state = convert::node_state(status)?;
    let mut seen = BTreeSet::new();
    let mut ids = state.volumes.iter().filter_map(|one| one.volume.as_ref());
    if let Some(twice) = ids.find(|id| !seen.insert(*id)) {
        return Err(InvalidMessage::invalid_field(
            "volumes",
            format!("volume {twice} is named twice"),
        ));
    }
    Ok(state)
}

/// Writes how a node stands. Its sign of life, and what it does not report, come from this monitor.
pub(super) fn node_status(liveness: &NodeLiveness<'_>) -> wire::NodeStatus {
    let mut state = match liveness.last {
        Some((seen, report)) => NodeState {
            node: liveness.node.clone(),
            seen: Some(seen),
            problem: None,
            ..report.clone()
        },
        None => NodeState::unheard_node(liveness.node.clone()),
    };
    state.alive = liveness.life == NodeLife::Alive;
    for volume in &mut state.volumes {
        volume.unreported = false;
    }
    let unreported = liveness.unreported.iter();
    state.volumes.extend(unreported.map(|id| VolumeState {
        volume: Some((*id).clone()),
        problem: Some(UNREPORTED.to_owned()),
        mode: Mode::ReadOnly,
        unreported: true,
        ..VolumeState::default()
    }));
    convert::node_status(state)
}

/// Reads a list of nodes.
pub(super) fn node_ids(
    field: &'static str,
    ids: &[String],
) -> Result<BTreeSet<NodeId>, InvalidMessage> {
    let read = |id: &String| {
        NodeId::new(id).map_err(|error| InvalidMessage::invalid_field(field, error.to_string()))
    };
    ids.iter().map(read).collect()
}

/// Reads which volumes have copies.
pub(super) fn known_volumes(
    known: &[wire::KnownVolumes],
) -> Result<BTreeMap<NodeId, BTreeSet<VolumeId>>, InvalidMessage> {
    let mut volumes: BTreeMap<NodeId, BTreeSet<VolumeId>> = BTreeMap::new();
    for of_node in known {
        let own = volumes.entry(convert::node_id(&of_node.node)?).or_default();
        for volume in &of_node.volumes {
            own.insert(convert::volume_id(volume)?);
        }
    }
    Ok(volumes)
}

/// Reads what `node` says of one file, down to the last field, so that one bad entry costs this node's listing and not
/// the whole.
pub(super) fn wire_listed(
    node: &NodeId,
    entry: wire::FileEntry,
) -> Result<ListedFile<wire::FileEntry>, InvalidMessage> {
    let name: FileName = convert::file_name("name", &entry.name)?;
    let volume = convert::volume_id(&entry.volume)?;
    if entry.node != node.as_str() {
        return Err(InvalidMessage::invalid_field(
            "node",
            "not the node that was asked",
        ));
    }
    convert::optional_root("root", &entry.root)?;
    if matches!(
        wire::CopyCondition::try_from(entry.condition),
        Err(_) | Ok(wire::CopyCondition::Unspecified)
    ) {
        return Err(InvalidMessage::invalid_field(
            "condition",
            format!("{} is not a condition", entry.condition),
        ));
    }
    for (field, groups) in [
        ("corrupt", &entry.corrupt),
        ("unreadable", &entry.unreadable),
    ] {
        convert::read_groups(field, groups)?;
    }
    convert::optional_timestamp("stored", entry.stored)?;
    convert::optional_timestamp("verified", entry.verified)?;
    Ok(ListedFile {
        name,
        volume,
        entry,
    })
}

/// Reads a gap that `node` names: it can only be in itself.
pub(super) fn read_gap(node: &NodeId, gap: &wire::Gap) -> ReplicaGap {
    match gap.volume.as_str() {
        "" => ReplicaGap::node_gap(node, &gap.reason),
        volume => ReplicaGap::volume_gap(
            node,
            VolumeName::new(&convert::visible_text(volume)),
            &gap.reason,
        ),
    }
}

/// Writes gaps.
pub(super) fn wire_gaps(replica: &ReplicaId, gaps: &[ReplicaGap]) -> Vec<wire::Gap> {
    let write = |gap: &ReplicaGap| {
        convert::gap_message(Gap {
            replica: replica.clone(),
            node: gap.node.clone(),
            volume: gap.volume.clone(),
            reason: gap.reason.clone(),
        })
    };
    gaps.iter().map(write).collect()
}

/// Writes why a file has no place; `unasked` says which nodes could not say whether they have it, and why.
pub(super) fn no_place(replica: &ReplicaId, error: NoPlace, unasked: &[String]) -> Status {
    let kind = match error {
        NoPlace::NoneAlive | NoPlace::AllTried | NoPlace::NotAccepting => {
            CallErrorKind::Unavailable
        }
        NoPlace::NoRoom { .. } => CallErrorKind::NoSpace,
    };
    let mut said = format!("replica {replica}: {error}");
    if !unasked.is_empty() {
        said = format!("{said}; it was not offered to all: {}", unasked.join("; "));
    }
    kind.to_status(said)
}

#[cfg(test)]
mod tests;
