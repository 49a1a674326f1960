//! `holdfast cdx` against cdxj-indexer: the same key, timestamp, offset and length for every capture, on the files of
//! other projects and on files that are made here.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use archive_formats::warc::{Builder, WarcType, WarcWriter};

use crate::crawl_documents::document;
use crate::crawls::{Site, only_entry};
use crate::holdfast::{Ran, executable, run};

/// Where the two differ, and why. A file that is not here has the same captures; one that is here has others.
const DEVIATIONS: [(&str, Theirs, &str); 8] = [
    (
        "archivesunleashed_aut/badexample.arc.gz",
        Theirs::Stops,
        "all records lie in one gzip member: it refuses the file, we name the captures without a length",
    ),
    (
        "iipc_webarchive-commons/IAH-20080430204825-00000-blackbook-truncated.arc",
        Theirs::Stops,
        "a record has no line end behind it: it takes what follows for no archive, we continue at the next record",
    ),
    (
        "iipc_webarchive-commons/link-extraction-test.warc",
        Theirs::Stops,
        "a Content-Length is wrong by one: it stops within the next header, we find the next record",
    ),
    (
        "oduwsdl_ipwb/broken.warc",
        Theirs::Stops,
        "a Content-Length is too small: it stops within the block, we count the record as long as it says and continue",
    ),
    (
        "oduwsdl_ipwb/variableSizedDates.warc",
        Theirs::Stops,
        "dates such as 2014 and 2014-02 are dates in WARC 1.1: it stops, we take the beginning of what they name",
    ),
    (
        "webrecorder_warcio/bad.arc",
        Theirs::Differs,
        "two lines say no length: it takes none for nothing, we take what comes before the next record",
    ),
    (
        "webrecorder_warcio/example-bad-non-chunked.warc.gz",
        Theirs::Stops,
        "all records lie in one gzip member: it refuses the file, we name the captures without a length",
    ),
    (
        "webrecorder_warcio/example-wrong-chunks.warc.gz",
        Theirs::Stops,
        "a record lies in several gzip members: it takes the second for no archive, we read it across them",
    ),
];

/// The behaviour of cdxj-indexer with a file on which we differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Theirs {
    /// cdxj-indexer ends with an error and has written nothing.
    Stops,
    /// cdxj-indexer writes other lines.
    Differs,
}

/// Returns whether cdxj-indexer is there.
fn judge() -> bool {
    let is_there = Command::new("cdxj-indexer").arg("--help").output().is_ok();
    if !is_there {
        tools_testing::skipped("cdxj-indexer is not on PATH (pip install cdxj-indexer)");
    }
    is_there
}

fn theirs(path: &Path, options: &[&str]) -> Ran {
    run(Command::new("cdxj-indexer")
        .arg("-s")
        .args(options)
        .arg(path))
}

fn ours(path: &Path, options: &[&str]) -> Ran {
    run(executable().arg("cdx").args(options).arg(path))
}

/// Returns the key, timestamp, offset and length of every line.
fn places(index: &str) -> Vec<String> {
    let mut places: Vec<String> = index
        .lines()
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let key = words.next().expect("a key");
            let timestamp = words.next().expect("a date");
            let json: serde_json::Value =
                serde_json::from_str(words.next().expect("JSON")).expect("JSON");
            format!("{key} {timestamp} {} {}", json["offset"], json["length"])
        })
        .collect();
    places.sort_unstable();
    places
}

/// Fails if `holdfast cdx` finds another key, time, offset or length of a capture than cdxj-indexer in a file that
/// others made.
#[test]
fn samples_have_the_captures_that_cdxj_indexer_sees() {
    let Some(folder) = std::env::var_os("HOLDFAST_SAMPLES").map(PathBuf::from) else {
        tools_testing::skipped("HOLDFAST_SAMPLES names no folder with sample files");
        return;
    };
    if !judge() {
        return;
    }
    let manifest = std::fs::read_to_string(folder.join("MANIFEST.tsv")).expect("MANIFEST.tsv");
    let files: Vec<&str> = manifest
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').next())
        .collect();
    let deviations: BTreeMap<_, _> = DEVIATIONS.iter().map(|(f, what, _)| (*f, *what)).collect();
    let compare = |file: &str| {
        let path = folder.join(file);
        let ours = ours(&path, &[]);
        let theirs = theirs(&path, &[]);
        assert!(!ours.err.contains("panicked"), "{ours:?}");
        let here = places(&ours.out);
        let there = places(&theirs.out);
        match deviations.get(file) {
            None => assert_eq!(here, there, "{file}: {}", theirs.err),
            Some(Theirs::Stops) => {
                assert!(theirs.code != 0 && there.is_empty(), "{file}: {theirs:?}");
                assert!(!here.is_empty(), "{file}");
            }
            Some(Theirs::Differs) => {
                assert_eq!(theirs.code, 0, "{file}: {theirs:?}");
                assert!(here != there, "{file} does not differ any more");
            }
        }
    };
    std::thread::scope(|scope| {
        for half in files.chunks(files.len().div_ceil(2)) {
            let compare = &compare;
            scope.spawn(move || half.iter().for_each(|file| compare(file)));
        }
    });
    eprintln!(
        "{} files of {} are the same",
        files.len() - DEVIATIONS.len(),
        files.len()
    );
}

