//! Turns of queues: which of many may send the next request.
//!
//! Owns the states of queues: ready, in process, snoozed, inactive, retired, exhausted (those of Heritrix' frontier).
//! Active queues rest between requests; one that has spent its session makes way for those that wait; a lower
//! precedence waits until no higher one can go. Takes time as a value, and holds a few bytes for each queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::account::QueueStanding;

/// A queue, by the number that its frontier has given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueNumber(pub u32);

/// A moment of a crawl: the time since its start.
pub type CrawlMoment = Duration;

/// The state of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    /// The queue is active, and its next URI may be fetched.
    Ready,
    /// The queue is active, and rests until a moment.
    Snoozed(CrawlMoment),
    /// The queue is active, and as many of its URIs are being fetched as it may have connections.
    InProcess,
    /// The queue waits to become active.
    Inactive,
    /// The queue is out of budget: it has URIs, and they are not fetched.
    Retired,
    /// The queue has no URIs.
    Exhausted,
}

/// The answer to the question whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueTurn {
    /// The turn of this queue, which counts as in process from now on.
    Of(QueueNumber),
    /// Nobody's turn before this moment, unless a fetch ends or a URI comes first.
    Later(CrawlMoment),
    /// Nobody's turn before a fetch ends or a URI comes.
    Waiting,
    /// Nobody's turn: no fetch is under way, and no queue has a URI that may be fetched.
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    state: QueueState,
    precedence: u8,
    /// The moment before which the queue has no turn, whatever its state is.
    rests_until: CrawlMoment,
    in_process: u32,
    /// Whether the queue has URIs that nobody fetches yet.
    has_more: bool,
}

/// The queues of a crawl and their turns.
#[derive(Debug, Default)]
pub struct QueueTurns {
    queues: BTreeMap<QueueNumber, Queue>,
    ready: VecDeque<QueueNumber>,
    snoozed: BTreeSet<(CrawlMoment, QueueNumber)>,
    inactive: BTreeMap<u8, VecDeque<QueueNumber>>,
    in_process: usize,
    /// The most requests of one queue at a time.
    connections: u32,
}

impl QueueTurns {
    /// Makes turns without queues; each will have at most `connections` requests at a time.
    pub fn new(connections: u32) -> Self {
        Self {
            connections: connections.max(1),
            ..Self::default()
        }
    }

    /// Notes that a queue has a URI that nobody fetches yet. The queue waits for its turn if it is new or was
    /// exhausted; the smaller its `precedence`, the sooner.
    pub fn add_uri(&mut self, number: QueueNumber, precedence: u8) {
        let queue = self.queues.entry(number).or_insert(Queue {
            state: QueueState::Exhausted,
            precedence,
            rests_until: CrawlMoment::ZERO,
            in_process: 0,
            has_more: false,
        });
        let had_more = std::mem::replace(&mut queue.has_more, true);
        if had_more || queue.state == QueueState::Retired {
            return;
        }
        match queue.state {
            QueueState::Exhausted if queue.in_process == 0 => self.wait_behind(number),
            // The queue is active still: its last URIs are being fetched.
            QueueState::Exhausted | QueueState::InProcess => self.update_state(number),
            _ => {}
        }
    }

    /// Returns the queue whose turn it is.
    pub fn next(&mut self, now: CrawlMoment) -> QueueTurn {
        self.wake(now);
        if self.ready.is_empty() {
            self.activate(now);
        }
        if let Some(number) = self.ready.pop_front() {
            if let Some(queue) = self.queues.get_mut(&number) {
                queue.in_process += 1;
                queue.state = QueueState::InProcess;
            }
            self.in_process += 1;
            return QueueTurn::Of(number);
        }
        match self.snoozed.first() {
            Some((moment, _)) => QueueTurn::Later(*moment),
            None if self.in_process > 0 => QueueTurn::Waiting,
            None => QueueTurn::Over,
        }
    }

