//! The last answers of the monitors about their nodes, and how long one stands for a question.
//!
//! Owns the age. An answer is used in place of a question for at most [`FRESH`], and only while nothing has happened
//! since that question which may change it: an order about a disk or the mode of a node, a connection that failed, a
//! new member of the replica, or a decision of people about what is in service. So a caller that has given such an
//! order sees its effect at once. Not promised: the room on a disk after a copy was moved or destroyed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_ledger::standing::StandingSnapshot;
use archive_model::{NodeId, NodeState, ReplicaId};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

/// The longest time for which an answer is used in place of a question. The watch asks once a second.
const FRESH: Duration = Duration::from_secs(2);

/// The last answer of a monitor: its nodes as they report themselves, or that it is silent.
pub type LastMonitorAnswer = Result<Arc<[NodeState]>, Silence>;

/// A monitor that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The reason why it counts as silent.
    pub reason: String,
    /// The time since when no question has had an answer.
    pub since: Timestamp,
}

/// A question to a monitor, with the state of affairs in which it was asked.
#[derive(Debug)]
pub(crate) struct Question {
    asked: Instant,
    changes: u64,
    standing: Arc<StandingSnapshot>,
}

/// The last answers of all monitors.
#[derive(Debug, Default)]
pub(crate) struct NodeView(Mutex<BTreeMap<ReplicaId, ReplicaView>>);

/// The last answer of one monitor.
#[derive(Debug, Default)]
struct ReplicaView {
    /// The number of events so far that may have changed the nodes.
    changes: u64,
    last: Option<(Question, LastMonitorAnswer)>,
    /// The nodes that were silent when their monitor last answered.
    silent: BTreeSet<NodeId>,
}

impl NodeView {
    /// Returns the question that is asked at `asked`.
    pub(crate) fn next_question(
        &self,
        replica: &ReplicaId,
        asked: Instant,
        standing: Arc<StandingSnapshot>,
    ) -> Question {
        Question {
            asked,
            changes: self.lock().get(replica).map_or(0, |view| view.changes),
            standing,
        }
    }

    /// Keeps the answer to a question, or the reason why it failed, unless the answer to a later question is there.
    pub(crate) fn keep_answer(
        &self,
        replica: &ReplicaId,
        question: Question,
        answer: Result<Arc<[NodeState]>, String>,
        now: Timestamp,
    ) {
        let mut views = self.lock();
        let view = views.entry(replica.clone()).or_default();
        let last = view.last.as_ref();
        if last.is_some_and(|(last, _)| last.asked > question.asked) {
            return;
        }
        let since = match last {
            Some((_, Err(silence))) => silence.since,
            Some((_, Ok(_))) | None => now,
        };
        if let Ok(nodes) = &answer {
            let silent = nodes.iter().filter(|node| !node.alive);
            view.silent = silent.map(|node| node.node.clone()).collect();
        }
        let answer = answer.map_err(|reason| Silence { reason, since });
        view.last = Some((question, answer));
    }

    /// Returns the last answer of a monitor, however old it is.
    pub(crate) fn last_answer(&self, replica: &ReplicaId) -> Option<LastMonitorAnswer> {
        let views = self.lock();
        let (_, answer) = views.get(replica)?.last.as_ref()?;
        Some(answer.clone())
    }

    /// Returns the nodes of the last answer if it stands for a question that is asked at `now`.
    pub(crate) fn fresh_nodes(
        &self,
        replica: &ReplicaId,
        now: Instant,
        standing: &Arc<StandingSnapshot>,
    ) -> Option<Arc<[NodeState]>> {
        let views = self.lock();
        let view = views.get(replica)?;
        let (question, answer) = view.last.as_ref()?;
        let is_fresh = question.changes == view.changes
            && Arc::ptr_eq(&question.standing, standing)
            && now.saturating_duration_since(question.asked) <= FRESH;
        let nodes = answer.as_ref().ok()?;
        is_fresh.then(|| Arc::clone(nodes))
    }

    /// Notes an event that may have changed the nodes: the last answer, and one that is awaited, stand for no question
    /// from now on.
    pub(crate) fn note_change(&self, replica: &ReplicaId) {
        self.lock().entry(replica.clone()).or_default().changes += 1;
    }

    /// Removes the last answer of a monitor.
    pub(crate) fn remove_replica(&self, replica: &ReplicaId) {
        if let Some(view) = self.lock().get_mut(replica) {
            view.last = None;
        }
    }

    /// Returns whether a node was silent when its monitor last answered.
    pub(crate) fn is_silent(&self, replica: &ReplicaId, node: &NodeId) -> bool {
        let views = self.lock();
        let view = views.get(replica);
        view.is_some_and(|view| view.silent.contains(node))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ReplicaId, ReplicaView>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(endpoint: &str) -> Arc<[NodeState]> {
        let node = NodeState {
            endpoint: endpoint.to_owned(),
            ..NodeState::unheard_node("n".parse().unwrap())
        };
        Arc::from([node])
    }

    /// Fails if an answer stands for a question although it is too old, or something has happened since it was asked
    /// for.
    #[test]
    fn answer_is_fresh_until_age_or_change() {
        let view = NodeView::default();
        let replica = ReplicaId::new("one").unwrap();
        let begin = Instant::now();
        let standing = Arc::new(StandingSnapshot::default());
        let ask =
            |after: Duration| view.next_question(&replica, begin + after, Arc::clone(&standing));
        let keep = |question: Question, answer: Result<_, &str>| {
            let answer = answer.map_err(str::to_owned);
            view.keep_answer(&replica, question, answer, Timestamp::UNIX_EPOCH);
        };
        let is_fresh = |after: Duration| {
            view.fresh_nodes(&replica, begin + after, &standing)
                .is_some()
        };
        keep(ask(Duration::ZERO), Ok(nodes("a")));
        assert!(is_fresh(FRESH) && !is_fresh(FRESH + Duration::from_millis(1)));
        let decided = Arc::new(StandingSnapshot::default());
        assert!(view.fresh_nodes(&replica, begin, &decided).is_none());

        let before = ask(Duration::from_secs(1));
        view.note_change(&replica);
        assert!(!is_fresh(Duration::ZERO));
        keep(before, Ok(nodes("a")));
        assert!(!is_fresh(FRESH), "the question was asked before the change");
        keep(ask(Duration::from_secs(1)), Ok(nodes("b")));
        assert!(is_fresh(FRESH));

        keep(ask(Duration::ZERO), Ok(nodes("a")));
        let last = view.last_answer(&replica).unwrap();
        assert_eq!(last, Ok(nodes("b")), "a later question has its answer");
        keep(ask(FRESH), Err("refused"));
        assert!(!is_fresh(FRESH));
    }
}
