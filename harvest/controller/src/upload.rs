//! Archive files on their way into the archive.
//!
//! Owns that a local file goes only on a receipt of its own bytes that is kept beside it, and that an archive that is
//! down is waited for. Announces the root that each file was closed with: bytes that have changed since are refused.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_client::{AnnouncedDigests, ClientError, Deposit, Ingest, StoreEvent};
use archive_durable::{DiskError, UncachedFile, directory};
use archive_model::{Backoff, FileName, InvalidFileName, Root};
use harvest_crawler::archive_files::ClosedFile;
use tokio::sync::{mpsc, watch};

use crate::directory::JobDirectory;
use crate::environment::JobEnvironment;
use crate::notice::{JobNotice, NoticeHandler};

/// The first pause before an archive that cannot take a file is asked again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// The reason why a file is not in the archive.
#[derive(Debug, thiserror::Error)]
enum UploadError {
    /// The name of the file is not allowed for a file of the archive.
    #[error("{name}: {source}; store it under another name by `holdfast store`")]
    Name {
        /// The name of the file.
        name: String,
        /// The rule that the name breaks.
        source: InvalidFileName,
    },
    /// The local disk fails.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The archive refuses the file.
    #[error("{name}: {source}; the file stays where it is")]
    Archive {
        /// The name of the file.
        name: String,
        /// The answer of the archive.
        source: ClientError,
    },
    /// The archive has taken no file for too long.
    #[error("{name}: {source}; waited {waited:?} for the archive, and the file stays where it is")]
    Patience {
        /// The name of the file.
        name: String,
        /// The time that was waited.
        waited: Duration,
        /// The last answer.
        source: ClientError,
    },
    /// The receipt is for another file.
    #[error(
        "{name}: the receipt of the archive is for {other}; the file stays where it is, ask the operators of the archive"
    )]
    OtherReceipt {
        /// The name of the file that was stored.
        name: String,
        /// The file that the receipt is for.
        other: String,
    },
    /// The file names captures of files that are not in the archive.
    #[error(
        "{name}: documents archive files that are not stored yet, and is stored after them, when the job is resumed"
    )]
    Early {
        /// The name of the file.
        name: String,
    },
    /// The file is not here, though no receipt is kept.
    #[error(
        "{name}: is not here, and its receipt cannot be read; get it again by `holdfast receipt {name}`"
    )]
    Gone {
        /// The name of the file.
        name: String,
    },
    /// The task that reads the file broke off.
    #[error("cannot read {name}: {source}; the file stays where it is")]
    Task {
        /// The name of the file.
        name: String,
        /// The reason why the task ended.
        source: tokio::task::JoinError,
    },
}

/// A file that is whole, and is to be stored.
#[derive(Clone, Debug)]
pub(crate) struct WholeFile {
    pub(crate) file: ClosedFile,
    /// The BLAKE3 root of the file as it was closed; `None` of one that has a receipt.
    pub(crate) root: Option<Root>,
}

/// The end of an attempt to store a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadAttempt {
    /// The file is stored.
    Stored,
    /// The archive takes no file for now: the file is tried again after the next one that is stored.
    GivenUp,
    /// The file cannot be stored: another attempt would end as this one.
    Refused,
    /// The archive has other content under the name of the file.
    NameTaken,
}

/// An uploader of the files of a job.
pub(crate) struct Uploader<'a> {
    directory: &'a JobDirectory,
    environment: &'a JobEnvironment,
    notify: NoticeHandler<'a>,
    /// The moment since which the archive has taken nothing.
    down_since: Cell<Option<Instant>>,
}

impl<'a> Uploader<'a> {
    /// Returns an uploader of the files of a job.
    pub(crate) const fn new(
        directory: &'a JobDirectory,
        environment: &'a JobEnvironment,
        notify: NoticeHandler<'a>,
    ) -> Self {
        Self {
            directory,
            environment,
            notify,
            down_since: Cell::new(None),
        }
    }

    /// Stores files in the order in which they come, until there are no more or the job is suspended. Files that the
    /// archive could not take are tried again once it takes another one, and at the end. The metadata file comes last, and
    /// not before all others: what is not in the archive would pass for known. Returns the reasons why files were not
    /// stored.
    pub(crate) async fn upload_all(
        &self,
        mut files: mpsc::UnboundedReceiver<WholeFile>,
        suspended: watch::Receiver<bool>,
    ) -> BTreeMap<String, String> {
        let mut failures = BTreeMap::new();
        let Some(archive) = self.environment.archive.as_deref() else {
            return failures;
        };
        let uploading = async {
            let mut given_up = Vec::new();
            let mut metadata = Vec::new();
            while let Some(file) = files.recv().await {
                if file
                    .file
                    .path
                    .starts_with(self.directory.path_of("metadata"))
                {
                    metadata.push(file);
                    continue;
                }
                match self.upload_or_notify(archive, &file, &mut failures).await {
                    UploadAttempt::Stored => {
                        for file in std::mem::take(&mut given_up) {
                            if self.upload_or_notify(archive, &file, &mut failures).await
                                == UploadAttempt::GivenUp
                            {
                                given_up.push(file);
                            }
                        }
                    }
                    UploadAttempt::GivenUp => given_up.push(file),
                    UploadAttempt::Refused | UploadAttempt::NameTaken => {}
                }
            }
            for file in given_up {
                self.upload_or_notify(archive, &file, &mut failures).await;
            }
            for file in metadata {
                if failures.is_empty() {
                    let attempt = self.upload_or_notify(archive, &file, &mut failures);
                    if attempt.await == UploadAttempt::NameTaken
                        && let Err(error) = self.directory.take_next_metadata_name()
                    {
                        failures.insert(file.file.name.clone(), error.to_string());
                    }
                } else {
                    let name = &file.file.name;
                    let why = UploadError::Early { name: name.clone() }.to_string();
                    (self.notify)(JobNotice::NotStored { name, why: &why });
                    failures.insert(name.clone(), why);
                }
            }
        };
        tokio::select! {
            // An upload under way is given up: the file is stored from its start when the job is resumed.
            () = wait_until_set(suspended) => {}
            () = uploading => {}
        }
        failures
    }

