//! Which files the replica is known to have, and nobody has read: the manifest against the admin data, both by name.
//!
//! A file counts when the admin data say, after the run, that it is in the replica, and said before the job began that it
//! is in the archive. What was stored since, and was not read, is not missed. Memory holds one name of each.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::io::{BufRead, Read};

use archive_batch::{Control, Stop};
use archive_db::DbError;
use archive_model::{FileName, ReplicaId};
use jiff::Timestamp;
use regex::Regex;

use super::lines::Named;
use crate::admin::AdminRow;
use crate::standing::Now;

/// The longest line of a manifest, in bytes: a name and a few numbers.
const LONGEST_LINE: u64 = 1 << 20;

/// Which files a job is about.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) replica: ReplicaId,
    pub(crate) matching: Option<Regex>,
    /// When it began.
    pub(crate) since: Timestamp,
}

/// Why it cannot be said.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsaid {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error("the manifest cannot be read: {0}")]
    Manifest(std::io::Error),
    #[error("line {0} of the manifest is not what was written: {1}")]
    Line(u64, String),
    #[error(transparent)]
    Stop(Stop),
    #[error("{0}")]
    Write(String),
}

impl About {
    /// Whether the job should have read this file.
    fn has(&self, row: &AdminRow, standing: &Now) -> bool {
        let Some(copy) = row.record.replicas.get(&self.replica) else {
            return false;
        };
        // The earliest copy: one that was moved, or healed, is no newer file.
        let copies = row.record.replicas.values();
        let known = copies
            .filter(|copy| copy.state.is_completed())
            .map(|copy| copy.since)
            .min();
        row.record.content.is_some()
            && standing.counts(&self.replica, copy)
            && known.is_some_and(|known| known <= self.since)
            && self
                .matching
                .as_ref()
                .is_none_or(|matching| matching.is_match(row.record.name.as_str()))
    }
}

/// Tells of each file that nobody has read, by name; gives how many they are.
pub(crate) fn unread(
    about: &About,
    standing: &Now,
    manifest: impl BufRead,
    files: impl Iterator<Item = Result<AdminRow, DbError>>,
    control: &Control,
    mut tell: impl FnMut(&AdminRow) -> Result<(), Unsaid>,
) -> Result<u64, Unsaid> {
    let mut read = Names::new(manifest)?;
    let (mut next, mut count) = (read.next()?, 0_u64);
    for file in files {
        control.check().map_err(Unsaid::Stop)?;
        let file = file?;
        let name = &file.record.name;
        while next.as_ref().is_some_and(|next| next < name) {
            next = read.next()?;
        }
        let is_read = next
            .as_ref()
            .is_some_and(|next| next.cmp(name) == Ordering::Equal);
        if !is_read && about.has(&file, standing) {
            tell(&file)?;
            count = count.saturating_add(1);
        }
    }
    Ok(count)
}

/// The names of a manifest, one after the other.
struct Names<R> {
    lines: R,
    line: Vec<u8>,
    number: u64,
    last: Option<FileName>,
}

impl<R: BufRead> Names<R> {
    /// Behind the first line, which is the job.
    fn new(lines: R) -> Result<Self, Unsaid> {
        let mut names = Self {
            lines,
            line: Vec::new(),
            number: 0,
            last: None,
        };
        names.read_line()?;
        Ok(names)
    }

    fn read_line(&mut self) -> Result<bool, Unsaid> {
        self.line.clear();
        self.number = self.number.saturating_add(1);
        let mut lines = (&mut self.lines).take(LONGEST_LINE);
        let read = lines.read_until(b'\n', &mut self.line);
        if read.map_err(Unsaid::Manifest)? == 0 {
            return Ok(false);
        }
        if self.line.last() == Some(&b'\n') {
            Ok(true)
        } else {
            Err(self.wrong("it has no end"))
        }
    }

    fn next(&mut self) -> Result<Option<FileName>, Unsaid> {
        if !self.read_line()? {
            return Ok(None);
        }
        let named: Named =
            serde_json::from_slice(&self.line).map_err(|error| self.wrong(&error.to_string()))?;
        if self.last.as_ref().is_some_and(|last| *last >= named.file) {
            return Err(self.wrong("its name is not in order"));
        }
        self.last = Some(named.file.clone());
        Ok(Some(named.file))
    }

    fn wrong(&self, why: &str) -> Unsaid {
        Unsaid::Line(self.number, why.to_owned())
    }
}
