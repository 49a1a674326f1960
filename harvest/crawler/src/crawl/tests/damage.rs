//! Hosts that break off, lie, flood and drag: each with the lines of the crawl log and the records that are left of it.

use std::fmt::Write as _;

use super::*;

mod redirects;
mod robots;

/// An action of a host, after it has read a request.
#[derive(Clone, Debug)]
enum ServerAction {
    Send(Vec<u8>),
    /// A byte now and then, without an end.
    Drip,
    /// The same bytes again and again, without an end.
    Flood(&'static str),
    /// Nothing, until the other end closes.
    Wait,
    /// The end of the connection, without a farewell.
    Reset,
    /// The next request is read; without it the connection ends behind the last action.
    Next,
}

use ServerAction::{Drip, Flood, Next, Reset, Send, Wait};

/// The actions of a host by path.
type ServerScript = Arc<dyn Fn(&str) -> Vec<ServerAction> + std::marker::Send + Sync>;

/// A host, and what is left of it: for each line of the log its path, status, annotations and record.
struct DamageCase {
    name: &'static str,
    actions: ServerScript,
    left: &'static [&'static str],
}

fn case(
    name: &'static str,
    actions: impl Fn(&str) -> Vec<ServerAction> + std::marker::Send + Sync + 'static,
    left: &'static [&'static str],
) -> DamageCase {
    let actions = Arc::new(actions);
    DamageCase {
        name,
        actions,
        left,
    }
}

/// Returns a host that has one page, and no robots.txt.
fn page_case(
    name: &'static str,
    actions: Vec<ServerAction>,
    left: &'static [&'static str],
) -> DamageCase {
    case(name, move |path| only_page(path, &actions), left)
}

fn only_page(path: &str, actions: &[ServerAction]) -> Vec<ServerAction> {
    if path == "/" {
        return actions.to_vec();
    }
    vec![
        sent("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        Next,
    ]
}

/// Returns a host that has a page, and this robots.txt.
fn robots_case(
    name: &'static str,
    actions: Vec<ServerAction>,
    left: &'static [&'static str],
) -> DamageCase {
    let answer = move |path: &str| match path {
        "/robots.txt" => actions.clone(),
        _ => vec![sent(&page("page")), Next],
    };
    case(name, answer, left)
}

fn sent(text: &str) -> ServerAction {
    Send(text.as_bytes().to_vec())
}

fn ok(rest: &str) -> ServerAction {
    sent(&format!("HTTP/1.1 200 OK\r\n{rest}"))
}

async fn host(actions: ServerScript) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    tokio::task::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let actions = Arc::clone(&actions);
            tokio::task::spawn(async move {
                // The other end may have had enough.
                drop(act(stream, actions).await);
            });
        }
    });
    Url::parse(&base).unwrap()
}

async fn act(mut stream: TcpStream, actions: ServerScript) -> std::io::Result<()> {
    'requests: loop {
        let Some(head) = read_head(&mut stream).await else {
            return Ok(());
        };
        for action in actions(path_of(&head)) {
            match action {
                Send(bytes) => stream.write_all(&bytes).await?,
                Drip => loop {
                    stream.write_all(b"x").await?;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                },
                Flood(text) => {
                    let piece = text.repeat(100);
                    loop {
                        stream.write_all(piece.as_bytes()).await?;
                    }
                }
                Wait => {
                    stream.read_u8().await?;
                }
                Reset => return stream.set_zero_linger(),
                Next => continue 'requests,
            }
        }
        return Ok(());
    }
}

/// Returns the records of the responses in all archive files, which are valid: the words of their truncation, or
/// `whole`.
fn truncations(directory: &Path) -> BTreeMap<String, Vec<String>> {
    recorded(directory, WarcType::Response);
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for entry in fs::read_dir(directory.join("warcs")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let mut reader = WarcReader::new(bytes.as_slice());
        while let Some(mut record) = reader.next_record().unwrap() {
            if record.kind() == WarcType::Response {
                let text = |name: &str| {
                    let value = record.header().get(name)?;
                    Some(String::from_utf8(value.to_vec()).unwrap())
                };
                let uri = text("WARC-Target-URI").unwrap();
                let truncation = text("WARC-Truncated").unwrap_or("whole".to_owned());
                found.entry(uri).or_default().push(truncation);
            }
            record.read_to_end(&mut Vec::new()).unwrap();
        }
    }
    found
}

