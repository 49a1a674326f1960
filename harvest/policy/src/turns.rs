//! Whose turn it is: which of many queues may send the next request.
//!
//! Owns the states of queues: ready, in process, snoozed, inactive, retired, exhausted (those of Heritrix' frontier). Active queues
//! rest between requests; one that has spent its session makes way for those that wait; a lower precedence waits until no
//! higher one can go. Takes time as a value, and holds a few bytes for each queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::account::QueueStanding;

/// A queue, by the number that its frontier has given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueNumber(pub u32);

/// A moment of a crawl: the time since its begin.
pub type Moment = Duration;

/// The state of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    /// Active, and its next URI may be fetched.
    Ready,
    /// Active, and resting until a moment.
    Snoozed(Moment),
    /// Active, and as many of its URIs are being fetched as it may have connections.
    InProcess,
    /// Waiting to become active.
    Inactive,
    /// Out of budget: it has URIs, and they are not fetched.
    Retired,
    /// Without URIs.
    Exhausted,
}

/// The answer to the question whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This queue's. It counts as in process.
    Of(QueueNumber),
    /// Nobody's before this moment, unless a fetch ends or a URI comes first.
    Later(Moment),
    /// Nobody's, before a fetch ends or a URI comes.
    Waiting,
    /// Nobody's: no fetch is under way, and no queue has a URI that may be fetched.
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    state: QueueState,
    precedence: u8,
    /// Not before this moment, whatever its state is.
    rests_until: Moment,
    in_process: u32,
    /// Whether it has URIs that nobody fetches yet.
    has_more: bool,
}

/// The queues of a crawl and their turns.
#[derive(Debug, Default)]
pub struct Turns {
    queues: BTreeMap<QueueNumber, Queue>,
    ready: VecDeque<QueueNumber>,
    snoozed: BTreeSet<(Moment, QueueNumber)>,
    inactive: BTreeMap<u8, VecDeque<QueueNumber>>,
    in_process: usize,
    /// The most requests of one queue at a time.
    connections: u32,
}

impl Turns {
    /// No queues yet; each will have at most `connections` requests at a time.
    pub fn new(connections: u32) -> Self {
        Self {
            connections: connections.max(1),
            ..Self::default()
        }
    }

    /// A queue has a URI that nobody fetches yet. It waits for its turn if it is new or was exhausted; the smaller its
    /// `precedence`, the sooner.
    pub fn has_uri(&mut self, number: QueueNumber, precedence: u8) {
        let queue = self.queues.entry(number).or_insert(Queue {
            state: QueueState::Exhausted,
            precedence,
            rests_until: Moment::ZERO,
            in_process: 0,
            has_more: false,
        });
        let had_more = std::mem::replace(&mut queue.has_more, true);
        if had_more || queue.state == QueueState::Retired {
            return;
        }
        match queue.state {
            QueueState::Exhausted if queue.in_process == 0 => self.wait(number),
            // It is active still: its last URIs are being fetched.
            QueueState::Exhausted | QueueState::InProcess => self.settle(number),
            QueueState::Ready
            | QueueState::Snoozed(_)
            | QueueState::Inactive
            | QueueState::Retired => {}
        }
    }

