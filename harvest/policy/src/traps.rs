//! Crawler traps: regular expressions for URIs that shall not be fetched.
//!
//! Owns what such an expression may be and how a list of them is refused. A URI is a trap if all of it matches one of them,
//! as in Heritrix. Matching takes time linear in the length of the URI, whatever the expressions are: those that cannot be
//! matched so (look-around, back-references) are refused by their line.

use regex::{RegexSet, RegexSetBuilder};

/// The largest compiled list, in bytes.
const LARGEST: usize = 1 << 28;

/// The longest expression, in characters (as in NetarchiveSuite).
const LONGEST: usize = 1000;

/// A list of crawler traps.
#[derive(Clone, Debug, Default)]
pub struct Traps {
    set: RegexSet,
}

/// Why a list of crawler traps is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrap {
    /// A line is no expression.
    #[error(
        "line {line}: `{text}` is no regular expression that can be matched in linear time: {why}"
    )]
    Syntax {
        /// The number of the line, from 1.
        line: usize,
        /// The line.
        text: String,
        /// How it breaks the syntax.
        why: String,
    },
    /// A line is longer than an expression may be.
    #[error("line {line} has {length} characters, at most {LONGEST} are allowed")]
    Long {
        /// The number of the line, from 1.
        line: usize,
        /// Its length in characters.
        length: usize,
    },
    /// All of them together need too much memory.
    #[error("the expressions need more than {} MiB when they are compiled; repeat less in them", LARGEST >> 20)]
    Large,
}

impl Traps {
    /// Reads expressions, one a line. Blanks around them and empty lines are left out.
    ///
    /// # Errors
    ///
    /// [`InvalidTrap`] names the first line that cannot be taken. Nothing is taken of a list with such a line.
    pub fn parse(text: &str) -> Result<Self, InvalidTrap> {
        let mut expressions = Vec::new();
        for (index, trap) in text.lines().map(str::trim).enumerate() {
            let line = index + 1;
            let length = trap.chars().count();
            if length > LONGEST {
                return Err(InvalidTrap::Long { line, length });
            }
            if trap.is_empty() {
                continue;
            }
            // By itself: between brackets `a)|(b` would be an expression too.
            if let Err(error) = regex_syntax::parse(trap) {
                return Err(InvalidTrap::Syntax {
                    line,
                    text: trap.to_owned(),
                    why: reason(&error),
                });
            }
            expressions.push(format!("^(?:{trap})$"));
        }
        let set = RegexSetBuilder::new(expressions)
            .size_limit(LARGEST)
            .build();
        // Each was parsed before, so that only their size is left to be refused.
        set.map_or(Err(InvalidTrap::Large), |set| Ok(Self { set }))
    }

    /// Whether a URI is a trap.
    pub fn catch(&self, uri: &str) -> bool {
        self.set.is_match(uri)
    }

    /// The number of expressions.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether there is no expression.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}

/// The reason without the picture of the expression, in one line.
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
        let traps = Traps::parse("http://a\\.dk/cal.*\n\n  .*\\?sid=\\d+  \nx|y\n").unwrap();
        assert_eq!(traps.len(), 3);
        for (uri, caught) in [
            ("http://a.dk/calendar/2030", true),
            ("https://a.dk/calendar/2030", false),
            ("http://b.dk/?sid=17", true),
            ("http://b.dk/?sid=17&x", false),
            ("x", true),
            ("xy", false),
        ] {
            assert_eq!(traps.catch(uri), caught, "{uri}");
        }
        assert!(!Traps::default().catch(""));
    }

    /// Fails if a bad line is passed by, or its number is wrong.
    #[test]
    fn bad_expression_is_refused_by_its_line() {
        let error = |text: &str| Traps::parse(text).unwrap_err();
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
                matches!(error(bad), InvalidTrap::Syntax { line: 1, .. }),
                "{bad}"
            );
        }
        let long = "a".repeat(LONGEST + 1);
        assert_eq!(
            error(&long),
            InvalidTrap::Long {
                line: 1,
                length: 1001
            }
        );
        let large = "\\w{400}{400}\n".repeat(3);
        assert!(matches!(
            error(&large),
            InvalidTrap::Large | InvalidTrap::Syntax { .. }
        ));
    }
}