/// Crawls all hosts at once, and compares what is left of each.
async fn check(cases: Vec<DamageCase>, order: &str) {
    let mut seeds = Vec::new();
    for case in &cases {
        seeds.push(host(Arc::clone(&case.actions)).await);
    }
    let directory = tempfile::tempdir().unwrap();
    let order = format!("retry.max_tries = 1\nqueues.connections = 16\n{order}");
    let outcome = crawl(settings(directory.path(), &seeds, &order)).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    let mut records = truncations(directory.path());
    let lines = log(directory.path());
    let mut differences = String::new();
    for (case, base) in cases.iter().zip(&seeds) {
        let mut left = Vec::new();
        for line in lines
            .iter()
            .filter(|line| line.uri.starts_with(base.as_str()))
            .cloned()
        {
            let path = line.uri.replace(base.as_str(), "/");
            let record = records.get_mut(&line.uri).filter(|_| line.status > 0);
            let record = record.map_or("none".to_owned(), |records| records.remove(0));
            let mut annotations = line.annotations;
            if annotations.contains(&"timeTrunc".to_owned()) {
                // How much comes in time is the host's business.
                annotations.retain(|annotation| !annotation.starts_with("content-size:"));
            }
            let annotations = annotations.join(",");
            left.push(format!("{path} {} {annotations} {record}", line.status));
        }
        // No robots.txt is no part of the case.
        left.retain(|line| line != "/robots.txt 404 content-size:45 whole");
        let mut expected = case.left.to_vec();
        // Several fetches of a host go on at a time.
        left.sort();
        expected.sort_unstable();
        if left != expected {
            writeln!(
                differences,
                "{}:\n  {left:#?}\n  expected {expected:#?}",
                case.name
            )
            .unwrap();
        }
    }
    assert!(differences.is_empty(), "{differences}");
    let rest: Vec<_> = records.values().flatten().collect();
    assert!(rest.is_empty(), "records without a line: {records:?}");
}

