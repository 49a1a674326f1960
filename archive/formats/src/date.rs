//! Points in time as archives write them: `WARC-Date`, 14- and 17-digit timestamps, the dates of ARC files.
//!
//! Owns how dates are read and written. A [`WarcDate`] keeps the exact text and its precision; a [`Stamp`] is the time
//! by which indexes order. Both are UTC. Does not read a clock, and does not guess: a text that is no date is an error.

mod stamp;

pub use stamp::{Fill, Stamp};

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

/// The reason why a text is not a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidDate {
    /// The text is empty.
    #[error("the date is empty")]
    Empty,
    /// The text does not have the form of a date.
    #[error("byte {at} of the date is not what the format has there")]
    Syntax {
        /// The position of the first wrong character, counted from 0.
        at: usize,
    },
    /// A part of the date is one that no calendar or clock has.
    #[error("{part} {value} does not exist")]
    Range {
        /// The part of the date.
        part: DatePart,
        /// The value of the part.
        value: u16,
    },
    /// The date has more digits of a second than the format has.
    #[error("{0} digits of a second; at most 9 are allowed")]
    Fraction(usize),
    /// The text has a number of digits that no timestamp has.
    #[error("{0} digits; a timestamp has 14, or 17 with milliseconds")]
    Digits(usize),
    /// The date is before the year 0 or after the year 9999 once its offset is applied.
    #[error("the date is outside of the years 0000 to 9999")]
    Outside,
}

/// A part of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatePart {
    /// The year, 0 to 9999.
    Year,
    /// The month, 1 to 12.
    Month,
    /// The day, 1 to the last of the month.
    Day,
    /// The hour, 0 to 23.
    Hour,
    /// The minute, 0 to 59.
    Minute,
    /// The second, 0 to 59: there are no leap seconds in archives.
    Second,
    /// The hours and minutes of an offset from UTC.
    Offset,
}

impl fmt::Display for DatePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
            Self::Offset => "offset",
        })
    }
}

/// The precision with which a date was given. The order is from coarse to fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// To the year: `2016`.
    Year,
    /// To the month: `2016-01`.
    Month,
    /// To the day: `2016-01-11`.
    Day,
    /// To the minute: `2016-01-11T23:24Z`.
    Minute,
    /// To the second: `2016-01-11T23:24:25Z`.
    Second,
    /// To this number of digits of a second: `2016-01-11T23:24:25.4Z`.
    Fraction(u8),
}

/// The forms that are read beside the standard's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateReading {
    /// W3CDTF in UTC, as ISO 28500 says: date parts, or date and time with `Z`.
    Strict,
    /// Also the forms found in files: offsets, a missing or small `Z`, small `t`, a blank for it, 12, 14 or 17 digits.
    Lenient,
}

/// The value of `WARC-Date`: the exact text, its point in time, its precision.
///
/// Equal and ordered by time, then by precision (coarse first): the text plays no part.
///
/// ```
/// use archive_formats::date::{Precision, WarcDate};
/// let date: WarcDate = "2016-01-11T23:24:25Z".parse()?;
/// assert_eq!(date.precision(), Precision::Second);
/// assert_eq!(date.stamp().to_string(), "20160111232425");
/// # Ok::<(), archive_formats::date::InvalidDate>(())
/// ```
#[derive(Clone, Debug)]
pub struct WarcDate {
    text: Box<str>,
    time: DateTime,
    precision: Precision,
}

impl WarcDate {
    /// Reads a date. [`FromStr`] reads the strict form.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a date in one of the forms that are read.
    pub fn read_date(text: &str, reading: DateReading) -> Result<Self, InvalidDate> {
        let trimmed = match reading {
            DateReading::Strict => text,
            DateReading::Lenient => text.trim(),
        };
        if trimmed.is_empty() {
            return Err(InvalidDate::Empty);
        }
        let digits = trimmed.bytes().all(|b| b.is_ascii_digit());
        let (time, precision) = if reading == DateReading::Lenient && digits && trimmed.len() != 4 {
            let stamp = Stamp::from_arc(trimmed)?;
            let precision = match trimmed.len() {
                12 => Precision::Minute,
                14 => Precision::Second,
                _ => Precision::Fraction(3),
            };
            (stamp.civil_time(), precision)
        } else {
            w3cdtf(trimmed.as_bytes(), reading)?
        };
        Ok(Self {
            text: text.into(),
            time,
            precision,
        })
    }

