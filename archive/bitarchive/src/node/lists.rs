//! The manifests of a node, kept in step with its files.

use archive_durable::DiskError;
use archive_model::{FileName, Root, VolumeId};

use super::Node;
use crate::layout::{FileDirectory, Layout};
use crate::manifest;

impl Node {
    /// Adds a file to the manifest of its directory. The list is derived: the next start corrects a failure here.
    pub(crate) fn enlist(&self, volume: &VolumeId, layout: &Layout, name: &FileName, root: Root) {
        self.change_list(volume, name, || {
            manifest::add(&layout.manifest(FileDirectory::for_name(name)), name, root)
        });
    }

    /// Removes a file from the manifest of its directory.
    pub(crate) fn unlist(&self, volume: &VolumeId, layout: &Layout, name: &FileName) {
        self.change_list(volume, name, || {
            manifest::remove(&layout.manifest(FileDirectory::for_name(name)), name)
        });
    }

    fn change_list(
        &self,
        volume: &VolumeId,
        name: &FileName,
        change: impl FnOnce() -> Result<(), DiskError>,
    ) {
        let _alone = self.upkeep.lists.lock();
        if let Err(error) = change() {
            // The disk may be to blame.
            let error = self.blame(volume, error);
            tracing::warn!(file = %name, %error, "the manifest is not right until the next start");
        }
    }
}
