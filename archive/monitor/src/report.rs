//! What a node says of itself with each sign of life.

use std::fmt;

use archive_model::VolumeId;
use jiff::Timestamp;

/// A node, as it last described itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Where it takes calls, `host:port`.
    pub endpoint: String,
    /// Its volumes, online or not.
    pub volumes: Vec<Volume>,
    /// The room for new files on its best volume, in bytes, above the reserve.
    pub usable: u64,
    /// The same of its other volumes.
    pub usable_elsewhere: Vec<u64>,
    /// Whether it takes new files, on any volume.
    pub mode: Mode,
    /// Copies that are not as they should be.
    pub findings: u64,
    /// Changes whenever a finding comes, changes or goes.
    pub findings_stamp: u64,
    /// When the copy that has waited longest was last verified; none: unknown.
    pub oldest_verification: Option<Timestamp>,
    /// By when the most urgent of the copies that are due is to be read; past: the deadline is not kept.
    pub verify_by: Option<Timestamp>,
}

/// A disk of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Which volume it is; none for a path that holds no known one.
    pub id: Option<VolumeId>,
    /// Where it is mounted on the node.
    pub path: String,
    /// Why it is offline; none: it is online.
    pub problem: Option<String>,
    /// Whether it takes new files.
    pub mode: Mode,
    /// Size of its file system, in bytes.
    pub total: u64,
    /// Free on it, in bytes.
    pub free: u64,
    /// Whether it is out of service for good.
    pub retired: bool,
    /// A warning about it, for people.
    pub warnings: Vec<String>,
}

/// Whether a volume takes new files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It does.
    ReadWrite,
    /// It serves what it has.
    ReadOnly,
    /// It serves what it has, while that is copied elsewhere.
    Draining,
}

impl Report {
    /// The room for new files on each of its volumes.
    pub fn rooms(&self) -> Vec<u64> {
        let elsewhere = self.usable_elsewhere.iter().copied();
        std::iter::once(self.usable).chain(elsewhere).collect()
    }

    /// Whether it and any volume takes new files, be there room or not.
    pub fn takes_files(&self) -> bool {
        let takes = |v: &Volume| v.problem.is_none() && !v.retired && v.mode == Mode::ReadWrite;
        self.mode == Mode::ReadWrite && self.volumes.iter().any(takes)
    }
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::ReadWrite, Self::ReadOnly, Self::Draining];

    /// The mode as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
            Self::Draining => "draining",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn volume(mode: Mode) -> Volume {
        Volume {
            id: Some(VolumeId::new("v1").unwrap()),
            path: "/volumes/1".to_owned(),
            problem: None,
            mode,
            total: 100,
            free: 50,
            retired: false,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn report(endpoint: &str, usable: u64) -> Report {
        Report {
            endpoint: endpoint.to_owned(),
            volumes: vec![volume(Mode::ReadWrite)],
            usable,
            usable_elsewhere: Vec::new(),
            mode: Mode::ReadWrite,
            findings: 0,
            findings_stamp: 0,
            oldest_verification: None,
            verify_by: None,
        }
    }

    #[test]
    fn one_good_volume_takes_files() {
        let takes = |volumes: Vec<Volume>| {
            Report {
                volumes,
                ..report("", 9)
            }
            .takes_files()
        };
        let good = volume(Mode::ReadWrite);
        let bad = [
            volume(Mode::ReadOnly),
            volume(Mode::Draining),
            Volume {
                problem: Some("not mounted".to_owned()),
                ..good.clone()
            },
            Volume {
                retired: true,
                ..good.clone()
            },
        ];
        assert!(!takes(vec![]));
        assert!(!takes(bad.to_vec()));
        assert!(takes(bad.into_iter().chain([good]).collect()));
        for mode in [Mode::ReadOnly, Mode::Draining] {
            let closed = Report {
                mode,
                ..report("", 9)
            };
            assert!(!closed.takes_files(), "the node itself is {mode}");
        }
    }
}
