//! Points in time as archives write them: `WARC-Date`, 14- and 17-digit timestamps, the dates of ARC files.
//!
//! Owns how they are read and written. A [`WarcDate`] keeps the exact text and says how precise it was; a [`Stamp`] is
//! what indexes order by. Both are UTC. Does not read a clock, and does not guess: what is no date is an error.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use thiserror::Error;

/// Why a text is no date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidDate {
    /// Nothing there.
    #[error("the date is empty")]
    Empty,
    /// Not the shape of a date.
    #[error("byte {at} of the date is not what the format has there")]
    Syntax {
        /// Where, counted from 0.
        at: usize,
    },
    /// A part that no calendar or clock has.
    #[error("{part} {value} does not exist")]
    Range {
        /// Which part.
        part: Part,
        /// What it says.
        value: u16,
    },
    /// More digits of a second than the format has.
    #[error("{0} digits of a second; at most 9 are allowed")]
    Fraction(usize),
    /// A number of digits that no timestamp has.
    #[error("{0} digits; a timestamp has 14, or 17 with milliseconds")]
    Digits(usize),
    /// Before the year 1 or after the year 9999 once its offset is applied.
    #[error("the date is outside of the years 0001 to 9999")]
    Outside,
}

/// A part of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// 0 to 9999.
    Year,
    /// 1 to 12.
    Month,
    /// 1 to as many as the month has.
    Day,
    /// 0 to 23.
    Hour,
    /// 0 to 59.
    Minute,
    /// 0 to 59: there are no leap seconds in archives.
    Second,
    /// The hours and minutes of an offset from UTC.
    Offset,
}

impl fmt::Display for Part {
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

/// How much of a date was said. The order is from coarse to fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// `2016`
    Year,
    /// `2016-01`
    Month,
    /// `2016-01-11`
    Day,
    /// `2016-01-11T23:24Z`
    Minute,
    /// `2016-01-11T23:24:25Z`
    Second,
    /// `2016-01-11T23:24:25.4Z`, with so many digits.
    Fraction(u8),
}

/// What is read beside the standard's own form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// W3CDTF in UTC, as ISO 28500 says: date parts, or date and time with `Z`.
    Strict,
    /// Also what is found in files: offsets, a missing or small `Z`, small `t`, a blank instead of it, 12, 14 or 17 digits.
    Lenient,
}

/// The value of `WARC-Date`: the exact text, its point in time, its precision.
///
/// Equal and ordered by time, then by precision (coarse first): the text plays no part.
#[derive(Clone, Debug)]
pub struct WarcDate {
    text: Box<str>,
    time: Timestamp,
    precision: Precision,
}

impl WarcDate {
    /// Reads a date. The strict form is what [`FromStr`] reads.
    pub fn read(text: &str, reading: Reading) -> Result<Self, InvalidDate> {
        let trimmed = match reading {
            Reading::Strict => text,
            Reading::Lenient => text.trim(),
        };
        if trimmed.is_empty() {
            return Err(InvalidDate::Empty);
        }
        let digits = trimmed.bytes().all(|b| b.is_ascii_digit());
        let (time, precision) = if reading == Reading::Lenient && digits && trimmed.len() != 4 {
            let stamp = Stamp::from_arc(trimmed)?;
            let precision = match trimmed.len() {
                12 => Precision::Minute,
                14 => Precision::Second,
                _ => Precision::Fraction(3),
            };
            (stamp.time(), precision)
        } else {
            w3cdtf(trimmed.as_bytes(), reading)?
        };
        Ok(Self {
            text: text.into(),
            time,
            precision,
        })
    }

