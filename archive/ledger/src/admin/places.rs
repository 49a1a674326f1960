//! Where files are: an index from each place to the names there, beside the rows and written in the batch of a row.
//!
//! A complete copy is at its volume; one that is on its way, or of which no volume is recorded, is at its node. A copy
//! that was withdrawn is nowhere.
//!
//! Derived from the rows, and so neither exported nor restored. Where it is absent, or its making was cut off, it is
//! made anew when the admin data are opened. Each start compares it with the rows, and corrects it at once where it
//! differs; until then walks over a place read every row.
//!
//! # Errors
//!
//! Every function fails when the tables cannot be read or written; no file is left out then.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter::Peekable;

use archive_db::{ChangeBatch, Database, DbError, Rows, Table, Text};
use archive_decisions::store::{FileRecord, ReplicaRecord};
use archive_model::{FileName, NodeId, NodeKey, ReplicaId};

use super::schema::{NUMBERS, PLACES};
use super::walk::WalkScope;
use super::{Admin, AdminError};

/// The key in the table of numbers that says that the index is whole.
const WHOLE: &str = "places-indexed";

/// The number of entries that are changed in one batch.
const BATCH: u64 = 10_000;

/// A place: replica, node, and volume; the volume is empty where the copy is on its way to the node.
pub(super) type PlaceKey = (Text<ReplicaId>, Text<NodeId>, String);

/// The key of a row: a place, and the name of a file that is there.
type Key = (Text<ReplicaId>, Text<NodeId>, String, Text<FileName>);

/// The index.
#[derive(Clone, Debug)]
pub(super) struct Places {
    rows: Table<Key, ()>,
    numbers: Table<String, u64>,
}

/// Returns the places of a file: one in each replica at most.
pub(super) fn places_of(record: &FileRecord) -> impl Iterator<Item = PlaceKey> + '_ {
    record.replicas.iter().filter_map(|(replica, copy)| {
        let node = copy.node.as_ref().filter(|_| !copy.state.is_withdrawn())?;
        Some((
            Text(replica.clone()),
            Text(node.clone()),
            volume_of(copy).to_owned(),
        ))
    })
}

/// Returns the volume of a complete copy, or an empty text.
fn volume_of(copy: &ReplicaRecord) -> &str {
    let volume = copy.volume.as_ref().filter(|_| copy.state.is_completed());
    volume.map_or("", |volume| volume.as_str())
}

fn key(place: &PlaceKey, name: &FileName) -> Key {
    let (replica, node, volume) = place;
    (
        replica.clone(),
        node.clone(),
        volume.clone(),
        Text(name.clone()),
    )
}

impl WalkScope {
    /// Whether a file is in this scope, or on its way there.
    pub(super) fn has_record(&self, record: &FileRecord) -> bool {
        let copy_on = |replica: &ReplicaId, node: &NodeId| {
            let copy = record.replicas.get(replica);
            copy.filter(|copy| copy.node.as_ref() == Some(node) && !copy.state.is_withdrawn())
        };
        match self {
            Self::Archive => true,
            Self::Node(key) => copy_on(&key.replica, &key.node).is_some(),
            Self::Volume(volume) => copy_on(&volume.replica, &volume.node).is_some_and(|copy| {
                let at = volume_of(copy);
                at.is_empty() || at == volume.volume.as_str()
            }),
        }
    }
}

impl Places {
    pub(super) fn open(database: &Database) -> Result<Self, DbError> {
        Ok(Self {
            rows: database.table(PLACES)?,
            numbers: database.table(NUMBERS)?,
        })
    }

    /// Changes the rows of a file in the index from the places that it had, `before`, to those that it has, `after`.
    pub(super) fn change_places(
        &self,
        batch: &mut ChangeBatch,
        name: &FileName,
        before: &BTreeSet<PlaceKey>,
        after: &BTreeSet<PlaceKey>,
    ) -> Result<(), DbError> {
        for gone in before.difference(after) {
            batch.delete(&self.rows, &key(gone, name))?;
        }
        for new in after.difference(before) {
            batch.put(&self.rows, &key(new, name), &())?;
        }
        Ok(())
    }

    /// Returns the names of the files behind `after`, sorted, that are at a node, or at one of its volumes or on their
    /// way to the node. The caller lets nobody change the admin data meanwhile.
    pub(super) fn list_names(
        &self,
        node: &NodeKey,
        volume: Option<&str>,
        after: Option<&FileName>,
    ) -> Result<Names<'_>, DbError> {
        let node = (Text(node.replica.clone()), Text(node.node.clone()));
        let volumes = match volume {
            Some(volume) => vec![String::new(), volume.to_owned()],
            None => self.volumes(&node)?,
        };
        let mut names = Names {
            volumes: Vec::new(),
            after: after.cloned(),
        };
        for volume in volumes {
            let place = (node.0.clone(), node.1.clone(), volume);
            let mut rows = self.rows.prefix(&place)?;
            if let Some(after) = after {
                rows.skip_to(&key(&place, after));
            }
            names.volumes.push(rows.peekable());
        }
        Ok(names)
    }

    /// Returns the volumes at which a node has files; the empty text stands for files without a volume.
    fn volumes(&self, node: &(Text<ReplicaId>, Text<NodeId>)) -> Result<Vec<String>, DbError> {
        let mut volumes = Vec::new();
        let mut rows = self.rows.prefix(node)?;
        while let Some(row) = rows.next() {
            let ((replica, node, volume, name), ()) = row?;
            // No id of a volume has a zero byte: this is behind all names there, and before the next volume.
            let behind = format!("{volume}\0");
            volumes.push(volume);
            rows.skip_to(&(replica, node, behind, name));
        }
        Ok(volumes)
    }

    /// Returns the rows as they are now, to be compared with those of the files.
    pub(super) fn scan_places(
        &self,
    ) -> Result<impl Iterator<Item = Result<Key, DbError>> + '_, DbError> {
        Ok(self.rows.scan()?.map(|row| row.map(|(key, ())| key)))
    }
}

