//! Conditions on the fields of captures.

use std::borrow::Cow;

use archive_formats::cdx::Capture;
use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// The longest regular expression, in bytes.
const LONGEST: usize = 4096;

/// The most memory that a compiled expression takes, in bytes.
const LARGEST: usize = 1 << 20;

/// A field of a capture. A field without a value reads `-`, as in a CDX line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// The key of the URL.
    Key,
    /// The time, with 14 or 17 digits.
    Timestamp,
    /// The URL.
    Original,
    /// The media type.
    Mime,
    /// The status.
    Status,
    /// The digest, with its label if it has one.
    Digest,
    /// The target of a redirect.
    Redirect,
    /// Robot flags.
    Robots,
    /// The length of the record.
    Length,
    /// The offset of the record.
    Offset,
    /// The file.
    File,
    /// The length of the record that a revisit refers to.
    OriginalLength,
    /// Its offset.
    OriginalOffset,
    /// Its file.
    OriginalFile,
    /// A field of any other name.
    Extra(String),
}

impl Field {
    /// The field of a name, in the spellings of the Internet Archive, of pywb and CDXJ, and of OutbackCDX.
    pub fn from_name(name: &str) -> Self {
        match name {
            "urlkey" => Self::Key,
            "timestamp" => Self::Timestamp,
            "original" | "url" => Self::Original,
            "mimetype" | "mime" => Self::Mime,
            "statuscode" | "status" => Self::Status,
            "digest" => Self::Digest,
            "redirect" | "redirecturl" => Self::Redirect,
            "robotflags" | "robots" => Self::Robots,
            "length" => Self::Length,
            "offset" => Self::Offset,
            "filename" | "file" => Self::File,
            "orig.length" | "originallength" | "originalLength" => Self::OriginalLength,
            "orig.offset" | "originaloffset" | "originalOffset" => Self::OriginalOffset,
            "orig.filename" | "originalfilename" | "originalFilename" => Self::OriginalFile,
            other => Self::Extra(other.to_owned()),
        }
    }

    /// The value of the field as text.
    pub fn text<'a>(&self, capture: &'a Capture) -> Cow<'a, str> {
        let number = |n: Option<u64>| n.map(|n| Cow::Owned(n.to_string()));
        let text = |t: &'a Option<String>| t.as_deref().map(Cow::Borrowed);
        let original = capture.original_record.as_ref();
        let value = match self {
            Self::Key => Some(Cow::Borrowed(capture.key.as_str())),
            Self::Timestamp => Some(Cow::Owned(capture.timestamp.to_string())),
            Self::Original => text(&capture.original),
            Self::Mime => text(&capture.mime),
            Self::Status => number(capture.status.map(u64::from)),
            Self::Digest => text(&capture.digest),
            Self::Redirect => text(&capture.redirect),
            Self::Robots => text(&capture.robots),
            Self::Length => number(capture.length),
            Self::Offset => number(capture.offset),
            Self::File => text(&capture.file),
            Self::OriginalLength => number(original.and_then(|o| o.length)),
            Self::OriginalOffset => number(original.and_then(|o| o.offset)),
            Self::OriginalFile => original.and_then(|o| text(&o.file)),
            Self::Extra(name) => capture.extra(name).map(Cow::Borrowed),
        };
        value.unwrap_or(Cow::Borrowed("-"))
    }
}

/// A condition on one field of a capture.
#[derive(Clone, Debug)]
pub struct Filter {
    field: Field,
    test: Test,
    is_negated: bool,
}

#[derive(Clone, Debug)]
enum Test {
    Contains(String),
    Equals(String),
    Matches(Regex),
}

/// A regular expression that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidFilter {
    /// It is too long.
    #[error("a regular expression of {0} bytes is too long; {LONGEST} are allowed")]
    TooLong(usize),
    /// Its compiled form is too large: it repeats too much.
    #[error("the regular expression {0:?} is too large; repeat less in it")]
    TooLarge(String),
    /// It is wrong.
    #[error("{expression:?} is no regular expression: {why}")]
    Syntax {
        /// The expression.
        expression: String,
        /// The reason.
        why: String,
    },
}

impl Filter {
    /// Holds if the field contains a text.
    pub fn contains(field: Field, text: impl Into<String>) -> Self {
        Self::new(field, Test::Contains(text.into()))
    }

    /// Holds if the field is a text.
    pub fn equals(field: Field, text: impl Into<String>) -> Self {
        Self::new(field, Test::Equals(text.into()))
    }

    /// Holds if an expression matches all of the field, as the Internet Archive and OutbackCDX have it.
    ///
    /// # Errors
    ///
    /// [`InvalidFilter`] if the expression is wrong or too large. Matching takes time in proportion to the field.
    pub fn matches(field: Field, expression: &str) -> Result<Self, InvalidFilter> {
        Self::regex(field, expression, |e| format!("^(?:{e})$"))
    }

