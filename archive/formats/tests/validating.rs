//! What follows the standard is not flagged; what does not is, with its clause.

use archive_formats::defect::{Class, Defect};
use archive_formats::warc::validate::of_defect;
use archive_formats::warc::{Reader, Rule, validate};

const GOOD: &str = "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\n\
    WARC-Date: 2026-11-21T19:14:09Z\r\nWARC-Target-URI: http://example.org/?a=%20b\r\n\
    WARC-Concurrent-To: <urn:uuid:2>\r\nWARC-Concurrent-To: <urn:uuid:3>\r\n\
    WARC-IP-Address: ::1\r\nWARC-Block-Digest: sha1:ABC\r\nX-Any: thing\r\nX-Any: thing\r\n\
    Content-Type: application/http; msgtype=response\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n";

fn found(text: &str) -> Vec<(Rule, String)> {
    let mut reader = Reader::new(text.as_bytes());
    let record = reader.next_record().unwrap().unwrap();
    let (kind, version, header) = (record.kind(), record.version(), record.header().clone());
    let end = record.end().unwrap();
    let found = validate(kind, version, &header, &end);
    found
        .into_iter()
        .map(|violation| (violation.rule, violation.clause))
        .collect()
}

#[test]
fn what_is_right_is_not_flagged() {
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

#[test]
fn what_is_wrong_is_flagged_with_its_clause() {
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

#[test]
fn nothing_that_was_passed_over_is_passed_over_in_silence() {
    // What `validate` sees itself, in records that it is given.
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
