//! ISO 28500 to the letter: the fields that a record must have and must not have, and the form of each.
//!
//! Owns the rules of the standard, each with its clause. [`validate_record`] is a pure function over the facts that reading
//! has shown of one record; [`Validator`] reads the records of a file, and compares digests, identifiers and segments.
//! ARC has no such standard: only wrong lengths are violations there.

mod digests;
mod fields;
mod file;
mod syntax;

pub use file::Validator;

use crate::defect::{Class, Defect};
use crate::warc::header::Header;
use crate::warc::record::{RecordSummary, Version, WarcType};
use fields::{Edition, FIELDS, Rules};

/// The kind of rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A mandatory field is missing.
    Mandatory,
    /// A field is present that must not be.
    Forbidden,
    /// A field is present more than once, or an identifier names more than one record.
    Repeated,
    /// A header, or a value, does not have its syntax.
    Syntax,
    /// The block is not as long as the header says, or does not end as it should.
    Length,
    /// A digest is not that of the block or payload beside it.
    Digest,
    /// Segments are not numbered or named as they should be.
    Segmentation,
    /// The file is cut or damaged.
    Damage,
    /// The file is compressed in a way that the standard advises against.
    Compression,
}

impl Rule {
    /// Returns the name of the rule in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mandatory => "mandatory",
            Self::Forbidden => "forbidden",
            Self::Repeated => "repeated",
            Self::Syntax => "syntax",
            Self::Length => "length",
            Self::Digest => "digest",
            Self::Segmentation => "segmentation",
            Self::Damage => "damage",
            Self::Compression => "compression",
        }
    }
}

/// The strictness of a rule: whether the standard says *shall* or *should*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleSeverity {
    /// A *shall* is broken: the file does not follow the standard.
    Error,
    /// A *should* is broken: the file still follows the standard.
    Warning,
}

/// A broken rule, and the record that breaks it.
///
/// ```
/// use archive_formats::warc::{WarcReader, RuleSeverity, validate_record};
///
/// let file = b"WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n";
/// let mut reader = WarcReader::new(&file[..]);
/// while let Some(record) = reader.next_record()? {
///     let kind = record.kind();
///     let version = record.version();
///     let header = record.header().clone();
///     let end = record.read_end()?;
///     // It has neither an identifier nor a date.
///     let violations = validate_record(kind, version, &header, &end);
///     assert!(violations.iter().any(|violation| violation.severity == RuleSeverity::Error));
/// }
/// # Ok::<(), archive_formats::warc::ReadRecordError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The kind of rule that is broken.
    pub rule: Rule,
    /// Whether the standard demands or advises.
    pub severity: RuleSeverity,
    /// The offset of the record in the file.
    pub offset: u64,
    /// The id of the record, as its header names it.
    pub record: Option<String>,
    /// The clause of the standard.
    pub clause: String,
    /// The description of the violation.
    pub words: String,
}

/// The author of violations, and the edition of the standard.
struct Author {
    edition: Edition,
    offset: u64,
    record: Option<String>,
}

impl Author {
    fn new(edition: Edition, header: &Header, offset: u64) -> Self {
        Self {
            edition,
            offset,
            record: header.text_of("WARC-Record-ID").map(|id| excerpt(&id)),
        }
    }

    fn violation(
        &self,
        rule: Rule,
        severity: RuleSeverity,
        clause: &str,
        words: String,
    ) -> Violation {
        Violation {
            rule,
            severity,
            offset: self.offset,
            record: self.record.clone(),
            clause: format!("ISO 28500:{}, {clause}", self.edition.year()),
            words,
        }
    }
}

/// Returns the first 200 characters of a text.
fn excerpt(text: &str) -> String {
    text.chars().take(200).collect()
}

/// A check, which collects the violations of one record.
struct Check<'a> {
    author: Author,
    kind: WarcType,
    header: &'a Header,
    end: &'a RecordSummary,
    found: Vec<Violation>,
}

/// Returns the violations of a record: of its type, version and header, and those that its end has shown.
pub fn validate_record(
    kind: WarcType,
    version: Version,
    header: &Header,
    end: &RecordSummary,
) -> Vec<Violation> {
    let Some(edition) = Edition::from_version(version) else {
        return end.defects.iter().filter_map(of_arc).collect();
    };
    let mut check = Check {
        author: Author::new(edition, header, end.offset),
        kind,
        header,
        end,
        found: Vec::new(),
    };
    check.version(version);
    check.header_syntax();
    for rules in FIELDS {
        check.field(rules);
    }
    check.segmentation();
    check.revisit();
    check.block();
    check.found
}

/// Returns the violation for a wrong length in an ARC file.
fn of_arc(defect: &Defect) -> Option<Violation> {
    let is_length = matches!(
        defect.class,
        Class::WrongLength | Class::BadLength | Class::MissingLength
    );
    is_length.then(|| Violation {
        rule: Rule::Length,
        severity: RuleSeverity::Error,
        offset: defect.offset,
        record: defect.record.clone(),
        clause: "ARC, URL record".into(),
        words: defect.words.clone(),
    })
}

