//! Keys of rows: where a capture stands in the table.
//!
//! The bytes are those of `FORMAT.md`: the key of the URL, a zero byte, the time, the number of the file, and the
//! position in it.

use archive_db::{InvalidTableKey, Key};

use crate::moment::{self, Moment};

/// Ends the key of a URL: less than every byte in one.
const END: u8 = 0;

/// The key of a row. Sorts as its bytes do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The key of the URL: no byte below 0x21.
    pub(crate) key: String,
    /// The time of the capture.
    pub(crate) time: Moment,
    /// The number of the capture's file.
    pub(crate) file: u32,
    /// The position of the capture in that file.
    pub(crate) position: Position,
}

/// The position of a capture in its file, or in the input of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Position {
    /// The offset of the capture's record.
    Offset(u64),
    /// The number of the line in the input: the line names no file or no offset.
    Line(u64),
}

/// Added to the length of a number in the first byte of a line's position.
const LINE: u8 = 0x10;

impl Place {
    /// Returns the place before every capture of this key from this moment on.
    pub(crate) fn before_time(key: &str, time: Moment) -> Self {
        Self {
            key: key.to_owned(),
            time,
            file: 0,
            position: Position::Offset(0),
        }
    }

    /// Returns the bytes of the key.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.key.len() + 21);
        self.encode(&mut bytes);
        bytes
    }
}

impl Key for Place {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key.as_bytes());
        out.push(END);
        out.extend_from_slice(&self.time.to_bytes());
        out.extend_from_slice(&self.file.to_be_bytes());
        let (kind, number) = match self.position {
            Position::Offset(offset) => (0, offset),
            Position::Line(line) => (LINE, line),
        };
        let bytes = number.to_be_bytes();
        let zeros = (number.leading_zeros() / 8) as usize;
        let tail = &bytes[zeros..];
        out.push(kind + u8::try_from(tail.len()).expect("a number has eight bytes"));
        out.extend_from_slice(tail);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, InvalidTableKey> {
        let end = bytes.iter().position(|byte| *byte == END);
        let (key, rest) = bytes.split_at(end.ok_or(InvalidTableKey::Cut)?);
        let key = str::from_utf8(key).or(Err(InvalidTableKey::NotUtf8))?;
        let [_, rest @ ..] = rest else {
            return Err(InvalidTableKey::Cut);
        };
        let (time, rest) = rest
            .split_first_chunk::<{ moment::BYTES }>()
            .ok_or(InvalidTableKey::Cut)?;
        let (file, rest) = rest.split_first_chunk::<4>().ok_or(InvalidTableKey::Cut)?;
        let (kind, rest) = rest.split_first().ok_or(InvalidTableKey::Cut)?;
        let length = usize::from(kind & 0x0f);
        let kind = kind & 0xf0;
        if length > 8 || !matches!(kind, 0 | LINE) {
            return Err(InvalidTableKey::Escape(kind));
        }
        let (digits, rest) = rest.split_at_checked(length).ok_or(InvalidTableKey::Cut)?;
        *bytes = rest;
        let number = digits
            .iter()
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Ok(Self {
            key: key.to_owned(),
            time: Moment::from_bytes(*time),
            file: u32::from_be_bytes(*file),
            position: if kind == LINE {
                Position::Line(number)
            } else {
                Position::Offset(number)
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<Place> {
        let mut places = Vec::new();
        for key in ["com,a)/", "com,a)/!", "com,a)/b", "com,a,b)/", "com,a0)/"] {
            for time in ["00000101000000", "20200101000000", "20200101000000123"] {
                for file in [0, 1, 255, 256, u32::MAX] {
                    for number in [0, 1, 255, 256, 1 << 32, u64::MAX] {
                        for position in [Position::Offset(number), Position::Line(number)] {
                            places.push(Place {
                                key: key.to_owned(),
                                time: Moment::from_stamp(time.parse().unwrap()),
                                file,
                                position,
                            });
                        }
                    }
                }
            }
        }
        places
    }

    /// Fails if rows stand in another order than that of key, time, file and position, or a key is not read back.
    #[test]
    fn bytes_sort_as_places_and_read_back() {
        let mut places = places();
        places.sort();
        let bytes: Vec<_> = places.iter().map(Place::to_bytes).collect();
        assert!(bytes.is_sorted_by(|a, b| a < b));
        for (place, bytes) in places.iter().zip(&bytes) {
            assert_eq!(Place::decode_last(bytes).as_ref(), Ok(place));
            for cut in 0..bytes.len() {
                assert!(Place::decode_last(&bytes[..cut]).is_err(), "{place:?}");
            }
        }
    }

    /// Fails if a damaged key panics or passes for a place.
    #[test]
    fn bytes_of_no_place_are_refused() {
        let mut bytes = places()[0].to_bytes();
        let kind = bytes.len() - 1;
        for wrong in [0x09, 0x20, 0x19, 0xff] {
            bytes[kind] = wrong;
            bytes.extend([0; 16]);
            assert!(Place::decode_last(&bytes).is_err(), "{wrong:#x}");
            bytes.truncate(kind + 1);
        }
        assert_eq!(
            Place::decode_last(b"\xff\0"),
            Err(InvalidTableKey::NotUtf8),
            "a key is text"
        );
    }
}
