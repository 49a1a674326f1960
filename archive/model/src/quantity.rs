//! Numbers with a unit, as people write them in settings: `"10 GB"`, `"30 d"`.
//!
//! Whole numbers only, one unit each: a text means exactly the number that it says, and a printed one reads back equal.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// A number of bytes: `"10 GB"` (decimal), `"2 GiB"` (binary), or a plain integer.
///
/// ```
/// use archive_model::ByteSize;
///
/// let size: ByteSize = "2 GiB".parse()?;
/// assert_eq!(size.bytes(), 2 << 30);
/// assert_eq!("2".parse::<ByteSize>()?.bytes(), 2);
/// # Ok::<(), archive_model::InvalidQuantity>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// A length of time in whole milliseconds: `"250 ms"`, `"90 s"`, `"15 min"`, `"24 h"`, `"30 d"`.
///
/// ```
/// use archive_model::Period;
/// use std::time::Duration;
///
/// let period: Period = "90 s".parse()?;
/// assert_eq!(period.duration(), Duration::from_secs(90));
/// # Ok::<(), archive_model::InvalidQuantity>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(u64);

/// The reason why a text is not a number with a unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuantity {
    /// The text does not begin with a whole number.
    #[error("`{0}` does not begin with a whole number; write for example `{1}`")]
    Number(String, &'static str),
    /// The text has no unit, or an unknown one.
    #[error("`{text}` has no known unit; the units are {known}")]
    Unit {
        /// The text that was given.
        text: String,
        /// The units that are known.
        known: String,
    },
    /// The quantity is more than 2⁶⁴ − 1 bytes or milliseconds.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

/// The reason why a quantity cannot be set: it is 0, and nothing works with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZeroSetting {
    /// A period without any length.
    #[error("{0} must be longer than 0")]
    Period(&'static str),
    /// A size of nothing.
    #[error("{0} must be more than 0")]
    Size(&'static str),
}

/// The names of units and their factors, the smallest first.
type Units = [(&'static str, u64)];

const SIZES: &Units = &[
    ("B", 1),
    ("kB", 1000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
    ("PB", 1_000_000_000_000_000),
    ("PiB", 1 << 50),
];
const PERIODS: &Units = &[
    ("ms", 1),
    ("s", 1000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

impl ByteSize {
    /// Makes the size of a number of bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Returns whether the size is that of nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Checks that the size is not 0. `setting` is the name of the setting that has it.
    ///
    /// # Errors
    ///
    /// [`ZeroSetting::Size`] if it is.
    pub const fn refuse_zero(self, setting: &'static str) -> Result<(), ZeroSetting> {
        if self.is_zero() {
            return Err(ZeroSetting::Size(setting));
        }
        Ok(())
    }
}

impl Period {
    /// Makes a period of a number of milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Makes a period of a number of seconds, or the longest period where that number is too large.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Returns the period as the standard library's duration.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// Returns whether the period has no length.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Checks that the period has a length. `setting` is the name of the setting that has it.
    ///
    /// # Errors
    ///
    /// [`ZeroSetting::Period`] if it has none.
    pub const fn refuse_zero(self, setting: &'static str) -> Result<(), ZeroSetting> {
        if self.is_zero() {
            return Err(ZeroSetting::Period(setting));
        }
        Ok(())
    }
}

impl From<Period> for Duration {
    fn from(period: Period) -> Self {
        period.duration()
    }
}

impl FromStr for ByteSize {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(bytes) => Ok(Self(bytes)),
            Err(_) => parse(text, SIZES, "10 GB").map(Self),
        }
    }
}

impl FromStr for Period {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, PERIODS, "15 min").map(Self)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0, SIZES, f)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0, PERIODS, f)
    }
}

fn parse(text: &str, units: &Units, example: &'static str) -> Result<u64, InvalidQuantity> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() || unit.starts_with(['.', ',', '_']) {
        return Err(InvalidQuantity::Number(text.to_owned(), example));
    }
    let unit = unit.trim_start();
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let known = units
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", ");
        return Err(InvalidQuantity::Unit {
            text: text.to_owned(),
            known,
        });
    };
    let number = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(*factor));
    number.ok_or_else(|| InvalidQuantity::TooLarge(text.to_owned()))
}

