//! Many hosts at few addresses, by names that a name server of this test gives them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use tokio::net::UdpSocket;

use super::*;

const ADDRESSES: u8 = 20;
const HOSTS: u8 = 60;

/// The pause that the order asks for.
const PAUSE: Duration = Duration::from_millis(100);

/// The requests of a host, or at an address, each with the moments at which it came and at which its response was sent.
type Visits = Arc<Mutex<Vec<(IpAddr, String, Instant, Instant)>>>;

/// Answers every question for `hN.test` with the address 127.0.1.(N modulo the number of addresses), from 1; for
/// `cN.test` with the first of them.
async fn name_server() -> std::net::SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::task::spawn(async move {
        let mut question = [0; 512];
        loop {
            let (length, asker) = socket.recv_from(&mut question).await.unwrap();
            let label = usize::from(question[12]);
            let name = std::str::from_utf8(&question[13..13 + label]).unwrap();
            let number: u8 = name[1..].parse().unwrap();
            // The question ends with the empty label, its type and its class.
            let end = question[12..length]
                .iter()
                .position(|byte| *byte == 0)
                .unwrap()
                + 17;
            let mut answer = question[..end].to_vec();
            answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
            answer.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            let is_crowded = name.starts_with('c');
            let address = if is_crowded { 0 } else { number % ADDRESSES };
            answer.extend([127, 0, 1, address + 1]);
            socket.send_to(&answer, asker).await.unwrap();
        }
    });
    address
}

/// Serves at every address, at one port.
async fn web_servers() -> (u16, Visits) {
    let visits = Visits::default();
    let mut port = 0;
    for number in 1..=ADDRESSES {
        let address = Ipv4Addr::new(127, 0, 1, number);
        let listener = TcpListener::bind((address, port)).await.unwrap();
        port = listener.local_addr().unwrap().port();
        let visits = Arc::clone(&visits);
        tokio::task::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::task::spawn(visit(stream, address.into(), Arc::clone(&visits)));
            }
        });
    }
    (port, visits)
}

async fn visit(mut stream: TcpStream, address: IpAddr, visits: Visits) {
    loop {
        let Some(head) = read_head(&mut stream).await else {
            return;
        };
        let came = Instant::now();
        let host = head.lines().find_map(|line| line.strip_prefix("Host: "));
        let response = page("<a href=/1>1</a> <a href=/2>2</a>");
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
        let mut visits = visits.lock();
        visits.push((address, host.unwrap().to_owned(), came, Instant::now()));
    }
}

