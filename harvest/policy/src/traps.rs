//! Crawler traps: regular expressions for URIs that shall not be fetched.
//!
//! Owns what such an expression may be and how a list of them is refused. A URI is a trap if all of it matches one of
//! them, as in Heritrix. Matching takes time linear in the length of the URI, whatever the expressions are: those that
//! cannot be matched so (look-around, back-references) are refused by their line.

use std::fmt;
use std::str::FromStr;

use regex::{RegexSet, RegexSetBuilder};

/// The largest compiled list, in bytes.
const LARGEST: usize = 1 << 28;

/// The longest expression, in characters (as in NetarchiveSuite).
const LONGEST: usize = 1000;

/// An expression of which all of a URI has to match: a regular expression without look-around and back-references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapExpression(String);

/// The reason why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrapExpression {
    /// The expression breaks the syntax.
    #[error("`{text}` is no regular expression that can be matched in linear time: {why}")]
    Syntax {
        /// The text of the expression.
        text: String,
        /// The mistake in the syntax.
        why: String,
    },
    /// The expression is longer than it may be: the number of its characters.
    #[error("an expression of {0} characters is too long, at most {LONGEST} are allowed")]
    Long(usize),
    /// The expression is empty, or has more than one line.
    #[error("an expression is one line with something in it")]
    Lines,
}

impl FromStr for TrapExpression {
    type Err = InvalidTrapExpression;

    fn from_str(text: &str) -> Result<Self, InvalidTrapExpression> {
        let text = text.trim();
        let length = text.chars().count();
        if length > LONGEST {
            return Err(InvalidTrapExpression::Long(length));
        }
        if text.is_empty() || text.contains(['\n', '\r']) {
            return Err(InvalidTrapExpression::Lines);
        }
        // By itself: between brackets `a)|(b` would be an expression too.
        match regex_syntax::parse(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(InvalidTrapExpression::Syntax {
                text: text.to_owned(),
                why: reason(&error),
            }),
        }
    }
}

impl fmt::Display for TrapExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A list of crawler traps.
#[derive(Clone, Debug, Default)]
pub struct TrapList {
    set: RegexSet,
}

/// The reason why a list of crawler traps is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrap {
    /// A line is no expression.
    #[error("line {line}: {why}")]
    Expression {
        /// The number of the line, from 1.
        line: usize,
        /// The mistake in the line.
        why: InvalidTrapExpression,
    },
    /// All expressions together need too much memory.
    #[error("the expressions need more than {} MiB when they are compiled; repeat less in them", LARGEST >> 20)]
    Large,
}

impl TrapList {
    /// Reads expressions, one a line. Blanks around them and empty lines are left out.
    ///
    /// # Errors
    ///
    /// [`InvalidTrap`] names the first line that cannot be taken. Nothing is taken of a list with such a line.
    pub fn parse(text: &str) -> Result<Self, InvalidTrap> {
        let mut expressions: Vec<TrapExpression> = Vec::new();
        for (trap, line) in text.lines().zip(1..) {
            if !trap.trim().is_empty() {
                let expression = trap.parse();
                expressions.push(expression.map_err(|why| InvalidTrap::Expression { line, why })?);
            }
        }
        Self::new(&expressions)
    }

    /// Makes a list of expressions.
    ///
    /// # Errors
    ///
    /// [`InvalidTrap::Large`].
    pub fn new(expressions: &[TrapExpression]) -> Result<Self, InvalidTrap> {
        let whole = expressions
            .iter()
            .map(|TrapExpression(trap)| format!("^(?:{trap})$"));
        let set = RegexSetBuilder::new(whole).size_limit(LARGEST).build();
        // Each was parsed before, so that only their size is left to be refused.
        set.map_or(Err(InvalidTrap::Large), |set| Ok(Self { set }))
    }

    /// Returns whether a URI is a trap.
    pub fn catches_uri(&self, uri: &str) -> bool {
        self.set.is_match(uri)
    }

    /// Returns the number of expressions.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Returns whether there is no expression.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}

/// Returns the reason without the picture of the expression, in one line.
fn reason(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a part of a URI is enough, or an expression is matched with its neighbour.
    #[test]
    fn whole_uri_has_to_match() {
        let traps = TrapList::parse("http://a\\.dk/cal.*\n\n  .*\\?sid=\\d+  \nx|y\n").unwrap();
        assert_eq!(traps.len(), 3);
        for (uri, caught) in [
            ("http://a.dk/calendar/2030", true),
            ("https://a.dk/calendar/2030", false),
            ("http://b.dk/?sid=17", true),
            ("http://b.dk/?sid=17&x", false),
            ("x", true),
            ("xy", false),
        ] {
            assert_eq!(traps.catches_uri(uri), caught, "{uri}");
        }
        assert!(!TrapList::default().catches_uri(""));
    }

    /// Fails if a bad line is passed by, or its number is wrong.
    #[test]
    fn bad_expression_is_refused_by_its_line() {
        let error = |text: &str| TrapList::parse(text).unwrap_err();
        assert_eq!(
            error("fine\n\n(open").to_string(),
            "line 3: `(open` is no regular expression that can be matched in linear time: unclosed group"
        );
        for bad in [
            "a)|(b",
            "(?=a)",
            r".*(/.*/)\1",
            "*",
            "[a",
            "a{9999999}b{2,1}",
        ] {
            assert!(
                matches!(
                    error(bad),
                    InvalidTrap::Expression {
                        line: 1,
                        why: InvalidTrapExpression::Syntax { .. }
                    }
                ),
                "{bad}"
            );
        }
        let long = "a".repeat(LONGEST + 1);
        assert_eq!(
            error(&long),
            InvalidTrap::Expression {
                line: 1,
                why: InvalidTrapExpression::Long(1001)
            }
        );
        let large = "\\w{400}{400}\n".repeat(3);
        assert!(matches!(
            error(&large),
            InvalidTrap::Large | InvalidTrap::Expression { .. }
        ));
    }

    /// Fails if one expression is taken for several or for nothing, or is not printed as it was read.
    #[test]
    fn expression_is_one_line() {
        for text in ["", "  ", "a\nb", "a\rb"] {
            assert_eq!(
                text.parse::<TrapExpression>(),
                Err(InvalidTrapExpression::Lines)
            );
        }
        assert_eq!(
            " a.*b ".parse::<TrapExpression>().unwrap().to_string(),
            "a.*b"
        );
    }
}
