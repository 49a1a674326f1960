//! The schedule of checks: which check of which replica is due, and when. One of each kind runs at a time, and not all
//! replicas at once: a check of checksums that takes days does not delay the daily checks of files.
//!
//! The time of each check is stored, so that a restart neither repeats nor forgets one. A check that could not ask
//! every node is repeated sooner. A check that is due for longer than its period is overdue, and is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Worker, WorkerStep, WorkerStepError};
use archive_db::{DbError, Table, TableValue, Text};
use archive_model::{CheckKind, CheckStep, Finder, ReplicaId, ReplicaReport, time_after};
use archive_rpc::CallError;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use crate::checking::{CheckScope, CheckSelection};
use crate::preserver::{LookContext, Preserver};
use crate::settings::CheckSettings;
use crate::tables::with_tables;
use archive_ledger::admin::Admin;

/// The time between two looks at what is due.
const PAUSE: Duration = Duration::from_secs(1);

/// The part of its period after which a check is due again that was partial or failed.
const AGAIN: i32 = 24;

/// The kind of a check in its word, and its replica.
type CheckKey = (String, Text<ReplicaId>);

/// The last check of one replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastCheck {
    /// The time when the next check is due.
    due: Timestamp,
    /// The time when it ended, and whether every node could be asked.
    ended: Option<(Timestamp, bool)>,
}

impl TableValue for LastCheck {}

/// The worker that starts checks.
pub(crate) struct Schedule {
    own: Preserver,
    /// The periods of the kinds that are scheduled.
    periods: BTreeMap<CheckKind, SignedDuration>,
    table: Table<CheckKey, LastCheck>,
    /// The rows of the table that were read or written.
    last: BTreeMap<CheckKey, LastCheck>,
    /// The checks that run, by kind; each tells the row that it has stored.
    running: BTreeMap<CheckKind, oneshot::Receiver<(CheckKey, LastCheck)>>,
    /// The checks that were reported as overdue.
    overdue: BTreeSet<(CheckKind, ReplicaId)>,
}

impl Schedule {
    pub(crate) fn new(own: Preserver, settings: &CheckSettings) -> Result<Self, DbError> {
        let period = |kind: &CheckKind| {
            let period = match kind {
                CheckKind::Files => settings.files,
                CheckKind::Checksums => settings.checksums,
            };
            let period = SignedDuration::try_from(period?.duration()).ok();
            Some((*kind, period.filter(SignedDuration::is_positive)?))
        };
        Ok(Self {
            table: own.archive.admin.open_table("checks")?,
            periods: CheckKind::ALL.iter().filter_map(period).collect(),
            own,
            last: BTreeMap::new(),
            running: BTreeMap::new(),
            overdue: BTreeSet::new(),
        })
    }

    /// Returns the check of each kind that has been due for the longest time, if one is due. Sets the first time of new
    /// checks.
    fn due(&mut self) -> Result<BTreeMap<CheckKind, ReplicaId>, DbError> {
        let now = self.own.archive.calls.clock.now();
        let mut first_due = BTreeMap::new();
        let mut overdue = BTreeSet::new();
        for (kind, period) in self.periods.clone() {
            let mut least = Timestamp::MAX;
            let specs = self.own.archive.in_service();
            let count = specs.len();
            for (index, spec) in specs.iter().enumerate() {
                let key = key(kind, &spec.id);
                match self.last_check(&key)? {
                    Some(turn) if turn.due <= now => {
                        if is_overdue(turn.due, period, now) {
                            overdue.insert((kind, spec.id.clone()));
                        }
                        if turn.due < least {
                            least = turn.due;
                            first_due.insert(kind, spec.id.clone());
                        }
                    }
                    // The period was made shorter in the meantime.
                    Some(turn) if turn.due > time_after(now, period) => {
                        self.put(key, first(now, period, index, count), turn.ended)?;
                    }
                    Some(_) => {}
                    None => self.put(key, first(now, period, index, count), None)?,
                }
            }
        }
        self.tell_overdue(overdue);
        Ok(first_due)
    }

