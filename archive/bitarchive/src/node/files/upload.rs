//! A file on its way into this node: the write path, in its order.
//!
//! The file goes to the volume on which an earlier stream of it was cut, else to the one with most room. It is received
//! beside its destination and hashed on the way, compared with the signed admission, synced with its sidecar and
//! outboard, read back past the page cache, and given its final name: from then on it is stored. Only then come the row
//! of the catalog, the answer, and the line of the manifest.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use archive_durable::{
    DiskError, OutboardRecord, PublishError, Reservation, Sidecar, SidecarError, Stage, directory,
};
use archive_model::{FileContent, FileName, GROUP_SIZE, Root, UploadId, VolumeId};
use archive_proof::Envelope;
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::{NodeFiles, SecondCopy};
use crate::admitted;
use crate::attic::put_leftovers_aside;
use crate::catalog::{CatalogEntry, Row};
use crate::claims::Claim;
use crate::error::NodeError;
use crate::layout::{Layout, is_mend_name};
use crate::node::disks::NodeDisks;
use crate::volumes::Volumes;

/// An upload in progress. Dropping it leaves the received bytes, to be resumed or reaped, and gives back the room that
/// was reserved for the rest.
#[derive(Debug)]
pub struct NodeUpload {
    files: Arc<NodeFiles>,
    claim: Claim,
    id: UploadId,
    volume: VolumeId,
    layout: Layout,
    stage: Stage,
    room: UploadReservation,
}

/// The room that is reserved for an upload. The part that its bytes did not take is given back when this is dropped.
#[derive(Debug)]
struct UploadReservation {
    disks: Arc<NodeDisks>,
    volume: VolumeId,
    reserved: Option<Reservation>,
}

impl UploadReservation {
    /// Keeps the room when all bytes are there and durable.
    fn fill(mut self) {
        self.reserved = None;
    }
}

impl Drop for UploadReservation {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.reserved.take().map(Reservation::give_back) {
            let error = self.disks.blame_disk(&self.volume, error);
            tracing::warn!(volume = %self.volume, %error, "the room reserved for an upload is given back at the next start");
        }
    }
}

/// A volume that was chosen for an upload, whose room counts as used until this is dropped: by then the upload has
/// reserved it on the disk. A disk that hangs meanwhile delays nobody else.
struct PlacedUpload<'a> {
    files: &'a NodeFiles,
    volume: VolumeId,
    layout: Layout,
    size: u64,
}

impl<'a> PlacedUpload<'a> {
    /// Chooses the volume with the most room.
    fn choose_volume(files: &'a NodeFiles, size: u64) -> Result<Self, NodeError> {
        let mut promised = files.promised.lock();
        let chosen = files.disks.volumes.choose_volume(size, &promised)?;
        let (volume, layout) = chosen.ok_or(NodeError::NoSpace(size))?;
        *promised.entry(volume.clone()).or_default() += size;
        Ok(Self {
            files,
            volume,
            layout,
            size,
        })
    }
}

impl Drop for PlacedUpload<'_> {
    fn drop(&mut self) {
        if let Some(bytes) = self.files.promised.lock().get_mut(&self.volume) {
            *bytes -= self.size;
        }
    }
}

impl NodeFiles {
    /// Begins to receive a file, or resumes where an earlier stream of the same upload was cut.
    pub fn begin_upload(
        self: &Arc<Self>,
        upload: &UploadId,
        name: &FileName,
        size: u64,
    ) -> Result<NodeUpload, NodeError> {
        self.receive(upload, name, size, EarlierUpload::Resume(None))
    }

    /// Begins as [`NodeFiles::begin_upload`] does, for a sender that can resume at one of `points` only, ascending.
    pub fn begin_upload_at(
        self: &Arc<Self>,
        upload: &UploadId,
        name: &FileName,
        size: u64,
        points: &[u64],
    ) -> Result<NodeUpload, NodeError> {
        self.receive(upload, name, size, EarlierUpload::Resume(Some(points)))
    }

