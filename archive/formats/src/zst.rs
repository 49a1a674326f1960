//! Zstandard frames as `.warc.zst` has them: read only, with the dictionary that the file brings along.
//!
//! Owns frame headers, the dictionary frame and the bounds: no window beyond 8 MiB, no dictionary beyond 8 MiB. Does
//! not know the content of a frame.

use std::fmt;
use std::io;

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

use crate::defect::Class;
use crate::gzip::{Step, Then};

/// The first bytes of a frame.
pub(crate) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The first bytes of the frame with the dictionary.
const DICTIONARY_FRAME: u32 = 0x184d_2a5d;

/// The first bytes of a dictionary with an identifier.
const DICTIONARY: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// The largest window, as a power of two: what the standard demands of a reader.
const WINDOW: u32 = 23;

/// The largest dictionary, in bytes.
pub(crate) const LARGEST_DICTIONARY: usize = 8 * 1024 * 1024;

/// The result of reading the first bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// A frame that needs the dictionary of this number, or none (0).
    Frame { dictionary: u32 },
    /// A frame to skip: eight bytes and then this many. One kind of these frames has the dictionary.
    Skippable { dictionary: bool, length: u32 },
    /// The beginning of a header, whose end is missing.
    Partial,
    /// The bytes are no header.
    No,
}

/// Reads the header of a frame.
pub(crate) fn read_zst_head(bytes: &[u8]) -> Head {
    let Some(&[a, b, c, d]) = bytes.get(..4) else {
        let known = bytes.len();
        let skippable = [0x2a, 0x4d, 0x18];
        let may_skip = match bytes.split_first() {
            Some((first, rest)) => first & 0xf0 == 0x50 && skippable.starts_with(rest),
            None => true,
        };
        return if may_skip || MAGIC.get(..known) == Some(bytes) {
            Head::Partial
        } else {
            Head::No
        };
    };
    let magic = u32::from_le_bytes([a, b, c, d]);
    if magic & 0xffff_fff0 == 0x184d_2a50 {
        return match bytes.get(4..8) {
            Some(&[a, b, c, d]) => Head::Skippable {
                dictionary: magic == DICTIONARY_FRAME,
                length: u32::from_le_bytes([a, b, c, d]),
            },
            _ => Head::Partial,
        };
    }
    if [a, b, c, d] != MAGIC {
        return Head::No;
    }
    let Some(&descriptor) = bytes.get(4) else {
        return Head::Partial;
    };
    let at = if descriptor & 0x20 == 0 { 6 } else { 5 };
    let length = match descriptor & 3 {
        0 => 0,
        1 => 1,
        2 => 2,
        _ => 4,
    };
    let Some(number) = bytes.get(at..at + length) else {
        return Head::Partial;
    };
    Head::Frame {
        dictionary: number
            .iter()
            .rev()
            .fold(0, |sum, &byte| (sum << 8) | u32::from(byte)),
    }
}

/// Decompresses one frame after the other.
pub(crate) struct Unzstd {
    context: DCtx<'static>,
    dictionary: Option<u32>,
}

impl fmt::Debug for Unzstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unzstd")
            .field("dictionary", &self.dictionary)
            .finish_non_exhaustive()
    }
}

impl Unzstd {
    pub(crate) fn new() -> io::Result<Self> {
        let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        context
            .set_parameter(DParameter::WindowLogMax(WINDOW))
            .map_err(|code| io::Error::other(get_error_name(code)))?;
        Ok(Self {
            context,
            dictionary: None,
        })
    }

    /// Reads the content of the dictionary frame: a dictionary, or a compressed one.
    pub(crate) fn with_dictionary(content: &[u8]) -> Result<Self, String> {
        let plain;
        let dictionary = if content.starts_with(&MAGIC) {
            plain = unpack(content)?;
            &plain
        } else {
            content
        };
        let number = dictionary
            .strip_prefix(&DICTIONARY)
            .and_then(|rest| rest.first_chunk())
            .map(|number| u32::from_le_bytes(*number))
            .ok_or("the dictionary frame has no dictionary in it")?;
        let mut unzstd = Self::new().map_err(|error| error.to_string())?;
        unzstd
            .context
            .load_dictionary(dictionary)
            .map_err(|code| format!("the dictionary cannot be loaded: {}", get_error_name(code)))?;
        unzstd.dictionary = Some(number);
        Ok(unzstd)
    }