const DATE: &str = "2026-11-21T19:14:09Z";
const HTTP: &str = "application/http; msgtype=response";

/// A file with every type of record, and the same with what was posted.
struct File {
    writer: WarcWriter<Vec<u8>>,
    number: u32,
}

impl File {
    fn put(&mut self, record: &Builder, block: &[u8]) {
        let length = u64::try_from(block.len()).expect("a length");
        let head = record.render_head(length).expect("a header");
        let mut block = block;
        self.writer
            .write_record(&head, length, &mut block)
            .expect("written");
    }

    fn next(&mut self, kind: WarcType) -> Builder {
        self.number += 1;
        Builder::new(kind, &format!("urn:uuid:{}", self.number), DATE)
    }

    /// Appends a request and its answer, either of them first.
    fn exchange(&mut self, url: &str, request: &[u8], is_answer_first: bool) {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>done";
        let first = self.number + 1;
        let second = self.number + 2;
        let to = |builder: Builder, number| builder.concurrent_to(&format!("urn:uuid:{number}"));
        let (response, asked) = if is_answer_first {
            let response = self.next(WarcType::Response);
            (response, to(self.next(WarcType::Request), first))
        } else {
            let asked = self.next(WarcType::Request);
            (to(self.next(WarcType::Response), first), asked)
        };
        assert_eq!(self.number, second);
        let response = response.target_uri(url).content_type(HTTP);
        let asked = asked
            .target_uri(url)
            .content_type("application/http; msgtype=request");
        if is_answer_first {
            self.put(&response, answer);
            self.put(&asked, request);
        } else {
            self.put(&asked, request);
            self.put(&response, answer);
        }
    }
}

fn write(path: &Path, bytes: &[u8]) {
    let mut file = std::fs::File::create_new(path).expect("create");
    file.write_all(bytes).expect("write");
}

