//! The settings of a monitor.

use archive_daemon::settings::{InvalidSettings, Section, SettingsForm};
use archive_daemon::{DaemonSettings, Period, StartError};
use archive_model::ReplicaId;
use archive_part::PartSettings;
use archive_rpc::{Role, RpcSettings};
use documented::DocumentedFields;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Everything in a monitor's settings file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Logs, metrics, stop.
    #[serde(default)]
    pub daemon: DaemonSettings,
    /// The address on which the monitor listens, and its certificate: `monitor/<replica>`.
    pub rpc: RpcSettings,
    /// The monitor itself.
    pub monitor: MonitorSettings,
}

impl PartSettings for Settings {
    const PART: &'static str = "monitor";
    const FORM: SettingsForm = SettingsForm {
        section: "monitor",
        sections: &[
            Section::section_of::<Self>(""),
            Section::section_of::<DaemonSettings>("daemon"),
            Section::section_of::<RpcSettings>("rpc"),
            Section::section_of::<MonitorSettings>("monitor"),
        ],
        example: r#"
[rpc]
listen = "127.0.0.1:7402"
certificate = "pki/monitor-one.pem"
key = "pki/monitor-one.key"
authorities = "pki/authorities.pem"

[monitor]
replica = "one"
"#,
    };

    fn daemon(&self) -> &DaemonSettings {
        &self.daemon
    }

    fn rpc(&self) -> &RpcSettings {
        &self.rpc
    }

    fn holders(&self) -> Vec<(Role, Option<&str>)> {
        vec![(Role::Monitor, Some(self.monitor.replica.as_str()))]
    }

    fn check_values(&self) -> Result<(), InvalidSettings> {
        self.monitor.check()
    }

    fn check_files(&self, _now: Timestamp) -> Result<(), StartError> {
        Ok(())
    }
}

/// The section `[monitor]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct MonitorSettings {
    /// The replica of this monitor.
    pub replica: ReplicaId,
    /// The time between two signs of life of a node.
    #[serde(default = "heartbeat")]
    pub heartbeat: Period,
    /// The age that the last sign of life of a living node may have. At least twice `heartbeat`.
    #[serde(default = "silent_after")]
    pub silent_after: Period,
    /// The time that a node may take to say whether it has a file.
    #[serde(default = "find")]
    pub find: Period,
    /// The time that a node may send nothing in the middle of its listing. Shorter than the same limit of the
    /// repository, so that one node that stalls costs the listing that node and not the listing.
    #[serde(default = "idle")]
    pub idle: Period,
}

const fn heartbeat() -> Period {
    Period::from_secs(1)
}

const fn silent_after() -> Period {
    Period::from_secs(10)
}

const fn find() -> Period {
    Period::from_secs(5)
}

const fn idle() -> Period {
    Period::from_secs(15)
}

impl MonitorSettings {
    /// Returns the default settings for a replica.
    pub const fn new(replica: ReplicaId) -> Self {
        Self {
            replica,
            heartbeat: heartbeat(),
            silent_after: silent_after(),
            find: find(),
            idle: idle(),
        }
    }

    /// Checks that the settings can work together.
    ///
    /// # Errors
    ///
    /// Fails with the first value that makes no sense, or the first two that contradict each other.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        self.heartbeat.refuse_zero("monitor.heartbeat")?;
        self.find.refuse_zero("monitor.find")?;
        self.idle.refuse_zero("monitor.idle")?;
        if self.silent_after.duration() < self.heartbeat.duration().saturating_mul(2) {
            return Err(InvalidSettings::new(format!(
                "monitor.silent_after ({}) must be at least twice monitor.heartbeat ({})",
                self.silent_after, self.heartbeat
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use archive_daemon::settings::{Sources, load_settings, print_settings};

    use super::*;

    fn sources(set: &[&str]) -> Sources {
        let least = [
            "monitor.replica=one",
            "rpc.listen=127.0.0.1:0",
            "rpc.certificate=c.pem",
            "rpc.key=k.pem",
            "rpc.authorities=a.pem",
        ];
        Sources::from_set(least.iter().chain(set).copied())
    }

    /// Fails if a setting without which a monitor can run has no default, or a default is refused or not printed.
    #[test]
    fn monitor_settings_have_valid_defaults() {
        let settings: Settings = load_settings(&sources(&[])).unwrap();
        assert_eq!(
            settings.monitor,
            MonitorSettings::new(ReplicaId::new("one").unwrap())
        );
        settings.monitor.check().unwrap();
        let printed = print_settings(&settings).unwrap();
        assert!(printed.contains("silent_after = \"10 s\""), "{printed}");
    }

    /// Fails if a misspelt key is ignored, so that its default counts, or an id that cannot be one is accepted.
    #[test]
    fn unknown_key_or_bad_id_is_refused() {
        for (set, says) in [
            ("monitor.silent_afer=5 s", "silent_afer"),
            ("monitor.replica=Ä", "replica id"),
        ] {
            let error = load_settings::<Settings>(&sources(&[set]))
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    /// Fails if a limit of zero is accepted, or nodes can count as silent before a second heartbeat is due.
    #[test]
    fn limits_that_make_no_sense_are_refused() {
        let check = |set: &[&str]| {
            load_settings::<Settings>(&sources(set))
                .unwrap()
                .monitor
                .check()
        };
        for name in ["monitor.heartbeat", "monitor.find", "monitor.idle"] {
            let zero = check(&[&format!("{name}=0 s")]);
            let wanted = format!("{name} must be longer than 0");
            assert_eq!(zero.unwrap_err().to_string(), wanted);
        }
        let error = check(&["monitor.silent_after=1999 ms"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("1999 ms") && error.contains("1 s"),
            "{error}"
        );
        assert_eq!(check(&["monitor.silent_after=2 s"]), Ok(()));
    }
}