/// The names of files in order, merged from several volumes.
pub(super) struct Names<'a> {
    volumes: Vec<Peekable<Rows<'a, Key, ()>>>,
    after: Option<FileName>,
}

impl Iterator for Names<'_> {
    type Item = Result<FileName, DbError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let next = self.volumes.iter_mut().enumerate();
            let next = next.filter_map(|(at, rows)| match rows.peek()? {
                Ok(((_, _, _, Text(name)), ())) => Some((Some(name), at)),
                // An error comes before all names.
                Err(_) => Some((None, at)),
            });
            let (_, at) = next.min()?;
            let row = self.volumes.get_mut(at)?.next()?;
            match row {
                Ok((key, ())) if self.after.as_ref() == Some(&key.3.0) => {}
                row => return Some(row.map(|((_, _, _, Text(name)), ())| name)),
            }
        }
    }
}

/// The number and a sum of rows of the index: two sides compare them, each in its own order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlaceSum {
    count: u64,
    sum: u64,
}

impl PlaceSum {
    /// Adds the places of a file.
    pub(super) fn add_record(&mut self, record: &FileRecord) {
        for place in places_of(record) {
            self.add_row(&key(&place, &record.name));
        }
    }

    /// Adds a row of the index.
    pub(super) fn add_row(&mut self, row: &Key) {
        let (replica, node, volume, name) = row;
        let mut hasher = DefaultHasher::new();
        (&replica.0, &node.0, volume, &name.0).hash(&mut hasher);
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

impl Admin {
    /// Makes the index of places where it is not whole.
    pub(super) fn index_places(&self) -> Result<(), DbError> {
        let Places { rows, numbers } = &self.places;
        if numbers.get(&WHOLE.to_owned())?.is_some() {
            return Ok(());
        }
        // Rows that an interrupted build has left may be wrong by now.
        let mut batch = self.database.batch();
        for (count, key) in (1..).zip(self.places.scan_places()?) {
            batch.delete(rows, &key?)?;
            self.commit_full(&mut batch, count)?;
        }
        batch.commit()?;
        let add = |batch: &mut ChangeBatch, row: &super::AdminRow| {
            let record = &row.record;
            let nowhere = BTreeSet::new();
            let places = places_of(record).collect();
            self.places
                .change_places(batch, &record.name, &nowhere, &places)
        };
        let files = self.index_rows(add, |batch| batch.put(numbers, &WHOLE.to_owned(), &1))?;
        if files > 0 {
            tracing::info!(files, "the index of the places of files is made");
        }
        Ok(())
    }

    /// Corrects an index that is not what the rows say. Returns the number of entries that differed.
    pub(super) fn compare_places(
        &self,
        rows: PlaceSum,
        index: PlaceSum,
    ) -> Result<u64, AdminError> {
        if rows == index {
            return Ok(0);
        }
        let _unchanged = self.numbering();
        let differed = self.correct_places()?;
        if differed == 0 {
            // A change since then has corrected it.
            return Ok(0);
        }
        if self.correct_places()? > 0 {
            return Err(AdminError::Places(self.database.path().to_owned()));
        }
        tracing::warn!(
            entries = differed,
            "the index of the places of files differed from the rows of the files, and is corrected; nothing is lost: the \
             index is derived from the rows"
        );
        Ok(differed)
    }

    /// Makes every entry of the index what the rows say. Returns the number of those that differed. The caller lets
    /// nobody change anything meanwhile.
    fn correct_places(&self) -> Result<u64, DbError> {
        let rows = &self.places.rows;
        let mut batch = self.database.batch();
        let mut differed = 0;
        for row in self.list_files(None)? {
            let record = row?.record;
            for place in places_of(&record) {
                let key = key(&place, &record.name);
                if rows.get(&key)?.is_none() {
                    batch.put(rows, &key, &())?;
                    differed += 1;
                    self.commit_full(&mut batch, differed)?;
                }
            }
        }
        for entry in self.places.scan_places()? {
            let entry = entry?;
            let row = self.file(&entry.3.0)?;
            let is_there = row.is_some_and(|row| {
                let mut places = places_of(&row.record);
                places.any(|place| key(&place, &row.record.name) == entry)
            });
            if !is_there {
                batch.delete(rows, &entry)?;
                differed += 1;
                self.commit_full(&mut batch, differed)?;
            }
        }
        batch.commit()?;
        Ok(differed)
    }

    /// Commits the batch if it is full after this number of changes, and begins the next one.
    fn commit_full(&self, batch: &mut ChangeBatch, changes: u64) -> Result<(), DbError> {
        if changes.is_multiple_of(BATCH) {
            std::mem::replace(batch, self.database.batch()).commit()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
