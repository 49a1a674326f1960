//! Moves of a file into the attic and out of it: a crash at any step leaves the file whole on one side.
//!
//! A move works in a directory whose name begins with a dot, with the reason in it from the start. Where the *file*
//! lies decides, and nothing else: in that directory, and the item is in the attic; in `files/`, and it is not. So the
//! file is the first to go in, and the last to come out, and never lies in `files/` without its sidecar because of us.
//! [`settle_all`] ends the moves that a crash has cut off, before a volume is reconciled with the catalog.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use archive_durable::directory::{self, EntryKind};
use archive_durable::{DiskError, Severity, Survey, Target, UncachedFile, replace};
use archive_model::{Cause, FileName, Mode, Root, VolumeId};
use jiff::Timestamp;

use super::item::{self, AtticId, Item, ItemPlace, Removal};
use super::{Kind, REASON_NAME, Reason, kept_name, make_place};
use crate::catalog::{Catalog, Condition, Entry, Row};
use crate::claims::verb;
use crate::error::NodeError;
use crate::layout::Layout;
use crate::node::Node;
use crate::reconcile;

/// The end of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MoveEnd {
    /// The file lies in this directory of the attic.
    Aside(PathBuf),
    /// The file lies under its final name, and nothing is in the attic.
    Back,
    /// The file is gone; its other parts are in the attic.
    Neither,
}

impl MoveEnd {
    const fn word(&self) -> &'static str {
        match self {
            Self::Aside(_) => "in the attic",
            Self::Back => "in its place",
            Self::Neither => "gone",
        }
    }
}

/// Returns the path of a file inside a directory of the attic.
fn inside(place: &Path, path: &Path) -> PathBuf {
    place.join(kept_name(path.file_name().unwrap_or_default()))
}

fn is_there(path: &Path) -> Result<bool, DiskError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DiskError::new("lstat", path, error)),
    }
}

/// Returns the name of the file in a directory of the attic, if the directory has a whole file.
fn whole_file(place: &Path, volume: &VolumeId, id: &AtticId) -> Result<FileName, NodeError> {
    if !is_there(place)? {
        return Err(NodeError::NoItem {
            volume: volume.clone(),
            id: id.to_string(),
        });
    }
    let reason =
        item::read_reason(place).map_err(|why| NodeError::attic(volume, id.as_str(), why))?;
    match reason.kind {
        Kind::File => Ok(reason.name),
        Kind::Groups | Kind::Leftover => {
            let why = "only whole files can be taken back".to_owned();
            Err(NodeError::attic(volume, id.as_str(), why))
        }
    }
}

/// Moves `from` to `to` if `from` exists and `to` is free; otherwise leaves `from` in its place.
fn move_if_free(from: &Path, to: &Path) -> Result<(), DiskError> {
    match directory::move_new(from, to) {
        Err(error) if error.is_absent() || error.is_taken() => Ok(()),
        other => other,
    }
}

/// Ends every move that was cut off on this volume. An odd item, or a move that cannot be ended now, is left for people
/// and for the next start: only a disk that fails keeps the volume from use.
pub(crate) fn settle_all(
    catalog: &Catalog,
    volume: &VolumeId,
    layout: &Layout,
) -> Result<(), NodeError> {
    for name in directory::names(&layout.attic())? {
        let place = layout.attic().join(&name);
        if !name.to_string_lossy().starts_with('.') {
            continue;
        }
        match directory::kind(&place) {
            Ok(Some(EntryKind::Directory)) => {}
            Ok(_) => continue,
            Err(error) => {
                tracing::error!(%volume, item = ?name, %error, "a move was not ended");
                continue;
            }
        }
        match settle_found(catalog, volume, layout, &place) {
            Err(NodeError::Disk(error)) if error.severity() != Severity::Disk => {
                tracing::error!(%volume, item = ?name, %error, "a move was not ended");
            }
            other => other?,
        }
    }
    Ok(())
}

