//! One replica's listing against the admin data: what is missing, unexpected, duplicated, conflicting.
//!
//! Owns the comparison: a merge-join of two streams sorted by name, in memory that does not grow with them. A file is
//! *missing* only when every non-retired volume has looked and none has it. Whatever else keeps a file out of the
//! listing – a silent node, a stream that is cut or out of order – makes it *unverified*, and the report incomplete.
//!
//! Not promised: one moment for both sides. A file stored or removed while the check runs can show up as a finding, so
//! ask the admin data once more before filing one.

mod error;
mod input;
mod report;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use archive_model::{AnomalyKind, CopyPlace, FileCopy, FileName, Root, SilentPart};

pub use error::CheckError;
pub use input::{AdminEntry, ExpectedCopy, ListingItem};
use input::{Listing, OrderedEntries};
use report::Absence;
pub use report::{CheckReport, CheckSide, Finding, InputCut};

/// The findings of one check, as an iterator; [`ReplicaCheck::report`] sums them up.
#[derive(Debug)]
pub struct ReplicaCheck<A, L> {
    admin: OrderedEntries<A>,
    listing: Listing<L>,
    ready: std::vec::IntoIter<Finding>,
    report: CheckReport,
}

impl<A, L, E, F> ReplicaCheck<A, L>
where
    A: Iterator<Item = Result<AdminEntry, E>>,
    L: Iterator<Item = Result<ListingItem, F>>,
    E: std::fmt::Display,
    F: std::fmt::Display,
{
    /// Creates a check of `listing` against `admin`, both ascending by name.
    pub fn new(admin: A, listing: L) -> Self {
        Self {
            admin: OrderedEntries::new(admin),
            listing: Listing::new(listing),
            ready: Vec::new().into_iter(),
            report: CheckReport::default(),
        }
    }

    /// Returns the report so far; after the last finding, the report of the whole replica.
    pub const fn report(&self) -> &CheckReport {
        &self.report
    }

    /// Compares the next name of either side. `None` once both are at their end.
    fn next_name(&mut self) -> Option<Vec<Finding>> {
        if self.report.ended {
            return None;
        }
        let copy = self.listing.read_copies(&mut self.report).first();
        let order = match (self.admin.peek_entry(), copy) {
            (Err(error), _) => {
                // Without the admin data nothing can be judged: the listed copies may well be expected.
                self.report.cut_side(CheckSide::Admin, error.to_string());
                self.report.ended = true;
                return None;
            }
            (Ok(None), None) => {
                self.report.ended = true;
                return None;
            }
            (Ok(None), Some(_)) => Ordering::Greater,
            (Ok(Some(_)), None) => Ordering::Less,
            (Ok(Some(entry)), Some(copy)) => entry.name.cmp(&copy.name),
        };
        let copies = if order == Ordering::Less {
            Vec::new()
        } else {
            self.listing.take_copies()
        };
        if order == Ordering::Greater {
            return Some(unexpected(copies));
        }
        let entry = self.admin.take_entry()?;
        self.report.names += 1;
        Some(self.compare(&entry, &copies))
    }

    fn compare(&mut self, entry: &AdminEntry, copies: &[FileCopy]) -> Vec<Finding> {
        let kinds = match &entry.expected {
            ExpectedCopy::Withdrawn if copies.is_empty() => {
                self.report.withdrawn += 1;
                Vec::new()
            }
            ExpectedCopy::Withdrawn => vec![AnomalyKind::Unexpected],
            ExpectedCopy::InFlight { root: Some(root) } => conflicts(*root, copies)
                .chain([AnomalyKind::Transient])
                .collect(),
            ExpectedCopy::InFlight { root: None } => vec![AnomalyKind::Transient],
            ExpectedCopy::Present { place, .. } if copies.is_empty() => {
                let absence = self.absence(&entry.name, place.as_ref(), AnomalyKind::Missing);
                absence.into_iter().collect()
            }
            ExpectedCopy::Incomplete { .. } if copies.is_empty() => {
                let absence = self.absence(&entry.name, None, AnomalyKind::Incomplete);
                absence.into_iter().collect()
            }
            ExpectedCopy::Present { root, size, place } => {
                return self.compare_copies(&entry.name, *root, *size, place.as_ref(), copies);
            }
            ExpectedCopy::Incomplete { root, size } => {
                return self.compare_copies(&entry.name, *root, *size, None, copies);
            }
        };
        anomalies(&entry.name, kinds).collect()
    }

    /// Compares the listed copies of a file with the expected content and place, and returns the findings.
    fn compare_copies(
        &mut self,
        name: &FileName,
        root: Root,
        size: u64,
        place: Option<&CopyPlace>,
        copies: &[FileCopy],
    ) -> Vec<Finding> {
        let kinds = judge(root, size, copies);
        let good = copies
            .iter()
            .filter(|copy| copy.root == Some(root))
            .map(|copy| &copy.place)
            .collect::<Vec<_>>();
        let moved = good
            .first()
            .filter(|_| place.is_none_or(|place| !good.contains(&place)));
        let moved = moved.map(|place| Finding::Moved {
            file: name.clone(),
            place: (*place).clone(),
        });
        self.report.intact += u64::from(kinds.is_empty());
        anomalies(name, kinds).chain(moved).collect()
    }

    /// Judges an expected file of which no copy was listed. Returns `proven` if every volume has looked, and otherwise
    /// that the file is unverified; `None` if no node can be named.
    fn absence(
        &mut self,
        name: &FileName,
        place: Option<&CopyPlace>,
        proven: AnomalyKind,
    ) -> Option<AnomalyKind> {
        match self.report.judge_absence(name, place) {
            Absence::Proven => Some(proven),
            Absence::Doubtful(Some(SilentPart { node, volume })) => {
                Some(AnomalyKind::Unverified { node, volume })
            }
            Absence::Doubtful(None) => {
                self.report.unplaced += 1;
                None
            }
        }
    }
}