    /// Shows the number of overdue checks, and logs each once.
    fn tell_overdue(&mut self, overdue: BTreeSet<(CheckKind, ReplicaId)>) {
        for (kind, replica) in overdue.difference(&self.overdue) {
            tracing::warn!(
                %replica,
                kind = kind.as_str(),
                "a scheduled check is overdue by more than its period; see whether the last one still runs, or make the periods of \
                 `[checks]` longer"
            );
        }
        for kind in CheckKind::ALL {
            let count = overdue.iter().filter(|(of, _)| of == kind).count();
            self.own.instruments.show_overdue(kind.as_str(), count);
        }
        self.overdue = overdue;
    }

    /// Returns the last check of a replica. Its row is read once.
    fn last_check(&mut self, key: &CheckKey) -> Result<Option<LastCheck>, DbError> {
        if let Some(last) = self.last.get(key) {
            return Ok(Some(last.clone()));
        }
        let last = self.table.get(key)?;
        self.last
            .extend(last.clone().map(|last| (key.clone(), last)));
        Ok(last)
    }

    fn put(
        &mut self,
        key: CheckKey,
        due: Timestamp,
        ended: Option<(Timestamp, bool)>,
    ) -> Result<(), DbError> {
        let last = LastCheck { due, ended };
        put(&self.own.archive.admin, &self.table, &key, &last)?;
        self.last.insert(key, last);
        Ok(())
    }

    /// Runs a check in a task of its own.
    fn start(&mut self, kind: CheckKind, replica: ReplicaId) {
        let (over, running) = oneshot::channel();
        self.running.insert(kind, running);
        let own = self.own.clone();
        let table = self.table.clone();
        let period = self.periods.get(&kind).copied();
        let tasks = self.own.archive.tasks.clone();
        let stop = tasks.stop_token();
        tasks.spawn_once("scheduled-check", async move {
            let checking = Box::pin(run(&own, kind, &replica));
            let checked = tokio::select! {
                () = stop.cancelled() => None,
                checked = checking => Some(checked),
            };
            let is_whole = match &checked {
                Some(Ok(report)) => report.as_ref().is_some_and(|report| report.gaps.is_empty()),
                Some(Err(error)) => {
                    tracing::warn!(%replica, %error, "a scheduled check failed");
                    false
                }
                // The check is due again at the next start.
                None => return,
            };
            let now = own.archive.calls.clock.now();
            let period = period.unwrap_or(SignedDuration::from_hours(24));
            let pause = if is_whole { period } else { period / AGAIN };
            let last = LastCheck {
                due: time_after(now, pause),
                ended: Some((now, is_whole)),
            };
            let admin = own.archive.admin.clone();
            let row = (key(kind, &replica), last);
            let kept = with_tables(move || {
                put(&admin, &table, &row.0, &row.1)?;
                Ok(row)
            });
            match kept.await {
                // Without it, the check is due again.
                Err(error) => tracing::error!(%error, "cannot store the time of a scheduled check"),
                Ok(row) => {
                    if over.send(row).is_err() {
                        tracing::debug!("the schedule has stopped");
                    }
                }
            }
        });
    }
}

/// Runs a check of one replica, and returns its report.
async fn run(
    own: &Preserver,
    kind: CheckKind,
    replica: &ReplicaId,
) -> Result<Option<ReplicaReport>, CallError> {
    let scope = CheckScope {
        kind,
        challenges: false,
        selection: CheckSelection::default(),
        replica: Some(replica.clone()),
        look_context: LookContext {
            who: Arc::clone(&own.who),
            finder: Finder::ScheduledCheck,
            is_second: false,
        },
    };
    let (steps, mut told) = mpsc::channel(16);
    let checking = async {
        let checked = own.check_replica(&scope, &steps).await;
        drop(steps);
        checked
    };
    let listening = async {
        let mut last = None;
        while let Some(step) = told.recv().await {
            match step {
                CheckStep::Report(report) => last = Some(report),
                CheckStep::Progress(_) | CheckStep::Anomaly(_) => {}
            }
        }
        Ok(last)
    };
    let ((), report) = tokio::try_join!(checking, listening)?;
    if let Some(report) = &report {
        let gaps = report.gaps.len();
        let files = report.files;
        let intact = report.intact;
        let anomalies: u64 = report.anomalies.values().sum();
        tracing::info!(%replica, files, intact, gaps, anomalies, "checked");
    }
    Ok(report)
}

