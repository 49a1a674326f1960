//! Opening a frontier: what a power cut left half done is taken back, and what waits is counted.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use archive_db::{Database, DatabaseOptions, DbError, Table};
use harvest_policy::account::{QueueAccount, QueueBudget};
use harvest_policy::cost::CostPolicy;
use harvest_policy::queue_rules::QueueRules;
use harvest_policy::turns::{QueueNumber, QueueTurns};
use jiff::Timestamp;

use super::changes::{CountedUris, RecentKeys};
use super::rows::{BudgetRow, PendingOutcomeRow, QueueRow, RecordedPlace, SeenKeyRow, UndoRow};
use super::stamp::FrontierStamp;
use super::{Frontier, LONGEST_REST, PLACE, QueueSnapshot, VERSION};

/// The key of the only row of the table `key`.
const SEEN_KEY: u8 = 0;

/// The settings of a frontier.
#[derive(Clone, Debug)]
pub struct FrontierSettings {
    /// The limits of each queue.
    pub limits: QueueRules,
    /// The cost of a URI for its queue.
    pub cost: CostPolicy,
    /// The most fetches of one queue at a time.
    pub connections: u32,
    /// Random bytes, which a new frontier keeps: with them nobody can choose URIs that fall together.
    pub fresh_key: [u8; 32],
    /// The time of day at the first moment of this process, by which the rests of queues go on.
    pub begin: Timestamp,
}

/// The state of a frontier that was found, before anything is changed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingFrontier {
    /// The place up to which outcomes are durable; `None`: there was no frontier, and one was begun.
    pub durable: Option<RecordedPlace>,
}

/// The result of opening a frontier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumePoint {
    /// The place up to which the files of the crawl are recorded: all behind it is to be cut.
    pub place: RecordedPlace,
    /// The number of outcomes that were taken back.
    pub taken_back: u64,
}

/// Returns the stamp of the frontier in a directory, and what its database has to be.
fn stamp_and_options(directory: &Path) -> Result<(FrontierStamp, DatabaseOptions), DbError> {
    let tables = [
        "queue", "queues", "seen", "hosts", "pending", "place", "accepted", "held", "patterns",
        "key", "added", "rejected", "budgets", "rests", "running", "retries",
    ];
    let options = DatabaseOptions::new("frontier", VERSION, &tables).syncs_later();
    let (stamp, reach) = FrontierStamp::open(directory)?;
    let options = match reach {
        Some(reach) => options.with_reach(reach),
        None => options,
    };
    Ok((stamp, options))
}

impl Frontier {
    /// Opens the frontier in a directory, or begins one. `is_whole` says whether the files have all of what lies
    /// between two places; the first outcome of which they have not, and all behind it, are taken back: their URIs are
    /// fetched again.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database is damaged, of another version, or cannot be read.
    pub fn open_frontier(
        directory: &Path,
        settings: &FrontierSettings,
        is_whole: impl FnMut(&RecordedPlace, &RecordedPlace) -> bool,
    ) -> Result<(Self, ResumePoint), DbError> {
        Self::open_accepted(directory, settings, |_| Ok(()), is_whole)
    }

    /// Opens the frontier as [`Frontier::open_frontier`] does. `accept` is asked about what was found before anything is
    /// changed.
    ///
    /// # Errors
    ///
    /// As [`Frontier::open_frontier`]; the error of `accept`.
    pub fn open_accepted<E: From<DbError>>(
        directory: &Path,
        settings: &FrontierSettings,
        accept: impl FnOnce(&ExistingFrontier) -> Result<(), E>,
        mut is_whole: impl FnMut(&RecordedPlace, &RecordedPlace) -> bool,
    ) -> Result<(Self, ResumePoint), E> {
        let (stamp, options) = stamp_and_options(directory)?;
        let database = Database::open(directory, &options)?;
        let durable = if database.is_new() {
            None
        } else {
            // A flipped byte would show when its row is read, hours later.
            database.verify()?;
            let place: Table<u8, RecordedPlace> = database.table("place")?;
            Some(place.get(&PLACE)?.unwrap_or_default())
        };
        accept(&ExistingFrontier { durable })?;
        let keys: Table<u8, SeenKeyRow> = database.table("key")?;
        if keys.get(&SEEN_KEY)?.is_none() {
            let mut batch = database.batch();
            batch.put(&keys, &SEEN_KEY, &SeenKeyRow(settings.fresh_key))?;
            // A power cut that takes it takes all that came after it, too.
            batch.write()?;
        }
        let mut frontier = Self::load(database, stamp, settings)?;
        let resume = frontier.take_back_outcomes(&mut is_whole)?;
        frontier.recall_late_retries()?;
        frontier.read_queues()?;
        frontier.read_uris()?;
        Ok((frontier, resume))
    }

    /// Reads the queues of a frontier that no crawl has open, and changes nothing.
    ///
    /// # Errors
    ///
    /// [`DbError`] if there is no frontier, or its database is damaged, of another version, or cannot be read.
    pub fn read_snapshot(
        directory: &Path,
        settings: &FrontierSettings,
    ) -> Result<Vec<QueueSnapshot>, DbError> {
        let (stamp, options) = stamp_and_options(directory)?;
        let database = Database::open_to_read(directory, &options)?;
        let mut frontier = Self::load(database, stamp, settings)?;
        frontier.read_queues()?;
        frontier.read_uris()?;
        frontier.snapshot_queues()
    }

