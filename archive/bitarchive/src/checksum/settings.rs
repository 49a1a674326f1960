//! The settings of a checksum replica.

use std::path::PathBuf;

use archive_daemon::settings::{InvalidSettings, Section, SettingsForm};
use archive_daemon::{ByteSize, DaemonSettings, Period, StartError};
use archive_model::{NodeId, ReplicaId};
use archive_part::{PartSettings, read_trust_file};
use archive_rpc::{Role, RpcSettings};
use documented::DocumentedFields;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::settings::{SET_IDLE, refuse_zero};

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

impl PartSettings for Settings {
    const PART: &'static str = "checksum-replica";
    const FORM: SettingsForm = SettingsForm {
        section: "checksum_replica",
        sections: &[
            Section::section_of::<Self>(""),
            Section::section_of::<DaemonSettings>("daemon"),
            Section::section_of::<RpcSettings>("rpc"),
            Section::section_of::<ChecksumReplicaSettings>("checksum_replica"),
        ],
        example: r#"
[rpc]
listen = "127.0.0.1:7406"
certificate = "pki/three-1.pem"
key = "pki/three-1.key"
authorities = "pki/authorities.pem"

[checksum_replica]
node = "three-1"
replica = "three"
data = "checksums"
trust = "trust.json"
"#,
    };

    fn daemon(&self) -> &DaemonSettings {
        &self.daemon
    }

    fn rpc(&self) -> &RpcSettings {
        &self.rpc
    }

    fn holders(&self) -> Vec<(Role, Option<&str>)> {
        // The repository calls a checksum replica as the monitor and as the node.
        let own = &self.checksum_replica;
        vec![
            (Role::Monitor, Some(own.replica.as_str())),
            (Role::Node, Some(own.node.as_str())),
        ]
    }

    fn check_values(&self) -> Result<(), InvalidSettings> {
        let is_zero = self.checksum_replica.idle.is_zero();
        refuse_zero([("checksum_replica.idle", is_zero, SET_IDLE)])
    }

    fn check_files(&self, _now: Timestamp) -> Result<(), StartError> {
        read_trust_file("checksum_replica.trust", &self.checksum_replica.trust).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use archive_daemon::settings::{Sources, load_settings};

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
        load_settings(&Sources {
            set: set.collect(),
            ..Sources::default()
        })
        .unwrap()
    }

    /// Fails if a default does not pass the check, or a replica that cuts every sender off does.
    #[test]
    fn silent_senders_need_some_time() {
        assert_eq!(settings(&[]).check_values(), Ok(()));
        assert_eq!(
            settings(&["checksum_replica.removals_per_hour=0"]).check_values(),
            Ok(()),
            "nothing may be removed"
        );
        let error = settings(&["checksum_replica.idle=0 s"])
            .check_values()
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("checksum_replica.idle is 0: ") && error.contains("60 s"),
            "{error}"
        );
    }
}
