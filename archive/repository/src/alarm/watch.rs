//! The worker that reads anomalies, counts and brakes, and reports incidents to the notifier.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_daemon::worker::rest_after;
use archive_daemon::{Notifier, Worker, WorkerStep, WorkerStepError};
use archive_db::DbError;
use archive_decisions::repair::policy::Automatic;
use archive_ledger::anomalies::Anomalies;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::{FILED, HELD, LATE, Tallies, held, late};
use crate::preserver::Preserver;

/// The time between two rounds.
const PAUSE: Duration = Duration::from_secs(10);

/// The rest after a round, as a multiple of the time that the round took.
const REST_SHARE: u32 = 4;

/// The worker that reports incidents of files.
pub(crate) struct Alarm {
    own: Preserver,
    notifier: Notifier,
    changes: watch::Receiver<u64>,
    /// The time that a file may take into every required replica.
    delay: Duration,
    started: Instant,
}

impl Alarm {
    pub(crate) fn new(own: Preserver, notifier: Notifier, delay: Duration) -> Self {
        let mut changes = own.archive.anomalies.watch_changes();
        // Anomalies from before the start are reported, too.
        changes.mark_changed();
        Self {
            changes,
            started: own.archive.calls.clock.instant(),
            own,
            notifier,
            delay,
        }
    }

    /// Reports the anomalies, if they have changed.
    async fn look_at_files(&mut self) -> Result<(), WorkerStepError> {
        if !self.changes.has_changed()? {
            return Ok(());
        }
        self.changes.mark_unchanged();
        let anomalies = Arc::clone(&self.own.archive.anomalies);
        let tallies = spawn_blocking(move || read(&anomalies)).await?;
        let tallies = tallies.inspect_err(|_unread| self.changes.mark_changed())?;
        let known = BTreeSet::new();
        self.notifier
            .declare_incidents(FILED, &tallies.wrong(), &known);
        Ok(())
    }

    fn look_at_brakes(&self) {
        let mut wrong = held(&self.own.list_brakes());
        if self.own.policy.automatic == Automatic::Off || self.own.archive.admin.counts().is_none()
        {
            // Automatic repairs are off anyway, or the number of files is not known yet.
            wrong.clear();
        }
        self.notifier
            .declare_incidents(HELD, &wrong, &BTreeSet::new());
    }

    fn look_at_late(&self) {
        let standing = self.own.archive.standing.current_snapshot();
        let Some(counts) = self.own.archive.admin.counts() else {
            return;
        };
        let now = self.own.archive.calls.clock.now();
        let before = now.checked_sub(self.delay).unwrap_or(now);
        let lag = self
            .own
            .archive
            .admin
            .count_late(before, |id| standing.is_excused(id));
        let below = standing.below_required(&counts);
        // The time since when a file lags is known from the start on only: until then no incident ends.
        let since = self.own.archive.calls.clock.elapsed_since(self.started);
        let unclear = (since <= self.delay).then(|| LATE.to_owned());
        let unclear = unclear.into_iter().collect();
        self.notifier
            .declare_incidents(LATE, &late(lag.as_ref(), below), &unclear);
    }
}

fn read(anomalies: &Anomalies) -> Result<Tallies, DbError> {
    let mut tallies = Tallies::default();
    for row in anomalies.list_rows()? {
        tallies.add(&row?);
    }
    Ok(tallies)
}

impl Worker for Alarm {
    const NAME: &'static str = "alarm";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let begin = self.own.archive.calls.clock.instant();
        self.look_at_files().await?;
        self.look_at_brakes();
        self.look_at_late();
        // With very many anomalies a round takes long.
        let took = self.own.archive.calls.clock.elapsed_since(begin);
        Ok(WorkerStep::Idle(rest_after(took, REST_SHARE, PAUSE)))
    }
}
