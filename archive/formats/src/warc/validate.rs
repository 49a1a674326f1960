//! ISO 28500 to the letter: what a record must have, must not have, and how it must be written.
//!
//! Owns the rules of the standard, each with its clause. A pure function over what reading has shown. Reads no blocks and
//! compares no digests; ARC has no such standard, and is never wrong here.

mod fields;
mod syntax;

use crate::defect::{Class, Defect};
use crate::warc::header::Header;
use crate::warc::record::{End, Kind, Version};
use fields::{Edition, FIELDS, Rules};

/// The kind of rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A field that has to be there is not.
    Mandatory,
    /// A field is there that must not be.
    Forbidden,
    /// A field is there more than once.
    Repeated,
    /// A header, or a value, that is not written as it should be.
    Syntax,
    /// The block is not as long as the header says, or does not end as it should.
    Length,
    /// Segments that are not numbered or named as they should be.
    Segmentation,
    /// The file is cut or damaged.
    Damage,
    /// Compressed in a way that the standard advises against.
    Compression,
}

impl Rule {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mandatory => "mandatory",
            Self::Forbidden => "forbidden",
            Self::Repeated => "repeated",
            Self::Syntax => "syntax",
            Self::Length => "length",
            Self::Segmentation => "segmentation",
            Self::Damage => "damage",
            Self::Compression => "compression",
        }
    }
}

/// Whether the standard says *shall* or *should*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It shall be otherwise: the file does not follow the standard.
    Error,
    /// It should be otherwise: the file follows the standard.
    Warning,
}

/// One rule that is broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The kind of rule.
    pub rule: Rule,
    /// Whether the standard demands or advises.
    pub severity: Severity,
    /// Where the record begins in the file.
    pub offset: u64,
    /// The record, as its header names it.
    pub record: Option<String>,
    /// Where the standard says so.
    pub clause: String,
    /// What was found.
    pub words: String,
}

/// Collects what is wrong with one record.
struct Check<'a> {
    edition: Edition,
    kind: Kind,
    header: &'a Header,
    end: &'a End,
    found: Vec<Violation>,
}

/// What is wrong with a record: its type, version and header, and what its end has shown.
pub fn validate(kind: Kind, version: Version, header: &Header, end: &End) -> Vec<Violation> {
    let edition = match version {
        Version::Arc1 | Version::Arc2 => return Vec::new(),
        Version::Warc0_17 | Version::Warc0_18 | Version::Warc1_0 => Edition::First,
        Version::Warc1_1 | Version::Unknown => Edition::Second,
    };
    let mut check = Check {
        edition,
        kind,
        header,
        end,
        found: Vec::new(),
    };
    if version == Version::Unknown {
        let line = String::from_utf8_lossy(header.first_line()).into_owned();
        check.error(Rule::Syntax, "4", format!("unknown version {line:?}"));
    }
    check.header_syntax();
    for rules in FIELDS {
        check.field(rules);
    }
    check.segmentation();
    check.revisit();
    check.block();
    check.found
}

/// A defect that reading has met, as a violation of the standard; nothing for what the standard allows, and for what
/// [`validate`] finds itself.
pub fn of_defect(defect: &Defect) -> Option<Violation> {
    let (rule, severity, clause) = match defect.class {
        Class::Empty | Class::NoRecord | Class::Garbage => (Rule::Syntax, Severity::Error, "4"),
        Class::HeaderCut | Class::Cut => (Rule::Damage, Severity::Error, "4"),
        Class::Deflate | Class::Crc | Class::Isize | Class::Dictionary => {
            (Rule::Damage, Severity::Error, "Annex D")
        }
        Class::Spans | Class::Shared | Class::Padding => {
            (Rule::Compression, Severity::Warning, "Annex D")
        }
        Class::WrongLength => (Rule::Length, Severity::Error, "5.3"),
        Class::HeaderTooLong
        | Class::Version
        | Class::UnknownType
        | Class::MissingType
        | Class::Field
        | Class::LineEnding
        | Class::MissingLength
        | Class::BadLength
        | Class::Trailer
        | Class::ArcLine => return None,
    };
    Some(Violation {
        rule,
        severity,
        offset: defect.offset,
        record: defect.record.clone(),
        clause: format!("ISO 28500:2017, {clause}"),
        words: defect.words.clone(),
    })
}

