//! Parts that are down while captures are asked for: the answer is 503 and says what to do. It looks neither like a
//! capture nor like an archive without captures.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::Signal;
use tools_testing::PATIENCE;

use crate::archive::{content, wait};
use crate::support::chain::{Chain, endpoint};
use crate::support::curl::{Answer, curl};
use crate::support::made::{Response, warc};

const FILE: &str = "outage.warc.gz";
const METADATA: &str = "7-metadata-1.warc.gz";
const TIME: &str = "20200201000000";

/// The nodes that hold every file: one in each replica with bytes.
const NODES: [&str; 2] = ["bitarchive-one", "bitarchive-two"];

/// The bytes of a capture that is on its way while nodes are killed: far more than the buffers between a node and a
/// client hold.
const LONG: usize = 48 << 20;

/// The ways to the bytes of a capture.
const CONTENT_WAYS: [&str; 6] = [
    "/all/{time}id_/{url}",
    "/all/{time}ir_/{url}",
    "/all/{time}im_/{url}",
    "/all/{time}/{url}",
    "/all/id_/{url}",
    "/all/{url}",
];

/// The ways to lists of captures on the replay listener, which ask the index alone.
const LOOK_UPS: [&str; 11] = [
    "/all/cdx?url={url}",
    "/all/cdx?url={url}&output=json",
    "/all/cdx?url=outage.example&matchType=host",
    "/all/cdx?url={url}&showNumPages=true",
    "/cdx/search/cdx?url={url}",
    "/cdx/search/cdx?url={url}&output=json",
    "/all?url={url}",
    "/all?q=type:urlquery%20url:{url}",
    "/all/timemap/link/{url}",
    "/all/timemap/json/{url}",
    "/all/timemap/cdxj/{url}",
];

/// The pages for people that need the index.
const PAGES: [&str; 3] = [
    "/all/*/{url}",
    "/all/*/http://outage.example/*",
    "/replay/all/{time}/{url}",
];

/// A capture of these tests.
struct TestCapture {
    url: &'static str,
    fields: &'static str,
    body: Vec<u8>,
}

impl TestCapture {
    /// Returns the path of one of the ways to it.
    fn path(&self, way: &str) -> String {
        way.replace("{time}", TIME).replace("{url}", self.url)
    }

    /// Returns the path of the capture's bytes as they were captured.
    fn raw(&self) -> String {
        self.path(CONTENT_WAYS[0])
    }
}

/// Returns a capture that the viewer reads at once, and one that it streams.
fn captures() -> [TestCapture; 2] {
    [
        TestCapture {
            url: "http://outage.example/small",
            fields: "Content-Type: text/html\r\n",
            body: b"<p>a small page".to_vec(),
        },
        TestCapture {
            url: "http://outage.example/large",
            fields: "Content-Type: application/octet-stream\r\n",
            body: content("large", 3_000_000),
        },
    ]
}

/// Returns an archive of processes with the captures in one file.
fn stored(captures: &[TestCapture]) -> Chain {
    let chain = Chain::processes();
    let responses: Vec<Response<'_>> = captures
        .iter()
        .map(|capture| Response {
            url: capture.url,
            date: "2020-02-01T00:00:00Z",
            fields: capture.fields,
            body: &capture.body,
        })
        .collect();
    chain.store_bytes(FILE, &warc(&responses));
    chain
}

/// Starts parts again, and waits until each of them answers by itself.
fn revive(chain: &mut Chain, parts: &[&str]) {
    for part in parts {
        chain.archive.restart(part);
    }
    chain.archive.wait_until_alive();
    chain.archive.until(&["attic", "list"], 0);
}

/// Checks that an answer reports an outage, says when to ask again, and what to do.
#[track_caller]
fn check_outage(answer: &Answer, what: &str) {
    let said = answer.text();
    let begin: String = said.chars().take(400).collect();
    assert_eq!(answer.status, 503, "{what}: {begin}");
    let after = answer.field("Retry-After").map(str::parse::<u32>);
    assert!(
        matches!(after, Some(Ok(1..=60))),
        "{what}: Retry-After is {after:?}"
    );
    assert!(
        said.contains("again"),
        "{what} does not say what to do: {begin}"
    );
    assert_eq!(answer.field("Memento-Datetime"), None, "{what}");
    let length = answer.field("Content-Length").map(str::parse::<usize>);
    assert_eq!(length, Some(Ok(answer.body.len())), "{what} is cut");
}

