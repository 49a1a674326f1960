//! A wrong copy goes, the right bytes come: from a caller who has them.
//!
//! The bytes are received into a spool of the repository and hashed there, before anything is moved: bytes of another
//! root change nothing anywhere. (A node takes back from its attic only what is as its sidecar admits, so a wrong copy
//! that was put aside too early could not be brought back.) The spool needs room for one file; without it the call is
//! refused at once. Then the wrong copy is put aside and the bytes take the ordinary way into the replica, with the
//! admission that they always had. From there on the archive finishes alone: where the caller's bytes get lost on the
//! way, the replica lacks the file, and it is brought from another one.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use archive_decisions::store::Event;
use archive_durable::{DiskError, Space, Stage};
use archive_ledger::anomalies::{Look, LookQuality};
use archive_model::{FileName, Finder, ReplicaId, Root};
use archive_replicas::{Aside, Cause, Copy};
use archive_rpc::answers::{Outlet, Progress, feed};
use archive_rpc::{CallError, Kind};
use archive_stores::transfer::{Item, UploadVerdict};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};

use super::People;
use super::acts::content;
use crate::tables::{blocking, file_look};

/// What stays free on the disk of the spool, in bytes.
const RESERVE: u64 = 1 << 30;

/// How much is read at once.
const BLOCK: usize = 1 << 20;

/// What is to be replaced.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) name: FileName,
    pub(crate) replica: ReplicaId,
    /// The root of the copy that goes.
    pub(crate) checksum: Root,
    pub(crate) cause: Cause,
}

/// What was replaced.
#[derive(Debug)]
pub(crate) struct Replaced {
    pub(crate) aside: Aside,
    pub(crate) copy: Copy,
}

/// Bytes that were brought, and are what was admitted. Taken away when it is dropped.
#[derive(Debug)]
pub(crate) struct Spooled {
    spool: PathBuf,
    id: String,
}

impl Drop for Spooled {
    fn drop(&mut self) {
        if let Err(error) = Stage::forget(&self.spool, &self.id) {
            tracing::warn!(%error, "what was spooled cannot be taken away; the next start tries again");
        }
    }
}

impl People {
    /// Looks whether the copy may be replaced, before a byte is taken.
    pub(crate) async fn replaceable(&self, wish: &Wish) -> Result<(), CallError> {
        let row = self.known(&wish.name).await?;
        let admitted = content(&row.record)?.clone();
        let copy = row.record.replicas.get(&wish.replica);
        if copy.is_none_or(|copy| copy.state.is_withdrawn()) {
            let said = format!(
                "replica {} shall have no copy of {}",
                wish.replica, wish.name
            );
            return Err(Kind::NotFound.error(said));
        }
        let copy = self.copy_of(wish).await?;
        if admitted.root == wish.checksum {
            let verified = self.verified(&wish.replica, &wish.name, &copy).await?;
            if verified.copy.is_present() {
                let said = "the copy is what was admitted: there is nothing to replace";
                return Err(Kind::Mismatch.error(said));
            }
        }
        let spool = self.spool.clone();
        let free = blocking(move || Space::measure(&spool)).await?;
        let free = free.map_err(|error| failed_disk(&error))?.usable(RESERVE);
        if free < admitted.size {
            let said = format!(
                "the repository has no room for {} bytes in {}; free some there",
                admitted.size,
                self.spool.display()
            );
            return Err(Kind::NoSpace.error(said));
        }
        Ok(())
    }

    /// Receives the bytes, and proves that they are what was admitted.
    pub(crate) async fn spool(
        &self,
        wish: &Wish,
        mut chunks: impl AsyncNext,
    ) -> Result<Spooled, CallError> {
        let row = self.known(&wish.name).await?;
        let admitted = content(&row.record)?.clone();
        let id = self.upload_id()?.to_string();
        let spooled = Spooled {
            spool: self.spool.clone(),
            id: id.clone(),
        };
        let spool = self.spool.clone();
        let stage = blocking(move || Stage::create(&spool, &id)).await?;
        let mut stage = stage.map_err(|error| failed_disk(&error))?;
        let mut is_whole = true;
        while let Some(bytes) = chunks.next().await? {
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            if stage.length().saturating_add(length) > admitted.size {
                is_whole = false;
                break;
            }
            let written = blocking(move || stage.write_all(&bytes).map(|()| stage)).await?;
            stage = written.map_err(|error| failed_disk(&error))?;
        }
        let received = blocking(move || stage.finish()).await?;
        let received = received.map_err(|error| failed_disk(&error))?;
        if is_whole && received.root() == admitted.root && received.size() == admitted.size {
            return Ok(spooled);
        }
        let what = format!(
            "refused: replace the copy in {}: other bytes were sent",
            wish.replica
        );
        self.note(wish.cause.who.clone(), Some(wish.name.clone()), what)
            .await?;
        let said = format!(
            "the bytes are not what was admitted as {}; nothing was changed",
            wish.name
        );
        Err(Kind::Mismatch.error(said))
    }

