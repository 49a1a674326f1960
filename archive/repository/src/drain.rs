//! Volumes and nodes that are drained: every copy is brought to another place of the same replica, and then put aside.
//!
//! Owns the walk over what is recorded there, a bounded number of files at a time. What to do with one file is decided
//! in [`archive_decisions::drain`] from the admin data and from what the nodes say just now, before each step anew: so a
//! restart at any point goes on with whatever still lies there, and nothing needs to be remembered of the way. At the
//! end the node is asked for all that it has there; what is left of cut moves goes then, and what nobody knows is told.
//!
//! Bytes take the ordinary way into the replica, with the admission that they always had, and are proven while they pass:
//! what is damaged where it lay comes from another replica, and is filed as the anomaly that it is.
//!
//! Not promised: that a replica has other room. Where it has none, the drain says so and waits.

mod board;
mod follow;
mod one;
mod pass;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_daemon::{Step, Worker, WorkerError};
use archive_ledger::standing::{DrainRow, Now, Source};
use archive_model::ReplicaKind;
use archive_stores::transfer::Pace;
use tokio::sync::oneshot;

pub(crate) use board::Board;

use crate::people::People;
use crate::preserver::Preserver;
use follow::Change;
use pass::Passed;

/// How often it is looked what the nodes say of their modes.
const PAUSE: Duration = Duration::from_secs(1);

/// How long what could not leave is left alone, where nothing leaves any more.
const REST: Duration = Duration::from_secs(10);

/// How long what is drained is left alone: a file that was on its way when the drain began may still arrive there. And
/// how long old copies are which their node does not let go of within this hour.
const LONG_REST: Duration = Duration::from_mins(10);

/// The worker.
pub(crate) struct Drain {
    hands: Arc<Hands>,
    runs: BTreeMap<Source, Run>,
}

/// What drains need.
pub(crate) struct Hands {
    pub(crate) people: Arc<People>,
    pub(crate) own: Preserver,
    pub(crate) board: Board,
    pub(crate) pace: Pace,
}

/// One drain.
#[derive(Debug, Default)]
struct Run {
    pass: Option<oneshot::Receiver<Passed>>,
    /// Where the next pass begins.
    passed: Passed,
    /// How many passes in a row nothing has left.
    fruitless: u32,
    rests: Option<Instant>,
}

impl Drain {
    pub(crate) fn new(hands: Hands) -> Self {
        Self {
            hands: Arc::new(hands),
            runs: BTreeMap::new(),
        }
    }

    /// Takes up the drains that nodes speak of, and ends those that they do not speak of any more.
    async fn follow(&self) -> Result<(), WorkerError> {
        let hands = &self.hands;
        for spec in hands.own.in_service() {
            if spec.kind != ReplicaKind::Bitarchive {
                continue;
            }
            let Some(Ok(nodes)) = hands.own.nodes.nodes(&spec.id) else {
                continue;
            };
            let known: Vec<Source> = hands.now().draining.keys().cloned().collect();
            for change in follow::follow(&known, &spec.id, &nodes) {
                match change {
                    Change::Begin(source) => {
                        let row = DrainRow {
                            volume: source.volume.clone(),
                            since: hands.people.now(),
                            drained: None,
                        };
                        let what = format!("{source} is drained: its copies are to go elsewhere");
                        hands.remember(&source, Some(row), what).await?;
                    }
                    Change::End(source) => {
                        let what = format!("{source} is drained no more");
                        hands.remember(&source, None, what).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sees to one drain.
    async fn go_on(&mut self, source: &Source, row: &DrainRow) -> Result<(), WorkerError> {
        let hands = &self.hands;
        let run = self.runs.entry(source.clone()).or_default();
        if let Some(pass) = &mut run.pass {
            match pass.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => return Ok(()),
                // It failed, and was logged.
                Err(oneshot::error::TryRecvError::Closed) => run.passed = Passed::default(),
                Ok(passed) => {
                    match (passed.is_empty, row.drained) {
                        (true, None) => {
                            let held = hands.board.of(source).held;
                            let beside = if held.is_empty() {
                                String::new()
                            } else {
                                format!("; {held}")
                            };
                            let drained = DrainRow {
                                drained: Some(hands.people.now()),
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
            run.rests = Some(hands.own.calls.clock.instant() + rest);
        }
        let now = hands.own.calls.clock.instant();
        if run.rests.is_none_or(|until| until <= now) {
            run.pass = Some(pass::start(hands, source, run.passed.cursor.take()));
        }
        Ok(())
    }
}

impl Hands {
    fn now(&self) -> Arc<Now> {
        self.people.standing.now()
    }

    fn is_drained_still(&self, source: &Source) -> bool {
        self.now().draining.contains_key(source)
    }

    async fn remember(
        &self,
        source: &Source,
        row: Option<DrainRow>,
        what: String,
    ) -> Result<(), WorkerError> {
        tracing::info!(what, "drain");
        let line = self.people.line(self.own.who.to_string(), None, what);
        let (standing, source) = (Arc::clone(&self.people.standing), source.clone());
        let done =
            tokio::task::spawn_blocking(move || standing.set_draining(&source, row.as_ref(), line));
        Ok(done.await??)
    }
}

impl Worker for Drain {
    const NAME: &'static str = "drain";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        self.follow().await?;
        let now = self.hands.now();
        self.runs
            .retain(|source, _| now.draining.contains_key(source));
        self.hands
            .board
            .retain(|source| now.draining.contains_key(source));
        for (source, row) in &now.draining {
            self.go_on(source, row).await?;
        }
        Ok(Step::Idle(PAUSE))
    }
}

/// The pause after a pass. What could not leave is tried again soon, and the later the more often nothing has left.
fn rest(passed: &Passed, fruitless: u32) -> Duration {
    match (passed.is_empty, passed.waits) {
        (true, _) => LONG_REST,
        (false, _) if passed.is_braked => LONG_REST,
        (false, 0) => Duration::ZERO,
        (false, _) => {
            let rest = PAUSE.saturating_mul(2_u32.saturating_pow(fruitless));
            // To look at very many rows takes long: most of the time is for others.
            rest.min(REST).max(passed.took.saturating_mul(10))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a drain that goes on is kept waiting, or one that does not asks all the time.
    #[test]
    fn what_could_not_leave_rests_the_longer_the_less_leaves() {
        let waits = Passed {
            waits: 1,
            ..Passed::default()
        };
        let rests = [0, 1, 2, 3, 4, 5, u32::MAX].map(|fruitless| rest(&waits, fruitless).as_secs());
        assert_eq!(rests, [1, 2, 4, 8, 10, 10, 10]);
        let slow = Passed {
            took: Duration::from_secs(7),
            ..waits
        };
        assert_eq!(rest(&slow, 0).as_secs(), 70);
        assert_eq!(rest(&Passed::default(), 9), Duration::ZERO);
        let braked = Passed {
            is_braked: true,
            ..slow.clone()
        };
        assert_eq!(rest(&braked, 0), LONG_REST);
        let empty = Passed {
            is_empty: true,
            ..slow
        };
        assert_eq!(rest(&empty, 0), LONG_REST);
    }
}