/// Checks that every capture is handed out byte for byte.
#[track_caller]
fn check_whole(chain: &Chain, captures: &[TestCapture]) {
    for capture in captures {
        let answer = chain.get(&capture.raw());
        assert_eq!(answer.status, 200, "{}", capture.url);
        assert!(answer.body == capture.body, "{}: other bytes", capture.url);
    }
}

/// Returns the bytes of an answer, without the time at which an answer in XML was given.
fn steady(body: &[u8]) -> Vec<u8> {
    const TIME: &[u8] = b"<enddate>";
    let Some(start) = body.windows(TIME.len()).position(|some| some == TIME) else {
        return body.to_vec();
    };
    let (before, time) = body.split_at(start + TIME.len());
    let after = time.iter().position(|byte| *byte == b'<').unwrap();
    [before, &time[after..]].concat()
}

/// Waits until an address is answered with these bytes. Until then every answer reports an outage.
#[track_caller]
fn wait_until_whole(what: &str, expected: &[u8], ask: impl Fn() -> Answer) {
    wait(what, || {
        let answer = ask();
        if answer.status == 200 {
            assert!(
                steady(&answer.body) == steady(expected),
                "{what}: other bytes"
            );
            return Ok(());
        }
        check_outage(&answer, what);
        Err(answer.status)
    });
}

/// Stops parts one by one, the last of which makes captures unavailable, and starts them again.
fn check_outage_of(parts: &[&str]) {
    let captures = captures();
    let mut chain = stored(&captures);
    check_whole(&chain, &captures);
    let (last, others) = parts.split_last().unwrap();
    for part in others {
        chain.archive.end(part, Signal::TERM);
        check_whole(&chain, &captures);
    }
    chain.archive.end(last, Signal::TERM);
    for capture in &captures {
        for way in CONTENT_WAYS {
            let path = capture.path(way);
            check_outage(&chain.get(&path), &path);
            let head = chain.ask(&path, &["--head"]);
            assert_eq!((head.status, head.body.len()), (503, 0), "{path}");
            assert!(head.field("Retry-After").is_some(), "{path}");
        }
    }
    let record = format!("/all/getRecord?arcFile={FILE}&arcOffset=0");
    check_outage(&chain.get(&record), &record);
    // The index still says what the archive has.
    let listed = chain.get("/all/cdx?url=outage.example&matchType=host");
    let listed = listed.expect(200).text();
    assert_eq!(listed.lines().count(), captures.len(), "{listed}");
    revive(&mut chain, parts);
    for capture in &captures {
        let path = capture.raw();
        wait_until_whole(&path, &capture.body, || chain.get(&path));
    }
    chain.archive.stop();
}

/// Fails if a capture whose nodes are all stopped is not 503, if one of two nodes is enough for that, or if other bytes
/// come back.
#[test]
fn capture_on_stopped_nodes_is_unavailable() {
    check_outage_of(&NODES);
}

/// Fails if a capture is not 503 while the repository is stopped, or if other bytes come back.
#[test]
fn capture_without_repository_is_unavailable() {
    check_outage_of(&["repository"]);
}

/// Fails if a list of captures is empty while the index is stopped, or is another one when the index is back.
#[test]
fn look_up_without_index_is_unavailable() {
    let captures = captures();
    let mut chain = stored(&captures);
    let [small, _] = &captures;
    let web = endpoint(&chain.archive, "web");
    let before: Vec<(String, Answer)> = LOOK_UPS
        .iter()
        .map(|way| {
            let path = small.path(way);
            let answer = chain.get(&path).expect(200);
            assert!(!answer.body.is_empty(), "{path} lists nothing");
            (path, answer)
        })
        .collect();
    let pages = PAGES.map(|way| format!("{web}{}", small.path(way)));
    for page in &pages {
        curl(page, &[]).expect(200);
    }

    chain.archive.end("index", Signal::TERM);
    for (path, _) in &before {
        check_outage(&chain.get(path), path);
    }
    for way in CONTENT_WAYS {
        let path = small.path(way);
        check_outage(&chain.get(&path), &path);
    }
    for page in &pages {
        check_outage(&curl(page, &[]), page);
    }

    chain.archive.restart("index");
    for (path, answer) in &before {
        wait_until_whole(path, &answer.body, || chain.get(path));
    }
    for page in &pages {
        curl(page, &[]).expect(200);
    }
    check_whole(&chain, &captures);
    chain.archive.stop();
}

