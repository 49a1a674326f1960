//! Every built-in job over files with known content, and over files of any bytes.

use archive_formats::warc::{Builder, WarcType, WarcWriter};
use archive_model::{FailureKind, FileFailure, FileName, Root};
use tools_testing::Random;

use super::*;
use crate::job::{File, FileSource, ReadBytesError};
use crate::reduce::Reducer;
use crate::run::{FileInput, FileResult, run_file};

mod crawl;
mod export;
mod pages;

const DATE: &str = "2026-11-21T19:14:09Z";

/// A file in memory.
struct Memory<'a>(&'a [u8]);

impl FileSource for Memory<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadBytesError> {
        let rest = &self.0[usize::try_from(offset).unwrap().min(self.0.len())..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

fn file(name: &str, bytes: &[u8]) -> File {
    File {
        name: FileName::new(name).unwrap(),
        size: bytes.len() as u64,
        root: Root::from_bytes(*blake3::hash(bytes).as_bytes()),
        stored: "2026-11-21T20:00:00.5Z".into(),
    }
}

/// A value for each argument that a job must be given.
fn needed(info: &JobInfo) -> Vec<(&'static str, &'static str)> {
    let arguments = info.arguments.iter();
    arguments
        .filter(|argument| argument.default.is_none())
        .map(|argument| {
            let value = match argument.name {
                "domain" => "a.org",
                "since" => "2016",
                "pattern" | "url" => "(?s).*",
                other => panic!("{}: name a value for {other} here", info.name),
            };
            (argument.name, value)
        })
        .collect()
}

fn prepared(name: &str, arguments: &[(&str, &str)]) -> Result<Box<dyn Plan>, InvalidJob> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let arguments: Vec<_> = arguments.iter().map(owned).collect();
    plan_job(name, &arguments)
}

/// Runs a job over some files, and returns its result and its failures.
fn run(
    name: &str,
    arguments: &[(&str, &str)],
    files: &[(&str, &[u8])],
) -> (Vec<u8>, Vec<FileFailure>) {
    let plan = prepared(name, arguments).unwrap();
    let control = StopControl::default();
    let mut output = Vec::new();
    let mut failures = Vec::new();
    for (name, bytes) in files {
        let file = file(name, bytes);
        let done: FileResult = run_file(
            plan.as_ref(),
            FileInput {
                file: &file,
                source: &mut Memory(bytes),
            },
            &mut output,
            &control,
        )
        .unwrap();
        failures.extend(done.failures);
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut result = Vec::new();
    Reducer::new(plan.reduce(), scratch.path())
        .reduce_outputs(&mut output.as_slice(), &mut result, &control)
        .unwrap();
    (result, failures)
}

/// Runs a job that has no failures, and returns its result as text.
fn text(name: &str, arguments: &[(&str, &str)], files: &[(&str, &[u8])]) -> String {
    let (result, failures) = run(name, arguments, files);
    assert_eq!(failures, [], "{name}");
    String::from_utf8(result).unwrap()
}

/// A record: its type, URL, media type and block.
type Of<'a> = (WarcType, &'a str, &'a str, &'a [u8]);

fn written(mut writer: WarcWriter<Vec<u8>>, records: &[Of<'_>]) -> Vec<u8> {
    for (number, (kind, url, media, block)) in records.iter().enumerate() {
        let mut builder = Builder::new(*kind, &format!("urn:uuid:{number}"), DATE);
        if !url.is_empty() {
            builder = builder.target_uri(url);
        }
        if !media.is_empty() {
            builder = builder.content_type(media);
        }
        if *kind == WarcType::Response {
            builder = builder.with_field("WARC-IP-Address", "192.0.2.7");
        }
        if *kind == WarcType::Revisit {
            let profile = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";
            builder = builder.with_field("WARC-Profile", profile);
        }
        let head = builder.render_head(block.len() as u64).unwrap();
        let mut block = *block;
        writer
            .write_record(&head, block.len() as u64, &mut block)
            .unwrap();
    }
    writer.into_inner()
}

fn gzip(records: &[Of<'_>]) -> Vec<u8> {
    written(WarcWriter::gzip_writer(Vec::new(), 6), records)
}

fn plain(records: &[Of<'_>]) -> Vec<u8> {
    written(WarcWriter::plain_writer(Vec::new()), records)
}

const HTTP: &str = "application/http; msgtype=response";

/// Returns an answer with this type and body.
fn answer(media: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Fails if a built-in job is out of order or not described, runs without an argument that it requires, or reduces in
/// another way than its description says.
#[test]
fn jobs_are_sorted_and_described() {
    let names: Vec<&str> = built_in().map(|info| info.name).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(names, sorted, "sort `BUILT_IN` by name");
    for info in built_in() {
        let is_kebab = |name: &str| {
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        assert!(is_kebab(info.name) && info.about.ends_with('.') && !info.output.is_empty());
        assert!(!info.about.contains("  "), "{}", info.about);
        for argument in info.arguments {
            assert!(is_kebab(argument.name) && !argument.about.is_empty());
        }
        let needed = needed(info);
        // The required arguments are enough, and the reduce step of the plan is the one that is described, except for
        // forms with a header line.
        let plan = prepared(info.name, &needed).unwrap();
        assert_eq!(plan.reduce(), info.reduce, "{}", info.name);
        for left_out in &needed {
            let rest: Vec<_> = needed.iter().filter(|n| *n != left_out).copied().collect();
            let error = prepared(info.name, &rest).unwrap_err();
            assert!(matches!(error, InvalidJob::Missing { .. }), "{error}");
            assert!(error.to_string().contains(left_out.0), "{error}");
        }
    }
}

/// Fails if an unknown, repeated or malformed argument is ignored, so that the job runs over other files or records
/// than were meant, or the error does not say what is allowed.
#[test]
fn arguments_are_read_strictly() {
    for (job, arguments, says) in [
        ("no-such-job", &[][..], "holdfast batch jobs"),
        ("file-list", &[("since", "2016")], "has no arguments"),
        (
            "checksum",
            &[("algoritm", "md5")],
            "has the arguments algorithm",
        ),
        (
            "checksum",
            &[("algorithm", "sha1")],
            "not one of blake3, md5, sha256",
        ),
        ("checksum", &[("algorithm", "")], "not one of"),
        (
            "checksum",
            &[("algorithm", "md5"), ("algorithm", "md5")],
            "given twice",
        ),
        ("file-list-since", &[("since", "")], "20161231235959"),
        (
            "file-list-since",
            &[("since", "yesterday")],
            "20161231235959",
        ),
        (
            "file-list-since",
            &[("since", "20161301000000")],
            "month 13",
        ),
        ("export", &[("from", "2016-99")], "20161231235959"),
        ("url-search", &[("url", "(")], "unclosed group"),
        ("url-search", &[("url", "a)(b")], "argument \"url\""),
        ("crawl-log-domain", &[("domain", "a b")], "is no host"),
        ("crawl-log-domain", &[("domain", "")], "is no host"),
    ] {
        let error = prepared(job, arguments).unwrap_err().to_string();
        assert!(error.contains(says), "{job} {arguments:?}: {error}");
    }
}

/// Fails if a checksum differs from what other tools compute of the same bytes, or the default is not BLAKE3.
#[test]
fn checksums_are_those_of_the_field() {
    let files = [("a b.warc", &b"abc"[..]), ("empty", b"")];
    for (algorithm, abc, empty) in [
        (
            "md5",
            "900150983cd24fb0d6963f7d28e17f72",
            "d41d8cd98f00b204e9800998ecf8427e",
        ),
        (
            "sha256",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ),
        (
            "blake3",
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        ),
    ] {
        assert_eq!(
            text("checksum", &[("algorithm", algorithm)], &files),
            format!("a b.warc##{abc}\nempty##{empty}\n")
        );
    }
    assert!(text("checksum", &[], &files).contains("6437b3ac"));
}

/// Fails if a file that was stored in the second of `since` is left out, a fraction of that second or an offset from
/// UTC is ignored, or a bare year is refused.
#[test]
fn lists_of_files() {
    let files = [("a.warc", &b"abc"[..]), ("b.warc", b"")];
    assert_eq!(text("file-list", &[], &files), "a.warc\nb.warc\n");
    // Stored at 20:00:00.5.
    for (since, is_listed) in [
        ("20261121195959", true),
        ("20261121200000", true),
        ("2026-11-21T20:00:00.4Z", true),
        ("2026-11-21T20:00:00.5Z", false),
        ("20261121200001", false),
        ("2026", true),
        ("2027", false),
        ("2026-11-21T21:00:00+01:00", true),
        ("2026-11-21T21:00:01+01:00", false),
    ] {
        let listed = text("file-list-since", &[("since", since)], &files);
        assert_eq!(!listed.is_empty(), is_listed, "{since}");
    }
}

/// Fails if the offset of a record is not where it begins, a request counts as a capture, a space splits a line, or an
/// expression matches a part of a URL.
#[test]
fn urls_are_found_where_they_lie() {
    let page = answer("text/html; charset=utf-8", b"x");
    let records = [
        (
            WarcType::Warcinfo,
            "",
            "application/warc-fields",
            &b"a: b\r\n"[..],
        ),
        (WarcType::Response, "http://example.org/a", HTTP, &page),
        (
            WarcType::Request,
            "http://example.org/a",
            "application/http; msgtype=request",
            b"GET",
        ),
        (WarcType::Response, "http://example.org/b c", HTTP, &page),
        (
            WarcType::Resource,
            "ftp://example.org/a",
            "text/plain",
            b"y",
        ),
    ];
    let bytes = plain(&records);
    let all = text("url-search", &[("url", ".*")], &[("a.warc", &bytes)]);
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines.len(), 3, "{all}");
    let at = bytes
        .windows(11)
        .position(|window| window == b"ftp://examp")
        .unwrap();
    let offset = bytes[..at]
        .windows(5)
        .rposition(|window| window == b"WARC/")
        .unwrap();
    assert_eq!(
        lines[2],
        format!("20261121191409 ftp://example.org/a - text/plain a.warc {offset}")
    );
    assert!(lines[0].starts_with("20261121191409 http://example.org/a 200 text/html a.warc "));
    assert!(lines[1].contains("http://example.org/b%20c 200"));
    // The whole URL has to match.
    let some = text(
        "url-search",
        &[("url", "http://.*/(a|b)")],
        &[("a.warc", &bytes)],
    );
    assert_eq!(some.lines().count(), 1);
}

/// Fails if the counts of several files stay apart, parameters or case split a media type, a tab in one splits a
/// column, or records without one are not counted.
#[test]
fn media_types_are_counted_over_all_files() {
    let page = answer("text/HTML; charset=x", b"12345");
    let none = answer("", b"1");
    let tab = answer("a\tb", b"");
    let first = gzip(&[
        (WarcType::Response, "http://a/", HTTP, &page),
        (WarcType::Response, "http://b/", HTTP, &page),
        (WarcType::Response, "http://c/", HTTP, &none),
        (
            WarcType::Request,
            "http://c/",
            "application/http; msgtype=request",
            b"GET",
        ),
    ]);
    let second = plain(&[
        (WarcType::Response, "http://a/", HTTP, &page),
        (WarcType::Response, "http://a/", HTTP, &tab),
        (WarcType::Resource, "dns:a", "text/dns", b"abc"),
        (WarcType::Resource, "urn:a", "", b"abcd"),
    ]);
    let arc = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 14\n1 0 X\nURL IP\n\n\n\
        dns:a 1.2.3.4 20080430204825 text/dns 1\nx\n";
    assert_eq!(
        text(
            "mime-statistics",
            &[],
            &[("a.warc.gz", &first), ("b.warc", &second), ("c.arc", arc)]
        ),
        "-\t2\t5\na\t1\t0\ntext/dns\t2\t4\ntext/html\t3\t15\n"
    );
}

/// Fails if damage to an archive file makes a job panic, keep more failures than it may, or blame the disk or a
/// component for it.
#[test]
fn arbitrary_bytes_end_every_job_without_panic() {
    let mut dice = Random::new(11);
    let page = answer(
        "text/html",
        b"<base href=b><title>t</title><a href=x>y</a><img srcset='a 1x,b'><script>'</script>",
    );
    let log = "2021-07-05T15:20:39.378Z 200 10 http://a.org/ L http://b.org/ text/html #001 \
               20210705152039378+1 sha1:AAAA - duplicate:\"f.arc,12,20210705152039378\"\n";
    let seeds = [
        gzip(&[
            (WarcType::Response, "http://a.org/", HTTP, &page),
            (
                WarcType::Metadata,
                "metadata://x/crawl/logs/crawl.log",
                "text/plain",
                log.as_bytes(),
            ),
        ]),
        plain(&[
            (WarcType::Response, "http://a.org/", HTTP, &page),
            (
                WarcType::Metadata,
                "metadata://x/crawl/logs/crawl.log",
                "text/plain",
                log.as_bytes(),
            ),
        ]),
        b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 14\n1 0 X\nURL IP\n\n\n\
          http://a/b 1.2.3.4 20080430204825 text/html 22\nHTTP/1.1 200 OK\r\n\r\nabc\n\
          dns:a 1.2.3.4 20080430204825 text/dns 1\nx\n"
            .to_vec(),
        Vec::new(),
    ];
    for round in 0..400 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..dice.index(8) {
            let at = dice.index(bytes.len() + 1);
            match dice.index(4) {
                0 if at < bytes.len() => bytes[at] ^= 1 << dice.index(8),
                1 => bytes.truncate(at),
                2 => bytes.insert(at, u8::try_from(dice.index(256)).unwrap()),
                _ => {
                    let noise: Vec<u8> = (0..dice.index(50))
                        .map(|_| u8::try_from(dice.index(256)).unwrap())
                        .collect();
                    bytes.splice(at..at, noise);
                }
            }
        }
        for info in built_in() {
            let (_, failures) = run(info.name, &needed(info), &[("a", &bytes)]);
            assert!(failures.len() <= archive_model::batch::MOST_FAILURES);
            let is_known = failures
                .iter()
                .all(|failure| matches!(failure.kind, FailureKind::Format | FailureKind::Job));
            assert!(is_known, "{} {failures:?}", info.name);
        }
    }
}
