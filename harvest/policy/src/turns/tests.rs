//! Turns of queues, each rule by itself and all of them in every short order.

use super::*;
use crate::account::Quota;

const A: QueueNumber = QueueNumber(1);
const B: QueueNumber = QueueNumber(2);

fn at(seconds: u64) -> CrawlMoment {
    CrawlMoment::from_secs(seconds)
}

fn queues(connections: u32, numbers: &[QueueNumber]) -> QueueTurns {
    let mut turns = QueueTurns::new(connections);
    for number in numbers {
        turns.add_uri(*number, 1);
    }
    turns
}

/// Fails if a queue has its turn while it rests, or another one waits for it.
#[test]
fn resting_queue_leaves_turn_to_others() {
    let mut turns = queues(1, &[A, B]);
    assert_eq!(turns.next(at(0)), QueueTurn::Of(A));
    turns.take_uri(A, true);
    assert_eq!(turns.next(at(0)), QueueTurn::Of(B));
    turns.take_uri(B, true);
    assert_eq!(turns.next(at(0)), QueueTurn::Waiting);
    turns.end_fetch(A, at(5), QueueStanding::Open, true);
    assert_eq!(turns.next(at(1)), QueueTurn::Later(at(5)));
    turns.end_fetch(B, at(3), QueueStanding::Open, true);
    assert_eq!(turns.next(at(1)), QueueTurn::Later(at(3)));
    assert_eq!(turns.next(at(4)), QueueTurn::Of(B));
    assert_eq!(turns.next(at(5)), QueueTurn::Of(A));
}

/// Fails if a queue that was put off by an earlier process goes before its time, or keeps others from going.
#[test]
fn rest_of_earlier_process_is_kept() {
    let mut turns = queues(1, &[A, B]);
    turns.set_rest(A, at(60));
    assert_eq!(turns.next(at(0)), QueueTurn::Of(B));
    turns.take_uri(B, false);
    turns.end_fetch(B, at(1), QueueStanding::Open, false);
    assert_eq!(turns.next(at(1)), QueueTurn::Later(at(60)));
    turns.set_rest(A, at(90));
    assert_eq!(turns.next(at(60)), QueueTurn::Later(at(90)));
    assert_eq!(turns.next(at(90)), QueueTurn::Of(A));
}

/// Fails if a crawl does not end, or ends while something is under way or waits.
#[test]
fn crawl_is_over_without_uris_and_fetches() {
    let mut turns = queues(1, &[A]);
    assert_eq!(turns.next(at(0)), QueueTurn::Of(A));
    turns.take_uri(A, false);
    assert_eq!(turns.next(at(0)), QueueTurn::Waiting);
    turns.end_fetch(A, at(1), QueueStanding::Open, false);
    assert_eq!(
        (turns.next(at(0)), turns.queue_state(A)),
        (QueueTurn::Over, Some(QueueState::Exhausted))
    );
    turns.add_uri(A, 1);
    assert_eq!(
        turns.next(at(0)),
        QueueTurn::Later(at(1)),
        "its rest is not forgotten"
    );
    assert_eq!(turns.next(at(1)), QueueTurn::Of(A));
}

/// Fails if a queue that has spent its session is served before those that wait.
#[test]
fn spent_session_makes_way() {
    let mut turns = queues(1, &[A, B]);
    assert_eq!(turns.next(at(0)), QueueTurn::Of(A));
    turns.take_uri(A, true);
    turns.end_fetch(A, at(0), QueueStanding::SessionSpent, true);
    assert_eq!(turns.queue_state(A), Some(QueueState::Inactive));
    assert_eq!(turns.next(at(0)), QueueTurn::Of(B));
    assert_eq!(turns.next(at(0)), QueueTurn::Of(A));
}

/// Fails if a retired queue is fetched from, or cannot come back.
#[test]
fn retired_queue_rests_until_revived() {
    let mut turns = queues(2, &[A]);
    assert_eq!(turns.next(at(0)), QueueTurn::Of(A));
    turns.take_uri(A, true);
    turns.end_fetch(A, at(0), QueueStanding::QuotaReached(Quota::Bytes), true);
    turns.add_uri(A, 1);
    assert_eq!(
        (turns.next(at(0)), turns.queue_state(A)),
        (QueueTurn::Over, Some(QueueState::Retired))
    );
    turns.revive_queue(A);
    assert_eq!(turns.next(at(0)), QueueTurn::Of(A));
}

