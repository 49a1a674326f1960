//! The site httpbin: logins, cookies, redirects, codings and slow answers of a server that others wrote.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use archive_formats::http::{Body, Head, Limits};
use archive_formats::warc::{Kind, Reader};
use testing::{PATIENCE, eventually_blocking};

use crate::support::job::{JobFolder, crawl};
use crate::support::tools::{free_port, python_with};

/// The program of the server.
const SERVER: &str =
    "import sys; from httpbin import app; app.run('127.0.0.1', int(sys.argv[1]), threaded=True)";

/// The seeds, and the status that each of them has in the log.
const SEEDS: &[(&str, i32)] = &[
    ("basic-auth/me/hush", 200),
    ("basic-auth/me/other", 401),
    ("digest-auth/auth/me/hush/MD5/never", 200),
    ("digest-auth/auth/me/other/MD5/never", 401),
    ("basic-auth/me/hush?again", 200),
    ("cookies/set?session=7", 302),
    ("redirect/3", 302),
    ("absolute-redirect/2", 302),
    ("gzip", 200),
    ("deflate", 200),
    ("brotli", 200),
    ("drip?duration=1&numbytes=10&delay=0", 200),
    ("stream-bytes/2000?chunk_size=100&seed=1", 200),
    ("stream/3", 200),
    ("etag/abc", 200),
    ("cache", 200),
    ("delay/1", 200),
    ("encoding/utf8", 200),
    ("links/3/0", 200),
    ("image/png", 200),
    ("status/204", 204),
    ("status/418", 418),
    ("status/503", 503),
    ("deny", -9998),
    ("response-headers?Set-Cookie=%3B%3Dodd%00", 200),
];

/// A server that runs until it is dropped.
struct Httpbin {
    child: Child,
    base: String,
}

impl Httpbin {
    fn start() -> Option<Self> {
        let python = python_with("httpbin")?;
        let port = free_port();
        let child = Command::new(python)
            .args(["-B", "-c", SERVER, &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("python");
        eventually_blocking("httpbin listens", PATIENCE, || {
            TcpStream::connect(("127.0.0.1", port)).map(drop)
        });
        Some(Self {
            child,
            base: format!("http://127.0.0.1:{port}/"),
        })
    }
}

impl Drop for Httpbin {
    fn drop(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }
}

/// The bodies of the responses without their codings, by URI.
fn bodies(job: &JobFolder) -> BTreeMap<String, Vec<u8>> {
    let mut bodies = BTreeMap::new();
    for path in job.archive_files() {
        let mut reader = Reader::new(std::fs::File::open(path).unwrap());
        while let Some(mut record) = reader.next_record().unwrap() {
            if record.kind() != Kind::Response {
                continue;
            }
            let uri = record.header().get("WARC-Target-URI").unwrap().to_vec();
            let mut block = Vec::new();
            record.read_to_end(&mut block).unwrap();
            let mut rest = block.as_slice();
            let head = Head::read(&mut rest, 1 << 16).unwrap();
            let mut body = Vec::new();
            let mut decoded = Body::decoded(&head, rest, Limits::default());
            decoded.read_to_end(&mut body).unwrap();
            bodies.insert(String::from_utf8(uri).unwrap(), body);
        }
    }
    bodies
}

/// Fails if a login, a cookie, a redirect, a coding or a slow answer of httpbin is not taken as a browser takes it.
#[test]
fn httpbin_is_captured_as_it_answers() {
    let Some(server) = Httpbin::start() else {
        return;
    };
    let base = &server.base;
    let directory = tempfile::tempdir().unwrap();
    let order = directory.path().join("order.toml");
    let text = "
        [scope]
        kind = \"host\"
        max_hops = 4
        [retry]
        max_tries = 4
        [[credential]]
        host = \"127.0.0.1\"
        user = \"me\"
        password = \"hush\"
        ";
    std::fs::write(&order, text).unwrap();
    let seeds: Vec<String> = SEEDS
        .iter()
        .map(|(path, _)| format!("{base}{path}"))
        .collect();
    let mut words: Vec<&str> = seeds.iter().map(String::as_str).collect();
    words.extend(["--delay", "0", "--order", order.to_str().unwrap()]);
    let (job, _) = crawl(&directory.path().join("jobs"), &words);
    let statuses: BTreeMap<String, i32> = job
        .log()
        .into_iter()
        .map(|line| (line.uri, line.status))
        .collect();
    for ((path, status), seed) in SEEDS.iter().zip(&seeds) {
        assert_eq!(statuses.get(seed), Some(status), "{path}: {statuses:#?}");
    }
    let bodies = bodies(&job);
    let text = |path: &str| {
        let body = bodies.get(&format!("{base}{path}"));
        let body = body.unwrap_or_else(|| panic!("{path}: {:#?}", bodies.keys()));
        String::from_utf8_lossy(body).into_owned()
    };
    for (path, expected) in [
        ("basic-auth/me/hush", "\"authenticated\": true"),
        (
            "digest-auth/auth/me/hush/MD5/never",
            "\"authenticated\": true",
        ),
        ("cookies", "\"session\": \"7\""),
        ("get", "\"url\": "),
        ("gzip", "\"gzipped\": true"),
        ("deflate", "\"deflated\": true"),
        ("brotli", "\"brotli\": true"),
        ("drip?duration=1&numbytes=10&delay=0", "**********"),
        ("stream/3", "\"id\": 2"),
        ("encoding/utf8", "STARGΛ̊TE"),
        ("links/3/2", "Links"),
    ] {
        assert!(text(path).contains(expected), "{path}: {}", text(path));
    }
    let stream = bodies.get(&format!("{base}stream-bytes/2000?chunk_size=100&seed=1"));
    assert_eq!(stream.unwrap().len(), 2000);
    job.check_files();
}
