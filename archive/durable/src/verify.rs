//! Reads of the bytes on the medium, not of those in memory.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use archive_model::Root;
use archive_proof::ReadAt;
use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};

use crate::call;
use crate::error::DiskError;

/// The number of bytes that are read at a time.
const BLOCK: usize = 1024 * 1024;

/// `RWF_DONTCACHE` (Linux 6.14): the pages of this read do not stay in the page cache.
const DONT_CACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// A file that is read past the page cache.
///
/// The pages of the file in the cache are dropped when it is opened (dirty pages cannot be: sync first), and read bytes
/// do not stay there. If the kernel cannot read past the cache, each block is dropped after it was read. Not promised:
/// that the kernel drops a page that another process has mapped or locked.
#[derive(Debug)]
pub struct UncachedFile {
    file: File,
    path: PathBuf,
    dont_cache: AtomicBool,
}

impl UncachedFile {
    /// Opens a regular file; a symbolic link is refused.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let file = call::open_for_reading(path)?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)
            .map_err(|error| DiskError::new("fadvise", path, error))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            dont_cache: AtomicBool::new(true),
        })
    }

    /// Returns the length of the file in bytes.
    pub fn size(&self) -> Result<u64, DiskError> {
        Ok(self
            .file
            .metadata()
            .map_err(|error| DiskError::new("fstat", &self.path, error))?
            .len())
    }

    /// Returns the BLAKE3 root of the whole file.
    pub fn root(&self) -> Result<Root, DiskError> {
        let mut hasher = blake3::Hasher::new();
        let mut block = vec![0; BLOCK];
        let mut offset = 0;
        loop {
            let read = self
                .read_at(offset, &mut block)
                .map_err(|error| DiskError::new("read", &self.path, error))?;
            let Some(bytes) = block.get(..read).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            hasher.update(bytes);
            offset += read as u64;
        }
        Ok(Root::from_bytes(*hasher.finalize().as_bytes()))
    }

    fn read_without_caching(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if self.dont_cache.load(Ordering::Relaxed) {
            match rustix::io::preadv2(
                &self.file,
                &mut [IoSliceMut::new(buffer)],
                offset,
                DONT_CACHE,
            ) {
                Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
                    self.dont_cache.store(false, Ordering::Relaxed);
                }
                other => return Ok(other?),
            }
        }
        let read = rustix::io::pread(&self.file, &mut *buffer, offset)?;
        let length = std::num::NonZeroU64::new(read as u64);
        if length.is_some() {
            rustix::fs::fadvise(&self.file, offset, length, Advice::DontNeed)?;
        }
        Ok(read)
    }
}

impl ReadAt for UncachedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "faults")]
        crate::fault::read_point(&self.path, offset, buffer.len())?;
        // The system refuses offsets that no file can reach; there is nothing to read there.
        if i64::try_from(offset).is_err() {
            return Ok(0);
        }
        loop {
            match self.read_without_caching(offset, buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files")]
mod tests {
    use super::*;

    /// Fails if a kernel without `RWF_DONTCACHE` gets other bytes, or the short last block is lost. On such a kernel
    /// both reads go the second way.
    #[test]
    fn root_is_equal_with_and_without_dont_cache() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let bytes: Vec<u8> = (0..BLOCK * 2 + 77)
            .map(|n| u8::try_from(n % 251).unwrap())
            .collect();
        std::fs::write(&path, &bytes).unwrap();
        let root = Root::from_bytes(*blake3::hash(&bytes).as_bytes());
        let file = UncachedFile::open(&path).unwrap();
        assert_eq!(file.size().unwrap(), bytes.len() as u64);
        assert_eq!(file.root().unwrap(), root);
        file.dont_cache.store(false, Ordering::Relaxed);
        assert_eq!(file.root().unwrap(), root);
    }

    /// Fails if something that is not a regular file is opened and read.
    #[test]
    fn link_directory_and_device_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/hostname", directory.path().join("link")).unwrap();
        for bad in [
            directory.path().join("link"),
            directory.path().to_owned(),
            directory.path().join("none"),
        ] {
            assert!(UncachedFile::open(&bad).is_err(), "{}", bad.display());
        }
    }
}