    /// Begins to receive a file from its first byte, and forgets what an earlier stream of the same upload left.
    pub fn begin_upload_anew(
        self: &Arc<Self>,
        upload: &UploadId,
        name: &FileName,
        size: u64,
    ) -> Result<NodeUpload, NodeError> {
        self.receive(upload, name, size, EarlierUpload::Forget)
    }

    fn receive(
        self: &Arc<Self>,
        upload: &UploadId,
        name: &FileName,
        size: u64,
        earlier: EarlierUpload<'_>,
    ) -> Result<NodeUpload, NodeError> {
        self.disks.refuse_unless_open()?;
        let claim = self.locks.claim_name(name, upload)?;
        self.refuse_taken(name, Some(SecondCopy::Any))?;
        if let Some((volume, layout)) = find_cut_upload(&self.disks.volumes, upload) {
            if let EarlierUpload::Resume(points) = earlier {
                if has_room_for_rest(&self.disks.volumes, upload, &layout, size)? {
                    return self.open_upload(claim, volume, layout, size, points);
                }
                // The upload begins again on another volume, if one has room for all of it.
                drop(PlacedUpload::choose_volume(self, size)?);
            }
            Stage::forget_stage(&layout.incoming(), upload.as_str())
                .map_err(|error| self.disks.blame_disk(&volume, error))?;
        }
        let placed = PlacedUpload::choose_volume(self, size)?;
        let (volume, layout) = (placed.volume.clone(), placed.layout.clone());
        self.open_upload(claim, volume, layout, size, None)
    }

    /// Begins to receive a file of `size` bytes, or resumes at the last of `points` that an earlier stream has reached;
    /// without points, wherever it ended.
    fn open_upload(
        self: &Arc<Self>,
        claim: Claim,
        volume: VolumeId,
        layout: Layout,
        size: u64,
        points: Option<&[u64]>,
    ) -> Result<NodeUpload, NodeError> {
        self.disks.ready_place(&volume, &layout, &claim.name)?;
        let id = claim.upload.clone();
        let incoming = layout.incoming();
        let most = |length| match points {
            None => length,
            Some(points) => last_point(points, length),
        };
        let stage = match Stage::create(&incoming, id.as_str()) {
            Err(error) if error.is_taken() => Stage::resume_from(&incoming, id.as_str(), most),
            other => other,
        };
        let stage = match stage {
            // An earlier attempt failed after it had given the final name: this one learns that at its end.
            Err(error) if error.is_taken() => Stage::begin_anew(&incoming, id.as_str()),
            other => other,
        };
        let stage = stage.map_err(|error| self.disks.blame_disk(&volume, error))?;
        if let Err(error) = stage.reserve_space(size.min(self.disks.volumes.room_on(&layout)?)) {
            let error = self.disks.blame_disk(&volume, error);
            stage.discard()?;
            return Err(error);
        }
        let reserved = stage
            .reservation()
            .map_err(|error| self.disks.blame_disk(&volume, error))?;
        Ok(NodeUpload {
            room: UploadReservation {
                disks: Arc::clone(&self.disks),
                volume: volume.clone(),
                reserved: Some(reserved),
            },
            files: Arc::clone(self),
            claim,
            id,
            volume,
            layout,
            stage,
        })
    }

    /// Returns the error that a name is taken, with the root of the file that has it.
    fn name_taken(
        &self,
        volume: &VolumeId,
        layout: &Layout,
        name: &FileName,
        now: Timestamp,
    ) -> NodeError {
        match self.disks.reconcile_file(volume, layout, name, now) {
            Ok(root) => NodeError::Taken {
                name: name.clone(),
                volume: volume.clone(),
                root,
            },
            Err(error) => error,
        }
    }

