//! A file on its way from the wire to its final name.
//!
//! The steps are types, so that none can be left out: a [`Stage`] takes bytes, [`ReceivedFile`] knows its root,
//! [`SealedFile`] is synced, [`VerifiedFile`] was read back, and only that can be published. Dropping any of them
//! leaves the written bytes in `incoming/`, to be resumed or reaped.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use archive_model::{GROUP_SIZE, Root};
use archive_proof::TreeBuilder;

use crate::call;
use crate::error::DiskError;
use crate::sidecar::OutboardRecord;
use crate::verify::UncachedFile;

mod reservation;
mod survey;

pub use reservation::Reservation;
pub use survey::SurveyedFile;

/// The three names of an upload in `incoming/`.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) data: PathBuf,
    pub(crate) sidecar: PathBuf,
    pub(crate) outboard: PathBuf,
}

impl Paths {
    fn new(incoming: &Path, id: &str) -> Self {
        Self {
            data: incoming.join(id),
            sidecar: incoming.join(format!("{id}.json")),
            outboard: incoming.join(format!("{id}.bao")),
        }
    }
}

/// A file that is being received.
#[derive(Debug)]
pub struct Stage {
    paths: Paths,
    file: File,
    length: u64,
    tree: TreeBuilder<OutboardSink>,
}

impl Stage {
    /// Starts a new upload in the directory `incoming`; refuses an `id` that is taken.
    pub fn create(incoming: &Path, id: &str) -> Result<Self, DiskError> {
        let paths = Paths::new(incoming, id);
        let file = call::create_file(&paths.data)?;
        Self::with(paths, file, 0)
    }

    /// Resumes a cut upload: keeps the whole groups that it has, makes them durable and hashes them again. They are
    /// only as good as [`Stage::root_so_far`] shows: a crash may have left anything. A file that already bears its
    /// final name is never written again: it is refused as taken.
    pub fn resume(incoming: &Path, id: &str) -> Result<Self, DiskError> {
        Self::resume_from(incoming, id, |length| length)
    }

    /// Resumes as [`Stage::resume`] does, but keeps and hashes only the bytes before `most(length)`, of `length` bytes
    /// on disk.
    pub fn resume_from(
        incoming: &Path,
        id: &str,
        most: impl FnOnce(u64) -> u64,
    ) -> Result<Self, DiskError> {
        let paths = Paths::new(incoming, id);
        let file = call::open_for_reading(&paths.data)?;
        let failed = |operation, error| DiskError::new(operation, &paths.data, error);
        let found = file.metadata().map_err(|error| failed("fstat", error))?;
        if found.nlink() > 1 {
            // A failure or crash came after the file got its final name and before this one was removed.
            let published = io::Error::new(io::ErrorKind::AlreadyExists, "it is published already");
            return Err(failed("resume", published));
        }
        // The file may have been sealed before the cut, and a node does not run as root.
        call::unseal_mode(&file, &paths.data)?;
        Self::resume_at(paths, most(found.len()))
    }

    /// Begins an upload again without any bytes, and removes those of an earlier one. A published file keeps its final
    /// name.
    pub fn begin_anew(incoming: &Path, id: &str) -> Result<Self, DiskError> {
        remove_all(&Paths::new(incoming, id))?;
        Self::create(incoming, id)
    }

    /// Removes the files of an upload, without looking at them. A published file keeps its final name.
    pub fn forget_stage(incoming: &Path, id: &str) -> Result<(), DiskError> {
        remove_all(&Paths::new(incoming, id))
    }

    /// Drops the bytes beyond `length`, cut to whole groups.
    pub fn keep_prefix(self, length: u64) -> Result<Self, DiskError> {
        let Self {
            paths, file, tree, ..
        } = self;
        drop((file, tree));
        Self::resume_at(paths, length)
    }

    fn resume_at(paths: Paths, most: u64) -> Result<Self, DiskError> {
        let file = call::open_for_change(&paths.data)?;
        let failed = |operation| {
            let path = paths.data.clone();
            move |error| DiskError::new(operation, &path, error)
        };
        let found = file.metadata().map_err(failed("fstat"))?.len().min(most);
        let length = found - found % GROUP_SIZE;
        call::truncate_file(&file, &paths.data, length)?;
        call::sync_file(&file, &paths.data)?;
        let mut reader = file.try_clone().map_err(failed("dup"))?;
        let read_failed = failed("read");
        let mut stage = Self::with(paths, file, length)?;
        let mut block = vec![0; 1024 * 1024];
        loop {
            let read = match reader.read(&mut block) {
                Err(error) => return Err(read_failed(error)),
                Ok(read) => read,
            };
            let Some(bytes) = block.get(..read).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            stage
                .tree
                .update(bytes)
                .map_err(from_sink(&stage.paths.outboard))?;
        }
        Ok(stage)
    }

