//! Hosts in trouble beside healthy pages: what failed is tried again, and nothing else waits for it.

use std::net::SocketAddr;

use archive_daemon::clock::ManualClock;

use super::endings::{manual, run_fast};
use super::*;

/// The pages of a site besides its first one.
const PAGES: usize = 20;

/// Returns the first page of a site: these parts, then links to its pages.
fn home(parts: &str) -> String {
    let links = (0..PAGES).map(|number| format!("<a href=/p{number}>p</a> "));
    page(&(parts.to_owned() + &links.collect::<String>()))
}

/// Returns a port of this machine at which nobody listens.
async fn dead_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

/// Runs a crawl while time passes faster; returns its outcome, what people were told, and the statuses of its log.
async fn run(
    directory: &Path,
    seeds: &[Url],
    order: &str,
    manual: &ManualClock,
) -> (CrawlOutcome, Vec<CrawlNotice>, Vec<(String, i32)>) {
    let settings = settings(directory, seeds, order);
    let (crawl, mut handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    let outcome = run_fast(crawl, manual).await;
    let told = told_by(&mut handle);
    (outcome, told, statuses_of(directory, seeds))
}

/// Returns what people were told.
fn told_by(handle: &mut CrawlHandle) -> Vec<CrawlNotice> {
    let mut told = Vec::new();
    while let Ok(notice) = handle.notices.try_recv() {
        told.push(notice);
    }
    told
}

/// Returns the URIs of the log with their statuses: `/p0` of the first seed, and whole ones of others.
fn statuses_of(directory: &Path, seeds: &[Url]) -> Vec<(String, i32)> {
    let lines = log(directory).into_iter();
    let lines = lines.map(|line| (line.uri.replace(seeds[0].as_str(), "/"), line.status));
    lines.collect()
}

/// Fails if a dead image, link or second seed of a domain keeps its pages from being fetched, or ends the crawl before
/// them.
#[tokio::test]
async fn dead_uris_of_a_domain_cost_no_page() {
    let port = dead_port().await;
    let dead = format!("http://127.0.0.1:{port}/");
    let order = format!("scope.accept = [\"http://(127.0.0.1:{port})\"]");
    let image = format!("<img src={dead}x.png>");
    let two_links = format!("<a href={dead}x>x</a> <a href={dead}y>y</a>");
    for (parts, is_seed, expected) in [
        (image, false, 1),
        (two_links, false, 2),
        (String::new(), true, 1),
    ] {
        let (base, _) = serve_by(Arc::new(move |path| match path {
            "/" => Some(home(&parts)),
            _ => path.starts_with("/p").then(|| page("leaf")),
        }))
        .await;
        let mut seeds = vec![base];
        seeds.extend(is_seed.then(|| Url::parse(&dead).unwrap()));
        let directory = tempfile::tempdir().unwrap();
        let (outcome, _, lines) = run(directory.path(), &seeds, &order, &manual()).await;
        assert_eq!(outcome.end, CrawlEnd::Finished);
        assert_eq!(outcome.progress.fetched, 1 + PAGES as u64);
        let failed: Vec<_> = lines.iter().filter(|(_, status)| *status == -8).collect();
        assert_eq!(failed.len(), expected, "{lines:?}");
        // They come last, for they are tried again.
        let first = lines.iter().position(|(_, status)| *status == -8).unwrap();
        assert!(lines[..first].len() > PAGES, "{lines:?}");
        assert_eq!(outcome.remaining.values().sum::<u64>(), 0);
    }
}

/// Fails if one part whose host asks for patience stops its site for longer than the order grants, is not tried again,
/// or is not recorded as it was answered.
#[tokio::test]
async fn busy_part_is_waited_for_and_recorded() {
    for (field, status, hours) in [("Retry-After: 86400\r\n", 429, 2..4), ("", 503, 0..2)] {
        let (base, asked) = serve_by(Arc::new(move |path| match path {
            "/" => Some(home("<img src=/x.png>")),
            "/x.png" => Some(format!(
                "HTTP/1.1 {status} Later\r\n{field}Content-Length: 0\r\n\r\n"
            )),
            _ => path.starts_with("/p").then(|| page("leaf")),
        }))
        .await;
        let directory = tempfile::tempdir().unwrap();
        let seeds = std::slice::from_ref(&base);
        let (outcome, _, lines) = run(directory.path(), seeds, "", &manual()).await;
        assert_eq!(outcome.end, CrawlEnd::Finished);
        assert_eq!(
            lines.iter().filter(|(_, status)| *status == 200).count(),
            1 + PAGES
        );
        assert!(lines.contains(&("/x.png".to_owned(), status)), "{lines:?}");
        assert_eq!(
            asked.lock().iter().filter(|path| *path == "/x.png").count(),
            3
        );
        assert!(
            hours.contains(&(outcome.duration.as_secs() / 3600)),
            "{:?}",
            outcome.duration
        );
    }
}

/// Serves a host that has no robots.txt and answers each request for its page with the next of `answers`: how much of
/// 1,000 bytes it sends before it breaks off. `None` for nothing at all.
async fn breaking_host(answers: &'static [Option<usize>]) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let left = Arc::new(Mutex::new(answers.iter()));
    tokio::task::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let left = Arc::clone(&left);
            tokio::task::spawn(async move {
                if let Some(head) = read_head(&mut stream).await {
                    if path_of(&head) == "/robots.txt" {
                        let answer =
                            "HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                        stream.write_all(answer.as_bytes()).await.unwrap();
                        return;
                    }
                    let next = left.lock().next().copied();
                    if let Some(length) = next.expect("the page is asked for too often") {
                        let head =
                            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n";
                        stream.write_all(head.as_bytes()).await.unwrap();
                        stream.write_all(&vec![b'x'; length]).await.unwrap();
                    }
                }
            });
        }
    });
    Url::parse(&base).unwrap()
}

