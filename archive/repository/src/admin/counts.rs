//! How many files there are, kept while they change, so that nobody has to read every row for it.

use std::collections::BTreeMap;

use archive_model::ReplicaId;

use crate::store::FileRecord;

/// What the admin data amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files of which all bytes have passed.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many of them are not in every required replica.
    pub below_required: u64,
    /// How many each replica has.
    pub in_replica: BTreeMap<ReplicaId, u64>,
}

impl Counts {
    /// What one file adds.
    pub(super) fn of(record: &FileRecord) -> Self {
        let Some(content) = &record.content else {
            return Self::default();
        };
        let completed = record.replicas.iter();
        let completed = completed.filter(|(_, replica)| replica.state.is_completed());
        Self {
            files: 1,
            bytes: content.size,
            below_required: u64::from(!record.is_acknowledged()),
            in_replica: completed.map(|(id, _)| (id.clone(), 1)).collect(),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.combine(other, u64::wrapping_add);
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.combine(other, u64::wrapping_sub);
    }

    /// Wraps, so that changes may be counted before what they changed is: the sum is right once all is.
    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        self.files = with(self.files, other.files);
        self.bytes = with(self.bytes, other.bytes);
        self.below_required = with(self.below_required, other.below_required);
        for (replica, count) in &other.in_replica {
            let sum = self.in_replica.entry(replica.clone()).or_default();
            *sum = with(*sum, *count);
        }
    }
}

/// The counts of a process: right once every row that was there at its start has been counted.
#[derive(Debug, Default)]
pub(super) struct Running {
    pub(super) counts: Counts,
    pub(super) is_whole: bool,
}