    /// Stores a file, or tells people why it is not stored and notes that among the failures.
    async fn upload_or_notify(
        &self,
        archive: &dyn Ingest,
        whole: &WholeFile,
        failures: &mut BTreeMap<String, String>,
    ) -> UploadAttempt {
        let file = &whole.file;
        let Err(error) = self.upload(archive, whole).await else {
            failures.remove(&file.name);
            return UploadAttempt::Stored;
        };
        let why = error.to_string();
        (self.notify)(JobNotice::NotStored {
            name: &file.name,
            why: &why,
        });
        failures.insert(file.name.clone(), why);
        match error {
            UploadError::Patience { .. } => UploadAttempt::GivenUp,
            UploadError::Archive {
                source: ClientError::Exists(_),
                ..
            } => UploadAttempt::NameTaken,
            _ => UploadAttempt::Refused,
        }
    }

    /// Stores a file in every required replica, keeps its receipt, and then deletes it.
    async fn upload(&self, archive: &dyn Ingest, whole: &WholeFile) -> Result<(), UploadError> {
        let file = &whole.file;
        let name = &file.name;
        let has_receipt = self.directory.has_receipt(name)?;
        let is_here = directory::entry_kind(&file.path)?.is_some();
        if has_receipt && (self.environment.keeps_files || !is_here) {
            return Ok(());
        }
        if !is_here {
            return Err(UploadError::Gone { name: name.clone() });
        }
        // A file that is to go is stored again also if it has a receipt: the archive says once more that it has these
        // bytes.
        let envelope = self.store(archive, whole).await?;
        self.directory.keep_receipt(name, &envelope)?;
        (self.notify)(JobNotice::Stored(name));
        if !self.environment.keeps_files {
            directory::remove_name(&file.path)?;
        }
        Ok(())
    }

    /// Returns the receipt of a file that the archive has stored.
    async fn store(&self, archive: &dyn Ingest, whole: &WholeFile) -> Result<String, UploadError> {
        let name = whole.file.name.as_str();
        let deposit = deposit(whole).await?;
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let error = match archive.store(&deposit, &|_: StoreEvent<'_>| {}).await {
                Ok(stored) => {
                    self.down_since.set(None);
                    let admission = &stored.admission;
                    let is_same = admission.name == deposit.name
                        && admission.size == deposit.size
                        && Some(admission.root) == deposit.announced.blake3;
                    return if is_same {
                        Ok(stored.envelope)
                    } else {
                        Err(UploadError::OtherReceipt {
                            name: name.to_owned(),
                            other: format!(
                                "{} of {} bytes, blake3 {}",
                                admission.name, admission.size, admission.root
                            ),
                        })
                    };
                }
                Err(error) => error,
            };
            if !is_temporary(&error) {
                self.down_since.set(None);
                return Err(UploadError::Archive {
                    name: name.to_owned(),
                    source: error,
                });
            }
            let now = self.environment.clock.instant();
            let since = self.down_since.get().unwrap_or(now);
            self.down_since.set(Some(since));
            let waited = now.saturating_duration_since(since);
            if waited >= self.environment.patience {
                return Err(UploadError::Patience {
                    name: name.to_owned(),
                    waited,
                    source: error,
                });
            }
            let pause = backoff.next_pause();
            (self.notify)(JobNotice::Waiting {
                name,
                error: &error,
                pause,
            });
            self.environment.clock.sleep(pause).await;
        }
    }
}

/// Waits until a value is set; forever if nobody is left to set it.
async fn wait_until_set(mut value: watch::Receiver<bool>) {
    if value.wait_for(|is_set| *is_set).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns a file as it is announced to the archive.
async fn deposit(whole: &WholeFile) -> Result<Deposit, UploadError> {
    let name = whole.file.name.as_str();
    let path = whole.file.path.as_path();
    let file_name = FileName::new(name).map_err(|source| UploadError::Name {
        name: name.to_owned(),
        source,
    })?;
    let root = match whole.root {
        Some(root) => root,
        None => read_root(name, path).await?,
    };
    let source = File::open(path).map_err(|error| DiskError::new("open", path, error))?;
    Ok(Deposit {
        name: file_name,
        size: whole.file.size,
        source: Arc::new(source),
        announced: AnnouncedDigests {
            blake3: Some(root),
            ..AnnouncedDigests::default()
        },
        no_digest: false,
    })
}

/// Reads a file past the page cache for its root.
async fn read_root(name: &str, path: &Path) -> Result<Root, UploadError> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || UncachedFile::open(&path)?.root()).await;
    Ok(read.map_err(|source| UploadError::Task {
        name: name.to_owned(),
        source,
    })??)
}

/// Returns whether an archive that has answered so may take the file later.
fn is_temporary(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Busy(_)
            | ClientError::Unavailable(_)
            | ClientError::TimedOut(_)
            | ClientError::NotEnoughReplicas(_)
            | ClientError::NoSpace(_)
            | ClientError::Storage(_)
    )
}