/// An answer of which the test has read the first bytes, and reads the rest later.
struct SlowReader {
    stream: TcpStream,
    /// The length of the body, as the head has it.
    length: usize,
    body: Vec<u8>,
}

impl SlowReader {
    /// Asks for a path, and reads the head of the answer.
    fn begin(chain: &Chain, path: &str) -> Self {
        let authority = chain.replay.trim_start_matches("http://");
        let mut stream = TcpStream::connect(authority).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let count = stream.read(&mut piece).unwrap();
            assert!(count > 0, "the head is cut");
            bytes.extend_from_slice(&piece[..count]);
        };
        let body = bytes.split_off(end);
        let head = String::from_utf8(bytes).unwrap().to_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        let mut lines = head.lines();
        let length = lines.find_map(|line| line.strip_prefix("content-length: "));
        Self {
            length: length.expect("a length").trim().parse().unwrap(),
            stream,
            body,
        }
    }

    /// Reads on up to the end of the connection. Returns the length that the head has, and the body.
    fn finish(mut self) -> (usize, Vec<u8>) {
        if let Err(error) = self.stream.read_to_end(&mut self.body) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        (self.length, self.body)
    }
}

/// Fails if an answer under way does not continue from the other replica, or if one that no replica can finish looks
/// whole.
#[test]
fn stream_survives_one_node_and_breaks_visibly() {
    let captures = [TestCapture {
        url: "http://outage.example/long",
        fields: "Content-Type: application/octet-stream\r\n",
        body: content("long", LONG),
    }];
    let mut chain = stored(&captures);
    let [long] = &captures;
    let path = long.raw();
    for node in NODES {
        let reader = SlowReader::begin(&chain, &path);
        chain.archive.kill(node);
        let (length, body) = reader.finish();
        assert_eq!(length, LONG, "{node}");
        assert!(body == long.body, "{node}: {} of {LONG} bytes", body.len());
        revive(&mut chain, &[node]);
    }

    let reader = SlowReader::begin(&chain, &path);
    for node in NODES {
        chain.archive.kill(node);
    }
    let (length, body) = reader.finish();
    assert_eq!(length, LONG);
    assert!(body.len() < LONG, "the dead nodes have sent everything");
    assert!(long.body.starts_with(&body), "other bytes before the cut");
    check_outage(&chain.get(&path), &path);
    revive(&mut chain, &NODES);
    wait_until_whole(&path, &long.body, || chain.get(&path));
    chain.archive.stop();
}

/// Fails if a file that no node can hand out is begun with 200, or if other bytes come back.
#[test]
fn whole_file_on_stopped_nodes_is_unavailable() {
    let captures = captures();
    let mut chain = stored(&captures);
    let metadata = Response {
        url: "http://metadata.example/crawl.log",
        date: "2020-02-01T00:00:00Z",
        fields: "Content-Type: text/plain\r\n",
        body: b"a line of a log\n",
    };
    chain.store_bytes(METADATA, &warc(&[metadata]));
    chain.restart_viewer(
        "[access]\ntrusted_proxies = [\"127.0.0.1\"]\n[[collection]]\nname = \"all\"\nfile_groups = [\"staff\"]\n",
    );
    let staff = ["--header", "X-Pywb-ACL-User: staff"];
    let ways = [
        (format!("/all/getFile?arcFile={FILE}"), FILE),
        ("/all/getMetadata?jobID=7".to_owned(), METADATA),
    ];
    let ways = ways.map(|(path, file)| (path, std::fs::read(chain.archive.path(file)).unwrap()));
    for (path, file) in &ways {
        let answer = chain.ask(path, &staff);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body == *file, "{path}: other bytes");
    }
    for node in NODES {
        chain.archive.end(node, Signal::TERM);
    }
    for (path, _) in &ways {
        check_outage(&chain.ask(path, &staff), path);
    }
    revive(&mut chain, &NODES);
    for (path, file) in &ways {
        wait_until_whole(path, file, || chain.ask(path, &staff));
    }
    chain.archive.stop();
}
