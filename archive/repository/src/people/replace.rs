//! Replacement of a wrong copy with the right bytes, from a caller who has them.
//!
//! The bytes are received into a spool of the repository and hashed there, before anything is moved: bytes of another
//! root change nothing. (A node restores from its attic only files that match their sidecar, so a wrong copy that was
//! moved there too early could not be restored.) The spool needs room for one file; without it the call is refused at
//! once. Then the wrong copy is moved into the attic, and the bytes are stored in the replica in the ordinary way, with
//! their old admission. From there on the archive finishes alone: if the caller's bytes get lost on the way, the
//! replica lacks the file, and gets it from another one.

use std::path::PathBuf;
use std::sync::Arc;

use archive_decisions::store::StoringEvent;
use archive_durable::{DiskError, Space, Stage};
use archive_ledger::anomalies::{Look, LookQuality};
use archive_model::{AtticItem, Cause, FileCopy, FileName, Finder, ReplicaId, Root};
use archive_rpc::{CallError, CallErrorKind, run_blocking};
use archive_stores::delivery::ReplicaDelivery;
use archive_stores::transfer::{Route, StoringFile};
use bytes::Bytes;
use tokio::sync::oneshot;

use super::People;
use super::refusal::recorded_content;
use crate::claims::NameAct;

/// The bytes that stay free on the disk of the spool.
const RESERVE: u64 = 1 << 30;

/// The order to replace a copy.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    pub(crate) name: FileName,
    pub(crate) replica: ReplicaId,
    /// The root of the wrong copy.
    pub(crate) checksum: Root,
    pub(crate) cause: Cause,
}

/// The old copy in the attic, and the new one.
#[derive(Debug)]
pub(crate) struct ReplacementOutcome {
    pub(crate) aside: AtticItem,
    pub(crate) copy: FileCopy,
}

/// Received bytes that equal the admitted ones; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SpooledBytes {
    spool: PathBuf,
    id: String,
}

impl SpooledBytes {
    fn path(&self) -> PathBuf {
        self.spool.join(&self.id)
    }
}

impl Drop for SpooledBytes {
    fn drop(&mut self) {
        if let Err(error) = Stage::forget_stage(&self.spool, &self.id) {
            tracing::warn!(%error, "cannot remove spooled bytes; the next start tries again");
        }
    }
}

impl People {
    /// Checks that the copy may be replaced, before a byte is received.
    pub(crate) async fn check_replaceable(
        &self,
        replacement: &Replacement,
    ) -> Result<(), CallError> {
        let row = self.known_row(&replacement.name).await?;
        let admitted = recorded_content(&row.record)?.clone();
        let copy = row.record.replicas.get(&replacement.replica);
        if copy.is_none_or(|copy| copy.state.is_withdrawn()) {
            let said = format!(
                "cannot replace a copy: replica {} shall have no copy of {}",
                replacement.replica, replacement.name
            );
            return Err(CallErrorKind::NotFound.to_error(said));
        }
        let copy = self.copy_of(replacement).await?;
        if admitted.root == replacement.checksum {
            let verified = self
                .verify_copies(&replacement.replica, &replacement.name, &copy)
                .await?;
            if verified.copy.is_present() {
                let said = "cannot replace the copy: it is what was admitted";
                return Err(CallErrorKind::Mismatch.to_error(said));
            }
        }
        let spool = self.spool.clone();
        let free = run_blocking(move || Space::measure_space(&spool)).await?;
        let free = free
            .map_err(|error| failed_disk(&error))?
            .usable_bytes(RESERVE);
        if free < admitted.size {
            let said = format!(
                "the repository has no room for {} bytes in {}; free some space there",
                admitted.size,
                self.spool.display()
            );
            return Err(CallErrorKind::NoSpace.to_error(said));
        }
        Ok(())
    }

    /// Receives the bytes into the spool, and checks that they are those that were admitted.
    pub(crate) async fn spool_copy(
        &self,
        replacement: &Replacement,
        mut chunks: impl AsyncNext,
    ) -> Result<SpooledBytes, CallError> {
        let row = self.known_row(&replacement.name).await?;
        let admitted = recorded_content(&row.record)?.clone();
        let id = self.upload_id()?.to_string();
        let spooled = SpooledBytes {
            spool: self.spool.clone(),
            id: id.clone(),
        };
        let spool = self.spool.clone();
        let stage = run_blocking(move || Stage::create(&spool, &id)).await?;
        let mut stage = stage.map_err(|error| failed_disk(&error))?;
        let mut is_whole = true;
        while let Some(bytes) = chunks.next().await? {
            let length = bytes.len() as u64;
            if stage.length().saturating_add(length) > admitted.size {
                is_whole = false;
                break;
            }
            let written = run_blocking(move || stage.write_all(&bytes).map(|()| stage)).await?;
            stage = written.map_err(|error| failed_disk(&error))?;
        }
        let received = run_blocking(move || stage.finish()).await?;
        let received = received.map_err(|error| failed_disk(&error))?;
        if is_whole && received.root() == admitted.root && received.size() == admitted.size {
            return Ok(spooled);
        }
        let what = format!(
            "refused to replace the copy in {}: other bytes were sent",
            replacement.replica
        );
        self.archive
            .note_line(
                replacement.cause.who.clone(),
                Some(replacement.name.clone()),
                what,
            )
            .await?;
        let said = format!(
            "the bytes are not what was admitted as {}; nothing was changed",
            replacement.name
        );
        Err(CallErrorKind::Mismatch.to_error(said))
    }

