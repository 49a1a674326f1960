//! Odd references, from the page to the wire and the crawl log.

use tokio::net::UdpSocket;

use super::requests::{Requests, blocks, page_with, serve_requests};
use super::*;

/// References as attributes of a page at `/d/p`, and the URI that is fetched; nothing, if it is no link. `{host}` is
/// the host of the page with its port, `{closed}` a port where nobody listens.
const IN_PAGES: &[(&str, &str)] = &[
    // Blanks, line ends and tabs.
    (" /blanks/around ", "http://{host}/blanks/around"),
    ("/blank within", "http://{host}/blank%20within"),
    ("/query?blank within", "http://{host}/query?blank%20within"),
    ("\t\n/line\r\nend\twithin\n", "http://{host}/lineendwithin"),
    ("/no\u{a0}break", "http://{host}/no%C2%A0break"),
    // Raw UTF-8.
    (
        "/blåbær/\u{1f600}",
        "http://{host}/bl%C3%A5b%C3%A6r/%F0%9F%98%80",
    ),
    ("/query?q=blåbær", "http://{host}/query?q=bl%C3%A5b%C3%A6r"),
    (
        "http://Blåbær.invalid/idn",
        "http://xn--blbr-roah.invalid/idn",
    ),
    (
        "//例え.invalid:8080/idn",
        "http://xn--r8jz45g.invalid:8080/idn",
    ),
    // Other schemes.
    ("javascript:go('/x')", ""),
    ("data:image/png;base64,AAAA", ""),
    ("mailto:me@{host}", ""),
    ("tel:+4512345678", ""),
    ("about:blank", ""),
    ("file:///etc/passwd", ""),
    ("blob:http://{host}/1", ""),
    ("://x", "http://{host}/d/://x"),
    // Hosts and ports.
    ("http://[::1]:{closed}/six", "http://[::1]:{closed}/six"),
    (
        "http://[0:0:0::1]:{closed}/long",
        "http://[::1]:{closed}/long",
    ),
    ("http://[::1/open", ""),
    ("http://[v1.x]/future", ""),
    ("http://127.0.0.1:0/port", "http://127.0.0.1:0/port"),
    ("http://127.0.0.1:65535/last", "http://127.0.0.1:65535/last"),
    ("http://127.0.0.1:65536/port", ""),
    ("http://127.0.0.1:-1/port", ""),
    ("http://127.0.0.1:x/port", ""),
    (
        "http://port.invalid:80/default",
        "http://port.invalid/default",
    ),
    ("https://port.invalid:443/tls", "https://port.invalid/tls"),
    ("http://port.invalid:/none", "http://port.invalid/none"),
    ("http://dot.invalid./one", "http://dot.invalid./one"),
    ("http://dots.invalid../two", "http://dots.invalid../two"),
    ("http://un_der.invalid/score", "http://un_der.invalid/score"),
    (
        "http://per%63ent.invalid/host",
        "http://percent.invalid/host",
    ),
    ("http://bl ank.invalid/host", ""),
    ("http://per%00cent.invalid/host", ""),
    ("http:///three", "http://three/"),
    ("http://", ""),
    ("http://?query", ""),
    ("//slashes.invalid/two", "http://slashes.invalid/two"),
    ("http:/one/slash", "http://{host}/one/slash"),
    ("http:no/slash", "http://{host}/d/no/slash"),
    // Users.
    ("http://user:secret@{host}/user", "http://{host}/user"),
    ("//secret@users.invalid/", "http://users.invalid/"),
    ("http://secret@:80/", ""),
    // Paths.
    ("../../../beyond", "http://{host}/beyond"),
    ("./././same", "http://{host}/d/same"),
    ("/a/%2e%2E/encoded", "http://{host}/encoded"),
    ("/a/.%2e/half", "http://{host}/half"),
    ("/a/%2fslash", "http://{host}/a/%2fslash"),
    ("\\back\\slash", "http://{host}/back/slash"),
    ("\\\\back.invalid\\host", "http://back.invalid/host"),
    ("/empty//segments///", "http://{host}/empty//segments///"),
    ("/semi;colon=1,2", "http://{host}/semi;colon=1,2"),
    (
        "/quote\u{2019}s`<>{}|^",
        "http://{host}/quote%E2%80%99s%60%3C%3E%7B%7D|^",
    ),
    ("/percent%", "http://{host}/percent%"),
    ("/percent%zz%4", "http://{host}/percent%zz%4"),
    ("/nul%00escaped", "http://{host}/nul%00escaped"),
    ("/be\u{7}ll", "http://{host}/be%07ll"),
    // Queries and fragments.
    ("", ""),
    ("#", ""),
    ("#part", ""),
    ("/part#part", "http://{host}/part"),
    ("?only=query", "http://{host}/d/p?only=query"),
    ("/question?a?b", "http://{host}/question?a?b"),
    ("/amp?a=1&amp;b=2", "http://{host}/amp?a=1&b=2"),
];

