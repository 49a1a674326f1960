//! The loop in which a worker runs: step, rest, back off, pause, stop.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use archive_model::Backoff;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    Controls, FIRST_BACK_OFF, MAX_BACK_OFF, Worker, WorkerState, WorkerStep, WorkerStepError,
    rest_after,
};
use crate::clock::Clock;
use crate::tasks::with_causes;

pub(super) struct Runner {
    pub(super) controls: Arc<Controls>,
    pub(super) orders: watch::Receiver<Option<Instant>>,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
}

impl Runner {
    pub(super) async fn run_worker<W: Worker>(
        mut self,
        mut worker: W,
    ) -> Result<(), watch::error::RecvError> {
        let mut backoff = Backoff::new(FIRST_BACK_OFF, MAX_BACK_OFF);
        while !self.stop.is_cancelled() {
            let paused_until = *self.orders.borrow_and_update();
            let pause =
                paused_until.map(|until| until.saturating_duration_since(self.clock.instant()));
            if let Some(pause) = pause.filter(|pause| !pause.is_zero()) {
                self.controls
                    .enter(WorkerState::Paused(self.clock.time_after(pause)));
                self.rest(pause).await?;
                continue;
            }
            self.controls.enter(WorkerState::Working);
            let begin = self.clock.instant();
            let outcome = worker.step().await;
            let took = self.clock.elapsed_since(begin);
            let rest = self.record(outcome, took, &mut backoff);
            self.rest(rest).await?;
        }
        self.controls.enter(WorkerState::Stopped);
        Ok(())
    }

    /// Records how a step ended. Returns how long to rest now.
    fn record(
        &self,
        outcome: Result<WorkerStep, WorkerStepError>,
        took: Duration,
        backoff: &mut Backoff,
    ) -> Duration {
        let now = self.clock.now();
        let tranquility = self.controls.tranquility.load(Ordering::Relaxed);
        let rest_after = |pause| rest_after(took, tranquility, pause);
        match outcome {
            Ok(step) => {
                backoff.reset();
                let rest = match step {
                    WorkerStep::Again => rest_after(Duration::ZERO),
                    WorkerStep::Idle(pause) => rest_after(pause),
                };
                self.controls.status.send_modify(|status| {
                    status.steps += 1;
                    status.last_step = Some(now);
                    status.state = WorkerState::Resting(self.clock.time_after(rest));
                });
                rest
            }
            Err(error) => {
                let rest = rest_after(backoff.next_pause());
                let message = with_causes(&*error);
                self.controls.status.send_modify(|status| {
                    tracing::warn!(worker = &*status.name, error = message, retry_in = ?rest, "step failed");
                    status.errors += 1;
                    status.last_step = Some(now);
                    status.last_error = Some((now, message));
                    status.state = WorkerState::BackingOff(self.clock.time_after(rest));
                });
                rest
            }
        }
    }

