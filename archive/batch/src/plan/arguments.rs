//! The arguments of a built-in job, read strictly.
//!
//! Owns the errors of arguments: unknown, there twice, missing, or no value of their kind. Does not know what a job
//! does with an argument.

use archive_formats::date::{DateReading, Fill, InvalidDate, Precision, Stamp, WarcDate};
use archive_model::NamePattern;

use super::{InvalidJob, JobInfo};

/// Every argument of a job has its value.
pub(super) struct Arguments {
    values: Vec<(&'static str, String)>,
}

/// An expression that the whole of a text must match.
#[derive(Clone, Debug)]
pub(super) struct WholeMatch(NamePattern);

impl WholeMatch {
    /// Whether all of it matches.
    pub(super) fn is_match(&self, text: impl AsRef<[u8]>) -> bool {
        self.0.matches(text)
    }

    /// Whether everything matches.
    pub(super) fn is_everything(&self) -> bool {
        self.0.is_empty()
    }
}

impl Arguments {
    pub(super) fn read_given(
        info: &'static JobInfo,
        given: &[(String, String)],
    ) -> Result<Self, InvalidJob> {
        for (at, (name, _)) in given.iter().enumerate() {
            if !info.arguments.iter().any(|argument| argument.name == name) {
                return Err(wrong_argument(name, unknown(info)));
            }
            if given.iter().take(at).any(|(before, _)| before == name) {
                return Err(wrong_argument(name, "it is given twice".to_owned()));
            }
        }
        let mut values = Vec::new();
        for argument in info.arguments {
            let value = given.iter().find(|(name, _)| name == argument.name);
            let value = match (value, argument.default) {
                (Some((_, value)), _) => value.clone(),
                (None, Some(default)) => default.to_owned(),
                (None, None) => {
                    return Err(InvalidJob::Missing {
                        job: info.name,
                        argument: argument.name,
                        about: argument.about,
                    });
                }
            };
            values.push((argument.name, value));
        }
        Ok(Self { values })
    }

    /// Returns the value of an argument as it was given, or its default.
    pub(super) fn text(&self, name: &str) -> &str {
        self.values
            .iter()
            .find(|(known, _)| *known == name)
            .map_or("", |(_, value)| value)
    }

    /// Returns the value of an argument that is one of the words in `choices`.
    pub(super) fn choice<T: Clone>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<T, InvalidJob> {
        let given = self.text(name);
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == given) {
            return Ok(value.clone());
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        Err(wrong_argument(
            name,
            format!("{given:?} is not one of {}", words.join(", ")),
        ))
    }

    /// Returns the argument as a regular expression, which must match a text as a whole.
    pub(super) fn match_expression(&self, name: &str) -> Result<WholeMatch, InvalidJob> {
        let given = self.text(name);
        let given = if given == ".*" { "" } else { given };
        let pattern = NamePattern::parse(given);
        pattern
            .map(WholeMatch)
            .map_err(|error| wrong_argument(name, error.to_string()))
    }

    /// Returns the argument as a moment, from a date as WARC writes it, or from 14 digits.
    pub(super) fn parse_moment(&self, name: &str) -> Result<WarcDate, InvalidJob> {
        let given = self.text(name).trim();
        WarcDate::read_date(given, DateReading::Lenient)
            .map_err(|error| no_date(name, given, error))
    }

    /// Returns one end of a span of time, to the second, from 1 to 14 digits, filled up to that end, or from a date as
    /// WARC writes it. Returns `None` if the argument is empty: the span is open.
    pub(super) fn end_of_span(&self, name: &str, fill: Fill) -> Result<Option<Stamp>, InvalidJob> {
        let given = self.text(name).trim();
        if given.is_empty() {
            return Ok(None);
        }
        let date = WarcDate::read_date(given, DateReading::Lenient);
        let digits: String = given.chars().filter(|c| *c != '-').collect();
        let stamp = match date {
            // A day, a month or a year are spans themselves.
            Ok(date) if date.precision() > Precision::Day => Ok(date.stamp()),
            _ => Stamp::from_query(&digits, fill),
        };
        stamp.map(Some).map_err(|error| no_date(name, given, error))
    }
}

/// Returns the error of an argument that is wrong.
pub(super) fn wrong_argument(argument: &str, reason: String) -> InvalidJob {
    InvalidJob::Argument {
        argument: argument.to_owned(),
        reason,
    }
}

fn no_date(argument: &str, given: &str, error: InvalidDate) -> InvalidJob {
    wrong_argument(
        argument,
        format!("{given:?}: {error}; write it as 20161231235959 or 2016-12-31T23:59:59Z"),
    )
}

fn unknown(info: &JobInfo) -> String {
    let names: Vec<&str> = info
        .arguments
        .iter()
        .map(|argument| argument.name)
        .collect();
    if names.is_empty() {
        format!("the job {} has no arguments", info.name)
    } else {
        format!(
            "the job {} has the arguments {}",
            info.name,
            names.join(", ")
        )
    }
}
