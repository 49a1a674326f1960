//! Drains of volumes and nodes: every copy is stored at another place of the same replica, and then moved into the
//! attic.
//!
//! Owns the walk over the copies that are recorded at a drained place, a bounded number of files at a time. The step
//! for one file is decided in [`archive_decisions::drain`] from the admin data and the present answers of the nodes,
//! before each step anew: so a restart at any point continues with the copies that are still there, and no progress has
//! to be stored. At the end the node is asked for all that it has in the place; the rest of interrupted moves is moved
//! then, and unknown files are reported.
//!
//! Bytes are stored in the replica in the ordinary way, with their old admission, and are proven while they pass:
//! damaged parts come from another replica, and are filed as anomalies.
//!
//! Not promised: that a replica has other room. If it has none, the drain reports that and waits.

mod board;
mod follow;
mod one;
mod pass;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_daemon::worker::rest_after;
use archive_daemon::{Worker, WorkerStep, WorkerStepError};
use archive_ledger::standing::{DrainRow, DrainSource, StandingSnapshot};
use archive_model::{FileName, ReplicaKind};
use archive_stores::transfer::Pace;
use parking_lot::Mutex;
use tokio::sync::oneshot;

pub(crate) use board::DrainBoard;

use crate::people::People;
use crate::preserver::Preserver;
use crate::tables::with_tables;
use follow::Change;
use pass::PassOutcome;

/// The time between two looks at the modes of the nodes.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause of a drain that does not progress.
const REST: Duration = Duration::from_secs(10);

/// The rest after a pass, as a multiple of the time that it took to count.
const REST_SHARE: u32 = 10;

/// The pause after a drained part is empty: a file that was being stored when the drain began may still arrive there.
/// Also the pause for old copies that their node does not release within this hour.
const LONG_REST: Duration = Duration::from_mins(10);

/// The worker of all drains.
pub(crate) struct Drain {
    hands: Arc<DrainContext>,
    runs: BTreeMap<DrainSource, DrainRun>,
}

/// The state that drains share.
pub(crate) struct DrainContext {
    pub(crate) people: Arc<People>,
    pub(crate) own: Preserver,
    pub(crate) board: DrainBoard,
    pub(crate) pace: Pace,
    /// The files of which the trail says already that their old copies are to be put aside.
    pub(crate) announced: Mutex<BTreeSet<FileName>>,
}

/// The run of one drain.
#[derive(Debug, Default)]
struct DrainRun {
    pass: Option<oneshot::Receiver<PassOutcome>>,
    /// The file behind which the next pass begins.
    passed: PassOutcome,
    /// The number of passes in a row without a file that left.
    fruitless: u32,
    rests: Option<Instant>,
}

impl Drain {
    pub(crate) fn new(hands: DrainContext) -> Self {
        Self {
            hands: Arc::new(hands),
            runs: BTreeMap::new(),
        }
    }

