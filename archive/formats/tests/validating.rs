//! Records that follow the standard are not flagged; those that do not are, with the clause.

use archive_formats::defect::{Class, Defect};
use archive_formats::digest::{Algorithm, digest_bytes};
use archive_formats::warc::validate::of_defect;
use archive_formats::warc::{
    Rule, RuleSeverity, Validator, Violation, WarcReader, validate_record,
};

const GOOD: &str = "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\n\
    WARC-Date: 2026-11-21T19:14:09Z\r\nWARC-Target-URI: http://example.org/?a=%20b\r\n\
    WARC-Concurrent-To: <urn:uuid:2>\r\nWARC-Concurrent-To: <urn:uuid:3>\r\n\
    WARC-IP-Address: ::1\r\nWARC-Block-Digest: sha1:ABC\r\nX-Any: thing\r\nX-Any: thing\r\n\
    Content-Type: application/http; msgtype=response\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n";

fn found(text: &str) -> Vec<(Rule, String)> {
    let mut reader = WarcReader::new(text.as_bytes());
    let record = reader.next_record().unwrap().unwrap();
    let kind = record.kind();
    let version = record.version();
    let header = record.header().clone();
    let end = record.read_end().unwrap();
    let found = validate_record(kind, version, &header, &end);
    found
        .into_iter()
        .map(|violation| (violation.rule, violation.clause))
        .collect()
}

/// Fails if the validator flags a record that the standard allows: an unknown type, a folded field, a date without a
/// time.
#[test]
fn valid_record_is_not_flagged() {
    assert_eq!(found(GOOD), []);
    let of = |from: &str, to: &str| found(&GOOD.replacen(from, to, 1));
    assert_eq!(of("2026-11-21T19:14:09Z", "2026"), []);
    assert_eq!(
        of("2026-11-21T19:14:09Z", "2026-11-21T19:14:09.123456789Z"),
        []
    );
    assert_eq!(of("WARC-Type: response", "wARC-tYPE:\r\n  response"), []);
    assert_eq!(of("WARC-Type: response", "WARC-Type: future"), []);
    assert_eq!(of("X-Any", "WARC-Truncated: head\r\nX-Any"), []);
    let old = GOOD.replacen("WARC/1.1", "WARC/1.0", 1);
    assert_eq!(found(&old), []);
    assert_eq!(
        found(
            &old.replacen("http://example.org/", "<http://example.org/>", 1)
                .replacen("?a=%20b", "", 1)
        ),
        []
    );
    assert_eq!(
        found("http://a/ 1.2.3.4 20080430204825 text/html 1\nx\n"),
        []
    );
}

/// Fails if a URI that a browser writes, and a crawler must, counts as a breach, or passes without a word.
#[test]
fn uri_of_a_browser_is_a_warning() {
    for query in ["f[]=1", "a|b", "{y}", "`b`", "a^b", "100%", "c\\d"] {
        let mut found = in_file(&GOOD.replacen("a=%20b", query, 1));
        found.retain(|found| found.rule != Rule::Digest);
        assert_eq!(
            short(&found),
            [(Rule::Syntax, RuleSeverity::Warning, "5.14")],
            "{query}"
        );
    }
}

