//! Crawls that end for other reasons than that nothing is left, by a clock that the tests move.

use archive_daemon::clock::ManualClock;
use harvest_policy::status::FetchStatus;
use jiff::Timestamp;

use super::*;

pub(super) fn manual() -> ManualClock {
    ManualClock::running_from("2026-11-23T00:00:00Z".parse().unwrap())
}

/// Runs a crawl while time passes a thousand times faster.
pub(super) async fn run_fast(crawl: Crawl, manual: &ManualClock) -> CrawlOutcome {
    let hurry = async {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            manual.advance(Duration::from_secs(1));
        }
    };
    tokio::select! {
        outcome = crawl.run_crawl() => outcome.unwrap(),
        () = hurry => unreachable!(),
    }
}

/// Returns a URI of this machine at which nobody listens, in a queue of its own.
pub(super) async fn dead_seed() -> Url {
    let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    Url::parse(&base).unwrap()
}

/// Serves a host that takes requests and never answers; returns it with the number of its connections.
async fn silent_host() -> (Url, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    tokio::task::spawn(async move {
        let mut open = Vec::new();
        loop {
            open.push(listener.accept().await.unwrap());
            *counted.lock() += 1;
        }
    });
    (Url::parse(&base).unwrap(), count)
}

/// Fails if a crawl waits for a dead seed longer than its order says, does not say why, or ends while a URI is in
/// flight.
#[tokio::test]
async fn dead_seed_costs_minutes() {
    let dead = dead_seed().await;
    let (base, _) = serve(&small_site()).await;
    let seeds = [dead.clone(), base];
    let status = FetchStatus::CONNECT_FAILED;
    let idle = Duration::from_mins(30);
    for (order, expected, minutes, remaining, delay) in [
        ("", CrawlEnd::Finished, 5..25, 0, 5),
        (
            "retry.first_delay = \"2 h\"",
            CrawlEnd::Idle,
            30..45,
            1,
            7200,
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(directory.path(), &seeds, order);
        let manual = manual();
        let (crawl, mut handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
        let outcome = run_fast(crawl, &manual).await;
        assert_eq!(outcome.end, expected);
        let took = outcome.duration.as_secs() / 60;
        assert!(minutes.contains(&took), "{took}");
        assert_eq!(outcome.failing_seeds, [(dead.to_string(), status.number())]);
        assert_eq!(outcome.remaining.values().sum::<u64>(), remaining);
        let told = handle.notices.try_recv().unwrap();
        let expected = CrawlNotice::SeedFailed {
            seed: dead.to_string(),
            status,
            again: Some((Duration::from_secs(delay), 3)),
            idle,
        };
        assert_eq!(told, expected);
    }
}

/// Fails if a host that asks for patience is taken for one that does not answer, and its pages are left behind.
#[tokio::test]
async fn host_that_asks_for_patience_is_waited_for() {
    let asked = Mutex::new(0);
    let (base, _) = serve_by(Arc::new(move |path| {
        let mut asked = asked.lock();
        *asked += u32::from(path == "/");
        let wait = "HTTP/1.1 503 Later\r\nRetry-After: 7200\r\nContent-Length: 0\r\n\r\n";
        let answer = if *asked == 1 {
            wait.to_owned()
        } else {
            page("here")
        };
        (path == "/").then_some(answer)
    }))
    .await;
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), std::slice::from_ref(&base), "");
    let manual = manual();
    let (crawl, _handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    let outcome = run_fast(crawl, &manual).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    // Two hours are more than the order grants.
    assert!(outcome.duration >= Duration::from_hours(1));
    assert!(outcome.duration < Duration::from_mins(70));
    assert_eq!(statuses(directory.path(), &base).get("/"), Some(&200));
}

/// Fails if a crawl on a full disk waits without an end, ends as if it were finished, or cannot be resumed.
#[tokio::test]
async fn crawl_without_room_is_suspended() {
    let (base, asked) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let manual = manual();
    let mut full = settings(directory.path(), std::slice::from_ref(&base), "");
    full.min_free = u64::MAX;
    let (crawl, mut handle) = Crawl::new(full, manual.clock(), Chance::system_chance());
    let outcome = run_fast(crawl, &manual).await;
    assert_eq!(outcome.end, CrawlEnd::Suspended);
    assert_eq!(handle.notices.try_recv().unwrap(), CrawlNotice::LacksSpace);
    assert!(asked.lock().len() <= 1);
    let roomy = settings(directory.path(), std::slice::from_ref(&base), "");
    let (crawl, _handle) = Crawl::new(roomy, manual.clock(), Chance::system_chance());
    assert_eq!(run_fast(crawl, &manual).await.end, CrawlEnd::Finished);
}

/// Fails if the limit of time is that of each process, or pauses count.
#[tokio::test]
async fn limit_of_time_is_of_the_job() {
    let dead = dead_seed().await;
    let directory = tempfile::tempdir().unwrap();
    let order = "limits.max_time = \"1 h\"\nlimits.idle = \"10 h\"\nretry.max_tries = 1000";
    let hour = Duration::from_hours(1);
    let manual = manual();
    let mut before = Duration::ZERO;
    for (pause, run) in [(Duration::ZERO, 20), (2 * hour, 30)] {
        let settings = settings(directory.path(), std::slice::from_ref(&dead), order);
        let (crawl, handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
        let control = handle.control.clone();
        if !pause.is_zero() {
            control.send(CrawlCommand::Pause).unwrap();
        }
        let stop = async {
            let clock = manual.clock();
            clock.sleep(pause).await;
            control.send(CrawlCommand::Resume).unwrap();
            clock.sleep(Duration::from_mins(run)).await;
            control.send(CrawlCommand::Suspend).unwrap();
            std::future::pending::<()>().await;
        };
        let outcome = tokio::select! {
            outcome = run_fast(crawl, &manual) => outcome,
            () = stop => unreachable!(),
        };
        assert_eq!(outcome.end, CrawlEnd::Suspended);
        let ran = outcome.duration.checked_sub(before).unwrap();
        assert!(ran >= Duration::from_mins(run), "{ran:?}");
        assert!(ran < Duration::from_mins(run + 5), "{ran:?}");
        before = outcome.duration;
    }
    let settings = settings(directory.path(), std::slice::from_ref(&dead), order);
    let (crawl, _handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    let outcome = run_fast(crawl, &manual).await;
    assert_eq!(outcome.end, CrawlEnd::TimeLimit);
    assert!(outcome.duration >= hour && outcome.duration < hour + Duration::from_mins(2));
}

/// Fails if a fetch that hangs keeps a crawl from ending, is lost, or counts as a try.
#[tokio::test]
async fn hanging_fetch_is_cut_after_grace() {
    for (control, order) in [
        (Some(CrawlCommand::Suspend), ""),
        (Some(CrawlCommand::Terminate), ""),
        (None, "limits.max_time = \"5 s\""),
    ] {
        let (base, count) = silent_host().await;
        let directory = tempfile::tempdir().unwrap();
        let order = format!("limits.stall = \"1 h\"\nlimits.total = \"2 h\"\n{order}");
        let manual = manual();
        let crawl = || {
            let settings = settings(directory.path(), std::slice::from_ref(&base), &order);
            Crawl::new(settings, manual.clock(), Chance::system_chance())
        };
        let (first, mut handle) = crawl();
        let control = control.clone();
        let told = handle.control.clone();
        let (begun, mut is_under_way) = watch::channel(false);
        let stop = async {
            let under_way = handle.progress.wait_for(|progress| progress.under_way > 0);
            under_way.await.unwrap();
            begun.send_replace(true);
            if let Some(control) = control {
                told.send(control).unwrap();
            }
            std::future::pending::<()>().await;
        };
        let hurry = async {
            is_under_way.wait_for(|begun| *begun).await.unwrap();
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                manual.advance(Duration::from_secs(1));
            }
        };
        let outcome = tokio::select! {
            outcome = first.run_crawl() => outcome.unwrap(),
            () = stop => unreachable!(),
            () = hurry => unreachable!(),
        };
        assert!(outcome.duration < Duration::from_mins(1), "{outcome:?}");
        assert_eq!(*count.lock(), 1);
        let connections = &outcome.connections;
        assert_eq!(connections.len(), 1);
        assert!(connections[0].uri.as_ref().unwrap().ends_with("robots.txt"));
        assert_eq!(outcome.remaining.values().sum::<u64>(), 1);
        assert_eq!(outcome.progress.failed, 0);
    }
}

/// Fails if the first page is asked for sooner after robots.txt than that allows.
#[tokio::test]
async fn first_page_waits_the_crawl_delay() {
    let manual = manual();
    let clock = manual.clock();
    let visits: Arc<Mutex<Vec<(String, Timestamp)>>> = Arc::default();
    let noted = Arc::clone(&visits);
    let (base, _) = serve_by(Arc::new(move |path| {
        noted.lock().push((path.to_owned(), clock.now()));
        Some(match path {
            "/robots.txt" => page("User-agent: *\nCrawl-delay: 7\n"),
            "/" => page("<a href=/a>a</a>"),
            _ => page("leaf"),
        })
    }))
    .await;
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), std::slice::from_ref(&base), "");
    let (crawl, _handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    assert_eq!(run_fast(crawl, &manual).await.progress.fetched, 2);
    let visits = visits.lock();
    assert_eq!(visits.len(), 3);
    for pair in visits.windows(2) {
        let pause = pair[1].1.duration_since(pair[0].1);
        assert!(pause.as_secs() >= 7, "{visits:?}");
    }
}