/// References in a style sheet at `/d/s.css`.
const IN_STYLES: &[(&str, &str)] = &[
    (
        "'style/blank within'",
        "http://{host}/d/style/blank%20within",
    ),
    ("style/esc\\61 ped", "http://{host}/d/style/escaped"),
    ("'data:image/gif;base64,AAAA'", ""),
    ("\"//style.invalid/\"", "http://style.invalid/"),
    ("'..\\\\back'", "http://{host}/back"),
    ("''", ""),
    ("#part", ""),
];

/// Values of the field `Location`, at `/d/l/NUMBER`.
const IN_HEADS: &[(&str, &str)] = &[
    ("/head/blank within", "http://{host}/head/blank%20within"),
    ("/head/blåbær", "http://{host}/head/bl%C3%A5b%C3%A6r"),
    ("../up", "http://{host}/d/up"),
    ("//head.invalid/x", "http://head.invalid/x"),
    (
        "http://user:secret@{host}/head/user",
        "http://{host}/head/user",
    ),
    ("javascript:secret()", ""),
    ("http://[broken/", ""),
    ("", ""),
    ("/head/part#part", "http://{host}/head/part"),
];

/// Serves as a name server that knows no host; returns its address.
async fn no_names() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap().to_string();
    tokio::task::spawn(async move {
        let mut query = [0; 1500];
        loop {
            let (length, from) = socket.recv_from(&mut query).await.unwrap();
            // An answer, recursion available, no such name.
            query[2] |= 0x80;
            query[3] = 0x83;
            socket.send_to(&query[..length], from).await.unwrap();
        }
    });
    address
}

/// Returns the page that all references are on, by the host that it is asked from.
fn answer(request: &str, closed: u16, elsewhere: &str) -> String {
    let host = request
        .lines()
        .find_map(|line| line.strip_prefix("Host: "))
        .unwrap();
    let fill = |text: &str| {
        text.replace("{host}", host)
            .replace("{closed}", &closed.to_string())
    };
    let path = request.split(' ').nth(1).unwrap();
    if path == "/d/p" {
        let rows = IN_PAGES
            .iter()
            .map(|(reference, _)| format!("<img src=\"{}\">", fill(reference)));
        let long = [2083, 2084, 10_000].map(|length| {
            let begin = format!("http://{host}/long/");
            format!("<img src=\"{begin}{}\">", "x".repeat(length - begin.len()))
        });
        let heads = (0..IN_HEADS.len()).map(|number| format!("<img src=l/{number}>"));
        let others = "<link rel=stylesheet href=s.css><iframe src=/base></iframe>".to_owned();
        let all = rows.chain(long).chain(heads).chain([others]);
        page_with(
            "",
            &format!("<meta charset=utf-8>{}", all.collect::<String>()),
        )
    } else if path == "/d/s.css" {
        let rows = IN_STYLES
            .iter()
            .map(|(reference, _)| format!("a {{ b: url({reference}) }}\n"));
        page(&rows.collect::<String>()).replace("text/html", "text/css")
    } else if path == "/base" {
        page(&format!(
            "<base href='{elsewhere}b/c'><img src=relative><img src=/rooted><img src=''>"
        ))
    } else if let Some(number) = path.strip_prefix("/d/l/") {
        let (reference, _) = IN_HEADS[number.parse::<usize>().unwrap()];
        redirect(&fill(reference))
    } else {
        "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".to_owned()
    }
}

