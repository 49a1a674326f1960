//! Nodes and their volumes: as a node reports them, as its monitor knows them, as the repository decides on them, and
//! as people are shown them. The JSON is that of `holdfast status --json`.
//!
//! Not promised: that a node is still in its state, which is as old as its last sign of life.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::replica::{NodeId, VolumeId};

/// The mode of a node or a volume: whether it takes new files. On disk, in settings and for people it is the word of
/// [`Mode::as_str`].
///
/// ```
/// use archive_model::Mode;
///
/// assert_eq!(Mode::default().as_str(), "read-write");
/// assert_eq!("draining".parse(), Ok(Mode::Draining));
/// assert!("drained".parse::<Mode>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The node or volume takes new files.
    #[default]
    ReadWrite,
    /// The node or volume serves its copies and takes no new files.
    ReadOnly,
    /// The node or volume is read-only, and its copies are moved to other places.
    Draining,
    /// People took the node or volume out of service for good. Nobody misses it.
    Retired,
}

/// A text that names no mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("none of read-write, read-only, draining, retired")]
pub struct InvalidMode;

/// The state of a node, as of its last sign of life.
///
/// ```
/// use archive_model::{NodeId, NodeState};
///
/// let silent = NodeState::unheard_node(NodeId::new("two-1")?);
/// assert!(!silent.alive && !silent.takes_files());
/// assert_eq!(silent.free_rooms(), [0]);
/// # Ok::<(), archive_model::InvalidId>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeState {
    /// The id of the node.
    pub node: NodeId,
    /// The address at which the node takes calls, `host:port`. Empty: not known.
    pub endpoint: String,
    /// The volumes of the node, online or not.
    pub volumes: Vec<VolumeState>,
    /// Room for new files on the best volume of the node, in bytes, above the reserve.
    pub usable: u64,
    /// Room on each of the other volumes that have any, in bytes.
    #[serde(skip)]
    pub usable_elsewhere: Vec<u64>,
    /// The last sign of life of the node. Absent: it was never heard of since its monitor started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Timestamp>,
    /// Whether the last sign of life is recent enough.
    pub alive: bool,
    /// Whether the node takes new files. Absent: it did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The number of copies with a finding, as far as the node has looked.
    pub findings: u64,
    /// Changes whenever a finding comes, changes or goes; its value means nothing.
    #[serde(skip)]
    pub findings_stamp: u64,
    /// When the copy that has waited longest was last verified. Absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_verification: Option<Timestamp>,
    /// By when the scrub has to read the most urgent of the copies that are due. Absent: none is due.
    #[serde(skip)]
    pub verify_by: Option<Timestamp>,
    /// The fault of the node itself, such as an id that another node bears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A volume of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VolumeState {
    /// The id of the volume. Absent for a path at which no known volume is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeId>,
    /// The path at which the volume is mounted on its node.
    pub path: String,
    /// The reason why the volume is offline, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether the volume takes new files.
    pub mode: Mode,
    /// The size of the file system of the volume, in bytes; 0 while the volume is offline.
    pub total: u64,
    /// Free bytes, the reserve included; 0 while it is offline.
    pub free: u64,
    /// Whether the volume is out of service for good: its files are missing, not unverified.
    pub retired: bool,
    /// Warnings about the volume for people, each with what to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether copies are recorded on the volume and its node does not report it; `problem` says so too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unreported: bool,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 4] = [
        Self::ReadWrite,
        Self::ReadOnly,
        Self::Draining,
        Self::Retired,
    ];

    /// Returns the mode in one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
            Self::Draining => "draining",
            Self::Retired => "retired",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = InvalidMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or(InvalidMode)
    }
}

impl NodeState {
    /// Makes the state of a node that was never heard of.
    pub const fn unheard_node(node: NodeId) -> Self {
        Self {
            node,
            endpoint: String::new(),
            volumes: Vec::new(),
            usable: 0,
            usable_elsewhere: Vec::new(),
            seen: None,
            alive: false,
            mode: None,
            findings: 0,
            findings_stamp: 0,
            oldest_verification: None,
            verify_by: None,
            problem: None,
        }
    }

    /// Returns whether people took the node out of service: nobody misses it.
    pub fn is_retired(&self) -> bool {
        self.mode == Some(Mode::Retired)
    }

    /// Returns the room for new files on each volume of the node, in bytes.
    pub fn free_rooms(&self) -> Vec<u64> {
        let elsewhere = self.usable_elsewhere.iter().copied();
        std::iter::once(self.usable).chain(elsewhere).collect()
    }

    /// Returns whether the node and any of its volumes take new files, be there room or not. A node without a mode
    /// takes them where its volumes do.
    pub fn takes_files(&self) -> bool {
        let takes = |volume: &VolumeState| volume.is_online() && volume.mode == Mode::ReadWrite;
        self.mode.unwrap_or_default() == Mode::ReadWrite && self.volumes.iter().any(takes)
    }
}

impl VolumeState {
    /// Returns whether the copies on the volume can be read.
    pub fn is_online(&self) -> bool {
        self.problem.is_none() && !self.retired
    }

    /// Returns the reason why nobody can look at the copies on the volume, if so. A retired volume has none any more.
    pub fn offline_reason(&self) -> Option<&str> {
        self.problem.as_deref().filter(|_| !self.retired)
    }

    /// Returns the id of the volume, or its path where it bears none.
    pub fn name(&self) -> &str {
        self.volume.as_ref().map_or(&self.path, VolumeId::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(mode: Mode) -> VolumeState {
        VolumeState {
            volume: Some(VolumeId::new("v1").unwrap()),
            mode,
            ..VolumeState::default()
        }
    }

    fn node(volumes: Vec<VolumeState>) -> NodeState {
        NodeState {
            volumes,
            ..NodeState::unheard_node("n".parse().unwrap())
        }
    }

    /// Fails if a mode is written as one word and read as another.
    #[test]
    fn mode_is_read_as_written() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            let json = format!("\"{mode}\"");
            assert_eq!(serde_json::to_string(&mode).unwrap(), json);
        }
        assert_eq!("Retired".parse::<Mode>(), Err(InvalidMode));
    }

    /// Fails if a node is chosen for a file that none of its volumes would take, or is passed over beside a good one.
    #[test]
    fn one_good_volume_takes_files() {
        let good = volume(Mode::ReadWrite);
        let bad = [
            volume(Mode::ReadOnly),
            volume(Mode::Draining),
            VolumeState {
                problem: Some("not mounted".to_owned()),
                ..good.clone()
            },
            VolumeState {
                retired: true,
                ..good.clone()
            },
        ];
        assert!(!node(vec![]).takes_files());
        assert!(!node(bad.to_vec()).takes_files());
        assert!(node(bad.into_iter().chain([good.clone()]).collect()).takes_files());
        for mode in [Mode::ReadOnly, Mode::Draining, Mode::Retired] {
            let closed = NodeState {
                mode: Some(mode),
                ..node(vec![good.clone()])
            };
            assert!(!closed.takes_files(), "the node itself is {mode}");
        }
    }

    /// Fails if a script that reads `holdfast status --json` finds another field or another word.
    #[test]
    fn json_has_documented_fields() {
        let mut state = node(vec![volume(Mode::Draining)]);
        state.mode = Some(Mode::Retired);
        let json = serde_json::to_string(&state).unwrap();
        assert_eq!(
            json,
            r#"{"node":"n","endpoint":"","volumes":[{"volume":"v1","path":"","mode":"draining","total":0,"free":0,"retired":false}],"usable":0,"alive":false,"mode":"retired","findings":0}"#
        );
    }
}
