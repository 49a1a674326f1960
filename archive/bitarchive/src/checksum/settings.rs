//! The settings of a checksum replica.

use std::path::PathBuf;

use archive_daemon::{ByteSize, DaemonSettings, Period};
use archive_model::{NodeId, ReplicaId};
use archive_rpc::RpcSettings;
use serde::{Deserialize, Serialize};

/// Everything in the settings file of a checksum replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Logs, metrics, stop.
    #[serde(default)]
    pub daemon: DaemonSettings,
    /// The address on which the replica listens, and its certificate, which says both: `monitor/<replica>` and
    /// `node/<node>`.
    pub rpc: RpcSettings,
    /// The replica itself.
    pub checksum_replica: ChecksumReplicaSettings,
}

/// The section `[checksum_replica]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChecksumReplicaSettings {
    /// The id of the replica as a node; it never changes.
    pub node: NodeId,
    /// The id of the replica.
    pub replica: ReplicaId,
    /// The directory of the record.
    pub data: PathBuf,
    /// The keys whose admissions the replica believes: a trust file.
    pub trust: PathBuf,
    /// The address at which the repository reaches the replica, `host:port`; without it, the address on which the
    /// replica listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The time that the sender of a file may be silent.
    #[serde(default = "idle")]
    pub idle: Period,
    /// The bytes that stay free on the disk of the record.
    #[serde(default = "reserve")]
    pub reserve: ByteSize,
    /// The number of rows that may be removed within an hour, for all callers together.
    #[serde(default = "removals_per_hour")]
    pub removals_per_hour: u64,
}

const fn idle() -> Period {
    Period::from_secs(60)
}

const fn reserve() -> ByteSize {
    ByteSize::from_bytes(100_000_000)
}

const fn removals_per_hour() -> u64 {
    20
}
