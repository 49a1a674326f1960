//! Rows that go: only against the checksum that they have, so many within an hour, and never without a line that says
//! who removed what, why, and what it was.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::PoisonError;

use archive_durable::{AppendFile, DiskError};
use archive_model::{FileName, Root};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::ChecksumReplica;
use super::record::{RecordError, removed};
use crate::error::NodeError;
use crate::node::{Claim, verb};

/// A line of `removed.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// When.
    pub at: Timestamp,
    /// The file.
    pub name: FileName,
    /// Its size in bytes.
    pub size: u64,
    /// Its root.
    pub root: Root,
    /// When it had been stored.
    pub stored: Timestamp,
    /// Who asked for it, as `role/name`.
    pub who: String,
    /// Why.
    pub why: String,
    /// Its signed admission: with it, nothing is lost.
    pub admission: Option<String>,
}

/// Why a row stays.
#[derive(Debug, thiserror::Error)]
pub enum PutAsideError {
    /// There is none of this name.
    #[error("this replica has no file {0}")]
    NotFound(FileName),
    /// It has another root, which is not told: to know it is the caller's proof.
    #[error("{0} does not have that checksum here")]
    Differs(FileName),
    /// Too many have gone.
    #[error("{0} rows were removed within the hour, which is as many as may go; ask again later")]
    TooMany(usize),
    /// It is in use, or the disk failed.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// When rows went, as far as that counts.
#[derive(Debug)]
pub(super) struct Removals {
    most: usize,
    recent: VecDeque<Timestamp>,
}

impl Removals {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            recent: VecDeque::new(),
        }
    }

    /// Counts one more, if one more may go.
    fn admit(&mut self, now: Timestamp) -> Result<(), PutAsideError> {
        let hour = SignedDuration::from_hours(1);
        while let Some(first) = self.recent.front()
            && now.duration_since(*first) >= hour
        {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.most {
            return Err(PutAsideError::TooMany(self.recent.len()));
        }
        self.recent.push_back(now);
        Ok(())
    }
}

impl ChecksumReplica {
    /// Removes the row of `name`, if `root` is what it says.
    pub fn put_aside(
        &self,
        name: &FileName,
        root: &Root,
        (who, why): (&str, &str),
        now: Timestamp,
    ) -> Result<Removed, PutAsideError> {
        let by = verb("put-aside", name)?;
        let _claim = Claim::take(&self.receiving, name, &by)?;
        let found = self.record.file(name).map_err(NodeError::from)?;
        let found = found.ok_or_else(|| PutAsideError::NotFound(name.clone()))?;
        if found.root != *root {
            return Err(PutAsideError::Differs(name.clone()));
        }
        self.removals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .admit(now)?;
        let line = Removed {
            at: now,
            name: name.clone(),
            size: found.size,
            root: found.root,
            stored: found.stored,
            who: who.to_owned(),
            why: why.to_owned(),
            admission: self.record.admission(name).map_err(NodeError::from)?,
        };
        append(&removed(self.data()), &line).map_err(NodeError::from)?;
        self.record.remove(name).map_err(NodeError::from)?;
        tracing::warn!(file = %name, who, why, "a row was removed; removed.jsonl has its admission");
        Ok(line)
    }
}

/// Adds a line, synced. What a crash left of the line before stays apart from it.
pub(super) fn append(path: &Path, line: &Removed) -> Result<(), RecordError> {
    let text = serde_json::to_string(line).map_err(|error| RecordError::Label {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    let apart = if is_torn(path)? { "\n" } else { "" };
    let mut file = AppendFile::open(path)?;
    file.append(format!("{apart}{text}\n").as_bytes())?;
    Ok(file.sync()?)
}

/// Whether the file does not end with the end of a line.
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