/// Fails if a breach of the standard is not flagged, or is flagged with the clause of another rule.
#[test]
fn breach_of_standard_is_flagged_with_its_clause() {
    for (from, to, rule, clause) in [
        (
            "WARC-Record-ID: <urn:uuid:1>\r\n",
            "",
            Rule::Mandatory,
            "2017, 5.2",
        ),
        ("<urn:uuid:1>", "urn:uuid:1", Rule::Syntax, "2017, 5.2"),
        ("<urn:uuid:1>", "<urn:uu id:1>", Rule::Syntax, "2017, 5.2"),
        ("2026-11-21T19", "2026-02-30T19", Rule::Syntax, "2017, 5.4"),
        ("09Z", "09.Z", Rule::Syntax, "2017, 5.4"),
        (
            "WARC-Target-URI: http://example.org/?a=%20b\r\n",
            "",
            Rule::Mandatory,
            "2017, 5.14",
        ),
        ("%20b", " b", Rule::Syntax, "2017, 5.14"),
        ("%20b", "\u{e6}", Rule::Syntax, "2017, 5.14"),
        (
            "http://example.org/?a=%20b",
            "<http://example.org/>",
            Rule::Syntax,
            "2017, 5.14",
        ),
        (
            "X-Any",
            "WARC-Filename: a\r\nX-Any",
            Rule::Forbidden,
            "2017, 5.17",
        ),
        (
            "X-Any",
            "WARC-Refers-To: <urn:a>\r\nX-Any",
            Rule::Forbidden,
            "2017, 5.11",
        ),
        (
            "X-Any",
            "WARC-Refers-To-Date: 2016\r\nX-Any",
            Rule::Forbidden,
            "2017, 5.13",
        ),
        (
            "X-Any",
            "warc-type: response\r\nX-Any",
            Rule::Repeated,
            "2017, 5.1",
        ),
        (
            "X-Any",
            "WARC-Segment-Number: 2\r\nX-Any",
            Rule::Segmentation,
            "2017, 5.20",
        ),
        ("::1", "localhost", Rule::Syntax, "2017, 5.10"),
        ("sha1:ABC", "sha1", Rule::Syntax, "2017, 5.8"),
        ("X-Any", "X Any", Rule::Syntax, "2017, 4"),
        ("X-Any: thing\r\n", "X-Any\r\n", Rule::Syntax, "2017, 4"),
        (
            "X-Any: thing\r\n",
            "X-Any: thing\n",
            Rule::Syntax,
            "2017, 4",
        ),
        ("abc\r\n\r\n", "abc\r\n", Rule::Length, "2017, 4"),
        ("Length: 3", "Length: 9", Rule::Length, "2017, 5.3"),
        (
            "Content-Type: application/http; msgtype=response\r\n",
            "",
            Rule::Mandatory,
            "2017, 5.6",
        ),
        ("WARC/1.1", "WARC/2.0", Rule::Syntax, "2017, 4"),
    ] {
        let expected = vec![(rule, format!("ISO 28500:{clause}"))];
        assert_eq!(
            found(&GOOD.replacen(from, to, 1)),
            expected,
            "{from:?} {to:?}"
        );
    }
}