    /// Begins a frame, whose header is not consumed.
    pub(crate) fn begin_frame(&mut self, wanted: u32) -> Result<(), (Class, String)> {
        if wanted != 0 && self.dictionary != Some(wanted) {
            let words = match self.dictionary {
                Some(number) => {
                    format!("the frame wants dictionary {wanted}, the file brings {number}")
                }
                None => format!(
                    "the frame wants dictionary {wanted}, the file brings none: its first frame is missing"
                ),
            };
            return Err((Class::Dictionary, words));
        }
        match self.context.reset(ResetDirective::SessionOnly) {
            Ok(_) => Ok(()),
            Err(code) => Err((Class::Deflate, get_error_name(code).into())),
        }
    }

    /// Decompresses from `input` into `output`.
    pub(crate) fn inflate_step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let mut from = InBuffer::around(input);
        let mut to = OutBuffer::around(output);
        match self.context.decompress_stream(&mut to, &mut from) {
            Ok(left) => Step {
                consumed: from.pos(),
                produced: to.pos(),
                then: if left == 0 { Then::End } else { Then::Continue },
            },
            Err(code) => {
                let words = get_error_name(code);
                let class = if words.contains("checksum") {
                    Class::Crc
                } else {
                    Class::Deflate
                };
                Step {
                    consumed: 0,
                    produced: 0,
                    then: Then::Broken(class, format!("compressed data is damaged: {words}")),
                }
            }
        }
    }
}

/// Decompresses a dictionary.
fn unpack(mut content: &[u8]) -> Result<Vec<u8>, String> {
    let mut unzstd = Unzstd::new().map_err(|error| error.to_string())?;
    let mut dictionary = vec![0; content.len().saturating_mul(4).min(LARGEST_DICTIONARY)];
    let mut length = 0;
    loop {
        if length == dictionary.len() {
            if length == LARGEST_DICTIONARY {
                return Err(format!("the dictionary is over {LARGEST_DICTIONARY} bytes"));
            }
            dictionary.resize((length * 2).clamp(4096, LARGEST_DICTIONARY), 0);
        }
        let step = unzstd.inflate_step(content, dictionary.get_mut(length..).unwrap_or_default());
        content = content.get(step.consumed..).unwrap_or_default();
        length += step.produced;
        match step.then {
            Then::End => {
                dictionary.truncate(length);
                return Ok(dictionary);
            }
            Then::Continue if step.consumed + step.produced == 0 => {
                return Err("the dictionary is cut".into());
            }
            Then::Continue => {}
            Then::Broken(_, words) => return Err(format!("the dictionary: {words}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a cut frame header passes for whole, or the dictionary id is read at a wrong place or in the wrong byte
    /// order.
    #[test]
    fn headers_of_frames() {
        let frame = |rest: &[u8]| [&MAGIC[..], rest].concat();
        for (bytes, expected) in [
            (Vec::new(), Head::Partial),
            (vec![0x28], Head::Partial),
            (vec![0x29], Head::No),
            (vec![0x5d, 0x2a], Head::Partial),
            (b"WARC".to_vec(), Head::No),
            (frame(&[]), Head::Partial),
            (frame(&[0x20]), Head::Frame { dictionary: 0 }),
            (frame(&[0x21]), Head::Partial),
            (frame(&[0x21, 7]), Head::Frame { dictionary: 7 }),
            (
                frame(&[0x03, 0, 1, 2, 0, 0]),
                Head::Frame { dictionary: 513 },
            ),
            (
                vec![0x5d, 0x2a, 0x4d, 0x18, 3, 0, 0, 0],
                Head::Skippable {
                    dictionary: true,
                    length: 3,
                },
            ),
        ] {
            assert_eq!(read_zst_head(&bytes), expected, "{bytes:?}");
        }
    }
}
