//! The place of an incoming file: where an earlier stream of it was cut, else the volume with most room.
//!
//! # Errors
//!
//! Every function fails when no volume takes the file, when its disk fails, or when another stream has the upload.

use std::os::unix::fs::MetadataExt as _;

use archive_durable::{DiskError, Stage};
use archive_model::{FileName, UploadId, VolumeId};

use super::{Node, SecondCopy};
use crate::error::NodeError;
use crate::layout::Layout;
use crate::upload::Upload;

impl Node {
    /// Begins to receive a file, or resumes where an earlier stream of the same upload was cut.
    pub fn begin(
        &self,
        upload: &UploadId,
        name: &FileName,
        size: u64,
    ) -> Result<Upload<'_>, NodeError> {
        self.receive(upload, name, size, EarlierUpload::Resume(None))
    }

    /// Begins as [`Node::begin`] does, for a sender that can resume at one of `points` only, ascending.
    pub fn begin_at(
        &self,
        upload: &UploadId,
        name: &FileName,
        size: u64,
        points: &[u64],
    ) -> Result<Upload<'_>, NodeError> {
        self.receive(upload, name, size, EarlierUpload::Resume(Some(points)))
    }

    /// Begins to receive a file from its first byte, and forgets what an earlier stream of the same upload left.
    pub fn begin_anew(
        &self,
        upload: &UploadId,
        name: &FileName,
        size: u64,
    ) -> Result<Upload<'_>, NodeError> {
        self.receive(upload, name, size, EarlierUpload::Forget)
    }

    fn receive(
        &self,
        upload: &UploadId,
        name: &FileName,
        size: u64,
        earlier: EarlierUpload<'_>,
    ) -> Result<Upload<'_>, NodeError> {
        self.disks.refuse_unless_open()?;
        let claim = self.claim(name, upload)?;
        self.refuse_taken(name, Some(SecondCopy::Any))?;
        if let Some((volume, layout)) = self.unfinished(upload) {
            if let EarlierUpload::Resume(points) = earlier {
                if self.has_room_for_rest(upload, &layout, size)? {
                    return self.open_upload(claim, volume, layout, size, points);
                }
                // The upload begins again on another volume, if one has room for all of it.
                self.disks
                    .volumes
                    .choose(size)?
                    .ok_or(NodeError::NoSpace(size))?;
            }
            Stage::forget(&layout.incoming(), upload.as_str())
                .map_err(|error| self.disks.blame_disk(&volume, error))?;
        }
        let _alone = self.upkeep.placing.lock();
        let (volume, layout) = self
            .disks
            .volumes
            .choose(size)?
            .ok_or(NodeError::NoSpace(size))?;
        self.open_upload(claim, volume, layout, size, None)
    }

    /// Finds the volume on which an earlier stream of an upload was cut.
    fn unfinished(&self, upload: &UploadId) -> Option<(VolumeId, Layout)> {
        self.disks.volumes.writable().into_iter().find(|(_, layout)| {
            matches!(layout.upload(upload).symlink_metadata(), Ok(metadata) if metadata.is_file())
        })
    }

    /// Returns whether an upload that was cut has room to end where it began: its reservation was given back.
    fn has_room_for_rest(
        &self,
        upload: &UploadId,
        layout: &Layout,
        size: u64,
    ) -> Result<bool, NodeError> {
        let path = layout.upload(upload);
        let found = path
            .symlink_metadata()
            .map_err(|error| DiskError::new("lstat", &path, error))?;
        // A crash leaves the reservation.
        let held = found.len().max(found.blocks().saturating_mul(512));
        let rest = size.saturating_sub(held);
        Ok(self.disks.volumes.room_on(layout)? >= rest)
    }
}

/// The treatment of the bytes that an earlier stream of an upload left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlierUpload<'a> {
    /// The bytes are kept, up to one of these points if any are named.
    Resume(Option<&'a [u64]>),
    Forget,
}
