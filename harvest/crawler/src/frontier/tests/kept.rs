//! Frontiers that keep more than URIs for the next process, and URIs that come back unfetched.

use harvest_policy::account::QueueStanding;
use harvest_policy::queue_rules::QueueRules;

use super::*;

fn rests(frontier: &mut Frontier, until: CrawlMoment) {
    let lease = lease(frontier).unwrap();
    let mut changes = frontier.begin_changes();
    let outcome = LeaseOutcome {
        rests_until: until,
        status: FetchStatus::CONNECT_FAILED,
        ..outcome(true)
    };
    frontier
        .finish_uri(&mut changes, lease, outcome, place(0))
        .unwrap();
    frontier.commit_changes(changes).unwrap();
}

fn open_at(directory: &Path, begin: &str) -> Frontier {
    let settings = FrontierSettings {
        limits: QueueLimits::default().into(),
        cost: harvest_policy::cost::CostPolicy::Unit,
        connections: 1,
        fresh_key: [7; 32],
        begin: begin.parse().unwrap(),
    };
    Frontier::open_frontier(directory, &settings, |_, _| true)
        .unwrap()
        .0
}

/// Fails if a queue that was put off goes sooner because its process ended, or later.
#[test]
fn rest_of_a_queue_outlives_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let mut frontier = open_at(directory.path(), "2026-11-23T00:00:00Z");
    schedule(&mut frontier, &["http://a.dk/1"]);
    rests(&mut frontier, CrawlMoment::from_secs(1_000_900));
    drop(frontier);
    let begin = "2026-11-23T00:00:00Z".parse::<Timestamp>().unwrap();
    let later = begin + Duration::from_secs(1_000_300);
    let mut frontier = open_at(directory.path(), &later.to_string());
    let moment = CrawlMoment::from_mins(10);
    assert_eq!(
        frontier.next(CrawlMoment::from_secs(1)).unwrap(),
        NextUri::Later(moment)
    );
    assert!(matches!(frontier.next(moment).unwrap(), NextUri::Fetch(_)));
    drop(frontier);
    // A clock that went far back does not put it off for weeks.
    let mut frontier = open_at(directory.path(), "2026-11-23T00:00:00Z");
    let NextUri::Later(moment) = frontier.next(CrawlMoment::ZERO).unwrap() else {
        panic!("it does not rest");
    };
    assert_eq!(moment, CrawlMoment::from_hours(48));
}

/// Fails if a URI that was not fetched is lost, comes out of its order, or comes while it is being fetched.
#[test]
fn unfetched_uri_comes_back_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let settings = FrontierSettings {
        limits: QueueLimits::default().into(),
        cost: harvest_policy::cost::CostPolicy::Unit,
        connections: 3,
        fresh_key: [7; 32],
        begin: BEGIN.parse().unwrap(),
    };
    let opened = Frontier::open_frontier(directory.path(), &settings, |_, _| true);
    let (mut frontier, _) = opened.unwrap();
    let uris = [
        "http://a.dk/1",
        "http://a.dk/2",
        "http://a.dk/3",
        "http://a.dk/4",
    ];
    schedule(&mut frontier, &uris);
    let leases: Vec<UriLease> = (0..3).map(|_| lease(&mut frontier).unwrap()).collect();
    frontier.put_back(&leases[1], CrawlMoment::ZERO);
    frontier.put_back(&leases[1], CrawlMoment::ZERO);
    assert_eq!(frontier.waiting_uris(), 2);
    let again = lease(&mut frontier).unwrap();
    assert_eq!(again, leases[1]);
    finish(&mut frontier, again, false);
    assert_eq!(lease(&mut frontier).unwrap().uri.uri, uris[3]);
    assert_eq!(frontier.waiting_uris(), 0);
    // The last one of a queue that was exhausted meanwhile comes back as well.
    frontier.put_back(&leases[0], CrawlMoment::from_secs(5_000_000));
    assert_eq!(
        frontier.next(CrawlMoment::from_secs(4_000_000)).unwrap(),
        NextUri::Later(CrawlMoment::from_secs(5_000_000))
    );
    let lease = frontier.next(CrawlMoment::from_secs(5_000_000)).unwrap();
    assert!(matches!(lease, NextUri::Fetch(lease) if lease.uri.uri == uris[0]));
}

