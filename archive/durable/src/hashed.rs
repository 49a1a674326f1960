//! A file that is hashed while a caller reads all of it.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use archive_model::Root;
use archive_proof::ReadAt as _;

use crate::error::DiskError;
use crate::verify::UncachedFile;

/// The number of bytes that [`HashedFile::finish`] reads at a time.
const BLOCK: usize = 1 << 20;

/// A reader of a file from its first byte to its last, past the page cache: it hashes the bytes that are on the medium.
///
/// Each call reads from the medium, so that a buffer of a mebibyte belongs in front of the reader.
#[derive(Debug)]
pub struct HashedFile {
    file: UncachedFile,
    path: PathBuf,
    hasher: blake3::Hasher,
    offset: u64,
}

impl HashedFile {
    /// Opens a regular file; a symbolic link is refused.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        Ok(Self {
            file: UncachedFile::open(path)?,
            path: path.to_owned(),
            hasher: blake3::Hasher::new(),
            offset: 0,
        })
    }

    /// Reads the rest of the file. Returns the size of the file and its BLAKE3 root.
    pub fn finish(mut self) -> Result<(u64, Root), DiskError> {
        let mut block = vec![0; BLOCK];
        while self
            .read_some(&mut block)
            .map_err(|error| DiskError::new("read", &self.path, error))?
            > 0
        {}
        let root = Root::from_bytes(*self.hasher.finalize().as_bytes());
        Ok((self.offset, root))
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.offset, buffer)?;
        self.hasher.update(&buffer[..count]);
        self.offset += count as u64;
        Ok(count)
    }
}

impl Read for HashedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_some(buffer)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use super::*;

    /// Fails if a byte is not hashed, whether the caller or `finish` has read it.
    #[test]
    fn whole_file_is_hashed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let bytes: Vec<u8> = (0..BLOCK + 77)
            .map(|n| u8::try_from(n % 251).unwrap())
            .collect();
        std::fs::write(&path, &bytes).unwrap();
        let expected = (
            u64::try_from(bytes.len()).unwrap(),
            UncachedFile::open(&path).unwrap().root().unwrap(),
        );
        for read in [0, 1, 4711, bytes.len()] {
            let mut file = HashedFile::open(&path).unwrap();
            let mut first = vec![0; read];
            file.read_exact(&mut first).unwrap();
            assert_eq!(first.as_slice(), &bytes[..read]);
            assert_eq!(file.finish().unwrap(), expected, "{read}");
        }
    }
}
