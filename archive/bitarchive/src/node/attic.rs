//! What was put aside: copies go into the attic of their volume and come back, and leave it for good.
//!
//! `attic` has the items and ends their moves; this file decides who may move what. A removal names the content of the
//! copy, is counted by a brake before it is done, and is never the end of the bytes: only `purge` destroys. A copy that
//! a drain has moved has a brake of its own, as nothing leaves the node.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

mod purge;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use archive_durable::directory::{self, EntryKind};
use archive_durable::{DiskError, FinalPaths, PublishError, SurveyedFile, UncachedFile};
use archive_model::{Cause, FileName, NodeId, Root, VolumeId};
use archive_proof::TrustFile;
use jiff::Timestamp;

use super::disks::NodeDisks;
use super::files::NodeFiles;
use crate::attic::{
    self, AtticId, AtticItemKind, AtticMoves, AtticReason, ItemPlace, LocalAtticItem, MoveEnd,
    RemovalOrder, is_there, make_place, place_inside,
};
use crate::brake::Brake;
use crate::catalog::{Catalog, CatalogEntry, Condition, Row};
use crate::claims::claim_for_verb;
use crate::error::NodeError;
use crate::layout::Layout;
use crate::reconcile;
use crate::settings::AtticSettings;

pub(crate) use purge::EvidenceWorker;

/// Returns the name of the file in a directory of the attic, if the directory has a whole file.
fn whole_file(place: &Path, volume: &VolumeId, id: &AtticId) -> Result<FileName, NodeError> {
    if !is_there(place)? {
        return Err(NodeError::NoItem {
            volume: volume.clone(),
            id: id.to_string(),
        });
    }
    let reason = attic::read_reason(place)
        .map_err(|why| NodeError::attic_problem(volume, id.as_str(), why))?;
    match reason.kind {
        AtticItemKind::File => Ok(reason.name),
        AtticItemKind::Groups | AtticItemKind::Leftover => {
            let why = "only whole files can be taken back".to_owned();
            Err(NodeError::attic_problem(volume, id.as_str(), why))
        }
    }
}

/// The attic of a node: what was put aside on its volumes. Shared by all who put aside, restore or purge.
#[derive(Debug)]
pub struct NodeAttic {
    node: NodeId,
    trust: Arc<TrustFile>,
    catalog: Arc<Catalog>,
    moves: Arc<AtticMoves>,
    disks: Arc<NodeDisks>,
    files: Arc<NodeFiles>,
    settings: AtticSettings,
    /// The brake on removals and purges.
    brake: Brake,
    /// The brake on removals of copies that a drain has moved to another volume of the node.
    brake_of_moved: Brake,
}

impl NodeAttic {
    /// Makes the attic of `node`, which counts removals in the directory `data`.
    pub(super) fn new(
        node: NodeId,
        data: &Path,
        settings: AtticSettings,
        trust: Arc<TrustFile>,
        catalog: Arc<Catalog>,
        moves: Arc<AtticMoves>,
        disks: Arc<NodeDisks>,
        files: Arc<NodeFiles>,
    ) -> Self {
        Self {
            node,
            trust,
            catalog,
            moves,
            disks,
            files,
            settings,
            brake: Brake::new(data, settings.removals_per_hour),
            brake_of_moved: Brake::for_moved_copies(data, settings.moved_per_hour),
        }
    }

    /// Moves a copy into the attic of its volume, if it has the root on the medium now that the order names.
    pub fn put_copy_aside(
        &self,
        removal: &RemovalOrder,
        now: Timestamp,
    ) -> Result<LocalAtticItem, NodeError> {
        let RemovalOrder {
            name,
            volume,
            checksum,
            cause,
        } = removal;
        let checksum = *checksum;
        let claim = self
            .files
            .locks
            .claim_name(name, &claim_for_verb("put-aside", name)?)?;
        let layout = self.disks.open_place(volume, name)?;
        let brake = self.choose_brake(name, volume, checksum)?;
        brake.check_rate(now)?;
        let target = layout.target_paths(name);
        let found = match UncachedFile::open(&target.file) {
            Err(error) if error.is_absent() => return Err(NodeError::NotFound(name.clone())),
            other => other?.root()?,
        };
        if found != checksum {
            tracing::error!(file = %name, %volume, who = cause.who, "a removal was refused: it named another checksum");
            drop(claim);
            self.note_changed_copy(name, volume, found, now)?;
            return Err(NodeError::OtherCopy {
                name: name.clone(),
                volume: volume.clone(),
            });
        }
        brake.count_removal(now)?;
        let _moving = self.moves.lock_moves();
        self.disks.find_layout(volume)?;
        let reason = AtticReason::new(AtticItemKind::File, name, now, cause);
        let place = make_place(&layout, ".", "file", &reason)
            .map_err(|error| self.disks.blame_disk(volume, error))?;
        let moved = directory::move_new(&target.file, &place_inside(&place, &target.file));
        let end = self.settle(volume, &layout, &place, name);
        moved.map_err(|error| self.disks.blame_disk(volume, error))?;
        let MoveEnd::Aside(place) = end? else {
            return Err(NodeError::NotFound(name.clone()));
        };
        self.disks.remove_from_manifest(volume, &layout, name);
        self.disks.volumes.note_change(volume);
        let item = place.file_name().unwrap_or_default();
        tracing::info!(file = %name, %volume, item = %item.display(), who = cause.who, why = cause.why, "put aside");
        let listed = ItemPlace {
            at: now,
            name: item.to_owned(),
            volume: volume.clone(),
        };
        Ok(attic::read_item(&layout, &listed))
    }

