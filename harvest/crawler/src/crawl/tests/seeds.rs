//! Seeds that lead elsewhere, that look alike, and whose first page has parts of other hosts.

use super::requests::{Requests, requests_for, serve_requests};
use super::*;

/// Returns the answer of a host without a robots.txt: `home` for its first page, and pages that link to `/next`.
fn site(home: String) -> impl Fn(&str) -> String + Send + Sync + 'static {
    move |request| match request.split(' ').nth(1).unwrap() {
        "/robots.txt" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/" => home.clone(),
        _ => page("<img src=/i.png> <a href=/next>next</a>"),
    }
}

/// Returns the paths that a host was asked for, sorted.
fn paths(requests: &Requests) -> BTreeSet<String> {
    let requests = requests.lock();
    let paths = requests.iter().map(|request| path_of(request).to_owned());
    paths.filter(|path| path != "/robots.txt").collect()
}

/// Crawls from a seed whose answer leads to another host. Returns the paths that the other host is asked for.
async fn led_by(answer: impl Fn(&Url) -> String, redirects: &str) -> BTreeSet<String> {
    let (target, told) = serve_requests(
        "127.0.0.2",
        site(page("<img src=/i.png> <a href=/next>n</a>")),
    )
    .await;
    let (seed, _) = serve_requests("127.0.0.1", site(answer(&target))).await;
    let directory = tempfile::tempdir().unwrap();
    let order =
        format!("scope.seed_redirects = \"{redirects}\"\nnetworks.allow = [\"127.0.0.0/8\"]");
    crawl(settings(directory.path(), &[seed], &order)).await;
    paths(&told)
}

/// Fails if a seed that is redirected takes another site along unasked, or its page is not captured, or a site that has
/// moved is left behind where the order follows it.
#[tokio::test]
async fn redirected_seed_takes_no_other_site_along() {
    let whole = ["/", "/i.png", "/next"].map(str::to_owned);
    let with_parts = ["/", "/i.png"].map(str::to_owned);
    let ways: [fn(&Url) -> String; 3] = [
        |target| redirect(target.as_str()),
        |target| {
            page(&format!(
                "<meta http-equiv=Refresh content='0; URL={target}'>"
            ))
        },
        |target| {
            format!("HTTP/1.1 200 OK\r\nRefresh: 5; url={target}\r\nContent-Length: 0\r\n\r\n")
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        for (redirects, expected) in [
            ("same-site", with_parts.as_slice()),
            ("off", &with_parts),
            ("host", &whole),
        ] {
            let paths: Vec<String> = led_by(way, redirects).await.into_iter().collect();
            assert_eq!(paths, expected, "{number}, {redirects}");
        }
    }
    // A browser follows the field, and never reads the body.
    let both = |target: &Url| {
        let body = format!("<meta http-equiv=refresh content='0; url={target}'>");
        let head = "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Type: text/html\r\n";
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    assert_eq!(led_by(both, "host").await, BTreeSet::from(with_parts));
}

/// Fails if a part of a page is lost because the page links to it as well.
#[tokio::test]
async fn linked_part_of_another_host_is_captured() {
    let (parts, told) = serve_requests("127.0.0.2", site(page(""))).await;
    let linked =
        format!("<a href={parts}a.png><img src={parts}a.png></a> <a href={parts}b.png>b</a>");
    let (seed, _) = serve_requests("127.0.0.1", site(page(&linked))).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "networks.allow = [\"127.0.0.0/8\"]";
    crawl(settings(directory.path(), &[seed], order)).await;
    assert_eq!(requests_for(&told, "/a.png").len(), 1);
    assert_eq!(requests_for(&told, "/b.png").len(), 0);
}

/// Fails if one of two seeds that look alike is not asked for, a link to a seed is fetched beside it, or a name without
/// an address takes the page of the other name with it.
#[tokio::test]
async fn seeds_that_look_alike_are_both_asked_for() {
    let home = "<a href=/>home</a> <a href=/page>page</a>";
    let (base, told) = serve_requests("127.0.2.1", site(page(home))).await;
    let port = base.port().unwrap();
    let order = format!(
        "scope.accept = [\"http://(test,\"]\ndns.servers = [\"{}\"]\nnetworks.allow = [\"127.0.2.0/24\"]",
        super::names::name_server().await
    );
    let seed = |host: &str| Url::parse(&format!("http://{host}:{port}/")).unwrap();
    for (seeds, expected) in [
        (["www.good.test", "good.test"], 2),
        (["www.unknown.test", "unknown.test"], 0),
        (["www.half.test", "half.test"], 1),
    ] {
        told.lock().clear();
        let directory = tempfile::tempdir().unwrap();
        let seeds = seeds.map(seed);
        crawl(settings(directory.path(), &seeds, &order)).await;
        assert_eq!(requests_for(&told, "/").len(), expected, "{seeds:?}");
        assert_eq!(
            requests_for(&told, "/page").len(),
            expected.min(1),
            "{seeds:?}"
        );
        let asked = log(directory.path()).into_iter().map(|line| line.uri);
        let asked: BTreeSet<String> = asked.collect();
        assert!(
            seeds.iter().all(|seed| asked.contains(seed.as_str())),
            "{asked:?}"
        );
    }
}

/// Fails if a link to a page is dropped because the same page under a dead name was tried before, or the dead one is
/// tried again for each link to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_name_leaves_its_pages_to_the_living_one() {
    let directory = tempfile::tempdir().unwrap();
    let crawl_log = directory.path().join("logs/crawl.log");
    let (base, told) = serve_requests("127.0.2.1", move |request| {
        let port = request.split("Host: ").nth(1).unwrap();
        let port = port.split(['\r', ':']).nth(1).unwrap();
        let dead = format!("http://www.half.test:{port}/page");
        match path_of(request) {
            "/robots.txt" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "/" => page(&format!("<a href={dead}>page</a> <a href=/more>more</a>")),
            "/more" => {
                // Not before the dead one is known to be dead.
                while !fs::read_to_string(&crawl_log).unwrap().contains(&dead) {
                    std::thread::yield_now();
                }
                page(&format!("<a href={dead}>page</a> <a href=/page>page</a>"))
            }
            _ => page("page"),
        }
    })
    .await;
    let port = base.port().unwrap();
    let order = format!(
        "scope.accept = [\"http://(test,\"]\ndns.servers = [\"{}\"]\nnetworks.allow = [\"127.0.2.0/24\"]",
        super::names::name_server().await
    );
    let seed = Url::parse(&format!("http://half.test:{port}/")).unwrap();
    crawl(settings(directory.path(), &[seed], &order)).await;
    assert_eq!(requests_for(&told, "/page").len(), 1);
    let dead = format!("http://www.half.test:{port}/page");
    let lines = log(directory.path());
    let dead = lines.iter().filter(|line| line.uri == dead);
    assert_eq!(dead.map(|line| line.status).collect::<Vec<_>>(), [-6]);
}
