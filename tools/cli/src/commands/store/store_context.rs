//! Storing one file: it is hashed, compared with the list, stored, and its receipt is written.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_client::{AnnouncedDigests, Deposit, Depositor, Ingest, StoreEvent, StoredFile};
use archive_model::{FileName, ReplicaId, Root};
use serde::Serialize;
use tools_terminal::checksums::{self, Checksums};
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::progress::TransferProgress;

use super::sources::SourceFile;

/// The context that all files share.
#[derive(Debug)]
pub(super) struct StoreContext {
    pub(super) depositor: Depositor,
    pub(super) checksums: Option<Checksums>,
    pub(super) no_digest: bool,
    pub(super) receipts: Option<PathBuf>,
    pub(super) progress: TransferProgress,
}

/// A file that is in every required replica.
#[derive(Debug, Serialize)]
pub(super) struct StoredDocument {
    pub(super) name: FileName,
    pub(super) size: u64,
    pub(super) root: Root,
    /// Whether the archive had the file before.
    pub(super) already: bool,
    /// The replicas that the receipt names.
    pub(super) replicas: Vec<ReplicaId>,
    /// The path of the receipt.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "tools_terminal::shown_path::optional"
    )]
    receipt: Option<PathBuf>,
    /// The name of another file in the archive that differs from this one only in case.
    #[serde(skip_serializing_if = "Option::is_none")]
    similar_name: Option<String>,
}

/// Makes the directory for the receipts, and those above it.
pub(in crate::commands) fn make_directory(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|error| {
        Failure::because_failed(format!(
            "{}: {error}; choose another place with --receipts",
            path.display()
        ))
    })
}

impl StoreContext {
    pub(super) async fn store_source(
        &self,
        path: &Path,
        file: &SourceFile,
    ) -> Result<StoredDocument, Failure> {
        let name = &file.name;
        let unreadable = |error| Failure::unreadable_file(path, &error);
        let source = Arc::new(File::open(path).map_err(unreadable)?);
        // The file may have grown since it was found.
        let size = source.metadata().map_err(unreadable)?.len();
        self.progress.set_message(name.to_string());
        let announced = self.announced(path, name, &source).await?;
        let deposit = Deposit {
            name: name.clone(),
            size,
            source,
            announced,
            no_digest: self.no_digest,
        };
        let sent = AtomicU64::new(0);
        let watch = |event: StoreEvent<'_>| match event {
            StoreEvent::Sent(now) => self
                .progress
                .step_bytes(sent.swap(now, Ordering::Relaxed), now),
            StoreEvent::Retrying {
                failed,
                pause,
                error,
            } => {
                self.progress.tell_user(&format!(
                    "{name}: {error} (attempt {failed} failed, the next in {pause:?})"
                ));
            }
        };
        let stored = self.depositor.store(&deposit, &watch).await;
        let stored = stored.map_err(|error| Failure::from(error).about_file(name.as_str()))?;
        // What the archive had already was not sent, and is done all the same.
        self.progress.step_bytes(sent.load(Ordering::Relaxed), size);
        if let Some(other) = &stored.similar_name {
            self.progress.tell_user(&format!(
                "{name}: {other} differs only in case; see that both are meant"
            ));
        }
        let receipt = self.keep_receipt(name, &stored)?;
        Ok(StoredDocument {
            name: name.clone(),
            size,
            root: stored.admission.root,
            already: stored.already,
            replicas: stored
                .receipt
                .replicas
                .into_iter()
                .map(|custody| custody.replica)
                .collect(),
            receipt,
            similar_name: stored.similar_name,
        })
    }

    /// Returns the announced content: it is read from the disk, and compared with the list.
    async fn announced(
        &self,
        path: &Path,
        name: &FileName,
        source: &Arc<File>,
    ) -> Result<AnnouncedDigests, Failure> {
        if self.no_digest {
            return Ok(AnnouncedDigests::default());
        }
        let listed = match &self.checksums {
            None => None,
            Some(list) => Some(list.find_checksum(name.as_str()).ok_or_else(|| {
                Failure::wrong_usage(format!(
                    "{name}: is not in the list of checksums; add it, or store it without the list"
                ))
            })?),
        };
        let source = Arc::clone(source);
        let digest =
            tokio::task::spawn_blocking(move || checksums::digest_file(&*source, listed)).await;
        let digest = digest.map_err(|error| {
            Failure::new(
                Exit::Bug,
                format!("{name}: hashing it: {error}; this is a bug, please report it"),
            )
        })?;
        let announced = digest.map_err(|error| Failure::unreadable_file(path, &error))?;
        match listed {
            Some(listed) => {
                checksums::compare_digest(name.as_str(), &announced, listed).map(|()| announced)
            }
            None => Ok(announced),
        }
    }

    fn keep_receipt(
        &self,
        name: &FileName,
        stored: &StoredFile,
    ) -> Result<Option<PathBuf>, Failure> {
        let Some(directory) = &self.receipts else {
            return Ok(None);
        };
        let path = directory.join(format!("{name}.receipt.json"));
        archive_durable::replace_file(&path, stored.envelope.as_bytes()).map_err(|error| {
            Failure::because_failed(format!(
                "{name}: stored, but its receipt cannot be written: {error}; store it again to get the receipt"
            ))
        })?;
        Ok(Some(path))
    }
}
