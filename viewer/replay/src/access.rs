//! The one decision about access: may this visitor see this capture, or this file, at this moment?
//!
//! Owns the rules of pywb's `.aclj` files ([`RuleSet`]), the embargo of a collection ([`Embargo`]), who a visitor is
//! ([`VisitorSettings`]), and how they become one [`AccessDecision`]. Knows no collection by name, reads no file and no
//! clock. Everything that shows something of the archive asks here: look-ups, TimeMaps, raw records, pages, the proxy,
//! whole files.
//!
//! In order:
//!
//! 1. The rule with the longest key decides, an exact one (`key###`) before any prefix. Rules for other users, and
//!    rules whose dates do not hold for the capture, do not count.
//! 2. Among rules with one key, those for a group of the visitor go before those for all visitors, and those with dates
//!    before those without. Of several that are left the strictest decides, so that the order of lines and files has no
//!    meaning; but groups add up: where two groups of a visitor have rules, the more permissive one decides.
//! 3. Without a rule, the default of the collection decides.
//! 4. An embargo makes the result stricter, unless it is `allow_ignore_embargo`.
//!
//! Where this differs from pywb 2.9, on purpose: a rule whose dates do not hold gives way to the next one, and not to
//! the default; all dates of a rule have to hold, and any date of an embargo is enough; `after` includes the moment
//! itself, as pywb's manual says; unknown fields and values are refused, because a misspelt one would open what it
//! should close.
//!
//! ```
//! use archive_formats::date::{Fill, Stamp};
//! use jiff::Timestamp;
//! use viewer_replay::access::{AccessVerdict, AccessPolicy, RuleFile, RuleSet, AccessSubject, Visitor};
//!
//! let file = RuleFile {
//!     name: "closed.aclj",
//!     text: b"com,example)/private - {\"access\": \"block\"}\n\
//!             com,example)/private - {\"access\": \"allow\", \"user\": \"staff\"}\n",
//! };
//! let policy = AccessPolicy { rules: RuleSet::parse([file])?, ..AccessPolicy::default() };
//! let subject = AccessSubject::Capture {
//!     key: "com,example)/private/a",
//!     time: Stamp::from_query("2020", Fill::First)?,
//! };
//! let now = Timestamp::UNIX_EPOCH;
//! let decision = policy.decide_access(&Visitor::anonymous(), subject, now);
//! assert_eq!(decision.verdict, AccessVerdict::Block);
//! assert_eq!(decision.to_string(), "block by closed.aclj:1");
//! let staff = Visitor::of_groups(["staff".parse()?]);
//! assert_eq!(policy.decide_access(&staff, subject, now).verdict, AccessVerdict::Allow);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod conditions;
mod rule_file;
mod rule_set;
mod visitor;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use archive_formats::date::Stamp;
use jiff::Timestamp;
use serde::Deserialize;

pub use conditions::{CalendarPeriod, Embargo, InvalidPeriod};
pub use rule_file::{InvalidRule, InvalidRules, RuleFault, RuleFile};
pub use rule_set::RuleSet;
pub use visitor::{
    Group, InvalidGroup, InvalidVisitorNetwork, PeerFacts, Visitor, VisitorNetwork, VisitorSettings,
};

use conditions::Condition;

/// The effect of a rule, from the most permissive to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessLevel {
    /// Everything is shown, whatever the embargo says.
    AllowIgnoreEmbargo,
    /// Everything is shown, unless an embargo forbids it.
    Allow,
    /// The capture is known to exist, and its content is refused: 451.
    Block,
    /// The capture is treated as if it did not exist: 404.
    Exclude,
}

impl AccessLevel {
    const fn verdict(self) -> AccessVerdict {
        match self {
            Self::AllowIgnoreEmbargo | Self::Allow => AccessVerdict::Allow,
            Self::Block => AccessVerdict::Block,
            Self::Exclude => AccessVerdict::Exclude,
        }
    }
}

/// The answer to a visitor, from the most permissive to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessVerdict {
    /// The subject is shown.
    Allow,
    /// The visitor learns that the subject exists, and may not see it.
    Block,
    /// The subject does not exist for this visitor.
    Exclude,
}

impl AccessVerdict {
    /// Returns the status of a refusal; `None` if nothing is refused.
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::Allow => None,
            Self::Block => Some(451),
            Self::Exclude => Some(404),
        }
    }

    /// Returns whether the subject is shown.
    pub const fn is_allowed(self) -> bool {
        matches!(self, Self::Allow)
    }
}

