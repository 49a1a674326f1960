//! The choice of the brake for a removal: a copy that a drain has moved has a budget of its own, as nothing leaves the
//! node.

use archive_durable::directory::{self, EntryKind};
use archive_model::{FileName, Root, VolumeId};

use crate::brake::Brake;
use crate::catalog::Condition;
use crate::error::NodeError;
use crate::node::Node;

impl Node {
    /// Returns the brake for the removal of a copy: the wider one if the copy is on a drained volume and the node has
    /// the same content on a volume that is not drained, as its catalog says and the disk confirms.
    pub(super) fn brake_of(
        &self,
        name: &FileName,
        volume: &VolumeId,
        root: Root,
    ) -> Result<&Brake, NodeError> {
        if self.is_drained(volume) && self.has_elsewhere(name, volume, root)? {
            Ok(self.brake_of_moved())
        } else {
            Ok(self.brake())
        }
    }

    fn has_elsewhere(
        &self,
        name: &FileName,
        volume: &VolumeId,
        root: Root,
    ) -> Result<bool, NodeError> {
        let online = self.volume_set().online();
        for entry in self.catalog().find(name)? {
            let is_same = entry.row.condition == Condition::Present && entry.row.root == Some(root);
            if !is_same || entry.volume == *volume || self.is_drained(&entry.volume) {
                continue;
            }
            let Some((_, layout)) = online.iter().find(|(id, _)| *id == entry.volume) else {
                continue;
            };
            // A disk that cannot be asked proves nothing.
            if let Ok(Some(EntryKind::File { size, .. })) =
                directory::kind(&layout.target(name).file)
                && size == entry.row.size
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
