//! The exchange of a damaged copy for a repaired one that was made beside it.
//!
//! The repaired copy comes through a [`Stage`](crate::Stage), so it was hashed while it was written.
//! [`RepairedCopy::settle_repair`] makes it durable, [`RepairedCopy::prove_copy`] reads it back past the page cache and compares
//! every group with the root, and only a proven copy changes places with the damaged one, in one system call. So after
//! any crash the final name bears the old bytes or the repaired ones. The files that then lie in `incoming/` are no
//! longer needed: the caller has put the evidence aside before.
//!
//! Not promised: that there was damage, or that the sidecar fits. The sidecar stays as it is.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.

use std::ops::ControlFlow;
use std::path::Path;

use archive_model::{FileContent, Root};
use archive_proof::{CopyBytes, OutboardState, ReadAt, walk_tree};

use crate::call;
use crate::directory::remove_name;
use crate::error::DiskError;
use crate::stage::{FinalPaths, Paths, ReceivedFile};
use crate::verify::UncachedFile;

/// A repaired copy that is durable beside the damaged one, and was not read back yet.
#[derive(Debug)]
pub struct RepairedCopy {
    paths: Paths,
    size: u64,
    has_outboard: bool,
}

/// A repaired copy that was read back and has the right root.
#[derive(Debug)]
pub struct ProvenCopy(RepairedCopy);

impl RepairedCopy {
    /// Makes a received file durable and read-only, beside its destination.
    pub fn settle_repair(received: ReceivedFile) -> Result<Self, DiskError> {
        let size = received.size();
        let (paths, has_outboard) = received.settle_file()?;
        Ok(Self {
            paths,
            size,
            has_outboard,
        })
    }

    /// Reads the copy back past the page cache and proves every group, and the outboard. `progress` receives how many
    /// bytes were just read, and may stop the work.
    ///
    /// # Errors
    ///
    /// Returns `None` if the copy does not have the root, or `progress` stopped; a [`DiskError`] if a system call
    /// fails.
    pub fn prove_copy(
        self,
        root: Root,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ProvenCopy, Option<DiskError>> {
        let data = UncachedFile::open(&self.paths.data)?;
        let outboard = self
            .has_outboard
            .then(|| UncachedFile::open(&self.paths.outboard))
            .transpose()?;
        let has_size = data.size()? == self.size;
        let copy = CopyBytes {
            data: &data,
            outboard: outboard.as_ref().map(|outboard| outboard as &dyn ReadAt),
        };
        let content = FileContent {
            root,
            size: self.size,
        };
        let found = walk_tree(copy, content, progress);
        if has_size && found.is_intact() && found.outboard == OutboardState::Good {
            Ok(ProvenCopy(self))
        } else {
            Err(None)
        }
    }
}

impl ProvenCopy {
    /// Puts the repaired copy in the place of the damaged one and makes that durable; then exchanges the outboard, and
    /// then removes the damaged copy. An error of the first step leaves the damaged copy in its place.
    pub fn exchange_copy(self, target: &FinalPaths) -> Result<(), DiskError> {
        let RepairedCopy {
            paths,
            has_outboard,
            ..
        } = self.0;
        call::exchange_files(&paths.data, &target.file)?;
        target.file.parent().map_or(Ok(()), call::sync_directory)?;
        paths.data.parent().map_or(Ok(()), call::sync_directory)?;
        if has_outboard {
            replace_outboard(&paths.outboard, &target.outboard)?;
        }
        remove_name(&paths.data)
    }
}

/// Puts a synced outboard under its final name, in the place of an earlier one. An outboard is derived: the earlier one
/// can be computed again from good data, and is worth nothing with other data.
pub fn replace_outboard(new: &Path, target: &Path) -> Result<(), DiskError> {
    call::move_over(new, target)?;
    target.parent().map_or(Ok(()), call::sync_directory)
}

/// Computes the outboard of good data again, in the file `beside`, and puts it in the place of a rotten one. Returns
/// `false` if the data is not good; nothing was replaced then.
pub fn rebuild_outboard(
    data: &UncachedFile,
    content: FileContent,
    beside: &Path,
    target: &Path,
) -> Result<bool, DiskError> {
    remove_name(beside)?;
    let sink = Sink {
        path: beside,
        file: call::create_file(beside)?,
    };
    let tree = match archive_proof::rebuild_outboard(data, content, sink) {
        Ok(tree) => tree,
        Err(archive_proof::RebuildError::Sink(error)) => {
            remove_name(beside)?;
            return Err(match error.downcast::<DiskError>() {
                Ok(disk) => disk,
                Err(error) => DiskError::new("write", beside, error),
            });
        }
        Err(
            archive_proof::RebuildError::Read { .. }
            | archive_proof::RebuildError::OtherRoot { .. },
        ) => {
            remove_name(beside)?;
            return Ok(false);
        }
    };
    if tree.outboard_size == 0 {
        remove_name(target)?;
        remove_name(beside)?;
        return Ok(true);
    }
    call::seal_mode(&tree.sink.file, beside)?;
    call::sync_file(&tree.sink.file, beside)?;
    replace_outboard(beside, target)?;
    Ok(true)
}

struct Sink<'a> {
    path: &'a Path,
    file: std::fs::File,
}

impl std::io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        call::write_all(&mut self.file, self.path, bytes).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