/// Returns the URIs that a host was asked for, as its requests name them.
fn asked(base: &Url, requests: &Requests) -> Vec<String> {
    let host = format!("127.0.0.1:{}", base.port().unwrap());
    let requests = requests.lock();
    let uris = requests.iter().map(|request| {
        assert!(
            request.contains(&format!("\r\nHost: {host}\r\n")),
            "{request}"
        );
        assert!(!request.contains("secret"), "{request}");
        format!("http://{host}{}", request.split(' ').nth(1).unwrap())
    });
    let mut uris: Vec<String> = uris.filter(|uri| !uri.ends_with("/robots.txt")).collect();
    uris.sort();
    uris
}

/// Fails if a reference leads to another URI than in a browser, or the wire, the records and the log do not say the
/// same.
#[tokio::test]
async fn odd_references_lead_where_browsers_go() {
    let names = no_names().await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = free.local_addr().unwrap().port();
    drop(free);
    let (elsewhere, _) = serve_requests("127.0.0.2", |_| page("elsewhere")).await;
    let base = elsewhere.clone();
    let (seed, requests) = serve_requests("127.0.0.1", move |request| {
        answer(request, closed, base.as_str())
    })
    .await;
    let host = format!("127.0.0.1:{}", seed.port().unwrap());
    let fill = |text: &str| {
        text.replace("{host}", &host)
            .replace("{closed}", &closed.to_string())
    };
    let directory = tempfile::tempdir().unwrap();
    let order = format!(
        "retry.max_tries = 1\ndns.servers = [\"{names}\"]\nnetworks.allow = [\"127.0.0.0/8\", \"::1/128\"]\n\
         scope.max_path_segments = 50"
    );
    let seeds = [seed.join("/d/p").unwrap()];
    crawl(settings(directory.path(), &seeds, &order)).await;
    let rows = [IN_PAGES, IN_STYLES, IN_HEADS].concat();
    let rows = rows.iter().map(|(_, expected)| fill(expected));
    let mut expected: Vec<String> = rows.filter(|uri| !uri.is_empty()).collect();
    let begin = format!("http://{host}/long/");
    expected.push(format!("{begin}{}", "x".repeat(2083 - begin.len())));
    expected.extend((0..IN_HEADS.len()).map(|number| format!("http://{host}/d/l/{number}")));
    expected.extend(["/d/p", "/d/s.css", "/base"].map(|path| format!("http://{host}{path}")));
    expected.extend(["b/relative", "rooted"].map(|path| format!("{elsewhere}{path}")));
    expected.sort();
    let lines = log(directory.path());
    let is_page =
        |line: &&CrawlLogLine| !line.uri.starts_with("dns:") && !line.uri.ends_with("/robots.txt");
    let mut logged: Vec<String> = lines
        .iter()
        .filter(is_page)
        .map(|line| line.uri.clone())
        .collect();
    logged.sort();
    let differs = |these: &[String], others: &[String]| {
        let alone = these.iter().filter(|uri| !others.contains(uri));
        alone
            .map(|uri| uri.chars().take(120).collect())
            .collect::<Vec<String>>()
    };
    let missing = differs(&expected, &logged);
    let unexpected = differs(&logged, &expected);
    assert!(
        missing.is_empty() && unexpected.is_empty(),
        "{missing:#?} {unexpected:#?}"
    );
    assert_eq!(logged.len(), expected.len());
    let own = |uris: Vec<String>| {
        let own = uris
            .into_iter()
            .filter(|uri| uri.starts_with(&format!("http://{host}/")));
        own.collect::<Vec<String>>()
    };
    assert_eq!(asked(&seed, &requests), own(expected));
    // `|` and `%zz` are no URIs by RFC 3986; the records name them as they went over the wire.
    let responses = blocks(directory.path(), WarcType::Response).into_keys();
    let responses = responses.filter(|uri| !uri.ends_with("/robots.txt"));
    assert_eq!(own(responses.collect()), own(logged));
    let log = fs::read_to_string(directory.path().join("logs/crawl.log")).unwrap();
    assert!(
        !log.contains("secret")
            && log
                .lines()
                .all(|line| line.split_whitespace().count() == 12)
    );
}