    /// Moves the wrong copy into the attic and stores the right bytes in its place, even if the caller goes away.
    pub(crate) async fn replace_copy(
        self: &Arc<Self>,
        replacement: Replacement,
        spooled: SpooledBytes,
    ) -> Result<ReplacementOutcome, CallError> {
        let (people, (tell, told)) = (Arc::clone(self), oneshot::channel());
        self.spawn("replace", async move {
            let done = people.exchange(&replacement, &spooled).await;
            // A caller that has gone away finds it in the audit trail.
            _ = tell.send(done);
            Ok(())
        });
        told.await.map_err(|_stopped| {
            CallErrorKind::Unavailable.to_error(
                "the repository is stopping; see the state of the file with `holdfast stat`",
            )
        })?
    }

    async fn exchange(
        &self,
        replacement: &Replacement,
        spooled: &SpooledBytes,
    ) -> Result<ReplacementOutcome, CallError> {
        let Replacement {
            name,
            replica,
            checksum,
            cause,
        } = replacement;
        let _acting = self.acting.read().await;
        let _claim = self.archive.claim_in_turn(name, NameAct::Replace).await?;
        let row = self.known_row(name).await?;
        let size = recorded_content(&row.record)?.size;
        let (Some(admission), Some(upload)) = (row.admission, row.record.upload) else {
            return Err(CallErrorKind::Storage.to_error(format!("{name} has no admission")));
        };
        let copy = self.copy_of(replacement).await?;
        let what = format!(
            "the copy in {replica} to be put into the attic of volume {} of node {} and replaced: {}",
            copy.place.volume, copy.place.node, cause.why
        );
        // Recorded before it is done: no act may be missing from the trail.
        self.archive
            .note_line(cause.who.clone(), Some(name.clone()), what)
            .await?;
        let volume = copy.place.in_replica(replica);
        let moving = self
            .archive
            .calls
            .replicas
            .put_aside(&volume, name, checksum, cause);
        let aside = self.archive.calls.reading_call(size, moving).await?;
        let what = format!(
            "the copy in {replica} is replaced, the old one is in the attic of volume {} of node {} as {}: {}",
            copy.place.volume, copy.place.node, aside.place.id, cause.why
        );
        self.archive
            .note_line(cause.who.clone(), Some(name.clone()), what)
            .await?;
        let event = StoringEvent::Replacing {
            replica: replica.clone(),
            why: format!("replaced: {}", cause.why),
        };
        self.order_event(name, event, &cause.who).await?;
        let item = StoringFile {
            name: name.clone(),
            // The upload of its admission: a node compares the two.
            upload: upload.id,
            size,
        };
        self.upload_spooled(replica, item, spooled, admission.into())
            .await?;
        let row = self.known_row(name).await?;
        let state = row
            .record
            .replicas
            .get(replica)
            .map(|copy| copy.state.clone());
        if !state
            .as_ref()
            .is_some_and(archive_model::ReplicaState::is_completed)
        {
            let state = state.map(|state| state.to_string()).unwrap_or_default();
            return Err(CallErrorKind::Unavailable.to_error(format!(
                "the old copy is in the attic, the new one is not stored yet ({state}); it will be copied from another replica"
            )));
        }
        let copy = self.copy_of(replacement).await?;
        // The only copy of the replica, just read back: the anomalies of the wrong one are resolved.
        let look = Look {
            found: Vec::new(),
            quality: LookQuality::Listing,
            by: Finder::Check,
            is_second: false,
            size,
            place: Some(copy.place.clone()),
        };
        self.archive
            .file_look(replica, name, look, &cause.who)
            .await?;
        Ok(ReplacementOutcome { aside, copy })
    }

    /// Uploads the spooled bytes into a replica, in the ordinary way.
    async fn upload_spooled(
        &self,
        replica: &ReplicaId,
        item: StoringFile,
        spooled: &SpooledBytes,
        admission: Arc<str>,
    ) -> Result<(), CallError> {
        let delivery = ReplicaDelivery {
            transfers: &self.transfers,
            replica,
            item: &item,
            route: Route::default(),
            admission,
        };
        let uploaded = delivery.send_file(spooled.path()).await?;
        self.transfers
            .report_progress(replica.clone(), item.name.clone(), uploaded)
            .await;
        // The report of the transfer was sent before: this answer follows it.
        let heard = StoringEvent::Progress {
            replica: replica.clone(),
        };
        self.order_event(&item.name, heard, "repository").await
    }

    /// Returns the only copy that a replica has of the file.
    pub(crate) async fn copy_of(&self, replacement: &Replacement) -> Result<FileCopy, CallError> {
        let mut copies = self
            .existing_copies(&replacement.replica, &replacement.name)
            .await?;
        match copies.len() {
            1 => copies
                .pop()
                .ok_or_else(|| CallErrorKind::Internal.to_error("the only copy is not in the list any more")),
            0 => Err(CallErrorKind::NotFound.to_error(format!(
                "replica {} has no copy of {}; repair it, or store the file again if no replica has a good copy",
                replacement.replica, replacement.name
            ))),
            several => Err(CallErrorKind::Mismatch.to_error(format!(
                "replica {} has {several} copies of {}; remove all but one first",
                replacement.replica, replacement.name
            ))),
        }
    }
}

/// A source of bytes, piece by piece.
pub(crate) trait AsyncNext: Send {
    /// Returns the next bytes, or `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, CallError>> + Send;
}

fn failed_disk(error: &DiskError) -> CallError {
    tracing::error!(%error, "cannot use the spool of the repository");
    CallErrorKind::Storage.to_error(error.to_string())
}