    fn with(paths: Paths, file: File, length: u64) -> Result<Self, DiskError> {
        for old in [&paths.outboard, &paths.sidecar] {
            crate::directory::remove_name(old)?;
        }
        let sink = OutboardSink {
            path: paths.outboard.clone(),
            file: None,
            hasher: blake3::Hasher::new(),
        };
        Ok(Self {
            paths,
            file,
            length,
            tree: TreeBuilder::new(sink),
        })
    }

    /// Reserves room for a file of `size` bytes, so that a full disk is noticed now and not at the last byte. Returns
    /// `false` if the file system cannot reserve: a full disk is then noticed while bytes are written.
    pub fn reserve_space(&self, size: u64) -> Result<bool, DiskError> {
        call::reserve_space(&self.file, &self.paths.data, size)
    }

    /// Writes the next bytes.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        call::write_all(&mut self.file, &self.paths.data, bytes)?;
        self.length += bytes.len() as u64;
        self.tree
            .update(bytes)
            .map_err(from_sink(&self.paths.outboard))
    }

    /// Returns the number of bytes written.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Returns the root of the bytes written so far.
    pub fn root_so_far(&self) -> Root {
        self.tree.root_so_far()
    }

    /// Makes the bytes written so far durable.
    pub fn sync(&self) -> Result<(), DiskError> {
        call::sync_file(&self.file, &self.paths.data)
    }

    /// Ends the bytes: size and root are known now, and nothing is durable yet.
    pub fn finish(self) -> Result<ReceivedFile, DiskError> {
        let Self {
            paths,
            file,
            length,
            tree,
        } = self;
        let tree = tree.finish().map_err(from_sink(&paths.outboard))?;
        Ok(ReceivedFile {
            paths,
            file,
            size: length,
            root: tree.root,
            outboard: tree.sink,
        })
    }

    /// Ends the upload without a file, and frees its room.
    pub fn discard(self) -> Result<(), DiskError> {
        let Self {
            paths, file, tree, ..
        } = self;
        // The tree writes its last pairs when it is dropped, into an outboard that would exist again.
        drop((file, tree));
        remove_all(&paths)
    }
}

/// A file whose bytes have all come. Compare its size and root with the admission before it is sealed.
#[derive(Debug)]
pub struct ReceivedFile {
    paths: Paths,
    file: File,
    size: u64,
    root: Root,
    outboard: OutboardSink,
}

impl ReceivedFile {
    /// Returns the size in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root of the bytes as they were received.
    pub const fn root(&self) -> Root {
        self.root
    }

    /// Returns the outboard that was written beside the file, or `None` for at most one group.
    pub fn outboard(&self) -> Option<OutboardRecord> {
        self.outboard.record()
    }

    /// Writes the sidecar beside the file and makes all three durable and read-only.
    pub fn seal_file(self, sidecar: &[u8]) -> Result<SealedFile, DiskError> {
        let Self {
            paths,
            file,
            size,
            root,
            outboard,
        } = self;
        let has_outboard = outboard.file.is_some();
        let mut sidecar_file = call::create_file(&paths.sidecar)?;
        call::write_all(&mut sidecar_file, &paths.sidecar, sidecar)?;
        call::seal_mode(&sidecar_file, &paths.sidecar)?;
        call::truncate_file(&file, &paths.data, size)?;
        call::seal_mode(&file, &paths.data)?;
        call::sync_file(&file, &paths.data)?;
        call::sync_file(&sidecar_file, &paths.sidecar)?;
        if let Some((outboard, _)) = &outboard.file {
            call::seal_mode(outboard, &paths.outboard)?;
            call::sync_file(outboard, &paths.outboard)?;
        }
        Ok(SealedFile {
            paths,
            size,
            root,
            has_outboard,
        })
    }

