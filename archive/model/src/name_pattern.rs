//! A pattern of names: a regular expression that a whole name must match.
//!
//! Owns which expressions are accepted, how long they may be, and how they are refused: the same at every door.

use std::fmt;
use std::str::FromStr;

use regex::bytes::{Regex, RegexBuilder};

/// The largest compiled expression, in bytes.
const LARGEST: usize = 1 << 20;

/// A regular expression (of the crate `regex`) that a whole text must match. The empty expression matches every text.
///
/// ```
/// use archive_model::NamePattern;
/// let pattern: NamePattern = "12-.*|b".parse()?;
/// assert!(pattern.matches("12-34.warc") && !pattern.matches("abc"));
/// # Ok::<(), archive_model::InvalidPattern>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct NamePattern {
    text: String,
    /// The compiled expression, anchored at both ends; absent: every text matches.
    whole: Option<Regex>,
}

/// The reason why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// The expression is too long to be read.
    #[error("the expression has {0} bytes, at most {most} are allowed; write a shorter one", most = NamePattern::LONGEST)]
    Long(usize),
    /// The expression needs too much memory when it is compiled.
    #[error("the expression needs more than 1 MiB when it is compiled; repeat less in it")]
    Large,
    /// The text is no regular expression.
    #[error("{0}")]
    Syntax(String),
}

impl NamePattern {
    /// The longest expression, in bytes.
    pub const LONGEST: usize = 16 << 10;

    /// Reads an expression.
    ///
    /// # Errors
    /// [`InvalidPattern`]: it is too long, too large when compiled, or not an expression by itself. `a)|(b` is refused,
    /// although it would be one between brackets.
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        if text.len() > Self::LONGEST {
            return Err(InvalidPattern::Long(text.len()));
        }
        if text.is_empty() {
            return Ok(Self::default());
        }
        let build = |text: &str| RegexBuilder::new(text).size_limit(LARGEST).build();
        let whole = build(text).and_then(|_alone| build(&format!("^(?:{text})$")));
        Ok(Self {
            text: text.to_owned(),
            whole: Some(whole.map_err(InvalidPattern::from)?),
        })
    }

    /// Returns whether the expression matches the whole text.
    pub fn matches(&self, text: impl AsRef<[u8]>) -> bool {
        self.whole
            .as_ref()
            .is_none_or(|whole| whole.is_match(text.as_ref()))
    }

    /// Returns whether the expression is empty, so that every text matches.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the expression as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<regex::Error> for InvalidPattern {
    fn from(error: regex::Error) -> Self {
        if matches!(error, regex::Error::CompiledTooBig(_)) {
            Self::Large
        } else {
            Self::Syntax(error.to_string())
        }
    }
}

impl FromStr for NamePattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        Self::parse(text)
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a part of a name is enough, or an anchor of the expression reaches around the whole.
    #[test]
    fn pattern_matches_whole_names_only() {
        let matches = |pattern: &str, name: &str| {
            let pattern = NamePattern::parse(pattern).unwrap();
            pattern.matches(name)
        };
        assert!(matches("", "a"));
        assert!(matches("a|ab", "ab") && !matches("a|ab", "abc") && !matches("b", "ab"));
        assert!(matches(r"x-\d+\.warc(\.gz)?", "x-12.warc.gz"));
        assert!(matches("(?i)A.", "aé"), "a character, not a byte");
        assert!(!matches(r"(?m)a$|b", "a\u{2009}b") && !matches(r"(?m)a$", "a\nb"));
    }

    /// Fails if what is no expression becomes one by what is put around it, or a huge one is compiled.
    #[test]
    fn invalid_patterns_are_refused() {
        for bad in ["(", "a)|(b", "(?x) a # b"] {
            let refused = NamePattern::parse(bad);
            assert!(matches!(refused, Err(InvalidPattern::Syntax(_))), "{bad}");
        }
        assert_eq!(
            NamePattern::parse("a{1000}{1000}"),
            Err(InvalidPattern::Large)
        );
        let long = "a".repeat(NamePattern::LONGEST + 1);
        let refused = NamePattern::parse(&long).unwrap_err();
        assert_eq!(refused, InvalidPattern::Long(long.len()));
        assert!(refused.to_string().contains("16384"), "{refused}");
        assert!(NamePattern::parse(&long[1..]).is_ok());
    }
}
