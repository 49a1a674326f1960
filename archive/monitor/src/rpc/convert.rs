//! Between the wire and this crate's own types. What a node says is looked at here, once: afterwards it is known to
//! speak of itself, of names that may be archived, and in the order of fields that everybody can read.

use std::collections::{BTreeMap, BTreeSet};

use archive_model::{FileName, NodeId, ReplicaId, VolumeId};
use archive_rpc::{InvalidMessage, Kind};
use prost::Message;
use proto_archive::{convert, wire};
use tonic::Status;

use crate::gap::Gap;
use crate::listing::Listed;
use crate::nodes::{Life, Standing, UNREPORTED};
use crate::placement::NoPlace;
use crate::report::{Mode, Report, Volume};

/// The largest description of a node that is kept, in bytes: some hundred volumes.
const LARGEST_STATUS: usize = 256 * 1024;

/// Reads what a node says of itself.
pub(super) fn report(status: wire::NodeStatus) -> Result<Report, InvalidMessage> {
    let size = status.encoded_len();
    if size > LARGEST_STATUS {
        return Err(InvalidMessage::invalid(
            "status",
            format!("{size} bytes; at most {LARGEST_STATUS} are read"),
        ));
    }
    if status.endpoint.is_empty() {
        return Err(InvalidMessage::missing("endpoint"));
    }
    let volumes: Vec<Volume> = status
        .volumes
        .into_iter()
        .map(volume)
        .collect::<Result<_, _>>()?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = volumes
        .iter()
        .filter_map(|volume| volume.id.as_ref())
        .find(|id| !seen.insert(*id))
    {
        return Err(InvalidMessage::invalid(
            "volumes",
            format!("volume {twice} is named twice"),
        ));
    }
    // A node that knows no mode of its own takes files where its volumes do.
    let mode = match status.mode.as_str() {
        "" => Mode::ReadWrite,
        known => mode(known)?,
    };
    Ok(Report {
        endpoint: status.endpoint,
        volumes,
        usable: status.usable,
        usable_elsewhere: status.usable_elsewhere,
        mode,
        findings: status.findings,
        findings_stamp: status.findings_stamp,
        oldest_verification: convert::optional_time(
            "oldest_verification",
            &status.oldest_verification,
        )?,
        verify_by: convert::optional_time("verify_by", &status.verify_by)?,
    })
}

fn volume(status: wire::VolumeStatus) -> Result<Volume, InvalidMessage> {
    let id = (!status.volume.is_empty())
        .then(|| convert::volume_id(&status.volume))
        .transpose()?;
    let problem = (!status.problem.is_empty()).then_some(status.problem);
    let mode = if status.mode.is_empty() && problem.is_some() {
        // A path that holds no volume has no mode; it takes nothing.
        Mode::ReadOnly
    } else {
        mode(&status.mode)?
    };
    if id.is_none() && problem.is_none() {
        return Err(InvalidMessage::missing("volume"));
    }
    let (total, free) = (status.total, status.free);
    Ok(Volume {
        id,
        path: status.path,
        problem,
        mode,
        total,
        free,
        retired: status.retired,
        warnings: status.warnings,
    })
}

fn mode(text: &str) -> Result<Mode, InvalidMessage> {
    Mode::ALL
        .into_iter()
        .find(|mode| mode.as_str() == text)
        .ok_or_else(|| InvalidMessage::invalid("mode", "none of read-write, read-only, draining"))
}

