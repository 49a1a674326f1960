//! Ranges: which of the bytes are sent (RFC 9110, section 14).
//!
//! One range of bytes is understood; several, other units and nonsense are ignored, as the standard allows. `If-Range`
//! needs no look: what is archived never changes.

use super::ReplyHead;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMethod {
    /// Head and bytes are sent.
    Get,
    /// The head is sent.
    Head,
}

/// The bytes of an entity that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The number of bytes that are passed over.
    pub skip: u64,
    /// The number of bytes that are sent then; `None` for all that follow.
    pub take: Option<u64>,
}

impl Extent {
    const NOTHING: Self = Self {
        skip: 0,
        take: Some(0),
    };

    /// Returns whether all bytes are sent, so that they can be held against their digest.
    pub fn is_whole(&self, length: Option<u64>) -> bool {
        self.skip == 0 && (self.take.is_none() || self.take == length)
    }
}

/// The bytes that a `Range` asks for.
enum WantedBytes {
    Everything,
    Part { first: u64, last: u64 },
    Unsatisfiable,
}

impl ReplyHead {
    /// Adds the length, and what `Range` asks for, to the head; says which bytes are sent.
    ///
    /// `ranges` are the values of all `Range` fields. `length` is that of the entity; without it no range can be
    /// answered.
    pub fn with_extent(
        mut self,
        method: ReplyMethod,
        ranges: &[&[u8]],
        length: Option<u64>,
    ) -> (Self, Extent) {
        if matches!(self.status, 204 | 205 | 304) {
            return (self, Extent::NOTHING);
        }
        let (first, count) = match (length, ranges) {
            (Some(length), [range]) if method == ReplyMethod::Get && self.status == 200 => {
                match wanted_bytes(range, length) {
                    WantedBytes::Everything => (0, Some(length)),
                    WantedBytes::Part { first, last } => {
                        self.status = 206;
                        self.add_field("Content-Range", format!("bytes {first}-{last}/{length}"));
                        (first, Some(last - first + 1))
                    }
                    WantedBytes::Unsatisfiable => {
                        self.status = 416;
                        self.add_field("Content-Range", format!("bytes */{length}"));
                        (0, Some(0))
                    }
                }
            }
            (length, _) => (0, length),
        };
        if let Some(count) = count {
            self.add_field("Content-Length", count.to_string());
        }
        if length.is_some() {
            self.add_field("Accept-Ranges", "bytes");
        }
        let extent = match method {
            ReplyMethod::Get => Extent {
                skip: first,
                take: count,
            },
            ReplyMethod::Head => Extent::NOTHING,
        };
        (self, extent)
    }
}

fn wanted_bytes(range: &[u8], length: u64) -> WantedBytes {
    let parsed = parse(range);
    match parsed {
        Some((Some(first), _)) if first >= length => WantedBytes::Unsatisfiable,
        Some((Some(first), last)) => WantedBytes::Part {
            first,
            last: last.unwrap_or(u64::MAX).min(length - 1),
        },
        Some((None, Some(0))) => WantedBytes::Unsatisfiable,
        Some((None, Some(_))) if length == 0 => WantedBytes::Unsatisfiable,
        Some((None, Some(suffix))) => WantedBytes::Part {
            first: length.saturating_sub(suffix),
            last: length - 1,
        },
        None | Some((None, None)) => WantedBytes::Everything,
    }
}

/// Returns the first and last byte, or a suffix as last without a first; `None` if the range is to be ignored.
fn parse(range: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let text = str::from_utf8(range).ok()?;
    let (unit, ranges) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = ranges.trim().split_once('-')?;
    let number = |digits: &str| -> Option<Option<u64>> {
        let digits = digits.trim();
        if digits.is_empty() {
            return Some(None);
        }
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        // A number beyond all numbers is behind every end.
        is_number.then(|| Some(digits.parse().unwrap_or(u64::MAX)))
    };
    let first = number(first)?;
    let last = number(last)?;
    match (first, last) {
        (Some(first), Some(last)) if first > last => None,
        (None, None) => None,
        other => Some(other),
    }
}