fn made(writer: WarcWriter<Vec<u8>>) -> Vec<u8> {
    let mut file = File { writer, number: 0 };
    let url = "http://www.example.org/b?z=1&a=2";
    let record = file.next(WarcType::Warcinfo);
    file.put(
        &record.content_type("application/warc-fields"),
        b"software: a test\r\n",
    );
    for (kind, content_type) in [
        (WarcType::Resource, "text/plain"),
        (WarcType::Metadata, "text/anvl"),
        (WarcType::Metadata, "application/warc-fields"),
        (WarcType::Conversion, "text/plain"),
    ] {
        let record = file.next(kind).target_uri(url).content_type(content_type);
        file.put(&record, b"via: x\r\n");
    }
    let original = file
        .next(WarcType::Response)
        .target_uri(url)
        .content_type(HTTP);
    file.put(&original, b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    let digest = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";
    let revisit = Builder::identical_payload("urn:uuid:r", DATE, digest)
        .target_uri(url)
        .content_type(HTTP)
        .refers_to_capture(url, DATE);
    file.put(&revisit, b"HTTP/1.1 200 OK\r\n\r\n");
    file.number += 1;
    let moved = file
        .next(WarcType::Response)
        .target_uri("http://example.org/here")
        .content_type(HTTP);
    file.put(
        &moved,
        b"HTTP/1.1 302 Found\r\nContent-Type: text/html\r\nLocation: there?x=1 2\r\n\r\n",
    );
    let bodies: [(&str, &str, &[u8]); 7] = [
        (
            "POST",
            "application/x-www-form-urlencoded",
            b"a=1&b=%C3%A6+c",
        ),
        (
            "POST",
            "application/json; charset=utf-8",
            br#"{"a": 1, "b": {"a": [2.5, true, null]}}"#,
        ),
        ("POST", "text/plain", b"not JSON at all"),
        ("POST", "application/octet-stream", b"\x00\xff\x10"),
        (
            "POST",
            "multipart/form-data; boundary=XY",
            b"--XY\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nvalue\r\n--XY--\r\n",
        ),
        ("PUT", "application/x-www-form-urlencoded", b"x=y"),
        ("GET", "application/x-www-form-urlencoded", b""),
    ];
    for (number, (method, content_type, body)) in bodies.into_iter().enumerate() {
        let head = format!(
            "{method} /form HTTP/1.1\r\nHost: example.org\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let request = [head.as_bytes(), body].concat();
        let url = format!("http://example.org/form/{number}");
        file.exchange(&url, &request, number % 2 == 0);
    }
    file.writer.into_inner()
}

/// Fails if a line of `holdfast cdx` differs from that of cdxj-indexer in anything but the target of a redirect.
#[test]
fn our_index_has_the_lines_of_cdxj_indexer() {
    if !judge() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    for (name, bytes) in [
        ("a.warc", made(WarcWriter::plain_writer(Vec::new()))),
        ("a.warc.gz", made(WarcWriter::gzip_writer(Vec::new(), 6))),
    ] {
        let path = directory.path().join(name);
        write(&path, &bytes);
        for options in [&[][..], &["-p"]] {
            let ours = ours(&path, options);
            let theirs = theirs(&path, options);
            assert_eq!((ours.code, theirs.code), (0, 0), "{ours:?} {theirs:?}");
            // Where an answer leads, it does not say.
            let redirect = ", \"redirect\": \"http://example.org/there?x=1%202\"";
            assert_eq!(ours.out.matches(redirect).count(), 1, "{ours:?}");
            let ours = Ran {
                out: ours.out.replace(redirect, ""),
                ..ours
            };
            // With -p it has read the block before it computes a digest, and gives that of nothing.
            let lines = |index: &str| -> Vec<String> {
                let is_whole = options.is_empty();
                index
                    .lines()
                    .map(|line| match line.split_once("\"digest\": ") {
                        Some((before, rest)) if !is_whole => {
                            let (_digest, after) = rest.split_once(", ").expect("a length");
                            format!("{before}{after}")
                        }
                        _ => line.to_owned(),
                    })
                    .collect()
            };
            let ours = lines(&ours.out);
            let theirs = lines(&theirs.out);
            assert_eq!(ours, theirs, "{name} {options:?}");
            assert_eq!(ours.len(), 12);
        }
    }
}

/// Fails if answers to different forms of one URL get one key with `--post-append`, or if bodies get into keys without
/// it.
#[test]
fn only_post_append_puts_bodies_into_keys() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.warc.gz");
    write(&path, &made(WarcWriter::gzip_writer(Vec::new(), 6)));
    let index = ours(&path, &["--post-append"]).expect(0).out;
    for key in [
        "org,example)/form/0?__wb_method=post&a=1&b=%c3%a6%20c ",
        "org,example)/form/3?__wb_method=post&__wb_post_data=ap8q ",
        "org,example)/form/5?__wb_method=put&x=y ",
        "org,example)/form/6 ",
    ] {
        let found = index.lines().any(|line| line.starts_with(key));
        assert!(found, "{key} in {index}");
    }
    assert_eq!(index.matches("\"method\": \"POST\"").count(), 5);
    let plain = ours(&path, &[]).expect(0).out;
    assert!(!plain.contains("__wb_method") && !plain.contains("requestBody"));
}

/// Fails if the metadata file of a crawl says of a response or a revisit another place than cdxj-indexer sees in the
/// archive file.
#[test]
fn crawl_index_agrees_with_cdxj_indexer() {
    if !judge() {
        return;
    }
    let site = Site::serve();
    let directory = tempfile::tempdir().expect("a directory");
    let base = |name: &str| directory.path().join(name);
    let crawl = |name: &str, words: &[&str]| {
        let mut command = executable();
        command.args(["crawl", &site.base, "--delay", "0", "--no-store", "--job"]);
        let command = command.arg(name).args(words).arg("--keep").arg(base(name));
        run(command).expect(0);
        let job = only_entry(&base(name));
        let metadata = job.join(format!("metadata/{name}-metadata-1.warc.gz"));
        (only_entry(&job.join("warcs")), metadata)
    };
    let (first, metadata) = crawl("1", &[]);
    let index = base("x.dedup");
    let mut command = executable();
    command.args(["index", "dedup", "-o"]).arg(&index);
    run(command.arg(&metadata)).expect(0);
    let words = ["--dedup-all", "--dedup", index.to_str().expect("a path")];
    let (second, later) = crawl("2", &words);
    for (archive_file, metadata, revisits) in [(first, metadata, 0), (second, later, 61)] {
        let theirs = theirs(&archive_file, &[]).expect(0).out;
        let captures = document(&metadata, "/crawl/index/captures?");
        assert_eq!(places(&captures), places(&theirs));
        assert_eq!(theirs.matches("warc/revisit").count(), revisits);
        // NetarchiveSuite lists responses only, and of these all.
        let cdx = document(&metadata, "/crawl/index/cdx?");
        let listed = cdx.lines().map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            assert_eq!(fields.len(), 8, "{line}");
            (fields[0].to_owned(), fields[6].to_owned())
        });
        let seen = theirs.lines().filter_map(|line| {
            let (_, json) = line.split_once(" {")?;
            let json: serde_json::Value = serde_json::from_str(&format!("{{{json}")).ok()?;
            let is_response = json["mime"] != "warc/revisit";
            let text = |name: &str| json[name].as_str().map(str::to_owned);
            is_response.then_some(text("url")?).zip(text("offset"))
        });
        assert_eq!(listed.collect::<BTreeSet<_>>(), seen.collect());
    }
}
