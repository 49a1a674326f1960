//! The states of the nodes of every replica: asks their monitors once a second, and publishes the answers to all readers.
//!
//! Owns the question. All monitors are asked at once, and a monitor that hangs delays none of the others. A monitor
//! that does not answer is silent, since its first question without an answer; its earlier answer is not shown any
//! more.
//!
//! Not promised: that a node is as it was seen a second ago. A caller that changes something asks the monitor again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Step, Worker, WorkerError};
use archive_model::{NodeState, ReplicaId};
use archive_replicas::Replicas;
use archive_rpc::CallError;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::settings::ReplicaSettings;

/// The time between two questions to each monitor.
const PAUSE: Duration = Duration::from_secs(1);

/// The answer of a monitor about its nodes, as they report themselves.
type Answer = Result<Vec<NodeState>, CallError>;

/// Asks the monitor of a replica.
type Ask = Box<dyn Fn(ReplicaId) -> BoxFuture<'static, Answer> + Send>;

/// The last answer of a monitor.
type MonitorAnswer = Result<Arc<[NodeState]>, Silence>;

/// The last answers, of each replica that is in service.
type MonitorAnswers = BTreeMap<ReplicaId, MonitorAnswer>;

/// A monitor that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Silence {
    /// The reason why it counts as silent.
    pub(crate) reason: String,
    /// The time since when no question has had an answer.
    pub(crate) since: Timestamp,
}

/// The worker that asks the monitors.
pub(crate) struct NodeWatch {
    ask: Ask,
    replicas: Arc<Replicas>,
    ids: Vec<ReplicaId>,
    clock: Clock,
    /// The questions under way, and their replicas.
    asking: FuturesUnordered<BoxFuture<'static, (ReplicaId, Answer)>>,
    asked: BTreeSet<ReplicaId>,
    seen: watch::Sender<Arc<MonitorAnswers>>,
}

/// The last answers that the worker has seen; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct NodeView {
    replicas: Arc<Replicas>,
    seen: watch::Receiver<Arc<MonitorAnswers>>,
}

impl NodeWatch {
    /// Creates a watch without answers.
    pub(crate) fn new(replicas: Arc<Replicas>, settings: &[ReplicaSettings], clock: Clock) -> Self {
        let monitors = Arc::clone(&replicas);
        let ask = move |replica: ReplicaId| {
            let monitors = Arc::clone(&monitors);
            async move { monitors.heard(&replica).await }.boxed()
        };
        let ids = settings.iter().map(|replica| replica.id.clone());
        Self::asking(Box::new(ask), replicas, ids.collect(), clock)
    }

    fn asking(ask: Ask, replicas: Arc<Replicas>, ids: Vec<ReplicaId>, clock: Clock) -> Self {
        Self {
            ask,
            replicas,
            ids,
            clock,
            asking: FuturesUnordered::new(),
            asked: BTreeSet::new(),
            seen: watch::Sender::default(),
        }
    }

    /// Returns the view on the last answers.
    pub(crate) fn view(&self) -> NodeView {
        NodeView {
            replicas: Arc::clone(&self.replicas),
            seen: self.seen.subscribe(),
        }
    }

    /// Asks each monitor whose last question is over. A retired one is not asked any more, and its answer is removed.
    fn ask_all(&mut self) {
        let now = self.replicas.now();
        for replica in &self.ids {
            if now.is_retired(replica) {
                self.seen.send_if_modified(|seen| {
                    seen.contains_key(replica) && Arc::make_mut(seen).remove(replica).is_some()
                });
            } else if self.asked.insert(replica.clone()) {
                let (replica, answer) = (replica.clone(), (self.ask)(replica.clone()));
                self.asking
                    .push(answer.map(|answer| (replica, answer)).boxed());
            }
        }
    }

    /// Publishes the answer of a monitor, or that it is silent.
    fn saw(&mut self, replica: ReplicaId, answer: Answer) {
        self.asked.remove(&replica);
        let before = self.seen.borrow().get(&replica).cloned();
        let said = answer.map(Arc::from).map_err(|error| {
            let since = match before {
                Some(Err(silence)) => silence.since,
                Some(Ok(_)) | None => self.clock.now(),
            };
            let reason = error.reason;
            Silence { reason, since }
        });
        self.seen.send_modify(|seen| {
            Arc::make_mut(seen).insert(replica, said);
        });
    }
}

