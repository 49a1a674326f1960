//! The room that is reserved for an unfinished file, and its release when not all bytes come.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Stage;
use crate::call;
use crate::error::DiskError;

/// The bytes that a file may take on the disk beyond its length without a reservation.
const MOST_ROUNDED: u64 = 256 * 1024;

/// The room that is reserved for an unfinished file.
#[derive(Debug)]
pub struct Reservation {
    file: File,
    path: PathBuf,
}

impl Reservation {
    /// Returns the room in `incoming` that a dead process reserved for the upload `id`; `None` if it reserved none, or
    /// if the upload is sealed.
    pub fn find_reservation(incoming: &Path, id: &str) -> Result<Option<Self>, DiskError> {
        let path = incoming.join(id);
        let found = call::look_up(&path)?;
        // Rounding up to blocks, and their index, are not a reservation.
        let is_reserved = found.blocks().saturating_mul(512) > found.len() + MOST_ROUNDED;
        if !is_reserved || found.permissions().readonly() {
            return Ok(None);
        }
        let file = call::open_for_change(&path)?;
        Ok(Some(Self { file, path }))
    }

    /// Releases the room behind the bytes that the file has.
    pub fn give_back(self) -> Result<(), DiskError> {
        let found = self.file.metadata();
        let found = found.map_err(|error| DiskError::new("fstat", &self.path, error))?;
        call::truncate_file(&self.file, &self.path, found.len())
    }
}

impl Stage {
    /// Returns the reserved room, to be released where not all bytes come.
    pub fn reservation(&self) -> Result<Reservation, DiskError> {
        let path = self.paths.data.clone();
        match self.file.try_clone() {
            Ok(file) => Ok(Reservation { file, path }),
            Err(error) => Err(DiskError::new("dup", &path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(path: &Path) -> u64 {
        std::fs::metadata(path).unwrap().blocks() * 512
    }

    /// Fails if room stays reserved past the bytes that came, or bytes are cut.
    #[test]
    fn reserved_room_is_given_back_beyond_the_bytes() {
        const SIZE: u64 = 8 << 20;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("u1");
        let mut stage = Stage::create(directory.path(), "u1").unwrap();
        if !stage.reserve_space(SIZE).unwrap() {
            return; // This file system reserves nothing.
        }
        stage.write_all(&vec![7; 100_000]).unwrap();
        assert!(blocks(&path) >= SIZE);
        let reserved = stage.reservation().unwrap();
        drop(stage);
        reserved.give_back().unwrap();
        assert!(blocks(&path) < 200_000, "{}", blocks(&path));
        assert_eq!(std::fs::read(&path).unwrap(), vec![7; 100_000]);
        assert!(
            Reservation::find_reservation(directory.path(), "u1")
                .unwrap()
                .is_none()
        );

        // A process that dies releases nothing.
        let stage = Stage::resume(directory.path(), "u1").unwrap();
        stage.reserve_space(SIZE).unwrap();
        drop(stage);
        let left = Reservation::find_reservation(directory.path(), "u1")
            .unwrap()
            .unwrap();
        left.give_back().unwrap();
        assert!(blocks(&path) < 200_000, "{}", blocks(&path));
    }
}
