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
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

pub use archive_jobs::BatchSettings;
pub use archive_replicas::ReplicaSettings;

/// Everything in the repository's settings file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Logs, metrics, stop.
    #[serde(default)]
    pub daemon: DaemonSettings,
    /// Where it listens, and its certificate: `repository/<archive>`.
    pub rpc: RpcSettings,
    /// The repository itself.
    pub repository: RepositorySettings,
    /// Who is told when something is wrong.
    #[serde(default)]
    pub notify: NotifySettings,
    /// What is repaired without asking.
    #[serde(default)]
    pub repair: RepairSettings,
    /// Which checks are made by themselves.
    #[serde(default)]
    pub checks: CheckSettings,
    /// How volumes and nodes are drained.
    #[serde(default)]
    pub drain: DrainSettings,
    /// What batch jobs may use, and how long what they leave is kept.
    #[serde(default)]
    pub batch: BatchSettings,
    /// The replicas of the archive.
    #[serde(rename = "replica")]
    pub replicas: Vec<ReplicaSettings>,
}

/// The section `[repository]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepositorySettings {
    /// The name of the archive: it stands in every admission.
    pub archive: String,
    /// Where the admin data lies.
    pub data: PathBuf,
    /// The key that signs admissions and receipts: Ed25519, PKCS #8, PEM.
    pub signing_key: PathBuf,
    /// The keys whose admissions are believed: a trust file.
    pub trust: PathBuf,
    /// A replica that accepts no byte for this long is dropped from the transfer and healed later.
    #[serde(default = "stall")]
    pub stall: Period,
    /// Whether MD5 is computed for every file, also where the depositor gave none.
    #[serde(default)]
    pub md5: bool,
    /// Whether a single bitarchive replica is enough.
    #[serde(default)]
    pub allow_single: bool,
    /// How often the admin data and the audit trail are exported into the archive itself, where they have changed; 0:
    /// never.
    #[serde(default = "export")]
    pub export: Period,
}

impl RepositorySettings {
    /// The place where admin data are restored, and the archive whose they are.
    pub fn restore_target(&self) -> RestoreTarget<'_> {
        RestoreTarget {
            data: &self.data,
            archive: &self.archive,
            trust: &self.trust,
        }
    }
}

/// The section `[repair]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepairSettings {
    /// What is repaired without asking: `off`, `missing` or `all`. Only what a scrub or a scheduled check has found.
    pub automatic: Automatic,
    /// How long after it was found.
    pub delay: Period,
    /// So many files of one replica a day never trip the brake.
    pub brake_files: u64,
    /// Nor does one file in this many of the replica's; 0: only `brake_files` counts.
    pub brake_fraction: u64,
    /// How long a volume must have been in its state before anything on it is repaired without asking.
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
    /// As the rule knows it.
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

/// The section `[checks]`. A period of 0 makes no check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckSettings {
    /// How often each replica's listing is compared with the admin data.
    pub files: Option<Period>,
    /// How often every copy of each replica is read again; without it, scrubbing does that.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DrainSettings {
    /// The most that all drains together move within a second; less than 4 MiB counts as that.
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

/// Settings that cannot work together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettings {
    /// One copy is no archive.
    #[error(
        "fewer than two replicas of kind bitarchive; add one, or set repository.allow_single = true"
    )]
    Single,
    /// One replica would answer for the other.
    #[error("replica {0} is there twice; each [[replica]] has an id of its own")]
    Twice(ReplicaId),
    /// Nobody could be told.
    #[error(transparent)]
    Notify(#[from] InvalidNotify),
}

impl Settings {
    /// The replicas as the cores know them.
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

    /// Whether they can work together.
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
