//! Finds files that the replica is known to have and nobody has read, and those of which other bytes were read than the
//! archive has: compares the manifest and the list of errors with the admin data, all by name.
//!
//! A file counts if it is in the replica according to the admin data after the run, and was in the archive before the
//! job began. A file that was stored since, and was not read, is not missed. A file that a job names counts in any
//! case, because it was requested. Memory holds one line of each list.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::io::{BufRead, Read as _};

use archive_batch::{Stop, StopControl};
use archive_db::DbError;
use archive_decisions::store::Content;
use archive_model::{FileName, FileSelection, NodeId, ReplicaId};
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::lines::{ManifestEntry, MissReason, ReportedFile};
use super::table::JobRow;
use archive_ledger::admin::{AdminRow, JobLedger};
use archive_ledger::standing::StandingSnapshot;

/// The longest line of a list, in bytes: a name, and a few numbers or a reason.
const LONGEST_LINE: u64 = 1 << 20;

/// The files that a job should have read.
#[derive(Clone, Debug)]
pub(crate) struct CompareScope {
    pub replica: ReplicaId,
    pub selection: FileSelection,
    /// The time when the job began.
    pub since: Timestamp,
}

/// The reason why unread files cannot be found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompareError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error("cannot read the {0} of the job: {1}")]
    List(&'static str, std::io::Error),
    #[error("line {1} of the {0} of the job is damaged: {2}")]
    Line(&'static str, u64, String),
    #[error(transparent)]
    Stop(Stop),
    #[error("{0}")]
    Write(String),
}

/// A file that the job may have selected.
#[derive(Clone, Debug)]
pub(crate) struct CandidateFile {
    pub name: FileName,
    /// `None` if the archive knows no such file.
    row: Option<AdminRow>,
}

impl CandidateFile {
    /// Returns the node of a replica that should have the file.
    pub(crate) fn node(&self, replica: &ReplicaId) -> Option<&NodeId> {
        let copy = self.row.as_ref()?.record.replicas.get(replica)?;
        copy.node.as_ref()
    }
}

impl From<AdminRow> for CandidateFile {
    fn from(row: AdminRow) -> Self {
        Self {
            name: row.record.name.clone(),
            row: Some(row),
        }
    }
}

impl CompareScope {
    /// Returns the files that the job may have selected, by name: those that it names, each looked up, or every file of
    /// the archive.
    pub(crate) fn list_candidates<'a>(
        &'a self,
        ledger: &'a JobLedger<JobRow>,
    ) -> Result<Box<dyn Iterator<Item = Result<CandidateFile, DbError>> + 'a>, DbError> {
        let FileSelection::Names(names) = &self.selection else {
            return Ok(Box::new(ledger.all_files()?.map(|row| Ok(row?.into()))));
        };
        let looked_up = names.as_slice().iter().map(|name| {
            Ok(CandidateFile {
                name: name.clone(),
                row: ledger.file(name)?,
            })
        });
        Ok(Box::new(looked_up))
    }

    /// Returns why the job should have read this file, or `None` if it need not.
    fn misses(&self, file: &CandidateFile, standing: &StandingSnapshot) -> Option<MissReason> {
        let FileSelection::Names(_) = &self.selection else {
            let row = file.row.as_ref()?;
            return self.has(row, standing).then_some(MissReason::Here);
        };
        let Some(row) = file.row.as_ref().filter(|row| row.record.content.is_some()) else {
            return Some(MissReason::Unknown);
        };
        let copy = row.record.replicas.get(&self.replica);
        Some(match copy {
            Some(copy) if standing.copy_counts(&self.replica, copy) => MissReason::Here,
            _ => MissReason::Elsewhere,
        })
    }

    /// Returns whether a job with an expression should have read this file.
    fn has(&self, row: &AdminRow, standing: &StandingSnapshot) -> bool {
        let Some(copy) = row.record.replicas.get(&self.replica) else {
            return false;
        };
        // The earliest copy counts: a copy that was moved or repaired does not make the file newer.
        let copies = row.record.replicas.values();
        let known = copies
            .filter(|copy| copy.state.is_completed())
            .map(|copy| copy.since)
            .min();
        row.record.content.is_some()
            && standing.copy_counts(&self.replica, copy)
            && known.is_some_and(|known| known <= self.since)
            && self.selection.matches(&row.record.name)
    }
}

/// The lists that a job left, each sorted by the names of the files.
#[derive(Debug)]
pub(crate) struct Lists<M, E> {
    pub manifest: M,
    pub errors: E,
}

/// A finding about one file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ComparisonFinding<'a> {
    /// No node has read the file, and no failure was reported for it.
    Unread(&'a CandidateFile, MissReason),
    /// Other bytes were read than the archive has.
    Other(&'a ManifestEntry, &'a Content),
}

