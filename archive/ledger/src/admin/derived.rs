//! The values derived from the row of a file and kept beside it: its part of the counts, its state for followers, its
//! places. And the making of indexes that are not whole.

use std::collections::{BTreeMap, BTreeSet};

use archive_db::{ChangeBatch, DbError};
use archive_decisions::store::{FeedState, FileRecord};
use archive_model::FileName;

use super::counts::FileCounts;
use super::places::{PlaceKey, places_of};
use super::{Admin, AdminRow};

/// The number of rows that are indexed in one batch.
const BATCH: usize = 10_000;

/// The values derived from the row of a file; by default those of a name without a row.
#[derive(Clone, Debug)]
pub(super) struct DerivedValues {
    pub(super) counted: FileCounts,
    pub(super) state: FeedState,
    pub(super) places: BTreeSet<PlaceKey>,
}

/// The derived values of each file that changes.
pub(super) type ChangedFiles = BTreeMap<FileName, DerivedValues>;

impl DerivedValues {
    pub(super) fn from_record(record: &FileRecord) -> Self {
        Self {
            counted: FileCounts::from_record(record),
            state: FeedState::from_record(record),
            places: places_of(record).collect(),
        }
    }
}

impl Default for DerivedValues {
    fn default() -> Self {
        Self {
            counted: FileCounts::default(),
            state: FeedState::Unknown,
            places: BTreeSet::new(),
        }
    }
}

impl Admin {
    /// Makes an index anew: adds every row, and at last the mark that it is whole. Returns the number of rows.
    pub(super) fn index_rows(
        &self,
        add: impl Fn(&mut ChangeBatch, &AdminRow) -> Result<(), DbError>,
        mark: impl FnOnce(&mut ChangeBatch) -> Result<(), DbError>,
    ) -> Result<u64, DbError> {
        let mut batch = self.database.batch();
        let mut waiting = 0;
        let mut count = 0_u64;
        for row in self.files.scan()? {
            add(&mut batch, &row?.1)?;
            waiting += 1;
            count += 1;
            if waiting == BATCH {
                std::mem::replace(&mut batch, self.database.batch()).commit()?;
                waiting = 0;
            }
        }
        mark(&mut batch)?;
        batch.commit()?;
        Ok(count)
    }
}
