//! Conversions of a node and its volumes, in both directions.

use archive_model::{Mode, NodeState, VolumeState};
use archive_rpc::InvalidMessage;

use super::{node_id, optional, optional_time, plain_text, text_of, visible_text};
use crate::wire;

/// Reads a mode that may be absent.
///
/// # Errors
/// A number that no mode has.
pub fn read_mode(field: &'static str, value: i32) -> Result<Option<Mode>, InvalidMessage> {
    let known = wire::Mode::try_from(value)
        .map_err(|error| InvalidMessage::invalid_field(field, error.to_string()))?;
    Ok(match known {
        wire::Mode::Unspecified => None,
        wire::Mode::ReadWrite => Some(Mode::ReadWrite),
        wire::Mode::ReadOnly => Some(Mode::ReadOnly),
        wire::Mode::Draining => Some(Mode::Draining),
        wire::Mode::Retired => Some(Mode::Retired),
    })
}

/// Writes a mode.
pub const fn wire_mode(mode: Mode) -> wire::Mode {
    match mode {
        Mode::ReadWrite => wire::Mode::ReadWrite,
        Mode::ReadOnly => wire::Mode::ReadOnly,
        Mode::Draining => wire::Mode::Draining,
        Mode::Retired => wire::Mode::Retired,
    }
}

/// Reads a node.
///
/// # Errors
/// An id, a time or a mode is invalid, or a volume has neither an id nor a problem.
pub fn node_state(status: wire::NodeStatus) -> Result<NodeState, InvalidMessage> {
    let volumes = status.volumes.iter().map(volume_state);
    Ok(NodeState {
        node: node_id(&status.node)?,
        endpoint: visible_text(&status.endpoint),
        volumes: volumes.collect::<Result<_, _>>()?,
        usable: status.usable,
        usable_elsewhere: status.usable_elsewhere,
        seen: optional_time("seen", &status.seen)?,
        alive: status.alive,
        mode: read_mode("mode", status.mode)?,
        findings: status.findings,
        findings_stamp: status.findings_stamp,
        oldest_verification: optional_time("oldest_verification", &status.oldest_verification)?,
        verify_by: optional_time("verify_by", &status.verify_by)?,
        problem: plain_text(&status.problem),
    })
}

fn volume_state(status: &wire::VolumeStatus) -> Result<VolumeState, InvalidMessage> {
    let volume = optional("volume", &status.volume)?;
    let problem = plain_text(&status.problem);
    if volume.is_none() && problem.is_none() {
        return Err(InvalidMessage::missing_field("volume"));
    }
    let mode = match read_mode("mode", status.mode)? {
        Some(mode) => mode,
        // A path without a volume has no mode; it stores no files.
        None if problem.is_some() => Mode::ReadOnly,
        None => return Err(InvalidMessage::missing_field("mode")),
    };
    Ok(VolumeState {
        volume,
        path: visible_text(&status.path),
        problem,
        mode,
        total: status.total,
        free: status.free,
        retired: status.retired,
        warnings: status
            .warnings
            .iter()
            .map(|text| visible_text(text))
            .collect(),
        unreported: status.unreported,
    })
}

/// Writes a node.
pub fn node_status(state: NodeState) -> wire::NodeStatus {
    wire::NodeStatus {
        node: state.node.into(),
        endpoint: state.endpoint,
        volumes: state.volumes.into_iter().map(volume_status).collect(),
        usable: state.usable,
        usable_elsewhere: state.usable_elsewhere,
        seen: text_of(state.seen),
        alive: state.alive,
        mode: state.mode.map_or(wire::Mode::Unspecified, wire_mode).into(),
        findings: state.findings,
        findings_stamp: state.findings_stamp,
        oldest_verification: text_of(state.oldest_verification),
        verify_by: text_of(state.verify_by),
        problem: state.problem.unwrap_or_default(),
    }
}

fn volume_status(state: VolumeState) -> wire::VolumeStatus {
    wire::VolumeStatus {
        volume: state.volume.map(String::from).unwrap_or_default(),
        path: state.path,
        problem: state.problem.unwrap_or_default(),
        mode: wire_mode(state.mode).into(),
        total: state.total,
        free: state.free,
        retired: state.retired,
        warnings: state.warnings,
        unreported: state.unreported,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn state() -> NodeState {
        let volume = VolumeState {
            volume: Some("disk-1".parse().unwrap()),
            path: "/disks/1".to_owned(),
            problem: Some("not mounted".to_owned()),
            mode: Mode::Draining,
            total: 10,
            free: 5,
            retired: true,
            warnings: vec!["nearly full".to_owned()],
            unreported: true,
        };
        NodeState {
            node: "n-1".parse().unwrap(),
            endpoint: "host:1".to_owned(),
            volumes: vec![volume],
            usable: 7,
            usable_elsewhere: vec![3],
            seen: Some(Timestamp::UNIX_EPOCH),
            alive: true,
            mode: Some(Mode::Retired),
            findings: 2,
            findings_stamp: 9,
            oldest_verification: Some(Timestamp::UNIX_EPOCH),
            verify_by: Some(Timestamp::UNIX_EPOCH),
            problem: Some("its id is taken".to_owned()),
        }
    }

    /// Fails if a field of a node is lost on its way, or two are exchanged.
    #[test]
    fn node_is_read_as_written() {
        assert_eq!(node_state(node_status(state())), Ok(state()));
        let bare = NodeState::unheard_node("n-2".parse().unwrap());
        assert_eq!(node_state(node_status(bare.clone())), Ok(bare));
    }

    /// Fails if a mode of a newer archive is guessed, or control characters of a node reach a terminal.
    #[test]
    fn unknown_modes_and_unnamed_volumes_are_invalid() {
        let wrong = |change: fn(&mut wire::NodeStatus)| {
            let mut status = node_status(state());
            change(&mut status);
            node_state(status).unwrap_err().to_string()
        };
        assert!(wrong(|status| status.mode = 9).contains("`mode`"));
        assert!(wrong(|status| status.volumes[0].mode = -1).contains("`mode`"));
        let unnamed = wrong(|status| status.volumes[0] = wire::VolumeStatus::default());
        assert!(unnamed.contains("`volume`"), "{unnamed}");
        let mut status = node_status(state());
        status.problem = "red \u{1b}[31m".to_owned();
        assert_eq!(
            node_state(status).unwrap().problem.as_deref(),
            Some("red  [31m")
        );
    }
}