    /// Makes file and outboard durable and read-only, without a sidecar: a repaired copy keeps the sidecar of the
    /// damaged one. Returns their paths and whether there is an outboard.
    pub(crate) fn settle_file(self) -> Result<(Paths, bool), DiskError> {
        let Self {
            paths,
            file,
            size,
            outboard,
            ..
        } = self;
        call::truncate_file(&file, &paths.data, size)?;
        call::seal_mode(&file, &paths.data)?;
        call::sync_file(&file, &paths.data)?;
        if let Some((outboard, _)) = &outboard.file {
            call::seal_mode(outboard, &paths.outboard)?;
            call::sync_file(outboard, &paths.outboard)?;
        }
        paths.data.parent().map_or(Ok(()), call::sync_directory)?;
        Ok((paths, outboard.file.is_some()))
    }

    /// Ends the upload without a file, and frees its room.
    pub fn discard(self) -> Result<(), DiskError> {
        remove_all(&self.paths)
    }
}

/// A file that is durable beside its destination.
#[derive(Debug)]
pub struct SealedFile {
    paths: Paths,
    size: u64,
    root: Root,
    has_outboard: bool,
}

impl SealedFile {
    /// Reads the file back past the page cache.
    ///
    /// # Errors
    ///
    /// Returns `None` if the file is not what was received, and a [`DiskError`] if a system call fails.
    pub fn verify_file(self) -> Result<VerifiedFile, Option<DiskError>> {
        let file = UncachedFile::open(&self.paths.data)?;
        if file.size()? == self.size && file.root()? == self.root {
            Ok(VerifiedFile(self))
        } else {
            Err(None)
        }
    }

    /// Ends the upload without a file, and frees its room.
    pub fn discard(self) -> Result<(), DiskError> {
        remove_all(&self.paths)
    }
}

/// A file that was read back and has the bytes that were received.
#[derive(Debug)]
pub struct VerifiedFile(SealedFile);

/// The final names of a file.
#[derive(Clone, Debug)]
pub struct FinalPaths {
    /// The name of the file, in `files/`.
    pub file: PathBuf,
    /// The name of the sidecar, in `meta/`.
    pub sidecar: PathBuf,
    /// The name of the outboard, in `meta/`.
    pub outboard: PathBuf,
}

/// The reason why a file did not get its final name.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// A final name is taken; nothing was replaced.
    #[error("{} is taken", .0.display())]
    Taken(PathBuf),
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl VerifiedFile {
    /// Links sidecar and outboard, then the file, under their final names. When this returns, the file is stored; if
    /// the process dies before, the final name of the file either bears the whole file, or is absent.
    pub fn publish_file(self, target: &FinalPaths) -> Result<(), PublishError> {
        let SealedFile {
            paths,
            has_outboard,
            ..
        } = self.0;
        link(&paths.sidecar, &target.sidecar)?;
        if has_outboard {
            link(&paths.outboard, &target.outboard)?;
        }
        target
            .sidecar
            .parent()
            .map_or(Ok(()), call::sync_directory)?;
        link(&paths.data, &target.file)?;
        target.file.parent().map_or(Ok(()), call::sync_directory)?;
        Ok(remove_all(&paths)?)
    }
}

fn link(from: &Path, to: &Path) -> Result<(), PublishError> {
    call::link_file(from, to).map_err(|error| {
        if error.is_taken() {
            PublishError::Taken(to.to_owned())
        } else {
            PublishError::Disk(error)
        }
    })
}

fn remove_all(paths: &Paths) -> Result<(), DiskError> {
    [&paths.sidecar, &paths.outboard, &paths.data]
        .into_iter()
        .try_for_each(|path| crate::directory::remove_name(path))
}

/// The file in which the tree writes its outboard. It is created at the first pair, and hashed on the way.
#[derive(Debug)]
struct OutboardSink {
    path: PathBuf,
    file: Option<(File, u64)>,
    hasher: blake3::Hasher,
}

impl OutboardSink {
    fn record(&self) -> Option<OutboardRecord> {
        let (_, size) = self.file.as_ref()?;
        Some(OutboardRecord {
            size: *size,
            digest: Root::from_bytes(*self.hasher.finalize().as_bytes()),
        })
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        let (mut file, size) = match self.file.take() {
            Some(open) => open,
            None => (call::create_file(&self.path)?, 0),
        };
        call::write_all(&mut file, &self.path, bytes)?;
        self.file = Some((file, size + bytes.len() as u64));
        self.hasher.update(bytes);
        Ok(())
    }
}

impl Write for OutboardSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the failed system call in an error that came back through the tree.
fn from_sink(path: &Path) -> impl FnOnce(io::Error) -> DiskError + use<'_> {
    move |error| match error.downcast::<DiskError>() {
        Ok(disk) => disk,
        Err(error) => DiskError::new("write", path, error),
    }
}

#[cfg(test)]
mod tests;
