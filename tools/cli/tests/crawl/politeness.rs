//! Two hundred hosts on fifty addresses: no host is asked sooner than is polite, and the hosts do not wait for each
//! other.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::support::dnsmasq::Dnsmasq;
use crate::support::job::crawl;
use crate::support::nginx::{Nginx, Request};
use crate::support::tools::{nginx, program};

/// The number of hosts, each a domain of its own.
const HOSTS: usize = 200;

/// The number of addresses that the hosts share.
const ADDRESSES: usize = 50;

/// The number of pages of a host beside its home page and its robots.txt.
const PAGES: usize = 3;

/// The pause after each fetch, in milliseconds.
const DELAY: i64 = 300;

/// The difference that clocks may have.
const TOLERANCE: i64 = 20;

/// Returns the address of a host.
fn address(host: usize) -> Ipv4Addr {
    let last = u8::try_from(host % ADDRESSES + 1).expect("an address");
    Ipv4Addr::new(127, 0, 1, last)
}

/// The connections to an address by default, and the pause of each after a request, in milliseconds.
const PLACES: usize = 4;
const PLACE_DELAY: i64 = 200;

/// Fails if one of `places` takes a request before it has rested for `delay` since its last one, by the log of the
/// server alone.
#[track_caller]
fn is_polite<'a>(
    requests: &'a [Request],
    key: impl Fn(&'a Request) -> &'a str,
    count: usize,
    (places, delay): (usize, i64),
) {
    let mut by_key: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for request in requests {
        by_key.entry(key(request)).or_default().push(request);
    }
    assert_eq!(by_key.len(), count);
    for (key, mut asked) in by_key {
        asked.sort_by_key(|request| request.began);
        for round in asked.windows(places + 1) {
            let begun = round[places].began;
            let mut gaps = round[..places].iter().map(|request| begun - request.ended);
            let rested = gaps.any(|gap| gap >= delay - TOLERANCE);
            assert!(rested, "{key}: no place has rested in {round:?}");
        }
    }
}

/// Returns the most addresses that are between their first and their last request at one moment.
fn most_at_once(requests: &[Request]) -> usize {
    let mut spans: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for request in requests {
        let first = request.began;
        let last = request.ended;
        let span = spans.entry(&request.address).or_insert((first, last));
        *span = (span.0.min(first), span.1.max(last));
    }
    let open_at = |moment: i64| {
        let open = spans
            .values()
            .filter(|span| (span.0..=span.1).contains(&moment));
        open.count()
    };
    spans
        .values()
        .map(|span| open_at(span.0))
        .max()
        .unwrap_or(0)
}

/// Fails if a host is asked again before its pause is over, or an address oftener than its connections may, a page is left out, or queues wait for each
/// other.
#[test]
fn hosts_and_addresses_get_their_pauses() {
    let Some(nginx) = nginx() else { return };
    let Some(dnsmasq) = program("dnsmasq") else {
        tools_testing::skipped("dnsmasq is not installed (dnsmasq-base)");
        return;
    };
    let hosts: Vec<(String, Ipv4Addr)> = (0..HOSTS)
        .map(|host| (format!("site{host:03}.example"), address(host)))
        .collect();
    let names = Dnsmasq::start(&dnsmasq, &hosts);
    let root = tempfile::tempdir().unwrap();
    for page in 1..=PAGES {
        let html = format!("<a href='/{}.html'>next</a>", page % PAGES + 1);
        std::fs::write(root.path().join(format!("{page}.html")), html).unwrap();
    }
    std::fs::write(root.path().join("index.html"), "<a href='/1.html'>in</a>").unwrap();
    let listen = (0..ADDRESSES).map(|host| format!("listen {}:{{port}};\n", address(host)));
    let listen = listen.collect::<String>();
    let http = format!("server {{ {listen} root {}; }}", root.path().display());
    let server = Nginx::start(&nginx, &http);

    let seeds: Vec<String> = hosts
        .iter()
        .map(|(name, _)| format!("http://{name}:{}/", server.port))
        .collect();
    let delay = DELAY.to_string();
    let resolver = format!("127.0.0.1:{}", names.port);
    let mut words = vec!["--delay", &delay, "--dns", &resolver];
    words.extend([
        "--allow-network",
        "127.0.1.0/24",
        "--contact",
        "mailto:web@library.example",
    ]);
    words.extend(seeds.iter().map(String::as_str));
    let directory = tempfile::tempdir().unwrap();
    let (job, report) = crawl(directory.path(), &words);
    assert_eq!(report["status"], "done");
    let expected = HOSTS * (PAGES + 3);
    assert_eq!(job.uris().len(), expected);
    let requests = server.requests_when(|requests| requests.len() >= expected);
    assert_eq!(requests.len(), expected);
    is_polite(&requests, |request| &request.host, HOSTS, (1, DELAY));
    let places = (PLACES, PLACE_DELAY);
    is_polite(&requests, |request| &request.address, ADDRESSES, places);
    let most = most_at_once(&requests);
    assert!(most >= ADDRESSES / 2, "at most {most} addresses at once");
}