impl Check<'_> {
    fn add(&mut self, rule: Rule, severity: Severity, clause: &str, words: String) {
        let year = match self.edition {
            Edition::First => 2009,
            Edition::Second => 2017,
        };
        self.found.push(Violation {
            rule,
            severity,
            offset: self.end.offset,
            record: self.header.text_of("WARC-Record-ID").map(String::from),
            clause: format!("ISO 28500:{year}, {clause}"),
            words,
        });
    }

    fn error(&mut self, rule: Rule, clause: &str, words: String) {
        self.add(rule, Severity::Error, clause, words);
    }

    fn header_syntax(&mut self) {
        let irregular = self.header.irregular();
        if irregular.no_field > 0 {
            let words = format!("{} header lines are no fields", irregular.no_field);
            self.error(Rule::Syntax, "4", words);
        }
        if irregular.bare_line_ends > 0 {
            let words = format!("{} header lines end without CR", irregular.bare_line_ends);
            self.error(Rule::Syntax, "4", words);
        }
        let wrong: Vec<String> = self
            .header
            .fields()
            .filter(|field| !syntax::is_token(field.name) || !syntax::is_text(&field.value()))
            .map(|field| String::from_utf8_lossy(field.name).into_owned())
            .collect();
        for name in wrong {
            let words = format!("{name:?} is no name of a field, or its value is no UTF-8 text");
            self.error(Rule::Syntax, "4", words);
        }
    }

    fn field(&mut self, rules: &Rules) {
        let clause = match self.edition {
            Edition::First => match rules.clauses.0 {
                Some(clause) => clause,
                // A field that this edition does not know is ignored.
                None => return,
            },
            Edition::Second => rules.clauses.1,
        };
        let name = rules.name;
        let values: Vec<Vec<u8>> = self
            .header
            .all(name)
            .map(std::borrow::Cow::into_owned)
            .collect();
        if values.is_empty() && rules.mandatory.contains(&self.kind) {
            let words = format!("a {} record shall have {name}", self.kind);
            self.error(Rule::Mandatory, clause, words);
        }
        if !values.is_empty() && rules.forbidden.contains(&self.kind) {
            let words = format!("a {} record shall not have {name}", self.kind);
            self.error(Rule::Forbidden, clause, words);
        }
        if values.len() > 1 && name != "WARC-Concurrent-To" {
            let words = format!("{name} is there {} times", values.len());
            self.error(Rule::Repeated, "5.1", words);
        }
        let is_second = self.edition == Edition::Second;
        for value in values {
            if let Err(words) = rules.form.check(&value, is_second) {
                let shown =
                    String::from_utf8_lossy(value.get(..200).unwrap_or(&value)).into_owned();
                self.error(Rule::Syntax, clause, format!("{name}: {words}: {shown:?}"));
            }
        }
    }

    fn segmentation(&mut self) {
        let clause = match self.edition {
            Edition::First => "5.18",
            Edition::Second => "5.20",
        };
        let number = self
            .header
            .get("WARC-Segment-Number")
            .and_then(|value| crate::warc::header::number(&value));
        match (self.kind, number) {
            (Kind::Continuation, Some(0 | 1)) => {
                let words = "a continuation is segment 2 or later".into();
                self.error(Rule::Segmentation, clause, words);
            }
            (kind, Some(number)) if kind != Kind::Continuation && number != 1 => {
                let words = format!("segment {number} of a record shall be a continuation");
                self.error(Rule::Segmentation, clause, words);
            }
            (_, _) => {}
        }
    }

    fn revisit(&mut self) {
        let profile = self.header.uri("WARC-Profile");
        let is_identical = profile.is_some_and(|uri| uri.ends_with("/identical-payload-digest"));
        if self.kind == Kind::Revisit
            && is_identical
            && self.header.get("WARC-Payload-Digest").is_none()
        {
            let words = "a revisit by digest shall have WARC-Payload-Digest".into();
            self.error(Rule::Mandatory, "6.7.2", words);
        }
    }

    fn block(&mut self) {
        let end = self.end;
        if let (false, Some(announced)) = (end.complete, end.announced) {
            let words = format!(
                "Content-Length is {announced}, the block has {} bytes or does not end there",
                end.block_length
            );
            self.error(Rule::Length, "5.3", words);
        } else if end.complete && !end.trailer.is_regular() {
            let words = "the block is not followed by CR LF CR LF and nothing else".into();
            self.error(Rule::Length, "4", words);
        }
        if end.block_length > 0
            && self.kind != Kind::Continuation
            && self.header.get("Content-Type").is_none()
        {
            let words = "a record with a block should have Content-Type".into();
            self.add(Rule::Mandatory, Severity::Warning, "5.6", words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warc::Reader;

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
}
