//! The settings of the repository.

use std::collections::BTreeSet;
use std::path::PathBuf;

use archive_daemon::notify::InvalidNotify;
use archive_daemon::{ByteSize, DaemonSettings, NotifySettings, Period};
use archive_decisions::repair::policy::{Automatic, Policy};
use archive_decisions::store::ReplicaSpec;
use archive_ledger::restore::RestoreTarget;
use archive_model::{ReplicaId, ReplicaKind};
use archive_rpc::RpcSettings;
use documented::DocumentedFields;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

pub use archive_jobs::BatchSettings;
pub use archive_replicas::ReplicaSettings;

/// Everything in the repository's settings file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Logs, metrics, stop.
    #[serde(default)]
    pub daemon: DaemonSettings,
    /// The address to listen on, and the certificate: `repository/<archive>`.
    pub rpc: RpcSettings,
    /// The repository itself.
    pub repository: RepositorySettings,
    /// The people and programs to notify of incidents.
    #[serde(default)]
    pub notify: NotifySettings,
    /// The automatic repairs.
    #[serde(default)]
    pub repair: RepairSettings,
    /// The scheduled checks.
    #[serde(default)]
    pub checks: CheckSettings,
    /// The pace at which volumes and nodes are drained.
    #[serde(default)]
    pub drain: DrainSettings,
    /// The limits of batch jobs, and how long their results are kept.
    #[serde(default)]
    pub batch: BatchSettings,
    /// The replicas of the archive.
    #[serde(rename = "replica")]
    #[documented_fields(rename = "replica")]
    pub replicas: Vec<ReplicaSettings>,
}

/// The section `[repository]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct RepositorySettings {
    /// The name of the archive, which is part of every admission.
    pub archive: String,
    /// The directory of the admin data.
    pub data: PathBuf,
    /// The key that signs admissions and receipts: Ed25519, PKCS #8, PEM.
    pub signing_key: PathBuf,
    /// The trust file: the keys whose admissions are valid.
    pub trust: PathBuf,
    /// A replica that accepts no byte for this long is dropped from the transfer, and gets the file later.
    #[serde(default = "stall")]
    pub stall: Period,
    /// Whether MD5 is computed for every file, also if the depositor gave none.
    #[serde(default)]
    pub md5: bool,
    /// Whether a single bitarchive replica is enough.
    #[serde(default)]
    pub allow_single: bool,
    /// The time between two exports of the admin data and the audit trail into the archive itself, if they have
    /// changed; 0 turns them off.
    #[serde(default = "export")]
    pub export: Period,
}

impl RepositorySettings {
    /// Returns where admin data are restored to, and for which archive.
    pub fn restore_target(&self) -> RestoreTarget<'_> {
        RestoreTarget {
            data: &self.data,
            archive: &self.archive,
            trust: &self.trust,
        }
    }
}

/// The section `[repair]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct RepairSettings {
    /// The anomalies that are repaired automatically: `off`, `missing` or `all`. Only those that a scrub or a scheduled
    /// check has found.
    pub automatic: Automatic,
    /// The time between the finding and the repair.
    pub delay: Period,
    /// The number of files of one replica in a day that never trips the brake.
    pub brake_files: u64,
    /// The share of a replica's files, as one in this number, that does not trip the brake either; with 0, only
    /// `brake_files` counts.
    pub brake_fraction: u64,
    /// The time for which a volume must have been in its state before files on it are repaired automatically.
    pub settled: Period,
}

impl Default for RepairSettings {
    fn default() -> Self {
        Self {
            automatic: Automatic::All,
            delay: Period::from_secs(15 * 60),
            brake_files: 20,
            brake_fraction: 1000,
            settled: Period::from_secs(60 * 60),
        }
    }
}

impl RepairSettings {
    /// Returns the policy of automatic repairs.
    pub(crate) fn policy(&self) -> Policy {
        let longest = SignedDuration::MAX;
        Policy {
            automatic: self.automatic,
            delay: SignedDuration::try_from(self.delay.duration()).unwrap_or(longest),
            brake_files: self.brake_files,
            brake_fraction: self.brake_fraction,
            settled: SignedDuration::try_from(self.settled.duration()).unwrap_or(longest),
        }
    }
}

/// The section `[checks]`. A period of 0 turns a check off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct CheckSettings {
    /// The time between two comparisons of a replica's listing with the admin data.
    pub files: Option<Period>,
    /// The time between two reads of every copy of a replica; if it is not set, scrubbing alone reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksums: Option<Period>,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self {
            files: Some(Period::from_secs(24 * 60 * 60)),
            checksums: None,
        }
    }
}

/// The section `[drain]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct DrainSettings {
    /// The most bytes that all drains together move within a second, at least 4 MiB.
    pub bytes_per_second: ByteSize,
}

impl Default for DrainSettings {
    fn default() -> Self {
        Self {
            bytes_per_second: ByteSize::from_bytes(100_000_000),
        }
    }
}

const fn stall() -> Period {
    Period::from_secs(30)
}

const fn export() -> Period {
    Period::from_secs(24 * 60 * 60)
}

/// The reason why settings cannot work together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettings {
    /// Fewer than two replicas keep bytes: one copy is no archive.
    #[error(
        "fewer than two replicas of kind bitarchive; add one, or set repository.allow_single = true"
    )]
    Single,
    /// Two replicas have the same id: one would answer for the other.
    #[error("replica {0} is there twice; each [[replica]] has an id of its own")]
    Twice(ReplicaId),
    /// The section `[notify]` is invalid.
    #[error(transparent)]
    Notify(#[from] InvalidNotify),
}

impl Settings {
    /// Returns the replicas as the decisions know them.
    pub fn specs(&self) -> Vec<ReplicaSpec> {
        self.replicas
            .iter()
            .map(|replica| ReplicaSpec {
                id: replica.id.clone(),
                kind: replica.kind,
                required: replica.required,
            })
            .collect()
    }

    /// Checks that the settings can work together.
    ///
    /// # Errors
    /// [`InvalidSettings`] names the settings that contradict each other.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        let mut ids = BTreeSet::new();
        if let Some(twice) = self.replicas.iter().find(|one| !ids.insert(&one.id)) {
            return Err(InvalidSettings::Twice(twice.id.clone()));
        }
        let keeps_bytes = |replica: &&ReplicaSettings| replica.kind == ReplicaKind::Bitarchive;
        let copies = self.replicas.iter().filter(keeps_bytes).count();
        if copies < 2 && !self.repository.allow_single {
            return Err(InvalidSettings::Single);
        }
        Ok(self.notify.check()?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Fails if two replicas of one id are taken for one, so that the second silently answers for nothing.
    #[test]
    fn replica_id_twice_is_refused() {
        let of = |second: &str| -> Settings {
            let replica = |id: &str| json!({"id": id, "kind": "bitarchive", "monitor": "h:1"});
            let settings = json!({
                "rpc": {"listen": "h:1", "certificate": "c", "key": "k", "authorities": "a"},
                "repository": {"archive": "kb", "data": "d", "signing_key": "s", "trust": "t"},
                "replica": [replica("one"), replica(second)],
            });
            serde_json::from_value(settings).unwrap()
        };
        assert_eq!(of("two").check(), Ok(()));
        let twice = of("one").check().unwrap_err();
        assert_eq!(twice, InvalidSettings::Twice("one".parse().unwrap()));
    }
}
