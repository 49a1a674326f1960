//! A stamp: a few bytes that say how far a larger file has come, rewritten in place after each of its commits.
//!
//! ```text
//! two slots of 4096 bytes, written by turns:
//! BLAKE3 of the rest of the slot, 64 hex digits | LF | number of the turn, 20 digits | LF | the bytes | zeros
//! ```
//!
//! A write costs one sync of data: neither the file's name nor its length changes, so that a file system has nothing to
//! journal. A crash damages at most the slot that is being written; the other slot has the bytes written before.
//!
//! Not promised: more than [`LONGEST`] bytes, or two writers.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::call;
use crate::error::DiskError;
use crate::replace::{read_state, replace_file};

/// The length of a slot: at least what a disk writes at once.
const SLOT: usize = 4096;

/// The digits of a checksum and their line feed.
const SUM: usize = 65;

/// The digits of a turn and their line feed.
const TURN: usize = 21;

/// The most bytes that a stamp has room for.
pub const LONGEST: usize = SLOT - SUM - TURN;

/// A stamp, open for writing.
#[derive(Debug)]
pub struct StampWriter {
    file: File,
    path: PathBuf,
    /// The turn of the newest valid slot: the other slot is written next.
    turn: u64,
}

/// The content under the name of a stamp.
#[derive(Debug)]
pub enum StampFile {
    /// The name is free.
    Absent,
    /// The file is a stamp, with these newest bytes.
    Whole(StampWriter, Vec<u8>),
    /// The file has another length than a stamp. Its bytes.
    Foreign(Vec<u8>),
    /// The file has the length of a stamp, and neither slot is valid.
    Damaged,
}

impl StampWriter {
    /// Reads the stamp under `path`.
    ///
    /// # Errors
    ///
    /// Returns a [`DiskError`] if the file cannot be read.
    pub fn open(path: &Path) -> Result<StampFile, DiskError> {
        let Some(bytes) = read_state(path)? else {
            return Ok(StampFile::Absent);
        };
        if bytes.len() != 2 * SLOT {
            return Ok(StampFile::Foreign(bytes));
        }
        let slots = bytes.chunks(SLOT).filter_map(read_slot);
        let Some((turn, newest)) = slots.max_by_key(|(turn, _)| *turn) else {
            return Ok(StampFile::Damaged);
        };
        let stamp = Self {
            file: call::open_for_change(path)?,
            path: path.to_owned(),
            turn,
        };
        Ok(StampFile::Whole(stamp, newest))
    }

    /// Makes a stamp under `path` that has `bytes`, durably, and replaces any file of that name.
    ///
    /// # Errors
    ///
    /// Returns a [`DiskError`] if `bytes` are longer than [`LONGEST`], or a system call fails.
    pub fn begin(path: &Path, bytes: &[u8]) -> Result<Self, DiskError> {
        let both = [slot(0, bytes, path)?, slot(1, bytes, path)?].concat();
        replace_file(path, &both)?;
        Ok(Self {
            file: call::open_for_change(path)?,
            path: path.to_owned(),
            turn: 1,
        })
    }

    /// Writes `bytes` over the older slot, durably. After an error the next write goes to the same slot.
    ///
    /// # Errors
    ///
    /// Returns a [`DiskError`] if `bytes` are longer than [`LONGEST`], or a system call fails.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        let turn = self.turn.saturating_add(1);
        let slot = slot(turn, bytes, &self.path)?;
        let offset = if turn.is_multiple_of(2) {
            0
        } else {
            SLOT as u64
        };
        call::write_all_at(&self.file, &self.path, offset, &slot)?;
        call::sync_data(&self.file, &self.path)?;
        self.turn = turn;
        Ok(())
    }
}

fn slot(turn: u64, bytes: &[u8], path: &Path) -> Result<Vec<u8>, DiskError> {
    if bytes.len() > LONGEST {
        let why = format!(
            "a stamp has room for {LONGEST} bytes, not for {}",
            bytes.len()
        );
        let error = io::Error::new(io::ErrorKind::InvalidInput, why);
        return Err(DiskError::new("pwrite", path, error));
    }
    let mut rest = format!("{turn:020}\n").into_bytes();
    rest.extend_from_slice(bytes);
    rest.resize(SLOT - SUM, 0);
    let sum = blake3::hash(&rest).to_hex();
    Ok([sum.as_bytes(), b"\n", &rest].concat())
}

/// Returns the turn and the bytes of a slot, if it is valid.
fn read_slot(slot: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (sum, rest) = slot.split_at_checked(SUM)?;
    if blake3::hash(rest).to_hex().as_bytes() != sum.strip_suffix(b"\n")? {
        return None;
    }
    let (turn, bytes) = rest.split_at_checked(TURN)?;
    let turn = std::str::from_utf8(turn.strip_suffix(b"\n")?).ok()?;
    let length = bytes.iter().rposition(|byte| *byte != 0);
    let length = length.map_or(0, |last| last.saturating_add(1));
    Some((turn.parse().ok()?, bytes.get(..length)?.to_vec()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests damage files")]
mod tests {
    use super::*;

    fn newest(path: &Path) -> Option<String> {
        match StampWriter::open(path).unwrap() {
            StampFile::Whole(_, bytes) => Some(String::from_utf8(bytes).unwrap()),
            StampFile::Absent | StampFile::Foreign(_) | StampFile::Damaged => None,
        }
    }

    /// Fails if a write goes over the newest slot, or an opening continues at the wrong turn.
    #[test]
    fn torn_write_leaves_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stamp");
        let mut stamp = StampWriter::begin(&path, b"0").unwrap();
        for number in 1..7 {
            stamp.write(format!("{number}").as_bytes()).unwrap();
            if number % 3 == 0 {
                let StampFile::Whole(again, bytes) = StampWriter::open(&path).unwrap() else {
                    panic!()
                };
                assert_eq!(bytes, format!("{number}").into_bytes());
                stamp = again;
            }
            let whole = std::fs::read(&path).unwrap();
            let mut outcomes = Vec::new();
            for slot in 0..2 {
                let mut torn = whole.clone();
                torn[slot * SLOT + 100] ^= 1;
                std::fs::write(&path, &torn).unwrap();
                outcomes.push(newest(&path).unwrap());
            }
            std::fs::write(&path, &whole).unwrap();
            outcomes.sort();
            assert_eq!(outcomes, [format!("{}", number - 1), format!("{number}")]);
        }
    }

    /// Fails if a damaged, foreign or absent file is taken for a stamp.
    #[test]
    fn other_files_are_distinguished_from_a_stamp() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stamp");
        assert!(matches!(
            StampWriter::open(&path).unwrap(),
            StampFile::Absent
        ));
        std::fs::write(&path, "660\n").unwrap();
        let foreign = StampWriter::open(&path).unwrap();
        assert!(matches!(&foreign, StampFile::Foreign(text) if text == b"660\n"));
        std::fs::write(&path, vec![0; 2 * SLOT]).unwrap();
        assert!(matches!(
            StampWriter::open(&path).unwrap(),
            StampFile::Damaged
        ));
        assert!(StampWriter::begin(&path, &[1; LONGEST + 1]).is_err());
        StampWriter::begin(&path, &[1; LONGEST]).unwrap();
        assert_eq!(newest(&path).unwrap().len(), LONGEST);
    }
}