    fn load(
        database: Database,
        stamp: FrontierStamp,
        settings: &FrontierSettings,
    ) -> Result<Self, DbError> {
        let keys: Table<u8, SeenKeyRow> = database.table("key")?;
        let stored = keys.get(&SEEN_KEY)?;
        let seen_key = stored.map_or(settings.fresh_key, |row| row.0);
        let running: Table<u8, u64> = database.table("running")?;
        let budget_rows: Table<String, BudgetRow> = database.table("budgets")?;
        let mut budgets = HashMap::new();
        for row in budget_rows.scan()? {
            let (name, BudgetRow { objects, bytes }) = row?;
            budgets.insert(name, QueueBudget { objects, bytes });
        }
        Ok(Self {
            uris: database.table("queue")?,
            retries: database.table("retries")?,
            rows: database.table("queues")?,
            seen: database.table("seen")?,
            hosts: database.table("hosts")?,
            pending: database.table("pending")?,
            place: database.table("place")?,
            accepted: database.table("accepted")?,
            held: database.table("held")?,
            patterns: database.table("patterns")?,
            added: database.table("added")?,
            rejected: database.table("rejected")?,
            budget_rows,
            rests: database.table("rests")?,
            running_time: Duration::from_millis(running.get(&PLACE)?.unwrap_or_default()),
            running,
            database,
            rules: settings.limits.clone(),
            cost: settings.cost,
            budgets,
            stamp,
            begin: settings.begin,
            leased: HashSet::new(),
            seen_key,
            names: HashMap::new(),
            queues: Vec::new(),
            turns: QueueTurns::new(settings.connections),
            next_number: 0,
            next_pending: 0,
            waiting: 0,
            deferred: 0,
            first_due: None,
            recent: RecentKeys::default(),
            has_failures: false,
        })
    }

    /// Takes back the outcomes that the files do not have.
    fn take_back_outcomes(
        &mut self,
        is_whole: &mut impl FnMut(&RecordedPlace, &RecordedPlace) -> bool,
    ) -> Result<ResumePoint, DbError> {
        let mut place = self.durable_place()?;
        let mut lost: Vec<PendingOutcomeRow> = Vec::new();
        for row in self.pending.scan()? {
            let (_, row) = row?;
            if lost.is_empty() && is_whole(&place, &row.place) {
                place = row.place;
            } else {
                lost.push(row);
            }
        }
        let taken_back = lost.len() as u64;
        let mut batch = self.database.batch();
        let names = self.queue_names()?;
        let mut requeued_places = HashSet::new();
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
                        requeued_places.insert(key);
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
        if !requeued_places.is_empty() {
            // Such a URI waits in its queue or for a moment, whichever came since.
            for row in self.retries.scan()? {
                let (key, _) = row?;
                if requeued_places.contains(&key.1) {
                    batch.delete(&self.retries, &key)?;
                }
            }
        }
        batch.clear_table(&self.pending)?;
        batch.put(&self.place, &PLACE, &place)?;
        if taken_back > 0 {
            batch.commit()?;
        } else {
            batch.write()?;
        }
        Ok(ResumePoint { place, taken_back })
    }

    /// Returns the place up to which outcomes are durable.
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
            self.has_failures |= QueueAccount::from(row.account).errors > 0;
            if let Some(queue) = self.queue_mut(number) {
                queue.account = row.account.into();
                queue.is_retired = row.is_retired;
                let account = queue.account;
                queue.enqueued = account.successes.saturating_add(account.errors);
            }
        }
        Ok(())
    }

    /// Counts the URIs that wait, and finds the first one of each priority.
    fn read_uris(&mut self) -> Result<(), DbError> {
        let mut waiting = CountedUris::new();
        for row in self.uris.scan()? {
            let ((queue, urgency, cost, number), _) = row?;
            let of_queue = waiting.entry(QueueNumber(queue)).or_default();
            let (count, _) = of_queue.entry((urgency, cost)).or_insert((0, number));
            *count += 1;
            self.waiting += 1;
            self.next_number = self.next_number.max(number.saturating_add(1));
        }
        for (number, of_queue) in waiting {
            if let Some(queue) = self.queue_mut(number) {
                let count: u64 = of_queue.values().map(|(count, _)| count).sum();
                queue.enqueued = queue.enqueued.saturating_add(count);
                queue.waiting = of_queue;
                let is_retired = queue.is_retired;
                let precedence = queue.limits.precedence;
                self.turns.add_uri(number, precedence);
                if is_retired {
                    self.turns.retire_queue(number);
                }
            }
        }
        self.read_retries()?;
        self.read_rests()
    }

    /// Lets queues rest that were put off by an earlier process.
    fn read_rests(&mut self) -> Result<(), DbError> {
        let mut rests = Vec::new();
        for row in self.rests.scan()? {
            let (number, row) = row?;
            let until = Timestamp::from_millisecond(row.until).unwrap_or(self.begin);
            if until > self.begin {
                rests.push((QueueNumber(number), until));
            }
        }
        for (number, until) in rests {
            let until = self.moment_of(until).min(LONGEST_REST);
            self.turns.set_rest(number, until);
        }
        Ok(())
    }

    pub(super) fn add_queue(&mut self, name: String) -> QueueNumber {
        let count = u32::try_from(self.queues.len()).expect("fewer than 2^32 queues fit in memory");
        let number = QueueNumber(count);
        self.names.insert(name.clone(), number);
        let limits = self.rules.limits_of(&name);
        self.queues.push(super::Queue {
            name,
            limits,
            ..super::Queue::default()
        });
        number
    }
}
