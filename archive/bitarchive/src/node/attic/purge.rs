//! What leaves the attic for good: items that people purge, and the evidence of repairs after its time.
//!
//! Only old items are purged, only a limited number an hour, and never without a trace. A whole file is destroyed only by
//! the BLAKE3 checksum of its bytes, as read from the disk now: a person who destroys it names its content, not only its
//! place. No error reveals the checksum that it has.
//!
//! Evidence is the groups that a repair has replaced. Only items whose reason can be read and says *groups* are removed
//! by their time. Whole files, leftovers, and odd or damaged items are for people to purge.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Worker, WorkerStep, WorkerStepError};
use archive_durable::directory::{self, EntryKind};
use archive_durable::{DiskError, UncachedFile};
use archive_model::{Root, VolumeId, time_after};
use jiff::{SignedDuration, Timestamp};
use tokio::task::spawn_blocking;

use super::NodeAttic;
use crate::attic::{self, AtticId, AtticItemKind, ItemReference, REASON_NAME, kept_name};
use crate::error::NodeError;
use crate::layout::Layout;

/// The time between two looks for old evidence.
const EVERY: Duration = Duration::from_hours(1);

impl NodeAttic {
    /// Destroys one item and returns its number of bytes. An item younger than `attic.min_age` is refused, and so is a
    /// whole file whose bytes do not have the root that is named. The remains after a crash are an item with a reason,
    /// and can be purged again.
    pub fn purge_item(&self, item: &ItemReference, now: Timestamp) -> Result<u64, NodeError> {
        let ItemReference {
            volume,
            id,
            checksum,
            cause,
        } = item;
        let layout = self.disks.find_layout(volume)?;
        let place = layout.attic().join(id.as_str());
        let refused = |why: &str| NodeError::Attic {
            volume: volume.clone(),
            id: id.to_string(),
            why: why.to_owned(),
        };
        match place.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(NodeError::NoItem {
                    volume: volume.clone(),
                    id: id.to_string(),
                });
            }
            Err(error) => return Err(DiskError::new("lstat", &place, error).into()),
            Ok(found) if !found.is_dir() => {
                return Err(refused("no node put this there; look at it on the disk"));
            }
            Ok(_) => {}
        }
        let min_age = self.settings.min_age.duration();
        let until = time_after(attic::latest_change(&place), min_age);
        if now < until {
            tracing::error!(%volume, item = %id, who = cause.who, "a purge was refused: the item is too young");
            return Err(NodeError::TooYoung {
                volume: volume.clone(),
                id: id.to_string(),
                until,
            });
        }
        let _moving = self.moves.lock_moves();
        let refuse_odd = || refused("it holds a directory; look at it on the disk");
        if directory::list_directory(&place)?.iter().any(is_directory) {
            return Err(refuse_odd());
        }
        if let Err(why) = named_by(*checksum, &layout, &place)? {
            tracing::error!(%volume, item = %id, who = cause.who, why, "a purge was refused");
            return Err(refused(why));
        }
        let bytes = attic::measure_item(&place)?;
        let name = attic::read_reason(&place).ok().map(|reason| reason.name);
        let name = name.as_ref().map(tracing::field::display);
        self.brake.count_removal(now)?;
        tracing::warn!(%volume, item = %id, file = name, bytes, who = cause.who, why = cause.why, "purged");
        if destroy(&place).map_err(|error| self.disks.blame_disk(volume, error))? {
            Ok(bytes)
        } else {
            Err(refuse_odd())
        }
    }

    /// Removes the groups that repairs have replaced longer ago than `attic.evidence` (and `attic.min_age`). Returns
    /// the number of items. A volume that fails keeps no other from its turn.
    pub fn end_evidence(&self, now: Timestamp) -> u64 {
        let mut ended = 0;
        for (volume, layout) in self.disks.volumes.online_layouts() {
            match self.end_evidence_on(&volume, &layout, now, &mut ended) {
                Ok(()) => {}
                Err(error) => tracing::warn!(%volume, %error, "old evidence was not removed"),
            }
        }
        ended
    }

    fn end_evidence_on(
        &self,
        volume: &VolumeId,
        layout: &Layout,
        now: Timestamp,
        ended: &mut u64,
    ) -> Result<(), NodeError> {
        let settings = &self.settings;
        let kept = settings.evidence.max(settings.min_age).duration();
        let kept = SignedDuration::try_from(kept).unwrap_or(SignedDuration::MAX);
        let blame = |error| self.disks.blame_disk(volume, error);
        for listed in attic::list_items(layout, volume).map_err(blame)? {
            let Some(id) = listed.name.to_str().and_then(|id| AtticId::new(id).ok()) else {
                continue;
            };
            let place = layout.attic().join(id.as_str());
            let Ok(reason) = attic::read_reason(&place) else {
                continue;
            };
            let until = attic::latest_change(&place).checked_add(kept);
            let is_over = until.is_ok_and(|until| until <= now);
            if reason.kind != AtticItemKind::Groups || !is_over {
                continue;
            }
            let _moving = self.moves.lock_moves();
            self.disks.confirm_volume(volume, layout)?;
            if destroy(&place).map_err(blame)? {
                *ended += 1;
                tracing::info!(%volume, item = %id, file = %reason.name, "old evidence was removed");
            }
        }
        Ok(())
    }
}

