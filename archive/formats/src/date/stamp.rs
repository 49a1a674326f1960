//! Timestamps of indexes: 14 or 17 digits, and the shorter ones of queries and old ARC files.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;

use super::{Civil, InvalidDate, cut, days_in, moment, utc};

/// A timestamp of an index: a point in UTC to the second, or to the millisecond.
///
/// A timestamp is written with 14 digits, or with 17 if it was read so or milliseconds were asked for.
///
/// ```
/// use archive_formats::date::{Fill, Stamp};
///
/// let stamp: Stamp = "20260102030405".parse()?;
/// assert_eq!(stamp.time().to_string(), "2026-01-02T03:04:05Z");
/// assert_eq!(Stamp::from_query("2016", Fill::Last)?.to_string(), "20161231235959");
/// # Ok::<(), archive_formats::date::InvalidDate>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    time: DateTime,
    millis: bool,
}

/// The end of its span to which a short timestamp is filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The first moment: `2016` begins at `20160101000000`.
    First,
    /// The last second: `2016` ends with `20161231235959`.
    Last,
}

impl Stamp {
    /// Returns the second in which a moment lies.
    pub fn from_time(time: Timestamp) -> Self {
        Self {
            time: cut(utc(time), 1_000_000_000),
            millis: false,
        }
    }

    /// Returns the second in which a time of the calendar lies.
    pub(super) fn from_civil(time: DateTime) -> Self {
        Self {
            time: cut(time, 1_000_000_000),
            millis: false,
        }
    }

    /// Returns the time of the calendar.
    pub(super) fn civil_time(self) -> DateTime {
        self.time
    }

    /// Returns the millisecond in which a moment lies: 17 digits.
    pub fn from_time_millis(time: Timestamp) -> Self {
        Self {
            time: cut(utc(time), 1_000_000),
            millis: true,
        }
    }

    /// Returns year, month, day, hour, minute, second and millisecond.
    pub fn date_parts(self) -> [u16; 7] {
        let time = self.time;
        // No part of a date is negative: years begin at 0.
        let part = |part: i8| u16::from(part.unsigned_abs());
        [
            time.year().unsigned_abs(),
            part(time.month()),
            part(time.day()),
            part(time.hour()),
            part(time.minute()),
            part(time.second()),
            time.millisecond().unsigned_abs(),
        ]
    }

    /// Makes a timestamp of the parts that [`Stamp::date_parts`] returns: with 17 digits if `has_millis`, else to the
    /// second.
    ///
    /// # Errors
    ///
    /// Fails if a part does not exist.
    pub fn from_parts(parts: [u16; 7], has_millis: bool) -> Result<Self, InvalidDate> {
        let [year, month, day, hour, minute, second, millis] = parts;
        let civil = Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
            nanos: if has_millis {
                i32::from(millis) * 1_000_000
            } else {
                0
            },
        };
        Ok(Self {
            time: civil.time()?,
            millis: has_millis,
        })
    }

    /// Reads the date of an ARC record: 14 digits, or 17, or the 12 of the oldest files.
    ///
    /// # Errors
    ///
    /// Fails if the text has another number of digits, or names a time that does not exist.
    pub fn from_arc(text: &str) -> Result<Self, InvalidDate> {
        match text.len() {
            12 => Self::from_query(text, Fill::First),
            _ => text.parse(),
        }
    }

    /// Reads a timestamp of a query: 1 to 14 digits, or 17, filled up to one end of the span that they name.
    ///
    /// A month, day or time that begins but is cut (`20161`) is filled up with its smallest or largest digit that
    /// exists.
    ///
    /// # Errors
    ///
    /// Fails if the text has another number of digits, or names no time that exists.
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
        let time = Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
            nanos: 0,
        }
        .time()?;
        Ok(Self {
            time,
            millis: false,
        })
    }

    /// Returns the moment. The last day of the year 9999 is the last moment that a [`Timestamp`] has.
    pub fn time(self) -> Timestamp {
        moment(self.time)
    }

    /// Returns whether the timestamp is written with 17 digits.
    pub fn has_millis(self) -> bool {
        self.millis
    }
}

impl FromStr for Stamp {
    type Err = InvalidDate;

    /// Reads exactly 14 or 17 digits.
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
        let next = |n| take(&mut rest, n, Fill::First, 0, 0);
        let parts = [4, 2, 2, 2, 2, 2, 3].map(next);
        Self::from_parts(parts, bytes.len() == 17)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = self.time;
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

/// Takes up to `n` digits; missing ones are filled so that the value stays between `low` and `high` where it can.
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

/// Returns the value of at most four digits.
fn number(digits: &[u8]) -> u16 {
    digits
        .iter()
        .fold(0, |n, d| n * 10 + u16::from(d.wrapping_sub(b'0') % 10))
}