fn settle_found(
    catalog: &Catalog,
    volume: &VolumeId,
    layout: &Layout,
    place: &Path,
) -> Result<(), NodeError> {
    match item::read_reason(place) {
        Ok(reason) if reason.kind == Kind::File => {
            let end = settle(catalog, volume, layout, place, &reason.name)?;
            tracing::warn!(%volume, file = %reason.name, end = end.word(), "a move that was cut off was ended");
        }
        // The move was cut off before its reason was written: nothing has moved.
        Err(_) if holds_nothing(place)? => clear(place)?,
        _ => {
            tracing::warn!(%volume, place = %place.display(), "an odd item in the attic; left alone");
        }
    }
    Ok(())
}

/// Ends a move that was cut off, in the direction that the place of its file decides.
fn settle(
    catalog: &Catalog,
    volume: &VolumeId,
    layout: &Layout,
    place: &Path,
    name: &FileName,
) -> Result<MoveEnd, NodeError> {
    let target = layout.target(name);
    let beside = [&target.sidecar, &target.outboard];
    match (
        is_there(&inside(place, &target.file))?,
        is_there(&target.file)?,
    ) {
        (true, false) => {
            for path in beside {
                move_if_free(path, &inside(place, path))?;
            }
            forget(catalog, name, volume)?;
            Ok(MoveEnd::Aside(end_place(layout, place)?))
        }
        // Another file has the name by now; the sidecar and the row belong to that file.
        (true, true) => Ok(MoveEnd::Aside(end_place(layout, place)?)),
        (false, true) => {
            for path in beside {
                move_if_free(&inside(place, path), path)?;
            }
            give_up(layout, place)?;
            Ok(MoveEnd::Back)
        }
        (false, false) => {
            give_up(layout, place)?;
            Ok(MoveEnd::Neither)
        }
    }
}

/// Removes the row of a copy that people have removed. A row that says *missing* is an alarm, and stays.
fn forget(catalog: &Catalog, name: &FileName, volume: &VolumeId) -> Result<(), NodeError> {
    match catalog.row(name, volume)?.map(|row| row.condition) {
        Some(Condition::Present | Condition::Damaged { .. } | Condition::Unexpected { .. }) => {
            Ok(catalog.remove(name, volume)?)
        }
        Some(Condition::Missing { .. }) | None => Ok(()),
    }
}

/// Gives the directory of an ended move its name: the one that it began with, or the next free one.
fn end_place(layout: &Layout, place: &Path) -> Result<PathBuf, DiskError> {
    let begun = place.file_name().unwrap_or_default().to_string_lossy();
    let id = begun.trim_start_matches('.');
    let mut number = 1_u64;
    loop {
        let ended = layout.attic().join(match number {
            1 => id.to_owned(),
            _ => format!("{id}-{number}"),
        });
        match directory::move_new(place, &ended) {
            Err(error) if error.is_taken() => number += 1,
            moved => return moved.map(|()| ended),
        }
    }
}

/// Ends a move that has nothing in the attic. Anything else that lies there stays, and is listed.
fn give_up(layout: &Layout, place: &Path) -> Result<(), DiskError> {
    if holds_nothing(place)? {
        clear(place)
    } else {
        end_place(layout, place).map(|_| ())
    }
}

fn is_reason(path: &Path) -> bool {
    let reason = path.with_file_name(REASON_NAME);
    path == reason || path == replace::unfinished(&reason)
}

fn holds_nothing(place: &Path) -> Result<bool, DiskError> {
    let entries = directory::list(place)?;
    Ok(entries.iter().all(|entry| {
        matches!(entry.kind, EntryKind::File { .. }) && is_reason(&place.join(&entry.name))
    }))
}

fn clear(place: &Path) -> Result<(), DiskError> {
    for entry in directory::list(place)? {
        directory::remove_name(&place.join(entry.name))?;
    }
    directory::remove_empty(place)
}

