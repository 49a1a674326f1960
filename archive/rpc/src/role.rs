//! Grants: a role, given to a name.
//!
//! A grant is written into a certificate as a URI, `spiffe://<environment>/<role>/<name>`, and by people as
//! `<role>/<name>`. [`Rules`](crate::Rules) decide what a role may do.

use std::fmt;
use std::str::FromStr;

pub use archive_model::role::{InvalidRole, Role};

/// A role, given to a name: `officer/anna`, `node/kb-3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    role: Role,
    name: String,
}

/// The reason why a text is not a grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGrant {
    /// The text does not have two parts.
    #[error("{0:?} is not a grant: write `role/name`")]
    Form(String),
    /// The first part of the text is no role.
    #[error(transparent)]
    Role(#[from] InvalidRole),
    /// The second part of the text is no name.
    #[error(
        "{0:?} is no name in a certificate: 1-64 of a-z, 0-9, `.`, `_`, `-`, beginning with a letter or digit, are"
    )]
    Name(String),
}

impl Grant {
    /// Accepts names of 1–64 characters of `a–z 0–9 . _ -` that begin with a letter or digit. Small letters only, so
    /// that one person cannot pass for two.
    ///
    /// # Errors
    ///
    /// [`InvalidGrant`] if the name is not allowed.
    pub fn new(role: Role, name: &str) -> Result<Self, InvalidGrant> {
        let safe = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let begins = name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric());
        if begins && name.len() <= 64 && name.bytes().all(safe) {
            Ok(Self {
                role,
                name: name.to_owned(),
            })
        } else {
            Err(InvalidGrant::Name(shorten_text(name)))
        }
    }

    /// Returns the role of the grant.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the name that has the role.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the grant in the form that it has in a certificate of `environment`.
    pub fn uri(&self, environment: &str) -> String {
        format!("{SCHEME}{environment}/{self}")
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.role, self.name)
    }
}

impl FromStr for Grant {
    type Err = InvalidGrant;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (role, name) = text
            .split_once('/')
            .ok_or_else(|| InvalidGrant::Form(shorten_text(text)))?;
        Self::new(role.parse()?, name)
    }
}

/// The beginning of every URI that can be a grant.
pub(crate) const SCHEME: &str = "spiffe://";

/// Returns whether `text` may name an environment: 1–128 characters of `a–z 0–9 . -`, a letter or digit at both ends.
pub(crate) fn is_environment(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// Returns as much of a text from outside as an error repeats.
pub(crate) fn shorten_text(text: &str) -> String {
    text.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a grant is read as another one than was written, or its name may be a path, an option or of any length.
    #[test]
    fn a_grant_is_read_as_it_is_written() {
        for good in [
            "officer/anna",
            "node/kb-3",
            "harvester/crawl.1_b",
            "viewer/0",
        ] {
            assert_eq!(good.parse::<Grant>().unwrap().to_string(), good);
        }
        let longest = "x".repeat(64);
        assert!(Grant::new(Role::Node, &longest).is_ok());
        let long = "x".repeat(65);
        for bad in [
            "",
            "Anna",
            "..",
            ".a",
            "-a",
            "a b",
            "a/b",
            "a\n",
            "é",
            long.as_str(),
        ] {
            assert!(
                matches!(Grant::new(Role::Officer, bad), Err(InvalidGrant::Name(_))),
                "{bad:?}"
            );
        }
        assert!(matches!(
            "officer".parse::<Grant>(),
            Err(InvalidGrant::Form(_))
        ));
        assert!(matches!(
            "king/anna".parse::<Grant>(),
            Err(InvalidGrant::Role(_))
        ));
    }

    /// Fails if an environment may have a name that no host can have: with a capital or a slash, or with a dot at its
    /// end.
    #[test]
    fn environments_are_host_like() {
        for (text, expected) in [
            ("archive.example", true),
            ("a", true),
            ("", false),
            ("-a", false),
            ("a.", false),
            ("A", false),
            ("a/b", false),
        ] {
            assert_eq!(is_environment(text), expected, "{text:?}");
        }
    }
}