    /// A date written with a precision; what is finer is cut off, not rounded.
    pub fn from_time(time: Timestamp, precision: Precision) -> Self {
        let d = time.to_zoned(TimeZone::UTC).datetime();
        let (y, mo, day) = (d.year(), d.month(), d.day());
        let (h, mi, s) = (d.hour(), d.minute(), d.second());
        let text = match precision {
            Precision::Year => format!("{y:04}"),
            Precision::Month => format!("{y:04}-{mo:02}"),
            Precision::Day => format!("{y:04}-{mo:02}-{day:02}"),
            Precision::Minute => format!("{y:04}-{mo:02}-{day:02}T{h:02}:{mi:02}Z"),
            Precision::Second | Precision::Fraction(0) => {
                format!("{y:04}-{mo:02}-{day:02}T{h:02}:{mi:02}:{s:02}Z")
            }
            Precision::Fraction(n) => {
                let nanos = format!("{:09}", d.subsec_nanosecond());
                let kept = nanos.get(..usize::from(n.min(9))).unwrap_or(&nanos);
                format!("{y:04}-{mo:02}-{day:02}T{h:02}:{mi:02}:{s:02}.{kept}Z")
            }
        };
        // What was just written reads back, except for years that W3CDTF cannot say: those keep their time.
        match Self::read(&text, Reading::Strict) {
            Ok(date) => date,
            Err(_) => Self {
                text: text.into(),
                time,
                precision,
            },
        }
    }

    /// The text as it was read.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The beginning of the span that it names: `2016` is the first moment of that year.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// How much of it was said.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// What an index orders it by.
    pub fn stamp(&self) -> Stamp {
        Stamp::from_time(self.time)
    }
}

impl FromStr for WarcDate {
    type Err = InvalidDate;

    fn from_str(text: &str) -> Result<Self, InvalidDate> {
        Self::read(text, Reading::Strict)
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

/// A timestamp of an index: a point in UTC to the second, or to the millisecond.
///
/// Written with 14 digits, or with 17 when it was read so or has been asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    time: Timestamp,
    millis: bool,
}

/// To which end of its span a short timestamp is filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// `2016` begins at `20160101000000`.
    First,
    /// `2016` ends with `20161231235959`.
    Last,
}

impl Stamp {
    /// The second in which a moment lies.
    pub fn from_time(time: Timestamp) -> Self {
        Self {
            time: cut(time, 1_000_000_000),
            millis: false,
        }
    }

    /// The millisecond in which a moment lies: 17 digits.
    pub fn from_time_millis(time: Timestamp) -> Self {
        Self {
            time: cut(time, 1_000_000),
            millis: true,
        }
    }

    /// The date of an ARC record: 14 digits, or 17, or the 12 of the oldest files.
    pub fn from_arc(text: &str) -> Result<Self, InvalidDate> {
        match text.len() {
            12 => Self::from_query(text, Fill::First),
            _ => text.parse(),
        }
    }

    /// A timestamp of a query: 1 to 14 digits, or 17, filled up to one end of what they name.
    ///
    /// A month, day or time that begins but is cut (`20161`) is filled up with its smallest or largest digit that exists.
    pub fn from_query(text: &str, fill: Fill) -> Result<Self, InvalidDate> {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Err(InvalidDate::Empty);
        }
        if let Some(at) = bytes.iter().position(|b| !b.is_ascii_digit()) {
            return Err(InvalidDate::Syntax { at });
        }
        if bytes.len() == 17 {
            return text.parse();
        }
        if bytes.len() > 14 {
            return Err(InvalidDate::Digits(bytes.len()));
        }
        let mut rest = bytes;
        let year = take(&mut rest, 4, fill, 0, 9999);
        let month = take(&mut rest, 2, fill, 1, 12);
        let day = take(&mut rest, 2, fill, 1, days_in(year, month));
        let hour = take(&mut rest, 2, fill, 0, 23);
        let minute = take(&mut rest, 2, fill, 0, 59);
        let second = take(&mut rest, 2, fill, 0, 59);
        let time = Civil { year, month, day, hour, minute, second, nanos: 0 }.time()?;
        Ok(Self {
            time,
            millis: false,
        })
    }

    /// The moment.
    pub fn time(self) -> Timestamp {
        self.time
    }

    /// Whether it is written with 17 digits.
    pub fn has_millis(self) -> bool {
        self.millis
    }
}

impl FromStr for Stamp {
    type Err = InvalidDate;

