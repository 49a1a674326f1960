//! A damaged copy gives its place to a repaired one that was made beside it.
//!
//! The repaired copy comes through a [`Stage`](crate::Stage), so it was hashed while it was written. [`Copy::settle`]
//! makes it durable, [`Copy::prove`] reads it back past the page cache and holds every group against the root, and
//! only what was proven changes places with the damaged copy, in one system call. So whatever crash comes, the final
//! name bears the old bytes or the repaired ones. What lies in `incoming/` afterwards, before or after the exchange, is
//! not needed any more: the caller has put the evidence aside before.
//!
//! Not promised: that there was damage, or that the sidecar fits. The sidecar stays as it is.

use std::ops::ControlFlow;
use std::path::Path;

use archive_model::Root;
use archive_proof::{OutboardState, walk};

use crate::call;
use crate::directory::remove_name;
use crate::error::DiskError;
use crate::stage::{Paths, Received, Target};
use crate::verify::UncachedFile;

/// A repaired copy, durable beside the damaged one; not read back yet.
#[derive(Debug)]
pub struct Copy {
    paths: Paths,
    size: u64,
    has_outboard: bool,
}

/// A repaired copy that was read back and is what the root says.
#[derive(Debug)]
pub struct Proven(Copy);

impl Copy {
    /// Makes what was received durable and read-only, beside its destination.
    pub fn settle(received: Received) -> Result<Self, DiskError> {
        let size = received.size();
        let (paths, has_outboard) = received.settle()?;
        Ok(Self {
            paths,
            size,
            has_outboard,
        })
    }

    /// Reads the copy back past the page cache and proves every group, and the outboard. `progress` is told how many
    /// bytes were just read and may stop it. `Err(None)`: it is not what it should be, or `progress` stopped.
    pub fn prove(
        self,
        root: Root,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Proven, Option<DiskError>> {
        let data = UncachedFile::open(&self.paths.data)?;
        let outboard = self
            .has_outboard
            .then(|| UncachedFile::open(&self.paths.outboard))
            .transpose()?;
        let has_size = data.size()? == self.size;
        let found = walk(&data, outboard.as_ref(), root, self.size, progress);
        if has_size && found.is_intact() && found.outboard == OutboardState::Good {
            Ok(Proven(self))
        } else {
            Err(None)
        }
    }
}

impl Proven {
    /// Puts the repaired copy in the place of the damaged one and makes that durable; then its outboard, and then the
    /// damaged copy is removed. An error of the first step leaves the damaged copy in its place.
    pub fn exchange(self, target: &Target) -> Result<(), DiskError> {
        let Copy {
            paths,
            has_outboard,
            ..
        } = self.0;
        call::exchange(&paths.data, &target.file)?;
        target.file.parent().map_or(Ok(()), call::sync_directory)?;
        paths.data.parent().map_or(Ok(()), call::sync_directory)?;
        if has_outboard {
            replace_outboard(&paths.outboard, &target.outboard)?;
        }
        remove_name(&paths.data)
    }
}

/// Puts a synced outboard in the place of what is there under its final name, if anything is. An outboard is derived:
/// what it replaces can be computed again from good data, and is worth nothing with other data.
pub fn replace_outboard(new: &Path, target: &Path) -> Result<(), DiskError> {
    call::move_over(new, target)?;
    target.parent().map_or(Ok(()), call::sync_directory)
}

/// Computes the outboard of good data anew, beside its destination, and puts it in the place of a rotten one. `false`:
/// the data is not good, and nothing was replaced.
pub fn rebuild_outboard(
    data: &UncachedFile,
    root: Root,
    size: u64,
    beside: &Path,
    target: &Path,
) -> Result<bool, DiskError> {
    remove_name(beside)?;
    let sink = Sink {
        path: beside,
        file: call::create(beside)?,
    };
    let tree = match archive_proof::rebuild_outboard(data, root, size, sink) {
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
    call::sync(&tree.sink.file, beside)?;
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