/// Fails if a host or an address is asked again before it has rested, from the end of a response to the next request,
/// also after robots.txt; or if queues wait for addresses that are not theirs.
#[tokio::test]
async fn hosts_and_addresses_rest_between_requests() {
    let dns = name_server().await;
    let (port, visits) = web_servers().await;
    let hosts = 0..HOSTS;
    let seeds: Vec<Url> = hosts
        .map(|number| Url::parse(&format!("http://h{number}.test:{port}/")).unwrap())
        .collect();
    let order = format!(
        "
        networks.allow = [\"127.0.1.0/24\"]
        dns.servers = [\"{dns}\"]
        limits.max_fetches = 50
        "
    );
    let pause = PAUSE.as_millis();
    let politeness = format!(
        "{{ delay_factor = 0.0, min_delay = \"{pause} ms\", max_delay = \"{pause} ms\", address = {{ connections = 1, min_delay = \"{pause} ms\" }} }}"
    );
    let directory = tempfile::tempdir().unwrap();
    let text =
        format!("scope.kind = \"host\"\nqueues.by = \"host\"\npoliteness = {politeness}\n{order}");
    let mut order = CrawlOrder::parse(&text).unwrap();
    order.extraction.favicon = false;
    let mut settings = settings(directory.path(), &seeds, "");
    Arc::get_mut(&mut settings.job).unwrap().order = order;
    let outcome = crawl(settings).await;
    assert_eq!(outcome.progress.fetched, 3 * u64::from(HOSTS));
    let visits = visits.lock();
    assert_eq!(visits.len(), 4 * usize::from(HOSTS));
    let mut ends: HashMap<String, Instant> = HashMap::new();
    for (address, host, came, ended) in visits.iter() {
        for name in [address.to_string(), host.clone()] {
            if let Some(before) = ends.insert(name.clone(), *ended) {
                let rest = came.saturating_duration_since(before);
                // The response has ended here a little later than at the crawler.
                assert!(
                    rest + Duration::from_millis(20) >= PAUSE,
                    "{name}: {rest:?}"
                );
            }
        }
    }
    let first = visits.iter().take(usize::from(ADDRESSES) * 2);
    let addresses: BTreeSet<IpAddr> = first.map(|(address, ..)| *address).collect();
    assert!(
        addresses.len() > usize::from(ADDRESSES) / 2,
        "{addresses:?}"
    );
    let dns_lines = log(directory.path()).into_iter();
    let dns_lines = dns_lines.filter(|line| line.uri.starts_with("dns:") && line.status == 1);
    assert_eq!(dns_lines.count(), usize::from(HOSTS));
    assert_eq!(
        recorded(directory.path(), WarcType::Resource).len(),
        usize::from(HOSTS)
    );
}

/// Fails if hosts at a crowded address are left out, asked while it rests, or hold up a host at another address.
#[tokio::test]
async fn crowded_address_leaves_room_for_others() {
    const CROWD: u8 = 40;
    let dns = name_server().await;
    let (port, visits) = web_servers().await;
    let seed = |name: String| Url::parse(&format!("http://{name}.test:{port}/")).unwrap();
    let mut seeds: Vec<Url> = (0..CROWD)
        .map(|number| seed(format!("c{number}")))
        .collect();
    seeds.push(seed("h7".to_owned()));
    let order = format!(
        "
        networks.allow = [\"127.0.1.0/24\"]
        dns.servers = [\"{dns}\"]
        scope.max_hops = 0
        http.contact = \"https://library.example/\"
        "
    );
    let pause = "min_delay = \"10 ms\", max_delay = \"10 ms\"";
    let order =
        format!("{ORDER}{order}").replace("min_delay = \"0 ms\", max_delay = \"0 ms\"", pause);
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path(), &seeds, "");
    let mut order = CrawlOrder::parse(&order).unwrap();
    order.extraction.favicon = false;
    Arc::get_mut(&mut settings.job).unwrap().order = order;
    let outcome = crawl(settings).await;
    assert_eq!(
        (outcome.end, outcome.progress.fetched),
        (CrawlEnd::Finished, u64::from(CROWD) + 1)
    );
    let visits = visits.lock();
    // robots.txt and the home page of each host.
    assert_eq!(visits.len(), 2 * (usize::from(CROWD) + 1));
    let other = visits
        .iter()
        .rposition(|(_, host, ..)| host.starts_with("h7"));
    assert!(other.unwrap() < visits.len() / 2, "{other:?}");
}

/// Fails if hosts at one address wait for each other's pauses, or an address has more requests at a time than it may.
#[tokio::test]
async fn pauses_of_hosts_at_one_address_are_their_own() {
    const CROWD: u8 = 20;
    let dns = name_server().await;
    let (port, visits) = web_servers().await;
    let seeds: Vec<Url> = (0..CROWD)
        .map(|number| Url::parse(&format!("http://c{number}.test:{port}/")).unwrap())
        .collect();
    let order = format!(
        "
        scope.kind = \"host\"
        networks.allow = [\"127.0.1.0/24\"]
        dns.servers = [\"{dns}\"]
        [politeness]
        delay_factor = 0.0
        min_delay = \"1000 s\"
        max_delay = \"1000 s\"
        address = {{ connections = 4, min_delay = \"20 s\" }}
        "
    );
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path(), &seeds, "");
    let mut order = CrawlOrder::parse(&order).unwrap();
    order.extraction.favicon = false;
    Arc::get_mut(&mut settings.job).unwrap().order = order;
    let manual = super::endings::manual();
    let (crawl, _handle) = Crawl::new(settings, manual.clock(), Chance::system_chance());
    let outcome = super::endings::run_fast(crawl, &manual).await;
    assert_eq!(outcome.progress.fetched, 3 * u64::from(CROWD));
    // Each host has four requests. All of them, one after the other, would rest for 80,000 seconds.
    let took = outcome.duration;
    assert!(
        (Duration::from_mins(50)..Duration::from_hours(5)).contains(&took),
        "{took:?}"
    );
    let visits = visits.lock();
    for (_, _, came, _) in visits.iter() {
        let others = visits.iter();
        let at_once = others
            .filter(|(_, _, begun, ended)| begun <= came && came < ended)
            .count();
        assert!(at_once <= 4, "{at_once}");
    }
}
