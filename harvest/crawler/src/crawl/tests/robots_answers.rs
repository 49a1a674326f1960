//! What hosts answer where a crawler asks for robots.txt: patience, failures, pauses and sitemaps.

use archive_daemon::clock::ManualClock;
use jiff::Timestamp;

use super::endings::manual;
use super::found_links::lines_of;
use super::requests::serve_requests;
use super::*;

/// Runs a crawl while time passes by steps, except while something is fetched: only rests are short.
pub(super) async fn run_without_rests(
    crawl: Crawl,
    handle: &CrawlHandle,
    manual: &ManualClock,
    step: Duration,
) -> CrawlOutcome {
    let mut opened = handle.opened.clone();
    let progress = handle.progress.clone();
    let hurry = async {
        opened.wait_for(|opened| *opened).await.unwrap();
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if progress.borrow().under_way == 0 {
                manual.advance(step);
            }
        }
    };
    tokio::select! {
        outcome = crawl.run_crawl() => outcome.unwrap(),
        () = hurry => unreachable!(),
    }
}

/// Fails if a host that is too busy for its robots.txt is asked again before the time that it has named, much later, or
/// for each of its URIs; if it is given up, or loses a page.
#[tokio::test]
async fn busy_robots_txt_is_asked_for_again_in_its_time() {
    let asks = Mutex::new(0);
    let (base, asked) = serve_by(Arc::new(move |path| {
        Some(match path {
            "/robots.txt" => {
                let mut asks = asks.lock();
                *asks += 1;
                if *asks == 1 {
                    let head = "HTTP/1.1 503 Busy\r\nRetry-After: 600\r\n";
                    format!("{head}Content-Length: 0\r\n\r\n")
                } else {
                    page("User-agent: *\nDisallow: /closed\n")
                }
            }
            "/" => page("<a href=/a>a</a> <a href=/closed>c</a>"),
            _ => page("leaf"),
        })
    }))
    .await;
    let directory = tempfile::tempdir().unwrap();
    let seeds = [base.clone(), base.join("second").unwrap()];
    let settings = settings(directory.path(), &seeds, "");
    let manual = manual();
    let (crawl, mut handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    let outcome = run_without_rests(crawl, &handle, &manual, Duration::from_secs(3)).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    assert_eq!(
        lines_of(directory.path(), &base),
        [
            "/ 200 -",
            "/a 200 L",
            "/closed -9998 L",
            "/robots.txt 200 P",
            "/robots.txt 503 P",
            "/second 200 -",
        ]
    );
    let asked = asked.lock();
    let questions = asked.iter().filter(|path| *path == "/robots.txt");
    assert_eq!(questions.count(), 2, "{asked:?}");
    let seconds = outcome.duration.as_secs();
    assert!((600..900).contains(&seconds), "{seconds}");
    assert_eq!((outcome.progress.fetched, outcome.progress.failed), (3, 0));
    assert_eq!(outcome.failing_seeds, []);
    assert_eq!(outcome.remaining.values().sum::<u64>(), 0);
    while let Ok(told) = handle.notices.try_recv() {
        let is_loss = matches!(
            told,
            CrawlNotice::SeedFailed { again: None, .. } | CrawlNotice::HostGivenUp { .. }
        );
        assert!(!is_loss, "{told:?}");
    }
}

/// Serves a host that answers its first page with a page, and all else so; `None`: it closes the connection.
async fn host_that_answers(robots: Option<String>) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    tokio::task::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let robots = robots.clone();
            tokio::task::spawn(async move {
                while let Some(head) = read_head(&mut stream).await {
                    let answer = match path_of(&head) {
                        "/" => Some(page("page")),
                        _ => robots.clone(),
                    };
                    let Some(answer) = answer else {
                        return;
                    };
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    Url::parse(&base).unwrap()
}

/// Fails if a robots.txt that the order ignores costs a page, or minutes, because it cannot be had; or if it is not
/// asked for and recorded any more.
#[tokio::test]
async fn ignored_robots_txt_costs_no_page() {
    let empty = |status: &str| Some(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
    for (robots, expected) in [
        (empty("500 Error"), 500),
        (empty("503 Busy"), 503),
        (None, -3),
        (Some(redirect("/robots.txt")), 302),
        // Deeper at each redirect, without an end.
        (Some(redirect("deeper/")), 302),
        (Some(page("User-agent: *\nDisallow: /\n")), 200),
    ] {
        let base = host_that_answers(robots.clone()).await;
        let directory = tempfile::tempdir().unwrap();
        let order = "robots.policy = \"ignore\"";
        let settings = settings(directory.path(), std::slice::from_ref(&base), order);
        let manual = manual();
        let (crawl, handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
        let outcome = run_without_rests(crawl, &handle, &manual, Duration::from_millis(100)).await;
        assert_eq!(
            (outcome.end, outcome.progress.fetched),
            (CrawlEnd::Finished, 1),
            "{robots:?}"
        );
        let lines = log(directory.path());
        let status = |path: &str| {
            let uri = base.join(path).unwrap();
            let line = lines.iter().find(|line| line.uri == uri.as_str());
            line.map(|line| line.status)
        };
        assert_eq!(
            (status("/robots.txt"), status("/")),
            (Some(expected), Some(200)),
            "{robots:?}"
        );
        let took = outcome.duration;
        assert!(took < Duration::from_mins(1), "{robots:?}: {took:?}");
    }
}

/// Fails if the Crawl-delay of a host is not kept, or also slows another host at its address.
#[tokio::test]
async fn crawl_delay_holds_for_its_host_alone() {
    const PAGES: usize = 5;
    let (base, _) = serve_requests("127.0.2.1", |request| match path_of(request) {
        "/robots.txt" if request.contains("\r\nHost: patient.test:") => {
            page("User-agent: *\nCrawl-delay: 30\n")
        }
        "/robots.txt" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => {
            let links = (0..PAGES).map(|number| format!("<a href=/{number}>p</a> "));
            page(&links.collect::<String>())
        }
    })
    .await;
    let port = base.port().unwrap();
    let order = format!(
        "dns.servers = [\"{}\"]\nnetworks.allow = [\"127.0.2.0/24\"]",
        super::names::name_server().await
    );
    let seeds = ["patient", "brisk"];
    let seeds = seeds.map(|host| Url::parse(&format!("http://{host}.test:{port}/")).unwrap());
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), &seeds, &order);
    let manual = manual();
    let (crawl, handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    let outcome = run_without_rests(crawl, &handle, &manual, Duration::from_secs(1)).await;
    assert_eq!(
        (outcome.end, outcome.progress.fetched),
        (CrawlEnd::Finished, 2 * (1 + PAGES as u64))
    );
    let lines = log(directory.path());
    let [patient, brisk] = seeds.map(|seed| {
        let lines = lines.iter();
        let lines = lines.filter(|line| line.uri.starts_with(seed.as_str()));
        let times = lines.map(|line| line.begun.as_ref().unwrap().time());
        times.collect::<Vec<Timestamp>>()
    });
    // With robots.txt and the first page.
    assert_eq!((patient.len(), brisk.len()), (PAGES + 2, PAGES + 2));
    for pair in patient.windows(2) {
        // The log has milliseconds.
        let pause = pair[1].duration_since(pair[0]).as_millis();
        assert!(pause >= 29_999, "{patient:?}");
    }
    let took = brisk[PAGES + 1].duration_since(brisk[0]).as_secs();
    assert!(took < 10, "{brisk:?}");
}

/// Fails if a page is lost that only a sitemap names, one of robots.txt or one of an index there; or if the log does
/// not say how it was found.
#[tokio::test]
async fn sitemaps_of_robots_txt_lead_to_pages() {
    let (base, _) = serve_requests("127.0.0.1", |request| {
        let host = request.lines().find_map(|line| line.strip_prefix("Host: "));
        let here = format!("http://{}", host.unwrap());
        let xml = |name: &str, entries: &str| {
            let space = "http://www.sitemaps.org/schemas/sitemap/0.9";
            let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
            let text = format!("{head}\n<{name} xmlns=\"{space}\">\n{entries}\n</{name}>\n");
            page(&text).replacen("text/html", "application/xml", 1)
        };
        match path_of(request) {
            "/robots.txt" => page(&format!(
                "Sitemap: {here}/map.xml\nUser-agent: *\nDisallow: /closed\nSitemap: {here}/index.xml\n"
            )),
            "/map.xml" => xml(
                "urlset",
                &format!("<url><loc> {here}/hidden?a=1&amp;b=2 </loc><lastmod>2026-11-23</lastmod></url>"),
            ),
            "/index.xml" => xml(
                "sitemapindex",
                &format!("<sitemap><loc>{here}/second.xml</loc></sitemap>"),
            ),
            "/second.xml" => xml("urlset", &format!("<url><loc>{here}/one-more</loc></url>")),
            _ => page("leaf"),
        }
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    crawl(settings(directory.path(), std::slice::from_ref(&base), "")).await;
    assert_eq!(
        lines_of(directory.path(), &base),
        [
            "/ 200 -",
            "/hidden?a=1&b=2 200 PML",
            "/index.xml 200 PM",
            "/map.xml 200 PM",
            "/one-more 200 PMML",
            "/robots.txt 200 P",
            "/second.xml 200 PMM",
        ]
    );
}