    /// Removes the bytes of uploads that nobody has touched since `before` (seconds since 1970). Returns their number.
    pub fn reap_uploads(&self, before: i64) -> Result<u64, NodeError> {
        let mut reaped = 0;
        let receiving = self.locks.list_uploads();
        for (_, layout) in self.disks.volumes.online_layouts() {
            for (last, kind) in directory::look_up_names(&layout.incoming())? {
                let is_old = matches!(kind, Ok(directory::EntryKind::File { changed, .. }) if changed < before);
                let name = last.to_string_lossy();
                let upload = name.split('.').next().unwrap_or_default();
                let is_old = is_old && !is_mend_name(&name);
                if is_old && !receiving.iter().any(|active| active.as_str() == upload) {
                    directory::remove_name(&layout.incoming().join(&last))?;
                    reaped += 1;
                }
            }
        }
        Ok(reaped)
    }
}

impl NodeUpload {
    /// Returns the number of bytes received, which are whole groups after a resumption.
    pub const fn received(&self) -> u64 {
        self.stage.length()
    }

    /// Returns the root of the bytes received: the sender compares it with its own before it continues from there.
    pub fn root_so_far(&self) -> Root {
        self.stage.root_so_far()
    }

    /// Returns the name under which the file will be stored.
    pub const fn name(&self) -> &FileName {
        &self.claim.name
    }

    /// Returns the volume it is received on.
    pub const fn volume(&self) -> &VolumeId {
        &self.volume
    }

    /// Writes the next bytes.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), NodeError> {
        self.stage
            .write_all(bytes)
            .map_err(|error| self.files.disks.blame_disk(&self.volume, error))
    }

    /// Forgets the bytes beyond `length`, cut to whole groups.
    pub fn keep_prefix(self, length: u64) -> Result<Self, NodeError> {
        let stage = self
            .stage
            .keep_prefix(length)
            .map_err(|error| self.files.disks.blame_disk(&self.volume, error))?;
        Ok(Self { stage, ..self })
    }

    /// Makes the received bytes durable. Returns the number of bytes that a resumption can count on.
    pub fn sync_bytes(&self) -> Result<u64, NodeError> {
        self.stage
            .sync()
            .map_err(|error| self.files.disks.blame_disk(&self.volume, error))?;
        Ok(self.stage.length() - self.stage.length() % GROUP_SIZE)
    }

    /// Discards the upload and frees its room.
    pub fn discard_upload(self) -> Result<(), NodeError> {
        self.stage
            .discard()
            .map_err(|error| self.files.disks.blame_disk(&self.volume, error))
    }

    /// Compares the bytes with the admission, makes them durable, reads them back and gives them their final name. On
    /// return, the file is stored. If `commit` fails before the name was given, nothing bears the name.
    pub fn commit_upload(
        self,
        admission: &Envelope,
        now: Timestamp,
    ) -> Result<CatalogEntry, NodeError> {
        let Self {
            files,
            claim,
            id,
            volume,
            layout,
            stage,
            room,
        } = self;
        let name = claim.name.clone();
        let blame = |error: DiskError| files.disks.blame_disk(&volume, error);
        let admitted = match admitted::verify_admission(admission, &files.trust, &name) {
            Ok(admitted) => admitted,
            Err(refused) => {
                stage.discard().map_err(blame)?;
                return Err(refused);
            }
        };
        let received = stage.finish().map_err(blame)?;
        let size = received.size();
        let root = received.root();
        let content = FileContent { root, size };
        if let Err(differs) = admitted::compare_content(&admitted, &name, &id, content) {
            received.discard().map_err(blame)?;
            return Err(differs);
        }
        // Volumes may have been set to drain, or back, while the bytes came.
        if let Err(taken) = files.refuse_taken(&name, Some(SecondCopy::Of(admitted.root))) {
            received.discard().map_err(blame)?;
            return Err(taken);
        }
        let text = sidecar_text(&name, &volume, admission, received.outboard(), now)?;
        // The disk may have failed, or been exchanged, while the bytes came.
        files.disks.find_layout(&volume)?;
        let verified = received
            .seal_file(&text)
            .map_err(blame)?
            .verify_file()
            .map_err(|error| match error {
                Some(error) => files.disks.blame_disk(&volume, error),
                None => NodeError::ReadBack {
                    name: name.clone(),
                    volume: volume.clone(),
                },
            })?;
        files.disks.find_layout(&volume)?;
        room.fill();
        put_leftovers_aside(&layout, id.as_str(), &name, &files.node, now).map_err(blame)?;
        verified
            .publish_file(&layout.target_paths(&name))
            .map_err(|error| match error {
                // Perhaps an earlier attempt failed after the name was given: the caller compares the root.
                PublishError::Taken(_) => files.name_taken(&volume, &layout, &name, now),
                PublishError::Disk(error) => files.disks.blame_disk(&volume, error),
            })?;
        let row = Row::intact_row(admitted.size, admitted.root, now, now);
        let entry = CatalogEntry { name, volume, row };
        files.catalog.put_entries(std::slice::from_ref(&entry))?;
        files.disks.note_stored(&entry, now)?;
        files
            .disks
            .add_to_manifest(&entry.volume, &layout, &entry.name, admitted.root);
        Ok(entry)
    }
}

