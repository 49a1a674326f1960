//! Times as paths name them: digits, and what they stand for.

use archive_formats::date::{Fill, InvalidDate, Stamp};

/// A time as a path names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedTime {
    digits: Box<str>,
    stamp: Stamp,
}

impl RequestedTime {
    /// Reads 1 to 14 digits, or 17.
    ///
    /// # Errors
    /// Fails if they are no date of the calendar.
    pub fn parse(digits: &str) -> Result<Self, InvalidDate> {
        Ok(Self {
            digits: digits.into(),
            stamp: Stamp::from_query(digits, Fill::Last)?,
        })
    }

    /// Returns the digits.
    pub fn digits(&self) -> &str {
        &self.digits
    }

    /// Returns the end of what the digits name: `2020` asks for the capture that is nearest to the end of that year, as
    /// in pywb.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Returns whether the digits name a second, so that they can be the time of a capture.
    pub fn is_complete(&self) -> bool {
        self.digits.len() >= 14
    }
}

/// The span of time that a calendar shows: all of it, or the time that begins with some digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedSpan(Option<(Box<str>, Stamp, Stamp)>);

impl RequestedSpan {
    pub(super) fn parse(digits: &str) -> Result<Self, InvalidDate> {
        if digits.is_empty() {
            return Ok(Self(None));
        }
        let first = Stamp::from_query(digits, Fill::First)?;
        let last = Stamp::from_query(digits, Fill::Last)?;
        Ok(Self(Some((digits.into(), first, last))))
    }

    /// Returns the digits; empty for all time.
    pub fn digits(&self) -> &str {
        self.0.as_ref().map_or("", |(digits, _, _)| digits)
    }

    /// Returns the first and the last second; `None` for all time.
    pub fn bounds(&self) -> Option<(Stamp, Stamp)> {
        self.0.as_ref().map(|(_, first, last)| (*first, *last))
    }
}