/// Returns a defect that reading has met as a violation of the standard; `None` for defects that the standard allows,
/// and for those that [`validate_record`] finds itself.
pub fn of_defect(defect: &Defect) -> Option<Violation> {
    let (rule, severity, clause) = match defect.class {
        // A header beyond the limit is no fault of the file; but its record could not be checked.
        Class::Empty | Class::NoRecord | Class::Garbage | Class::HeaderTooLong => {
            (Rule::Syntax, RuleSeverity::Error, "4")
        }
        Class::HeaderCut | Class::Cut => (Rule::Damage, RuleSeverity::Error, "4"),
        Class::Deflate | Class::Crc | Class::Isize | Class::Dictionary => {
            (Rule::Damage, RuleSeverity::Error, "Annex D")
        }
        Class::Spans | Class::Shared | Class::Padding => {
            (Rule::Compression, RuleSeverity::Warning, "Annex D")
        }
        Class::WrongLength
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
        // The clause has no year: it is the same in both editions.
        clause: format!("ISO 28500, {clause}"),
        words: defect.words.clone(),
    })
}

impl Check<'_> {
    fn add(&mut self, rule: Rule, severity: RuleSeverity, clause: &str, words: String) {
        let violation = self.author.violation(rule, severity, clause, words);
        self.found.push(violation);
    }

    fn error(&mut self, rule: Rule, clause: &str, words: String) {
        self.add(rule, RuleSeverity::Error, clause, words);
    }

    fn version(&mut self, version: Version) {
        let line = self.header.first_line();
        let text = excerpt(&String::from_utf8_lossy(line));
        if version == Version::Unknown {
            self.error(Rule::Syntax, "4", format!("unknown version {text:?}"));
        } else if line.trim_ascii_end() != line {
            let words = format!("something follows the version: {text:?}");
            self.error(Rule::Syntax, "4", words);
        }
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
        let mut wrong = self
            .header
            .fields()
            .filter(|field| !syntax::is_token(field.name) || !syntax::is_text(&field.value()));
        if let Some(first) = wrong.next() {
            let name = excerpt(&String::from_utf8_lossy(first.name));
            let words = format!(
                "{name:?} is no name of a field, or its value is no UTF-8 text{}",
                more(wrong.count())
            );
            self.error(Rule::Syntax, "4", words);
        }
    }

    fn field(&mut self, rules: &Rules) {
        let edition = self.author.edition;
        let clause = match edition {
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
            .all_values(name)
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
        let is_second = edition == Edition::Second;
        let wrong = values
            .iter()
            .filter_map(|value| Some((value, rules.form.check_value(value, is_second).err()?)));
        // What a browser asks for is what replay is asked for: a crawler that writes another URI loses the page.
        let is_tolerated =
            |value: &Vec<u8>| rules.form == syntax::Form::Uri && syntax::is_browser_uri(value);
        let (tolerated, wrong): (Vec<_>, Vec<_>) =
            wrong.partition(|(value, _)| is_tolerated(value));
        for (found, severity) in [
            (wrong, RuleSeverity::Error),
            (tolerated, RuleSeverity::Warning),
        ] {
            if let Some((value, words)) = found.first() {
                let value = excerpt(&String::from_utf8_lossy(value));
                let words = format!("{name}: {words}: {value:?}{}", more(found.len() - 1));
                self.add(Rule::Syntax, severity, clause, words);
            }
        }
    }

    fn segmentation(&mut self) {
        let clause = match self.author.edition {
            Edition::First => "5.18",
            Edition::Second => "5.20",
        };
        let number = self
            .header
            .get("WARC-Segment-Number")
            .and_then(|value| crate::warc::header::read_number(&value));
        match (self.kind, number) {
            (WarcType::Continuation, Some(0 | 1)) => {
                let words = "a continuation is segment 2 or later".into();
                self.error(Rule::Segmentation, clause, words);
            }
            (kind, Some(number)) if kind != WarcType::Continuation && number != 1 => {
                let words = format!("segment {number} of a record shall be a continuation");
                self.error(Rule::Segmentation, clause, words);
            }
            (_, _) => {}
        }
    }

    fn revisit(&mut self) {
        let profile = self.header.read_uri("WARC-Profile");
        let is_identical = profile.is_some_and(|uri| uri.ends_with("/identical-payload-digest"));
        if self.kind == WarcType::Revisit
            && is_identical
            && self.header.get("WARC-Payload-Digest").is_none()
        {
            let words = "a revisit by digest shall have WARC-Payload-Digest".into();
            self.error(Rule::Mandatory, "6.7.2", words);
        }
    }

    fn block(&mut self) {
        let end = self.end;
        let is_damage = |defect: &Defect| {
            of_defect(defect).is_some_and(|violation| violation.rule == Rule::Damage)
        };
        let is_long_enough = end.announced == Some(end.block_length);
        if is_long_enough && end.defects.iter().any(is_damage) {
            // A cut file is reported as damage, by its defect.
        } else if let (false, Some(announced)) = (end.complete, end.announced) {
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
            && self.kind != WarcType::Continuation
            && self.header.get("Content-Type").is_none()
        {
            let words = "a record with a block should have Content-Type".into();
            self.add(Rule::Mandatory, RuleSeverity::Warning, "5.6", words);
        }
    }
}

/// Returns the words for further violations like the first in one header, which are counted, not listed: a header can
/// consist of them.
fn more(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!(", and {count} more like it"),
    }
}