/// The treatment of the bytes that an earlier stream of an upload left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlierUpload<'a> {
    /// The bytes are kept, up to one of these points if any are named.
    Resume(Option<&'a [u64]>),
    Forget,
}

/// Finds the volume on which an earlier stream of an upload was cut.
fn find_cut_upload(volumes: &Volumes, upload: &UploadId) -> Option<(VolumeId, Layout)> {
    volumes.writable_layouts().into_iter().find(|(_, layout)| {
        matches!(layout.upload(upload).symlink_metadata(), Ok(metadata) if metadata.is_file())
    })
}

/// Returns whether an upload that was cut has room to end where it began: its reservation was given back.
fn has_room_for_rest(
    volumes: &Volumes,
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
    Ok(volumes.room_on(layout)? >= rest)
}

/// Returns the largest of `points` that is at most `length`, or 0.
fn last_point(points: &[u64], length: u64) -> u64 {
    let reached = points.iter().copied().filter(|point| *point <= length);
    reached.max().unwrap_or(0)
}

/// Returns the text of the sidecar of a file that is stored now.
pub(super) fn sidecar_text(
    name: &FileName,
    volume: &VolumeId,
    admission: &Envelope,
    outboard: Option<OutboardRecord>,
    now: Timestamp,
) -> Result<Vec<u8>, NodeError> {
    let failed = |error: SidecarError| NodeError::Sidecar {
        name: name.clone(),
        error,
    };
    let verbatim = RawValue::from_string(admission.as_str().to_owned());
    let sidecar = Sidecar {
        admission: verbatim.map_err(|error| failed(error.into()))?,
        outboard,
        volume: volume.clone(),
        stored: now,
        unknown: BTreeMap::new(),
    };
    sidecar.to_json().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::NodeMachine;

    /// Fails if two uploads can choose the same room, or an upload that has chosen keeps others waiting until its disk
    /// has reserved that.
    #[test]
    fn chosen_room_is_promised_until_it_is_reserved() {
        let machine = NodeMachine::new();
        let (node, _) = machine.start();
        let (_, layout) = node.disks.volumes.online_layouts().remove(0);
        let most = node.disks.volumes.room_on(&layout).unwrap() / 3 * 2;
        let first = PlacedUpload::choose_volume(&node.files, most).unwrap();
        let second = PlacedUpload::choose_volume(&node.files, most);
        assert!(matches!(second, Err(NodeError::NoSpace(_))));
        drop(PlacedUpload::choose_volume(&node.files, 1).unwrap());
        drop(first);
        drop(PlacedUpload::choose_volume(&node.files, most).unwrap());
        let promised = node.files.promised.lock();
        assert!(promised.values().all(|bytes| *bytes == 0), "{promised:?}");
    }
}
