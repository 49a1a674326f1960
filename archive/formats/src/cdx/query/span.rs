//! A span of time, as queries give it: from a timestamp to a timestamp, both included.

use crate::date::{Fill, InvalidDate, Stamp};

/// A span of time; an end that is absent is open.
///
/// ```
/// use archive_formats::cdx::query::TimeSpan;
///
/// let year = TimeSpan::parse("2026", "2026")?;
/// assert!(year.contains("20261231235959".parse()?));
/// assert!(!year.contains("20270101000000".parse()?));
/// assert!(TimeSpan::parse("2027", "2026")?.is_empty());
/// # Ok::<(), archive_formats::date::InvalidDate>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSpan {
    /// The first timestamp of the span.
    pub from: Option<Stamp>,
    /// The last timestamp of the span; with 14 digits, its whole second.
    pub to: Option<Stamp>,
}

impl TimeSpan {
    /// Reads the ends of a span: 1 to 14 digits each, filled up to the first or last second that they name. An empty
    /// text leaves its end open. A span whose end is before its beginning is empty, and no error.
    ///
    /// # Errors
    ///
    /// Fails if a text has other characters or more digits, or names a day or time that does not exist.
    pub fn parse(from: &str, to: &str) -> Result<Self, InvalidDate> {
        Ok(Self {
            from: bound(from, Fill::First)?,
            to: bound(to, Fill::Last)?,
        })
    }

    /// Returns whether a timestamp lies in the span.
    pub fn contains(&self, stamp: Stamp) -> bool {
        self.from
            .is_none_or(|from| !precedes(stamp, from, from.has_millis()))
            && self
                .to
                .is_none_or(|to| !precedes(to, stamp, to.has_millis()))
    }

    /// Returns whether no timestamp can lie in the span.
    pub fn is_empty(&self) -> bool {
        matches!((self.from, self.to), (Some(from), Some(to)) if precedes(to, from, to.has_millis()))
    }
}

fn bound(text: &str, fill: Fill) -> Result<Option<Stamp>, InvalidDate> {
    if text.is_empty() {
        return Ok(None);
    }
    Stamp::from_query(text, fill).map(Some)
}

/// Returns whether `one` is before `other`, by milliseconds or by seconds.
fn precedes(one: Stamp, other: Stamp, by_millis: bool) -> bool {
    if by_millis {
        one.time().as_millisecond() < other.time().as_millisecond()
    } else {
        one.time().as_second() < other.time().as_second()
    }
}
