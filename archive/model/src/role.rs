//! Roles of persons and of parts of the archive.
//!
//! Not promised: the rights of a role. The doors decide them, with `archive_rpc::Rules`, and for an act the act itself.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A role of an archive. People carry the first six, parts of the archive the others.
///
/// ```
/// use archive_model::Role;
///
/// let role: Role = "officer".parse()?;
/// assert!(role.includes(Role::Reader));
/// assert!(!Role::Operator.includes(Role::Reader));
/// # Ok::<(), archive_model::InvalidRole>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Stores files; sees the files that it stored.
    Harvester,
    /// Reads files, records, lists and receipts.
    Reader,
    /// A reader who runs batch jobs.
    Researcher,
    /// A reader who checks, repairs and replaces.
    Officer,
    /// Asks for or approves acts that destroy.
    Custodian,
    /// Runs the machines of the archive.
    Operator,
    /// A machine of a replica.
    Node,
    /// The foreman of one replica.
    Monitor,
    /// The coordinator of the archive.
    Repository,
    /// The part that answers for captures.
    Index,
    /// The part that has harvest definitions and jobs.
    Scheduler,
    /// The part that shows the archive in web pages.
    Viewer,
}

/// The most characters of a text from outside that an error repeats.
const REPEATED: usize = 120;

/// A text that names no role.
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

    /// Returns the role as it stands in a certificate.
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

    /// Returns whether the name beside this role is that of a person (or a harvester), not of a part of the archive.
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

    /// Returns whether a bearer of this role may do all that `other` may: researchers and officers are readers too.
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
            .ok_or_else(|| InvalidRole(text.chars().take(REPEATED).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a role is not read as it was written, or the error of an unknown role does not list those that there
    /// are.
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

    /// Fails if a role includes another one than reader, or reading is given to a role that shall not have it.
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
}
