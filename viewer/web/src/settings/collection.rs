//! The settings of a collection: which files it shows, and to whom.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use archive_daemon::settings::InvalidSettings;
use archive_formats::cdx::query::{Anchoring, Pattern};
use documented::DocumentedFields;
use index_client::SetName;
use serde::{Deserialize, Serialize};
use viewer_replay::access::{AccessLevel, Embargo, Group};
use viewer_replay::request::RESERVED_NAMES;

use super::DEFAULT_COLLECTION;

/// The longest name of a collection.
const LONGEST_NAME: usize = 64;

/// An entry `[[collection]]`. Without `files`, `jobs` and `sets` it has every capture that the index has; with several
/// of them, those that any of them names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct CollectionSettings {
    /// The name of the collection in URLs.
    pub name: String,
    /// The files whose captures are in the collection: a regular expression for whole names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// The harvest jobs whose files are in it: their names begin with the number of the job.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub jobs: BTreeSet<u64>,
    /// The sets whose captures are in it, by the names that they were imported with
    /// (`holdfast index import --set NAME`).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub sets: BTreeSet<String>,
    /// Files of rules, as pywb's `.aclj`. They are read again when they change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PathBuf>,
    /// The captures that are refused by their age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embargo: Option<EmbargoSettings>,
    /// The effect where no rule applies; `allow` where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_access: Option<AccessWord>,
    /// The groups that may read whole files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_groups: Vec<String>,
}

/// The effect of a rule, as settings and rules word it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessWord {
    /// Everything is shown, whatever the embargo says.
    AllowIgnoreEmbargo,
    /// Everything is shown, unless an embargo forbids it.
    Allow,
    /// Refused with 451.
    Block,
    /// The captures do not exist for the visitor.
    Exclude,
}

/// An embargo. Any of its conditions is enough.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct EmbargoSettings {
    /// The effect of the embargo; `exclude` where it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessWord>,
    /// Captures before this time: 4 to 14 digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Captures at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Captures that are younger than this period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newer: Option<PeriodSettings>,
    /// Captures that are at least as old as this period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older: Option<PeriodSettings>,
}

/// A length of time in the calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct PeriodSettings {
    /// Years.
    pub years: u32,
    /// Months.
    pub months: u32,
    /// Weeks.
    pub weeks: u32,
    /// Days.
    pub days: u32,
}

impl CollectionSettings {
    /// Returns the collection of the whole archive.
    pub fn whole_archive() -> Self {
        Self {
            name: DEFAULT_COLLECTION.to_owned(),
            files: None,
            jobs: BTreeSet::new(),
            sets: BTreeSet::new(),
            rules: Vec::new(),
            embargo: None,
            default_access: None,
            file_groups: Vec::new(),
        }
    }

    /// Checks everything but its files of rules.
    ///
    /// # Errors
    ///
    /// Fails with the first setting that cannot be used.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        let is_sound = (1..=LONGEST_NAME).contains(&self.name.len())
            && !self.name.starts_with('.')
            && !RESERVED_NAMES.contains(&self.name.as_str())
            && self
                .name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if !is_sound {
            return Err(InvalidSettings::new(format!(
                "collection {:?}: a name has 1 to 64 letters of ASCII, digits, `-`, `_` and `.`, does not begin with `.`, \
                 and is none of {}",
                self.name,
                RESERVED_NAMES.join(", ")
            )));
        }
        self.pattern()?;
        for set in &self.sets {
            SetName::new(set).map_err(|error| self.unusable("sets", error))?;
        }
        self.embargo()?;
        self.groups().map(drop)
    }

    /// Returns the expression for the names of its files.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be compiled.
    pub fn pattern(&self) -> Result<Option<Pattern>, InvalidSettings> {
        let pattern = self
            .files
            .as_deref()
            .map(|files| Pattern::new(files, Anchoring::Whole));
        pattern
            .transpose()
            .map_err(|error| self.unusable("files", error))
    }

    /// Returns the embargo of the collection.
    ///
    /// # Errors
    ///
    /// Fails when it names no time or period, or one that does not exist.
    pub fn embargo(&self) -> Result<Embargo, InvalidSettings> {
        let invalid = |why: String| self.unusable("embargo", why);
        let Some(embargo) = &self.embargo else {
            return Ok(Embargo::default());
        };
        let has_condition = embargo.before.is_some()
            || embargo.after.is_some()
            || embargo.newer.is_some()
            || embargo.older.is_some();
        if !has_condition {
            return Err(invalid(
                "it has no condition; give `before`, `after`, `newer` or `older`".to_owned(),
            ));
        }
        let value = serde_json::to_value(embargo).map_err(|error| invalid(error.to_string()))?;
        serde_json::from_value(value).map_err(|error| invalid(error.to_string()))
    }

    /// Returns the groups that may read whole files.
    ///
    /// # Errors
    ///
    /// Fails when one of them is no group.
    pub fn groups(&self) -> Result<BTreeSet<Group>, InvalidSettings> {
        let groups = self.file_groups.iter().map(|group| group.parse::<Group>());
        groups
            .collect::<Result<_, _>>()
            .map_err(|error| self.unusable("file_groups", error))
    }

    fn unusable(&self, key: &str, error: impl fmt::Display) -> InvalidSettings {
        InvalidSettings::new(format!(
            "cannot use `{key}` of collection `{}`: {error}",
            self.name
        ))
    }
}

impl From<AccessWord> for AccessLevel {
    fn from(word: AccessWord) -> Self {
        match word {
            AccessWord::AllowIgnoreEmbargo => Self::AllowIgnoreEmbargo,
            AccessWord::Allow => Self::Allow,
            AccessWord::Block => Self::Block,
            AccessWord::Exclude => Self::Exclude,
        }
    }
}
