//! Indexes, and what crawls say of themselves.

use archive_formats::cdx::{Format, Sorter, extract_capture};
use archive_formats::warc::WarcReader;

use super::*;

pub(super) fn page(body: &str) -> Vec<u8> {
    answer("text/html", body.as_bytes())
}

/// Returns two files of a crawl: WARC in members, and ARC.
pub(super) fn files() -> (Vec<u8>, Vec<u8>) {
    let one = page("one");
    let two = page("two");
    let records = [
        (
            WarcType::Warcinfo,
            "",
            "application/warc-fields",
            &b"a: b\r\n"[..],
        ),
        (WarcType::Response, "http://b.example.org/", HTTP, &one),
        (
            WarcType::Request,
            "http://b.example.org/",
            "application/http; msgtype=request",
            b"GET",
        ),
        (WarcType::Response, "https://a.example.org/x y", HTTP, &two),
        (
            WarcType::Resource,
            "dns:a.example.org",
            "text/dns",
            b"192.0.2.7",
        ),
        (WarcType::Metadata, "metadata://x/y", "text/plain", b"z"),
    ];
    let mut arc =
        b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 14\n1 0 X\nURL IP\n\n\n".to_vec();
    let block = page("three");
    arc.extend_from_slice(
        format!(
            "http://c.example.org/ 192.0.2.9 20080430204825 text/html {}\n",
            block.len()
        )
        .as_bytes(),
    );
    arc.extend_from_slice(&block);
    arc.extend_from_slice(b"\ndns:c.example.org 192.0.2.9 20080430204826 text/dns 1\nx\n");
    (gzip(&records), arc)
}

/// Returns what `holdfast cdx` prints: a header line, and all lines sorted.
fn local(format: &Format, files: &[(&str, &[u8])]) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let mut sorter = Sorter::new(scratch.path(), 1 << 20);
    for (name, bytes) in files {
        let mut reader = WarcReader::new(*bytes);
        while let Some(record) = reader.next_record().unwrap() {
            if let Some(capture) = extract_capture(record, name).unwrap().capture {
                sorter.push(format.write_line(&capture).as_bytes()).unwrap();
            }
        }
    }
    let mut out = Vec::new();
    if let Some(header) = format.header() {
        out.extend_from_slice(header.as_bytes());
        out.push(b'\n');
    }
    sorter.finish(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Fails if the index that a job makes of several files is not sorted as a whole, has its header line twice, or differs
/// from what `holdfast cdx` makes of them.
#[test]
fn index_of_many_files_equals_local_command() {
    let (warc, arc) = files();
    let files = [("a.arc", arc.as_slice()), ("b.warc.gz", &warc)];
    for (name, format) in [
        ("cdxj", Format::Cdxj),
        ("cdx11", Format::cdx11()),
        ("cdx9", Format::cdx9()),
    ] {
        let lines = text("extract-cdx", &[("format", name)], &files);
        assert_eq!(lines, local(&format, &files), "{name}");
        let header = usize::from(format.header().is_some());
        assert_eq!(lines.lines().count(), 6 + header, "{name}: {lines}");
    }
    assert_eq!(
        text("extract-cdx", &[], &files),
        text("extract-cdx", &[("format", "cdxj")], &files)
    );
}

/// Fails if a field of the CDX lines of NetarchiveSuite is absent or out of order, or the MD5 includes the HTTP head.
#[test]
fn the_line_of_netarchivesuite_has_its_fields() {
    let (warc, arc) = files();
    let files = [("a.arc", arc.as_slice()), ("b.warc.gz", &warc)];
    let lines = text("extract-cdx", &[("format", "netarchivesuite")], &files);
    let mut reader = WarcReader::new(warc.as_slice());
    let mut places = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        places.push((record.kind(), record.read_end().unwrap()));
    }
    let of = |number: usize| (places[number].1.offset, places[number].1.block_length);
    let ((one, one_length), (two, two_length)) = (of(1), of(3));
    let arc_length = page("three").len();
    assert_eq!(
        lines,
        format!(
            "http://b.example.org/ 192.0.2.7 20261121191409 text/html {one_length} b.warc.gz {one}\n\
             http://c.example.org/ 192.0.2.9 20080430204825 text/html {arc_length} a.arc 69\n\
             https://a.example.org/x%20y 192.0.2.7 20261121191409 text/html {two_length} b.warc.gz {two}\n"
        )
    );
    // The lines have the MD5 of the bytes after the head.
    let lines = text("extract-cdx", &[("format", "netarchivesuite-md5")], &files);
    let sums: Vec<&str> = lines
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(
        sums,
        [
            "f97c5d29941bfb1b2fdab0874906ab82",
            "35d6d33467aae9a2e3dccb4b6b027878",
            "b8a9f715dbb64fd5c56e7783c6820a61",
        ]
    );
}