/// Fails if the limits that a person gave a queue end with the process, or hold for another queue.
#[test]
fn budget_outlives_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let limits = QueueLimits {
        successes: Some(1),
        ..QueueLimits::default()
    };
    let mut frontier = open(directory.path(), limits);
    let budget = QueueBudget {
        objects: Some(2),
        bytes: None,
    };
    let mut changes = frontier.begin_changes();
    assert!(!frontier.put_budget(&mut changes, "a.dk", budget).unwrap());
    frontier.commit_changes(changes).unwrap();
    drop(frontier);
    let mut frontier = open(directory.path(), limits);
    schedule(
        &mut frontier,
        &["http://a.dk/1", "http://a.dk/2", "http://a.dk/3"],
    );
    let mut fetched = 0;
    while let Some(lease) = lease(&mut frontier) {
        finish(&mut frontier, lease, false);
        fetched += 1;
    }
    assert_eq!((fetched, frontier.retired_queues()), (2, 1));
    let queues = frontier.snapshot_queues().unwrap();
    let standing = queues[0].account.queue_standing(&queues[0].limits, 0);
    assert!(matches!(standing, QueueStanding::QuotaReached(_)));
    assert_eq!(queues[0].next.as_deref(), Some("http://a.dk/3"));
    assert_eq!((queues[0].size, queues[0].enqueued), (1, 3));
}

/// Fails if the running time of a crawl begins anew with each process.
#[test]
fn running_time_outlives_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let mut frontier = open(directory.path(), QueueLimits::default());
    assert_eq!(frontier.running_time(), Duration::ZERO);
    frontier.set_running_time(Duration::from_secs(77));
    frontier.sync_to(&place(0)).unwrap();
    drop(frontier);
    let frontier = open(directory.path(), QueueLimits::default());
    assert_eq!(frontier.running_time(), Duration::from_secs(77));
}

/// Fails if a queue goes before one of a smaller precedence, or its process changes that.
#[test]
fn queues_of_small_precedence_go_first() {
    let directory = tempfile::tempdir().unwrap();
    let rules = QueueRules::new(|name| QueueLimits {
        precedence: if name == "first.dk" { 1 } else { 2 },
        ..QueueLimits::default()
    });
    let settings = FrontierSettings {
        limits: rules,
        cost: harvest_policy::cost::CostPolicy::Unit,
        connections: 1,
        fresh_key: [7; 32],
        begin: "2026-11-23T00:00:00Z".parse().unwrap(),
    };
    let open = || {
        Frontier::open_frontier(directory.path(), &settings, |_, _| true)
            .unwrap()
            .0
    };
    let mut frontier = open();
    let mut changes = frontier.begin_changes();
    for (queue, text) in [
        ("late.dk", "http://late.dk/1"),
        ("first.dk", "http://first.dk/1"),
        ("first.dk", "http://first.dk/2"),
    ] {
        let candidate = candidate(&frontier, queue, text, Urgency::Normal, 1);
        assert!(frontier.schedule_uri(&mut changes, candidate).unwrap());
    }
    frontier.commit_changes(changes).unwrap();
    let mut order = Vec::new();
    for _ in 0..3 {
        let lease = lease(&mut frontier).unwrap();
        order.push(lease.uri.uri.clone());
        finish(&mut frontier, lease, false);
        drop(frontier);
        frontier = open();
    }
    assert_eq!(
        order,
        ["http://first.dk/1", "http://first.dk/2", "http://late.dk/1"]
    );
}