    /// Begins drains that nodes report, and ends drains that the nodes do not report any more.
    async fn follow(&self) -> Result<(), WorkerStepError> {
        let hands = &self.hands;
        for spec in hands.own.archive.in_service() {
            if spec.kind != ReplicaKind::Bitarchive {
                continue;
            }
            let Some(Ok(nodes)) = hands.own.archive.calls.replicas.last_nodes(&spec.id) else {
                continue;
            };
            let known: Vec<DrainSource> = hands.now().draining.keys().cloned().collect();
            for change in follow::follow_move(&known, &spec.id, &nodes) {
                match change {
                    Change::Begin(source) => {
                        let row = DrainRow {
                            volume: source.volume.clone(),
                            since: hands.own.archive.now(),
                            drained: None,
                        };
                        let what =
                            format!("{source} is being drained: its copies are moved elsewhere");
                        hands.remember(&source, Some(row), what).await?;
                    }
                    Change::End(source) => {
                        let what = format!("{source} is not drained any more");
                        hands.remember(&source, None, what).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Continues a drain.
    async fn advance(
        &mut self,
        source: &DrainSource,
        row: &DrainRow,
    ) -> Result<(), WorkerStepError> {
        let hands = &self.hands;
        let run = self.runs.entry(source.clone()).or_default();
        if let Some(pass) = &mut run.pass {
            match pass.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => return Ok(()),
                // The pass failed, and that was logged.
                Err(oneshot::error::TryRecvError::Closed) => run.passed = PassOutcome::default(),
                Ok(passed) => {
                    match (passed.is_empty, row.drained) {
                        (true, None) => {
                            let held = hands.board.drain_progress(source).held;
                            let beside = if held.is_empty() {
                                String::new()
                            } else {
                                format!("; {held}")
                            };
                            let drained = DrainRow {
                                drained: Some(hands.own.archive.now()),
                                ..row.clone()
                            };
                            let what = format!("{source} is drained, and may be retired{beside}");
                            hands.remember(source, Some(drained), what).await?;
                        }
                        (false, Some(_)) => {
                            let again = DrainRow {
                                drained: None,
                                ..row.clone()
                            };
                            let what = format!("{source} is not empty any more");
                            hands.remember(source, Some(again), what).await?;
                        }
                        (true, Some(_)) | (false, None) => {}
                    }
                    run.passed = passed;
                }
            }
            run.pass = None;
            run.fruitless = match run.passed.left {
                0 => run.fruitless.saturating_add(1),
                _ => 0,
            };
            let rest = rest(&run.passed, run.fruitless);
            run.rests = Some(hands.own.archive.calls.clock.instant() + rest);
        }
        let now = hands.own.archive.calls.clock.instant();
        if run.rests.is_none_or(|until| until <= now) {
            run.pass = Some(pass::start_pass(hands, source, run.passed.cursor.take()));
        }
        Ok(())
    }
}

impl DrainContext {
    fn now(&self) -> Arc<StandingSnapshot> {
        self.own.archive.standing.current_snapshot()
    }

    fn is_drained_still(&self, source: &DrainSource) -> bool {
        self.now().draining.contains_key(source)
    }

    async fn remember(
        &self,
        source: &DrainSource,
        row: Option<DrainRow>,
        what: String,
    ) -> Result<(), WorkerStepError> {
        tracing::info!(what, "drain");
        let line = self
            .own
            .archive
            .audit_line(self.own.who.to_string(), None, what);
        let standing = Arc::clone(&self.own.archive.standing);
        let source = source.clone();
        let done = with_tables(move || standing.set_draining(&source, row.as_ref(), line));
        Ok(done.await?)
    }
}

impl Worker for Drain {
    const NAME: &'static str = "drain";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        self.follow().await?;
        let now = self.hands.now();
        self.runs
            .retain(|source, _| now.draining.contains_key(source));
        self.hands
            .board
            .retain_drains(|source| now.draining.contains_key(source));
        for (source, row) in &now.draining {
            self.advance(source, row).await?;
        }
        Ok(WorkerStep::Idle(PAUSE))
    }
}

/// Returns the pause after a pass. Files that could not leave are tried again soon, and later each time that no file
/// left.
fn rest(passed: &PassOutcome, fruitless: u32) -> Duration {
    match (passed.is_empty, passed.waits) {
        (true, _) => LONG_REST,
        (false, _) if passed.is_braked => LONG_REST,
        (false, 0) => Duration::ZERO,
        (false, _) => {
            let rest = PAUSE.saturating_mul(2_u32.saturating_pow(fruitless));
            // To look at very many rows takes long.
            rest_after(passed.took, REST_SHARE, rest.min(REST))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a drain that progresses has to wait, or one that does not asks all the time.
    #[test]
    fn drain_without_progress_rests_longer() {
        let waits = PassOutcome {
            waits: 1,
            ..PassOutcome::default()
        };
        let rests = [0, 1, 2, 3, 4, 5, u32::MAX].map(|fruitless| rest(&waits, fruitless).as_secs());
        assert_eq!(rests, [1, 2, 4, 8, 10, 10, 10]);
        let slow = PassOutcome {
            took: Duration::from_secs(7),
            ..waits
        };
        assert_eq!(rest(&slow, 0).as_secs(), 70);
        assert_eq!(rest(&PassOutcome::default(), 9), Duration::ZERO);
        let braked = PassOutcome {
            is_braked: true,
            ..slow.clone()
        };
        assert_eq!(rest(&braked, 0), LONG_REST);
        let empty = PassOutcome {
            is_empty: true,
            ..slow
        };
        assert_eq!(rest(&empty, 0), LONG_REST);
    }
}
