//! The watch of the nodes of every replica: asks their monitors once a second, so that all readers see one answer.
//!
//! Owns the question. All monitors are asked at once, and a monitor that hangs delays none of the others. A monitor
//! that does not answer is silent, since its first question without an answer; its earlier answer is not shown any
//! more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Worker, WorkerStep, WorkerStepError};
use archive_model::{NodeState, ReplicaId};
use archive_rpc::CallError;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::Replicas;
use crate::settings::ReplicaSettings;
use crate::view::Question;

/// The time between two questions to each monitor.
const PAUSE: Duration = Duration::from_secs(1);

/// The answer of a monitor about its nodes, as they report themselves.
type Answer = Result<Vec<NodeState>, CallError>;

/// Asks the monitor of a replica.
type Ask = Box<dyn Fn(ReplicaId) -> BoxFuture<'static, Answer> + Send>;

/// A question under way: its replica, the question, and the answer.
type PendingAnswer = BoxFuture<'static, (ReplicaId, Question, Answer)>;

/// The worker that asks the monitors.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct NodeWatch {
    ask: Ask,
    replicas: Arc<Replicas>,
    ids: Vec<ReplicaId>,
    clock: Clock,
    /// The questions under way, and their replicas.
    asking: FuturesUnordered<PendingAnswer>,
    asked: BTreeSet<ReplicaId>,
}

impl NodeWatch {
    /// Creates a watch that has asked nothing.
    pub fn new(replicas: Arc<Replicas>, settings: &[ReplicaSettings]) -> Self {
        let monitors = Arc::clone(&replicas);
        let ask = move |replica: ReplicaId| {
            let monitors = Arc::clone(&monitors);
            async move { monitors.ask_monitor(&replica).await }.boxed()
        };
        let ids = settings.iter().map(|replica| replica.id.clone());
        Self::asking(Box::new(ask), replicas, ids.collect())
    }

    fn asking(ask: Ask, replicas: Arc<Replicas>, ids: Vec<ReplicaId>) -> Self {
        Self {
            ask,
            ids,
            clock: replicas.clock.clone(),
            replicas,
            asking: FuturesUnordered::new(),
            asked: BTreeSet::new(),
        }
    }

    /// Asks each monitor whose last question is over. A retired one is not asked any more, and its answer is removed.
    fn ask_all(&mut self) {
        let now = self.replicas.standing_now();
        for replica in &self.ids {
            if now.is_retired(replica) {
                self.replicas.view.remove_replica(replica);
            } else if self.asked.insert(replica.clone()) {
                let question = self.replicas.monitor_question(replica);
                let answer = (self.ask)(replica.clone());
                let replica = replica.clone();
                let asking = answer.map(|answer| (replica, question, answer));
                self.asking.push(asking.boxed());
            }
        }
    }
}

impl Worker for NodeWatch {
    const NAME: &'static str = "node-watch";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let begin = self.clock.instant();
        self.ask_all();
        loop {
            let took = self.clock.elapsed_since(begin);
            let rest = PAUSE.saturating_sub(took);
            let answered = self.clock.run_with_timeout(rest, self.asking.next());
            let Ok(Some((replica, question, answer))) = answered.await else {
                let took = self.clock.elapsed_since(begin);
                return Ok(WorkerStep::Idle(PAUSE.saturating_sub(took)));
            };
            self.asked.remove(&replica);
            // The readers learn from the view that a monitor is silent.
            drop(self.replicas.keep_answer(&replica, question, answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_daemon::clock::ManualClock;
    use archive_ledger::standing::StandingView;
    use archive_rpc::testing::TestAuthority;
    use archive_rpc::{CallErrorKind, RpcLimits};
    use jiff::Timestamp;
    use parking_lot::Mutex;

    use super::*;
    use crate::{Dialer, Silence};

    fn id(replica: &str) -> ReplicaId {
        replica.parse().unwrap()
    }

    fn replicas(hand: &ManualClock) -> Arc<Replicas> {
        let credentials = TestAuthority::new().credentials(&["repository/kb"]);
        let dialer = Dialer::new(credentials, RpcLimits::default());
        Arc::new(Replicas::new(&[], dialer, StandingView::default(), hand.clock()).unwrap())
    }

    fn start() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn node() -> NodeState {
        NodeState {
            alive: true,
            ..NodeState::unheard_node("n".parse().unwrap())
        }
    }

    /// Fails if a monitor that hangs delays the questions to the others, or is asked again while it hangs.
    #[tokio::test]
    async fn hanging_monitor_delays_no_other() {
        let hand = ManualClock::new(start());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let asks = Arc::clone(&asked);
        let ask = move |replica: ReplicaId| {
            asks.lock().push(replica.to_string());
            if replica == id("one") {
                std::future::pending().boxed()
            } else {
                std::future::ready(Ok(vec![node()])).boxed()
            }
        };
        let ids = vec![id("one"), id("two")];
        let replicas = replicas(&hand);
        let mut watch = NodeWatch::asking(Box::new(ask), Arc::clone(&replicas), ids);
        for _ in 0..2 {
            let (step, ()) = tokio::join!(watch.step(), hand.advance_sleepers(1, PAUSE));
            assert_eq!(step.unwrap(), WorkerStep::Idle(Duration::ZERO));
        }
        assert_eq!(*asked.lock(), ["one", "two", "two"]);
        assert!(replicas.last_reported_nodes(&id("one")).is_none());
        let nodes = replicas.last_in_service(&id("two")).unwrap().unwrap();
        assert_eq!(nodes, [node()]);
    }

    /// Fails if a monitor that does not answer looks as it did before, or as if it had just gone silent.
    #[tokio::test]
    async fn silent_monitor_is_silent_since_first_failure() {
        let hand = ManualClock::new(start());
        let answers = Mutex::new(vec![true, false, false, true]);
        let ask = move |_: ReplicaId| {
            let answer = if answers.lock().pop().unwrap() {
                Ok(vec![node()])
            } else {
                Err(CallErrorKind::Unavailable.to_error("refused"))
            };
            std::future::ready(answer).boxed()
        };
        let ids = vec![id("one")];
        let replicas = replicas(&hand);
        let mut watch = NodeWatch::asking(Box::new(ask), Arc::clone(&replicas), ids);
        let mut seen = Vec::new();
        for _ in 0..4 {
            assert_eq!(watch.step().await.unwrap(), WorkerStep::Idle(PAUSE));
            let heard = replicas.last_reported_nodes(&id("one")).unwrap();
            seen.push(heard.map(|nodes| nodes.to_vec()));
            hand.advance(PAUSE);
        }
        let silence = Silence {
            reason: "refused".to_owned(),
            since: start() + jiff::SignedDuration::from_secs(1),
        };
        let silent = || Err(silence.clone());
        assert_eq!(
            seen,
            [Ok(vec![node()]), silent(), silent(), Ok(vec![node()])]
        );
    }
}