    /// Waits until `rest` has passed, an order comes or all stops.
    async fn rest(&mut self, rest: Duration) -> Result<(), watch::error::RecvError> {
        if rest.is_zero() {
            // A step that never waits would keep the thread from all other tasks.
            tokio::task::yield_now().await;
            return Ok(());
        }
        tokio::select! {
            () = self.stop.cancelled() => Ok(()),
            () = self.clock.sleep(rest) => Ok(()),
            order = self.orders.changed() => order,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use jiff::Timestamp;

    use super::*;
    use crate::clock::ManualClock;
    use crate::tasks::{TaskError, Tasks};
    use crate::worker::{MAX_PAUSE, WorkerStatus, Workers};

    const SECOND: Duration = Duration::from_secs(1);
    const SOON: Duration = Duration::from_secs(20);

    /// A worker whose steps wait for the test to say how they end.
    struct ScriptedWorker(mpsc::UnboundedReceiver<Result<WorkerStep, WorkerStepError>>);

    impl Worker for ScriptedWorker {
        const NAME: &'static str = "told";

        async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
            self.0.recv().await.unwrap_or(Ok(WorkerStep::Idle(SOON)))
        }
    }

    struct Bench {
        hand: ManualClock,
        tasks: Tasks,
        workers: Workers,
        tell: mpsc::UnboundedSender<Result<WorkerStep, WorkerStepError>>,
        seen: watch::Receiver<WorkerStatus>,
    }

    fn bench() -> Bench {
        let hand = ManualClock::new(Timestamp::UNIX_EPOCH);
        let tasks = Tasks::new();
        let workers = Workers::new(hand.clock(), tasks.clone());
        let (tell, told) = mpsc::unbounded_channel();
        workers.spawn_worker(ScriptedWorker(told)).unwrap();
        let seen = workers.controls("told").unwrap().status.subscribe();
        Bench {
            hand,
            tasks,
            workers,
            tell,
            seen,
        }
    }

    impl Bench {
        fn end_step(&self, outcome: Result<WorkerStep, WorkerStepError>) {
            self.tell.send(outcome).unwrap();
        }

        async fn until(&mut self, wanted: impl Fn(&WorkerStatus) -> bool) -> WorkerStatus {
            let seen =
                tokio::time::timeout(SOON, self.seen.wait_for(|status| wanted(status))).await;
            seen.expect("the status in time").unwrap().clone()
        }
    }

    /// Lets the worker run as far as it can: the runtime of a test has one thread, and takes the tasks in turn.
    async fn settle() {
        for _turn in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Returns the end, which must come: a test that waits without end does not fail.
    async fn joined(tasks: &Tasks) -> Result<(), TaskError> {
        let end = tokio::time::timeout(SOON * 2, tasks.join_tasks(SOON)).await;
        end.expect("an end in time")
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// Fails if the pause does not grow with each error in a row, or errors before a success still count.
    #[tokio::test]
    async fn success_resets_backoff() {
        let mut bench = bench();
        for (errors, second) in [(1, 1), (2, 3), (3, 7)] {
            bench.end_step(Err("no disk".into()));
            let status = bench.until(|status| status.errors == errors).await;
            assert_eq!(status.state, WorkerState::BackingOff(at(second)));
            assert_eq!(status.last_error.unwrap().1, "no disk");
            bench.hand.wait_for_sleepers(1).await;
            bench.hand.advance(SECOND * (1 << (errors - 1)));
            bench
                .until(|status| status.state == WorkerState::Working)
                .await;
        }
        bench.end_step(Ok(WorkerStep::Again));
        bench.until(|status| status.steps == 1).await;
        bench.end_step(Err("again".into()));
        let status = bench.until(|status| status.errors == 4).await;
        assert_eq!(status.state, WorkerState::BackingOff(at(8)));
        assert_eq!(
            (status.last_step, status.last_error),
            (Some(at(7)), Some((at(7), "again".to_owned())))
        );
    }

    /// Fails if a worker can be paused for longer than a day, or stays paused when the pause is over.
    #[tokio::test]
    async fn a_pause_ends_by_itself_after_a_day() {
        let mut bench = bench();
        bench.end_step(Ok(WorkerStep::Idle(SECOND)));
        bench
            .until(|status| status.state == WorkerState::Resting(at(1)))
            .await;
        bench.hand.wait_for_sleepers(1).await;
        let end = bench.workers.pause_worker("told", Duration::MAX).unwrap();
        assert_eq!(end, at(24 * 3600));
        bench
            .until(|status| status.state == WorkerState::Paused(end))
            .await;
        bench.hand.wait_for_sleepers(1).await;
        bench.hand.advance(MAX_PAUSE.saturating_sub(SECOND));
        bench.end_step(Ok(WorkerStep::Idle(SECOND)));
        settle().await;
        assert_eq!(bench.workers.list_workers()[0].steps, 1, "still paused");
        bench.hand.advance_sleepers(1, SECOND).await;
        let status = bench.until(|status| status.steps == 2).await;
        assert_eq!(status.last_step, Some(end));
    }

    /// Fails if a worker that is paused, rests or backs off waits on although it was resumed.
    #[tokio::test]
    async fn resume_ends_pause_rest_and_back_off() {
        let mut bench = bench();
        bench.workers.pause_worker("told", SECOND).unwrap();
        bench
            .until(|status| matches!(status.state, WorkerState::Paused(_)))
            .await;
        bench.workers.resume_worker("told").unwrap();
        bench.end_step(Ok(WorkerStep::Idle(SECOND)));
        bench.until(|status| status.steps == 1).await;
        bench.workers.resume_worker("told").unwrap();
        bench.end_step(Err("x".into()));
        bench.until(|status| status.errors == 1).await;
        bench.workers.resume_worker("told").unwrap();
        bench
            .until(|status| status.state == WorkerState::Working)
            .await;
    }

    /// Each step takes two seconds of the manual clock.
    struct Slow(ManualClock, u8);

    impl Worker for Slow {
        const NAME: &'static str = "slow";

        async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
            self.0.advance(SECOND * 2);
            self.1 += 1;
            if self.1 == 3 {
                Ok(WorkerStep::Idle(SOON))
            } else {
                Ok(WorkerStep::Again)
            }
        }
    }

    /// Fails if a throttled worker does not rest in proportion to its last step, or the rest is added to a longer idle
    /// time.
    #[tokio::test]
    async fn tranquility_rests_in_proportion() {
        let bench = bench();
        bench
            .workers
            .for_part("node")
            .spawn_instance("1", Slow(bench.hand.clone(), 0))
            .unwrap();
        let controls = bench.workers.controls("node/slow/1").unwrap();
        bench.workers.throttle_worker("node/slow/1", 3).unwrap();
        let mut seen = controls.status.subscribe();
        let status = seen
            .wait_for(|status| status.steps == 1)
            .await
            .unwrap()
            .clone();
        assert_eq!(
            (status.state, status.tranquility),
            (WorkerState::Resting(at(2 + 6)), 3)
        );
        bench.hand.wait_for_sleepers(1).await;
        bench.hand.advance(SECOND * 6);
        seen.wait_for(|status| status.state == WorkerState::Resting(at(10 + 6)))
            .await
            .unwrap();
        bench.hand.wait_for_sleepers(1).await;
        bench.hand.advance(SECOND * 6);
        // The idle time of 20 s is longer than the 6 s of the throttle.
        seen.wait_for(|status| status.state == WorkerState::Resting(at(18 + 20)))
            .await
            .unwrap();
    }

    /// Fails if a stop cuts a step short, or its outcome is not recorded.
    #[tokio::test]
    async fn a_stop_lets_the_step_end() {
        let mut bench = bench();
        // One step is done, so the worker waits inside the next one.
        bench.end_step(Ok(WorkerStep::Again));
        bench
            .until(|status| status.steps == 1 && status.state == WorkerState::Working)
            .await;
        bench.tasks.stop_all();
        bench.end_step(Ok(WorkerStep::Idle(SOON)));
        joined(&bench.tasks).await.unwrap();
        let status = bench
            .until(|status| status.state == WorkerState::Stopped)
            .await;
        assert_eq!(status.steps, 2);
    }

    /// Fails if a stop waits until the rest of a worker is over.
    #[tokio::test]
    async fn a_stop_ends_a_rest() {
        let mut bench = bench();
        bench.end_step(Ok(WorkerStep::Idle(SOON)));
        bench.until(|status| status.steps == 1).await;
        bench.hand.wait_for_sleepers(1).await;
        bench.tasks.stop_all();
        joined(&bench.tasks).await.unwrap();
    }

    /// Fails if a worker whose step panics ends alone, so that its work stops unnoticed.
    #[tokio::test]
    async fn a_step_that_panics_stops_the_daemon() {
        struct Bad;
        impl Worker for Bad {
            const NAME: &'static str = "bad";
            async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
                std::future::ready(()).await;
                panic!("a bug");
            }
        }
        let bench = bench();
        bench.end_step(Ok(WorkerStep::Idle(SOON)));
        bench.workers.for_part("node").spawn_worker(Bad).unwrap();
        let error = joined(&bench.tasks).await.unwrap_err();
        assert_eq!(error.to_string(), "task `node/bad` panicked: a bug");
    }
}
