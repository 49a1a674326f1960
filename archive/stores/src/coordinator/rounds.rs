//! The rounds of the coordinator: which decisions are written together, and when.

use std::time::Duration;

use archive_ledger::admin::AdminError;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::act::FileDecision;
use super::{Coordinator, CoordinatorError, Step, Wake};

/// The most messages that are taken in one round, and the most decisions that may wait.
const ROUND: usize = 256;

/// The time that a decision that nobody waits for may stay in memory, to be written with others.
const DEFERRED: Duration = Duration::from_millis(5);

/// Decisions that are not written yet, and until when they may wait.
type Deferral = Option<(Vec<FileDecision>, Instant)>;

impl Coordinator {
    /// Runs until every sender of messages is gone or `stop` is cancelled. Blocks: for a thread of its own.
    pub fn run_rounds(mut self, runtime: &Handle, stop: &CancellationToken) -> Step<()> {
        loop {
            match self.run_while_there_is_room(runtime, stop) {
                Err(CoordinatorError::Admin(full)) if full.is_full_disk() => {
                    if !self.wait_for_room(&full, runtime, stop)? {
                        return Ok(());
                    }
                }
                ended => return ended,
            }
        }
    }

    fn run_while_there_is_room(&mut self, runtime: &Handle, stop: &CancellationToken) -> Step<()> {
        self.resume_files()?;
        let mut deferred: Deferral = None;
        loop {
            let woken = match &deferred {
                None => Ok(runtime.block_on(self.wait(stop))),
                // The time of the machine: it is the cost of a sync that is saved, whatever clock the archive goes by.
                Some((_, until)) => runtime
                    .block_on(async { tokio::time::timeout_at(*until, self.wait(stop)).await }),
            };
            let mut round = match woken {
                Ok(Some(first)) => vec![first],
                Ok(None) => break,
                Err(_elapsed) => Vec::new(),
            };
            while round.len() < ROUND
                && let Ok(message) = self.parts.messages.try_recv()
            {
                round.push(Wake::Message(message));
            }
            deferred = self.do_round(round, deferred)?;
        }
        if let Some((decided, _)) = deferred {
            self.remember(decided)?;
        }
        Ok(self.parts.admin.write_stamp().map_err(AdminError::from)?)
    }

    /// Takes one round: loads files into memory, decides, remembers all decisions in one synced batch, then acts.
    /// Returns the decisions that can wait for the next round.
    ///
    /// Files give up their places in memory only before anything is decided, or after it was remembered: a decision
    /// about a file lives in the file's entry until then.
    pub(super) fn do_round(&mut self, mut round: Vec<Wake>, deferred: Deferral) -> Step<Deferral> {
        let now = self.parts.clock.now();
        let (mut decided, until) =
            deferred.unwrap_or_else(|| (Vec::new(), Instant::now() + DEFERRED));
        if self.paging.is_due(now) {
            self.remember(std::mem::take(&mut decided))?;
            self.page_in(now, &mut decided)?;
        }
        // Timers that are due ring in every round, however many messages come.
        let due = self.timers.iter().take_while(|(at, _)| *at <= now);
        round.extend(due.map(|(_, name)| Wake::Timer(name.clone())));
        for wake in round {
            self.decide(wake, &mut decided)?;
        }
        let is_quiet = self.waiting.is_empty() && decided.iter().all(FileDecision::is_quiet);
        if is_quiet && !decided.is_empty() && decided.len() < ROUND && Instant::now() < until {
            return Ok(Some((decided, until)));
        }
        self.remember(decided)?;
        Ok(None)
    }

    /// Remembers what was decided, acts, and tells the callers that wait for it.
    fn remember(&mut self, decided: Vec<FileDecision>) -> Step<()> {
        self.act_on_decisions(decided)?;
        for done in self.waiting.drain(..) {
            // The caller may have gone away.
            _ = done.send(());
        }
        Ok(())
    }

    /// Resumes files that were on their way after a start, some at a time.
    pub(super) fn resume_files(&mut self) -> Step<()> {
        self.parts.admin.count_rows(drop)?;
        self.paging.begin_paging(self.parts.clock.now());
        Ok(())
    }

    async fn wait(&mut self, stop: &CancellationToken) -> Option<Wake> {
        let timer = self.timers.first().cloned();
        let timer = timer.map(|(at, name)| (at, Wake::Timer(name)));
        let page = self.paging.next_due().map(|at| (at, Wake::Page));
        let first = timer.into_iter().chain(page).min_by_key(|(at, _)| *at);
        let due = async {
            match first {
                None => std::future::pending().await,
                Some((at, wake)) => {
                    let pause = at.duration_since(self.parts.clock.now());
                    self.parts
                        .clock
                        .sleep(Duration::try_from(pause).unwrap_or_default())
                        .await;
                    wake
                }
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            message = self.parts.messages.recv() => message.map(Wake::Message),
            wake = due => Some(wake),
        }
    }
}
