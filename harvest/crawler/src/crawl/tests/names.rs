//! A name server that fails, dawdles and lies.

use std::net::SocketAddr;

use tokio::net::UdpSocket;

use super::*;

/// The types of resource records.
const A: u8 = 1;
const CNAME: u8 = 5;

/// Where the hosts of these tests are.
const HERE: [u8; 4] = [127, 0, 2, 1];

/// Returns a name as it goes over the wire.
fn wire_name(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| {
        let length = u8::try_from(label.len()).unwrap();
        std::iter::once(length).chain(label.bytes())
    });
    labels.chain([0]).collect()
}

fn record(name: &str, kind: u8, data: &[u8]) -> Vec<u8> {
    let length = u8::try_from(data.len()).unwrap();
    let fixed = [0, kind, 0, 1, 0, 0, 0, 60, 0, length];
    [&wire_name(name), &fixed[..], data].concat()
}

/// Returns the answer to a question with this number: its code and records.
fn message(question: &[u8], code: u8, records: &[Vec<u8>]) -> Vec<u8> {
    let count = u8::try_from(records.len()).unwrap();
    let mut answer = question.to_vec();
    answer[2..12].copy_from_slice(&[0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
    [answer, records.concat()].concat()
}

/// Returns the messages that answer a question for a host, and how long they take.
fn answers(host: &str, question: &[u8]) -> (Vec<Vec<u8>>, Duration) {
    let here = |name: &str| record(name, A, &HERE);
    let alias = |from: &str, to: &str| record(from, CNAME, &wire_name(to));
    let message = |code, records: &[Vec<u8>]| message(question, code, records);
    let mut delay = Duration::ZERO;
    let messages = match host {
        "fails.test" => vec![message(2, &[])],
        "refuses.test" => vec![message(5, &[])],
        "unknown.test" | "www.unknown.test" | "www.half.test" => vec![message(3, &[])],
        "empty.test" => vec![message(0, &[])],
        "noise.test" => vec![b"no message at all".to_vec()],
        "other.test" => vec![message(0, &[here("another.test")])],
        "alias.test" => vec![message(0, &[alias(host, "good.test"), here("good.test")])],
        "itself.test" => vec![message(0, &[alias(host, host)])],
        "loop.test" => vec![message(
            0,
            &[alias(host, "round.test"), alias("round.test", host)],
        )],
        "long.test" => vec![message(0, &[alias(host, "next.long.test")])],
        name if name.ends_with("next.long.test") => {
            vec![message(0, &[alias(name, &format!("next.{name}"))])]
        }
        "private.test" => vec![message(0, &[record(host, A, &[10, 0, 0, 1])])],
        "machine.test" => vec![message(0, &[record(host, A, &[127, 0, 0, 1])])],
        "cloud.test" => vec![message(0, &[record(host, A, &[169, 254, 169, 254])])],
        "guessed.test" => {
            let mut wrong = message(0, &[record(host, A, &[127, 0, 0, 1])]);
            wrong[0] ^= 0xff;
            vec![wrong, message(0, &[here(host)])]
        }
        "slow.test" => {
            delay = Duration::from_secs(1);
            vec![message(0, &[here(host)])]
        }
        _ => vec![message(0, &[here(host)])],
    };
    (messages, delay)
}

pub(super) async fn name_server() -> SocketAddr {
    name_server_at(([127, 0, 0, 1], 0).into()).await
}

pub(super) async fn name_server_at(address: SocketAddr) -> SocketAddr {
    let socket = Arc::new(UdpSocket::bind(address).await.unwrap());
    let address = socket.local_addr().unwrap();
    tokio::task::spawn(async move {
        let mut question = [0; 512];
        loop {
            let (length, asker) = socket.recv_from(&mut question).await.unwrap();
            let mut labels = Vec::new();
            let mut at = 12;
            while question[at] > 0 {
                let end = at + 1 + usize::from(question[at]);
                labels.push(
                    str::from_utf8(&question[at + 1..end])
                        .unwrap()
                        .to_lowercase(),
                );
                at = end;
            }
            let question = question[..length.min(at + 5)].to_vec();
            let is_for_a = question.ends_with(&[0, A, 0, 1]);
            let host = labels.join(".");
            let (messages, delay) = if is_for_a {
                answers(&host, &question)
            } else {
                (vec![message(&question, 0, &[])], Duration::ZERO)
            };
            let socket = Arc::clone(&socket);
            tokio::task::spawn(async move {
                tokio::time::sleep(delay).await;
                for message in messages {
                    socket.send_to(&message, asker).await.unwrap();
                }
            });
        }
    });
    address
}

/// Fails if a name server that fails or lies ends in another status than it should, or leads the crawler where it must
/// not go.
#[tokio::test]
async fn name_servers_that_lie_have_defined_ends() {
    let listener = TcpListener::bind((std::net::Ipv4Addr::from(HERE), 0))
        .await
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::task::spawn(async move {
        let pages: Pages = Arc::new(|_| Some(page("page")));
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::task::spawn(answer(stream, Arc::clone(&pages), AskedPaths::default()));
        }
    });
    // For each host: the status of its `dns:` line, 0 without one, then that of its page with annotations.
    let expected = [
        ("good", 1, "200"),
        ("fails", 0, "-8 err=Dns"),
        ("refuses", 0, "-8 err=Dns"),
        ("unknown", -1, "-6"),
        ("empty", -1, "-6"),
        ("noise", 0, "-8 err=Dns"),
        ("other", -1, "-6"),
        ("alias", 1, "200"),
        ("itself", -1, "-6"),
        ("loop", -1, "-6"),
        ("long", -1, "-6"),
        ("private", 1, "-5002 address:Private"),
        ("machine", 1, "-5002 address:Loopback"),
        ("cloud", 1, "-5002 address:LinkLocal"),
        ("guessed", 1, "200"),
        ("slow", 1, "200"),
    ];
    let uri = |host: &str| format!("http://{host}.test:{port}/");
    let seeds = expected.map(|(host, ..)| Url::parse(&uri(host)).unwrap());
    let order = format!(
        "retry.max_tries = 1\ndns.servers = [\"{}\"]\nnetworks.allow = [\"127.0.2.0/24\"]",
        name_server().await
    );
    let directory = tempfile::tempdir().unwrap();
    crawl(settings(directory.path(), &seeds, &order)).await;
    let lines = log(directory.path());
    let mut differences = Vec::new();
    for (host, dns_status, page) in expected {
        let dns = format!("dns:{host}.test");
        let dns = lines.iter().find(|line| line.uri == dns);
        let dns = dns.map_or(0, |line| line.status);
        let line = lines.iter().find(|line| line.uri == uri(host)).unwrap();
        let annotations = line.annotations.iter();
        let annotations = annotations.filter(|text| !text.starts_with("content-size"));
        let annotations: Vec<_> = annotations.map(|text| format!(" {text}")).collect();
        let left = format!("{}{}", line.status, annotations.concat());
        if (dns, left.as_str()) != (dns_status, page) {
            differences.push((host, dns, left));
        }
    }
    assert_eq!(differences, []);
    let resolved = expected.iter().filter(|(_, status, _)| *status == 1);
    assert_eq!(
        recorded(directory.path(), WarcType::Resource).len(),
        resolved.count()
    );
}
