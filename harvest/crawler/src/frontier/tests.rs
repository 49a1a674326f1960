//! Frontiers on a disk, closed and opened again at any moment.

use std::collections::BTreeSet;
use std::path::Path;

use archive_daemon::clock::Chance;

use super::*;

mod kept;

/// The time of day at which each process begins.
const BEGIN: &str = "2026-11-23T00:00:00Z";

fn open(directory: &Path, limits: QueueLimits) -> Frontier {
    open_after_cut(directory, limits, u64::MAX).0
}

/// Opens a frontier whose files have only `length` bytes.
fn open_after_cut(directory: &Path, limits: QueueLimits, length: u64) -> (Frontier, ResumePoint) {
    let settings = FrontierSettings {
        limits: limits.into(),
        cost: harvest_policy::cost::CostPolicy::Unit,
        connections: 1,
        fresh_key: [7; 32],
        begin: BEGIN.parse().unwrap(),
    };
    let is_whole = |_: &RecordedPlace, end: &RecordedPlace| end.file_length <= length;
    Frontier::open_frontier(directory, &settings, is_whole).unwrap()
}

fn place(file_length: u64) -> RecordedPlace {
    RecordedPlace {
        serial: 1,
        file: "f".to_owned(),
        file_length,
        log_length: file_length,
    }
}

fn candidate(
    frontier: &Frontier,
    queue: &str,
    text: &str,
    urgency: Urgency,
    cost: u8,
) -> CandidateUri {
    CandidateUri {
        uri: FrontierUri {
            uri: text.to_owned(),
            hops: "L".to_owned(),
            via: Some("http://a.dk/".to_owned()),
            source: None,
            urgency,
            tries: 0,
        },
        key: frontier.uri_hasher().key_of_text(text),
        queue: queue.to_owned(),
        cost,
    }
}

/// Schedules normal URIs of the queue `a.dk`; returns how many are new.
fn schedule(frontier: &mut Frontier, uris: &[&str]) -> usize {
    let mut changes = frontier.begin_changes();
    let mut new = 0;
    for text in uris {
        let candidate = candidate(frontier, "a.dk", text, Urgency::Normal, 1);
        new += usize::from(frontier.schedule_uri(&mut changes, candidate).unwrap());
    }
    frontier.commit_changes(changes).unwrap();
    new
}

/// The moment at which leases are taken.
const NOW: CrawlMoment = CrawlMoment::from_secs(1_000_000);

fn retry(frontier: &mut Frontier, lease: UriLease, until: CrawlMoment) {
    let mut changes = frontier.begin_changes();
    let outcome = LeaseOutcome {
        status: FetchStatus::CONNECT_LOST,
        next: NextStep::RetryAt(until),
        ..outcome(true)
    };
    frontier
        .finish_uri(&mut changes, lease, outcome, place(9))
        .unwrap();
    frontier.commit_changes(changes).unwrap();
}

fn lease(frontier: &mut Frontier) -> Option<UriLease> {
    match frontier.next(NOW).unwrap() {
        NextUri::Fetch(lease) => Some(*lease),
        NextUri::Later(_) | NextUri::Waiting | NextUri::Over => None,
    }
}

fn outcome(goes_back: bool) -> LeaseOutcome {
    LeaseOutcome {
        status: FetchStatus::from_http(200),
        bytes: 1000,
        next: if goes_back {
            NextStep::GoBack
        } else {
            NextStep::Finish
        },
        rests_until: CrawlMoment::ZERO,
    }
}

fn finish(frontier: &mut Frontier, lease: UriLease, goes_back: bool) {
    finish_at(frontier, lease, goes_back, 0);
}

/// Finishes a lease whose records end at `length`.
fn finish_at(frontier: &mut Frontier, lease: UriLease, goes_back: bool, length: u64) {
    let mut changes = frontier.begin_changes();
    frontier
        .finish_uri(&mut changes, lease, outcome(goes_back), place(length))
        .unwrap();
    frontier.commit_changes(changes).unwrap();
}

/// Fails if a URI is fetched twice, in the same batch or in another, or another spelling of it.
#[test]
fn seen_uri_is_not_queued_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut frontier = open(directory.path(), QueueLimits::default());
    assert_eq!(
        schedule(
            &mut frontier,
            &["http://a.dk/x", "http://www.a.dk/x", "http://a.dk/X"]
        ),
        2
    );
    drop(frontier);
    let mut frontier = open(directory.path(), QueueLimits::default());
    assert_eq!(
        schedule(&mut frontier, &["http://a.dk/x?", "http://a.dk/y"]),
        1
    );
    assert_eq!(frontier.waiting_uris(), 3);
}