    /// Holds if an expression matches the beginning of the field, as pywb has it.
    ///
    /// # Errors
    ///
    /// As [`Filter::matches`].
    pub fn matches_start(field: Field, expression: &str) -> Result<Self, InvalidFilter> {
        Self::regex(field, expression, |e| format!("^(?:{e})"))
    }

    /// Holds where it did not.
    #[must_use]
    pub const fn negated(mut self) -> Self {
        self.is_negated = !self.is_negated;
        self
    }

    /// Whether it holds for a capture.
    pub fn holds(&self, capture: &Capture) -> bool {
        let value = self.field.text(capture);
        let holds = match &self.test {
            Test::Contains(text) => value.contains(text.as_str()),
            Test::Equals(text) => value == *text,
            Test::Matches(expression) => expression.is_match(&value),
        };
        holds != self.is_negated
    }

    const fn new(field: Field, test: Test) -> Self {
        Self {
            field,
            test,
            is_negated: false,
        }
    }

    fn regex(
        field: Field,
        expression: &str,
        anchored: impl Fn(&str) -> String,
    ) -> Result<Self, InvalidFilter> {
        if expression.len() > LONGEST {
            return Err(InvalidFilter::TooLong(expression.len()));
        }
        let compile = |expression: &str| {
            RegexBuilder::new(expression)
                .size_limit(LARGEST)
                .dfa_size_limit(LARGEST)
                .nest_limit(64)
                .build()
        };
        // An expression that is whole only between our brackets is none.
        let compiled = compile(expression).and_then(|_| compile(&anchored(expression)));
        match compiled {
            Ok(regex) => Ok(Self::new(field, Test::Matches(regex))),
            Err(regex::Error::CompiledTooBig(_)) => {
                Err(InvalidFilter::TooLarge(expression.to_owned()))
            }
            Err(error) => Err(InvalidFilter::Syntax {
                expression: expression.to_owned(),
                why: error.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture() -> Capture {
        let mut capture = Capture::new("dk,a)/b", "20200101000000".parse().unwrap());
        capture.original = Some("http://a.dk/B".into());
        capture.mime = Some("text/html".into());
        capture.status = Some(200);
        capture.extra.push(("method".into(), "POST".into()));
        capture
    }

    /// Fails if a condition holds where it should not, or a missing value is not `-`.
    #[test]
    fn conditions_hold_as_the_field_means() {
        let check = |filter: Filter, expected: bool| {
            assert_eq!(filter.holds(&capture()), expected, "{filter:?}");
            assert_eq!(filter.negated().holds(&capture()), !expected);
        };
        let regex = |name, expression| Filter::matches(Field::from_name(name), expression);
        let start = |name, expression| Filter::matches_start(Field::from_name(name), expression);
        check(Filter::contains(Field::Mime, "html"), true);
        check(Filter::contains(Field::Mime, "HTML"), false);
        check(Filter::equals(Field::from_name("statuscode"), "200"), true);
        check(Filter::equals(Field::from_name("status"), "20"), false);
        check(Filter::equals(Field::Digest, "-"), true);
        check(Filter::equals(Field::from_name("method"), "POST"), true);
        check(Filter::equals(Field::from_name("nothing"), "-"), true);
        check(regex("status", "2..").unwrap(), true);
        check(regex("status", "2.").unwrap(), false);
        check(regex("status", "3..|200").unwrap(), true);
        check(start("status", "2.").unwrap(), true);
        check(start("status", "00").unwrap(), false);
        check(regex("url", "(?i)HTTP://A.DK/.*").unwrap(), true);
        check(regex("timestamp", "2020.*").unwrap(), true);
        check(regex("urlkey", r"dk,a\)/b").unwrap(), true);
    }

    /// Fails if an expression takes memory without a limit, or a wrong one panics or is taken.
    #[test]
    fn wrong_and_huge_expressions_are_refused() {
        let refusal = |expression: &str| Filter::matches(Field::Mime, expression).unwrap_err();
        assert_eq!(
            refusal(&"a".repeat(5000)),
            InvalidFilter::TooLong(5000),
            "the length is told"
        );
        assert!(matches!(
            refusal(r"(\pL{100}){100}{100}"),
            InvalidFilter::TooLarge(_)
        ));
        for wrong in ["(", "a)|(b", "[", "*", r"(a)\1", "a{2,1}"] {
            assert!(
                matches!(refusal(wrong), InvalidFilter::Syntax { .. }),
                "{wrong}"
            );
        }
        let nested = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
        assert!(matches!(refusal(&nested), InvalidFilter::Syntax { .. }));
    }

    /// Fails if an expression is matched by trying all ways: this one has 2^5000.
    #[test]
    fn exploding_expression_takes_linear_time() {
        let filter = Filter::matches(Field::Original, "(a+)+b").unwrap();
        let mut capture = capture();
        capture.original = Some("a".repeat(5000));
        assert!(!filter.holds(&capture));
    }
}
