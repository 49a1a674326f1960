//! Where a query stopped, as text that a caller hands back.

use std::fmt;
use std::str::FromStr;

use archive_db::Key as _;
use data_encoding::BASE64URL_NOPAD;
use thiserror::Error;

use crate::place::Place;

/// The form of a cursor.
const VERSION: u8 = 1;

/// The place behind which a query goes on: opaque text of letters, digits, `-` and `_`.
///
/// It names a capture and no count of captures, so that nothing is left out or repeated when others are added or taken away
/// meanwhile. It is good for the query that gave it, and not for another index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The last capture that was read: forwards, and backwards. One of them, unless the query walks outwards from a time.
    pub(crate) places: [Option<Place>; 2],
    /// The value of the last group of each collapse.
    pub(crate) values: Vec<String>,
}

/// Text that is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it is no resume key of this server; begin the query anew")]
pub struct InvalidCursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![VERSION];
        let mut put = |part: Option<&[u8]>| {
            let part = part.map(|part| (part, u32::try_from(part.len()).unwrap_or(u32::MAX)));
            match part {
                None => bytes.extend(u32::MAX.to_be_bytes()),
                Some((part, length)) => {
                    bytes.extend(length.to_be_bytes());
                    bytes.extend(part);
                }
            }
        };
        for place in &self.places {
            put(place.as_ref().map(Place::to_bytes).as_deref());
        }
        for value in &self.values {
            put(Some(value.as_bytes()));
        }
        f.write_str(&BASE64URL_NOPAD.encode(&bytes))
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes());
        let bytes = bytes.or(Err(InvalidCursor))?;
        let mut rest = bytes.strip_prefix(&[VERSION]).ok_or(InvalidCursor)?;
        let forwards = take_place(&mut rest)?;
        let backwards = take_place(&mut rest)?;
        let mut values = Vec::new();
        while !rest.is_empty() {
            let value = take(&mut rest)?.ok_or(InvalidCursor)?;
            values.push(str::from_utf8(value).or(Err(InvalidCursor))?.to_owned());
        }
        Ok(Self {
            places: [forwards, backwards],
            values,
        })
    }
}

fn take<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, InvalidCursor> {
    let (length, tail) = rest.split_first_chunk::<4>().ok_or(InvalidCursor)?;
    let length = u32::from_be_bytes(*length);
    if length == u32::MAX {
        *rest = tail;
        return Ok(None);
    }
    let length = usize::try_from(length).or(Err(InvalidCursor))?;
    let (part, tail) = tail.split_at_checked(length).ok_or(InvalidCursor)?;
    *rest = tail;
    Ok(Some(part))
}

fn take_place(rest: &mut &[u8]) -> Result<Option<Place>, InvalidCursor> {
    let bytes = take(rest)?;
    let place = bytes.map(Place::decode_last).transpose();
    place.or(Err(InvalidCursor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;

    fn cursor(places: [bool; 2], values: &[&str]) -> Cursor {
        let time = Moment::of("20200101000000".parse().unwrap());
        let place = |is_there: bool| is_there.then(|| Place::before("dk,a)/ø", time));
        Cursor {
            places: places.map(place),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        }
    }

    /// Fails if a cursor changes by its way through a URL, or a cut or foreign one panics.
    #[test]
    fn cursors_read_back_and_others_are_refused() {
        for places in [[true, false], [false, true], [true, true], [false, false]] {
            for values in [&[][..], &["200", "", "text/html"]] {
                let cursor = cursor(places, values);
                let text = cursor.to_string();
                let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
                assert!(text.bytes().all(is_plain), "{text}");
                assert_eq!(text.parse(), Ok(cursor));
                for cut in 0..text.len() {
                    // A cut may fall between two values.
                    let cut = text[..cut].parse::<Cursor>();
                    assert!(cut.is_err() || !values.is_empty());
                }
            }
        }
        for wrong in ["", "x", "AAAA", "com,a)/ 2020", "Af____8", "Af____7_____"] {
            assert_eq!(wrong.parse::<Cursor>(), Err(InvalidCursor), "{wrong}");
        }
    }
}
