//! Files that a task waits for. Each is followed, so that its row is read once, and what is decided later is heard.

use std::collections::{BTreeMap, BTreeSet};

use archive_decisions::store::FileRecord;
use archive_model::FileName;
use archive_stores::mail::RecordChanges;

/// The files that are followed.
#[derive(Debug, Default)]
pub(super) struct FollowedFiles(BTreeMap<FileName, FollowedFile>);

/// A file that is followed.
#[derive(Debug)]
struct FollowedFile {
    changes: RecordChanges,
    /// The record as it was last remembered.
    record: FileRecord,
}

impl FollowedFiles {
    /// Adds a file, whose row was read after the coordinator knew of `changes`.
    pub(super) fn add(&mut self, record: FileRecord, changes: RecordChanges) {
        let file = FollowedFile { changes, record };
        self.0.insert(file.record.name.clone(), file);
    }

    /// Updates each file to its latest record, and keeps the files for whose records `is_kept` returns `true`.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&FileRecord) -> bool) {
        self.0.retain(|_, file| {
            if let Some(record) = file.changes.latest_record() {
                file.record = record;
            }
            is_kept(&file.record)
        });
    }

    pub(super) fn remove(&mut self, name: &FileName) {
        self.0.remove(name);
    }

    pub(super) fn contains(&self, name: &FileName) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn names(&self) -> BTreeSet<FileName> {
        self.0.keys().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
pub(super) mod testing {
    use archive_stores::mail::{CoordinatorMessage, Mail};
    use tokio::sync::watch;

    use super::*;

    /// The coordinator's end of a file that is followed.
    pub(in super::super) struct TestRecords(watch::Sender<Option<FileRecord>>);

    impl TestRecords {
        pub(in super::super) fn tell(&self, record: FileRecord) {
            self.0.send_replace(Some(record));
        }
    }

    /// Follows one file, whose record is told by hand from then on.
    pub(in super::super) async fn follow(record: FileRecord) -> (FollowedFiles, TestRecords) {
        let (mail, mut messages) = Mail::new();
        let changes = mail.follow_file(record.name.clone()).await.unwrap();
        let message = messages.recv().await.unwrap();
        let CoordinatorMessage::Follow { records, .. } = message else {
            panic!("{message:?}")
        };
        let mut files = FollowedFiles::default();
        files.add(record, changes);
        (files, TestRecords(records))
    }
}
