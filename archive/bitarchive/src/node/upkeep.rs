//! What a node needs besides its volumes and its catalog: locks so that two acts do not meet, the brake on removals,
//! and what is left to be done when the disks are looked at next.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use archive_durable::DiskError;
use archive_model::{FileName, Root, UploadId, VolumeId};

use super::{Node, NodeOptions};
use crate::attic::Brake;
use crate::error::NodeError;
use crate::layout::{Layout, Shelf};
use crate::manifest;
use crate::settings::AtticSettings;

/// Part of a [`Node`].
#[derive(Debug)]
pub(super) struct Upkeep {
    attic: AtticSettings,
    brake: Brake,
    moved: Brake,
    /// Held while names move into the attic or out of it.
    moving: Mutex<()>,
    /// Held while volumes are held against the catalog.
    pub(super) refreshing: Mutex<()>,
    /// Held while a volume is chosen for a file and its room is reserved: two would choose the same room.
    pub(super) placing: Mutex<()>,
    /// Held while a manifest is changed.
    lists: Mutex<()>,
    /// A move into or out of the attic could not be ended.
    unsettled: AtomicBool,
    /// How often a volume was held against the catalog, or a stranger was met: it may have files to hash.
    looked: AtomicU64,
}

impl Upkeep {
    pub(super) fn new(options: &NodeOptions) -> Self {
        Self {
            attic: options.attic,
            brake: Brake::new(&options.data, options.attic.removals_per_hour),
            moved: Brake::of_moved(&options.data, options.attic.moved_per_hour),
            moving: Mutex::default(),
            refreshing: Mutex::default(),
            placing: Mutex::default(),
            lists: Mutex::default(),
            unsettled: AtomicBool::new(false),
            looked: AtomicU64::new(0),
        }
    }
}

/// A name for a verb that holds the file `name` for itself, in the place of an upload. Another for each file: under it
/// lies in `incoming/` what the verb writes there.
pub(crate) fn verb(what: &str, name: &FileName) -> Result<UploadId, NodeError> {
    let hash = blake3::hash(name.as_str().as_bytes()).to_hex();
    UploadId::new(&format!("{what}-{hash:.32}")).map_err(|error| NodeError::Bug(error.to_string()))
}

impl Node {
    pub(crate) const fn attic_settings(&self) -> &AtticSettings {
        &self.upkeep.attic
    }

    pub(crate) const fn brake(&self) -> &Brake {
        &self.upkeep.brake
    }

    pub(crate) const fn brake_of_moved(&self) -> &Brake {
        &self.upkeep.moved
    }

    pub(crate) const fn unsettled(&self) -> &AtomicBool {
        &self.upkeep.unsettled
    }

    pub(crate) const fn looked(&self) -> &AtomicU64 {
        &self.upkeep.looked
    }

    pub(crate) fn moving(&self) -> MutexGuard<'_, ()> {
        self.upkeep
            .moving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file to the manifest of its shelf. The list is derived: what fails here is made good at the next start.
    pub(crate) fn enlist(&self, volume: &VolumeId, layout: &Layout, name: &FileName, root: Root) {
        self.change_list(volume, name, || {
            manifest::add(&layout.manifest(Shelf::of(name)), name, root)
        });
    }

    /// Takes a file from the manifest of its shelf.
    pub(crate) fn unlist(&self, volume: &VolumeId, layout: &Layout, name: &FileName) {
        self.change_list(volume, name, || {
            manifest::remove(&layout.manifest(Shelf::of(name)), name)
        });
    }

    fn change_list(
        &self,
        volume: &VolumeId,
        name: &FileName,
        change: impl FnOnce() -> Result<(), DiskError>,
    ) {
        let _alone = self
            .upkeep
            .lists
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = change() {
            // The disk may be to blame.
            let error = self.blame(volume, error);
            tracing::warn!(file = %name, %error, "the manifest is not right until the next start");
        }
    }
}
