//! The rest of the state of a node: the lock of placing, and the brakes on removals.

use std::path::Path;

use crate::brake::Brake;
use crate::settings::AtticSettings;

/// The locks and brakes of a [`Node`](super::Node).
#[derive(Debug)]
pub(super) struct Upkeep {
    pub(super) attic: AtticSettings,
    pub(super) brake: Brake,
    pub(super) moved: Brake,
}

impl Upkeep {
    /// Makes the state; the brakes keep their counts in the directory `data`.
    pub(super) fn new(data: &Path, attic: AtticSettings) -> Self {
        Self {
            attic,
            brake: Brake::new(data, attic.removals_per_hour),
            moved: Brake::for_moved_copies(data, attic.moved_per_hour),
        }
    }
}
