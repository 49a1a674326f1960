//! The removal of rows: only by their checksum, only a limited number within an hour, and never without a line that
//! says who removed which row, and why.
//!
//! # Errors
//!
//! A removal fails with [`PutAsideError`], which says why the row stays; the list of removed rows fails if the disk
//! does.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use archive_durable::{AppendFile, DiskError};
use archive_model::{Approval, Cause, FileName, Root};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::replica::ChecksumReplica;
use super::table::{ChecksumTableError, removed_rows_path};
use crate::claims::{Claim, claim_for_verb};
use crate::error::NodeError;

/// The longest line that is read at once, in bytes: an admission has at most 1 MiB.
const MAX_LINE: u64 = 4 * 1024 * 1024;

/// A line of `removed.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedRow {
    /// The time of the removal.
    pub at: Timestamp,
    /// The file.
    pub name: FileName,
    /// The size of the file in bytes.
    pub size: u64,
    /// The root of the file.
    pub root: Root,
    /// The time at which the file had been stored.
    pub stored: Timestamp,
    /// The person or part that asked for the removal, as `role/name`.
    pub who: String,
    /// The reason that the person or part gave.
    pub why: String,
    /// The signed admission of the file: with it, nothing is lost.
    pub admission: Option<String>,
    /// The two persons who decided the removal, if two did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

/// The reason why a row stays.
#[derive(Debug, thiserror::Error)]
pub enum PutAsideError {
    /// No row has this name.
    #[error("this replica has no file {0}")]
    NotFound(FileName),
    /// The row has another root, which is not revealed: to know it is the caller's proof.
    #[error("{0} does not have that checksum here")]
    Differs(FileName),
    /// The name is in use, too many rows were removed within the hour, or the disk failed.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl ChecksumReplica {
    /// Removes the row of `name`, if its root is `root`.
    pub fn put_aside(
        &self,
        name: &FileName,
        root: &Root,
        cause: &Cause,
        now: Timestamp,
    ) -> Result<RemovedRow, PutAsideError> {
        let by = claim_for_verb("put-aside", name)?;
        let _claim = Claim::take_name(&self.receiving, name, &by)?;
        let found = self.table.file(name).map_err(NodeError::from)?;
        let found = found.ok_or_else(|| PutAsideError::NotFound(name.clone()))?;
        if found.root != *root {
            return Err(PutAsideError::Differs(name.clone()));
        }
        self.brake.count_removal(now)?;
        let line = RemovedRow {
            at: now,
            name: name.clone(),
            size: found.size,
            root: found.root,
            stored: found.stored,
            who: cause.who.clone(),
            why: cause.why.clone(),
            approval: cause.approval.clone(),
            admission: self.table.admission(name).map_err(NodeError::from)?,
        };
        append_removed_row(&removed_rows_path(self.data()), &line).map_err(NodeError::from)?;
        self.table.remove_file(name).map_err(NodeError::from)?;
        tracing::warn!(file = %name, who = cause.who, why = cause.why, "a row was removed; removed.jsonl has its admission");
        Ok(line)
    }
}

/// Appends a line, synced. If a crash has cut off the line before, the new line is kept apart from it.
pub fn append_removed_row(path: &Path, line: &RemovedRow) -> Result<(), ChecksumTableError> {
    let text = serde_json::to_string(line).map_err(|error| ChecksumTableError::Label {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    let apart = if is_torn(path)? { "\n" } else { "" };
    let mut file = AppendFile::open(path)?;
    file.append(format!("{apart}{text}\n").as_bytes())?;
    Ok(file.sync()?)
}

/// Returns every line of `removed.jsonl`, oldest first. A line that cannot be read, such as one that a crash cut off,
/// is given as the reason. After a failure of the disk nothing follows.
pub fn removed_lines(
    data: &Path,
) -> Result<impl Iterator<Item = Result<RemovedRow, String>> + use<>, DiskError> {
    let path = removed_rows_path(data);
    let file = File::open(&path).map_err(|error| DiskError::new("open", &path, error))?;
    let mut lines = BufReader::new(file);
    let mut number = 0_u64;
    let mut is_broken = false;
    Ok(std::iter::from_fn(move || {
        if is_broken {
            return None;
        }
        let mut text = Vec::new();
        let read = (&mut lines).take(MAX_LINE).read_until(b'\n', &mut text);
        number += 1;
        let read = match read {
            Ok(0) => return None,
            Ok(_) => serde_json::from_slice(&text).map_err(|error| error.to_string()),
            // The disk would fail at every further read.
            Err(error) => {
                is_broken = true;
                Err(format!("the rest cannot be read: {error}"))
            }
        };
        Some(read.map_err(|why| format!("line {number} of removed.jsonl: {why}")))
    }))
}

/// Returns whether the file ends within a line.
pub(super) fn is_torn(path: &Path) -> Result<bool, DiskError> {
    let failed = |error| DiskError::new("read", path, error);
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        other => other.map_err(failed)?,
    };
    let Some(last) = file.metadata().map_err(failed)?.len().checked_sub(1) else {
        return Ok(false);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last).map_err(failed)?;
    Ok(byte != *b"\n")
}
