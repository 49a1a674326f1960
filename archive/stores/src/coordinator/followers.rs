//! Callers who follow a file: they receive its record each time that a decision about it was remembered.

use std::collections::HashMap;

use archive_decisions::store::FileRecord;
use archive_model::FileName;
use tokio::sync::watch;

/// The callers, by the file that they follow.
#[derive(Debug, Default)]
pub(super) struct Followers(HashMap<FileName, Vec<watch::Sender<Option<FileRecord>>>>);

impl Followers {
    /// Adds a caller, and forgets those who do not listen any more.
    pub(super) fn add_follower(
        &mut self,
        name: FileName,
        records: watch::Sender<Option<FileRecord>>,
    ) {
        self.0.retain(|_, followers| {
            followers.retain(|follower| !follower.is_closed());
            !followers.is_empty()
        });
        self.0.entry(name).or_default().push(records);
    }

    /// Whether somebody follows the file.
    pub(super) fn has_followers(&self, name: &FileName) -> bool {
        self.0.contains_key(name)
    }

    /// Tells the followers of a file its record, as it was remembered.
    pub(super) fn tell_followers(&self, record: &FileRecord) {
        for follower in self.0.get(&record.name).into_iter().flatten() {
            follower.send_replace(Some(record.clone()));
        }
    }
}
