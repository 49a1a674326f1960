//! The settings of the repository.

use std::path::PathBuf;

use archive_daemon::{DaemonSettings, NotifySettings, Period};
use archive_model::{ReplicaId, ReplicaKind};
use archive_rpc::RpcSettings;
use serde::{Deserialize, Serialize};

use crate::store::ReplicaSpec;

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

/// One `[[replica]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaSettings {
    /// Its id.
    pub id: ReplicaId,
    /// Bytes, or names and checksums only.
    pub kind: ReplicaKind,
    /// Whether a store is acknowledged only when this replica has the file.
    #[serde(default = "required")]
    pub required: bool,
    /// Where its monitor listens, `host:port`; a checksum replica is its own.
    pub monitor: String,
    /// Where it stands, for the reports of independence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// On what it is kept, for the reports of independence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
}

const fn stall() -> Period {
    Period::from_secs(30)
}

const fn export() -> Period {
    Period::from_secs(24 * 60 * 60)
}

const fn required() -> bool {
    true
}

/// Settings that cannot work together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettings {
    /// One copy is no archive.
    #[error(
        "fewer than two replicas of kind bitarchive; add one, or set repository.allow_single = true"
    )]
    Single,
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
        let keeps_bytes = |replica: &&ReplicaSettings| replica.kind == ReplicaKind::Bitarchive;
        let copies = self.replicas.iter().filter(keeps_bytes).count();
        if copies < 2 && !self.repository.allow_single {
            return Err(InvalidSettings::Single);
        }
        Ok(())
    }
}
