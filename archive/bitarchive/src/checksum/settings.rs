//! The settings of a checksum replica.

use std::path::PathBuf;

use archive_daemon::{ByteSize, DaemonSettings, Period};
use archive_model::{NodeId, ReplicaId};
use archive_rpc::RpcSettings;
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::settings::{InvalidSettings, SET_IDLE, refuse_zero};

/// Everything in the settings file of a checksum replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct ChecksumReplicaSettings {
    /// The id of the replica as a node; it never changes.
    pub node: NodeId,
    /// The id of the replica.
    pub replica: ReplicaId,
    /// The directory of the table.
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
    /// The bytes that stay free on the disk of the table.
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

impl Settings {
    /// Checks whether the settings can work.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the setting that cannot, and says what would be right.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        let is_zero = self.checksum_replica.idle.is_zero();
        refuse_zero([("checksum_replica.idle", is_zero, SET_IDLE)])
    }
}

#[cfg(test)]
mod tests {
    use archive_daemon::settings::{Sources, load};

    use super::*;

    fn settings(set: &[&str]) -> Settings {
        let least = [
            "checksum_replica.node=c1",
            "checksum_replica.replica=three",
            "checksum_replica.data=d",
            "checksum_replica.trust=t.json",
            "rpc.listen=127.0.0.1:0",
            "rpc.certificate=c.pem",
            "rpc.key=k.pem",
            "rpc.authorities=a.pem",
        ];
        let set = least.iter().chain(set).map(|text| (*text).to_owned());
        load(&Sources {
            set: set.collect(),
            ..Sources::default()
        })
        .unwrap()
    }

    /// Fails if a default does not pass the check, or a replica that cuts every sender off does.
    #[test]
    fn silent_senders_need_some_time() {
        assert_eq!(settings(&[]).check(), Ok(()));
        assert_eq!(
            settings(&["checksum_replica.removals_per_hour=0"]).check(),
            Ok(()),
            "nothing may be removed"
        );
        let error = settings(&["checksum_replica.idle=0 s"])
            .check()
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("checksum_replica.idle is 0: ") && error.contains("60 s"),
            "{error}"
        );
    }
}
