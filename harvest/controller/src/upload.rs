//! Archive files on their way into the archive.
//!
//! Owns that a local file goes only on a receipt that is kept beside it, and that an archive that is down is waited for. Hashes
//! the file from the disk, and announces the hash.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archive_client::{Announced, ClientError, Deposit, Ingest, StoreEvent};
use archive_daemon::clock::Clock;
use archive_durable::{DiskError, UncachedFile, directory, replace};
use archive_model::{FileName, InvalidFileName};

use crate::directory::JobDirectory;
use crate::job::Notice;

/// The first pause before an archive that cannot take a file is asked again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Why a file is not in the archive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// No file of the archive may have its name.
    #[error("{name}: {source}; store it under another name by `holdfast store`")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        source: InvalidFileName,
    },
    /// The local disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The archive refuses it.
    #[error("{name}: {source}; the file stays where it is")]
    Archive {
        /// The name.
        name: String,
        /// Why.
        source: ClientError,
    },
    /// The archive could not take it for too long.
    #[error("{name}: {source}; waited {waited:?} for it, and the file stays where it is")]
    Patience {
        /// The name.
        name: String,
        /// How long.
        waited: Duration,
        /// The last answer.
        source: ClientError,
    },
    /// The task that reads the file.
    #[error("{name}: reading it: {source}")]
    Task {
        /// The name.
        name: String,
        /// Why.
        source: tokio::task::JoinError,
    },
}

/// Stores the files of a job.
pub(crate) struct Uploader<'a> {
    pub(crate) archive: &'a dyn Ingest,
    pub(crate) directory: &'a JobDirectory,
    pub(crate) clock: &'a Clock,
    pub(crate) patience: Duration,
    pub(crate) keeps_files: bool,
    pub(crate) notify: &'a (dyn Fn(Notice<'_>) + Send + Sync),
}

impl Uploader<'_> {
    /// Stores a file in every required replica, keeps its receipt, and then deletes it.
    pub(crate) async fn upload(&self, name: &str, path: &Path) -> Result<(), UploadError> {
        let receipt = self
            .directory
            .path("receipts")
            .join(format!("{name}.receipt.json"));
        let has_receipt = directory::kind(&receipt)?.is_some();
        let is_here = directory::kind(path)?.is_some();
        // A file that is to go is stored again even so: the archive says once more that it has these bytes.
        if has_receipt && (self.keeps_files || !is_here) {
            return Ok(());
        }
        let envelope = self.store(name, path).await?;
        replace(&receipt, envelope.as_bytes())?;
        (self.notify)(Notice::Stored(name));
        if !self.keeps_files {
            directory::remove_name(path)?;
        }
        Ok(())
    }

    async fn store(&self, name: &str, path: &Path) -> Result<String, UploadError> {
        let file_name = FileName::new(name).map_err(|source| UploadError::Name {
            name: name.to_owned(),
            source,
        })?;
        let uncached = path.to_owned();
        let read = move || -> Result<_, DiskError> {
            let file = UncachedFile::open(&uncached)?;
            Ok((file.size()?, file.root()?))
        };
        let read = tokio::task::spawn_blocking(read).await;
        let (size, root) = read.map_err(|source| UploadError::Task {
            name: name.to_owned(),
            source,
        })??;
        let source = File::open(path).map_err(|error| DiskError::new("open", path, error))?;
        let deposit = Deposit {
            name: file_name,
            size,
            source: Arc::new(source),
            announced: Announced {
                blake3: Some(root),
                ..Announced::default()
            },
            no_digest: false,
        };
        let quiet = |_: StoreEvent<'_>| {};
        let begin = self.clock.instant();
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.archive.store(&deposit, &quiet).await {
                Ok(stored) => return Ok(stored.envelope),
                Err(error) => error,
            };
            let name = name.to_owned();
            if !may_pass(&error) {
                return Err(UploadError::Archive {
                    name,
                    source: error,
                });
            }
            let waited = self.clock.instant().saturating_duration_since(begin);
            if waited >= self.patience {
                return Err(UploadError::Patience {
                    name,
                    waited,
                    source: error,
                });
            }
            (self.notify)(Notice::Waiting {
                name: &name,
                error: &error,
                pause,
            });
            self.clock.sleep(pause).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }
}

/// Whether an archive that has answered so may take the file later.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Busy(_)
        | ClientError::Unavailable(_)
        | ClientError::TimedOut(_)
        | ClientError::NotEnoughReplicas(_)
        | ClientError::NoSpace(_)
        | ClientError::Storage(_) => true,
        ClientError::Invalid(_)
        | ClientError::NotFound(_)
        | ClientError::Exists(_)
        | ClientError::Mismatch(_)
        | ClientError::Damaged(_)
        | ClientError::Refused(_)
        | ClientError::NotOffered(_)
        | ClientError::Precondition(_)
        | ClientError::Untrusted(_)
        | ClientError::Source { .. }
        | ClientError::Bug(_) => false,
    }
}
