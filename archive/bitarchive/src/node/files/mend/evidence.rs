//! The evidence of a mend for the attic: the old bytes of each group that differs, and their positions.

use std::path::PathBuf;

use archive_durable::{AppendFile, DiskError, UncachedFile, replace_file};
use archive_model::{Cause, FileName, GROUP_SIZE, Groups, MendOrder, Root};
use archive_proof::ReadAt;
use jiff::Timestamp;
use serde::Serialize;

use crate::attic::{self, AtticItemKind, AtticReason};
use crate::catalog::CatalogEntry;
use crate::layout::{Layout, MendPaths};

/// The number of mends of one file within one second that find a free directory.
const MOST_A_SECOND: u32 = 100;

/// The number of surplus bytes that are copied at a time.
const BLOCK: usize = 1024 * 1024;

/// The positions of the replaced bytes: `<name>.pos.mend`, beside `<name>.groups.mend`, which has the bytes.
#[derive(Serialize)]
struct Positions<'a> {
    format: &'static str,
    name: &'a FileName,
    root: Root,
    /// The root as admitted.
    size: u64,
    /// The first byte and one past the last of each piece in the file of bytes, in its order.
    pieces: &'a [(u64, u64)],
    /// The groups that were replaced and could not be read.
    unreadable: &'a Groups,
}

/// The evidence while it is collected.
#[derive(Debug)]
pub(super) struct Evidence {
    groups_path: PathBuf,
    positions_path: PathBuf,
    file: Option<AppendFile>,
    pieces: Vec<(u64, u64)>,
    unreadable: Groups,
    changed: Groups,
}

impl Evidence {
    pub(super) fn new(beside: &MendPaths) -> Self {
        Self {
            groups_path: beside.groups.clone(),
            positions_path: beside.positions.clone(),
            file: None,
            pieces: Vec::new(),
            unreadable: Groups::none(),
            changed: Groups::none(),
        }
    }

    /// Returns the number of groups that differ from before.
    pub(super) fn groups(&self) -> u64 {
        self.changed.len()
    }

    /// Keeps the bytes of the old copy at `offset`, if they differ from `new`.
    pub(super) fn compare_groups(
        &mut self,
        old: Option<&UncachedFile>,
        offset: u64,
        new: &[u8],
    ) -> Result<(), DiskError> {
        let mut bytes = vec![0; new.len()];
        let (filled, failed) = fill(old, offset, &mut bytes);
        bytes.truncate(filled);
        if bytes == new {
            return Ok(());
        }
        let group = offset / GROUP_SIZE;
        self.changed.insert_one(group);
        if failed {
            self.unreadable.insert_one(group);
        }
        self.keep(offset, &bytes)
    }

    /// Keeps the bytes of the old copy beyond its admitted size.
    pub(super) fn surplus_groups(
        &mut self,
        old: Option<&UncachedFile>,
        size: u64,
    ) -> Result<(), DiskError> {
        let mut block = vec![0; BLOCK];
        let mut offset = size;
        loop {
            let (filled, failed) = fill(old, offset, &mut block);
            self.keep(offset, &block[..filled])?;
            offset += filled as u64;
            if failed || filled < BLOCK {
                return Ok(());
            }
        }
    }

    fn keep(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(AppendFile::open(&self.groups_path)?),
        };
        file.append(bytes)?;
        let end = offset + bytes.len() as u64;
        match self.pieces.last_mut() {
            Some(last) if last.1 == offset => last.1 = end,
            _ => self.pieces.push((offset, end)),
        }
        Ok(())
    }

    /// Puts the evidence into the attic, durably. Returns the directory there, or `None` if no group differs.
    pub(super) fn put_aside(
        self,
        layout: &Layout,
        order: &MendOrder,
        entry: &CatalogEntry,
        now: Timestamp,
    ) -> Result<Option<String>, DiskError> {
        if self.changed.is_empty() && self.pieces.is_empty() {
            return Ok(None);
        }
        if let Some(file) = &self.file {
            file.sync()?;
        }
        let positions = Positions {
            format: "holdfast-groups/1",
            name: &entry.name,
            root: order.root,
            size: entry.row.size,
            pieces: &self.pieces,
            unreadable: &self.unreadable,
        };
        let text = serde_json::to_vec_pretty(&positions).map_err(|error| {
            DiskError::new("write", &self.positions_path, std::io::Error::other(error))
        })?;
        replace_file(&self.positions_path, &text)?;
        let hash = blake3::hash(entry.name.as_str().as_bytes()).to_hex();
        let cause = Cause {
            who: order.who.clone(),
            why: order.why.clone(),
            approval: None,
        };
        let reason = AtticReason::new(AtticItemKind::Groups, &entry.name, now, &cause);
        let paths = [self.positions_path.as_path(), self.groups_path.as_path()];
        let mut number = 0;
        let place = loop {
            let id = match number {
                0 => format!("{hash:.16}"),
                more => format!("{hash:.16}-{more}"),
            };
            match attic::put_aside(layout, &id, &reason, &paths) {
                Err(error) if error.is_taken() && number < MOST_A_SECOND => number += 1,
                other => break other?,
            }
        };
        let name = place.file_name().map(|name| name.to_string_lossy());
        Ok(name.map(std::borrow::Cow::into_owned))
    }
}

/// Reads as much as can be read. Returns the number of bytes, and whether an error ended the reading.
fn fill(old: Option<&UncachedFile>, offset: u64, bytes: &mut [u8]) -> (usize, bool) {
    let Some(old) = old else {
        return (0, true);
    };
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match old.read_at(offset + filled as u64, rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(_unreadable) => return (filled, true),
        }
    }
    (filled, false)
}
