//! Archive files on this machine: `warc list`, `check`, `cat`, `recompress`, and `cdx`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use archive_formats::warc::{Builder, WarcType, WarcWriter};

use crate::holdfast::{Ran, executable, run};

const DATE: &str = "2026-11-21T19:14:09Z";

struct Files {
    directory: tempfile::TempDir,
    /// The offset of each record of `a.warc.gz`, and that of its end.
    begins: Vec<u64>,
}

/// Returns three records: about the file, an answer, and a page without HTTP.
fn records() -> Vec<(Builder, &'static [u8])> {
    let new = |kind, number| {
        let id = format!("urn:uuid:00000000-0000-4000-8000-00000000000{number}");
        Builder::new(kind, &id, DATE)
    };
    vec![
        (
            new(WarcType::Warcinfo, 1).content_type("application/warc-fields"),
            b"software: a test\r\n",
        ),
        (
            new(WarcType::Response, 2)
                .target_uri("http://www.example.org/b?z=1&a=2")
                .content_type("application/http; msgtype=response"),
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n\
              5\r\nhello\r\n0\r\n\r\n",
        ),
        (
            new(WarcType::Resource, 3)
                .target_uri("http://example.org/a")
                .content_type("text/plain"),
            b"plain",
        ),
    ]
}

impl Files {
    fn new() -> Self {
        let files = Self {
            directory: tempfile::tempdir().expect("a directory"),
            begins: Vec::new(),
        };
        let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
        let mut begins = vec![0];
        for (record, block) in records() {
            let length = u64::try_from(block.len()).expect("a length");
            let head = record.render_head(length).expect("a header");
            writer
                .write_record(&head, length, &mut &*block)
                .expect("written");
            begins.push(writer.position());
        }
        files.put("a.warc.gz", &writer.into_inner());
        Self { begins, ..files }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let mut file = File::create_new(self.at(name)).expect("create");
        file.write_all(bytes).expect("write");
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.at(name)).expect("read")
    }

    fn run(&self, words: &[&str]) -> Ran {
        run(executable().args(words).current_dir(self.directory.path()))
    }
}

/// Fails if `warc list` prints another offset or length than that of the record's member, so that the record cannot be
/// cut out by them.
#[test]
fn records_are_listed_with_their_places() {
    let files = Files::new();
    let said = files.run(&["warc", "list", "a.warc.gz"]).expect(0);
    let places: Vec<Vec<&str>> = said
        .out
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    let length = |at: usize| (files.begins[at + 1] - files.begins[at]).to_string();
    for (at, (kind, url)) in [
        ("warcinfo", "-"),
        ("response", "http://www.example.org/b?z=1&a=2"),
        ("resource", "http://example.org/a"),
    ]
    .into_iter()
    .enumerate()
    {
        let offset = files.begins[at].to_string();
        assert_eq!(places[at], [offset.as_str(), &length(at), kind, DATE, url]);
    }
    let said = files
        .run(&["warc", "list", "--json", "a.warc.gz"])
        .expect(0);
    let lines: Vec<serde_json::Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!((lines.len(), &lines[2]["block"]), (3, &5.into()));
}

/// Fails if `warc cat` prints header and block of a record otherwise than they stand there, or leaves HTTP headers in
/// the payload.
#[test]
fn one_record_and_its_parts_are_printed() {
    let files = Files::new();
    let whole = files.run(&["warc", "cat", "a.warc.gz"]).expect(0).out;
    assert!(whole.starts_with("WARC/1.1\r\n") && whole.ends_with("plain\r\n\r\n"));
    let offset = files.begins[1].to_string();
    let one = |part: &[&str]| {
        let words = [&["warc", "cat", "--offset", &offset, "a.warc.gz"], part].concat();
        files.run(&words).expect(0).out
    };
    let header = one(&["--header"]);
    let block = one(&["--block"]);
    assert_eq!(one(&[]), format!("{header}{block}\r\n\r\n"));
    assert!(block.starts_with("HTTP/1.1 200 OK\r\n"), "{block}");
    assert_eq!(one(&["--payload"]), "hello");
    let said = files.run(&["warc", "cat", "--offset", "1", "a.warc.gz"]);
    assert!(
        said.expect(2)
            .err
            .contains("no record begins at offset 1; see")
    );
}