    /// Notes that the URI of a turn was taken out of its queue. `has_more`: the queue has others, of which one may go
    /// over another connection.
    pub fn take_uri(&mut self, number: QueueNumber, has_more: bool) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.has_more = has_more;
        }
        self.update_state(number);
    }

    /// Takes note that a fetch of a turn has ended. The queue rests until `rests_until`; `standing` says whether it may
    /// go on. `has_more`: it has URIs that nobody fetches yet.
    pub fn end_fetch(
        &mut self,
        number: QueueNumber,
        rests_until: CrawlMoment,
        standing: QueueStanding,
        has_more: bool,
    ) {
        let Some(queue) = self.end_turn(number, rests_until) else {
            return;
        };
        queue.has_more = has_more;
        match standing {
            QueueStanding::Open => self.update_state(number),
            QueueStanding::SessionSpent => {
                self.stop_waiting(number);
                self.wait_behind(number);
            }
            QueueStanding::BudgetSpent | QueueStanding::QuotaReached(_) => {
                self.retire_queue(number);
            }
        }
    }

    /// Puts off the turn of a queue: its host or its address rests until this moment, for another queue's sake.
    pub fn put_off(&mut self, number: QueueNumber, until: CrawlMoment) {
        if self.end_turn(number, until).is_some() {
            self.update_state(number);
        }
    }

    /// Ends a turn of a queue, which rests until a moment at least. Returns the queue; `None` if it has no turn.
    fn end_turn(&mut self, number: QueueNumber, rests_until: CrawlMoment) -> Option<&mut Queue> {
        let queue = self.queues.get_mut(&number)?;
        queue.in_process = queue.in_process.checked_sub(1)?;
        queue.rests_until = queue.rests_until.max(rests_until);
        self.in_process -= 1;
        Some(queue)
    }

    /// Lets a queue that is not in process rest until a moment: it was put off before the crawl was resumed.
    pub fn set_rest(&mut self, number: QueueNumber, until: CrawlMoment) {
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        queue.rests_until = queue.rests_until.max(until);
        // Otherwise the rest is looked at when the queue becomes active or is in process no more.
        if matches!(queue.state, QueueState::Ready | QueueState::Snoozed(_)) {
            self.update_state(number);
        }
    }

    /// Retires a queue: it may fetch nothing more, until [`QueueTurns::revive_queue`].
    pub fn retire_queue(&mut self, number: QueueNumber) {
        self.stop_waiting(number);
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.state = QueueState::Retired;
        }
    }

    /// Lets a retired queue go on: its budget was raised.
    pub fn revive_queue(&mut self, number: QueueNumber) {
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        if queue.state == QueueState::Retired {
            queue.state = QueueState::Exhausted;
            self.wait_behind(number);
        }
    }

    /// Returns the state of a queue; `None` of one that never had a URI.
    pub fn queue_state(&self, number: QueueNumber) -> Option<QueueState> {
        self.queues.get(&number).map(|queue| queue.state)
    }

    /// Returns the moment until which a queue rests, whatever its state is.
    pub fn rests_until(&self, number: QueueNumber) -> CrawlMoment {
        let queue = self.queues.get(&number);
        queue.map_or(CrawlMoment::ZERO, |queue| queue.rests_until)
    }

    /// Returns the number of fetches under way.
    pub fn in_process(&self) -> usize {
        self.in_process
    }

    /// Returns the number of queues that have their turns: those that are ready or rest, and those with a fetch under
    /// way.
    pub fn count_active(&self) -> usize {
        self.ready.len() + self.snoozed.len() + self.in_process
    }

    /// Returns the number of queues that want a turn, and the number of those that have one, because a fetch of theirs
    /// is under way or they rest. A queue with several fetches counts once. The quotient says how much longer a crawl
    /// takes than one with a turn for each queue (Heritrix' congestion).
    pub fn measure_congestion(&self) -> (usize, usize) {
        let mut wanting = 0;
        let mut served = 0;
        for queue in self.queues.values() {
            let is_served = queue.in_process > 0 || matches!(queue.state, QueueState::Snoozed(_));
            let waits = matches!(queue.state, QueueState::Ready | QueueState::Inactive);
            served += usize::from(is_served);
            wanting += usize::from(is_served || waits);
        }
        (wanting, served)
    }

    /// Updates the state of an active queue from its URIs, its fetches and its rest.
    fn update_state(&mut self, number: QueueNumber) {
        let Some(queue) = self.queues.get(&number).copied() else {
            return;
        };
        if queue.state == QueueState::Retired {
            return;
        }
        self.stop_waiting(number);
        let state = if !queue.has_more {
            QueueState::Exhausted
        } else if queue.in_process >= self.connections {
            QueueState::InProcess
        } else if queue.rests_until > CrawlMoment::ZERO {
            // Whether that is over, the next question about turns says, which knows the time.
            self.snoozed.insert((queue.rests_until, number));
            QueueState::Snoozed(queue.rests_until)
        } else {
            self.ready.push_back(number);
            QueueState::Ready
        };
        self.set(number, state);
    }

    /// Puts a queue behind the others of its precedence.
    fn wait_behind(&mut self, number: QueueNumber) {
        let Some(queue) = self.queues.get(&number).copied() else {
            return;
        };
        if queue.has_more {
            self.inactive
                .entry(queue.precedence)
                .or_default()
                .push_back(number);
            self.set(number, QueueState::Inactive);
        } else {
            self.set(number, QueueState::Exhausted);
        }
    }

    /// Takes a queue out of whatever it waits in.
    fn stop_waiting(&mut self, number: QueueNumber) {
        let Some(queue) = self.queues.get(&number).copied() else {
            return;
        };
        match queue.state {
            QueueState::Ready => self.ready.retain(|other| *other != number),
            QueueState::Snoozed(moment) => {
                self.snoozed.remove(&(moment, number));
            }
            QueueState::Inactive => {
                if let Some(waiting) = self.inactive.get_mut(&queue.precedence) {
                    waiting.retain(|other| *other != number);
                }
            }
            QueueState::InProcess | QueueState::Retired | QueueState::Exhausted => {}
        }
    }

    fn set(&mut self, number: QueueNumber, state: QueueState) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.state = state;
        }
    }

    /// Makes ready whose rest is over.
    fn wake(&mut self, now: CrawlMoment) {
        while let Some((moment, number)) = self.snoozed.first().copied() {
            if moment > now {
                return;
            }
            self.snoozed.pop_first();
            self.ready.push_back(number);
            self.set(number, QueueState::Ready);
        }
    }

    /// Makes the inactive queue active that has waited longest of the smallest precedence. One that rests is passed by
    /// for the next one.
    fn activate(&mut self, now: CrawlMoment) {
        while let Some(mut entry) = self.inactive.first_entry() {
            let Some(number) = entry.get_mut().pop_front() else {
                entry.remove();
                continue;
            };
            let rests_until = self
                .queues
                .get(&number)
                .map_or(now, |queue| queue.rests_until);
            if rests_until <= now {
                self.ready.push_back(number);
                self.set(number, QueueState::Ready);
                return;
            }
            self.snoozed.insert((rests_until, number));
            self.set(number, QueueState::Snoozed(rests_until));
        }
    }
}

#[cfg(test)]
mod tests;
