//! Replacing groups in place, where a disk has no room for a second copy: a journal first, then the file.
//!
//! The journal holds the new bytes of the replaced groups. It counts only when it is complete: written, synced, and its
//! own hash right when it was read back past the page cache. Until then nothing of the file was touched; from then on
//! the replacement is done, and done again after a crash, until the journal is removed. A journal that a crash cut does
//! not count.
//!
//! Not promised: that the file is right afterwards. The caller proves that before the journal is made (the old good
//! groups and the new ones hash to the root) and again when the groups are in.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.
//!
//! ```text
//! 8 bytes   length of the next part, little-endian
//! JSON      {"format":"holdfast-journal/1","name":…,"size":…,"root":…,"groups":[[first,past],…]}
//! …         the bytes of these groups, ascending
//! 32 bytes  BLAKE3 of all that lies before
//! ```

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use archive_model::{FileName, Groups, Root};
use archive_proof::ReadAt;
use serde::{Deserialize, Serialize};

use crate::call;
use crate::directory::remove_name;
use crate::error::DiskError;
use crate::verify::UncachedFile;

const FORMAT: &str = "holdfast-journal/1";

/// The longest description that is read, in bytes: more is damage.
const MAX_CHANGE: u64 = 64 * 1024 * 1024;

/// The number of bytes that are copied at a time.
const BLOCK: u64 = 1024 * 1024;

/// The groups of a file that a journal replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournaledGroups {
    /// The name of the archived file.
    pub name: FileName,
    /// The admitted size of the file in bytes; the file is cut to it.
    pub size: u64,
    /// The admitted root of the file.
    pub root: Root,
    /// The groups that are replaced.
    pub groups: Groups,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    #[serde(flatten)]
    change: JournaledGroups,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct JournalWriter {
    path: PathBuf,
    file: File,
    hasher: blake3::Hasher,
}

impl JournalWriter {
    /// Begins a journal; refuses if one exists.
    pub fn create(path: &Path, change: &JournaledGroups) -> Result<Self, DiskError> {
        let header = Header {
            format: FORMAT.to_owned(),
            change: change.clone(),
        };
        let header = serde_json::to_vec(&header)
            .map_err(|error| DiskError::new("write", path, std::io::Error::other(error)))?;
        let mut writer = Self {
            path: path.to_owned(),
            file: call::create_file(path)?,
            hasher: blake3::Hasher::new(),
        };
        writer.append(&(header.len() as u64).to_le_bytes())?;
        writer.append(&header)?;
        Ok(writer)
    }

    /// Appends the next new bytes, in the order of the groups.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.hasher.update(bytes);
        call::write_all(&mut self.file, &self.path, bytes)
    }

    /// Makes the journal durable and reads it back. Returns `None` if its bytes differ from those written.
    pub fn finish(mut self) -> Result<Option<Journal>, DiskError> {
        let digest = self.hasher.finalize();
        call::write_all(&mut self.file, &self.path, digest.as_bytes())?;
        call::sync_file(&self.file, &self.path)?;
        self.path.parent().map_or(Ok(()), call::sync_directory)?;
        Journal::open(&self.path)
    }
}

/// A complete journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    source: UncachedFile,
    change: JournaledGroups,
    /// The offset in the journal at which the bytes of the groups begin.
    start: u64,
}