/// Fails if a record is judged by the rules of another type, or a field that its type requires may be absent.
#[test]
fn types_have_rules_of_their_own() {
    let of = |kind: &str, fields: &str| {
        let text = GOOD.replacen("response", kind, 1);
        let text = text.replacen("WARC-Concurrent-To: <urn:uuid:2>\r\nWARC-Concurrent-To: <urn:uuid:3>\r\nWARC-IP-Address: ::1\r\n", "", 1);
        let clauses = found(&text.replacen("X-Any", &format!("{fields}X-Any"), 1)).into_iter();
        clauses
            .map(|(_, clause)| clause.replace("ISO 28500:2017, ", ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("warcinfo", ""), ["5.14"]);
    assert_eq!(of("metadata", ""), [""; 0]);
    assert_eq!(of("revisit", ""), ["5.18"]);
    let by_digest =
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n";
    assert_eq!(of("revisit", by_digest), ["6.7.2"]);
    assert_eq!(of("continuation", ""), ["5.20", "5.21"]);
    let segment = "WARC-Segment-Origin-ID: <urn:uuid:1>\r\nWARC-Segment-Number: 2\r\n";
    assert_eq!(of("continuation", segment), [""; 0]);
    assert_eq!(of("continuation", &segment.replace('2', "1")), ["5.20"]);
}

/// Fails if a defect that the reader passes over is missing from the violations, or is reported twice.
#[test]
fn everything_passed_over_is_reported() {
    // The classes that `validate` sees itself, in records that it is given.
    let seen = [
        Class::WrongLength,
        Class::Version,
        Class::UnknownType,
        Class::MissingType,
        Class::Field,
        Class::LineEnding,
        Class::MissingLength,
        Class::BadLength,
        Class::Trailer,
        Class::ArcLine,
    ];
    for class in Class::ALL {
        let defect = Defect {
            class,
            offset: 7,
            uncompressed: 0,
            record: None,
            words: "x".into(),
        };
        let violation = of_defect(&defect);
        assert_eq!(violation.is_none(), seen.contains(&class), "{class}");
        assert!(violation.is_none_or(|violation| violation.offset == 7));
    }
    let wrong = GOOD.replacen("Length: 3", "Length: 2", 1) + GOOD;
    assert_eq!(
        found(&wrong),
        [(Rule::Length, "ISO 28500:2017, 5.3".into())]
    );
}

/// Returns the violations in a file, records and all.
fn in_file(text: &str) -> Vec<Violation> {
    let mut reader = WarcReader::new(text.as_bytes());
    let mut validator = Validator::default();
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        found.extend(validator.check_record(record).unwrap());
    }
    found.extend(reader.take_defects().iter().filter_map(of_defect));
    found.extend(validator.finish_file());
    assert_eq!(validator.omitted_violations(), 0);
    found
}

/// Rules and clauses of 2017.
fn short(found: &[Violation]) -> Vec<(Rule, RuleSeverity, &str)> {
    found
        .iter()
        .map(|found| {
            let clause = found.clause.strip_prefix("ISO 28500:2017, ");
            (found.rule, found.severity, clause.unwrap_or(&found.clause))
        })
        .collect()
}

fn record(id: u32, kind: &str, fields: &str, block: &str) -> String {
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:x:{id}>\r\n\
         WARC-Date: 2026-11-21T19:14:09Z\r\nWARC-Target-URI: http://a/\r\n{fields}\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

/// Fails if a digest is not compared with the bytes, or a right one in another spelling or reading is called wrong.
#[test]
fn digests_are_compared_with_the_bytes() {
    let text = "Content-Type: text/plain\r\n";
    let http = "Content-Type: application/http; msgtype=response\r\n";
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let stored = "5\r\nhello\r\n0\r\n\r\n";
    let judge = |kind: &str, fields: &str, block: &str| in_file(&record(1, kind, fields, block));
    for algorithm in Algorithm::ALL {
        let value = |bytes: &str| digest_bytes(algorithm, bytes.as_bytes());
        let label = algorithm.label();
        for (field, clause) in [("WARC-Block-Digest", "5.8"), ("WARC-Payload-Digest", "5.9")] {
            for right in [
                value("hello").to_string(),
                format!("{label}:{}", value("hello").hex_text()),
            ] {
                let fields = format!("{text}{field}: {right}\r\n");
                assert_eq!(judge("resource", &fields, "hello"), [], "{fields}");
            }
            let fields = format!("{text}{field}: {}\r\n", value("other"));
            let found = judge("resource", &fields, "hello");
            assert_eq!(short(&found), [(Rule::Digest, RuleSeverity::Error, clause)]);
            assert!(
                found[0].words.contains(&value("hello").to_string()),
                "{found:?}"
            );
        }
        let of_payload = |bytes| format!("{http}WARC-Payload-Digest: {}\r\n", value(bytes));
        for right in ["hello", stored] {
            assert_eq!(judge("response", &of_payload(right), answer), []);
        }
        let wrong = [(Rule::Digest, RuleSeverity::Error, "5.9")];
        let found = judge("response", &of_payload(answer), answer);
        assert_eq!(short(&found), wrong, "{found:?}");
    }
}

/// Fails if a digest that is padded, as the grammar does not have it, is named and not compared.
#[test]
fn padded_digests_are_compared() {
    let judge = |value: &str| {
        let fields = format!("Content-Type: text/plain\r\nWARC-Block-Digest: {value}\r\n");
        let found = in_file(&record(1, "resource", &fields, "hello"));
        let differs = found.iter().any(|found| found.rule == Rule::Digest);
        (differs, found.len())
    };
    // The MD5 of `hello` and of `hellO`, in Base32 and in Base64; each is named once for its padding.
    assert_eq!(judge("md5:LVAUAKV4JMVHNOLRTWIRAF6FSI======"), (false, 1));
    assert_eq!(judge("md5:XUFAKrxLKna5cZ2REBfFkg=="), (false, 1));
    assert_eq!(judge("md5:XUFAKrxLKna5cZ2REBfFkA=="), (true, 2));
}

/// Fails if a digest is called wrong where its bytes are not all there: in a segment, a truncated record or a revisit.
#[test]
fn unverifiable_digests_are_not_judged() {
    let http = "Content-Type: application/http; msgtype=response\r\n";
    let none = "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let answer = "HTTP/1.1 200 OK\r\n\r\nhello";
    for (kind, fields) in [
        ("response", "WARC-Segment-Number: 1\r\n"),
        ("response", "WARC-Truncated: length\r\n"),
        (
            "revisit",
            "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\r\n",
        ),
    ] {
        let fields = format!("{http}{fields}WARC-Payload-Digest: {none}\r\n");
        assert_eq!(in_file(&record(1, kind, &fields, answer)), [], "{fields}");
    }
    let dns = format!("Content-Type: text/dns\r\nWARC-Payload-Digest: {none}\r\n");
    assert_eq!(in_file(&record(1, "response", &dns, "x")), []);
    let unknown = format!("{http}WARC-Block-Digest: crc:1\r\nWARC-Payload-Digest: none:1\r\n");
    assert_eq!(in_file(&record(1, "response", &unknown, answer)), []);
    let unread = format!("{http}WARC-Block-Digest: sha1:ABC\r\n");
    assert_eq!(
        short(&in_file(&record(1, "response", &unread, answer))),
        [(Rule::Digest, RuleSeverity::Error, "5.8")]
    );
    // A cut block is reported once, as cut.
    let mut cut = record(
        1,
        "response",
        &format!("{http}WARC-Block-Digest: {none}\r\n"),
        answer,
    );
    cut.truncate(cut.len() - 6);
    let found = in_file(&cut);
    assert!(
        found.iter().all(|found| found.rule != Rule::Digest),
        "{found:?}"
    );
    assert!(!found.is_empty());
}

/// Fails if a wrong length in an ARC line is not reported as an error, or a right one is.
#[test]
fn lengths_in_arc_files_are_judged() {
    let line = |length: u64| format!("http://a/ 1.2.3.4 20080430204825 text/html {length}\n");
    let next = format!("{}b\n", line(1));
    assert_eq!(in_file(&format!("{}aaa\n{next}", line(3))), []);
    for wrong in [
        format!("{}aaa\n{next}", line(2)),
        "http://a/ 1.2.3.4 20080430204825 text/html abc\nx\n".to_owned(),
    ] {
        let found = in_file(&wrong);
        let expected = (Rule::Length, RuleSeverity::Error, "ARC, URL record");
        assert_eq!(short(&found).first(), Some(&expected), "{wrong}");
    }
}

/// Fails if an id of two records, or a segment that is missing between two others, is not reported.
#[test]
fn faults_across_several_records_are_reported() {
    let text = "Content-Type: text/plain\r\n";
    let one = record(1, "resource", text, "one");
    let found = in_file(&format!("{one}{}{one}", record(2, "resource", text, "two")));
    assert_eq!(
        short(&found),
        [(Rule::Repeated, RuleSeverity::Error, "5.2")]
    );
    assert!(found[0].offset > 0);

    let first = record(
        1,
        "response",
        &format!("{text}WARC-Segment-Number: 1\r\n"),
        "hello",
    );
    let next = |number: u64, total: &str| {
        let fields = format!(
            "WARC-Segment-Number: {number}\r\nWARC-Segment-Origin-ID: <urn:x:1>\r\n{total}"
        );
        record(
            100 + u32::try_from(number).unwrap(),
            "continuation",
            &fields,
            "hello",
        )
    };
    let total = |total: u64| format!("WARC-Segment-Total-Length: {total}\r\n");
    let segmentation = |severity, clause| (Rule::Segmentation, severity, clause);
    let error = RuleSeverity::Error;
    let warning = RuleSeverity::Warning;
    // The other segments may lie in other files.
    assert_eq!(in_file(&first), []);
    assert_eq!(in_file(&next(3, &total(15))), []);
    assert_eq!(in_file(&(first.clone() + &next(2, &total(10)))), []);
    for (rest, expected) in [
        (next(3, &total(15)), vec![segmentation(warning, "5.20")]),
        (
            next(3, &total(9)),
            vec![segmentation(warning, "5.20"), segmentation(error, "5.22")],
        ),
        (next(2, &total(99)), vec![segmentation(error, "5.22")]),
        (
            next(2, &total(10)) + &next(3, ""),
            vec![segmentation(error, "5.22"), segmentation(error, "5.22")],
        ),
    ] {
        let found = in_file(&(first.clone() + &rest));
        assert_eq!(short(&found), expected, "{found:?}");
    }
    let twice = first.replacen("<urn:x:1>", "<urn:x:9>", 1) + &next(2, "");
    let twice = twice + &next(2, "").replacen("<urn:x:102>", "<urn:x:103>", 1);
    assert_eq!(short(&in_file(&twice)), [segmentation(error, "5.20")]);
}

/// Fails if a version line with blanks at its end passes for a right one.
#[test]
fn a_version_is_all_of_its_line() {
    let found = in_file(&GOOD.replacen("WARC/1.1\r\n", "WARC/1.1 \t\r\n", 1));
    let found: Vec<_> = found
        .iter()
        .filter(|found| found.rule != Rule::Digest)
        .cloned()
        .collect();
    assert_eq!(short(&found), [(Rule::Syntax, RuleSeverity::Error, "4")]);
}

/// Fails if a header with thousands of faults makes thousands of violations, or one violation repeats a huge value.
#[test]
fn header_of_faults_is_judged_once() {
    for (line, count) in [("(:\r\n", 100_000), ("WARC-Date: x\r\n", 50_000)] {
        let lines = line.repeat(count);
        let text = GOOD.replacen("X-Any: thing\r\n", &lines, 1);
        let id = "i".repeat(100_000);
        let text = text.replacen("urn:uuid:1", &format!("urn:{id}"), 1);
        let found = in_file(&text);
        assert!((1..8).contains(&found.len()), "{}", found.len());
        for found in found {
            let length = found.words.len() + found.record.map_or(0, |id| id.len());
            assert!(length < 1000, "{length}");
        }
    }
}
