//! Conditions on the time of a capture, as rules and embargoes have them.
//!
//! Owns `before`, `after`, `newer` and `older`, and the calendar arithmetic of periods. Knows no clock: now is an
//! argument.

use std::fmt;

use archive_formats::date::{Fill, Stamp};
use jiff::tz::TimeZone;
use jiff::{Span, SpanFieldwise, Timestamp};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use super::AccessLevel;

/// A length of time in the calendar: years, months, weeks and days.
///
/// Read from a table with at least one of `years`, `months`, `weeks`, `days`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "PeriodFields")]
pub struct CalendarPeriod(SpanFieldwise);

/// The reason why a period cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidPeriod {
    /// Nothing is named, or everything is 0.
    #[error("the period is empty; give at least one of `years`, `months`, `weeks`, `days`")]
    Empty,
    /// Longer than the calendar.
    #[error("the period is longer than the calendar, which has 9999 years")]
    TooLong,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct PeriodFields {
    years: u32,
    months: u32,
    weeks: u32,
    days: u32,
}

impl TryFrom<PeriodFields> for CalendarPeriod {
    type Error = InvalidPeriod;

    fn try_from(fields: PeriodFields) -> Result<Self, InvalidPeriod> {
        Self::new(fields.years, fields.months, fields.weeks, fields.days)
    }
}

impl CalendarPeriod {
    /// Returns a period of these lengths together.
    ///
    /// # Errors
    /// Fails if all are 0, or if they exceed the calendar.
    pub fn new(years: u32, months: u32, weeks: u32, days: u32) -> Result<Self, InvalidPeriod> {
        if (years, months, weeks, days) == (0, 0, 0, 0) {
            return Err(InvalidPeriod::Empty);
        }
        let span = Span::new()
            .try_years(years)
            .and_then(|span| span.try_months(months))
            .and_then(|span| span.try_weeks(weeks))
            .and_then(|span| span.try_days(days))
            .map_err(|_error| InvalidPeriod::TooLong)?;
        Ok(Self(span.fieldwise()))
    }

    /// Returns the moment that lies this long before another; the first one of the calendar if it reaches further back.
    fn before(self, now: Timestamp) -> Timestamp {
        let start = now
            .to_zoned(TimeZone::UTC)
            .datetime()
            .saturating_sub(self.0.0);
        start
            .to_zoned(TimeZone::UTC)
            .map_or(Timestamp::MIN, |zoned| zoned.timestamp())
    }
}

/// A condition that may hold for a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Before,
    After,
    Newer,
    Older,
}

/// Conditions on the time of a capture. A rule needs all of them to hold, an embargo any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    pub(super) before: Option<CaptureTime>,
    pub(super) after: Option<CaptureTime>,
    pub(super) newer: Option<CalendarPeriod>,
    pub(super) older: Option<CalendarPeriod>,
}

impl Conditions {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the conditions that are set, and whether each of them holds.
    fn each(&self, time: Timestamp, now: Timestamp) -> impl Iterator<Item = (Condition, bool)> {
        let before = self.before.map(|limit| (Condition::Before, time < limit.0));
        let after = self.after.map(|limit| (Condition::After, time >= limit.0));
        let newer = self
            .newer
            .map(|period| (Condition::Newer, time > period.before(now)));
        let older = self
            .older
            .map(|period| (Condition::Older, time <= period.before(now)));
        [before, after, newer, older].into_iter().flatten()
    }

    /// Returns whether all conditions hold; an empty set holds.
    pub(super) fn hold(&self, time: Timestamp, now: Timestamp) -> bool {
        self.is_empty() || self.each(time, now).all(|(_, holds)| holds)
    }
}

/// The embargo of a collection: the captures that are refused by their age. Any of its conditions is enough.
///
/// Read from a table such as `newer = { years = 1 }`, `access = "block"`; without `access` captures are excluded, as
/// pywb has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "EmbargoFields")]
pub struct Embargo {
    pub(super) access: AccessLevel,
    conditions: Conditions,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct EmbargoFields {
    access: Option<AccessLevel>,
    before: Option<CaptureTime>,
    after: Option<CaptureTime>,
    newer: Option<CalendarPeriod>,
    older: Option<CalendarPeriod>,
}

impl From<EmbargoFields> for Embargo {
    fn from(fields: EmbargoFields) -> Self {
        Self {
            access: fields.access.unwrap_or(AccessLevel::Exclude),
            conditions: Conditions {
                before: fields.before,
                after: fields.after,
                newer: fields.newer,
                older: fields.older,
            },
        }
    }
}

impl Default for Embargo {
    /// Returns an embargo that holds nothing back.
    fn default() -> Self {
        EmbargoFields::default().into()
    }
}

impl Embargo {
    /// Refuses captures that are newer than a period.
    pub fn newer_than(period: CalendarPeriod, access: AccessLevel) -> Self {
        Self {
            access,
            conditions: Conditions {
                newer: Some(period),
                ..Conditions::default()
            },
        }
    }

    /// Returns the first condition that holds for a capture.
    pub(super) fn embargo_condition(&self, time: Timestamp, now: Timestamp) -> Option<Condition> {
        self.conditions
            .each(time, now)
            .find_map(|(condition, holds)| holds.then_some(condition))
    }
}

/// A moment in a setting: 1 to 14 digits, as text or as a number. Short ones are the beginning of what they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CaptureTime(Timestamp);

impl<'de> Deserialize<'de> for CaptureTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DigitsVisitor)
    }
}

struct DigitsVisitor;

impl serde::de::Visitor<'_> for DigitsVisitor {
    type Value = CaptureTime;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timestamp of 1 to 14 digits")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<CaptureTime, E> {
        Stamp::from_query(text, Fill::First)
            .map(|stamp| CaptureTime(stamp.time()))
            .map_err(|error| E::custom(format_args!("timestamp `{text}`: {error}")))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<CaptureTime, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<CaptureTime, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }
}
