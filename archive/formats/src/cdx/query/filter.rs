//! Filters: conditions on a field of a capture.
//!
//! A field that a capture lacks has the value `-`, as a line of CDX would say. Expressions are those of the `regex`
//! crate: they take time in proportion to the text, and one that compiles to too much is refused.

use regex::{Regex, RegexBuilder};
use thiserror::Error;

use super::CaptureField;
use crate::cdx::Capture;

/// The longest expression, in bytes.
pub const MAX_PATTERN: usize = 2_000;

/// The most memory of a compiled expression, in bytes; its cache has as much again.
const COMPILED: usize = 1 << 20;

/// The depth to which groups may be nested.
const NESTING: u32 = 50;

/// A condition on a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// The field that is tested.
    pub field: CaptureField,
    /// Whether the test has to fail.
    pub negate: bool,
    /// The test of the value of the field.
    pub test: FilterTest,
}

/// A test of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterTest {
    /// The value contains this text.
    Contains(String),
    /// The value is this text.
    Exact(String),
    /// The value matches an expression.
    Matches(Pattern),
}

/// The part of a value that an expression has to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Anchoring {
    /// The expression matches the whole value: Java's `matches`.
    Whole,
    /// The expression matches from the beginning: Python's `match`.
    Start,
    /// The expression matches a part of the value.
    Anywhere,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Pattern {
    expression: String,
    anchoring: Anchoring,
    regex: Regex,
}

/// The reason why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidExpression {
    /// The expression is longer than [`MAX_PATTERN`].
    #[error("the expression has {0} bytes; at most {MAX_PATTERN} are allowed")]
    Long(usize),
    /// The expression would need too much memory.
    #[error("the expression is too large once compiled; use smaller repetitions")]
    Large,
    /// The text is not an expression of this syntax.
    #[error(
        "the expression cannot be read (look-around and back references are not supported): {0}"
    )]
    Syntax(String),
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// Fails if the expression is too long, too large once compiled, or has a syntax that is not supported.
    pub fn new(expression: &str, anchoring: Anchoring) -> Result<Self, InvalidExpression> {
        if expression.len() > MAX_PATTERN {
            return Err(InvalidExpression::Long(expression.len()));
        }
        // The expression is compiled alone first, so that `a)(b` is refused although it would be balanced within the
        // group that anchors it.
        let alone = compile(expression)?;
        let regex = match anchoring {
            Anchoring::Whole => compile(&format!(r"\A(?:{expression})\z"))?,
            Anchoring::Start => compile(&format!(r"\A(?:{expression})"))?,
            Anchoring::Anywhere => alone,
        };
        Ok(Self {
            expression: expression.to_owned(),
            anchoring,
            regex,
        })
    }

    /// Returns the expression as it was given.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the part of a value that the expression has to match.
    pub fn anchoring(&self) -> Anchoring {
        self.anchoring
    }

    /// Returns whether a text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.expression == other.expression && self.anchoring == other.anchoring
    }
}

impl Filter {
    /// Returns whether a capture passes the filter.
    pub fn accepts(&self, capture: &Capture) -> bool {
        let value = self.field.value(capture);
        let value = value.as_deref().filter(|v| !v.is_empty()).unwrap_or("-");
        let mut holds = self.test.holds(value);
        if self.field == CaptureField::Digest
            && let Some(bare) = value.strip_prefix("sha1:")
        {
            holds = holds || self.test.holds(bare);
        }
        holds != self.negate
    }
}

impl FilterTest {
    fn holds(&self, value: &str) -> bool {
        match self {
            Self::Contains(part) => value.contains(part.as_str()),
            Self::Exact(text) => value == text,
            Self::Matches(pattern) => pattern.is_match(value),
        }
    }
}

fn compile(expression: &str) -> Result<Regex, InvalidExpression> {
    RegexBuilder::new(expression)
        .size_limit(COMPILED)
        .dfa_size_limit(COMPILED)
        .nest_limit(NESTING)
        .build()
        .map_err(|error| {
            if matches!(error, regex::Error::CompiledTooBig(_)) {
                return InvalidExpression::Large;
            }
            // The last line has the reason; the ones before it draw the position.
            let text = error.to_string();
            let why = text.lines().last().unwrap_or_default();
            InvalidExpression::Syntax(why.trim_start_matches("error: ").to_owned())
        })
}