/// Checks that `checksum` names the item at `place`; the inner error says why not. The remains of a purge that a crash
/// cut off need no checksum.
fn named_by(
    checksum: Option<Root>,
    layout: &Layout,
    place: &Path,
) -> Result<Result<(), &'static str>, DiskError> {
    let files = match attic::read_reason(place) {
        Ok(reason) if reason.kind == AtticItemKind::File => {
            let file = layout.target_paths(&reason.name).file;
            let file = place.join(kept_name(file.file_name().unwrap_or_default()));
            let is_there = directory::entry_kind(&file)?.is_some();
            is_there.then_some(file).into_iter().collect::<Vec<_>>()
        }
        Ok(_) if checksum.is_some() => {
            return Ok(Err("it holds no whole file; ask without a checksum"));
        }
        Ok(_) => Vec::new(),
        // The kind of the item is unknown: it may be a whole file.
        Err(_) => rest(place)?,
    };
    if files.is_empty() {
        return Ok(Ok(()));
    }
    let Some(checksum) = checksum else {
        return Ok(Err(
            "it may hold a whole file; name the BLAKE3 checksum of that file",
        ));
    };
    for file in files {
        if UncachedFile::open(&file)?.root()? == checksum {
            return Ok(Ok(()));
        }
    }
    Ok(Err(
        "the file in it does not have that checksum; look at it on its disk",
    ))
}

/// Lists the files that lie at `place` beside the reason.
fn rest(place: &Path) -> Result<Vec<PathBuf>, DiskError> {
    let entries = directory::list_directory(place)?.into_iter();
    let rest = entries.filter(|entry| entry.name != REASON_NAME);
    Ok(rest.map(|entry| place.join(entry.name)).collect())
}

/// Removes an item, its reason last, so that the remains after a crash still say what they are. Returns `false`, and
/// removes nothing, if the item holds a directory.
fn destroy(place: &Path) -> Result<bool, DiskError> {
    let entries = directory::list_directory(place)?;
    if entries.iter().any(is_directory) {
        return Ok(false);
    }
    let (reason, rest): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|entry| entry.name == REASON_NAME);
    for entry in rest.iter().chain(&reason) {
        directory::remove_name(&place.join(&entry.name))?;
    }
    directory::remove_empty(place)?;
    Ok(true)
}

fn is_directory(entry: &directory::DirectoryEntry) -> bool {
    entry.kind == EntryKind::Directory
}

/// The worker that removes old evidence every hour.
pub(crate) struct EvidenceWorker {
    pub(crate) attic: Arc<NodeAttic>,
    pub(crate) clock: Clock,
}

impl Worker for EvidenceWorker {
    const NAME: &'static str = "evidence";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let attic = Arc::clone(&self.attic);
        let now = self.clock.now();
        spawn_blocking(move || attic.end_evidence(now)).await?;
        Ok(WorkerStep::Idle(EVERY))
    }
}
