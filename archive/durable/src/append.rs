//! A text file that only grows, line by line: derived lists that can be written again from what they list.

use std::fs::File;
use std::io::{Seek, SeekFrom};
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
    /// Opens `path` at its end; makes it if it is not there.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let mut file = match call::create(path) {
            Err(error) if error.is_taken() => call::reopen(path)?,
            other => other?,
        };
        file.seek(SeekFrom::End(0))
            .map_err(|error| DiskError::new("lseek", path, error))?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// Adds `bytes` at the end, without making them durable.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        call::write_all(&mut self.file, &self.path, bytes)
    }

    /// Makes what was appended durable.
    pub fn sync(&self) -> Result<(), DiskError> {
        call::sync(&self.file, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_where_it_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("list.txt");
        AppendFile::open(&path).unwrap().append(b"one\n").unwrap();
        let mut again = AppendFile::open(&path).unwrap();
        again.append(b"two\n").unwrap();
        again.sync().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    }
}