/// Fails if `warc check` passes a record without a date, finds fault with a good file, or ends at a file that does not
/// exist.
#[test]
fn conforming_file_passes_and_broken_file_fails() {
    let files = Files::new();
    let said = files.run(&["warc", "check", "a.warc.gz"]).expect(0);
    assert!(
        said.err.contains("3 records, 0 errors, 0 warnings"),
        "{said:?}"
    );
    let plain = files.run(&["warc", "cat", "a.warc.gz"]).expect(0).out;
    files.put(
        "bad.warc",
        plain.replace("WARC-Date", "WARC-Data").as_bytes(),
    );
    let said = files.run(&["warc", "check", "bad.warc"]).expect(1);
    let first = said.out.lines().next().expect("a line");
    assert!(
        first.starts_with("bad.warc: offset 0") && first.contains("WARC-Date"),
        "{said:?}"
    );
    let said = files.run(&["warc", "check", "--json", "bad.warc", "a.warc.gz", "none"]);
    assert!(said.err.contains("none: there is no such file"), "{said:?}");
    let line: serde_json::Value =
        serde_json::from_str(said.out.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        (&line["file"], &line["severity"]),
        (&"bad.warc".into(), &"error".into())
    );
    assert_eq!(said.code, 1);
}

/// Fails if a programme that asks for JSON is given nothing: for a good file, a wrong command line, an index.
#[test]
fn json_is_given_whatever_is_asked() {
    let files = Files::new();
    let said = files
        .run(&["warc", "check", "--json", "a.warc.gz"])
        .expect(0);
    let line: serde_json::Value = serde_json::from_str(&said.out).expect("one line");
    assert_eq!((&line["records"], &line["errors"]), (&3.into(), &0.into()));
    for wrong in [
        &["warc", "check", "--json"][..],
        &["cdx", "--jsn", "--json", "a.warc.gz"],
    ] {
        let said = files.run(wrong);
        assert_eq!(said.code, 2, "{said:?}");
        let document: serde_json::Value = serde_json::from_str(&said.out).expect("a document");
        assert_eq!(document["error"]["class"], "usage", "{said:?}");
        assert!(!said.err.is_empty());
    }
    let index = ["cdx", "--json", "-o", "a.cdxj", "a.warc.gz"];
    let said = files.run(&index).expect(0);
    let document: serde_json::Value = serde_json::from_str(&said.out).expect("a document");
    assert_eq!(
        (&document["files"], &document["exit"]),
        (&1.into(), &"done".into())
    );
    assert!(!files.bytes("a.cdxj").is_empty());
    let refused = files.run(&["cdx", "--json", "a.warc.gz"]).expect(2);
    let document: serde_json::Value = serde_json::from_str(&refused.out).expect("a document");
    assert_eq!(document["error"]["class"], "usage");
}

/// Fails if recompression changes a byte of a record, replaces a file that exists, or leaves half a file of a source
/// that is cut.
#[test]
fn recompressed_records_are_identical_or_nothing_is_written() {
    let files = Files::new();
    let recompress = |from: &str, to: &str, more: &[&str]| {
        files.run(&[&["warc", "recompress", from, "-o", to], more].concat())
    };
    recompress("a.warc.gz", "plain.warc", &["--plain"]).expect(0);
    recompress("plain.warc", "again.warc.gz", &[]).expect(0);
    assert!(files.bytes("again.warc.gz") == files.bytes("a.warc.gz"));
    let refused = recompress("a.warc.gz", "plain.warc", &[]);
    assert_eq!(refused.code, 5, "{refused:?}");
    let mut cut = files.bytes("a.warc.gz");
    cut.truncate(cut.len() - 10);
    files.put("cut.warc.gz", &cut);
    let said = recompress("cut.warc.gz", "new.warc.gz", &[]).expect(1);
    assert!(said.err.contains("holdfast warc check"), "{said:?}");
    for name in ["new.warc.gz", "new.warc.gz.partial"] {
        assert!(files.at(name).symlink_metadata().is_err(), "{name}");
    }
}