impl Worker for Schedule {
    const NAME: &'static str = "schedule";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let last = &mut self.last;
        self.running.retain(|_, running| match running.try_recv() {
            Err(TryRecvError::Empty) => true,
            Err(TryRecvError::Closed) => false,
            Ok((key, ended)) => {
                last.insert(key, ended);
                false
            }
        });
        for (kind, replica) in self.due()? {
            if !self.running.contains_key(&kind) {
                self.start(kind, replica);
            }
        }
        Ok(WorkerStep::Idle(PAUSE))
    }
}

fn key(kind: CheckKind, replica: &ReplicaId) -> CheckKey {
    (kind.to_string(), Text(replica.clone()))
}

fn put(
    admin: &Admin,
    table: &Table<CheckKey, LastCheck>,
    key: &CheckKey,
    last: &LastCheck,
) -> Result<(), DbError> {
    let mut changes = admin.begin_changes();
    changes.batch().put(table, key, last)?;
    admin.commit_changes(changes)
}

/// Returns when the first check of the replica with this index is due: spread over the period.
fn first(now: Timestamp, period: SignedDuration, index: usize, count: usize) -> Timestamp {
    let part = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let pause = (period / part(count).max(1)).saturating_mul(part(index).saturating_add(1));
    time_after(now, pause.min(period))
}

/// Returns whether a check that was due at this time should have been repeated by now.
fn is_overdue(due: Timestamp, period: SignedDuration, now: Timestamp) -> bool {
    time_after(due, period) < now
}

#[cfg(test)]
mod tests {
    use archive_daemon::Period;
    use archive_daemon::clock::ManualClock;

    use super::*;
    use crate::preserver::testing::preserver;

    /// Fails if the checks of files wait while one of checksums runs, or if two of checksums run at once.
    #[tokio::test]
    async fn check_of_files_runs_beside_checksums() {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
        let period = Some(Period::from_secs(3600));
        let settings = CheckSettings {
            files: period,
            checksums: period,
        };
        let mut schedule = Schedule::new(preserver(&admin, &hand), &settings).unwrap();
        schedule.step().await.unwrap();
        assert!(schedule.running.is_empty(), "not due yet");
        let (still, running) = oneshot::channel();
        schedule.running.insert(CheckKind::Checksums, running);
        hand.advance(Duration::from_hours(1));
        schedule.step().await.unwrap();
        assert!(schedule.running.contains_key(&CheckKind::Files));
        assert!(!still.is_closed(), "no other check of checksums began");
    }

    /// Fails if a kind is scheduled that is switched off, or is stored under another word than before, so that a
    /// restart forgets when each check is due.
    #[tokio::test]
    async fn stored_checks_bear_the_word_of_their_kind() {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
        let day = Some(Period::from_secs(86_400));
        let never = Some(Period::from_secs(0));
        for (files, checksums, word) in [(day, never, "files"), (None, day, "checksums")] {
            let settings = CheckSettings { files, checksums };
            let mut schedule = Schedule::new(preserver(&admin, &hand), &settings).unwrap();
            schedule.step().await.unwrap();
            let words = schedule.last.keys().map(|(word, _)| word.as_str());
            assert_eq!(words.collect::<Vec<_>>(), [word; 2]);
        }
    }

    /// Fails if a check that waits for its turn is called overdue, or one that misses a whole period is not.
    #[test]
    fn check_is_overdue_after_a_whole_period() {
        let due = Timestamp::from_second(1_000_000_000).unwrap();
        let day = SignedDuration::from_hours(24);
        let hours = |hours| due.checked_add(SignedDuration::from_hours(hours)).unwrap();
        assert!(!is_overdue(due, day, hours(23)));
        assert!(is_overdue(due, day, hours(25)));
        assert!(!is_overdue(Timestamp::MAX, day, hours(25)));
    }

    /// Fails if the first checks of all replicas are due at once.
    #[test]
    fn first_checks_are_spread_over_the_period() {
        let now = Timestamp::from_second(1_000_000_000).unwrap();
        let hours = |index| {
            let due = first(now, SignedDuration::from_hours(24), index, 3);
            due.duration_since(now).as_hours()
        };
        assert_eq!([0, 1, 2].map(hours), [8, 16, 24]);
        let max = first(Timestamp::MAX, SignedDuration::from_hours(24), 0, 0);
        assert_eq!(max, Timestamp::MAX, "the end of time is no panic");
    }
}
