//! The settings of the repository.

use std::collections::BTreeSet;
use std::path::PathBuf;

use archive_daemon::notify::SmtpSettings;
use archive_daemon::settings::{InvalidSettings, Section, SettingsForm};
use archive_daemon::{ByteSize, DaemonSettings, NotifySettings, Period, StartError};
use archive_decisions::repair::policy::{Automatic, RepairPolicy};
use archive_decisions::store::ReplicaSpec;
use archive_durable::read_secret;
use archive_ledger::restore::RestoreTarget;
use archive_model::ReplicaKind;
use archive_part::{PartSettings, read_trust_file};
use archive_proof::{SigningKey, TrustFile};
use archive_rpc::{Role, RpcSettings};
use documented::DocumentedFields;
use jiff::{SignedDuration, Timestamp};
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
    /// The bytes a second that a depositor has to send, measured over a minute: one that sends fewer holds a place for
    /// nothing, and is dropped; what has arrived stays, so that it goes on from there. 0 turns that off.
    #[serde(default = "least_rate")]
    pub least_rate: ByteSize,
    /// The bytes that stay free on the disk of the admin data: below that nothing new is stored, and reads, checks and
    /// repairs go on.
    #[serde(default = "reserve")]
    pub reserve: ByteSize,
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
    /// Reads the key that signs admissions and receipts. A file that others on this machine can use is refused.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, or it is not a key.
    pub(crate) fn read_signing_key(&self) -> Result<SigningKey, StartError> {
        const SETTING: &str = "repository.signing_key";
        let path = self.signing_key.display();
        let pem = read_secret(&self.signing_key);
        let pem = pem.map_err(|error| StartError::of_setting(SETTING, error))?;
        let pem = pem.ok_or_else(|| {
            let absent =
                format!(
                    "{path}: there is no such file; put the key there, correct the path, or begin a new archive with \
                     `holdfast repository --init`, which makes one"
                );
            StartError::of_setting(SETTING, absent)
        })?;
        SigningKey::from_pem(&String::from_utf8_lossy(&pem))
            .map_err(|error| StartError::of_setting(SETTING, format!("{path}: {error}")))
    }

    /// Reads the trust file. One without the repository's own key is of another archive: nobody who has it would believe
    /// what this one signs.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, it is not a trust file, or it does not list `key` for this archive.
    pub(crate) fn read_trust_file(&self, key: &SigningKey) -> Result<TrustFile, StartError> {
        const SETTING: &str = "repository.trust";
        let trust = read_trust_file(SETTING, &self.trust)?;
        let own = key.public_key();
        let is_listed = trust
            .keys()
            .any(|listed| listed.public_key == own && listed.archive == self.archive);
        if is_listed {
            return Ok(trust);
        }
        let key_id = own.key_id();
        let foreign = format!(
            "{}: it does not list key {key_id}, that of repository.signing_key, for archive {}: add it, or take the trust \
             file of this archive",
            self.trust.display(),
            self.archive
        );
        Err(StartError::of_setting(SETTING, foreign))
    }

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
    pub(crate) fn repair_policy(&self) -> RepairPolicy {
        let longest = SignedDuration::MAX;
        RepairPolicy {
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

const fn least_rate() -> ByteSize {
    ByteSize::from_bytes(100)
}

const fn reserve() -> ByteSize {
    ByteSize::from_bytes(1_000_000_000)
}

const fn export() -> Period {
    Period::from_secs(24 * 60 * 60)
}

impl Settings {
    /// Returns the replicas as the decisions know them.
    pub fn replica_specs(&self) -> Vec<ReplicaSpec> {
        self.replicas
            .iter()
            .map(|replica| ReplicaSpec {
                id: replica.id.clone(),
                kind: replica.kind,
                required: replica.required,
            })
            .collect()
    }
}

impl PartSettings for Settings {
    const PART: &'static str = "repository";
    const FORM: SettingsForm = SettingsForm {
        section: "repository",
        sections: &[
            Section::section_of::<Self>(""),
            Section::section_of::<DaemonSettings>("daemon"),
            Section::section_of::<RpcSettings>("rpc"),
            Section::section_of::<RepositorySettings>("repository"),
            Section::section_of::<NotifySettings>("notify"),
            Section::section_of::<SmtpSettings>("notify.smtp"),
            Section::section_of::<RepairSettings>("repair"),
            Section::section_of::<CheckSettings>("checks"),
            Section::section_of::<DrainSettings>("drain"),
            Section::section_of::<BatchSettings>("batch"),
            Section::section_of::<ReplicaSettings>("replica"),
        ],
        example: r#"
[rpc]
listen = "127.0.0.1:7401"
certificate = "pki/repository.pem"
key = "pki/repository.key"
authorities = "pki/authorities.pem"

[repository]
archive = "kb"
data = "repository"
signing_key = "keys/signing.pem"
trust = "trust.json"

[notify.smtp]
server = "mail.example.org"
from = "archive@example.org"
to = ["officer@example.org"]

[[replica]]
id = "one"
kind = "bitarchive"
monitor = "127.0.0.1:7402"

[[replica]]
id = "two"
kind = "bitarchive"
monitor = "127.0.0.1:7404"
"#,
    };

    fn daemon(&self) -> &DaemonSettings {
        &self.daemon
    }

    fn rpc(&self) -> &RpcSettings {
        &self.rpc
    }

    fn holders(&self) -> Vec<(Role, Option<&str>)> {
        vec![(Role::Repository, Some(self.repository.archive.as_str()))]
    }

    fn check_values(&self) -> Result<(), InvalidSettings> {
        let mut ids = BTreeSet::new();
        if let Some(twice) = self.replicas.iter().find(|one| !ids.insert(&one.id)) {
            return Err(InvalidSettings::new(format!(
                "replica {} is there twice; each [[replica]] has an id of its own",
                twice.id
            )));
        }
        let keeps_bytes = |replica: &&ReplicaSettings| replica.kind == ReplicaKind::Bitarchive;
        let copies = self.replicas.iter().filter(keeps_bytes).count();
        if copies < 2 && !self.repository.allow_single {
            return Err(InvalidSettings::new(
                "fewer than two replicas of kind bitarchive; add one, or set repository.allow_single = true",
            ));
        }
        self.notify.check()
    }

    fn check_files(&self, _now: Timestamp) -> Result<(), StartError> {
        let key = self.repository.read_signing_key()?;
        self.repository.read_trust_file(&key).map(drop)
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
        assert_eq!(of("two").check_values(), Ok(()));
        let twice = of("one").check_values().unwrap_err().to_string();
        assert!(twice.contains("replica one is there twice"), "{twice}");
    }
}
