//! The lines of reports, and numbers as the reports of Heritrix write them.
//!
//! Owns rates with two decimals, durations by their units, and amounts of bytes. All arithmetic is in whole numbers, so
//! that a report is the same on every machine.

use std::fmt::{self, Write as _};
use std::time::Duration;

/// A report that is written line by line.
#[derive(Debug, Default)]
pub(crate) struct ReportText(String);

impl ReportText {
    /// Begins with a header line.
    pub(crate) fn with_header(header: &str) -> Self {
        Self(format!("{header}\n"))
    }

    /// Adds a line; its end is not part of `line`.
    pub(crate) fn push_line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ok = writeln!(self.0, "{line}").is_ok();
    }

    /// Returns the text.
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// A number with two decimals, of which those at the end that are zero are not written: `3.93`, `1.2`, `1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hundredths(pub u64);

impl Hundredths {
    /// Returns the quotient of two numbers, rounded. Zero if the divisor is zero.
    pub fn quotient(dividend: u128, divisor: u128) -> Self {
        let rounded = dividend
            .saturating_mul(100)
            .saturating_add(divisor / 2)
            .checked_div(divisor)
            .unwrap_or(0);
        Self(u64::try_from(rounded).unwrap_or(u64::MAX))
    }

    /// Returns the number of events in a second, on the average of a period. Zero for a period without length.
    pub fn per_second(count: u64, period: Duration) -> Self {
        Self::quotient(u128::from(count) * 1000, period.as_millis())
    }
}

impl fmt::Display for Hundredths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0 / 100;
        let decimals = self.0 % 100;
        match (decimals / 10, decimals % 10) {
            (0, 0) => write!(f, "{whole}"),
            (tenths, 0) => write!(f, "{whole}.{tenths}"),
            (tenths, hundredths) => write!(f, "{whole}.{tenths}{hundredths}"),
        }
    }
}

/// A duration by its units: `1m13s976ms`, `2d4h`, `0ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0.as_millis();
        if left == 0 {
            return f.write_str("0ms");
        }
        for (unit, milliseconds) in [
            ("d", 86_400_000),
            ("h", 3_600_000),
            ("m", 60_000),
            ("s", 1000),
            ("ms", 1),
        ] {
            let count = left / milliseconds;
            left %= milliseconds;
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

/// An amount of bytes, exact and for people: `1536 (1.5 KiB)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteCount(pub u64);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let step = (bytes.checked_ilog2().unwrap_or(0) / 10) as usize;
        let unit = units[step];
        let tenths = (u128::from(bytes) * 10) >> (10 * step);
        if tenths < 100 && !tenths.is_multiple_of(10) {
            write!(f, "{bytes} ({}.{} {unit})", tenths / 10, tenths % 10)
        } else {
            write!(f, "{bytes} ({} {unit})", tenths / 10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a rate gets more or fewer decimals than Heritrix writes, or a period of no length stops a report.
    #[test]
    fn rates_have_up_to_two_decimals() {
        for (count, milliseconds, expected) in [
            (0, 1000, "0"),
            (5, 4000, "1.25"),
            (12, 10_000, "1.2"),
            (2, 3000, "0.67"),
            (7, 0, "0"),
            (u64::MAX, 1, "184467440737095516.15"),
        ] {
            let rate = Hundredths::per_second(count, Duration::from_millis(milliseconds));
            assert_eq!(rate.to_string(), expected, "{count} in {milliseconds} ms");
        }
    }

    /// Fails if a unit of a duration is left out though it is not zero, or an empty one is written.
    #[test]
    fn durations_name_their_units() {
        for (milliseconds, expected) in [
            (0, "0ms"),
            (73_976, "1m13s976ms"),
            (187_200_000, "2d4h"),
            (60_001, "1m1ms"),
        ] {
            let duration = DurationText(Duration::from_millis(milliseconds));
            assert_eq!(duration.to_string(), expected);
        }
    }

    /// Fails if an amount is shown with the unit above or below its own.
    #[test]
    fn byte_counts_show_their_unit() {
        for (bytes, expected) in [
            (0, "0 (0 B)"),
            (1023, "1023 (1023 B)"),
            (1024, "1024 (1 KiB)"),
            (1536, "1536 (1.5 KiB)"),
            (45_678_901, "45678901 (43 MiB)"),
            (u64::MAX, "18446744073709551615 (15 EiB)"),
        ] {
            assert_eq!(ByteCount(bytes).to_string(), expected);
        }
    }
}