impl fmt::Display for AccessVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Block => "block",
            Self::Exclude => "exclude",
        })
    }
}

/// The place of a rule: its file and its line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePlace {
    /// The name of the file, as it was given.
    pub file: Arc<str>,
    /// The number of the line, counted from 1.
    pub line: usize,
}

impl fmt::Display for RulePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The reason for a decision. This is for logs: a visitor does not learn which rule refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionReason {
    /// No rule applies: the default of the collection decided.
    Default,
    /// A rule decided.
    Rule(RulePlace),
    /// The embargo of the collection decided; the text is the condition that holds, for example `newer`.
    Embargo(&'static str),
    /// Whole files are for named groups only, and the visitor is in none of them.
    WholeFile,
    /// Whole files are for this group, and the visitor is in it.
    FileGroup(Group),
}

impl fmt::Display for DecisionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default of the collection"),
            Self::Rule(place) => place.fmt(f),
            Self::Embargo(condition) => write!(f, "the embargo (`{condition}`)"),
            Self::WholeFile => f.write_str("the groups that may read whole files"),
            Self::FileGroup(group) => write!(f, "group {group}, which may read whole files"),
        }
    }
}

/// A decision and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessDecision {
    /// The answer to the visitor.
    pub verdict: AccessVerdict,
    /// The reason for the answer.
    pub reason: DecisionReason,
}

impl AccessDecision {
    /// Returns whether the subject is shown.
    pub const fn is_allowed(&self) -> bool {
        self.verdict.is_allowed()
    }
}

impl fmt::Display for AccessDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.verdict, self.reason)
    }
}

/// The thing that a visitor asks to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessSubject<'a> {
    /// A capture: its record, its line in an index, its place in a TimeMap.
    Capture {
        /// The key of the capture's URL: [`UrlKey`](archive_formats::surt::UrlKey).
        key: &'a str,
        /// The time of the capture.
        time: Stamp,
    },
    /// A whole archive file, or a record that is no capture and so has no key, such as `warcinfo`.
    WholeFile,
}

/// The access settings of one collection.
#[derive(Clone, Debug)]
pub struct AccessPolicy {
    /// The rules of the collection.
    pub rules: RuleSet,
    /// The embargo of the collection.
    pub embargo: Embargo,
    /// The effect where no rule applies.
    pub default_access: AccessLevel,
    /// The groups that may read whole files. Rules are not asked then: a file has captures of any URL.
    pub file_groups: BTreeSet<Group>,
}

impl Default for AccessPolicy {
    /// Returns the policy that allows everything except whole files.
    fn default() -> Self {
        Self {
            rules: RuleSet::default(),
            embargo: Embargo::default(),
            default_access: AccessLevel::Allow,
            file_groups: BTreeSet::new(),
        }
    }
}

impl AccessPolicy {
    /// Decides what a visitor sees of a subject at this moment.
    pub fn decide_access(
        &self,
        visitor: &Visitor,
        subject: AccessSubject<'_>,
        now: Timestamp,
    ) -> AccessDecision {
        match subject {
            AccessSubject::Capture { key, time } => self.capture(visitor, key, time, now),
            AccessSubject::WholeFile => self.whole_file(visitor),
        }
    }

    fn capture(&self, visitor: &Visitor, key: &str, time: Stamp, now: Timestamp) -> AccessDecision {
        let moment = time.time();
        let (access, reason) = match self.rules.find_rule(visitor, key, moment, now) {
            Some(rule) => (rule.access, DecisionReason::Rule(rule.place.clone())),
            None => (self.default_access, DecisionReason::Default),
        };
        if access != AccessLevel::AllowIgnoreEmbargo
            && let Some(condition) = self.embargo.embargo_condition(moment, now)
            && self.embargo.access > access
        {
            return AccessDecision {
                verdict: self.embargo.access.verdict(),
                reason: DecisionReason::Embargo(condition.name()),
            };
        }
        AccessDecision {
            verdict: access.verdict(),
            reason,
        }
    }

    fn whole_file(&self, visitor: &Visitor) -> AccessDecision {
        match visitor
            .groups()
            .find(|group| self.file_groups.contains(group))
        {
            Some(group) => AccessDecision {
                verdict: AccessVerdict::Allow,
                reason: DecisionReason::FileGroup(group.clone()),
            },
            None => AccessDecision {
                verdict: AccessVerdict::Block,
                reason: DecisionReason::WholeFile,
            },
        }
    }
}

impl Condition {
    const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Newer => "newer",
            Self::Older => "older",
        }
    }
}

#[cfg(test)]
mod tests;
