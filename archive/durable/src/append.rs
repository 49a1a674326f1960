//! A text file that only grows, line by line: a log, or a derived list that can be written again.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::call;
use crate::error::DiskError;

/// A file open for appending.
#[derive(Debug)]
pub struct AppendFile {
    file: File,
    path: PathBuf,
}

impl AppendFile {
    /// Opens `path`, or creates it. Several processes may append at the same time: each writes at the end.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        Ok(Self {
            file: call::open_for_append(path)?,
            path: path.to_owned(),
        })
    }

    /// Adds `bytes` at the end, without making them durable.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        call::write_all(&mut self.file, &self.path, bytes)
    }

    /// Cuts the file to its first `length` bytes, durably, to remove the rest of an append that a crash interrupted. An
    /// empty file stays as it is.
    pub fn cut(&mut self, length: u64) -> Result<(), DiskError> {
        if length == 0 && call::file_length(&self.file, &self.path)? == 0 {
            return Ok(());
        }
        call::truncate_file(&self.file, &self.path, length)?;
        self.sync()
    }

    /// Makes the appended bytes durable.
    pub fn sync(&self) -> Result<(), DiskError> {
        call::sync_file(&self.file, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if opening the file again writes over what it has.
    #[test]
    fn reopened_file_grows_at_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("list.txt");
        AppendFile::open(&path).unwrap().append(b"one\n").unwrap();
        let mut again = AppendFile::open(&path).unwrap();
        again.append(b"two\n").unwrap();
        again.sync().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    }

    /// Fails if bytes that are appended after a cut go to the old end of the file, behind a hole.
    #[test]
    fn crash_remains_are_cut_and_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("list.txt");
        let mut file = AppendFile::open(&path).unwrap();
        file.append(b"one\ntw\0\0").unwrap();
        file.cut(4).unwrap();
        file.append(b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    }
}
