//! What a node needs besides its volumes and its catalog: locks so that two acts do not meet, the brake on removals,
//! and what is left to be done when the disks are looked at next.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::brake::Brake;
use crate::settings::AtticSettings;

/// Part of a [`Node`](super::Node).
#[derive(Debug)]
pub(super) struct Upkeep {
    pub(super) attic: AtticSettings,
    pub(super) brake: Brake,
    pub(super) moved: Brake,
    /// Held while names move into the attic or out of it.
    pub(super) moving: Mutex<()>,
    /// Held while volumes are reconciled with the catalog.
    pub(super) refreshing: Mutex<()>,
    /// Held while a volume is chosen for a file and its room is reserved: two would choose the same room.
    pub(super) placing: Mutex<()>,
    /// Held while a manifest is changed.
    pub(super) lists: Mutex<()>,
    /// A move into or out of the attic could not be ended.
    pub(super) unsettled: AtomicBool,
    /// How often a volume was reconciled with the catalog, or a stranger was met: it may have files to hash.
    pub(super) looked: AtomicU64,
}

impl Upkeep {
    /// `data` is the directory where the brakes remember what they let pass.
    pub(super) fn new(data: &Path, attic: AtticSettings) -> Self {
        Self {
            attic,
            brake: Brake::new(data, attic.removals_per_hour),
            moved: Brake::of_moved(data, attic.moved_per_hour),
            moving: Mutex::default(),
            refreshing: Mutex::default(),
            placing: Mutex::default(),
            lists: Mutex::default(),
            unsettled: AtomicBool::new(false),
            looked: AtomicU64::new(0),
        }
    }
}
