//! The settings of an index.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use archive_daemon::settings::ZeroSetting;
use archive_daemon::{ByteSize, DaemonSettings, Period};
use archive_model::NameList;
use archive_rpc::RpcSettings;
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::queue::QueueLimits;

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

/// Settings that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettings {
    /// A pause of no time: failures would be tried again without end at full speed.
    #[error(transparent)]
    Zero(#[from] ZeroSetting),
    /// More files than a job may name.
    #[error("index.files_per_job is {0}; a job may name {most} files at most", most = NameList::MOST)]
    Files(usize),
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
            return Err(InvalidSettings::Files(self.files_per_job.get()));
        }
        Ok(())
    }

    /// Returns how much is read at once.
    pub(crate) fn limits(&self) -> QueueLimits {
        QueueLimits {
            batches: self.jobs.get(),
            files: self.files_per_job.get(),
            bytes: self.bytes_per_job.bytes(),
            pause: self.retry.duration().max(Duration::from_millis(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_daemon::settings::{Sources, load, print};

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
        let settings: Settings = load(&sources(&[])).unwrap();
        let expected = IndexSettings::new("d".into(), "127.0.0.1:1".to_owned(), "t.json".into());
        assert_eq!(settings.index, expected);
        settings.index.check().unwrap();
        let printed = print(&settings).unwrap();
        assert!(printed.contains("jobs = 2"), "{printed}");
    }

    /// Fails if a misspelt key is taken, or settings that cannot work are.
    #[test]
    fn faulty_settings_are_refused() {
        let error = load::<Settings>(&sources(&["index.job=3"])).unwrap_err();
        assert!(error.to_string().contains("index.job"), "{error}");
        let check = |set: &str| load::<Settings>(&sources(&[set])).unwrap().index.check();
        for name in ["index.retry", "index.compare"] {
            let zero = check(&format!("{name}=0 s"));
            assert_eq!(zero, Err(ZeroSetting::Period(name).into()));
        }
        let many = check("index.files_per_job=10001");
        assert_eq!(many, Err(InvalidSettings::Files(10_001)));
        for zero in ["index.jobs=0", "index.queries=0", "index.files_per_job=0"] {
            assert!(load::<Settings>(&sources(&[zero])).is_err(), "{zero}");
        }
    }
}
