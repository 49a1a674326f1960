//! Rule files: pywb's `.aclj`, a line for each rule.
//!
//! Owns the syntax: `KEY - {"access": "block", …}`, with a key as [`UrlKey`] makes it, or the beginning of one; `###`
//! behind it makes it exact, and `*,` stands for all URLs. Lines may stand in any order, empty ones are skipped.
//! Everything else is refused with its place, because a rule that is not understood would leave something open.

use std::sync::Arc;

use archive_formats::surt::UrlKey;
use serde::Deserialize;
use thiserror::Error;

use super::conditions::{CalendarPeriod, CaptureTime, Conditions};
use super::{AccessLevel, Group, RulePlace};

/// The most faults that are kept of one set of files.
const MOST_FAULTS: usize = 100;

/// The marker of a key that stands for itself alone.
const EXACT: &str = "###";

/// The key that stands for all URLs.
const EVERY_URL: &str = "*,";

/// A file of rules: its name, for messages and logs, and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RuleFile<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// The content of the file.
    pub text: &'a [u8],
}

/// The fault of one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleFault {
    /// The line is no text.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// The line does not have the three parts of a rule.
    #[error("write a rule as KEY - {{\"access\": \"block\"}}")]
    Shape,
    /// A key with bytes that no key has: blanks, control characters, a byte order mark.
    #[error("key `{}` has a character that no key has; keys are ASCII without blanks", .0.escape_debug())]
    Key(String),
    /// A URL in place of a key.
    #[error("`{url}` is a URL; write its key, `{key}`")]
    Url {
        /// The URL that stands in place of a key.
        url: String,
        /// The key of the URL.
        key: String,
    },
    /// Something else than `-` between key and JSON.
    #[error(
        "`{0}` stands where `-` has to stand; dates are written as `before` and `after` in the JSON"
    )]
    Dash(String),
    /// JSON that is damaged, or with a field or value that is not known.
    #[error("{0}")]
    Json(String),
}

/// A line that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {fault}")]
pub struct InvalidRule {
    /// The place of the rule.
    pub place: RulePlace,
    /// The reason why the line is no rule.
    pub fault: RuleFault,
}

/// All faults of a set of files; no rule of them is used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{first}{}", more(.others.len(), *.omitted))]
pub struct InvalidRules {
    /// The first fault.
    pub first: InvalidRule,
    /// The next faults, up to a hundred.
    pub others: Vec<InvalidRule>,
    /// The number of faults beyond those.
    pub omitted: usize,
}

fn more(others: usize, omitted: usize) -> String {
    match others.saturating_add(omitted) {
        0 => String::new(),
        1 => " (and 1 more line)".to_owned(),
        more => format!(" (and {more} more lines)"),
    }
}

/// A rule as it was read from a line.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) access: AccessLevel,
    pub(super) user: Option<Group>,
    pub(super) conditions: Conditions,
    pub(super) place: RulePlace,
}

/// The captures that a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleReach {
    /// The URL with this key.
    Exact,
    /// All URLs whose keys begin with it.
    Prefix,
}

/// The JSON of a rule. `url` and `comment` are for people.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFields {
    access: AccessLevel,
    #[serde(default)]
    user: Option<Group>,
    #[serde(default)]
    before: Option<CaptureTime>,
    #[serde(default)]
    after: Option<CaptureTime>,
    #[serde(default)]
    newer: Option<CalendarPeriod>,
    #[serde(default)]
    older: Option<CalendarPeriod>,
    #[serde(default, rename = "url")]
    _url: serde::de::IgnoredAny,
    #[serde(default, rename = "comment")]
    _comment: serde::de::IgnoredAny,
}

/// Reads all files.
pub(super) fn read_rules<'a>(
    files: impl IntoIterator<Item = RuleFile<'a>>,
) -> Result<Vec<(RuleReach, Box<str>, Rule)>, InvalidRules> {
    let mut rules = Vec::new();
    let mut faults = Vec::new();
    let mut omitted = 0;
    for file in files {
        let name: Arc<str> = file.name.into();
        for (line, number) in file.text.split(|byte| *byte == b'\n').zip(1..) {
            let place = || RulePlace {
                file: Arc::clone(&name),
                line: number,
            };
            match read_line(line, place) {
                Ok(rule) => rules.extend(rule),
                Err(_) if faults.len() > MOST_FAULTS => omitted += 1,
                Err(fault) => faults.push(InvalidRule {
                    place: place(),
                    fault,
                }),
            }
        }
    }
    let mut faults = faults.into_iter();
    match faults.next() {
        None => Ok(rules),
        Some(first) => Err(InvalidRules {
            first,
            others: faults.collect(),
            omitted,
        }),
    }
}

/// Reads a line. Returns `None` if it is empty.
fn read_line(
    line: &[u8],
    place: impl FnOnce() -> RulePlace,
) -> Result<Option<(RuleReach, Box<str>, Rule)>, RuleFault> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = str::from_utf8(line).map_err(|_error| RuleFault::NotUtf8)?;
    if line.trim().is_empty() {
        return Ok(None);
    }
    let (key, rest) = line.split_once(' ').ok_or(RuleFault::Shape)?;
    let (dash, json) = rest.split_once(' ').ok_or(RuleFault::Shape)?;
    if dash.starts_with('{') {
        return Err(RuleFault::Shape);
    }
    let (reach, key) = read_key(key)?;
    if dash != "-" {
        return Err(RuleFault::Dash(dash.to_owned()));
    }
    let fields: RuleFields =
        serde_json::from_str(json).map_err(|error| RuleFault::Json(error.to_string()))?;
    let rule = Rule {
        access: fields.access,
        user: fields.user,
        conditions: Conditions {
            before: fields.before,
            after: fields.after,
            newer: fields.newer,
            older: fields.older,
        },
        place: place(),
    };
    Ok(Some((reach, key.into(), rule)))
}

fn read_key(text: &str) -> Result<(RuleReach, &str), RuleFault> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(RuleFault::Key(text.to_owned()));
    }
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    if scheme.is_some_and(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        return Err(RuleFault::Url {
            url: text.to_owned(),
            key: UrlKey::parse(text).to_string(),
        });
    }
    if text == EVERY_URL {
        return Ok((RuleReach::Prefix, ""));
    }
    Ok(match text.strip_suffix(EXACT) {
        Some(key) => (RuleReach::Exact, key),
        None => (RuleReach::Prefix, text),
    })
}
