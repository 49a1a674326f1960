//! The settings of an index.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use archive_daemon::settings::{InvalidSettings, Section, SettingsForm};
use archive_daemon::{ByteSize, DaemonSettings, Period, StartError};
use archive_model::NameList;
use archive_part::{PartSettings, read_trust_file};
use archive_rpc::{Role, RpcSettings};
use documented::DocumentedFields;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::queue::FileQueueLimits;

/// Everything in the settings file of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Logs, metrics, stop.
    #[serde(default)]
    pub daemon: DaemonSettings,
    /// The address that the index listens on, and its certificate: `index/<name>`.
    pub rpc: RpcSettings,
    /// The index itself.
    pub index: IndexSettings,
}

impl PartSettings for Settings {
    const PART: &'static str = "index";
    const FORM: SettingsForm = SettingsForm {
        section: "index",
        sections: &[
            Section::section_of::<Self>(""),
            Section::section_of::<DaemonSettings>("daemon"),
            Section::section_of::<RpcSettings>("rpc"),
            Section::section_of::<IndexSettings>("index"),
        ],
        example: r#"
[rpc]
listen = "127.0.0.1:7407"
certificate = "pki/index.pem"
key = "pki/index.key"
authorities = "pki/authorities.pem"

[index]
data = "index"
repository = "127.0.0.1:7401"
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
        vec![(Role::Index, None)]
    }

    fn check_values(&self) -> Result<(), InvalidSettings> {
        self.index.check()
    }

    fn check_files(&self, _now: Timestamp) -> Result<(), StartError> {
        read_trust_file("index.trust", &self.index.trust).map(drop)
    }
}

/// The section `[index]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct IndexSettings {
    /// The directory of the database. All of it but imported sets comes back from the archive by itself.
    pub data: PathBuf,
    /// The address of the repository, `host:port`.
    pub repository: String,
    /// The trust file: whose signatures count.
    pub trust: PathBuf,
    /// About how much memory the database takes.
    #[serde(default = "memory")]
    pub memory: ByteSize,
    /// The most batch jobs that it has at once. More than the nodes have places for in its class (2) only wait.
    #[serde(default = "jobs")]
    pub jobs: NonZeroUsize,
    /// The most files of one job.
    #[serde(default = "files_per_job")]
    pub files_per_job: NonZeroUsize,
    /// The most bytes of files of one job; one larger file is a job of its own.
    #[serde(default = "bytes_per_job")]
    pub bytes_per_job: ByteSize,
    /// The pause before a file that failed is tried again; it is tenfold the second time. The third failure parks it. A
    /// file that no node has read has not failed, and is tried again after the tenfold pause.
    #[serde(default = "retry")]
    pub retry: Period,
    /// The pause between two files that are taken at random, read again, and compared with what is in the index.
    #[serde(default = "compare")]
    pub compare: Period,
    /// The most queries that are answered at once. A further one is refused as busy.
    #[serde(default = "queries")]
    pub queries: NonZeroUsize,
}

const fn memory() -> ByteSize {
    ByteSize::from_bytes(256 << 20)
}

const fn jobs() -> NonZeroUsize {
    NonZeroUsize::MIN.saturating_add(1)
}

const fn files_per_job() -> NonZeroUsize {
    NonZeroUsize::MIN.saturating_add(99)
}

const fn bytes_per_job() -> ByteSize {
    ByteSize::from_bytes(4_000_000_000)
}

const fn retry() -> Period {
    Period::from_secs(5)
}

const fn compare() -> Period {
    Period::from_secs(600)
}

const fn queries() -> NonZeroUsize {
    NonZeroUsize::MIN.saturating_add(63)
}

impl IndexSettings {
    /// Returns the defaults, with the settings that have none.
    pub fn new(data: PathBuf, repository: String, trust: PathBuf) -> Self {
        Self {
            data,
            repository,
            trust,
            memory: memory(),
            jobs: jobs(),
            files_per_job: files_per_job(),
            bytes_per_job: bytes_per_job(),
            retry: retry(),
            compare: compare(),
            queries: queries(),
        }
    }

    /// Checks whether the settings can work.
    ///
    /// # Errors
    ///
    /// Fails when a pause has no length, or a job would name too many files.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        self.retry.refuse_zero("index.retry")?;
        self.compare.refuse_zero("index.compare")?;
        if self.files_per_job.get() > NameList::MOST {
            return Err(InvalidSettings::new(format!(
                "index.files_per_job is {}; a job may name {} files at most",
                self.files_per_job,
                NameList::MOST
            )));
        }
        Ok(())
    }

    /// Returns how much is read at once.
    pub(crate) fn queue_limits(&self) -> FileQueueLimits {
        FileQueueLimits {
            batches: self.jobs.get(),
            files: self.files_per_job.get(),
            bytes: self.bytes_per_job.bytes(),
            pause: self.retry.duration().max(Duration::from_millis(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_daemon::settings::{Sources, load_settings, print_settings};

    use super::*;

    fn sources(set: &[&str]) -> Sources {
        let least = [
            "index.data=d",
            "index.repository=127.0.0.1:1",
            "index.trust=t.json",
            "rpc.listen=127.0.0.1:0",
            "rpc.certificate=c.pem",
            "rpc.key=k.pem",
            "rpc.authorities=a.pem",
        ];
        Sources::from_set(least.iter().chain(set).copied())
    }

    /// Fails if a default is missing, or does not pass its own check.
    #[test]
    fn least_settings_are_enough() {
        let settings: Settings = load_settings(&sources(&[])).unwrap();
        let expected = IndexSettings::new("d".into(), "127.0.0.1:1".to_owned(), "t.json".into());
        assert_eq!(settings.index, expected);
        settings.index.check().unwrap();
        let printed = print_settings(&settings).unwrap();
        assert!(printed.contains("jobs = 2"), "{printed}");
    }

    /// Fails if a misspelt key is taken, or settings that cannot work are.
    #[test]
    fn faulty_settings_are_refused() {
        let error = load_settings::<Settings>(&sources(&["index.job=3"])).unwrap_err();
        assert!(error.to_string().contains("index.job"), "{error}");
        let check = |set: &str| {
            load_settings::<Settings>(&sources(&[set]))
                .unwrap()
                .index
                .check()
        };
        for name in ["index.retry", "index.compare"] {
            let zero = check(&format!("{name}=0 s"));
            let wanted = format!("{name} must be longer than 0");
            assert_eq!(zero.unwrap_err().to_string(), wanted);
        }
        let many = check("index.files_per_job=10001");
        let many = many.unwrap_err().to_string();
        assert!(many.contains("10001") && many.contains("at most"), "{many}");
        for zero in ["index.jobs=0", "index.queries=0", "index.files_per_job=0"] {
            assert!(
                load_settings::<Settings>(&sources(&[zero])).is_err(),
                "{zero}"
            );
        }
    }
}