/// Fails if the lines of several files are not sorted together, or if the index of a cut file does not say where
/// records are lacking.
#[test]
fn index_is_sorted_across_files_and_names_gaps() {
    let files = Files::new();
    files
        .run(&["warc", "recompress", "a.warc.gz", "-o", "b.warc.gz"])
        .expect(0);
    let said = files.run(&["cdx", "b.warc.gz", "a.warc.gz"]).expect(0);
    let keys: Vec<&str> = said
        .out
        .lines()
        .map(|line| line.split(" {").next().unwrap_or_default())
        .collect();
    let b = "org,example)/b?a=2&z=1 20261121191409";
    let a = "org,example)/a 20261121191409";
    assert_eq!(keys, [a, a, b, b]);
    let line: serde_json::Value = serde_json::from_str(
        said.out
            .lines()
            .nth(2)
            .and_then(|line| line.splitn(3, ' ').nth(2))
            .expect("JSON"),
    )
    .expect("JSON");
    for (field, value) in [
        ("url", "http://www.example.org/b?z=1&a=2"),
        ("mime", "text/html"),
        ("status", "200"),
        ("filename", "a.warc.gz"),
        ("offset", &files.begins[1].to_string()),
        ("length", &(files.begins[2] - files.begins[1]).to_string()),
    ] {
        assert_eq!(line[field], value, "{line}");
    }
    let said = files.run(&["cdx", "--format", "cdx11", "-o", "index.cdx", "a.warc.gz"]);
    said.expect(0);
    let index = String::from_utf8(files.bytes("index.cdx")).expect("text");
    assert!(
        index.starts_with(" CDX N b a m s k r M S V g\norg,example)/a "),
        "{index}"
    );
    assert!(
        piped(&files.at("a.warc.gz"))
            .out
            .contains("\"filename\": \"-\"")
    );

    let mut cut = files.bytes("a.warc.gz");
    cut.truncate(cut.len() - 10);
    files.put("cut.warc.gz", &cut);
    let said = files.run(&["cdx", "cut.warc.gz"]).expect(1);
    let place = format!("cut.warc.gz: offset {}", cut.len());
    assert!(said.err.contains(&place), "{said:?}");
    assert!(
        said.err.contains("00000000-0000-4000-8000-000000000003"),
        "{said:?}"
    );
    assert!(said.out.contains("org,example)/b"), "{said:?}");
    let said = files.run(&["cdx", "none.warc.gz", "a.warc.gz"]).expect(2);
    assert_eq!(said.out.lines().count(), 2, "{said:?}");
}

/// Fails if it is not reported that records in one gzip member have no offset of their own, or if a file of such
/// records is refused.
#[test]
fn records_sharing_a_member_are_reported_without_failure() {
    let files = Files::new();
    let recompress = |from: &str, to: &str, more: &[&str]| {
        files.run(&[&["warc", "recompress", from, "-o", to], more].concat())
    };
    recompress("a.warc.gz", "plain.warc", &["--plain"]).expect(0);
    let gzip = Command::new("gzip").arg(files.at("plain.warc")).status();
    assert!(gzip.expect("gzip").success());
    let said = recompress("plain.warc.gz", "again.warc.gz", &[]).expect(0);
    assert!(
        said.err.contains("more than one record in a member"),
        "{said:?}"
    );
    assert!(files.bytes("again.warc.gz") == files.bytes("a.warc.gz"));
    for words in [&["warc", "list"][..], &["cdx"]] {
        let said = files.run(&[words, &["plain.warc.gz"]].concat()).expect(0);
        assert!(said.err.contains("shared"), "{said:?}");
    }
}

/// Fails if `warc check` does not compute the digest of a block, and so passes one that has changed.
#[test]
fn a_digest_that_is_wrong_fails_the_check() {
    let files = Files::new();
    let (record, block) = records().remove(2);
    let head = record.render_head(5).expect("a header");
    let head = String::from_utf8(head).expect("text");
    let none = "WARC-Block-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\nWARC-Date";
    let block = str::from_utf8(block).expect("text");
    let text = format!("{}{block}\r\n\r\n", head.replacen("WARC-Date", none, 1));
    files.put("digest.warc", text.as_bytes());
    let said = files.run(&["warc", "check", "digest.warc"]).expect(1);
    assert!(
        said.out.contains("error: digest (ISO 28500:2017, 5.8)"),
        "{said:?}"
    );
}

/// Fails if `warc cat` leaves out surplus line ends without a word, so that its output passes for the whole file.
#[test]
fn lost_line_ends_are_reported() {
    let files = Files::new();
    let plain = files.run(&["warc", "cat", "a.warc.gz"]).expect(0).out;
    files.put(
        "ends.warc",
        format!("{plain}{}", "\r\n".repeat(8)).as_bytes(),
    );
    let said = files.run(&["warc", "cat", "ends.warc"]).expect(1);
    assert!(
        said.out == plain && said.err.contains("20 bytes of line ends"),
        "{said:?}"
    );
}

/// Fails if `cdx -o` replaces a file that exists, or writes into one that another command is writing.
#[test]
fn index_is_written_only_where_allowed() {
    let files = Files::new();
    files.put("taken.cdxj", b"");
    // Said before the file that is not there is looked for.
    let said = files
        .run(&["cdx", "-o", "taken.cdxj", "none.warc.gz"])
        .expect(5);
    assert!(!said.err.contains("none.warc.gz"), "{said:?}");
    files.put("new.cdxj.partial", b"");
    let said = files.run(&["cdx", "-o", "new.cdxj", "a.warc.gz"]).expect(5);
    assert!(
        said.err.contains("another command is writing it"),
        "{said:?}"
    );
}

/// Makes an index of a file that comes on stdin.
fn piped(path: &Path) -> Ran {
    let mut command = executable();
    command.args(["cdx", "-"]);
    run(command.stdin(Stdio::from(File::open(path).expect("open"))))
}
