//! The feed: every change of which files the archive has, numbered without holes, in the batch of the decision.
//!
//! The rows of the feed are kept permanently: one for each decision, some 120 bytes beside a file's own row of a
//! kilobyte or more. Admin data that were restored have no rows; followers begin with a listing then.
//!
//! A number alone does not name a change: where admin data are restored, or put back from a backup, other changes get
//! the same numbers. So each position has a lineage, a hash over the database's identity and every change up to there.
//!
//! # Errors
//!
//! Every function fails when the tables cannot be read or written; no change is left out then.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;

use archive_db::{ChangeBatch, Database, DbError, Table, TableValue};
use archive_decisions::store::FeedState;
use archive_model::{ChangeKind, FeedChange, FeedFile, FeedPosition, FileName};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::Admin;
use super::schema::FEED;

/// The row of one change; its key is the number of the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ChangeRow {
    kind: ChangeKind,
    file: FeedFile,
    lineage: u64,
}

impl TableValue for ChangeRow {}

impl ChangeRow {
    fn into_change(self, number: u64) -> FeedChange {
        let lineage = self.lineage;
        FeedChange {
            position: FeedPosition { number, lineage },
            kind: self.kind,
            file: self.file,
        }
    }
}

/// The feed of admin data that are open.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    rows: Table<u64, ChangeRow>,
    /// The position before the first change.
    begin: FeedPosition,
    /// The position behind the last change that was committed. Changed while the lines of the trail are numbered only.
    committed: Arc<Mutex<FeedPosition>>,
    /// The position behind the last change that may be announced to followers: a power cut does not take it away.
    announced: watch::Sender<FeedPosition>,
}

/// The state of each file that changes, before and after.
pub(super) type Transitions = BTreeMap<FileName, (FeedState, FeedState)>;

impl Feed {
    pub(super) fn open(database: &Database) -> Result<Self, DbError> {
        let rows: Table<u64, ChangeRow> = database.table(FEED)?;
        let begin = FeedPosition {
            number: 0,
            lineage: short(Sha256::new().chain_update(database.identity())),
        };
        let last = rows.last()?;
        let end = last.map_or(begin, |(number, row)| row.into_change(number).position);
        Ok(Self {
            rows,
            begin,
            committed: Arc::new(Mutex::new(end)),
            announced: watch::Sender::new(begin),
        })
    }

    /// Adds rows for the changes that have to be announced to followers, and returns the position behind them. The
    /// caller lets nobody else number rows until they are committed.
    pub(super) fn write_change(
        &self,
        batch: &mut ChangeBatch,
        transitions: Transitions,
    ) -> Result<FeedPosition, DbError> {
        let mut end = self.committed_position();
        for (before, after) in transitions.into_values() {
            let Some((kind, file)) = FeedState::feed_change(before, after) else {
                continue;
            };
            end = FeedPosition {
                number: end.number.saturating_add(1),
                lineage: next_lineage(end.lineage, kind, &file),
            };
            let row = ChangeRow {
                kind,
                file,
                lineage: end.lineage,
            };
            batch.put(&self.rows, &end.number, &row)?;
        }
        Ok(end)
    }

    /// Notes that the rows up to `end` are committed.
    pub(super) fn set_committed(&self, end: FeedPosition) {
        *self.end() = end;
    }

    /// Returns the position behind the last change that was committed.
    pub(super) fn committed_position(&self) -> FeedPosition {
        *self.end()
    }

    fn end(&self) -> parking_lot::MutexGuard<'_, FeedPosition> {
        self.committed.lock()
    }

    /// Announces the changes up to `end` to followers.
    pub(super) fn announce_position(&self, end: FeedPosition) {
        self.announced.send_if_modified(|announced| {
            let is_news = *announced != end && announced.number <= end.number;
            if is_news {
                *announced = end;
            }
            is_news
        });
    }
}

impl Admin {
    /// Returns the position up to which changes may be announced to followers, now and whenever that changes.
    pub fn follow_feed(&self) -> watch::Receiver<FeedPosition> {
        self.feed.announced.subscribe()
    }

    /// Whether the feed came through this position, and was announced at least up to it.
    pub fn is_in_feed(&self, position: FeedPosition) -> Result<bool, DbError> {
        let announced = *self.feed.announced.borrow();
        if position.number > announced.number {
            return Ok(false);
        }
        if position.number == 0 {
            return Ok(position == self.feed.begin);
        }
        let row = self.feed.rows.get(&position.number)?;
        Ok(row.is_some_and(|row| row.lineage == position.lineage))
    }

    /// Returns the changes after number `after` up to `end`, in their order.
    pub fn read_feed(
        &self,
        after: u64,
        end: u64,
    ) -> Result<impl Iterator<Item = Result<FeedChange, DbError>> + '_, DbError> {
        let rows = self.feed.rows.range((Excluded(after), Included(end)))?;
        Ok(rows.map(|row| row.map(|(number, row)| row.into_change(number))))
    }
}

/// Returns the lineage behind a change, given the one before it.
fn next_lineage(before: u64, kind: ChangeKind, file: &FeedFile) -> u64 {
    let hash = Sha256::new()
        .chain_update(before.to_be_bytes())
        .chain_update(kind.word())
        .chain_update([0])
        .chain_update(file.name.as_str())
        .chain_update([0])
        .chain_update(file.size.to_be_bytes())
        .chain_update(file.root.as_bytes());
    short(hash)
}

/// Returns the first 8 bytes of a hash.
fn short(hash: Sha256) -> u64 {
    let bytes = hash.finalize().into_iter().take(8);
    bytes.fold(0, |sum, byte| sum << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests;
