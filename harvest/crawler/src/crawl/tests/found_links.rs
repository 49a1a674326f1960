//! Links of many kinds, from where they stand to what is captured of them, and answers that are no page.

use harvest_policy::status::FetchStatus;

use super::endings::{dead_seed, manual};
use super::requests::{blocks, page_with, requests_for, serve_requests};
use super::robots_answers::run_without_rests;
use super::*;

/// Returns what the log says of a site, sorted: paths with statuses and hops.
pub(super) fn lines_of(directory: &Path, base: &Url) -> Vec<String> {
    let lines = log(directory).into_iter().map(|line| {
        let path = line.uri.replace(base.as_str(), "/");
        format!("{path} {} {}", line.status, line.hops)
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

/// Fails if what is no page of the web is connected to, asked a name server for, logged or left in a queue, or takes
/// the other links of its page with it.
#[tokio::test]
async fn ftp_links_leave_no_trace() {
    let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();
    let ftp = format!("ftp://{}/x", host.local_addr().unwrap());
    let links = format!(
        "<a href={ftp}>1</a> <img src={ftp}.png> <a href=ftp://files.test/y>2</a> \
         <a href=/moved>3</a> <img src=/i.png>"
    );
    let (base, _) = serve(&[
        ("/", page(&links)),
        ("/moved", redirect(&ftp)),
        ("/i.png", page("image")),
    ])
    .await;
    let directory = tempfile::tempdir().unwrap();
    let order = format!(
        "scope.accept_expressions = [\"ftp://.*\"]\ndns.servers = [\"{}\"]\nnetworks.allow = [\"127.0.0.0/8\"]",
        super::names::name_server().await
    );
    let seeds = std::slice::from_ref(&base);
    let outcome = crawl(settings(directory.path(), seeds, &order)).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    assert_eq!(outcome.remaining.values().sum::<u64>(), 0);
    assert_eq!(
        lines_of(directory.path(), &base),
        [
            "/ 200 -",
            "/i.png 200 E",
            "/moved 302 L",
            "/robots.txt 404 P"
        ]
    );
    let connection = host.accept().unwrap_err();
    assert_eq!(connection.kind(), std::io::ErrorKind::WouldBlock);
}

/// Fails if the head of a page cannot ask that its links are not followed, takes its parts with them, or is heeded
/// though the order does not say so.
#[tokio::test]
async fn nofollow_of_a_head_leaves_links_and_no_parts() {
    for (order, followed) in [("extraction.obey_nofollow = true", 0), ("", 1)] {
        let (base, told) = serve_requests("127.0.0.1", |request| match path_of(request) {
            "/" => page_with(
                "X-Robots-Tag: noindex, nofollow\r\n",
                "<a href=/next>n</a> <img src=/i.png>",
            ),
            _ => page("page"),
        })
        .await;
        let directory = tempfile::tempdir().unwrap();
        crawl(settings(directory.path(), &[base], order)).await;
        assert_eq!(
            ["/i.png", "/next"].map(|path| requests_for(&told, path).len()),
            [1, followed],
            "{order}"
        );
    }
}

/// Fails if what an interim response announces is not captured, its head is not kept beside the page, or it is taken
/// for the response.
#[tokio::test]
async fn early_hints_are_followed_and_kept() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload; as=style\r\n\r\n";
    let (base, _) = serve(&[
        ("/", format!("{hints}{}", page("page"))),
        ("/style.css", page("style")),
    ])
    .await;
    let directory = tempfile::tempdir().unwrap();
    crawl(settings(directory.path(), std::slice::from_ref(&base), "")).await;
    assert_eq!(
        lines_of(directory.path(), &base),
        ["/ 200 -", "/robots.txt 404 P", "/style.css 200 E"]
    );
    let metadata = blocks(directory.path(), WarcType::Metadata);
    let metadata = &metadata[base.as_str()];
    for line in [
        "\r\ninterimStatus: HTTP/1.1 103 Early Hints\r\n",
        "\r\ninterimField: Link: </style.css>; rel=preload; as=style\r\n",
    ] {
        assert!(metadata.contains(line), "{metadata}");
    }
    let responses = blocks(directory.path(), WarcType::Response);
    assert_eq!(responses[base.as_str()], page("page"));
}

/// Fails if a seed whose host refuses, lacks or delays it is not captured as it was answered, or passes for one that
/// could not be reached, which the outcome names. (The job reads the answers in the log.)
#[tokio::test]
async fn answered_seeds_are_captured_and_not_unreachable() {
    let empty = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    let (base, asked) = serve(&[
        ("/closed", empty("403 Forbidden")),
        ("/busy", empty("503 Busy")),
    ])
    .await;
    let answered = ["/missing", "/closed", "/busy"].map(|path| base.join(path).unwrap());
    let dead = dead_seed().await;
    let mut seeds = answered.to_vec();
    seeds.push(dead.clone());
    let directory = tempfile::tempdir().unwrap();
    let order = "retry = { max_tries = 2, first_delay = \"1 s\", delay = \"1 s\" }";
    let settings = settings(directory.path(), &seeds, order);
    let manual = manual();
    let (crawl, mut handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    let outcome = run_without_rests(crawl, &handle, &manual, Duration::from_millis(100)).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    assert_eq!((outcome.progress.fetched, outcome.progress.failed), (3, 1));
    let unreachable = FetchStatus::CONNECT_FAILED.number();
    assert_eq!(outcome.failing_seeds, [(dead.to_string(), unreachable)]);
    let lines = log(directory.path());
    let recorded = recorded(directory.path(), WarcType::Response);
    for (seed, status) in answered.iter().zip([404, 403, 503]) {
        let lines = lines.iter().filter(|line| line.uri == seed.as_str());
        let statuses: Vec<i32> = lines.map(|line| line.status).collect();
        assert_eq!(statuses, [status], "{seed}");
        let records = recorded.iter().filter(|uri| *uri == seed.as_str());
        assert_eq!(records.count(), 1, "{seed}");
    }
    let asked = asked.lock();
    let tries = |path: &str| asked.iter().filter(|asked| *asked == path).count();
    assert_eq!(["/missing", "/closed", "/busy"].map(tries), [1, 1, 2]);
    while let Ok(told) = handle.notices.try_recv() {
        if let CrawlNotice::SeedFailed { seed, .. } = told {
            assert_eq!(seed, dead.as_str());
        }
    }
}

/// Fails if a tag that is closed by itself swallows the rest of a page of XHTML.
#[tokio::test]
async fn self_closed_tags_of_xhtml_swallow_no_link() {
    let text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title/><script src=\"a.js\"/></head>\
        <body><a href=\"/next\">n</a></body></html>";
    let xhtml = page(text).replacen("text/html", "application/xhtml+xml", 1);
    let (base, _) = serve(&[
        ("/", xhtml),
        ("/a.js", page("script")),
        ("/next", page("next")),
    ])
    .await;
    let directory = tempfile::tempdir().unwrap();
    crawl(settings(directory.path(), std::slice::from_ref(&base), "")).await;
    assert_eq!(
        lines_of(directory.path(), &base),
        ["/ 200 -", "/a.js 200 E", "/next 200 L", "/robots.txt 404 P"]
    );
}

/// Fails if what only an old browser reads of a page is lost, or a film lacks the parts or the keys of its playlist.
#[tokio::test]
async fn comments_of_conditions_and_playlists_lead_to_parts() {
    let (base, _) = serve_by(Arc::new(|path| match path {
        "/robots.txt" => None,
        "/" => Some(page(
            "<!--[if IE]><link rel=stylesheet href=/ie.css><![endif]--><a href=/live/list.m3u8>film</a>",
        )),
        "/live/list.m3u8" => {
            let list = "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"k.bin\"\n#EXTINF:9,\ns0.ts\n\
                #EXT-X-KEY:URI=\"k2.bin\"\n#EXTINF:9,\ns1.ts\n#EXT-X-ENDLIST\n";
            Some(page(list).replacen("text/html", "application/vnd.apple.mpegurl", 1))
        }
        _ => Some(page("part")),
    }))
    .await;
    let directory = tempfile::tempdir().unwrap();
    crawl(settings(directory.path(), std::slice::from_ref(&base), "")).await;
    assert_eq!(
        lines_of(directory.path(), &base),
        [
            "/ 200 -",
            "/ie.css 200 E",
            "/live/k.bin 200 LE",
            "/live/k2.bin 200 LE",
            "/live/list.m3u8 200 L",
            "/live/s0.ts 200 LE",
            "/live/s1.ts 200 LE",
            "/robots.txt 404 P",
        ]
    );
}

/// Fails if a rule with a star and an end excludes more or less than it says: a query, another case, or a path with an
/// escape that means nothing.
#[tokio::test]
async fn rule_with_star_and_end_excludes_what_it_says() {
    let (base, asked) = serve_by(Arc::new(|path| {
        Some(page(match path {
            "/robots.txt" => "User-agent: *\nDisallow: /*.pdf$\n",
            "/" => {
                "<a href=/a.pdf>1</a> <a href='/a.pdf?x=1'>2</a> <a href=/b%2Epdf>3</a> \
                 <a href=/c.pdf/>4</a> <a href=/d.PDF>5</a>"
            }
            _ => "part",
        }))
    }))
    .await;
    let directory = tempfile::tempdir().unwrap();
    crawl(settings(directory.path(), std::slice::from_ref(&base), "")).await;
    assert_eq!(
        lines_of(directory.path(), &base),
        [
            "/ 200 -",
            "/a.pdf -9998 L",
            "/a.pdf?x=1 200 L",
            "/b%2Epdf -9998 L",
            "/c.pdf/ 200 L",
            "/d.PDF 200 L",
            "/robots.txt 200 P",
        ]
    );
    let asked = asked.lock();
    let excluded = |path: &String| path == "/a.pdf" || path == "/b%2Epdf";
    assert!(!asked.iter().any(excluded), "{asked:?}");
}