    /// Whose turn it is.
    pub fn next(&mut self, now: Moment) -> Turn {
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
            return Turn::Of(number);
        }
        match self.snoozed.first() {
            Some((moment, _)) => Turn::Later(*moment),
            None if self.in_process > 0 => Turn::Waiting,
            None => Turn::Over,
        }
    }

    /// The URI of a turn was taken out of its queue. `has_more`: the queue has others, of which one may go over another
    /// connection.
    pub fn took_uri(&mut self, number: QueueNumber, has_more: bool) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.has_more = has_more;
        }
        self.settle(number);
    }

    /// A fetch of a turn has ended. The queue rests until `rests_until`; `standing` says whether it may go on.
    /// `has_more`: it has URIs that nobody fetches yet.
    pub fn fetched(
        &mut self,
        number: QueueNumber,
        rests_until: Moment,
        standing: QueueStanding,
        has_more: bool,
    ) {
        let Some(queue) = self
            .queues
            .get_mut(&number)
            .filter(|queue| queue.in_process > 0)
        else {
            return;
        };
        queue.in_process -= 1;
        queue.has_more = has_more;
        queue.rests_until = queue.rests_until.max(rests_until);
        self.in_process -= 1;
        match standing {
            QueueStanding::Open => self.settle(number),
            QueueStanding::SessionSpent => {
                self.leave(number);
                self.wait(number);
            }
            QueueStanding::BudgetSpent | QueueStanding::QuotaReached(_) => self.retire(number),
        }
    }

    /// The turn of a queue is put off: its host or its address rests until this moment, for another queue's sake.
    pub fn put_off(&mut self, number: QueueNumber, until: Moment) {
        let Some(queue) = self
            .queues
            .get_mut(&number)
            .filter(|queue| queue.in_process > 0)
        else {
            return;
        };
        queue.in_process -= 1;
        queue.rests_until = queue.rests_until.max(until);
        self.in_process -= 1;
        self.settle(number);
    }

    /// A queue may fetch nothing more, until [`Turns::revive`].
    pub fn retire(&mut self, number: QueueNumber) {
        self.leave(number);
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.state = QueueState::Retired;
        }
    }

    /// A retired queue may go on: its budget was raised.
    pub fn revive(&mut self, number: QueueNumber) {
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        if queue.state == QueueState::Retired {
            queue.state = QueueState::Exhausted;
            self.wait(number);
        }
    }

    /// The state of a queue; `None` of one that never had a URI.
    pub fn state(&self, number: QueueNumber) -> Option<QueueState> {
        self.queues.get(&number).map(|queue| queue.state)
    }

    /// The number of fetches under way.
    pub fn in_process(&self) -> usize {
        self.in_process
    }

    /// Brings an active queue into the state that follows from what it has.
    fn settle(&mut self, number: QueueNumber) {
        let Some(queue) = self.queues.get(&number).copied() else {
            return;
        };
        if queue.state == QueueState::Retired {
            return;
        }
        self.leave(number);
        let state = if !queue.has_more {
            QueueState::Exhausted
        } else if queue.in_process >= self.connections {
            QueueState::InProcess
        } else if queue.rests_until > Moment::ZERO {
            // Whether that is over, the next question about turns says, which knows the time.
            self.snoozed.insert((queue.rests_until, number));
            QueueState::Snoozed(queue.rests_until)
        } else {
            self.ready.push_back(number);
            QueueState::Ready
        };
        self.set(number, state);
    }

    /// Lets a queue wait behind the others of its precedence.
    fn wait(&mut self, number: QueueNumber) {
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
    fn leave(&mut self, number: QueueNumber) {
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
    fn wake(&mut self, now: Moment) {
        while let Some((moment, number)) = self.snoozed.first().copied() {
            if moment > now {
                return;
            }
            self.snoozed.pop_first();
            self.ready.push_back(number);
            self.set(number, QueueState::Ready);
        }
    }

    /// Makes the inactive queue active that has waited longest of the smallest precedence. One that rests is passed by for
    /// the next one.
    fn activate(&mut self, now: Moment) {
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
mod tests {
    use super::*;
    use crate::account::Quota;

    const A: QueueNumber = QueueNumber(1);
    const B: QueueNumber = QueueNumber(2);

    fn at(seconds: u64) -> Moment {
        Moment::from_secs(seconds)
    }

    fn queues(connections: u32, numbers: &[QueueNumber]) -> Turns {
        let mut turns = Turns::new(connections);
        for number in numbers {
            turns.has_uri(*number, 1);
        }
        turns
    }

    /// Fails if a queue has its turn while it rests, or another one waits for it.
    #[test]
    fn resting_queue_leaves_turn_to_others() {
        let mut turns = queues(1, &[A, B]);
        assert_eq!(turns.next(at(0)), Turn::Of(A));
        turns.took_uri(A, true);
        assert_eq!(turns.next(at(0)), Turn::Of(B));
        turns.took_uri(B, true);
        assert_eq!(turns.next(at(0)), Turn::Waiting);
        turns.fetched(A, at(5), QueueStanding::Open, true);
        assert_eq!(turns.next(at(1)), Turn::Later(at(5)));
        turns.fetched(B, at(3), QueueStanding::Open, true);
        assert_eq!(turns.next(at(1)), Turn::Later(at(3)));
        assert_eq!(turns.next(at(4)), Turn::Of(B));
        assert_eq!(turns.next(at(5)), Turn::Of(A));
    }

    /// Fails if a crawl does not end, or ends while something is under way or waits.
    #[test]
    fn crawl_is_over_without_uris_and_fetches() {
        let mut turns = queues(1, &[A]);
        assert_eq!(turns.next(at(0)), Turn::Of(A));
        turns.took_uri(A, false);
        assert_eq!(turns.next(at(0)), Turn::Waiting);
        turns.fetched(A, at(1), QueueStanding::Open, false);
        assert_eq!(
            (turns.next(at(0)), turns.state(A)),
            (Turn::Over, Some(QueueState::Exhausted))
        );
        turns.has_uri(A, 1);
        assert_eq!(
            turns.next(at(0)),
            Turn::Later(at(1)),
            "its rest is not forgotten"
        );
        assert_eq!(turns.next(at(1)), Turn::Of(A));
    }

    /// Fails if a queue that has spent its session goes on before those that wait.
    #[test]
    fn spent_session_makes_way() {
        let mut turns = queues(1, &[A, B]);
        assert_eq!(turns.next(at(0)), Turn::Of(A));
        turns.took_uri(A, true);
        turns.fetched(A, at(0), QueueStanding::SessionSpent, true);
        assert_eq!(turns.state(A), Some(QueueState::Inactive));
        assert_eq!(turns.next(at(0)), Turn::Of(B));
        assert_eq!(turns.next(at(0)), Turn::Of(A));
    }

    /// Fails if a retired queue is fetched from, or cannot come back.
    #[test]
    fn retired_queue_rests_until_revived() {
        let mut turns = queues(2, &[A]);
        assert_eq!(turns.next(at(0)), Turn::Of(A));
        turns.took_uri(A, true);
        turns.fetched(A, at(0), QueueStanding::QuotaReached(Quota::Bytes), true);
        turns.has_uri(A, 1);
        assert_eq!(
            (turns.next(at(0)), turns.state(A)),
            (Turn::Over, Some(QueueState::Retired))
        );
        turns.revive(A);
        assert_eq!(turns.next(at(0)), Turn::Of(A));
    }

    /// Fails if a smaller precedence waits for a larger one.
    #[test]
    fn smaller_precedence_goes_first() {
        let mut turns = Turns::new(1);
        turns.has_uri(A, 9);
        turns.has_uri(B, 3);
        assert_eq!(
            (turns.next(at(0)), turns.next(at(0))),
            (Turn::Of(B), Turn::Of(A))
        );
    }

    /// Fails if a queue has more requests at a time than connections, or fewer although it has URIs.
    #[test]
    fn connections_limit_requests_of_a_queue() {
        let mut turns = queues(2, &[A]);
        for _ in 0..2 {
            assert_eq!(turns.next(at(0)), Turn::Of(A));
            turns.took_uri(A, true);
        }
        assert_eq!(turns.next(at(0)), Turn::Waiting);
        turns.fetched(A, at(0), QueueStanding::Open, true);
        assert_eq!(turns.next(at(0)), Turn::Of(A));
    }

    /// Fails if a turn that is put off is lost, or comes too soon.
    #[test]
    fn put_off_turn_comes_again() {
        let mut turns = queues(1, &[A]);
        assert_eq!(turns.next(at(0)), Turn::Of(A));
        turns.put_off(A, at(7));
        assert_eq!(turns.in_process(), 0);
        assert_eq!(
            (turns.next(at(0)), turns.next(at(7))),
            (Turn::Later(at(7)), Turn::Of(A))
        );
    }

    /// Fails if any short sequence of events loses a URI, fetches one too soon or twice, or ends a crawl too early.
    #[test]
    fn every_short_sequence_serves_every_uri() {
        const EVENTS: usize = 6;
        for code in 0..EVENTS.pow(7) {
            let mut turns = Turns::new(1 + u32::from(code % 2 == 0));
            // Per queue: URIs that wait, fetches under way, and until when it rests.
            let (mut waiting, mut fetching) = ([0_u32; 2], [0_u32; 2]);
            let (mut rests, mut now) = ([at(0); 2], at(0));
            for step in 0..7 {
                let queue = step % 2;
                let number = QueueNumber(u32::try_from(queue).unwrap());
                match code / EVENTS.pow(step) % EVENTS {
                    event @ (0 | 1) => {
                        let queue = event;
                        waiting[queue] += 1;
                        turns.has_uri(QueueNumber(u32::try_from(queue).unwrap()), 1);
                    }
                    2 => now += at(1),
                    event => {
                        let queue = queue as usize;
                        if fetching[queue] > 0 && event < 5 {
                            fetching[queue] -= 1;
                            rests[queue] = rests[queue].max(now + at(2));
                            let standing = if event == 3 {
                                QueueStanding::Open
                            } else {
                                QueueStanding::SessionSpent
                            };
                            turns.fetched(number, rests[queue], standing, waiting[queue] > 0);
                        }
                        match turns.next(now) {
                            Turn::Of(number) => {
                                let queue = number.0 as usize;
                                assert!(waiting[queue] > 0, "a turn without a URI");
                                assert!(rests[queue] <= now, "a turn during a rest");
                                waiting[queue] -= 1;
                                fetching[queue] += 1;
                                turns.took_uri(number, waiting[queue] > 0);
                            }
                            Turn::Later(moment) => assert!(moment > now && waiting != [0, 0]),
                            Turn::Waiting => assert_ne!(fetching, [0, 0]),
                            Turn::Over => assert_eq!((waiting, fetching), ([0, 0], [0, 0])),
                        }
                    }
                }
                assert_eq!(turns.in_process(), (fetching[0] + fetching[1]) as usize);
            }
            // From here on everything is served.
            for _ in 0..100 {
                if (waiting, fetching) == ([0, 0], [0, 0]) {
                    break;
                }
                now += at(3);
                for queue in 0..2 {
                    let number = QueueNumber(u32::try_from(queue).unwrap());
                    while fetching[queue] > 0 {
                        fetching[queue] -= 1;
                        turns.fetched(number, now, QueueStanding::Open, waiting[queue] > 0);
                    }
                }
                if let Turn::Of(number) = turns.next(now) {
                    let queue = number.0 as usize;
                    waiting[queue] -= 1;
                    fetching[queue] += 1;
                    turns.took_uri(number, waiting[queue] > 0);
                }
            }
            assert_eq!((waiting, turns.next(now)), ([0, 0], Turn::Over), "{code}");
        }
    }
}