/// Fails if a URI that waits for its next try keeps its queue from going on, comes back before its moment or before
/// others, or is lost or doubled with its process.
#[test]
fn retry_waits_beside_its_queue() {
    let directory = tempfile::tempdir().unwrap();
    let begin = "2026-11-23T00:00:00Z".parse::<Timestamp>().unwrap();
    let mut frontier = open_at(directory.path(), &begin.to_string());
    schedule(
        &mut frontier,
        &["http://a.dk/1", "http://a.dk/2", "http://a.dk/3"],
    );
    let minute = CrawlMoment::from_mins(1);
    let failed = lease(&mut frontier).unwrap();
    retry(&mut frontier, failed, minute);
    let host_rests = lease(&mut frontier).unwrap();
    frontier.defer(&host_rests, 2 * minute).unwrap();
    assert_eq!((frontier.waiting_uris(), frontier.deferred_uris()), (3, 2));
    assert!(frontier.has_fresh_uris());
    drop(frontier);
    let later = begin + Duration::from_secs(30);
    let mut frontier = open_at(directory.path(), &later.to_string());
    assert_eq!((frontier.waiting_uris(), frontier.deferred_uris()), (3, 2));
    let third = lease(&mut frontier).unwrap();
    assert_eq!(third.uri.uri, "http://a.dk/3");
    finish(&mut frontier, third, false);
    assert!(!frontier.has_fresh_uris());
    let half = CrawlMoment::from_secs(30);
    assert_eq!(
        frontier.next(CrawlMoment::ZERO).unwrap(),
        NextUri::Later(half)
    );
    frontier.wake_retries(CrawlMoment::from_secs(29)).unwrap();
    assert_eq!(frontier.deferred_uris(), 2);
    // What only waits for its host is no retry, and goes first.
    frontier.wake_retries(2 * minute).unwrap();
    let order = [(); 2].map(|()| {
        let lease = lease(&mut frontier).unwrap();
        let uri = (lease.uri.uri.clone(), lease.uri.tries);
        finish(&mut frontier, lease, false);
        uri
    });
    let expected = [("http://a.dk/2", 0), ("http://a.dk/1", 1)];
    assert_eq!(order, expected.map(|(uri, tries)| (uri.to_owned(), tries)));
    assert_eq!(frontier.next(NOW).unwrap(), NextUri::Over);
}

/// Fails if a try that a power cut takes back leaves its URI in two places, wherever that has waited since.
#[test]
fn retry_that_is_taken_back_is_there_once() {
    for (wakes, defers) in [(false, false), (true, false), (true, true)] {
        let directory = tempfile::tempdir().unwrap();
        let settings = || FrontierSettings {
            limits: QueueLimits::default().into(),
            cost: harvest_policy::cost::CostPolicy::Unit,
            connections: 1,
            fresh_key: [7; 32],
            begin: BEGIN.parse().unwrap(),
        };
        let opened = Frontier::open_frontier(directory.path(), &settings(), |_, _| true);
        let (mut frontier, _) = opened.unwrap();
        schedule(&mut frontier, &["http://a.dk/1"]);
        let failed = lease(&mut frontier).unwrap();
        retry(&mut frontier, failed, CrawlMoment::from_secs(5));
        if wakes {
            frontier.wake_retries(CrawlMoment::from_secs(5)).unwrap();
        }
        if defers {
            let again = lease(&mut frontier).unwrap();
            frontier.defer(&again, CrawlMoment::from_secs(9)).unwrap();
        }
        drop(frontier);
        let opened = Frontier::open_frontier(directory.path(), &settings(), |_, _| false);
        let (mut frontier, resume) = opened.unwrap();
        assert_eq!(resume.taken_back, 1);
        assert_eq!((frontier.waiting_uris(), frontier.deferred_uris()), (1, 0));
        assert_eq!(lease(&mut frontier).unwrap().uri.tries, 0);
    }
}
