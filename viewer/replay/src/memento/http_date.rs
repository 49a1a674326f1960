//! Dates of HTTP as Memento has them: RFC 1123, in GMT.

use archive_formats::date::{InvalidDate, Stamp};
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use thiserror::Error;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// The longest date that is looked at.
const LONGEST: usize = 64;

/// The reason why a value of `Accept-Datetime` is no date. The answer is 400.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidDatetime {
    /// The value is written in a form that is no date of HTTP.
    #[error("`{}` is not a date; Accept-Datetime is written as in Thu, 31 May 2007 20:35:00 GMT", .0.escape_debug())]
    Syntax(String),
    /// The value has the form of a date, and no calendar has such a date.
    #[error("cannot read Accept-Datetime: {0}")]
    Calendar(InvalidDate),
    /// Several dates that differ.
    #[error("Accept-Datetime is there more than once, with different dates")]
    Several,
}

/// Returns a date as HTTP writes it: `Thu, 31 May 2007 20:35:00 GMT`. Milliseconds are cut off.
pub fn http_date(stamp: Stamp) -> String {
    let time = stamp.time().to_zoned(TimeZone::UTC).datetime();
    let weekday = match time.weekday() {
        Weekday::Monday => "Mon",
        Weekday::Tuesday => "Tue",
        Weekday::Wednesday => "Wed",
        Weekday::Thursday => "Thu",
        Weekday::Friday => "Fri",
        Weekday::Saturday => "Sat",
        Weekday::Sunday => "Sun",
    };
    let month = usize::try_from(time.month() - 1).ok();
    let month = month.and_then(|month| MONTHS.get(month)).unwrap_or(&"Jan");
    format!(
        "{weekday}, {:02} {month} {:04} {:02}:{:02}:{:02} GMT",
        time.day(),
        time.year(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

/// Returns the date of `Accept-Datetime`, from all fields of this name; `None` if there are none.
///
/// The weekday has to be one, and may be a wrong one: people write these by hand.
///
/// # Errors
/// Fails if a value is no date in the form of RFC 1123 and in GMT, if the calendar does not have it, or if values
/// differ.
pub fn accept_datetime<'a>(
    values: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Option<Stamp>, InvalidDatetime> {
    let mut found = None;
    for value in values {
        let stamp = parse(value)?;
        if found.is_some_and(|known| known != stamp) {
            return Err(InvalidDatetime::Several);
        }
        found = Some(stamp);
    }
    Ok(found)
}

fn parse(value: &[u8]) -> Result<Stamp, InvalidDatetime> {
    let digits = digits(value).ok_or_else(|| {
        let start = value.get(..LONGEST).unwrap_or(value);
        InvalidDatetime::Syntax(String::from_utf8_lossy(start).into_owned())
    })?;
    digits.parse().map_err(InvalidDatetime::Calendar)
}

/// Returns the 14 digits of a date.
fn digits(value: &[u8]) -> Option<String> {
    let value = value.trim_ascii();
    if value.len() > LONGEST {
        return None;
    }
    let text = str::from_utf8(value).ok()?;
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let weekday = words.next()?.strip_suffix(',')?;
    let day = number(words.next()?, 1, 2)?;
    let month = words.next()?;
    let year = number(words.next()?, 4, 4)?;
    let clock = words.next()?;
    let zone = words.next()?;
    let is_known = |names: &[&str], name: &str| {
        names
            .iter()
            .position(|known| known.eq_ignore_ascii_case(name))
    };
    is_known(&DAYS, weekday)?;
    let month = is_known(&MONTHS, month)? + 1;
    let mut parts = clock.split(':').map(|part| number(part, 2, 2));
    let hour = parts.next()??;
    let minute = parts.next()??;
    let second = parts.next()??;
    if parts.next().is_some() || words.next().is_some() || !zone.eq_ignore_ascii_case("GMT") {
        return None;
    }
    Some(format!(
        "{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}"
    ))
}

/// Returns a number with this many digits.
fn number(text: &str, least: usize, most: usize) -> Option<u16> {
    let is_number =
        (least..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}