/// Writes how a node stands.
pub(super) fn node_status(standing: &Standing<'_>) -> wire::NodeStatus {
    let mut status = wire::NodeStatus {
        node: standing.node.to_string(),
        alive: standing.life == Life::Alive,
        ..wire::NodeStatus::default()
    };
    if let Some((seen, report)) = standing.last {
        status.seen = seen.to_string();
        status.endpoint.clone_from(&report.endpoint);
        status.usable = report.usable;
        status.usable_elsewhere.clone_from(&report.usable_elsewhere);
        status.mode = report.mode.to_string();
        status.findings = report.findings;
        status.findings_stamp = report.findings_stamp;
        status.oldest_verification = report
            .oldest_verification
            .map(|time| time.to_string())
            .unwrap_or_default();
        status.verify_by = report
            .verify_by
            .map(|time| time.to_string())
            .unwrap_or_default();
        status.volumes = report.volumes.iter().map(volume_status).collect();
    }
    let unreported = standing.unreported.iter();
    status
        .volumes
        .extend(unreported.map(|volume| wire::VolumeStatus {
            volume: volume.to_string(),
            problem: UNREPORTED.to_owned(),
            mode: Mode::ReadOnly.to_string(),
            unreported: true,
            ..wire::VolumeStatus::default()
        }));
    status
}

fn volume_status(volume: &Volume) -> wire::VolumeStatus {
    wire::VolumeStatus {
        volume: volume
            .id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        path: volume.path.clone(),
        problem: volume.problem.clone().unwrap_or_default(),
        mode: volume.mode.to_string(),
        total: volume.total,
        free: volume.free,
        retired: volume.retired,
        warnings: volume.warnings.clone(),
        unreported: false,
    }
}

/// Reads a list of nodes.
pub(super) fn node_ids(
    field: &'static str,
    ids: &[String],
) -> Result<BTreeSet<NodeId>, InvalidMessage> {
    let read = |id: &String| {
        NodeId::new(id).map_err(|error| InvalidMessage::invalid(field, error.to_string()))
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
pub(super) fn listed(
    node: &NodeId,
    entry: wire::FileEntry,
) -> Result<Listed<wire::FileEntry>, InvalidMessage> {
    let name: FileName = convert::file_name("name", &entry.name)?;
    let volume = convert::volume_id(&entry.volume)?;
    if entry.node != node.as_str() {
        return Err(InvalidMessage::invalid(
            "node",
            "not the node that was asked",
        ));
    }
    convert::optional_root("root", &entry.root)?;
    if matches!(
        wire::Condition::try_from(entry.condition),
        Err(_) | Ok(wire::Condition::Unspecified)
    ) {
        return Err(InvalidMessage::invalid(
            "condition",
            format!("{} is none", entry.condition),
        ));
    }
    for (field, groups) in [
        ("corrupt", &entry.corrupt),
        ("unreadable", &entry.unreadable),
    ] {
        convert::groups(field, groups)?;
    }
    convert::optional_time("stored", &entry.stored)?;
    convert::optional_time("verified", &entry.verified)?;
    Ok(Listed {
        name,
        volume,
        entry,
    })
}

/// Reads a gap that `node` names: it can only be in itself.
pub(super) fn gap(node: &NodeId, gap: &wire::Gap) -> Gap {
    match convert::volume_id(&gap.volume) {
        Ok(volume) => Gap::volume(node, volume, &gap.reason),
        Err(_) if gap.volume.is_empty() => Gap::node(node, &gap.reason),
        Err(error) => Gap::node(node, &format_args!("{} ({error})", gap.reason)),
    }
}

/// Writes gaps.
pub(super) fn gaps(replica: &ReplicaId, gaps: &[Gap]) -> Vec<wire::Gap> {
    let write = |gap: &Gap| wire::Gap {
        replica: replica.to_string(),
        node: gap
            .node
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        volume: gap
            .volume
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        reason: gap.reason.clone(),
    };
    gaps.iter().map(write).collect()
}

/// Writes why a file has no place.
pub(super) fn no_place(replica: &ReplicaId, error: NoPlace) -> Status {
    let kind = match error {
        NoPlace::NoneAlive | NoPlace::AllTried | NoPlace::NotAccepting => Kind::Unavailable,
        NoPlace::NoRoom { .. } => Kind::NoSpace,
    };
    kind.status(format!("replica {replica}: {error}"))
}

#[cfg(test)]
mod tests;
