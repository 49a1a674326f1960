//! The settings of a node.

use std::num::NonZeroU16;
use std::path::PathBuf;

use archive_daemon::settings::{InvalidSettings, Section, SettingsForm};
use archive_daemon::{ByteSize, DaemonSettings, Period, StartError};
use archive_model::{NodeId, ReplicaId};
use archive_part::{PartSettings, read_trust_file};
use archive_rpc::{Role, RpcSettings};
use documented::DocumentedFields;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::volumes::unlisted_volumes;

/// Everything in a node's settings file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct NodeBatchSettings {
    /// The number of files that each batch job computes at once, if `memory` allows. The default is the number of
    /// cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<NonZeroU16>,
    /// The number of batch jobs that run at once. A further one is refused, and asked again later.
    pub jobs: NonZeroU16,
    /// The number of reduce steps of components that run at once. A further one is refused, and asked again later.
    pub reduces: NonZeroU16,
    /// The memory that the components of all batch jobs take together. Each job has an equal share, and may always run
    /// one component. The default is half of what the machine has, but at least 2 GiB. Compiling takes more on top. Set
    /// it if several nodes share a machine, and in a container that may take less.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct AtticSettings {
    /// The least time that items of the attic are kept, for all callers.
    #[serde(default = "min_age")]
    pub min_age: Period,
    /// The most copies that are put aside or purged within an hour, for all callers together, drained or not. A drain
    /// to other nodes goes at this pace; to drain a whole node, raise it on that node for as long.
    #[serde(default = "removals_per_hour")]
    pub removals_per_hour: u64,
    /// The most copies on drained volumes that are put aside within an hour if this node has the same content on
    /// another of its volumes, which is not drained.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
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

/// The longest time that the bytes of a cut upload may be kept: a date so long ago is one of any calendar.
const LONGEST_KEPT: Period = Period::from_secs(36_500 * 24 * 3600);

/// Refuses the first of `settings` that is zero. Each has its name, whether it is zero, and what to write instead.
pub(crate) fn refuse_zero(
    settings: impl IntoIterator<Item = (&'static str, bool, &'static str)>,
) -> Result<(), InvalidSettings> {
    match settings.into_iter().find(|(_, is_zero, _)| *is_zero) {
        Some((setting, _, instead)) => {
            Err(InvalidSettings::new(format!("{setting} is 0: {instead}")))
        }
        None => Ok(()),
    }
}

/// The advice for the limit on silent senders, which a node and a checksum replica have.
pub(crate) const SET_IDLE: &str =
    "set the time that the sender of a file may be silent, such as \"60 s\"";

impl PartSettings for Settings {
    const PART: &'static str = "bitarchive";
    const FORM: SettingsForm = SettingsForm {
        section: "bitarchive",
        sections: &[
            Section::section_of::<Self>(""),
            Section::section_of::<DaemonSettings>("daemon"),
            Section::section_of::<RpcSettings>("rpc"),
            Section::section_of::<NodeSettings>("bitarchive"),
            Section::section_of::<ScrubSettings>("scrub"),
            Section::section_of::<AtticSettings>("attic"),
            Section::section_of::<NodeBatchSettings>("batch_node"),
        ],
        example: r#"
[rpc]
listen = "127.0.0.1:7403"
certificate = "pki/one-1.pem"
key = "pki/one-1.key"
authorities = "pki/authorities.pem"

[bitarchive]
node = "one-1"
replica = "one"
data = "node"
volumes = ["volume"]
trust = "trust.json"
monitor = "127.0.0.1:7402"
"#,
    };

    fn daemon(&self) -> &DaemonSettings {
        &self.daemon
    }

    fn rpc(&self) -> &RpcSettings {
        &self.rpc
    }

    fn holders(&self) -> Vec<(Role, Option<&str>)> {
        vec![(Role::Node, Some(self.bitarchive.node.as_str()))]
    }