/// The number of files with findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnreadCount {
    /// The number of files that nobody has read.
    pub unread: u64,
    /// The number of files of which other bytes were read, and that had no failures before.
    pub failed: u64,
}

/// Passes each file that nobody has read, or of which other bytes were read, to `report`, in the order of names.
/// Returns the numbers of both kinds.
pub(crate) fn find_unread(
    about: &CompareScope,
    standing: &StandingSnapshot,
    lists: Lists<impl BufRead, impl BufRead>,
    files: impl Iterator<Item = Result<CandidateFile, DbError>>,
    control: &StopControl,
    mut report: impl FnMut(ComparisonFinding<'_>) -> Result<(), CompareError>,
) -> Result<UnreadCount, CompareError> {
    let mut read: List<_, ManifestEntry> = List::new(lists.manifest)?;
    let mut reported: List<_, ReportedFile> = List::new(lists.errors)?;
    let mut count = UnreadCount::default();
    for file in files {
        control.check_stop().map_err(CompareError::Stop)?;
        let file = file?;
        let name = &file.name;
        if let Some(read) = read.at(name)? {
            let content = file
                .row
                .as_ref()
                .and_then(|row| row.record.content.as_ref());
            let is_other = |had: &&Content| (had.root, had.size) != (read.root, read.size);
            if let Some(content) = content.filter(is_other) {
                report(ComparisonFinding::Other(read, content))?;
                let is_new = u64::from(read.failures == 0);
                count.failed = count.failed.saturating_add(is_new);
            }
        } else if reported.at(name)?.is_none()
            && let Some(missed) = about.misses(&file, standing)
        {
            report(ComparisonFinding::Unread(&file, missed))?;
            count.unread = count.unread.saturating_add(1);
        }
    }
    Ok(count)
}

/// A line about a file.
trait Line: DeserializeOwned {
    /// The list of this line, for messages.
    const LIST: &'static str;
    /// The number of lines of the list before those about files.
    const HEAD: usize;
    /// Whether a file has one line at most.
    const ONCE: bool;

    fn file(&self) -> &FileName;
}

impl Line for ManifestEntry {
    const LIST: &'static str = "manifest";
    const HEAD: usize = 1;
    const ONCE: bool = true;

    fn file(&self) -> &FileName {
        &self.file
    }
}

impl Line for ReportedFile {
    const LIST: &'static str = "list of errors";
    const HEAD: usize = 0;
    const ONCE: bool = false;

    fn file(&self) -> &FileName {
        &self.file
    }
}

/// The lines of a list, one after the other.
struct List<R, L> {
    lines: R,
    line: Vec<u8>,
    number: u64,
    current: Option<L>,
}

impl<R: BufRead, L: Line> List<R, L> {
    /// Opens a list at the first line about a file.
    fn new(lines: R) -> Result<Self, CompareError> {
        let mut list = Self {
            lines,
            line: Vec::new(),
            number: 0,
            current: None,
        };
        for _ in 0..L::HEAD {
            list.read_line()?;
        }
        list.advance()?;
        Ok(list)
    }

    /// Returns the line about a file, or `None` if it has no line. Names must be asked for in order.
    fn at(&mut self, name: &FileName) -> Result<Option<&L>, CompareError> {
        while self.current.as_ref().is_some_and(|line| line.file() < name) {
            self.advance()?;
        }
        Ok(self.current.as_ref().filter(|line| line.file() == name))
    }

    fn read_line(&mut self) -> Result<bool, CompareError> {
        self.line.clear();
        self.number = self.number.saturating_add(1);
        let mut lines = (&mut self.lines).take(LONGEST_LINE);
        let read = lines.read_until(b'\n', &mut self.line);
        if read.map_err(|error| CompareError::List(L::LIST, error))? == 0 {
            return Ok(false);
        }
        if self.line.last() == Some(&b'\n') {
            Ok(true)
        } else {
            Err(self.wrong("it has no end"))
        }
    }

    fn advance(&mut self) -> Result<(), CompareError> {
        let next: Option<L> = if self.read_line()? {
            let line = serde_json::from_slice(&self.line);
            Some(line.map_err(|error| self.wrong(&error.to_string()))?)
        } else {
            None
        };
        if let (Some(last), Some(next)) = (&self.current, &next) {
            let is_in_order = match last.file().cmp(next.file()) {
                Ordering::Less => true,
                Ordering::Equal => !L::ONCE,
                Ordering::Greater => false,
            };
            if !is_in_order {
                return Err(self.wrong("its name is not in order"));
            }
        }
        self.current = next;
        Ok(())
    }

    fn wrong(&self, why: &str) -> CompareError {
        CompareError::Line(L::LIST, self.number, why.to_owned())
    }
}