/// Fails if a response that is damaged is not recorded as it came, its cut is not said, or its damage gets into the
/// next one.
#[tokio::test]
async fn damaged_messages_leave_defined_records() {
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let long_head = format!("X-Long: {}\r\n", "x".repeat(10 << 20));
    check(
        vec![
            page_case("closes before the head", vec![], &["/ -8 err=NoResponse none"]),
            page_case("resets before the head", vec![Reset], &["/ -8 err=NoResponse none"]),
            page_case("closes in the head", vec![ok("Content-")], &["/ -8 disconnectTrunc,content-size:25 none"]),
            page_case("resets in the head", vec![ok("Content-"), Reset], &["/ -8 disconnectTrunc,content-size:25 none"]),
            page_case("closes in the body", vec![ok("Content-Length: 9\r\n\r\nhello")], &["/ 200 disconnectTrunc,content-size:43 disconnect"]),
            page_case("resets in a body without a length", vec![ok("\r\nhello"), Reset], &["/ 200 disconnectTrunc,content-size:24 disconnect"]),
            page_case("closes before the body", vec![ok("Content-Length: 9\r\n\r\n")], &["/ 200 disconnectTrunc,content-size:38 disconnect"]),
            case(
                "sends more than its length",
                |path| match path {
                    "/" => {
                        let more = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
                        vec![sent(&(page("<a href=/n>n</a>") + more)), Next]
                    }
                    _ => only_page(path, &[]),
                },
                &["/ 200 content-size:80 whole", "/n 404 content-size:45 whole"],
            ),
            page_case("10 MB of head", vec![ok(&long_head), ok("\r\nbody")], &["/ 200 headerTrunc,content-size:65536 length"]),
            page_case("more than the limit behind a whole response", vec![Send([page("hello").into_bytes(), vec![b'x'; 700_000]].concat())], &["/ 200 content-size:68 whole"]),
            page_case("bad size of first chunk", vec![ok(&format!("{chunked}zz\r\nhello"))], &["/ 200 content-size:56 whole"]),
            page_case("bad size of a chunk", vec![ok(&format!("{chunked}5\r\nhello\r\nzz\r\n"))], &["/ 200 extractTrunc:body,content-size:61 whole"]),
            page_case("huge size of a chunk", vec![ok(&format!("{chunked}fffffffffffffffff\r\nhello"))], &["/ 200 content-size:71 whole"]),
            page_case("cut chunk", vec![ok(&format!("{chunked}5\r\nhe"))], &["/ 200 disconnectTrunc,extractTrunc:body,content-size:52 disconnect"]),
            page_case("no last chunk", vec![ok(&format!("{chunked}5\r\nhello\r\n"))], &["/ 200 disconnectTrunc,extractTrunc:body,content-size:57 disconnect"]),
            page_case("endless body", vec![ok("\r\n"), Flood("<p>more")], &["/ 200 lenTrunc,extractTrunc:memory,content-size:600019 length"]),
            page_case("endless chunks", vec![ok(chunked), Flood("4\r\nmore\r\n")], &["/ 200 lenTrunc,content-size:600047 length"]),
            page_case("endless head", vec![ok(""), Flood("A: b\r\n")], &["/ 200 headerTrunc,content-size:65536 length"]),
            page_case("endless interim heads", vec![Flood("HTTP/1.1 103 Early Hints\r\n\r\n")], &["/ -8 headerTrunc,content-size:0 none"]),
            page_case("no status line", vec![sent("<html>hello")], &["/ 200 content-size:11 whole"]),
            page_case("no HTTP", vec![sent("220 mail.test ESMTP\r\n")], &["/ 200 content-size:21 whole"]),
            page_case("no number", vec![sent("HTTP/1.1 OK\r\n\r\nhello")], &["/ 200 noStatus,content-size:20 whole"]),
            page_case("a large number", vec![sent("HTTP/1.1 20000 OK\r\n\r\nhello")], &["/ 200 noStatus,content-size:26 whole"]),
            page_case("a small number", vec![sent("HTTP/1.1 007 OK\r\n\r\nhello")], &["/ 200 noStatus,content-size:24 whole"]),
            page_case("another protocol", vec![sent("ICY 200 OK\r\nicy-name: x\r\n\r\nhello")], &["/ 200 content-size:32 whole"]),
            page_case("lower-case version", vec![sent("http/1.1 200 ok\r\nContent-Length: 5\r\n\r\nhello"), Next], &["/ 200 content-size:43 whole"]),
            page_case("odd version", vec![sent("HTTP/3.14 200 OK\r\nContent-Length: 5\r\n\r\nhello"), Next], &["/ 200 content-size:44 whole"]),
            page_case("interim heads", vec![sent("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n\r\n"), ok("\r\nhello")], &["/ 200 content-size:24 whole", "/x.css 404 content-size:45 whole"]),
            page_case("line ends before the status line", vec![sent("\r\n\n\r"), sent("\n"), ok("Content-Length: 5\r\n\r\nhello"), Next], &["/ 200 content-size:43 whole"]),
            page_case("line ends and no status line", vec![sent("\r\n\r\n"), sent("<html>hello")], &["/ 200 content-size:15 whole"]),
            page_case("line ends alone", vec![sent("\r\n\r\n")], &["/ -8 err=NoResponse none"]),
            page_case("204 with a body", vec![sent("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"), Next], &["/ 204 content-size:46 whole"]),
            page_case("304 with a body", vec![sent("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"), Next], &["/ 304 content-size:48 whole"]),
            page_case("two lengths", vec![ok("Content-Length: 5\r\nContent-Length: 9\r\n\r\nhello wor")], &["/ 200 content-size:66 whole"]),
            page_case("one length twice", vec![ok("Content-Length: 5, 5\r\nContent-Length: 5\r\n\r\nhello"), Next], &["/ 200 content-size:65 whole"]),
            page_case("length of letters", vec![ok("Content-Length: five\r\n\r\nhello")], &["/ 200 content-size:46 whole"]),
            page_case("negative length", vec![ok("Content-Length: -5\r\n\r\nhello")], &["/ 200 content-size:44 whole"]),
            page_case("huge length", vec![ok("Content-Length: 99999999999999999999\r\n\r\nhello")], &["/ 200 content-size:62 whole"]),
            page_case("length and chunks", vec![ok(&format!("Content-Length: 2\r\n{chunked}5\r\nhello\r\n0\r\n\r\n")), Next], &["/ 200 content-size:81 whole"]),
            page_case("line end of the head missing", vec![ok("Content-Length: 5\r\nhello")], &["/ -8 disconnectTrunc,content-size:41 none"]),
        ],
        "limits.max_body = \"600 kB\"",
    )
    .await;
}