impl NodeView {
    /// Returns the nodes of a replica as they report themselves; `None` before the first answer, and if it is out of service.
    pub(crate) fn heard(&self, replica: &ReplicaId) -> Option<MonitorAnswer> {
        self.seen.borrow().get(replica).cloned()
    }

    /// Returns the nodes with marks for parts that are out of service now, and for ids that two parts have.
    pub(crate) fn nodes(&self, replica: &ReplicaId) -> Option<Result<Vec<NodeState>, Silence>> {
        let heard = self.heard(replica)?;
        Some(heard.map(|nodes| self.replicas.marked(replica, nodes.to_vec())))
    }

    /// Returns the nodes without those that are out of service, which may be switched off and are not missed.
    pub(crate) fn nodes_in_service(
        &self,
        replica: &ReplicaId,
    ) -> Option<Result<Vec<NodeState>, Silence>> {
        let mut nodes = self.nodes(replica)?;
        if let Ok(nodes) = &mut nodes {
            nodes.retain(|node| !node.is_retired());
        }
        Some(nodes)
    }
}

impl Worker for NodeWatch {
    const NAME: &'static str = "node-watch";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        let begin = self.clock.instant();
        self.ask_all();
        loop {
            let took = self.clock.since(begin);
            let rest = PAUSE.saturating_sub(took);
            let answered = self.clock.timeout(rest, self.asking.next());
            let Ok(Some((replica, answer))) = answered.await else {
                let took = self.clock.since(begin);
                return Ok(Step::Idle(PAUSE.saturating_sub(took)));
            };
            self.saw(replica, answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use archive_daemon::clock::ManualClock;
    use archive_ledger::admin::Admin;
    use archive_rpc::Kind;
    use archive_stores::coordinator::undriven;
    use archive_stores::scripted::id;

    use super::*;

    fn replicas(hand: &ManualClock) -> Arc<Replicas> {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        undriven(&admin, hand).transfers.calls.replicas
    }

    fn start() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn node() -> NodeState {
        NodeState {
            alive: true,
            ..NodeState::unheard("n".parse().unwrap())
        }
    }

    /// Fails if a monitor that hangs delays the questions to the others, or is asked again while it hangs.
    #[tokio::test]
    async fn hanging_monitor_delays_no_other() {
        let hand = ManualClock::new(start());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let asks = Arc::clone(&asked);
        let ask = move |replica: ReplicaId| {
            asks.lock().unwrap().push(replica.to_string());
            if replica == id("one") {
                std::future::pending().boxed()
            } else {
                std::future::ready(Ok(vec![node()])).boxed()
            }
        };
        let ids = vec![id("one"), id("two")];
        let mut watch = NodeWatch::asking(Box::new(ask), replicas(&hand), ids, hand.clock());
        let view = watch.view();
        for _ in 0..2 {
            let (step, ()) = tokio::join!(watch.step(), hand.advance_sleepers(1, PAUSE));
            assert_eq!(step.unwrap(), Step::Idle(Duration::ZERO));
        }
        assert_eq!(*asked.lock().unwrap(), ["one", "two", "two"]);
        assert!(view.heard(&id("one")).is_none());
        let nodes = view.nodes_in_service(&id("two")).unwrap().unwrap();
        assert_eq!(nodes, [node()]);
    }

    /// Fails if a monitor that does not answer looks as it did before, or as if it had just gone silent.
    #[tokio::test]
    async fn silent_monitor_is_silent_since_first_failure() {
        let hand = ManualClock::new(start());
        let answers = Mutex::new(vec![true, false, false, true]);
        let ask = move |_: ReplicaId| {
            let answer = if answers.lock().unwrap().pop().unwrap() {
                Ok(vec![node()])
            } else {
                Err(Kind::Unavailable.error("refused"))
            };
            std::future::ready(answer).boxed()
        };
        let ids = vec![id("one")];
        let mut watch = NodeWatch::asking(Box::new(ask), replicas(&hand), ids, hand.clock());
        let view = watch.view();
        let mut seen = Vec::new();
        for _ in 0..4 {
            assert_eq!(watch.step().await.unwrap(), Step::Idle(PAUSE));
            let heard = view.heard(&id("one")).unwrap();
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