/// Fails if the urgent waits for the usual, or a URI is not taken in the order in which it came.
#[test]
fn urgency_decides_then_cost_then_order() {
    let directory = tempfile::tempdir().unwrap();
    let mut frontier = open(directory.path(), QueueLimits::default());
    let mut changes = frontier.begin_changes();
    for (text, urgency, cost) in [
        ("http://a.dk/5", Urgency::Normal, 2),
        ("http://a.dk/3", Urgency::Normal, 1),
        ("http://a.dk/4", Urgency::Normal, 1),
        ("http://a.dk/2", Urgency::Medium, 9),
        ("dns:a.dk", Urgency::Prerequisite, 1),
    ] {
        let candidate = candidate(&frontier, "a.dk", text, urgency, cost);
        assert!(frontier.schedule_uri(&mut changes, candidate).unwrap());
    }
    frontier.commit_changes(changes).unwrap();
    let mut order = Vec::new();
    while let Some(lease) = lease(&mut frontier) {
        order.push(lease.uri.uri.clone());
        finish(&mut frontier, lease, false);
    }
    assert_eq!(
        order,
        [
            "dns:a.dk",
            "http://a.dk/2",
            "http://a.dk/3",
            "http://a.dk/4",
            "http://a.dk/5"
        ]
    );
}

/// Fails if a URI under way is lost with its process, or one that is finished is leased again.
#[test]
fn uri_under_way_comes_again_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let mut frontier = open(directory.path(), QueueLimits::default());
    schedule(
        &mut frontier,
        &["http://a.dk/1", "http://a.dk/2", "http://a.dk/3"],
    );
    let first = lease(&mut frontier).unwrap();
    finish(&mut frontier, first, false);
    let second = lease(&mut frontier).unwrap();
    assert_eq!(frontier.next(CrawlMoment::ZERO).unwrap(), NextUri::Waiting);
    // The end of the process: what was committed is there, what was not is not.
    drop(frontier);
    let mut frontier = open(directory.path(), QueueLimits::default());
    assert_eq!(frontier.waiting_uris(), 2);
    let again = lease(&mut frontier).unwrap();
    assert_eq!(again.uri, second.uri);
    finish(&mut frontier, again, true);
    assert_eq!(lease(&mut frontier).unwrap().uri.uri, "http://a.dk/3");
}

/// Fails if a URI that goes back is lost, or forgets its tries.
#[test]
fn retried_uri_goes_to_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut frontier = open(directory.path(), QueueLimits::default());
    schedule(&mut frontier, &["http://a.dk/1", "http://a.dk/2"]);
    let first = lease(&mut frontier).unwrap();
    finish(&mut frontier, first, true);
    let second = lease(&mut frontier).unwrap();
    assert_eq!(
        (second.uri.uri.as_str(), second.uri.tries),
        ("http://a.dk/2", 0)
    );
    finish(&mut frontier, second, false);
    let again = lease(&mut frontier).unwrap();
    assert_eq!(
        (again.uri.uri.as_str(), again.uri.tries),
        ("http://a.dk/1", 1)
    );
    finish(&mut frontier, again, false);
    assert_eq!(frontier.next(CrawlMoment::ZERO).unwrap(), NextUri::Over);
}

/// Fails if a quota is passed, or forgotten at a restart.
#[test]
fn quota_ends_a_queue_for_good() {
    let directory = tempfile::tempdir().unwrap();
    let limits = QueueLimits {
        successes: Some(2),
        ..QueueLimits::default()
    };
    let mut frontier = open(directory.path(), limits);
    schedule(
        &mut frontier,
        &["http://a.dk/1", "http://a.dk/2", "http://a.dk/3"],
    );
    for _ in 0..2 {
        let lease = lease(&mut frontier).unwrap();
        finish(&mut frontier, lease, false);
    }
    for _ in 0..2 {
        assert_eq!(frontier.next(CrawlMoment::ZERO).unwrap(), NextUri::Over);
        assert_eq!(frontier.waiting_uris(), 1);
        drop(frontier);
        frontier = open(directory.path(), limits);
    }
}

/// Fails if an outcome without its records stays, one that was synced is taken back, or a budget keeps what it was
/// charged.
#[test]
fn outcome_without_records_is_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let limits = QueueLimits {
        successes: Some(3),
        ..QueueLimits::default()
    };
    let mut frontier = open(directory.path(), limits);
    schedule(
        &mut frontier,
        &["http://a.dk/1", "http://a.dk/2", "http://a.dk/3"],
    );
    for length in [10, 20, 30] {
        let lease = lease(&mut frontier).unwrap();
        finish_at(&mut frontier, lease, length == 30, length);
        if length == 10 {
            frontier.sync_to(&place(10)).unwrap();
        }
    }
    let mut changes = frontier.begin_changes();
    let robots = PrerequisiteRow::Robots {
        status: Some(200),
        file: b"Disallow:".to_vec(),
        until: 0,
    };
    let uri = "http://a.dk/robots.txt";
    frontier
        .put_answer(&mut changes, uri, &robots, place(40))
        .unwrap();
    frontier.commit_changes(changes).unwrap();
    assert_eq!(frontier.answer_to(uri).unwrap(), Some(robots));
    drop(frontier);
    let (mut frontier, resume) = open_after_cut(directory.path(), limits, 19);
    assert_eq!((resume.taken_back, resume.place), (3, place(10)));
    assert_eq!(frontier.answer_to(uri).unwrap(), None);
    let mut again = Vec::new();
    while let Some(lease) = lease(&mut frontier) {
        assert_eq!(lease.uri.tries, 0);
        again.push(lease.uri.uri.clone());
        finish_at(&mut frontier, lease, false, 50);
    }
    assert_eq!(again, ["http://a.dk/2", "http://a.dk/3"]);
    drop(frontier);
    // Opening it twice takes nothing back twice.
    let (frontier, resume) = open_after_cut(directory.path(), limits, 100);
    assert_eq!((resume.taken_back, resume.place), (0, place(50)));
    assert_eq!(frontier.waiting_uris(), 0);
}