impl Node {
    /// Moves a copy into the attic of its volume, if it has the root on the medium now that the order names.
    pub fn put_aside(&self, removal: &Removal, now: Timestamp) -> Result<Item, NodeError> {
        let Removal {
            name,
            volume,
            checksum,
            cause,
        } = removal;
        let checksum = *checksum;
        let _claim = self.claim(name, &verb("put-aside", name)?)?;
        let layout = self.layout(volume)?;
        let brake = self.brake_of(name, volume, checksum)?;
        brake.check(now)?;
        let target = layout.target(name);
        let found = match UncachedFile::open(&target.file) {
            Err(error) if error.is_absent() => return Err(NodeError::NotFound(name.clone())),
            other => other?.root()?,
        };
        if found != checksum {
            tracing::error!(file = %name, %volume, who = cause.who, "a removal was refused: it named another checksum");
            return Err(NodeError::OtherCopy {
                name: name.clone(),
                volume: volume.clone(),
            });
        }
        brake.count(now)?;
        let _moving = self.moving();
        self.layout(volume)?;
        let reason = Reason::new(Kind::File, name, now, cause);
        let place =
            make_place(&layout, ".", "file", &reason).map_err(|error| self.blame(volume, error))?;
        let moved = directory::move_new(&target.file, &inside(&place, &target.file));
        let end = self.settle(volume, &layout, &place, name);
        moved.map_err(|error| self.blame(volume, error))?;
        let MoveEnd::Aside(place) = end? else {
            return Err(NodeError::NotFound(name.clone()));
        };
        self.unlist(volume, &layout, name);
        self.volume_set().note_change(volume);
        let item = place.file_name().unwrap_or_default();
        tracing::info!(file = %name, %volume, item = %item.display(), who = cause.who, why = cause.why, "put aside");
        let listed = ItemPlace {
            at: now,
            name: item.to_owned(),
            volume: volume.clone(),
        };
        Ok(item::item(&layout, &listed))
    }

    /// Moves a file from the attic back under its name, if the name is free and its bytes are what its sidecar admits.
    pub fn restore_item(
        &self,
        volume: &VolumeId,
        id: &AtticId,
        cause: &Cause,
        now: Timestamp,
    ) -> Result<Entry, NodeError> {
        let layout = self.layout(volume)?;
        self.refuse_unless_open()?;
        self.refuse_unless_writable(volume)?;
        let place = layout.attic().join(id.as_str());
        let name = whole_file(&place, volume, id)?;
        let _claim = self.claim(&name, &verb("take-back", &name)?)?;
        self.refuse_taken(&name, None)?;
        let target = layout.target(&name);
        if is_there(&target.file)? {
            return Err(NodeError::Taken {
                root: self.look_at(volume, &layout, &name, now)?,
                name,
                volume: volume.clone(),
            });
        }
        let kept = Target {
            file: inside(&place, &target.file),
            sidecar: inside(&place, &target.sidecar),
            outboard: inside(&place, &target.outboard),
        };
        let (size, root, stored) = reconcile::read_sidecar(&kept.sidecar, &name, self.trust())?
            .map_err(|why| NodeError::Admission {
                name: name.clone(),
                why,
            })?;
        self.prove(volume, &layout, &kept, &name, size, root)?;

        let _moving = self.moving();
        self.layout(volume)?;
        self.move_back(volume, &layout, id, &place, &name, now)?;
        let row = Row::intact(size, root, stored, now);
        let entry = Entry {
            name,
            volume: volume.clone(),
            row,
        };
        self.catalog().put(std::slice::from_ref(&entry))?;
        self.after_store(&entry, now)?;
        self.enlist(volume, &layout, &entry.name, root);
        tracing::info!(file = %entry.name, %volume, item = %id, who = cause.who, why = cause.why, "taken back");
        Ok(entry)
    }