impl Journal {
    /// Reads a journal past the page cache. Returns `None` if it is incomplete: it has replaced nothing then.
    pub fn open(path: &Path) -> Result<Option<Self>, DiskError> {
        let source = UncachedFile::open(path)?;
        let failed = |error| DiskError::new("read", path, error);
        let length = source.size()?;
        let mut prefix = [0; 8];
        if length < 8 + 32 {
            return Ok(None);
        }
        source.read_exact_at(0, &mut prefix).map_err(failed)?;
        let header = u64::from_le_bytes(prefix);
        let Some(end) = length.checked_sub(32) else {
            return Ok(None);
        };
        if header > MAX_CHANGE.min(end - 8) {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        for (offset, block) in blocks(0..end) {
            let mut bytes = vec![0; block];
            source.read_exact_at(offset, &mut bytes).map_err(failed)?;
            hasher.update(&bytes);
        }
        let mut digest = [0; 32];
        source.read_exact_at(end, &mut digest).map_err(failed)?;
        if *hasher.finalize().as_bytes() != digest {
            return Ok(None);
        }
        let Ok(text_length) = usize::try_from(header) else {
            return Ok(None);
        };
        let mut text = vec![0; text_length];
        source.read_exact_at(8, &mut text).map_err(failed)?;
        let start = 8 + header;
        let Ok(Header { format, change }) = serde_json::from_slice(&text) else {
            return Ok(None);
        };
        let bytes: u64 = change
            .groups
            .byte_ranges(change.size)
            .map(|range| range.end - range.start)
            .sum();
        let is_whole = format == FORMAT && start.checked_add(bytes) == Some(end);
        Ok(is_whole.then(|| Self {
            path: path.to_owned(),
            source,
            change,
            start,
        }))
    }

    /// Returns the replacement that the journal holds.
    pub const fn journaled_groups(&self) -> &JournaledGroups {
        &self.change
    }

    /// Writes the groups into `file`, cuts it to its size and makes that durable. May be repeated any number of times.
    ///
    /// A file with a second name is refused: a write would go through that name, which is not ours.
    pub fn apply_to(&self, file: &Path) -> Result<(), DiskError> {
        let sealed = call::open_for_reading(file)?;
        let found = sealed
            .metadata()
            .map_err(|error| DiskError::new("fstat", file, error))?;
        if found.nlink() > 1 {
            let taken = std::io::Error::new(
                std::io::ErrorKind::AlreadyExists,
                "the file has a second name; remove that name, then mend the file",
            );
            return Err(DiskError::new("open", file, taken));
        }
        call::unseal_mode(&sealed, file)?;
        let open = call::open_for_change(file)?;
        self.each_block(|offset, bytes| call::write_all_at(&open, file, offset, bytes))?;
        call::truncate_file(&open, file, self.change.size)?;
        call::seal_mode(&open, file)?;
        call::sync_file(&open, file)
    }

    /// Reads `file` past the page cache and returns whether the groups are in it.
    pub fn is_in(&self, file: &Path) -> Result<bool, DiskError> {
        let data = UncachedFile::open(file)?;
        let mut is_in = data.size()? == self.change.size;
        self.each_block(|offset, bytes| {
            let mut found = vec![0; bytes.len()];
            is_in &= data.read_exact_at(offset, &mut found).is_ok() && found == bytes;
            Ok(())
        })?;
        Ok(is_in)
    }

    /// Removes the journal: its groups are in the file.
    pub fn remove(self) -> Result<(), DiskError> {
        remove_name(&self.path)?;
        self.path.parent().map_or(Ok(()), call::sync_directory)
    }

    /// Passes each block to `take`, with its offset in the file.
    fn each_block(
        &self,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let mut position = self.start;
        for range in self.change.groups.byte_ranges(self.change.size) {
            for (offset, block) in blocks(range) {
                let mut bytes = vec![0; block];
                self.source
                    .read_exact_at(position, &mut bytes)
                    .map_err(|error| DiskError::new("read", &self.path, error))?;
                take(offset, &bytes)?;
                position += block as u64;
            }
        }
        Ok(())
    }
}

/// Cuts a range into blocks. Returns the offset and the length of each.
fn blocks(range: Range<u64>) -> impl Iterator<Item = (u64, usize)> {
    let end = range.end;
    let mut offset = range.start;
    std::iter::from_fn(move || {
        let length = BLOCK.min(end.saturating_sub(offset));
        let block = usize::try_from(length).ok().filter(|length| *length > 0)?;
        let begin = offset;
        offset += length;
        Some((begin, block))
    })
}