    /// Returns a date written with a precision; finer parts are cut off, not rounded.
    pub fn from_time(time: Timestamp, precision: Precision) -> Self {
        let civil = utc(time);
        let date = civil.date();
        let clock = civil.time();
        let minutes = format!("{date}T{:02}:{:02}", clock.hour(), clock.minute());
        let text = match precision {
            Precision::Year => format!("{:04}", date.year()),
            Precision::Month => format!("{:04}-{:02}", date.year(), date.month()),
            Precision::Day => date.to_string(),
            Precision::Minute => format!("{minutes}Z"),
            Precision::Second | Precision::Fraction(0) => {
                format!("{minutes}:{:02}Z", clock.second())
            }
            Precision::Fraction(digits) => {
                let nanos = format!("{:09}", clock.subsec_nanosecond());
                let kept = nanos.get(..usize::from(digits.min(9))).unwrap_or(&nanos);
                format!("{minutes}:{:02}.{kept}Z", clock.second())
            }
        };
        // The text reads back, except for years that W3CDTF cannot express: those keep their time.
        match Self::read_date(&text, DateReading::Strict) {
            Ok(date) => date,
            Err(_) => Self {
                text: text.into(),
                time: civil,
                precision,
            },
        }
    }

    /// Returns the text as it was read.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the beginning of the span that the date names: `2016` is the first moment of that year.
    ///
    /// The last day of the year 9999, which a [`Timestamp`] does not reach, is the last moment that it has.
    pub fn time(&self) -> Timestamp {
        moment(self.time)
    }

    /// Returns the precision with which the date was given.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Returns the timestamp by which an index orders the date.
    pub fn stamp(&self) -> Stamp {
        Stamp::from_civil(self.time)
    }
}

impl FromStr for WarcDate {
    type Err = InvalidDate;

    fn from_str(text: &str) -> Result<Self, InvalidDate> {
        Self::read_date(text, DateReading::Strict)
    }
}

impl fmt::Display for WarcDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for WarcDate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for WarcDate {}

impl PartialOrd for WarcDate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for WarcDate {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time, self.precision).cmp(&(other.time, other.precision))
    }
}

/// The date and time of a calendar, not yet checked to exist.
struct Civil {
    year: u16,
    month: u16,
    day: u16,
    hour: u16,
    minute: u16,
    second: u16,
    nanos: i32,
}

impl Civil {
    fn time(&self) -> Result<DateTime, InvalidDate> {
        let range = |part, value| InvalidDate::Range { part, value };
        let small = |part, value: u16, low: u16, high: u16| {
            if !(low..=high).contains(&value) {
                return Err(range(part, value));
            }
            i8::try_from(value).or(Err(range(part, value)))
        };
        let year = i16::try_from(self.year).or(Err(range(DatePart::Year, self.year)))?;
        let month = small(DatePart::Month, self.month, 1, 12)?;
        let day = small(DatePart::Day, self.day, 1, days_in(self.year, self.month))?;
        let hour = small(DatePart::Hour, self.hour, 0, 23)?;
        let minute = small(DatePart::Minute, self.minute, 0, 59)?;
        let second = small(DatePart::Second, self.second, 0, 59)?;
        DateTime::new(year, month, day, hour, minute, second, self.nanos)
            .or(Err(InvalidDate::Outside))
    }
}

/// Returns the number of days of a month; 31 for a month that does not exist.
fn days_in(year: u16, month: u16) -> u16 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

fn utc(time: Timestamp) -> DateTime {
    time.to_zoned(TimeZone::UTC).datetime()
}

fn moment(time: DateTime) -> Timestamp {
    time.to_zoned(TimeZone::UTC)
        .map_or(Timestamp::MAX, |zoned| zoned.timestamp())
}

/// Cuts off the nanoseconds beyond a multiple of `unit`.
fn cut(time: DateTime, unit: i32) -> DateTime {
    let nanos = time.subsec_nanosecond();
    time.with()
        .subsec_nanosecond(nanos - nanos % unit)
        .build()
        .unwrap_or(time)
}

