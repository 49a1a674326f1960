//! Crawls by an HTTP proxy, which alone knows the hosts.

use super::endings::manual;
use super::http2::{ServerProtocol, host};
use super::requests::{Requests, blocks};
use super::*;

/// The manners of a proxy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manners {
    /// It leads to this machine, whatever host is named, but for `gone.test`, which it cannot reach.
    Leads,
    /// It answers everybody with this status.
    Refuses(u16),
}

/// Starts a proxy at an address; returns the heads of the requests that it gets.
async fn proxy_at(
    address: std::net::SocketAddr,
    manners: Manners,
) -> (std::net::SocketAddr, Requests) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Requests::default();
    let told = Arc::clone(&requests);
    tokio::task::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::task::spawn(lead(stream, manners, Arc::clone(&told)));
        }
    });
    (address, requests)
}

async fn lead(mut stream: TcpStream, manners: Manners, requests: Requests) {
    while let Some(head) = read_head(&mut stream).await {
        let target = path_of(&head).to_owned();
        requests.lock().push(head.clone());
        let refusal = match manners {
            Manners::Refuses(status) => Some(status),
            Manners::Leads => target.contains("gone.test").then_some(503),
        };
        if let Some(status) = refusal {
            let answer = format!(
                "HTTP/1.1 {status} No\r\nX-Squid-Error: ERR_X 0\r\nContent-Length: 0\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            continue;
        }
        let is_tunnel = head.starts_with("CONNECT ");
        let url = if is_tunnel {
            format!("http://{target}/")
        } else {
            target
        };
        let url = Url::parse(&url).unwrap();
        let port = url.port().unwrap();
        let mut host = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        if is_tunnel {
            let answer = b"HTTP/1.1 200 Connection established\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        } else {
            host.write_all(head.as_bytes()).await.unwrap();
        }
        // The host may have closed first.
        _ = tokio::io::copy_bidirectional(&mut stream, &mut host).await;
        return;
    }
}

/// Returns an order without a name server that answers, by a proxy.
fn order(proxy: std::net::SocketAddr) -> String {
    format!(
        "dns.servers = [\"127.0.0.1:9\"]\nhttp = {{ proxy = \"http://{proxy}\", contact = \"mailto:a@b.dk\" }}\n"
    )
}

fn seeds(hosts: &[&str], base: &Url) -> Vec<Url> {
    let port = base.port().unwrap();
    let seeds = hosts.iter().map(|host| format!("http://{host}:{port}/"));
    seeds.map(|seed| Url::parse(&seed).unwrap()).collect()
}

/// Fails if a host is looked up or asked without the proxy, a record names the proxy's address as the host's, the pages of
/// `http` or `https` are not those of the host, or a page leads to the proxy's own machine.
#[tokio::test]
async fn hosts_are_asked_by_the_proxy() {
    let (plain, asked) = super::requests::serve_requests("127.0.0.1", |request| {
        let url = Url::parse(path_of(request)).unwrap();
        match url.path() {
            "/" => page("<a href=/a>a</a> <a href=http://localhost/>own</a> <a href=http://10.0.0.1/>in</a>"),
            "/a" => page("leaf"),
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        }
    })
    .await;
    let (tls, _) = host(ServerProtocol::Selects(&["http/1.1"])).await;
    let (proxy, requests) = proxy_at(([127, 0, 0, 1], 0).into(), Manners::Leads).await;
    let mut seeds = seeds(&["a.test", "gone.test"], &plain);
    let secure = format!("https://b.test:{}/", tls.port().unwrap());
    seeds.push(Url::parse(&secure).unwrap());
    let directory = tempfile::tempdir().unwrap();
    let order = format!(
        "{}retry = {{ max_tries = 1, delay = \"1 ms\" }}\nscope.accept = [\"http://(localhost\", \"http://(10.0.0.1\"]",
        order(proxy)
    );
    let outcome = crawl(settings(directory.path(), &seeds, &order)).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    let lines = statuses(directory.path(), &seeds[0]);
    for (uri, status) in [
        ("/", 200),
        ("/a", 200),
        (secure.as_str(), 200),
        (&format!("{secure}a"), 200),
        ("http://localhost/", -5002),
        ("http://10.0.0.1/", -5002),
    ] {
        assert_eq!(lines.get(uri), Some(&status), "{uri}: {lines:?}");
    }
    // The proxy's answer is not the host's.
    assert!(lines[seeds[1].as_str()] < 0, "{lines:?}");
    assert!(
        !lines.keys().any(|uri| uri.starts_with("dns:")),
        "{lines:?}"
    );
    let own = seeds[0].as_str();
    let line = format!("GET {own} HTTP/1.1\r\nHost: a.test");
    assert!(asked.lock().iter().any(|head| head.starts_with(&line)));
    let is_tunnel = |head: &String| head.starts_with("CONNECT b.test:");
    assert!(requests.lock().iter().any(is_tunnel));
    let sent = blocks(directory.path(), WarcType::Request);
    assert!(
        sent[own].starts_with(&format!("GET {own} HTTP/1.1\r\n")),
        "{sent:?}"
    );
    assert!(sent[&secure].starts_with("GET / HTTP/1.1\r\n"), "{sent:?}");
    let metadata = blocks(directory.path(), WarcType::Metadata);
    assert!(
        metadata[own].contains(&format!("proxy: http://{proxy}\r\n")),
        "{metadata:?}"
    );
    for entry in fs::read_dir(directory.path().join("warcs")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let mut reader = WarcReader::new(bytes.as_slice());
        while let Some(record) = reader.next_record().unwrap() {
            assert_eq!(record.header().get("WARC-IP-Address"), None);
        }
    }
}

/// Fails if a proxy that is away for minutes costs a host or a try, or is told of more than once.
#[tokio::test]
async fn lost_proxy_costs_nothing() {
    let (base, _) = super::requests::serve_requests("127.0.0.1", |request| {
        match Url::parse(path_of(request)).unwrap().path() {
            "/" => page("page"),
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        }
    })
    .await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let seeds = seeds(&["a.test", "b.test"], &base);
    let directory = tempfile::tempdir().unwrap();
    let manual = manual();
    let settings = settings(directory.path(), &seeds, &order(address));
    let (crawl, mut handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    let comes_back = async {
        let told = handle.notices.recv().await.unwrap();
        assert!(matches!(told, CrawlNotice::NoProxy(_)), "{told:?}");
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            manual.advance(Duration::from_mins(1));
        }
        let (_, requests) = proxy_at(address, Manners::Leads).await;
        loop {
            let told = handle.notices.try_recv();
            assert!(told.is_err(), "{told:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
            manual.advance(Duration::from_secs(1));
            assert!(requests.lock().len() < 10);
        }
    };
    let outcome = tokio::select! {
        outcome = crawl.run_crawl() => outcome.unwrap(),
        () = comes_back => unreachable!(),
    };
    assert_eq!(
        (outcome.end, outcome.progress.fetched),
        (CrawlEnd::Finished, 2)
    );
    assert!(outcome.duration >= Duration::from_mins(10));
    let tried_again = |line: &CrawlLogLine| line.annotations.iter().any(|note| note.ends_with('t'));
    let log = log(directory.path());
    assert!(!log.iter().any(tried_again), "{log:?}");
}

/// Fails if a proxy that lets nobody pass costs a URI: the crawl ends as an idle one, and all of it is left.
#[tokio::test]
async fn proxy_that_refuses_leaves_everything() {
    let base = Url::parse("http://127.0.0.1:8080/").unwrap();
    for status in [407, 403] {
        let (proxy, _) = proxy_at(([127, 0, 0, 1], 0).into(), Manners::Refuses(status)).await;
        let hosts = ["a.test", "b.test", "c.test", "d.test", "e.test"];
        let mut seeds = seeds(&hosts, &base);
        seeds[4].set_scheme("https").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let manual = manual();
        let order = format!("{}limits.idle = \"2 min\"", order(proxy));
        let settings = settings(directory.path(), &seeds, &order);
        let (crawl, mut handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
        let outcome = super::endings::run_fast(crawl, &manual).await;
        assert_eq!(outcome.end, CrawlEnd::Idle, "{status}");
        assert_eq!(outcome.remaining.values().sum::<u64>(), 5, "{status}");
        let mut told = Vec::new();
        while let Ok(notice) = handle.notices.try_recv() {
            told.push(notice);
        }
        let lost = told
            .iter()
            .filter(|notice| matches!(notice, CrawlNotice::NoProxy(_)));
        assert_eq!(lost.count(), 1, "{told:?}");
        let given_up = |notice: &CrawlNotice| matches!(notice, CrawlNotice::HostGivenUp { .. });
        assert!(!told.iter().any(given_up), "{told:?}");
    }
}