/// Fails if an answer that is cut passes for the page at once, a whole one is not taken, or the longest one is lost.
#[tokio::test]
async fn cut_answers_are_tried_again_and_the_longest_is_kept() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n".len();
    for (answers, expected, length) in [
        (&[Some(1000)][..], "1t whole", 1000),
        (&[Some(400), Some(1000)], "2t whole", 1000),
        (
            &[Some(400), Some(700), Some(500)],
            "3t disconnectTrunc",
            700,
        ),
        (&[Some(700), None, None], "3t disconnectTrunc", 700),
        (&[None, Some(700), Some(1000)], "3t whole", 1000),
    ] {
        let base = breaking_host(answers).await;
        let directory = tempfile::tempdir().unwrap();
        let seeds = std::slice::from_ref(&base);
        run(directory.path(), seeds, "", &manual()).await;
        let lines = log(directory.path());
        let line = lines.iter().find(|line| line.uri == base.as_str()).unwrap();
        let has = |text: &str| line.annotations.iter().any(|annotation| annotation == text);
        let tries = if has("3t") {
            "3t"
        } else if has("2t") {
            "2t"
        } else {
            "1t"
        };
        let cut = if has("disconnectTrunc") {
            "disconnectTrunc"
        } else {
            "whole"
        };
        assert_eq!(
            (line.status, format!("{tries} {cut}").as_str()),
            (200, expected),
            "{answers:?}"
        );
        assert!(
            has(&format!("content-size:{}", head + length)),
            "{:?}",
            line.annotations
        );
        let recorded = recorded(directory.path(), WarcType::Response);
        assert_eq!(
            recorded.iter().filter(|uri| *uri == base.as_str()).count(),
            1
        );
    }
}