    /// Exactly 14 or 17 digits.
    fn from_str(text: &str) -> Result<Self, InvalidDate> {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Err(InvalidDate::Empty);
        }
        if let Some(at) = bytes.iter().position(|b| !b.is_ascii_digit()) {
            return Err(InvalidDate::Syntax { at });
        }
        if bytes.len() != 14 && bytes.len() != 17 {
            return Err(InvalidDate::Digits(bytes.len()));
        }
        let mut rest = bytes;
        let mut next = |n| take(&mut rest, n, Fill::First, 0, 0);
        let civil = Civil {
            year: next(4),
            month: next(2),
            day: next(2),
            hour: next(2),
            minute: next(2),
            second: next(2),
            nanos: i32::from(next(3)) * 1_000_000,
        };
        Ok(Self {
            time: civil.time()?,
            millis: bytes.len() == 17,
        })
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = self.time.to_zoned(TimeZone::UTC).datetime();
        write!(
            f,
            "{:04}{:02}{:02}{:02}{:02}{:02}",
            d.year(),
            d.month(),
            d.day(),
            d.hour(),
            d.minute(),
            d.second()
        )?;
        if self.millis {
            write!(f, "{:03}", d.millisecond())?;
        }
        Ok(())
    }
}

/// The date and time of a calendar, not yet known to exist.
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
    fn time(&self) -> Result<Timestamp, InvalidDate> {
        let range = |part, value| InvalidDate::Range { part, value };
        let small = |part, value: u16, low: u16, high: u16| {
            if value < low || value > high {
                return Err(range(part, value));
            }
            i8::try_from(value).or(Err(range(part, value)))
        };
        let year = i16::try_from(self.year).or(Err(range(Part::Year, self.year)))?;
        let month = small(Part::Month, self.month, 1, 12)?;
        let day = small(Part::Day, self.day, 1, days_in(self.year, self.month))?;
        let hour = small(Part::Hour, self.hour, 0, 23)?;
        let minute = small(Part::Minute, self.minute, 0, 59)?;
        let second = small(Part::Second, self.second, 0, 59)?;
        DateTime::new(year, month, day, hour, minute, second, self.nanos)
            .and_then(|d| d.to_zoned(TimeZone::UTC))
            .map(|z| z.timestamp())
            .or(Err(InvalidDate::Outside))
    }
}

/// How many days a month has; 31 for a month that does not exist.
fn days_in(year: u16, month: u16) -> u16 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Takes up to `n` digits; what is missing is filled so that the value stays between `low` and `high` where it can.
fn take(rest: &mut &[u8], n: usize, fill: Fill, low: u16, high: u16) -> u16 {
    let (digits, more) = rest.split_at(n.min(rest.len()));
    *rest = more;
    if digits.is_empty() {
        return match fill {
            Fill::First => low,
            Fill::Last => high,
        };
    }
    let value = number(digits);
    let missing = u32::try_from(n - digits.len()).unwrap_or(0);
    if missing == 0 {
        return value;
    }
    let scale = 10_u16.pow(missing);
    let bottom = value * scale;
    match fill {
        Fill::First => bottom.max(low),
        Fill::Last => (bottom + (scale - 1)).min(high),
    }
}

/// The value of at most four digits.
fn number(digits: &[u8]) -> u16 {
    digits
        .iter()
        .fold(0, |n, d| n * 10 + u16::from(d.wrapping_sub(b'0') % 10))
}

fn cut(time: Timestamp, unit: i128) -> Timestamp {
    let nanos = time.as_nanosecond();
    Timestamp::from_nanosecond(nanos - nanos.rem_euclid(unit)).unwrap_or(time)
}

/// Walks over the bytes of a date and knows where it is.
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

