//! The rest of the state of a node: locks so that two acts do not meet, the brakes on removals, and the work that is
//! left for the next look at the disks.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use crate::brake::Brake;
use crate::settings::AtticSettings;

/// The locks, brakes and open work of a [`Node`](super::Node).
#[derive(Debug)]
pub(super) struct Upkeep {
    pub(super) attic: AtticSettings,
    pub(super) brake: Brake,
    pub(super) moved: Brake,
    /// Locked while volumes are reconciled with the catalog.
    pub(super) refreshing: Mutex<()>,
    /// Locked while a volume is chosen for a file and its room is reserved: two would choose the same room.
    pub(super) placing: Mutex<()>,
    /// Locked while a manifest is changed.
    pub(super) lists: Mutex<()>,
    /// The number of times that a volume was reconciled with the catalog, or an unexpected file was met: there may be
    /// files to hash.
    pub(super) looked: AtomicU64,
}

impl Upkeep {
    /// Makes the state; the brakes keep their counts in the directory `data`.
    pub(super) fn new(data: &Path, attic: AtticSettings) -> Self {
        Self {
            attic,
            brake: Brake::new(data, attic.removals_per_hour),
            moved: Brake::for_moved_copies(data, attic.moved_per_hour),
            refreshing: Mutex::default(),
            placing: Mutex::default(),
            lists: Mutex::default(),
            looked: AtomicU64::new(0),
        }
    }
}
