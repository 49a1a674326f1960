//! The surroundings of a job: the machine that it runs on, its clock, and the archive that takes its files.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use archive_client::Ingest;
use archive_daemon::clock::{Chance, Clock};

/// The surroundings of a job.
#[derive(Clone)]
pub struct JobEnvironment {
    /// The clock of the job.
    pub clock: Clock,
    /// Randomness.
    pub chance: Chance,
    /// The archive that takes the files; `None`: they stay in the directory.
    pub archive: Option<Arc<dyn Ingest>>,
    /// The time for which an archive that takes no file is waited for.
    pub patience: Duration,
    /// Whether local files stay after they are stored.
    pub keeps_files: bool,
    /// The name of this machine.
    pub host: String,
    /// The address of this machine, for the metadata file.
    pub address: IpAddr,
    /// The organisation that harvests, in the URIs of the metadata file.
    pub organization: String,
}

impl std::fmt::Debug for JobEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobEnvironment")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}