fn w3cdtf(bytes: &[u8], reading: Reading) -> Result<(Timestamp, Precision), InvalidDate> {
    let lenient = reading == Reading::Lenient;
    let mut c = Cursor { bytes, at: 0 };
    let mut civil = Civil { year: c.number(4)?, month: 1, day: 1, hour: 0, minute: 0, second: 0, nanos: 0 };
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

/// `+01:00`, `+0100` or `+01`, to the end.
fn offset(c: &mut Cursor<'_>, local: Timestamp) -> Result<Timestamp, InvalidDate> {
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
        return Err(InvalidDate::Range { part: Part::Offset, value });
    }
    let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60;
    let utc = local.as_second() + if east { -seconds } else { seconds };
    Timestamp::new(utc, local.subsec_nanosecond())
        .ok()
        .filter(|t| (0..=9999).contains(&t.to_zoned(TimeZone::UTC).year()))
        .ok_or(InvalidDate::Outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(text: &str) -> Result<String, InvalidDate> {
        WarcDate::read(text, Reading::Strict).map(|d| format!("{} {:?}", d.time(), d.precision()))
    }

    fn lenient(text: &str) -> Result<String, InvalidDate> {
        WarcDate::read(text, Reading::Lenient).map(|d| d.time().to_string())
    }

    #[test]
    fn every_precision_is_read() {
        let check = |text, expected: &str| assert_eq!(strict(text).as_deref(), Ok(expected), "{text}");
        check("2016", "2016-01-01T00:00:00Z Year");
        check("2016-02", "2016-02-01T00:00:00Z Month");
        check("2016-02-29", "2016-02-29T00:00:00Z Day");
        check("2016-01-11T23:24Z", "2016-01-11T23:24:00Z Minute");
        check("2016-01-11T23:24:25Z", "2016-01-11T23:24:25Z Second");
        check("2016-01-11T23:24:25.4Z", "2016-01-11T23:24:25.4Z Fraction(1)");
        check("2016-01-11T23:24:25.412030900Z", "2016-01-11T23:24:25.4120309Z Fraction(9)");
        check("0000", "0000-01-01T00:00:00Z Year");
        check("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z Fraction(3)");
    }

    #[test]
    fn what_is_no_date_says_why() {
        let range = |part, value| Err(InvalidDate::Range { part, value });
        assert_eq!(strict(""), Err(InvalidDate::Empty));
        assert_eq!(strict("2016-13-01"), range(Part::Month, 13));
        assert_eq!(strict("2016-00"), range(Part::Month, 0));
        assert_eq!(strict("2015-02-29"), range(Part::Day, 29));
        assert_eq!(strict("1900-02-29"), range(Part::Day, 29));
        assert_eq!(strict("2016-02-31T00:00:00Z"), range(Part::Day, 31));
        assert_eq!(strict("2016-02-01T24:00:00Z"), range(Part::Hour, 24));
        assert_eq!(strict("2016-02-01T23:60Z"), range(Part::Minute, 60));
        assert_eq!(strict("2016-02-01T23:59:60Z"), range(Part::Second, 60));
        assert_eq!(strict("2016-02-01T23:59:59.0123456789Z"), Err(InvalidDate::Fraction(10)));
        for (text, at) in [
            ("2016-02-01T23:59:59", 19),
            ("2016-02-01T23Z", 13),
            ("2016-02-01t23:59Z", 10),
            ("2016-02-01T23:59+01:00", 16),
            ("2016-02-01T23:59:59.Z", 20),
            ("2016-02-01T23:59:59ZZ", 20),
            ("20160201235959", 4),
            (" 2016", 0),
            ("2016-", 5),
            ("２０１６", 0),
        ] {
            assert_eq!(strict(text), Err(InvalidDate::Syntax { at }), "{text}");
        }
    }

    #[test]
    fn the_lenient_reading_takes_what_files_have() {
        let check = |text, expected: &str| assert_eq!(lenient(text).as_deref(), Ok(expected), "{text}");
        check("2016-01-11T23:24:25+01:00", "2016-01-11T22:24:25Z");
        check("2016-01-11T23:24:25.5-0130", "2016-01-12T00:54:25.5Z");
        check("2016-01-11t23:24:25z", "2016-01-11T23:24:25Z");
        check("2016-01-11 23:24:25", "2016-01-11T23:24:25Z");
        check(" 20160111232425 ", "2016-01-11T23:24:25Z");
        check("20160111232425123", "2016-01-11T23:24:25.123Z");
        check("201601112324", "2016-01-11T23:24:00Z");
        check("2016", "2016-01-01T00:00:00Z");
        assert_eq!(lenient("0000-01-01T00:00+01:00"), Err(InvalidDate::Outside));
        assert_eq!(lenient("9999-12-31T23:59-01:00"), Err(InvalidDate::Outside));
        let offset = Err(InvalidDate::Range { part: Part::Offset, value: 24 });
        assert_eq!(lenient("2016-01-01T00:00+24:00"), offset);
        assert_eq!(lenient("2016010"), Err(InvalidDate::Digits(7)));
    }

    #[test]
    fn the_text_is_kept_and_time_orders() {
        let read = |text| WarcDate::read(text, Reading::Lenient).unwrap();
        assert_eq!(read("2016-01-11T23:24:25+01:00").as_str(), "2016-01-11T23:24:25+01:00");
        assert_eq!(read("2016-01-11T22:24:25Z"), read("2016-01-11T23:24:25+01:00"));
        assert!(read("2016") < read("2016-01"));
        assert!(read("2016-01") < read("2016-01-01T00:00:00.1Z"));
        assert!(read("2015-12-31T23:59:59.999999999Z") < read("2016"));
    }

    #[test]
    fn every_day_of_a_leap_cycle_goes_round() {
        let mut days = 0;
        for year in 1896..=2004 {
            for month in 0..=13_u16 {
                for day in 0..=32_u16 {
                    let text = format!("{year:04}{month:02}{day:02}235959");
                    let exists = (1..=12).contains(&month) && day >= 1 && day <= days_in(year, month);
                    match text.parse::<Stamp>() {
                        Ok(stamp) => {
                            assert!(exists, "{text}");
                            assert_eq!(stamp.to_string(), text);
                            assert_eq!(Stamp::from_time(stamp.time()), stamp);
                            for precision in [Precision::Day, Precision::Minute, Precision::Second] {
                                let date = WarcDate::from_time(stamp.time(), precision);
                                assert_eq!(strict(date.as_str()), Ok(format!("{} {precision:?}", date.time())));
                            }
                            days += 1;
                        }
                        Err(_) => assert!(!exists, "{text}"),
                    }
                }
            }
        }
        assert_eq!(days, 109 * 365 + 27);
    }

    #[test]
    fn every_second_of_a_day_and_every_millisecond_of_a_second_go_round() {
        for second in 0..86_400_i64 {
            let stamp = Stamp::from_time(Timestamp::from_second(second - 43_200).unwrap());
            assert_eq!(stamp.to_string().parse(), Ok(stamp));
        }
        for millis in -1500..1500_i64 {
            let time = Timestamp::from_millisecond(millis).unwrap();
            let stamp = Stamp::from_time_millis(time);
            assert_eq!(stamp.time(), time);
            assert_eq!(stamp.to_string().parse(), Ok(stamp));
            let whole = Stamp::from_time(time).time();
            assert!(whole <= time && time.as_millisecond() - whole.as_millisecond() < 1000);
        }
    }

    #[test]
    fn every_fraction_goes_round() {
        let time = "2016-01-11T23:24:25.123456789Z".parse::<Timestamp>().unwrap();
        for n in 1..=9_u8 {
            let date = WarcDate::from_time(time, Precision::Fraction(n));
            assert_eq!(date.as_str(), format!("2016-01-11T23:24:25.{}Z", &"123456789"[..usize::from(n)]));
            assert_eq!(date.precision(), Precision::Fraction(n));
        }
    }

    #[test]
    fn short_timestamps_are_filled() {
        let check = |text, first: &str, last: &str| {
            assert_eq!(Stamp::from_query(text, Fill::First).unwrap().to_string(), first, "{text}");
            assert_eq!(Stamp::from_query(text, Fill::Last).unwrap().to_string(), last, "{text}");
        };
        check("2", "20000101000000", "29991231235959");
        check("199", "19900101000000", "19991231235959");
        check("2016", "20160101000000", "20161231235959");
        check("20160", "20160101000000", "20160930235959");
        check("20161", "20161001000000", "20161231235959");
        check("201602", "20160201000000", "20160229235959");
        check("2015022", "20150220000000", "20150228235959");
        check("20150401", "20150401000000", "20150401235959");
        check("201504012", "20150401200000", "20150401235959");
        check("20150401235958", "20150401235958", "20150401235958");
        for bad in ["", "20a", "201613", "20150230", "201504012400000", "2015040124"] {
            assert!(Stamp::from_query(bad, Fill::First).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_prefix_and_no_changed_byte_panics() {
        let good = b"2016-01-11T23:24:25.123+01:00";
        for cut in 0..=good.len() {
            for at in 0..cut {
                for byte in 0..=127_u8 {
                    let mut bytes = good[..cut].to_vec();
                    bytes[at] = byte;
                    let text = String::from_utf8(bytes).unwrap();
                    for reading in [Reading::Strict, Reading::Lenient] {
                        if let Ok(date) = WarcDate::read(&text, reading) {
                            assert_eq!(date.as_str(), text);
                        }
                    }
                    let _ = Stamp::from_query(&text, Fill::Last).is_ok();
                    let _ = Stamp::from_arc(&text).is_ok();
                }
            }
        }
    }
}
