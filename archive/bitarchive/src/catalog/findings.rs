//! The findings among the entries: their keys in a table of their own, their number, and a stamp that changes with
//! them.
//!
//! The table is written in the batch that changes the entries, so that the two always agree.

use std::ops::Bound;

use archive_db::{ChangeBatch, Database, DbError, Rows, Table, Text};
use archive_model::FileName;
use parking_lot::{Mutex, MutexGuard};

use super::{Condition, FINDINGS, Key, Row, least_volume};

/// The number of findings of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FindingCounts {
    /// The number of copies whose bytes are not those that were admitted.
    pub damaged: u64,
    /// The number of copies that are absent.
    pub missing: u64,
    /// The number of files without a readable sidecar.
    pub unexpected: u64,
    /// The stamp: a new number after each change of any finding, also over restarts.
    pub stamp: u64,
}

impl FindingCounts {
    /// Returns the number of all findings.
    pub const fn total(&self) -> u64 {
        self.damaged + self.missing + self.unexpected
    }

    fn count(&mut self, row: &Row) -> Option<&mut u64> {
        match row.condition {
            Condition::Present => None,
            Condition::Missing { .. } => Some(&mut self.missing),
            Condition::Damaged { .. } => Some(&mut self.damaged),
            Condition::Unexpected { .. } => Some(&mut self.unexpected),
        }
    }

    fn add(&mut self, row: &Row) {
        if let Some(count) = self.count(row) {
            *count += 1;
        }
    }

    fn take_away(&mut self, row: &Row) {
        if let Some(count) = self.count(row) {
            *count = count.saturating_sub(1);
        }
    }
}

/// The findings of a catalog.
#[derive(Debug)]
pub struct Findings {
    keys: Table<Key, ()>,
    counts: Mutex<FindingCounts>,
    /// The number that is added to those of the database, which begin again when it is rebuilt.
    base: u64,
}

impl Findings {
    /// Opens the table and counts its rows.
    pub(super) fn open(
        database: &Database,
        files: &Table<Key, Row>,
        base: u64,
    ) -> Result<Self, DbError> {
        let keys: Table<Key, ()> = database.table(FINDINGS)?;
        let mut counts = FindingCounts {
            stamp: base.wrapping_add(database.sequence()),
            ..FindingCounts::default()
        };
        for key in keys.scan()? {
            let (key, ()) = key?;
            if let Some(row) = files.get(&key)? {
                counts.add(&row);
            }
        }
        Ok(Self {
            keys,
            counts: Mutex::new(counts),
            base,
        })
    }

    pub(super) fn finding_counts(&self) -> FindingCounts {
        *self.lock()
    }

    /// Returns the keys of the findings, from the name `after` on.
    pub(super) fn keys(&self, after: Option<&FileName>) -> Result<Rows<'_, Key, ()>, DbError> {
        match after {
            None => self.keys.scan(),
            Some(name) => self.keys.range((
                Bound::Included((Text(name.clone()), Text(least_volume()?))),
                Bound::Unbounded,
            )),
        }
    }

    /// Commits changes of entries together with those of the findings. Only changes that touch a finding wait for each
    /// other, so that ordinary stores go to the disk together.
    pub(super) fn commit_findings(
        &self,
        mut batch: ChangeBatch,
        files: &Table<Key, Row>,
        changes: &[(Key, Option<&Row>)],
    ) -> Result<(), DbError> {
        let mut counts = self.lock();
        let mut next = *counts;
        let mut has_changed = false;
        for (key, row) in changes {
            let was = files.get(key)?.filter(is_finding);
            let is = row.filter(|row| is_finding(row));
            if was.as_ref() == is {
                continue;
            }
            has_changed = true;
            if let Some(was) = &was {
                next.take_away(was);
            }
            match is {
                Some(row) => {
                    next.add(row);
                    batch.put(&self.keys, key, &())?;
                }
                None => batch.delete(&self.keys, key)?,
            }
        }
        if !has_changed {
            drop(counts);
            return batch.commit().map(|_| ());
        }
        let sequence = batch.commit()?;
        next.stamp = self.base.wrapping_add(sequence);
        *counts = next;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, FindingCounts> {
        self.counts.lock()
    }
}

fn is_finding(row: &Row) -> bool {
    row.condition != Condition::Present
}

#[cfg(test)]
mod tests {
    use archive_model::{Groups, VolumeId};
    use jiff::Timestamp;

    use super::super::{Catalog, CatalogEntry};
    use super::*;

    fn entry(name: &str, condition: Condition) -> CatalogEntry {
        CatalogEntry {
            name: FileName::new(name).unwrap(),
            volume: VolumeId::new("v1").unwrap(),
            row: Row {
                size: 1,
                root: None,
                stored: Timestamp::UNIX_EPOCH,
                verified: None,
                condition,
            },
        }
    }

    fn missing() -> Condition {
        Condition::Missing {
            since: Timestamp::UNIX_EPOCH,
        }
    }

    fn damaged(group: u64) -> Condition {
        let corrupt = Groups::from_iter([group]);
        Condition::Damaged {
            since: Timestamp::UNIX_EPOCH,
            corrupt,
            unreadable: Groups::none(),
        }
    }

    fn names(catalog: &Catalog, after: Option<&str>) -> Vec<String> {
        let after = after.map(|name| FileName::new(name).unwrap());
        let found = catalog.list_findings(after.as_ref()).unwrap();
        found.map(|entry| entry.unwrap().name.to_string()).collect()
    }

    /// Fails if a finding comes, changes or goes, and the repository does not learn of it.
    #[test]
    fn every_change_of_a_finding_changes_the_stamp() {
        let directory = crate::testing::directory();
        let path = directory.path().join("catalog");
        let open = |stamp| Catalog::open(&path, stamp).unwrap().catalog;
        let catalog = open(7);
        let unexpected = Condition::Unexpected { why: String::new() };
        let steps = [
            (entry("a", Condition::Present), 0, false),
            (entry("b", missing()), 1, true),
            (entry("b", missing()), 1, false),
            (entry("c", damaged(1)), 2, true),
            (entry("c", damaged(2)), 2, true),
            (entry("d", unexpected), 3, true),
            (entry("a", Condition::Present), 3, false),
            (entry("b", Condition::Present), 2, true),
        ];
        let mut stamps = vec![catalog.finding_counts().stamp];
        for (entry, total, is_new) in steps {
            catalog.put_entries(std::slice::from_ref(&entry)).unwrap();
            let counts = catalog.finding_counts();
            assert_eq!(counts.total(), total, "{entry:?}");
            assert_eq!(!stamps.contains(&counts.stamp), is_new, "{entry:?}");
            stamps.push(counts.stamp);
        }
        assert_eq!(names(&catalog, None), ["c", "d"]);
        assert_eq!(names(&catalog, Some("c")), ["d"]);
        let before = catalog.finding_counts();
        drop(catalog);
        let catalog = open(8);
        assert_eq!(
            (before.damaged, before.missing, before.unexpected),
            (1, 0, 1)
        );
        assert_eq!(catalog.finding_counts().total(), 2);
        assert!(!stamps.contains(&catalog.finding_counts().stamp));
        let entry = entry("c", missing());
        catalog.remove_entry(&entry.name, &entry.volume).unwrap();
        assert_eq!(names(&catalog, None), ["d"]);
    }
}
