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
    /// The address on which the node listens, and its certificate: `node/<node>`.
    pub rpc: RpcSettings,
    /// The node itself.
    pub bitarchive: NodeSettings,
    /// The pace of the scrub, which reads the copies of the node again.
    #[serde(default)]
    pub scrub: ScrubSettings,
    /// The limits on removals.
    #[serde(default)]
    pub attic: AtticSettings,
    /// The limits of batch jobs.
    #[serde(default)]
    pub batch_node: NodeBatchSettings,
}

/// The section `[batch_node]`: `[batch]` belongs to the repository, and `holdfast up` sets both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeBatchSettings {
    /// The number of files that each batch job computes at once, if `memory` allows. The default is the number of cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<NonZeroU16>,
    /// The number of batch jobs that run at once. A further one is refused, and asked again later.
    pub jobs: NonZeroU16,
    /// The number of reduce steps of components that run at once. A further one is refused, and asked again later.
    pub reduces: NonZeroU16,
    /// The memory that the components of all batch jobs take together. Each job has an equal share, and may always run one
    /// component. The default is half of what the machine has, but at least 2 GiB. Compiling takes more on top. Set it if
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
    /// Whether the node scrubs at all.
    pub enabled: bool,
    /// Every copy is read once within this.
    pub deadline: Period,
    /// A new copy is read twice within this.
    pub young: Period,
    /// The most bytes a second. The default is what the deadline asks for.
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
    /// The least time that items of the attic are kept, for all callers.
    #[serde(default = "min_age")]
    pub min_age: Period,
    /// The most copies that are put aside or purged within an hour, for all callers together, drained or not. A drain to other
    /// nodes goes at this pace; to drain a whole node, raise it on that node for as long.
    #[serde(default = "removals_per_hour")]
    pub removals_per_hour: u64,
    /// The most copies on drained volumes that are put aside within an hour if this node has the same content on another of
    /// its volumes, which is not drained.
    #[serde(default = "moved_per_hour")]
    pub moved_per_hour: u64,
    /// The time that the groups which a repair replaced are kept, as evidence; then the node removes them by itself.
    /// This time is at least `min_age`. Whole files are never removed in this way.
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
    /// The id of the node; it never changes.
    pub node: NodeId,
    /// The replica that the node belongs to.
    pub replica: ReplicaId,
    /// The directory of the catalog and of the memory of volumes; it is not on a volume.
    pub data: PathBuf,
    /// The paths at which volumes may be found that the node has not seen yet. A volume that it has seen, or that was
    /// labelled by `holdfast volume init`, is used at its path from then on, even if this list does not name it. So to
    /// take a disk out of use, `holdfast volume drain` and `retire` it.
    pub volumes: Vec<PathBuf>,
    /// The bytes that stay free on each volume.
    #[serde(default = "reserve")]
    pub reserve: ByteSize,
    /// The keys whose admissions the node believes: a trust file.
    pub trust: PathBuf,
    /// The address on which the monitor of the replica listens, `host:port`.
    pub monitor: String,
    /// The address at which the repository reaches this node, `host:port`; without it, the address on which the node
    /// listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The time that the sender of a file may be silent.
    #[serde(default = "idle")]
    pub idle: Period,
    /// The time that the bytes of a cut upload are kept.
    #[serde(default = "keep_uploads")]
    pub keep_uploads: Period,
    /// The time between two looks whether the right disks are there.
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
