//! What a certificate may allow its holder to be: roles, and grants of a role to a name.
//!
//! A grant is written into a certificate as a URI, `spiffe://<environment>/<role>/<name>`, and by people as
//! `<role>/<name>`. What a role may do is said by [`Rules`](crate::Rules), not here.

use std::fmt;
use std::str::FromStr;

/// One of the roles of an archive. People carry the first six, parts of the archive the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Stores files; sees its own.
    Harvester,
    /// Reads files, records, lists and receipts.
    Reader,
    /// A reader who runs batch jobs.
    Researcher,
    /// A reader who checks, repairs and replaces.
    Officer,
    /// Asks for or approves what destroys.
    Custodian,
    /// Runs the machines.
    Operator,
    /// One machine of a replica.
    Node,
    /// The foreman of one replica.
    Monitor,
    /// The coordinator of the archive.
    Repository,
    /// Captures, dedup indexes, full text.
    Index,
    /// Harvest definitions and jobs.
    Scheduler,
    /// The web pages.
    Viewer,
}

/// Why a text is no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role; the roles are {list}", list = Role::ALL.map(Role::as_str).join(", "))]
pub struct InvalidRole(String);

impl Role {
    /// Every role, people first.
    pub const ALL: [Self; 12] = [
        Self::Harvester,
        Self::Reader,
        Self::Researcher,
        Self::Officer,
        Self::Custodian,
        Self::Operator,
        Self::Node,
        Self::Monitor,
        Self::Repository,
        Self::Index,
        Self::Scheduler,
        Self::Viewer,
    ];

    /// The role as it stands in a certificate.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Harvester => "harvester",
            Self::Reader => "reader",
            Self::Researcher => "researcher",
            Self::Officer => "officer",
            Self::Custodian => "custodian",
            Self::Operator => "operator",
            Self::Node => "node",
            Self::Monitor => "monitor",
            Self::Repository => "repository",
            Self::Index => "index",
            Self::Scheduler => "scheduler",
            Self::Viewer => "viewer",
        }
    }

    /// Whether the name beside this role is a person's (or a harvester's), not that of a part of the archive.
    pub const fn is_personal(self) -> bool {
        match self {
            Self::Harvester
            | Self::Reader
            | Self::Researcher
            | Self::Officer
            | Self::Custodian
            | Self::Operator => true,
            Self::Node
            | Self::Monitor
            | Self::Repository
            | Self::Index
            | Self::Scheduler
            | Self::Viewer => false,
        }
    }

    /// Whether who has this role may do all that `other` may: researchers and officers are readers too.
    pub fn includes(self, other: Self) -> bool {
        self == other || (other == Self::Reader && matches!(self, Self::Researcher | Self::Officer))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = InvalidRole;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| InvalidRole(shortened(text)))
    }
}

/// A role, given to a name: `officer/anna`, `node/kb-3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    role: Role,
    name: String,
}

/// Why a text is no grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGrant {
    /// Not two parts.
    #[error("{0:?} is no grant: `role/name` is")]
    Form(String),
    /// The first part is no role.
    #[error(transparent)]
    Role(#[from] InvalidRole),
    /// The second part is no name.
    #[error(
        "{0:?} is no name in a certificate: 1-64 of a-z, 0-9, `.`, `_`, `-`, beginning with a letter or digit, are"
    )]
    Name(String),
}

impl Grant {
    /// Accepts names of 1–64 characters of `a–z 0–9 . _ -` that begin with a letter or digit. Small letters only, so
    /// that one person cannot pass for two.
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
            Err(InvalidGrant::Name(shortened(name)))
        }
    }

    /// The role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The name it is given to.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The grant as it stands in a certificate of `environment`.
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
            .ok_or_else(|| InvalidGrant::Form(shortened(text)))?;
        Self::new(role.parse()?, name)
    }
}

/// How every URI that means something to us begins.
pub(crate) const SCHEME: &str = "spiffe://";

/// Whether `text` may name an environment: 1–128 characters of `a–z 0–9 . -`, a letter or digit at both ends.
pub(crate) fn is_environment(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// What an error repeats of a text from outside.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_what_its_text_says() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        for bad in ["", "Reader", "reader ", "admin"] {
            let error = bad.parse::<Role>().unwrap_err().to_string();
            assert!(
                error.contains(&format!("{bad:?}")) && error.contains("harvester, reader"),
                "{error}"
            );
        }
    }

    #[test]
    fn only_readers_are_included_in_other_roles() {
        for (holder, needed) in Role::ALL
            .into_iter()
            .flat_map(|a| Role::ALL.map(|b| (a, b)))
        {
            let expected = holder == needed
                || (holder, needed) == (Role::Researcher, Role::Reader)
                || (holder, needed) == (Role::Officer, Role::Reader);
            assert_eq!(
                holder.includes(needed),
                expected,
                "{holder} includes {needed}"
            );
        }
    }

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
