//! Which files are not in every replica that must have them, and since when: kept up to date while files change, never
//! many.
//!
//! A few of each kind of lack are known by name, those first that began to lack first. Not promised: an age from before
//! the start of the process; from then on it is the last change of the copy that is lacking.

use std::collections::{BTreeMap, BTreeSet};

use archive_decisions::store::FileRecord;
use archive_model::{FileName, ReplicaId};
use jiff::Timestamp;

/// The most files of one kind of lack that are known by name.
const MOST: usize = 1000;

/// The number of names in a [`LateFiles`].
const NAMES: usize = 5;

/// The replicas that a file lacks, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lack {
    of: BTreeSet<ReplicaId>,
    since: Timestamp,
}

/// Files by the replicas that they lack, each with the time since when.
#[derive(Debug, Default)]
pub(super) struct LackingFiles(BTreeMap<BTreeSet<ReplicaId>, BTreeMap<FileName, Timestamp>>);

/// Files that have lacked a replica for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateFiles {
    /// The number of late files that are known by name.
    pub files: usize,
    /// The first few of them.
    pub first: Vec<FileName>,
    /// The time since when the oldest of them has lacked a replica.
    pub since: Timestamp,
}

/// Returns the replicas that must have a file and lack it.
pub(super) fn lacking_replicas(record: &FileRecord) -> BTreeSet<ReplicaId> {
    let lacks = record.replicas.iter().filter(|(_, copy)| {
        copy.required && !copy.state.is_completed() && !copy.state.is_withdrawn()
    });
    lacks.map(|(id, _)| id.clone()).collect()
}

impl Lack {
    /// Returns the lack of a file; `None` if it lacks nothing, or not all of its bytes have passed yet.
    pub(super) fn from_record(record: &FileRecord) -> Option<Self> {
        record.content.as_ref()?;
        let of = lacking_replicas(record);
        let since = of.iter().filter_map(|id| record.replicas.get(id));
        let since = since.map(|copy| copy.since).max()?;
        Some(Self { of, since })
    }
}

impl LackingFiles {
    /// Sets the lack of a file now.
    pub(super) fn set_lack(&mut self, name: &FileName, lack: Option<&Lack>) {
        let known: Vec<Timestamp> = self
            .0
            .values_mut()
            .filter_map(|files| files.remove(name))
            .collect();
        if let Some(lack) = lack {
            let files = self.0.entry(lack.of.clone()).or_default();
            if files.len() < MOST {
                let since = known.into_iter().fold(lack.since, Timestamp::min);
                files.insert(name.clone(), since);
            }
        }
        self.0.retain(|_, files| !files.is_empty());
    }

    /// Returns all files that lack a replica and are known by name.
    pub(super) fn names(&self) -> impl Iterator<Item = &FileName> {
        self.0.values().flat_map(BTreeMap::keys)
    }

    /// Returns the files that have lacked a replica since `before` or longer, except those that lack excused replicas
    /// only.
    pub(super) fn late_files(
        &self,
        before: Timestamp,
        is_excused: impl Fn(&ReplicaId) -> bool,
    ) -> Option<LateFiles> {
        let counted = self
            .0
            .iter()
            .filter(|(of, _)| of.iter().any(|id| !is_excused(id)));
        let files = counted.flat_map(|(_, files)| files);
        let mut late: Vec<(Timestamp, &FileName)> = files
            .filter(|(_, since)| **since <= before)
            .map(|(name, since)| (*since, name))
            .collect();
        late.sort_unstable();
        let (since, _) = *late.first()?;
        let first = late.iter().take(NAMES).map(|(_, name)| (*name).clone());
        Some(LateFiles {
            files: late.len(),
            first: first.collect(),
            since,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(60 * minute).unwrap()
    }

    fn name(number: usize) -> FileName {
        FileName::new(&format!("f-{number:05}")).unwrap()
    }

    fn lack(of: &[&str], minute: i64) -> Lack {
        Lack {
            of: of.iter().map(|id| ReplicaId::new(id).unwrap()).collect(),
            since: at(minute),
        }
    }

    /// Fails if an age begins anew with each attempt, an excused replica counts, or the list of names has no end.
    #[test]
    fn age_counts_from_first_unexcused_lack() {
        let mut lagging = LackingFiles::default();
        let late = |lagging: &LackingFiles, minute| {
            let late = lagging.late_files(at(minute), |id| id.as_str() == "new");
            late.map(|late| (late.files, late.since, late.first))
        };
        lagging.set_lack(&name(1), Some(&lack(&["two"], 1)));
        lagging.set_lack(&name(1), Some(&lack(&["one", "two"], 7)));
        lagging.set_lack(&name(2), Some(&lack(&["two"], 5)));
        lagging.set_lack(&name(3), Some(&lack(&["new"], 0)));
        assert_eq!(late(&lagging, 0), None);
        assert_eq!(late(&lagging, 4), Some((1, at(1), vec![name(1)])));
        assert_eq!(late(&lagging, 5), Some((2, at(1), vec![name(1), name(2)])));
        lagging.set_lack(&name(1), None);
        lagging.set_lack(&name(9), None);
        assert_eq!(late(&lagging, 9), Some((1, at(5), vec![name(2)])));
        lagging.set_lack(&name(2), None);
        lagging.set_lack(&name(3), None);
        assert!(lagging.0.is_empty());
    }

    /// Fails if an outage, in which every new file lacks a replica, fills the memory, or files that no longer lack it
    /// stay counted.
    #[test]
    fn however_many_lag_memory_is_bounded() {
        let mut lagging = LackingFiles::default();
        for number in 0..10 * MOST {
            lagging.set_lack(&name(number), Some(&lack(&["two"], 0)));
        }
        let late = lagging.late_files(at(0), |_| false).unwrap();
        assert_eq!((late.files, late.first.len()), (MOST, NAMES));
        assert_eq!(late.first[0], name(0));
        for number in 0..10 * MOST {
            lagging.set_lack(&name(number), None);
        }
        assert!(lagging.0.is_empty());
    }
}