/// Fails if a smaller precedence waits for a larger one.
#[test]
fn smaller_precedence_goes_first() {
    let mut turns = QueueTurns::new(1);
    turns.add_uri(A, 9);
    turns.add_uri(B, 3);
    assert_eq!(
        (turns.next(at(0)), turns.next(at(0))),
        (QueueTurn::Of(B), QueueTurn::Of(A))
    );
}

/// Fails if a queue has more requests at a time than connections, or fewer although it has URIs.
#[test]
fn connections_limit_requests_of_a_queue() {
    let mut turns = queues(2, &[A]);
    for _ in 0..2 {
        assert_eq!(turns.next(at(0)), QueueTurn::Of(A));
        turns.take_uri(A, true);
    }
    assert_eq!(turns.next(at(0)), QueueTurn::Waiting);
    turns.end_fetch(A, at(0), QueueStanding::Open, true);
    assert_eq!(turns.next(at(0)), QueueTurn::Of(A));
}

/// Fails if a queue counts once for each of its fetches, or a retired queue counts though it has none.
#[test]
fn congestion_counts_queues_instead_of_fetches() {
    let mut turns = queues(2, &[A, B]);
    assert_eq!(turns.measure_congestion(), (2, 0));
    for _ in 0..2 {
        assert_eq!(turns.next(at(0)), QueueTurn::Of(A));
        turns.take_uri(A, true);
        assert_eq!(turns.measure_congestion(), (2, 1));
    }
    turns.end_fetch(A, at(5), QueueStanding::Open, true);
    assert_eq!(turns.measure_congestion(), (2, 1));
    assert_eq!(turns.next(at(0)), QueueTurn::Of(B));
    turns.take_uri(B, false);
    assert_eq!(turns.measure_congestion(), (2, 2));
    turns.end_fetch(A, at(5), QueueStanding::BudgetSpent, true);
    assert_eq!(turns.measure_congestion(), (1, 1));
    turns.end_fetch(B, at(0), QueueStanding::Open, false);
    assert_eq!(turns.measure_congestion(), (0, 0));
}

/// Fails if a turn that is put off is lost, or comes too soon.
#[test]
fn put_off_turn_comes_again() {
    let mut turns = queues(1, &[A]);
    assert_eq!(turns.next(at(0)), QueueTurn::Of(A));
    turns.put_off(A, at(7));
    assert_eq!(turns.in_process(), 0);
    assert_eq!(
        (turns.next(at(0)), turns.next(at(7))),
        (QueueTurn::Later(at(7)), QueueTurn::Of(A))
    );
}

/// Fails if any short sequence of events loses a URI, fetches one too soon or twice, or ends a crawl too early.
#[test]
fn every_short_sequence_serves_every_uri() {
    const EVENTS: usize = 6;
    for code in 0..EVENTS.pow(7) {
        let mut turns = QueueTurns::new(1 + u32::from(code % 2 == 0));
        // Per queue: URIs that wait, fetches under way, and until when it rests.
        let mut waiting = [0_u32; 2];
        let mut fetching = [0_u32; 2];
        let mut rests = [at(0); 2];
        let mut now = at(0);
        for step in 0_u32..7 {
            let queue = step % 2;
            let number = QueueNumber(queue);
            match code / EVENTS.pow(step) % EVENTS {
                event @ (0 | 1) => {
                    let queue = event;
                    waiting[queue] += 1;
                    turns.add_uri(QueueNumber(u32::try_from(queue).unwrap()), 1);
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
                        turns.end_fetch(number, rests[queue], standing, waiting[queue] > 0);
                    }
                    match turns.next(now) {
                        QueueTurn::Of(number) => {
                            let queue = number.0 as usize;
                            assert!(waiting[queue] > 0, "a turn without a URI");
                            assert!(rests[queue] <= now, "a turn during a rest");
                            waiting[queue] -= 1;
                            fetching[queue] += 1;
                            turns.take_uri(number, waiting[queue] > 0);
                        }
                        QueueTurn::Later(moment) => assert!(moment > now && waiting != [0, 0]),
                        QueueTurn::Waiting => assert_ne!(fetching, [0, 0]),
                        QueueTurn::Over => assert_eq!((waiting, fetching), ([0, 0], [0, 0])),
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
                    turns.end_fetch(number, now, QueueStanding::Open, waiting[queue] > 0);
                }
            }
            if let QueueTurn::Of(number) = turns.next(now) {
                let queue = number.0 as usize;
                waiting[queue] -= 1;
                fetching[queue] += 1;
                turns.take_uri(number, waiting[queue] > 0);
            }
        }
        assert_eq!(
            (waiting, turns.next(now)),
            ([0, 0], QueueTurn::Over),
            "{code}"
        );
    }
}