/// Returns the finding about copies whose name the admin data do not have.
fn unexpected(copies: Vec<FileCopy>) -> Vec<Finding> {
    let name = copies.into_iter().next().map(|copy| copy.name);
    name.map(|file| Finding::Anomaly {
        file,
        kind: AnomalyKind::Unexpected,
    })
    .into_iter()
    .collect()
}

fn anomalies(name: &FileName, kinds: Vec<AnomalyKind>) -> impl Iterator<Item = Finding> {
    kinds.into_iter().map(|kind| Finding::Anomaly {
        file: name.clone(),
        kind,
    })
}

/// Names the anomalies in the copies of a file that should be there; an intact file has no anomaly.
fn judge(root: Root, size: u64, copies: &[FileCopy]) -> Vec<AnomalyKind> {
    let mut kinds = conflicts(root, copies).collect::<Vec<_>>();
    let mut nodes = Vec::new();
    for copy in copies.iter().filter(|copy| copy.root == Some(root)) {
        nodes.push(copy.place.node.clone());
        if copy.size != size {
            // One content has one size: the row contradicts itself, and nobody knows until somebody reads the file.
            let node = copy.place.node.clone();
            let volume = Some(copy.place.volume.clone());
            kinds.push(AnomalyKind::Unverified { node, volume });
        }
        let (corrupt, unreadable) = copy.damage_by_kind(copy.size);
        if !corrupt.is_empty() {
            kinds.push(AnomalyKind::Corrupt(corrupt));
        }
        if !unreadable.is_empty() {
            kinds.push(AnomalyKind::Unreadable(unreadable));
        }
    }
    if nodes.len() > 1 {
        kinds.push(AnomalyKind::Duplicate(nodes));
    }
    kinds
}

/// Returns the conflict with each other root under the name, once.
fn conflicts(root: Root, copies: &[FileCopy]) -> impl Iterator<Item = AnomalyKind> {
    let others = copies
        .iter()
        .filter_map(|copy| copy.root)
        .filter(|other| *other != root);
    others
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(AnomalyKind::Conflicting)
}

impl<A, L, E, F> Iterator for ReplicaCheck<A, L>
where
    A: Iterator<Item = Result<AdminEntry, E>>,
    L: Iterator<Item = Result<ListingItem, F>>,
    E: std::fmt::Display,
    F: std::fmt::Display,
{
    type Item = Finding;

    fn next(&mut self) -> Option<Finding> {
        loop {
            if let Some(finding) = self.ready.next() {
                self.report.count_finding(&finding);
                return Some(finding);
            }
            self.ready = self.next_name()?.into_iter();
        }
    }
}