    /// Has a copy judged again whose bytes were just read, if its row calls other ones present.
    fn note_changed_copy(
        &self,
        name: &FileName,
        volume: &VolumeId,
        found: Root,
        now: Timestamp,
    ) -> Result<(), NodeError> {
        let row = self.catalog.row(name, volume)?;
        let is_changed = |row: Row| row.condition == Condition::Present && row.root != Some(found);
        if row.is_some_and(is_changed) {
            let go_on = &mut |_| ControlFlow::Continue(());
            self.files.verify_copy(name, Some(volume), now, go_on)?;
        }
        Ok(())
    }

    /// Moves a file from the attic back under its name, if the name is free and its bytes are what its sidecar admits.
    pub fn restore_item(
        &self,
        volume: &VolumeId,
        id: &AtticId,
        cause: &Cause,
        now: Timestamp,
    ) -> Result<CatalogEntry, NodeError> {
        let layout = self.disks.find_layout(volume)?;
        self.disks.refuse_unless_open()?;
        self.disks.refuse_unless_writable(volume)?;
        let place = layout.attic().join(id.as_str());
        let name = whole_file(&place, volume, id)?;
        let _claim = self
            .files
            .locks
            .claim_name(&name, &claim_for_verb("take-back", &name)?)?;
        self.disks.ready_place(volume, &layout, &name)?;
        self.files.refuse_taken(&name, None)?;
        let target = layout.target_paths(&name);
        if is_there(&target.file)? {
            return Err(NodeError::Taken {
                root: self.disks.reconcile_file(volume, &layout, &name, now)?,
                name,
                volume: volume.clone(),
            });
        }
        let kept = FinalPaths {
            file: place_inside(&place, &target.file),
            sidecar: place_inside(&place, &target.sidecar),
            outboard: place_inside(&place, &target.outboard),
        };
        let (size, root, stored) = reconcile::read_sidecar(&kept.sidecar, &name, &self.trust)?
            .map_err(|why| NodeError::Admission {
                name: name.clone(),
                why,
            })?;
        self.prove_item(volume, &layout, &kept, &name, size, root)?;

        let _moving = self.moves.lock_moves();
        self.disks.find_layout(volume)?;
        self.move_back(volume, &layout, id, &place, &name, now)?;
        let row = Row::intact_row(size, root, stored, now);
        let entry = CatalogEntry {
            name,
            volume: volume.clone(),
            row,
        };
        self.catalog.put_entries(std::slice::from_ref(&entry))?;
        self.disks.note_stored(&entry, now)?;
        self.disks
            .add_to_manifest(volume, &layout, &entry.name, root);
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
        let target = layout.target_paths(name);
        let blame = |error: DiskError| self.disks.blame_disk(volume, error);
        attic::put_leftovers_aside(layout, "take-back", name, &self.node, now).map_err(blame)?;
        let begun = layout.attic().join(format!(".{id}"));
        directory::move_new(place, &begun).map_err(blame)?;
        let moved = [&target.sidecar, &target.outboard, &target.file]
            .into_iter()
            .try_for_each(
                |path| match directory::move_new(&place_inside(&begun, path), path) {
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
            Err(NodeError::attic_problem(volume, id.as_str(), why))
        }
    }

    /// Reads a file in the attic past the page cache and proves it by its admission. A rotten or absent outboard is
    /// computed again.
    fn prove_item(
        &self,
        volume: &VolumeId,
        layout: &Layout,
        kept: &FinalPaths,
        name: &FileName,
        size: u64,
        root: Root,
    ) -> Result<(), NodeError> {
        let blame = |error: DiskError| self.disks.blame_disk(volume, error);
        let id = claim_for_verb("take-back", name)?;
        let survey =
            SurveyedFile::hash_file(&layout.incoming(), id.as_str(), &kept.file).map_err(blame)?;
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
                PublishError::Disk(error) => blame(error),
                taken @ PublishError::Taken(_) => {
                    NodeError::attic_problem(volume, "", taken.to_string())
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
        let ended = self
            .moves
            .settle_move(&self.catalog, volume, layout, place, name);
        ended.map_err(|error| match error {
            NodeError::Disk(error) => self.disks.blame_disk(volume, error),
            other => other,
        })
    }

    /// Returns the brake for the removal of a copy: the wider one if the copy is on a drained volume and the node has
    /// the same content on a volume that is not drained, as its catalog says and the disk confirms.
    fn choose_brake(
        &self,
        name: &FileName,
        volume: &VolumeId,
        root: Root,
    ) -> Result<&Brake, NodeError> {
        if self.disks.is_drained(volume) && self.has_elsewhere(name, volume, root)? {
            Ok(&self.brake_of_moved)
        } else {
            Ok(&self.brake)
        }
    }

    fn has_elsewhere(
        &self,
        name: &FileName,
        volume: &VolumeId,
        root: Root,
    ) -> Result<bool, NodeError> {
        let online = self.disks.volumes.online_layouts();
        for entry in self.catalog.find_entries(name)? {
            let is_same = entry.row.condition == Condition::Present && entry.row.root == Some(root);
            if !is_same || entry.volume == *volume || self.disks.is_drained(&entry.volume) {
                continue;
            }
            let Some((_, layout)) = online.iter().find(|(id, _)| *id == entry.volume) else {
                continue;
            };
            // A disk that cannot be asked proves nothing.
            if let Ok(Some(EntryKind::File { size, .. })) =
                directory::entry_kind(&layout.target_paths(name).file)
                && size == entry.row.size
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
