//! Captures of a whole archive, looked up and replayed over HTTP: real records, a real index, real rules.

use std::io::{Read, Write};
use std::net::TcpStream;

use archive_formats::digest::{Algorithm, digest_bytes};
use archive_formats::warc::{Builder, WarcType, WarcWriter};

use crate::archive::{Archive, wait};

const FILE: &str = "7-3-20200101000000-replay.warc.gz";
const OPEN: &str = "http://open.example/";
const CLOSED: &str = "http://closed.example/";
const DATES: [&str; 2] = ["2020-01-01T00:00:00Z", "2022-01-01T00:00:00Z"];

/// Returns a file with two captures of an open and of a closed site.
fn warc() -> Vec<u8> {
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    for (at, date) in DATES.iter().enumerate() {
        for (number, url) in [OPEN, CLOSED].iter().enumerate() {
            let body = body(url, at);
            let id = format!("urn:uuid:00000000-0000-4000-8000-0000000000{at}{number}");
            let record = Builder::new(WarcType::Response, &id, date)
                .target_uri(url)
                .content_type("application/http; msgtype=response")
                .with_field(
                    "WARC-Payload-Digest",
                    &digest_bytes(Algorithm::Sha1, &body).to_string(),
                );
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\n\r\n";
            let block = [head.as_slice(), &body].concat();
            let head = record.render_head(block.len() as u64).unwrap();
            writer
                .write_record(&head, block.len() as u64, &mut block.as_slice())
                .unwrap();
        }
    }
    writer.into_inner()
}

fn body(url: &str, at: usize) -> Vec<u8> {
    format!("<p>{url} number {at}</p>").into_bytes()
}

/// An answer of the replay listener.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns whether the page has the paragraph of a capture; around it stand the words of the archive.
    fn shows(&self, url: &str, at: usize) -> bool {
        let paragraph = String::from_utf8(body(url, at)).unwrap();
        self.text().contains(&paragraph)
    }
}

/// Asks the listener that the client file names.
pub fn ask(archive: &Archive, path: &str, fields: &str) -> Answer {
    let client = std::fs::read_to_string(archive.data().join("client.toml")).unwrap();
    let line = client
        .lines()
        .find_map(|line| line.strip_prefix("replay = \"http://"));
    let address = line.expect("an endpoint").trim_end_matches('"').to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    // HTTP/1.0 has no chunks.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes
        .windows(4)
        .position(|at| at == b"\r\n\r\n")
        .expect("a head")
        + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        body: bytes[end..].to_vec(),
        head,
    }
}

/// Fails if what was stored cannot be found and replayed byte for byte, or one rule holds on one route and not on
/// another, or a repository that is down looks like an archive without captures.
#[test]
fn stored_captures_are_replayed_under_rules() {
    let directory = tempfile::tempdir().unwrap();
    let rules = directory.path().join("a.aclj");
    std::fs::write(&rules, "example,closed)/ - {\"access\": \"block\"}\n").unwrap();
    let set = format!(
        "collection=[{{ name = \"all\", rules = [\"{}\"] }}]",
        rules.display()
    );
    let archive = Archive::processes(&[&set]);
    let path = archive.path(FILE);
    std::fs::write(&path, warc()).unwrap();
    archive.run(&["store", path.to_str().unwrap()]).expect(0);
    wait("the index has the captures", || {
        let rows = ask(&archive, &format!("/all/cdx?url={OPEN}"), "");
        if rows.text().lines().count() == 2 {
            Ok(())
        } else {
            Err(rows)
        }
    });

    let date = "Accept-Datetime: Thu, 02 Jan 2020 00:00:00 GMT\r\n";
    let gate = ask(&archive, &format!("/all/{OPEN}"), date);
    assert_eq!(gate.status, 200, "{gate:#?}");
    assert!(gate.shows(OPEN, 0), "{gate:#?}");
    assert!(
        gate.head
            .contains("memento-datetime: wed, 01 jan 2020 00:00:00 gmt"),
        "{}",
        gate.head
    );
    assert!(!gate.head.contains("\r\nset-cookie"), "{}", gate.head);
    let map = ask(&archive, &format!("/all/timemap/link/{OPEN}"), "").text();
    let mementos: Vec<&str> = map
        .lines()
        .filter(|line| line.contains("memento\"; datetime"))
        .filter_map(|line| line.split(['<', '>']).nth(1))
        .collect();
    assert_eq!(mementos.len(), 2, "{map}");
    for (at, memento) in mementos.iter().enumerate() {
        let (_, path) = memento.split_once("/all/").unwrap();
        let answer = ask(&archive, &format!("/all/{path}"), "");
        assert!(answer.shows(OPEN, at), "{memento}: {answer:#?}");
        let raw = path.replacen('/', "id_/", 1);
        let answer = ask(&archive, &format!("/all/{raw}"), "");
        assert_eq!(
            digest_bytes(Algorithm::Sha1, &answer.body),
            digest_bytes(Algorithm::Sha1, &body(OPEN, at))
        );
    }
    for path in [
        format!("/all/{CLOSED}"),
        format!("/all/2020id_/{CLOSED}"),
        format!("/all/timemap/link/{CLOSED}"),
        format!("/all/getFile?arcFile={FILE}"),
    ] {
        assert_eq!(ask(&archive, &path, "").status, 451, "{path}");
    }
    assert_eq!(
        ask(&archive, &format!("/all/cdx?url={CLOSED}"), "").text(),
        ""
    );

    // Beside the index, which has everything, a collection is asked under its rules.
    let lines = |words: &[&str]| {
        let ran = archive.run(&[&["captures"], words].concat()).expect(0);
        ran.out.lines().count()
    };
    for (url, in_index, in_collection) in [(OPEN, 2, 2), (CLOSED, 2, 0)] {
        let all = ["--collection", "all"];
        assert_eq!(lines(&[url]), in_index, "{url}");
        assert_eq!(lines(&[&[url], &all[..]].concat()), in_collection, "{url}");
    }
    let absent = archive.run(&["captures", OPEN, "--collection", "none"]);
    assert!(absent.expect(1).err.contains("404"));

    archive.kill("index");
    let down = ask(&archive, &format!("/all/2020id_/{OPEN}"), "");
    assert_eq!(down.status, 503, "{down:#?}");
    assert!(down.head.contains("retry-after"), "{}", down.head);
    archive.stop();
}
