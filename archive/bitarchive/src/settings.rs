//! The settings of a node.

use std::num::NonZeroU16;
use std::path::PathBuf;

use archive_daemon::{ByteSize, DaemonSettings, Period};
use archive_model::{NodeId, ReplicaId};
use archive_rpc::RpcSettings;
use serde::{Deserialize, Serialize};

/// Everything in a node's settings file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Logs, metrics, stop.
    #[serde(default)]
    pub daemon: DaemonSettings,
    /// Where it listens, and its certificate: `node/<node>`.
    pub rpc: RpcSettings,
    /// The node itself.
    pub bitarchive: NodeSettings,
    /// How it reads again what it has.
    #[serde(default)]
    pub scrub: ScrubSettings,
    /// What may leave it, and how fast.
    #[serde(default)]
    pub attic: AtticSettings,
    /// How much batch jobs may take of it.
    #[serde(default)]
    pub batch_node: NodeBatchSettings,
}

/// The section `[batch_node]`: `[batch]` is of the repository, and `holdfast up` sets both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeBatchSettings {
    /// How many files each batch job computes at once, if `memory` allows; as many as there are cores, where nothing is
    /// said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<NonZeroU16>,
    /// How many batch jobs run at once. Another one is told to come again.
    pub jobs: NonZeroU16,
    /// How many reduce steps of components run at once. Another one is told to come again.
    pub reduces: NonZeroU16,
    /// How much memory the components of all batch jobs take together, each job its share, but one component always;
    /// half of what the machine has, but 2 GiB at least, where nothing is said. Compiling comes on top. Say it where
    /// several nodes share a machine, and in a container that may take less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
}

impl Default for NodeBatchSettings {
    fn default() -> Self {
        const FOUR: NonZeroU16 = NonZeroU16::MIN.saturating_add(3);
        Self {
            workers: None,
            jobs: FOUR,
            reduces: NonZeroU16::MIN.saturating_add(1),
            memory: None,
        }
    }
}

/// The section `[scrub]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScrubSettings {
    /// Whether it reads at all.
    pub enabled: bool,
    /// Every copy is read once within this.
    pub deadline: Period,
    /// A new copy is read twice within this.
    pub young: Period,
    /// The most bytes a second; what the deadline asks for, where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<ByteSize>,
}

impl Default for ScrubSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            deadline: Period::from_secs(30 * 24 * 3600),
            young: Period::from_secs(7 * 24 * 3600),
            rate: None,
        }
    }
}

/// The section `[attic]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtticSettings {
    /// How long what lies in the attic is kept at least, whoever asks.
    #[serde(default = "min_age")]
    pub min_age: Period,
    /// How many copies are put aside or purged within an hour at most, for all callers together, drained or not. A
    /// drain to other nodes goes on at this pace; who drains a whole node raises it on that node for as long.
    #[serde(default = "removals_per_hour")]
    pub removals_per_hour: u64,
    /// How many copies on drained volumes are put aside within an hour at most where this node has the same content on
    /// another of its volumes, which is not drained.
    #[serde(default = "moved_per_hour")]
    pub moved_per_hour: u64,
    /// How long the groups that a repair replaced are kept, as evidence; then the node removes them by itself. Not less
    /// than `min_age`. Whole files never go so.
    #[serde(default = "evidence")]
    pub evidence: Period,
}

impl Default for AtticSettings {
    fn default() -> Self {
        Self {
            min_age: min_age(),
            removals_per_hour: removals_per_hour(),
            moved_per_hour: moved_per_hour(),
            evidence: evidence(),
        }
    }
}

const fn min_age() -> Period {
    Period::from_secs(30 * 24 * 3600)
}

const fn removals_per_hour() -> u64 {
    100
}

const fn moved_per_hour() -> u64 {
    10_000
}

const fn evidence() -> Period {
    Period::from_secs(90 * 24 * 3600)
}

/// The section `[bitarchive]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSettings {
    /// Who it is; the same for ever.
    pub node: NodeId,
    /// The replica it belongs to.
    pub replica: ReplicaId,
    /// Where its catalog and its memory of volumes lie: a directory that is not on a volume.
    pub data: PathBuf,
    /// Where volumes of this node may be found that it has not seen yet; a volume that it has seen, or that was labelled by
    /// `holdfast volume init`, is used at its path from then on, also where this does not name it. So to take a disk out
    /// of use, `holdfast volume drain` and `retire` it.
    pub volumes: Vec<PathBuf>,
    /// What stays free on each volume.
    #[serde(default = "reserve")]
    pub reserve: ByteSize,
    /// The keys whose admissions it believes: a trust file.
    pub trust: PathBuf,
    /// Where the monitor of the replica listens, `host:port`.
    pub monitor: String,
    /// Where the repository reaches this node, `host:port`; as it listens, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// How long the sender of a file may be silent.
    #[serde(default = "idle")]
    pub idle: Period,
    /// How long what was received of a cut upload is kept.
    #[serde(default = "keep_uploads")]
    pub keep_uploads: Period,
    /// How often the disks are looked at: whether they are there, and the right ones.
    #[serde(default = "look")]
    pub look: Period,
}

const fn reserve() -> ByteSize {
    ByteSize::from_bytes(1_000_000_000)
}

const fn idle() -> Period {
    Period::from_secs(60)
}

const fn keep_uploads() -> Period {
    Period::from_secs(7 * 24 * 3600)
}

const fn look() -> Period {
    Period::from_secs(5)
}