/// A cursor over the bytes of a date.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn number(&mut self, n: usize) -> Result<u16, InvalidDate> {
        let mut value = 0;
        for _ in 0..n {
            match self.peek() {
                Some(b) if b.is_ascii_digit() => value = value * 10 + u16::from(b - b'0'),
                _ => return Err(InvalidDate::Syntax { at: self.at }),
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn skip(&mut self, one_of: &[u8]) -> Result<(), InvalidDate> {
        match self.peek() {
            Some(b) if one_of.contains(&b) => {
                self.at += 1;
                Ok(())
            }
            _ => Err(InvalidDate::Syntax { at: self.at }),
        }
    }
}

fn w3cdtf(bytes: &[u8], reading: DateReading) -> Result<(DateTime, Precision), InvalidDate> {
    let lenient = reading == DateReading::Lenient;
    let mut c = Cursor { bytes, at: 0 };
    let mut civil = Civil {
        year: c.number(4)?,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
        nanos: 0,
    };
    if c.done() {
        return Ok((civil.time()?, Precision::Year));
    }
    c.skip(b"-")?;
    civil.month = c.number(2)?;
    if c.done() {
        return Ok((civil.time()?, Precision::Month));
    }
    c.skip(b"-")?;
    civil.day = c.number(2)?;
    if c.done() {
        return Ok((civil.time()?, Precision::Day));
    }
    c.skip(if lenient { b"Tt " } else { b"T" })?;
    civil.hour = c.number(2)?;
    c.skip(b":")?;
    civil.minute = c.number(2)?;
    let mut precision = Precision::Minute;
    if c.peek() == Some(b':') {
        c.at += 1;
        civil.second = c.number(2)?;
        precision = Precision::Second;
        if c.peek() == Some(b'.') {
            c.at += 1;
            let (nanos, digits) = fraction(&mut c)?;
            civil.nanos = nanos;
            precision = Precision::Fraction(digits);
        }
    }
    let time = civil.time()?;
    let offset = match c.peek() {
        Some(b'Z') => 0,
        Some(b'z') if lenient => 0,
        Some(b'+' | b'-') if lenient => return Ok((offset(&mut c, time)?, precision)),
        None if lenient => return Ok((time, precision)),
        _ => return Err(InvalidDate::Syntax { at: c.at }),
    };
    c.at += 1 + offset;
    if c.done() {
        Ok((time, precision))
    } else {
        Err(InvalidDate::Syntax { at: c.at })
    }
}

fn fraction(c: &mut Cursor<'_>) -> Result<(i32, u8), InvalidDate> {
    let start = c.at;
    let mut nanos = 0;
    let mut digits: u8 = 0;
    while let Some(b) = c.peek().filter(u8::is_ascii_digit) {
        if digits < 9 {
            nanos = nanos * 10 + i32::from(b - b'0');
        }
        digits = digits.saturating_add(1);
        c.at += 1;
    }
    match digits {
        0 => Err(InvalidDate::Syntax { at: start }),
        1..=9 => Ok((nanos * 10_i32.pow(9 - u32::from(digits)), digits)),
        _ => Err(InvalidDate::Fraction(c.at - start)),
    }
}

/// Reads an offset at the end of the text: `+01:00`, `+0100` or `+01`.
fn offset(c: &mut Cursor<'_>, local: DateTime) -> Result<DateTime, InvalidDate> {
    let east = c.peek() == Some(b'+');
    c.at += 1;
    let hours = c.number(2)?;
    if c.peek() == Some(b':') {
        c.at += 1;
    }
    let minutes = if c.done() { 0 } else { c.number(2)? };
    if !c.done() {
        return Err(InvalidDate::Syntax { at: c.at });
    }
    if hours > 23 || minutes > 59 {
        let value = if hours > 23 { hours } else { minutes };
        return Err(InvalidDate::Range {
            part: DatePart::Offset,
            value,
        });
    }
    let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60;
    let ahead = SignedDuration::from_secs(if east { -seconds } else { seconds });
    local
        .checked_add(ahead)
        .ok()
        .filter(|t| t.year() >= 0)
        .ok_or(InvalidDate::Outside)
}

#[cfg(test)]
mod tests;