/// Fails if a record without a readable date, or with a URL too long for a line, is left out of the index without a
/// word.
#[test]
fn record_unfit_for_index_is_a_failure() {
    let record =
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a/\r\nWARC-Date: soon\r\n\
        Content-Length: 0\r\n\r\n\r\n\r\n";
    let (lines, failures) = run("extract-cdx", &[], &[("a", record)]);
    assert!(lines.is_empty());
    assert_eq!(
        (failures[0].kind, failures[0].offset),
        (FailureKind::Job, Some(0))
    );
    let url = format!("http://a/{}", "x".repeat(600_000));
    let long = plain(&[(WarcType::Resource, &url, "text/plain", b"")]);
    let (lines, failures) = run("extract-cdx", &[], &[("a", &long)]);
    assert!(lines.is_empty());
    assert!(
        failures[0].reason.contains("its line would have"),
        "{failures:?}"
    );
}

/// Fails if the index is not told where an answer leads, a request and its answer are not joined, or the last capture
/// of a file is lost.
#[test]
fn post_append_and_redirects_are_in_lines() {
    let url = "http://a.example.org/form";
    let mut writer = WarcWriter::plain_writer(Vec::new());
    let mut put = |builder: Builder, block: &[u8]| {
        let size = block.len() as u64;
        let head = builder.target_uri(url).render_head(size).unwrap();
        writer.write_record(&head, size, &mut { block }).unwrap();
    };
    let of = |kind, number: u32, content_type: &str| {
        Builder::new(kind, &format!("urn:uuid:{number}"), "2026-11-21T19:14:09Z")
            .content_type(content_type)
    };
    let request = b"POST /form HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=1";
    let answer = b"HTTP/1.1 302 Found\r\nLocation: ../done now\r\n\r\n";
    put(
        of(WarcType::Request, 1, "application/http; msgtype=request"),
        request,
    );
    put(
        of(WarcType::Response, 2, "application/http; msgtype=response").concurrent_to("urn:uuid:1"),
        answer,
    );
    put(of(WarcType::Resource, 3, "text/plain"), b"last");
    let file = writer.into_inner();
    let files = [("a.warc", file.as_slice())];
    let keys = |arguments: &[(&str, &str)]| -> Vec<String> {
        let lines = text("extract-cdx", arguments, &files);
        let keys = lines.lines().filter(|line| !line.starts_with(" CDX"));
        keys.map(|line| line.split(' ').next().unwrap().to_owned())
            .collect()
    };
    let plain = "org,example,a)/form";
    let posted = "org,example,a)/form?__wb_method=post&a=1";
    assert_eq!(keys(&[]), [plain, plain]);
    assert_eq!(keys(&[("post-append", "false")]), [plain, plain]);
    for format in ["cdxj", "cdx11", "cdx9"] {
        let arguments = [("format", format), ("post-append", "true")];
        assert_eq!(keys(&arguments), [plain, posted], "{format}");
        let lines = text("extract-cdx", &arguments, &files);
        assert!(lines.contains("http://a.example.org/done%20now"), "{lines}");
    }
    let cdx11 = text("extract-cdx", &[("format", "cdx11")], &files);
    let redirects: Vec<_> = cdx11
        .lines()
        .skip(1)
        .map(|line| line.split(' ').nth(6).unwrap())
        .collect();
    assert_eq!(redirects, ["http://a.example.org/done%20now", "-"]);
    for refused in [
        &[("post-append", "yes")][..],
        &[("format", "netarchivesuite"), ("post-append", "true")],
    ] {
        let refused = prepared("extract-cdx", refused).unwrap_err();
        assert!(refused.to_string().contains("post-append"), "{refused}");
    }
}

