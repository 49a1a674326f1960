//! Moves of a file into the attic and out of it: a crash at any step leaves the file whole on one side.
//!
//! A move works in a directory whose name begins with a dot, with the reason in it from the start. Where the *file*
//! lies decides, and nothing else: in that directory, and the item is in the attic; in `files/`, and it is not. So the
//! file is the first to go in, and the last to come out, and never lies in `files/` without its sidecar because of us.
//! [`AtticMoves`] ends the moves that a crash has cut off, before a volume is reconciled with the catalog.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use archive_durable::directory::{self, EntryKind};
use archive_durable::{DiskError, DiskSeverity, replace};
use archive_model::{FileName, VolumeId};
use parking_lot::{Mutex, MutexGuard};

use super::item;
use super::{AtticItemKind, REASON_NAME, kept_name};
use crate::catalog::{Catalog, Condition};
use crate::error::NodeError;
use crate::layout::Layout;
use crate::volumes::Volumes;

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

/// The moves of a node into its attics and out of them: the lock under which names move, and whether a move could not
/// be ended.
#[derive(Debug, Default)]
pub(crate) struct AtticMoves {
    moving: Mutex<()>,
    unsettled: AtomicBool,
}

impl AtticMoves {
    /// Lets nobody else move names into an attic, or out of one, until the guard is dropped.
    pub(crate) fn lock_moves(&self) -> MutexGuard<'_, ()> {
        self.moving.lock()
    }

    /// Ends a move of the caller, who has locked moves. If that cannot be done now, it is tried again at the next look
    /// at the disks.
    pub(crate) fn settle_move(
        &self,
        catalog: &Catalog,
        volume: &VolumeId,
        layout: &Layout,
        place: &Path,
        name: &FileName,
    ) -> Result<MoveEnd, NodeError> {
        settle(catalog, volume, layout, place, name)
            .inspect_err(|_later| self.unsettled.store(true, Ordering::Release))
    }

    /// Ends every move that was cut off on this volume. An odd item, or a move that cannot be ended now, is left for
    /// people and for the next start: only a disk that fails keeps the volume from use.
    pub(crate) fn settle_volume(
        &self,
        catalog: &Catalog,
        volume: &VolumeId,
        layout: &Layout,
    ) -> Result<(), NodeError> {
        let _moving = self.lock_moves();
        settle_all(catalog, volume, layout)
    }

    /// Ends the moves that could not be ended at once, on every volume that is online.
    pub(crate) fn settle_again(&self, catalog: &Catalog, volumes: &Volumes) {
        if !self.unsettled.swap(false, Ordering::AcqRel) {
            return;
        }
        let _moving = self.lock_moves();
        for (volume, layout) in volumes.online_layouts() {
            if let Err(error) = settle_all(catalog, &volume, &layout) {
                self.unsettled.store(true, Ordering::Release);
                tracing::warn!(%volume, %error, "a move into or out of the attic is not ended yet");
            }
        }
    }
}

/// Returns the path of a file inside a directory of the attic.
pub(crate) fn place_inside(place: &Path, path: &Path) -> PathBuf {
    place.join(kept_name(path.file_name().unwrap_or_default()))
}

/// Returns whether anything bears the name. A link is not followed.
pub(crate) fn is_there(path: &Path) -> Result<bool, DiskError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DiskError::new("lstat", path, error)),
    }
}

/// Moves `from` to `to` if `from` exists and `to` is free; otherwise leaves `from` in its place.
fn move_if_free(from: &Path, to: &Path) -> Result<(), DiskError> {
    match directory::move_new(from, to) {
        Err(error) if error.is_absent() || error.is_taken() => Ok(()),
        other => other,
    }
}

fn settle_all(catalog: &Catalog, volume: &VolumeId, layout: &Layout) -> Result<(), NodeError> {
    for name in directory::list_names(&layout.attic())? {
        let place = layout.attic().join(&name);
        if !name.to_string_lossy().starts_with('.') {
            continue;
        }
        match directory::entry_kind(&place) {
            Ok(Some(EntryKind::Directory)) => {}
            Ok(_) => continue,
            Err(error) => {
                tracing::error!(%volume, item = ?name, %error, "a move was not ended");
                continue;
            }
        }
        match settle_found(catalog, volume, layout, &place) {
            Err(NodeError::Disk(error)) if error.severity() != DiskSeverity::Disk => {
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
        Ok(reason) if reason.kind == AtticItemKind::File => {
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
    let target = layout.target_paths(name);
    let beside = [&target.sidecar, &target.outboard];
    match (
        is_there(&place_inside(place, &target.file))?,
        is_there(&target.file)?,
    ) {
        (true, false) => {
            for path in beside {
                move_if_free(path, &place_inside(place, path))?;
            }
            forget(catalog, name, volume)?;
            Ok(MoveEnd::Aside(end_place(layout, place)?))
        }
        // Another file has the name by now; the sidecar and the row belong to that file.
        (true, true) => Ok(MoveEnd::Aside(end_place(layout, place)?)),
        (false, true) => {
            for path in beside {
                move_if_free(&place_inside(place, path), path)?;
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
            Ok(catalog.remove_entry(name, volume)?)
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
    path == reason || path == replace::unfinished_path(&reason)
}

fn holds_nothing(place: &Path) -> Result<bool, DiskError> {
    let entries = directory::list_directory(place)?;
    Ok(entries.iter().all(|entry| {
        matches!(entry.kind, EntryKind::File { .. }) && is_reason(&place.join(&entry.name))
    }))
}

fn clear(place: &Path) -> Result<(), DiskError> {
    for entry in directory::list_directory(place)? {
        directory::remove_name(&place.join(entry.name))?;
    }
    directory::remove_empty(place)
}