/// Fails if a host that dies with many URIs before it is asked for each of them, costs a line for each notice, or takes
/// a page of another host with it.
#[tokio::test]
async fn host_that_dies_is_given_up_once() {
    const LINKS: usize = 300;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dying = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    tokio::task::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(listener);
        for _ in 0..2 {
            let head = read_head(&mut stream).await.unwrap();
            let links = (0..LINKS).map(|number| format!("<a href=/{number}>x</a> "));
            let answer = match path_of(&head) {
                "/" => page(&links.collect::<String>()),
                _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            };
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let (living, _) = serve_by(Arc::new(|path| match path {
        "/" => Some(home("")),
        _ => path.starts_with("/p").then(|| page("leaf")),
    }))
    .await;
    let directory = tempfile::tempdir().unwrap();
    let seeds = [living, dying.clone()];
    let manual = manual();
    let settings = settings(directory.path(), &seeds, "");
    let (crawl, mut handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    // So slowly that all of them are asked for in the rest of their host.
    let hurry = async {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            manual.advance(Duration::from_millis(100));
        }
    };
    let outcome = tokio::select! {
        outcome = crawl.run_crawl() => outcome.unwrap(),
        () = hurry => unreachable!(),
    };
    let told = told_by(&mut handle);
    let lines = statuses_of(directory.path(), &seeds);
    assert_eq!(outcome.end, CrawlEnd::Finished);
    assert_eq!(outcome.progress.fetched, 2 + PAGES as u64);
    let lost = lines.iter().filter(|(_, status)| *status == -8).count();
    assert_eq!(lost, LINKS);
    let [CrawlNotice::HostGivenUp { host, waiting, .. }] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert!(dying.as_str().contains(host.as_str()));
    assert!(*waiting > LINKS as u64 / 2, "{waiting}");
    let minutes = outcome.duration.as_secs() / 60;
    assert!((15..60).contains(&minutes), "{minutes}");
}

/// Fails if what a host has sent of a page before it died is lost, because the host is given up before the last try.
#[tokio::test]
async fn cut_answer_of_a_dead_host_is_recorded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let base = Url::parse(&base).unwrap();
    tokio::task::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(listener);
        let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart of it".to_owned();
        for answer in [missing, home(""), cut] {
            read_head(&mut stream).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let seeds = std::slice::from_ref(&base);
    let (outcome, told, lines) = run(directory.path(), seeds, "", &manual()).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    assert_eq!(outcome.progress.fetched, 2);
    let fetched = lines.iter().filter(|(_, status)| *status == 200);
    assert_eq!(fetched.count(), 2, "{lines:?}");
    let lost = lines.iter().filter(|(_, status)| *status == -8);
    assert_eq!(lost.count(), PAGES - 1, "{lines:?}");
    let log = log(directory.path());
    let is_cut = |note: &String| note == "disconnectTrunc";
    let cut = log
        .iter()
        .filter(|line| line.annotations.iter().any(is_cut));
    assert_eq!(cut.count(), 1);
    // It tells nothing new of the host.
    let given_up = |notice: &&CrawlNotice| matches!(notice, CrawlNotice::HostGivenUp { .. });
    assert_eq!(told.iter().filter(given_up).count(), 1, "{told:?}");
}

/// Fails if a name server that is away for minutes costs a host, or is not told of once.
#[tokio::test]
async fn lost_name_server_costs_no_host() {
    let (base, _) =
        super::requests::serve_requests("127.0.2.1", |request| match path_of(request) {
            "/" => page("page"),
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        })
        .await;
    let port = base.port().unwrap();
    let address: SocketAddr = ([127, 0, 0, 1], dead_port().await).into();
    let order = format!("dns.servers = [\"{address}\"]\nnetworks.allow = [\"127.0.2.0/24\"]");
    let hosts = ["a.test", "b.test", "c.test", "d.test", "e.test"];
    let seeds = hosts.map(|host| Url::parse(&format!("http://{host}:{port}/")).unwrap());
    let directory = tempfile::tempdir().unwrap();
    let manual = manual();
    let settings = settings(directory.path(), &seeds, &order);
    let (crawl, mut handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    let comes_back = async {
        // The first hosts pass for those that are at fault.
        while !matches!(
            handle.notices.recv().await.unwrap(),
            CrawlNotice::NoNameServer(_)
        ) {}
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            manual.advance(Duration::from_mins(1));
        }
        super::names::name_server_at(address).await;
        loop {
            // It is told of once, however often it is asked.
            let told = handle.notices.try_recv();
            assert!(told.is_err(), "{told:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
            manual.advance(Duration::from_millis(500));
        }
    };
    let outcome = tokio::select! {
        outcome = crawl.run_crawl() => outcome.unwrap(),
        () = comes_back => unreachable!(),
    };
    let lines = statuses_of(directory.path(), &seeds);
    assert_eq!(outcome.end, CrawlEnd::Finished);
    assert_eq!(outcome.progress.fetched, 5);
    assert!(outcome.duration >= Duration::from_mins(5));
    assert!(lines.iter().all(|(_, status)| *status > 0), "{lines:?}");
    assert!(
        outcome.failing_seeds.is_empty(),
        "{:?}",
        outcome.failing_seeds
    );
}