const LOG: &str = "\
2021-07-05T15:20:39.378Z     1         50 dns:www.example.org P http://www.example.org/ text/dns #001 20210705152039300+10 sha1:AAAA http://www.example.org/ content-size:50\n\
2021-07-05T15:20:40.378Z   200       1234 http://www.example.org/a L http://other.net/ text/html #002 20210705152040300+10 sha1:BBBB http://www.example.org/ duplicate:\"1-2-20200101-00000.warc.gz,4711,20200101000000000\",content-size:1234\r\n\
2021-07-05T15:20:41.378Z   200        999 http://notexample.org/ - - text/html #003 20210705152041300+10 sha1:CCCC - 2t,deduplicate:old.arc.gz,99,20190101000000\n\
2021-07-05T15:20:42.378Z   404          - http://other.net/b E http://sub.EXAMPLE.org:8080/x image/png #004 - - - duplicate:digest\n\
2021-07-05T15:20:43.378Z   200          1 http://other.net/c - - unknown #005 - - - duplicate:\"no-offset.warc\"\n\
short\n";

fn crawl_logs() -> (Vec<u8>, Vec<u8>) {
    let log = LOG.as_bytes();
    let warc = gzip(&[
        (
            WarcType::Warcinfo,
            "",
            "application/warc-fields",
            b"a: b\r\n",
        ),
        (
            WarcType::Metadata,
            "metadata://netarkivet.dk/crawl/logs/crawl.log?jobid=1",
            "text/plain",
            log,
        ),
        (
            WarcType::Metadata,
            "metadata://netarkivet.dk/crawl/logs/progress.log",
            "text/plain",
            log,
        ),
        (
            WarcType::Metadata,
            "http://x/crawl/logs/crawl.log",
            "text/plain",
            log,
        ),
        (
            WarcType::Resource,
            "metadata://x/crawl/reports/seeds-report.txt",
            "text/plain",
            b"seeds",
        ),
        (
            WarcType::Resource,
            "metadata://x/crawl/setup/order.xml",
            "text/xml; charset=utf-8",
            b"<x/>",
        ),
    ]);
    let mut arc =
        b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 14\n1 0 X\nURL IP\n\n\n".to_vec();
    let lines: String = LOG.split_inclusive('\n').take(2).collect();
    arc.extend_from_slice(
        format!(
            "metadata://n/crawl/logs/crawl.log?a=b 0.0.0.0 20080430204825 text/plain {}\n{lines}\n",
            lines.len()
        )
        .as_bytes(),
    );
    (warc, arc)
}

/// Returns the lines of the log with these numbers.
fn numbered(numbers: &[usize]) -> String {
    let all: Vec<&str> = LOG.lines().collect();
    numbers
        .iter()
        .flat_map(|number| [all[*number], "\n"])
        .collect()
}

/// Fails if a domain also finds hosts that only end alike (`notexample.org`), or misses its subdomains, other case or
/// pages that it led to; or an expression matches a part of a line.
#[test]
fn crawl_log_lines_match_expression_or_domain() {
    let (warc, arc) = crawl_logs();
    let files = [
        ("1-metadata-1.warc.gz", warc.as_slice()),
        ("2-metadata-1.arc", &arc),
    ];
    let matching = text("crawl-log-lines", &[("pattern", ".* 200 .*")], &files);
    assert_eq!(matching, numbered(&[1, 2, 4, 1]));
    assert_eq!(text("crawl-log-lines", &[("pattern", "200")], &files), "");
    assert_eq!(
        text("crawl-log-lines", &[("pattern", ".*")], &files),
        numbered(&[0, 1, 2, 3, 4, 5, 0, 1])
    );
    for (domain, lines) in [
        ("example.org", &[0, 1, 3, 0, 1][..]),
        ("EXAMPLE.org.", &[0, 1, 3, 0, 1]),
        ("www.example.org", &[0, 1, 0, 1]),
        ("sub.example.org", &[3]),
        ("notexample.org", &[2]),
        ("other.net", &[1, 3, 4, 1]),
        ("org", &[0, 1, 2, 3, 0, 1]),
        ("xample.org", &[]),
        ("example.com", &[]),
    ] {
        let found = text("crawl-log-domain", &[("domain", domain)], &files);
        assert_eq!(found, numbered(lines), "{domain}");
    }
}