/// Writes a value with the unit that gives the smallest number without rounding.
fn show(value: u64, units: &Units, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let exact = units
        .iter()
        .filter(|(_, factor)| value.is_multiple_of(*factor));
    match exact.min_by_key(|(_, factor)| value / factor) {
        Some((name, factor)) => write!(f, "{} {name}", value / factor),
        None => write!(f, "{value}"),
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"10 GB\" or \"512 MiB\", or a number of bytes")
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(bytes))
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
                u64::try_from(bytes)
                    .map(ByteSize)
                    .or(Err(E::invalid_value(de::Unexpected::Signed(bytes), &self)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Bytes)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Period;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time with its unit, such as \"15 min\" or \"30 d\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Period, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a setting of nothing passes, one of something does not, or the error does not name the setting.
    #[test]
    fn setting_of_zero_is_refused_by_name() {
        let size = ByteSize::from_bytes;
        let period = Period::from_millis;
        assert_eq!(size(1).refuse_zero("a.size"), Ok(()));
        assert_eq!(period(1).refuse_zero("a.time"), Ok(()));
        let text = |refused: Result<(), ZeroSetting>| refused.unwrap_err().to_string();
        assert_eq!(
            text(size(0).refuse_zero("a.size")),
            "a.size must be more than 0"
        );
        assert_eq!(
            text(period(0).refuse_zero("a.time")),
            "a.time must be longer than 0"
        );
    }

    /// Fails if a size is read as another one, or is not printed in its shortest exact form.
    #[test]
    fn sizes_are_read_and_written() {
        let check = |text: &str, bytes: u64, shown: &str| {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
            assert_eq!(ByteSize(bytes).to_string(), shown);
            assert_eq!(shown.parse(), Ok(ByteSize(bytes)), "{shown}");
        };
        check("10 GB", 10_000_000_000, "10 GB");
        check("2GiB", 2 << 30, "2 GiB");
        check(" 512 MiB ", 512 << 20, "512 MiB");
        check("1024", 1024, "1 KiB");
        check("0 B", 0, "0 B");
        check("1000 kB", 1_000_000, "1 MB");
        check("18446744073709551615", u64::MAX, "18446744073709551615 B");
    }

    /// Fails if a period is read as another one, or is not printed in its shortest exact form.
    #[test]
    fn periods_are_read_and_written() {
        let check = |text: &str, millis: u64, shown: &str| {
            assert_eq!(text.parse(), Ok(Period(millis)), "{text}");
            assert_eq!(Period(millis).to_string(), shown);
            assert_eq!(shown.parse(), Ok(Period(millis)), "{shown}");
        };
        check("30 d", 30 * 86_400_000, "30 d");
        check("15 min", 900_000, "15 min");
        check("250 ms", 250, "250 ms");
        check("90 s", 90_000, "90 s");
        check("24 h", 86_400_000, "1 d");
        check("0 s", 0, "0 ms");
        assert_eq!(Period::from_secs(90).duration(), Duration::from_secs(90));
    }

    /// Fails if a quantity is rounded, cut or guessed, or the error does not say what to write.
    #[test]
    fn inexact_quantity_is_refused() {
        let size = |text: &str| text.parse::<ByteSize>().unwrap_err().to_string();
        let period = |text: &str| text.parse::<Period>().unwrap_err().to_string();
        assert!(
            size("10 Gb").contains("no known unit; the units are B, kB, KiB, MB"),
            "{}",
            size("10 Gb")
        );
        assert!(
            size("1.5 GB").contains("whole number"),
            "{}",
            size("1.5 GB")
        );
        assert!(size("-1 GB").contains("whole number"), "{}", size("-1 GB"));
        assert!(size("").contains("whole number"), "{}", size(""));
        assert!(
            size("20000 PB").contains("too large"),
            "{}",
            size("20000 PB")
        );
        assert!(
            size("99999999999999999999 B").contains("too large"),
            "{}",
            size("99999999999999999999 B")
        );
        assert!(
            period("30").contains("no known unit; the units are ms, s, min, h, d"),
            "{}",
            period("30")
        );
        assert!(
            period("1 h 30 min").contains("no known unit"),
            "{}",
            period("1 h 30 min")
        );
        assert!(
            period("soon").contains("whole number"),
            "{}",
            period("soon")
        );
    }
}
