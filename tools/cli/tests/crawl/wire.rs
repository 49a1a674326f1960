//! Bytes of the wire: a relay between the crawler and its servers sees what the records have, and nothing more.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use crate::support::job::{JobFolder, crawl};
use crate::support::nginx::Nginx;
use crate::support::relay::Relay;
use crate::support::tools::Tools;

/// The number of pages under each path of the site.
const PAGES: usize = 12;

/// The paths of the site, each served in its own way.
const WAYS: [&str; 6] = ["plain", "gzip", "ssi", "closed", "proxied", "ranges"];

/// Writes pages that link to each other, with text enough for several chunks.
fn write_pages(root: &Path) {
    for (at, way) in WAYS.iter().enumerate() {
        std::fs::create_dir(root.join(way)).unwrap();
        let next = WAYS[(at + 1) % WAYS.len()];
        for page in 0..PAGES {
            let links = format!(
                "<a href='{}.html'>next</a> <a href='/{next}/{page}.html'>there</a>",
                (page + 1) % PAGES
            );
            let text = format!("<p>Page {page} of {way}. Lorem ipsum dolor sit amet.</p>\n");
            let text = text.repeat(200 * page);
            let html = format!(
                "<!doctype html><html><body>{links}<!--#echo var='request_uri' -->{text}</body></html>"
            );
            std::fs::write(root.join(way).join(format!("{page}.html")), html).unwrap();
        }
    }
    std::fs::write(root.join("index.html"), "<a href=/plain/0.html>in</a>").unwrap();
}

/// Returns the settings of nginx: by length, compressed, assembled, until the end of the connection, and passed on from
/// another server.
fn ways(root: &Path, backend: u16) -> String {
    let root = root.display();
    format!(
        "server {{ listen 127.0.0.1:{{port}}; root {root};
         location /gzip/ {{ gzip on; gzip_min_length 0; }}
         location /ssi/ {{ ssi on; }}
         location /closed/ {{ gzip on; gzip_min_length 0; chunked_transfer_encoding off; }}
         location /ranges/ {{ keepalive_timeout 0; }}
         location /proxied/ {{ proxy_http_version 1.1; proxy_buffering off; proxy_pass http://127.0.0.1:{backend}; }} }}"
    )
}

/// Returns a server that speaks as few do: chunks with extensions and a trailer, interim responses, lines that end with
/// LF alone.
fn odd_server(root: &Path) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let root = root.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let root = root.clone();
            std::thread::spawn(move || answer(&root, stream.expect("a connection")));
        }
    });
    port
}

fn answer(root: &Path, stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().expect("clone"));
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let path = head.split(' ').nth(1).expect("a path");
        let Ok(body) = std::fs::read(root.join(path.trim_start_matches('/'))) else {
            let text = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
            writer.write_all(text.as_bytes()).unwrap_or_default();
            continue;
        };
        let mut out = Vec::new();
        let is_even = path.trim_end_matches(".html").ends_with(['0', '2', '4']);
        // nginx takes an interim response for the final one. It asks for the end of each connection.
        if is_even && !head.contains("Connection: close") {
            out.extend(b"HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n\r\n");
        }
        out.extend(b"HTTP/1.1 200 OK\r\ncontent-TYPE:text/html\r\nX-Odd: \t two  \r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n");
        for piece in body.chunks(777) {
            out.extend(format!("{:04X};odd=\"{}\"\r\n", piece.len(), piece.len()).bytes());
            out.extend(piece);
            out.extend(b"\r\n");
        }
        out.extend(b"000\r\nX-End: yes\r\n\r\n");
        if writer.write_all(&out).is_err() {
            return;
        }
    }
}

/// The parts of a relayed crawl.
struct RelayedCrawl {
    directory: tempfile::TempDir,
    relay: Relay,
    job: JobFolder,
}

/// Crawls through a relay.
fn crawl_through(server: u16, path: &str, order: &str) -> RelayedCrawl {
    let directory = tempfile::tempdir().unwrap();
    let relay = Relay::to(server);
    let seed = format!("http://127.0.0.1:{}/{path}", relay.port);
    let order_file = directory.path().join("order.toml");
    std::fs::write(&order_file, order).unwrap();
    let words = [&seed, "--delay", "0", "--connections", "3", "--order"];
    let words = [&words[..], &[order_file.to_str().unwrap()]].concat();
    let (job, report) = crawl(&directory.path().join("crawl"), &words);
    assert_eq!(report["status"], "done");
    RelayedCrawl {
        directory,
        relay,
        job,
    }
}

impl RelayedCrawl {
    /// Has the records compared with the bytes of the relay, and the digests by warcio. Gives what was seen of each
    /// framing.
    fn judge(&self, tools: &Tools) -> serde_json::Value {
        let log = self.directory.path().join("relayed");
        std::fs::create_dir(&log).unwrap();
        self.relay.save(&log);
        let port = self.relay.port.to_string();
        let words = [log.to_str().unwrap(), &port];
        let judged = tools.judge("wire.py", &words, &self.job.archive_files());
        // warcio digests the payload of a chunked message with its framing, which the standard leaves out (IIPC issue
        // 22).
        let chunked = judged["chunked"].as_array().unwrap().iter();
        let expected: BTreeSet<(String, String)> = chunked
            .map(|id| {
                (
                    id.as_str().unwrap().to_owned(),
                    "payload digest failed".to_owned(),
                )
            })
            .collect();
        let failures = tools.warcio_failures(&self.job.files());
        assert_eq!(
            failures.iter().cloned().collect::<BTreeSet<_>>(),
            expected,
            "{failures:?}"
        );
        assert_eq!(failures.len(), expected.len());
        self.job.check_files();
        judged["kinds"].clone()
    }
}

/// Fails if a request or a response of nginx is recorded otherwise than as the bytes of the wire, or one is not
/// recorded.
#[test]
fn blocks_are_the_bytes_of_nginx() {
    let Some(tools) = Tools::find() else { return };
    let root = tempfile::tempdir().unwrap();
    write_pages(root.path());
    let backend = odd_server(root.path());
    let site = Nginx::start(&tools.nginx, &ways(root.path(), backend));
    let relayed = crawl_through(site.port, "", "[http]\naccept_compression = true\n");
    let kinds = relayed.judge(&tools);
    for kind in [
        "length identity",
        "chunked gzip",
        "chunked identity",
        "close gzip",
    ] {
        let count = kinds[kind].as_u64().unwrap_or(0);
        assert!(count >= PAGES as u64 - 1, "{kind}: {kinds}");
    }
}

/// Fails if chunk extensions, trailers or odd fields are tidied up on their way into a record, or an interim response
/// gets into one.
#[test]
fn blocks_keep_odd_framing() {
    let Some(tools) = Tools::find() else { return };
    let root = tempfile::tempdir().unwrap();
    write_pages(root.path());
    let port = odd_server(root.path());
    let kinds = crawl_through(port, "plain/0.html", "").judge(&tools);
    let count = kinds["chunked identity"].as_u64().unwrap_or(0);
    assert_eq!(count, (WAYS.len() * PAGES) as u64, "{kinds}");
}