/// Fails if a line of a crawl log beyond 1 MiB fills the memory or vanishes unreported, or takes the lines after it
/// along.
#[test]
fn line_beyond_limit_is_left_out_and_reported() {
    let log = [b"first\n", b"x".repeat((1 << 20) + 1).as_slice(), b"\nlast"].concat();
    let at_limit = [b"y".repeat(1 << 20).as_slice(), b"\n"].concat();
    let url = "metadata://x/crawl/logs/crawl.log";
    let bytes = plain(&[
        (WarcType::Metadata, url, "", &log),
        (WarcType::Metadata, url, "", &at_limit),
    ]);
    let (lines, failures) = run("crawl-log-lines", &[("pattern", ".*")], &[("a", &bytes)]);
    assert_eq!(lines, [b"first\nlast\n", at_limit.as_slice()].concat());
    assert_eq!(failures.len(), 1);
    assert!(
        failures[0].reason.starts_with("1 lines are longer"),
        "{failures:?}"
    );
}

/// Fails if metadata of the crawl is altered, a page counts as metadata, or an expression for the URL matches a part of
/// it.
#[test]
fn bodies_of_metadata_are_given_as_they_are() {
    let (warc, arc) = crawl_logs();
    let files = [
        ("1-metadata-1.warc.gz", warc.as_slice()),
        ("2-metadata-1.arc", &arc),
    ];
    let all = text("extract-metadata", &[], &files);
    let lines: String = LOG.split_inclusive('\n').take(2).collect();
    assert_eq!(all, format!("{LOG}{LOG}{LOG}seeds<x/>{lines}"));
    for (arguments, expected) in [
        (&[("mime", "text/xml")][..], "<x/>"),
        (
            &[("url", "metadata://[^/]*/crawl/(reports|setup)/.*")],
            "seeds<x/>",
        ),
        (&[("url", ".*seeds.*"), ("mime", "text/plain")], "seeds"),
        (&[("url", "seeds")], ""),
    ] {
        assert_eq!(
            text("extract-metadata", arguments, &files),
            expected,
            "{arguments:?}"
        );
    }
    let page = page("x");
    let none = gzip(&[(WarcType::Response, "http://a/", HTTP, &page)]);
    assert_eq!(text("extract-metadata", &[], &[("a", &none)]), "");
}

/// Fails if a duplicate in a crawl log is not listed at the file and offset that its line names, one without an offset
/// gets one, or a duplicate of two logs is listed once.
#[test]
fn duplicates_become_lines_of_an_index() {
    let (warc, arc) = crawl_logs();
    let files = [
        ("1-metadata-1.warc.gz", warc.as_slice()),
        ("2-metadata-1.arc", &arc),
    ];
    let (lines, failures) = run("dedup-cdx", &[("format", "cdx9")], &files);
    assert_eq!(
        String::from_utf8(lines).unwrap(),
        " CDX N b a m s k r V g\n\
         org,example)/a 20210705152040 http://www.example.org/a text/html 200 BBBB - 4711 1-2-20200101-00000.warc.gz\n\
         org,notexample)/ 20210705152041 http://notexample.org/ text/html 200 CCCC - 99 old.arc.gz\n"
    );
    // The line that names no offset.
    assert_eq!(failures.len(), 1);
    assert!(
        failures[0].reason.contains("no-offset.warc"),
        "{failures:?}"
    );
    let (lines, _) = run("dedup-cdx", &[], &files);
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(
        lines.lines().count(),
        3,
        "the same line of two files stands twice: {lines}"
    );
    assert!(
        lines.starts_with("org,example)/a 20210705152040 {"),
        "{lines}"
    );
    assert!(!lines.contains("metadata"), "{lines}");
    let (lines, _) = run("dedup-cdx", &[("log", "true")], &files);
    let lines = String::from_utf8(lines).unwrap();
    for (file, _) in &files {
        let named = format!("\"log\": \"{file}\"");
        assert!(lines.contains(&named), "{named} in {lines}");
    }
    let refused = prepared("dedup-cdx", &[("format", "cdx9"), ("log", "true")]).unwrap_err();
    assert!(refused.to_string().contains("\"log\""), "{refused}");
}