/// Fails if an outcome is taken back that the files have, because a prerequisite behind it in the same batch went first: its
/// record and its line would be there twice.
#[test]
fn outcomes_of_one_batch_stay_in_the_order_of_their_places() {
    let directory = tempfile::tempdir().unwrap();
    let limits = QueueLimits::default();
    let mut frontier = open(directory.path(), limits);
    schedule(&mut frontier, &["http://a.dk/1"]);
    let lease = lease(&mut frontier).unwrap();
    let mut changes = frontier.begin_changes();
    frontier
        .finish_uri(&mut changes, lease, outcome(false), place(10))
        .unwrap();
    let robots = PrerequisiteRow::Robots {
        status: Some(200),
        file: b"Disallow:".to_vec(),
        until: 0,
    };
    frontier
        .put_answer(&mut changes, "http://b.dk/robots.txt", &robots, place(20))
        .unwrap();
    frontier.commit_changes(changes).unwrap();
    drop(frontier);
    let settings = FrontierSettings {
        limits: limits.into(),
        cost: harvest_policy::cost::CostPolicy::Unit,
        connections: 1,
        fresh_key: [7; 32],
        begin: BEGIN.parse().unwrap(),
    };
    let (frontier, resume) = Frontier::open_frontier(directory.path(), &settings, |from, to| {
        from.file_length <= to.file_length
    })
    .unwrap();
    assert_eq!((resume.taken_back, resume.place), (0, place(20)));
    assert_eq!(frontier.waiting_uris(), 0);
}

/// Fails if in any of many random crawls, cut at random, a URI is lost, or fetched again after its outcome was
/// committed.
#[test]
fn random_crawls_fetch_every_uri_once() {
    for seed in 0..20 {
        let chance = Chance::seeded_chance(seed);
        let below = |limit: u64| u64::from_be_bytes(chance.random_bytes::<8>().unwrap()) % limit;
        let directory = tempfile::tempdir().unwrap();
        let mut frontier = open(directory.path(), QueueLimits::default());
        let mut scheduled = BTreeSet::new();
        let mut fetched = BTreeSet::new();
        let mut under_way = Vec::new();
        for _ in 0..300 {
            match below(20) {
                0 => {
                    under_way.clear();
                    drop(frontier);
                    frontier = open(directory.path(), QueueLimits::default());
                }
                1..8 => {
                    let mut changes = frontier.begin_changes();
                    for _ in 0..below(4) {
                        let host = below(5);
                        let page = below(60);
                        let urgency =
                            [Urgency::Normal, Urgency::Medium][usize::from(page % 7 == 0)];
                        let uri = format!("http://h{host}.dk/{page}");
                        let queue = format!("h{host}.dk");
                        let candidate = candidate(&frontier, &queue, &uri, urgency, 1);
                        let new = frontier.schedule_uri(&mut changes, candidate).unwrap();
                        assert_eq!(new, scheduled.insert(uri));
                    }
                    frontier.commit_changes(changes).unwrap();
                }
                8..14 => under_way.extend(lease(&mut frontier)),
                _ if under_way.is_empty() => {}
                _ => {
                    let at = usize::try_from(below(under_way.len() as u64)).unwrap();
                    let lease: UriLease = under_way.swap_remove(at);
                    let until = CrawlMoment::from_secs(below(2_000_000));
                    match below(8) {
                        0 => finish(&mut frontier, lease, true),
                        1 => retry(&mut frontier, lease, until),
                        2 => frontier.defer(&lease, until).unwrap(),
                        3 => frontier.put_back(&lease, CrawlMoment::ZERO),
                        _ => {
                            assert!(fetched.insert(lease.uri.uri.clone()), "fetched again");
                            finish(&mut frontier, lease, false);
                        }
                    }
                    frontier.wake_retries(NOW).unwrap();
                }
            }
            let waits = scheduled.len() - fetched.len() - under_way.len();
            assert_eq!(frontier.waiting_uris(), waits as u64);
        }
        for lease in under_way {
            assert!(fetched.insert(lease.uri.uri.clone()));
            finish(&mut frontier, lease, false);
        }
        frontier.wake_retries(NOW * 2).unwrap();
        assert_eq!(frontier.deferred_uris(), 0);
        while let Some(lease) = lease(&mut frontier) {
            assert!(fetched.insert(lease.uri.uri.clone()), "fetched again");
            finish(&mut frontier, lease, false);
        }
        assert_eq!(fetched, scheduled, "seed {seed}");
    }
}