    fn check_values(&self) -> Result<(), InvalidSettings> {
        let own = &self.bitarchive;
        let scrub = &self.scrub;
        let is_empty = |size: Option<ByteSize>| size.is_some_and(ByteSize::is_zero);
        refuse_zero([
            ("bitarchive.idle", own.idle.is_zero(), SET_IDLE),
            (
                "bitarchive.look",
                own.look.is_zero(),
                "set the time between two looks at the disks, such as \"5 s\"",
            ),
            (
                "scrub.deadline",
                scrub.enabled && scrub.deadline.is_zero(),
                "set the time within which every copy is read, such as \"30 d\", or switch the scrub off with \
                 `scrub.enabled = false`",
            ),
            (
                "scrub.rate",
                scrub.enabled && is_empty(scrub.rate),
                "set the most bytes a second, such as \"50 MB\", leave it out for what the deadline asks for, or switch the \
                 scrub off with `scrub.enabled = false`",
            ),
            (
                "batch_node.memory",
                is_empty(self.batch_node.memory),
                "set the memory of the components of all batch jobs, such as \"2 GiB\", or leave it out for half of what \
                 the machine has",
            ),
        ])?;
        if own.keep_uploads > LONGEST_KEPT {
            return Err(InvalidSettings::new(format!(
                "bitarchive.keep_uploads is {}, and a node cannot look back that far: set at most {LONGEST_KEPT}",
                own.keep_uploads
            )));
        }
        Ok(())
    }

    fn check_files(&self, _now: Timestamp) -> Result<(), StartError> {
        read_trust_file("bitarchive.trust", &self.bitarchive.trust).map(drop)
    }

    /// Names the volumes that the node goes on filling though its settings no longer name them, as far as its data are
    /// here.
    fn list_doubts(&self) -> Vec<String> {
        let own = &self.bitarchive;
        match unlisted_volumes(&own.data, &own.volumes) {
            Ok(unlisted) if unlisted.is_empty() => Vec::new(),
            Ok(unlisted) => {
                let paths = unlisted
                    .iter()
                    .map(|(id, path)| format!("{id} at {}", path.display()));
                vec![format!(
                    "bitarchive.volumes: the node knows volumes that it no longer names, and goes on filling them: {}; \
                     drain them or make them read-only, or name them again",
                    paths.collect::<Vec<_>>().join(", ")
                )]
            }
            Err(error) => vec![error.to_string()],
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_daemon::settings::{Sources, load_settings};

    use super::*;

    fn settings(set: &[&str]) -> Settings {
        let least = [
            "bitarchive.node=n1",
            "bitarchive.replica=one",
            "bitarchive.data=d",
            "bitarchive.volumes=[\"v\"]",
            "bitarchive.trust=t.json",
            "bitarchive.monitor=127.0.0.1:1",
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

    /// Fails if a default does not pass the check.
    #[test]
    fn defaults_of_node_pass_check() {
        assert_eq!(settings(&[]).check_values(), Ok(()));
    }

    /// Fails if a limit of nothing passes, or the error does not say which setting it is and what would be right.
    #[test]
    fn limits_of_zero_are_refused_with_advice() {
        for (name, value, advice) in [
            ("bitarchive.idle", "0 s", "60 s"),
            ("bitarchive.look", "0 ms", "5 s"),
            ("scrub.deadline", "0 s", "scrub.enabled = false"),
            ("scrub.rate", "0 B", "leave it out"),
            ("batch_node.memory", "0 B", "leave it out"),
        ] {
            let error = settings(&[&format!("{name}={value}")])
                .check_values()
                .unwrap_err()
                .to_string();
            let begins = format!("{name} is 0: ");
            assert!(
                error.starts_with(&begins) && error.contains(advice),
                "{error}"
            );
        }
    }

    /// Fails if a node may be set to look back further than its clock can, at which it would stop.
    #[test]
    fn endless_upload_retention_is_refused() {
        let check =
            |kept: &str| settings(&[&format!("bitarchive.keep_uploads={kept}")]).check_values();
        assert_eq!(check("36500 d"), Ok(()));
        let error = check("36501 d").unwrap_err().to_string();
        assert!(
            error.contains("bitarchive.keep_uploads") && error.contains("at most 36500 d"),
            "{error}"
        );
    }

    /// Fails if a limit that stops removals, or a scrub that is off, counts as a mistake.
    #[test]
    fn zeros_with_a_meaning_are_allowed() {
        for set in [
            &["attic.removals_per_hour=0", "attic.moved_per_hour=0"][..],
            &["attic.min_age=0 s", "attic.evidence=0 s"],
            &["scrub.young=0 s", "bitarchive.keep_uploads=0 s"],
            &["scrub.enabled=false", "scrub.deadline=0 s"],
            &["bitarchive.reserve=0 B"],
        ] {
            assert_eq!(settings(set).check_values(), Ok(()), "{set:?}");
        }
    }
}
