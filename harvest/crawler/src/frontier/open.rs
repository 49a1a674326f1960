//! Opening a frontier: what a power cut left half done is taken back, and what waits is counted.

use std::collections::HashMap;
use std::path::Path;

use archive_db::{Database, DbError, Options, Table};
use harvest_policy::account::QueueLimits;
use harvest_policy::turns::{QueueNumber, Turns};

use super::changes::{CountedLanes, RecentKeys};
use super::rows::{PendingRow, QueueRow, RecordedPlace, SeenKeyRow, UndoRow};
use super::{Frontier, PLACE, PRECEDENCE, VERSION};

/// The key of the only row of the table `key`.
const SEEN_KEY: u8 = 0;

/// The settings of a frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontierSettings {
    /// The limits of each queue.
    pub limits: QueueLimits,
    /// The most fetches of one queue at a time.
    pub connections: u32,
    /// Random bytes, which a new frontier keeps: with them nobody can choose URIs that fall together.
    pub fresh_key: [u8; 32],
}

/// The result of opening a frontier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumePoint {
    /// The place up to which the files of the crawl are recorded: all behind it is to be cut.
    pub place: RecordedPlace,
    /// The number of outcomes that were taken back.
    pub taken_back: u64,
}

impl Frontier {
    /// Opens the frontier in a directory, or begins one. `is_whole` says whether the files have all of what lies between two
    /// places; the first outcome of which they have not, and all behind it, are taken back: their URIs are fetched again.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database is damaged, of another version, or cannot be read.
    pub fn open(
        directory: &Path,
        settings: &FrontierSettings,
        mut is_whole: impl FnMut(&RecordedPlace, &RecordedPlace) -> bool,
    ) -> Result<(Self, ResumePoint), DbError> {
        let tables = [
            "queue", "queues", "seen", "hosts", "pending", "place", "accepted", "held", "patterns",
            "key",
        ];
        let options = Options::new("frontier", VERSION, &tables).syncs_later();
        let database = Database::open(directory, &options)?;
        let keys: Table<u8, SeenKeyRow> = database.table("key")?;
        let stored = keys.get(&SEEN_KEY)?;
        let seen_key = stored.as_ref().map_or(settings.fresh_key, |row| row.0);
        if stored.is_none() {
            let mut batch = database.batch();
            batch.put(&keys, &SEEN_KEY, &SeenKeyRow(seen_key))?;
            batch.commit()?;
        }
        let mut frontier = Self {
            uris: database.table("queue")?,
            rows: database.table("queues")?,
            seen: database.table("seen")?,
            hosts: database.table("hosts")?,
            pending: database.table("pending")?,
            place: database.table("place")?,
            accepted: database.table("accepted")?,
            held: database.table("held")?,
            patterns: database.table("patterns")?,
            database,
            limits: settings.limits,
            seen_key,
            names: HashMap::new(),
            queues: Vec::new(),
            turns: Turns::new(settings.connections),
            next_number: 0,
            next_pending: 0,
            waiting: 0,
            recent: RecentKeys::default(),
        };
        let resume = frontier.take_back(&mut is_whole)?;
        frontier.read_queues()?;
        frontier.read_uris()?;
        Ok((frontier, resume))
    }

    /// Takes back the outcomes that the files do not have.
    fn take_back(
        &mut self,
        is_whole: &mut impl FnMut(&RecordedPlace, &RecordedPlace) -> bool,
    ) -> Result<ResumePoint, DbError> {
        let mut place = self.durable_place()?;
        let mut lost: Vec<PendingRow> = Vec::new();
        for row in self.pending.scan()? {
            let (_, row) = row?;
            if lost.is_empty() && is_whole(&place, &row.place) {
                place = row.place;
            } else {
                lost.push(row);
            }
        }
        let taken_back = u64::try_from(lost.len()).unwrap_or(u64::MAX);
        let mut batch = self.database.batch();
        let names = self.queue_names()?;
        // The last one first, so that each queue ends up with its oldest account.
        for row in lost.into_iter().rev() {
            match row.undo {
                UndoRow::Uri {
                    key,
                    uri,
                    requeued,
                    account,
                } => {
                    batch.put(&self.uris, &key, &uri)?;
                    if let Some(key) = requeued {
                        batch.delete(&self.uris, &key)?;
                    }
                    if let Some(name) = names.get(&QueueNumber(key.0)) {
                        let row = QueueRow {
                            number: key.0,
                            account,
                            is_retired: false,
                        };
                        batch.put(&self.rows, name, &row)?;
                    }
                }
                UndoRow::Prerequisite(uri) => batch.delete(&self.hosts, &uri)?,
            }
        }
        batch.clear(&self.pending)?;
        batch.put(&self.place, &PLACE, &place)?;
        batch.commit()?;
        Ok(ResumePoint { place, taken_back })
    }

    /// Gives the place up to which outcomes are durable.
    ///
    /// # Errors
    ///
    /// [`DbError`] if it cannot be read.
    pub fn durable_place(&self) -> Result<RecordedPlace, DbError> {
        Ok(self.place.get(&PLACE)?.unwrap_or_default())
    }

    fn queue_names(&self) -> Result<HashMap<QueueNumber, String>, DbError> {
        let mut names = HashMap::new();
        for row in self.rows.scan()? {
            let (name, row) = row?;
            names.insert(QueueNumber(row.number), name);
        }
        Ok(names)
    }

    fn read_queues(&mut self) -> Result<(), DbError> {
        let mut rows = Vec::new();
        for row in self.rows.scan()? {
            rows.push(row?);
        }
        rows.sort_by_key(|(_, row)| row.number);
        for (name, row) in rows {
            let number = self.add_queue(name);
            if let Some(queue) = self.queue_mut(number) {
                queue.account = row.account.into();
                queue.is_retired = row.is_retired;
            }
        }
        Ok(())
    }

    /// Counts what waits, and finds where each lane begins.
    fn read_uris(&mut self) -> Result<(), DbError> {
        let mut waiting = CountedLanes::new();
        for row in self.uris.scan()? {
            let ((queue, urgency, cost, number), _) = row?;
            let lanes = waiting.entry(QueueNumber(queue)).or_default();
            let (count, _) = lanes.entry((urgency, cost)).or_insert((0, number));
            *count += 1;
            self.waiting += 1;
            self.next_number = self.next_number.max(number.saturating_add(1));
        }
        for (number, lanes) in waiting {
            if let Some(queue) = self.queue_mut(number) {
                queue.lanes = lanes;
                let is_retired = queue.is_retired;
                self.turns.has_uri(number, PRECEDENCE);
                if is_retired {
                    self.turns.retire(number);
                }
            }
        }
        Ok(())
    }

    pub(super) fn add_queue(&mut self, name: String) -> QueueNumber {
        let number = QueueNumber(u32::try_from(self.queues.len()).unwrap_or(u32::MAX));
        self.names.insert(name.clone(), number);
        self.queues.push(super::Queue {
            name,
            ..super::Queue::default()
        });
        number
    }
}