    /// Puts the wrong copy aside and stores the right bytes in its place, also when the caller does not wait for it.
    pub(crate) async fn replace(
        self: &Arc<Self>,
        wish: Wish,
        spooled: Spooled,
    ) -> Result<Replaced, CallError> {
        let (people, (tell, told)) = (Arc::clone(self), oneshot::channel());
        self.spawn("replace", async move {
            let done = people.exchange(&wish, &spooled).await;
            // A caller that is gone finds it in the audit trail.
            drop(tell.send(done));
            Ok(())
        });
        told.await.map_err(|_stopped| {
            Kind::Unavailable.error("the repository is stopping; look how the file stands")
        })?
    }

    async fn exchange(&self, wish: &Wish, spooled: &Spooled) -> Result<Replaced, CallError> {
        let _acting = self.acting.lock().await;
        let Wish {
            name,
            replica,
            checksum,
            cause,
        } = wish;
        let row = self.known(name).await?;
        let size = content(&row.record)?.size;
        let (Some(admission), Some(upload)) = (row.admission, row.record.upload) else {
            return Err(Kind::Storage.error(format!("{name} has no admission")));
        };
        let copy = self.copy_of(wish).await?;
        let place = (&copy.node, &copy.volume);
        let moving = self
            .transfers
            .replicas
            .put_aside(replica, name, place, checksum, cause);
        let aside = self.within(size, moving).await?;
        let what = format!(
            "the copy in {replica} is replaced, the old one lies in the attic of volume {} of node {} as {}: {}",
            copy.volume, copy.node, aside.0.id, cause.why
        );
        self.note(cause.who.clone(), Some(name.clone()), what)
            .await?;
        let event = Event::Replacing {
            replica: replica.clone(),
            why: format!("replaced: {}", cause.why),
        };
        self.order(name, event, &cause.who).await?;
        let item = Item {
            name: name.clone(),
            // That of its admission: a node holds the one against the other.
            upload: upload.id,
            size,
        };
        self.bring(replica, item, spooled, admission.into()).await?;
        let row = self.known(name).await?;
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
            return Err(Kind::Unavailable.error(format!(
                "the old copy is put aside, the new one is not stored yet ({state}); it will be brought from another replica"
            )));
        }
        let copy = self.copy_of(wish).await?;
        // The one copy of the replica, read back just now: what was filed of the wrong one is so no more.
        let look = Look {
            found: Vec::new(),
            quality: LookQuality::Listing,
            by: Finder::Check,
            is_second: false,
            size,
            place: Some((copy.node.clone(), copy.volume.clone())),
        };
        file_look(&self.anomalies, (replica, name), look, &cause.who).await?;
        Ok(Replaced { aside, copy })
    }

    /// Sends what was spooled on the ordinary way into a replica.
    async fn bring(
        &self,
        replica: &ReplicaId,
        item: Item,
        spooled: &Spooled,
        admission: Arc<str>,
    ) -> Result<(), CallError> {
        let name = item.name.clone();
        let (lane, chunks) = mpsc::channel(4);
        let (seal, sealed) = watch::channel(None);
        let path = spooled.spool.join(&spooled.id);
        let mut file = None;
        let read = move |outlet: &mut Outlet<Bytes>| {
            let failed =
                |error: std::io::Error| Kind::Storage.error(format!("{}: {error}", path.display()));
            let file = match &mut file {
                Some(file) => file,
                none => none.insert(std::fs::File::open(&path).map_err(failed)?),
            };
            loop {
                let mut block = vec![0; BLOCK];
                let read = file.read(&mut block).map_err(failed)?;
                block.truncate(read);
                if read == 0 {
                    return Ok::<_, CallError>(Progress::Done);
                }
                if !outlet.send(Bytes::from(block)) {
                    return Ok(Progress::Paused);
                }
            }
        };
        let reading = async {
            feed(&lane, read).await?;
            // A replica that takes no more has said why.
            if !lane.is_closed() {
                seal.send_replace(Some(UploadVerdict::Admitted(admission)));
            }
            drop((seal, lane));
            Ok::<(), CallError>(())
        };
        let filling = self.transfers.fill(replica.clone(), item, chunks, sealed);
        let ((), read) = tokio::join!(filling, reading);
        read?;
        // The report of the transfer was sent before: whoever is answered now is answered after it.
        let heard = Event::Progress {
            replica: replica.clone(),
        };
        self.order(&name, heard, "repository").await
    }

    /// The one copy that a replica has of the file.
    pub(crate) async fn copy_of(&self, wish: &Wish) -> Result<Copy, CallError> {
        let mut copies = self.existing_copies(&wish.replica, &wish.name).await?;
        match copies.len() {
            1 => copies
                .pop()
                .ok_or_else(|| Kind::Internal.error("one copy is none")),
            0 => Err(Kind::NotFound.error(format!(
                "replica {} has no copy of {}: repair brings one; where no replica has a good one, store the file again",
                wish.replica, wish.name
            ))),
            several => Err(Kind::Mismatch.error(format!(
                "replica {} has {several} copies of {}; remove all but one first",
                wish.replica, wish.name
            ))),
        }
    }
}

/// Bytes that come one after another.
pub(crate) trait AsyncNext: Send {
    /// The next bytes; none: the caller has sent them all.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, CallError>> + Send;
}

fn failed_disk(error: &DiskError) -> CallError {
    tracing::error!(%error, "the spool of the repository");
    Kind::Storage.error(error.to_string())
}