/// Returns a gzip member that becomes this number of times as much, if it is let.
fn bomb() -> Vec<u8> {
    use archive_formats::warc::{Builder, WarcWriter};
    let length = 64 << 20;
    let head = Builder::new(WarcType::Resource, "urn:uuid:0", "2026-11-23T00:00:00Z")
        .target_uri("http://a.test/")
        .content_type("text/html")
        .render_head(length);
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 9);
    let mut source = std::io::repeat(b'<').take(length);
    writer
        .write_record(&head.unwrap(), length, &mut source)
        .unwrap();
    writer.into_inner()
}

/// Fails if a content coding that lies costs the record, or memory without a limit.
#[tokio::test]
async fn damaged_codings_cost_links_alone() {
    let coded = |coding: &str, body: Vec<u8>| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding:";
        let head = format!("{head} {coding}\r\nContent-Length: {}\r\n\r\n", body.len());
        vec![Send([head.into_bytes(), body].concat()), Next]
    };
    let mut flipped = bomb();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    flipped[middle + 1] ^= 0xff;
    check(
        vec![
            page_case(
                "gzip bomb",
                coded("gzip", bomb()),
                &["/ 200 extractTrunc:length,content-size:65497 whole"],
            ),
            page_case(
                "corrupt gzip",
                coded("gzip", flipped),
                &["/ 200 extractTrunc:body,content-size:65497 whole"],
            ),
            page_case(
                "cut gzip",
                coded("gzip", bomb()[..999].to_vec()),
                &["/ 200 extractTrunc:body,content-size:1088 whole"],
            ),
            page_case(
                "no gzip",
                coded("gzip", b"<a href=/a>".to_vec()),
                &[
                    "/ 200 content-size:99 whole",
                    "/a 404 content-size:45 whole",
                ],
            ),
            page_case(
                "no brotli",
                coded("br", b"<a href=/a>".to_vec()),
                &["/ 200 extractTrunc:body,content-size:97 whole"],
            ),
            page_case(
                "unknown coding",
                coded("pigz", b"<a href=/a>".to_vec()),
                &["/ 200 unsatisfiableContentEncoding:pigz,content-size:99 whole"],
            ),
        ],
        "",
    )
    .await;
}

/// Fails if a host that drags is waited for without a limit, or what it has sent is thrown away.
#[tokio::test]
async fn dragging_hosts_are_given_up() {
    check(
        vec![
            page_case("never answers", vec![Wait], &["/ -8 err=Timeout none"]),
            page_case(
                "stops in the head",
                vec![ok("Content-"), Wait],
                &["/ -8 timeTrunc none"],
            ),
            page_case(
                "stops in the body",
                vec![ok("Content-Length: 9\r\n\r\nhello"), Wait],
                &["/ 200 timeTrunc time"],
            ),
            page_case(
                "drips its head",
                vec![ok("A: "), Drip],
                &["/ -8 timeTrunc none"],
            ),
            page_case(
                "drips its body",
                vec![ok("\r\n"), Drip],
                &["/ 200 timeTrunc time"],
            ),
            robots_case(
                "never answers for robots.txt",
                vec![Wait],
                &["/ -8 err=Robots none", "/robots.txt -4 err=Timeout none"],
            ),
        ],
        "limits.stall = \"2 s\"\nlimits.total = \"4 s\"",
    )
    .await;
}