    /// Moves the parts of an item of the attic to their final names, the file last. The caller has proven the file, and
    /// holds its name and the lock of moves.
    fn move_back(
        &self,
        volume: &VolumeId,
        layout: &Layout,
        id: &AtticId,
        place: &Path,
        name: &FileName,
        now: Timestamp,
    ) -> Result<(), NodeError> {
        let target = layout.target(name);
        let blame = |error: DiskError| self.blame(volume, error);
        self.put_leftovers_aside(layout, "take-back", name, now)
            .map_err(blame)?;
        let begun = layout.attic().join(format!(".{id}"));
        directory::move_new(place, &begun).map_err(blame)?;
        let moved = [&target.sidecar, &target.outboard, &target.file]
            .into_iter()
            .try_for_each(
                |path| match directory::move_new(&inside(&begun, path), path) {
                    Err(error) if error.is_absent() && *path == target.outboard => Ok(()),
                    other => other,
                },
            );
        let end = self.settle(volume, layout, &begun, name);
        moved.map_err(blame)?;
        if end? == MoveEnd::Back {
            Ok(())
        } else {
            let why = "it was moved meanwhile".to_owned();
            Err(NodeError::attic(volume, id.as_str(), why))
        }
    }

    /// Reads a file in the attic past the page cache and proves it by its admission. A rotten or absent outboard is
    /// computed again.
    fn prove(
        &self,
        volume: &VolumeId,
        layout: &Layout,
        kept: &Target,
        name: &FileName,
        size: u64,
        root: Root,
    ) -> Result<(), NodeError> {
        let blame = |error: DiskError| self.blame(volume, error);
        let id = verb("take-back", name)?;
        let survey = Survey::hash(&layout.incoming(), id.as_str(), &kept.file).map_err(blame)?;
        if (survey.size(), survey.root()) != (size, root) {
            let received = survey.root().to_string();
            survey.discard().map_err(blame)?;
            return Err(NodeError::Mismatch {
                name: name.clone(),
                what: "root",
                admitted: root.to_string(),
                received,
            });
        }
        let found = match UncachedFile::open(&kept.outboard) {
            Ok(file) => Some((file.size()?, file.root()?)),
            Err(error) if error.is_absent() => None,
            Err(error) => return Err(error.into()),
        };
        if found == survey.outboard().map(|made| (made.size, made.digest)) {
            return survey.discard().map_err(blame);
        }
        directory::remove_name(&kept.outboard).map_err(blame)?;
        survey
            .keep_outboard(&kept.outboard)
            .map_err(|error| match error {
                archive_durable::PublishError::Disk(error) => blame(error),
                taken @ archive_durable::PublishError::Taken(_) => {
                    NodeError::attic(volume, "", taken.to_string())
                }
            })
    }

    /// Ends a move. A move that cannot be ended now is tried again at the next look at the disks.
    fn settle(
        &self,
        volume: &VolumeId,
        layout: &Layout,
        place: &Path,
        name: &FileName,
    ) -> Result<MoveEnd, NodeError> {
        settle(self.catalog(), volume, layout, place, name).map_err(|error| {
            self.unsettled().store(true, Ordering::Release);
            if let NodeError::Disk(error) = error {
                self.blame(volume, error)
            } else {
                error
            }
        })
    }

    /// Ends the moves that could not be ended at once, on every volume that is online.
    pub(crate) fn settle_again(&self) {
        if !self.unsettled().swap(false, Ordering::AcqRel) {
            return;
        }
        let _moving = self.moving();
        for (volume, layout) in self.volume_set().online() {
            if let Err(error) = settle_all(self.catalog(), &volume, &layout) {
                self.unsettled().store(true, Ordering::Release);
                tracing::warn!(%volume, %error, "a move into or out of the attic is not ended yet");
            }
        }
    }

    fn refuse_unless_writable(&self, volume: &VolumeId) -> Result<(), NodeError> {
        match self.volume_set().find(volume).map(|volume| volume.mode) {
            Some(mode @ (Mode::ReadOnly | Mode::Draining | Mode::Retired)) => {
                Err(NodeError::TakesNothing {
                    what: format!("volume {volume}"),
                    mode,
                })
            }
            Some(Mode::ReadWrite) | None => Ok(()),
        }
    }
}
