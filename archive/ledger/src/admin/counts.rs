//! Counts of files, kept up to date while files change, so that nobody has to read every row for them.

use std::collections::{BTreeMap, BTreeSet};

use archive_decisions::store::FileRecord;
use archive_model::{FileName, ReplicaId};
use jiff::Timestamp;

use super::lagging::{Lack, LackingFiles, LateFiles, lacking_replicas};
use super::places::PlaceSum;
use super::{Admin, AdminError, AdminRow};

/// The counts of the admin data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminCounts {
    /// Files of which all bytes have passed.
    pub files: u64,
    /// The sum of the sizes of these files, in bytes.
    pub bytes: u64,
    /// The number of files by their required copies.
    pub lacking: BTreeMap<RequiredCopies, u64>,
    /// The number of files in each replica.
    pub in_replica: BTreeMap<ReplicaId, u64>,
}

/// The copies that a file must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequiredCopies {
    /// The required replicas that lack the file. A withdrawn copy is not lacking.
    pub lacking: BTreeSet<ReplicaId>,
    /// The replicas that the record of the file names; `None` if no other one has to have the file.
    pub named: Option<BTreeSet<ReplicaId>>,
}

impl RequiredCopies {
    fn from_record(record: &FileRecord) -> Self {
        let is_kept = record.phase.is_bound() && !record.is_withdrawn();
        Self {
            lacking: lacking_replicas(record),
            named: is_kept.then(|| record.replicas.keys().cloned().collect()),
        }
    }

    /// Whether a replica lacks the file, or one of the `required` ones was never given it, that is not excused.
    pub(crate) fn are_below<'a>(
        &'a self,
        required: impl Iterator<Item = &'a ReplicaId>,
        is_excused: impl Fn(&ReplicaId) -> bool,
    ) -> bool {
        let is_named = |id: &ReplicaId| self.named.as_ref().is_none_or(|named| named.contains(id));
        let unnamed = required.filter(|id| !is_named(id));
        self.lacking.iter().chain(unnamed).any(|id| !is_excused(id))
    }
}

impl AdminCounts {
    /// Returns the counts that one file adds.
    pub(super) fn from_record(record: &FileRecord) -> Self {
        let Some(content) = &record.content else {
            return Self::default();
        };
        let completed = record.replicas.iter();
        let completed = completed.filter(|(_, replica)| replica.state.is_completed());
        Self {
            files: 1,
            bytes: content.size,
            lacking: [(RequiredCopies::from_record(record), 1)].into(),
            in_replica: completed.map(|(id, _)| (id.clone(), 1)).collect(),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.combine(other, u64::wrapping_add);
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.combine(other, u64::wrapping_sub);
    }

    /// Combines each count of `other` with its own by `with`, which wraps: a change may be counted before the rows that
    /// it changes, and the sum is right once all are counted.
    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        self.files = with(self.files, other.files);
        self.bytes = with(self.bytes, other.bytes);
        for (lacking, count) in &other.lacking {
            let sum = self.lacking.entry(lacking.clone()).or_default();
            *sum = with(*sum, *count);
        }
        for (replica, count) in &other.in_replica {
            let sum = self.in_replica.entry(replica.clone()).or_default();
            *sum = with(*sum, *count);
        }
    }
}

/// The counts of a process: right once every row that was there at its start has been counted.
#[derive(Debug, Default)]
pub(super) struct RunningCounts {
    pub(super) counts: AdminCounts,
    pub(super) lagging: LackingFiles,
    pub(super) is_whole: bool,
}

/// The counts that one file adds, and the replicas that it lacks.
#[derive(Clone, Debug, Default)]
pub(super) struct FileCounts {
    pub(super) counts: AdminCounts,
    lack: Option<Lack>,
}

impl FileCounts {
    pub(super) fn from_record(record: &FileRecord) -> Self {
        Self {
            counts: AdminCounts::from_record(record),
            lack: Lack::from_record(record),
        }
    }
}

impl RunningCounts {
    /// Replaces `before`, the counts that the changed files added until now, by the counts that they add from now on.
    pub(super) fn change_counts<'a>(
        &mut self,
        before: &AdminCounts,
        after: impl Iterator<Item = (&'a FileName, &'a FileCounts)>,
    ) {
        self.counts.subtract(before);
        for (name, after) in after {
            self.counts.add(&after.counts);
            self.lagging.set_lack(name, after.lack.as_ref());
        }
    }
}

impl Admin {
    /// Counts every row, once after the start; until then [`Admin::counts`] has no answer. `each` sees the rows. The
    /// index of places is compared with them, and corrected. Returns the number of its entries that differed.
    ///
    /// # Errors
    ///
    /// [`AdminError`] if the database fails, a row cannot be decoded, or the index of places cannot be corrected.
    pub fn count_rows(&self, mut each: impl FnMut(AdminRow)) -> Result<u64, AdminError> {
        let (rows, index) = {
            // Commits from here on are counted by `RunningCounts::change`; earlier ones are among the rows.
            let _numbering = self.numbering();
            self.running().counts = AdminCounts::default();
            (self.list_files(None)?, self.places.scan_places()?)
        };
        let mut counted = AdminCounts::default();
        let mut lagging = LackingFiles::default();
        let mut at = PlaceSum::default();
        let mut indexed = PlaceSum::default();
        for row in rows {
            let row = row?;
            at.add_record(&row.record);
            counted.add(&AdminCounts::from_record(&row.record));
            let lack = Lack::from_record(&row.record);
            if lack.is_some() {
                lagging.set_lack(&row.record.name, lack.as_ref());
            }
            each(row);
        }
        for key in index {
            indexed.add_row(&key?);
        }
        let differed = self.compare_places(at, indexed)?;
        let mut running = self.running();
        running.counts.add(&counted);
        for name in lagging.names() {
            // The file may have changed since its row was read; changes from here on wait for the lock.
            let row = self.file(name)?;
            let lack = row.and_then(|row| Lack::from_record(&row.record));
            running.lagging.set_lack(name, lack.as_ref());
        }
        running.is_whole = true;
        Ok(differed)
    }

    /// Whether every row was counted, and the index of places compared with them.
    pub(super) fn is_counted(&self) -> bool {
        self.running().is_whole
    }

    /// Returns the counts of the admin data; `None` before they were counted.
    pub fn counts(&self) -> Option<AdminCounts> {
        let running = self.running();
        running.is_whole.then(|| running.counts.clone())
    }

    /// Returns the files that have lacked a replica since `before` or longer, except those that lack excused replicas
    /// only; `None` if no file has, or if the files were not counted yet.
    pub fn count_late(
        &self,
        before: Timestamp,
        is_excused: impl Fn(&ReplicaId) -> bool,
    ) -> Option<LateFiles> {
        let running = self.running();
        running
            .is_whole
            .then(|| running.lagging.late_files(before, is_excused))?
    }
}
