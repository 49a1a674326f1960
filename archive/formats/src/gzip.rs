//! Gzip members: one member for each record, and the exact beginning and end of each.
//!
//! Owns the framing (RFC 1952) around raw deflate, so that the end of a member is exact and a wrong checksum is told
//! from a wrong length. Does not know the content of a member.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::defect::Class;

/// The first bytes of a member.
pub(crate) const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

/// The longest header of a member that is read: an extra field of 64 KiB, a name and a comment.
pub(crate) const LONGEST_HEADER: usize = 128 * 1024;

/// The result of reading the first bytes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// A header of this many bytes.
    Complete(usize),
    /// The beginning of a header, whose end is missing.
    Partial,
    /// The bytes are no header.
    No,
}

/// The place up to which the header of a member was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadCursor {
    /// The offset of the next text (name or comment), once the fields before it are complete.
    at: usize,
    /// The number of texts that have ended.
    texts: usize,
}

/// Reads the header of a member. A header beyond [`LONGEST_HEADER`] bytes is refused, whether it comes at once or not.
pub(crate) fn read_gzip_head(bytes: &[u8]) -> Head {
    resume_head(bytes, &mut HeadCursor::default())
}

/// Reads the header of a member of which more bytes have come. `cursor` belongs to this member, so that no text is
/// searched twice.
pub(crate) fn resume_head(bytes: &[u8], cursor: &mut HeadCursor) -> Head {
    let known = bytes.len().min(MAGIC.len());
    if bytes.get(..known) != MAGIC.get(..known) {
        return Head::No;
    }
    let (Some(&flags), true) = (bytes.get(3), bytes.len() >= 10) else {
        return Head::Partial;
    };
    if flags & RESERVED != 0 {
        return Head::No;
    }
    if cursor.at == 0 {
        let extra = if flags & HAS_EXTRA == 0 {
            0
        } else if let Some(&[low, high]) = bytes.get(10..12) {
            2 + usize::from(u16::from_le_bytes([low, high]))
        } else {
            return Head::Partial;
        };
        cursor.at = 10 + extra;
    }
    for flag in [HAS_NAME, HAS_COMMENT].into_iter().skip(cursor.texts) {
        if flags & flag != 0 {
            let rest = bytes.get(cursor.at..).unwrap_or_default();
            let Some(length) = memchr::memchr(0, rest) else {
                cursor.at = cursor.at.max(bytes.len());
                return if bytes.len() > LONGEST_HEADER {
                    Head::No
                } else {
                    Head::Partial
                };
            };
            cursor.at += length + 1;
        }
        cursor.texts += 1;
    }
    let checksum = if flags & HAS_CRC != 0 { 2 } else { 0 };
    match cursor.at + checksum {
        length if length > LONGEST_HEADER => Head::No,
        length if length > bytes.len() => Head::Partial,
        length => Head::Complete(length),
    }
}

/// The result of one step of decompression.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) consumed: usize,
    pub(crate) produced: usize,
    pub(crate) then: Then,
}

/// The state of a member after a step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The member continues; without progress, more input is needed.
    Continue,
    /// The member is complete.
    End,
    /// The data of the member contradict its framing.
    Broken(Class, String),
}

/// Decompresses one member after the other.
#[derive(Debug)]
pub(crate) struct Gunzip {
    inflate: Decompress,
    crc: Crc,
    /// The trailer, as far as it has come, once the data has ended.
    trailer: Option<Vec<u8>>,
}

impl Gunzip {
    pub(crate) fn new() -> Self {
        Self {
            inflate: Decompress::new(false),
            crc: Crc::new(),
            trailer: None,
        }
    }

    /// Begins a member, behind its header.
    pub(crate) fn begin_member(&mut self) {
        self.inflate.reset(false);
        self.crc.reset();
        self.trailer = None;
    }

    /// Decompresses from `input` into `output`.
    pub(crate) fn inflate_step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        if self.trailer.is_some() {
            return self.end(input, 0, 0);
        }
        let in_before = self.inflate.total_in();
        let out_before = self.inflate.total_out();
        let result = self
            .inflate
            .decompress(input, output, FlushDecompress::None);
        // A step does no more bytes than it was given, so that the differences fit.
        let consumed = usize::try_from(self.inflate.total_in() - in_before).unwrap_or(input.len());
        let produced =
            usize::try_from(self.inflate.total_out() - out_before).unwrap_or(output.len());
        self.crc.update(output.get(..produced).unwrap_or_default());
        match result {
            Ok(Status::StreamEnd) => {
                self.trailer = Some(Vec::new());
                self.end(
                    input.get(consumed..).unwrap_or_default(),
                    consumed,
                    produced,
                )
            }
            Ok(Status::Ok | Status::BufError) => Step {
                consumed,
                produced,
                then: Then::Continue,
            },
            Err(error) => Step {
                consumed,
                produced,
                then: Then::Broken(
                    Class::Deflate,
                    format!("compressed data is damaged: {error}"),
                ),
            },
        }
    }

    /// Reads the checksum and the length behind the data.
    fn end(&mut self, input: &[u8], consumed: usize, produced: usize) -> Step {
        let mut trailer = self.trailer.take().unwrap_or_default();
        let used = input.len().min(8 - trailer.len().min(8));
        trailer.extend_from_slice(input.get(..used).unwrap_or_default());
        let number = |from: usize| {
            let bytes = trailer.get(from..from + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let then = if let (Some(crc), Some(size)) = (number(0), number(4)) {
            self.compare(crc, size)
        } else {
            self.trailer = Some(trailer);
            Then::Continue
        };
        Step {
            consumed: consumed + used,
            produced,
            then,
        }
    }

    fn compare(&self, crc: u32, size: u32) -> Then {
        if crc != self.crc.sum() {
            return Then::Broken(
                Class::Crc,
                format!(
                    "the member says checksum {crc:08x}, its data has {:08x}",
                    self.crc.sum()
                ),
            );
        }
        let total = self.inflate.total_out() & u64::from(u32::MAX);
        if u64::from(size) != total {
            return Then::Broken(
                Class::Isize,
                format!("the member says {size} bytes of data, it has {total}"),
            );
        }
        Then::End
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a cut header of a gzip member passes for whole, or an optional field is counted with a wrong length.
    #[test]
    fn headers_of_members() {
        let plain = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
        let with = |flags: u8, rest: &[u8]| {
            let mut bytes = plain.to_vec();
            bytes[3] = flags;
            bytes.extend_from_slice(rest);
            bytes
        };
        for (bytes, expected) in [
            (plain.to_vec(), Head::Complete(10)),
            (plain[..9].to_vec(), Head::Partial),
            (plain[..1].to_vec(), Head::Partial),
            (Vec::new(), Head::Partial),
            (b"PK".to_vec(), Head::No),
            (with(0x20, b""), Head::No),
            (with(HAS_EXTRA, &[2, 0, 9, 9]), Head::Complete(14)),
            (with(HAS_EXTRA, &[2, 0, 9]), Head::Partial),
            (with(HAS_NAME | HAS_COMMENT, b"a\0bc\0"), Head::Complete(15)),
            (with(HAS_NAME, b"abc"), Head::Partial),
            (with(HAS_CRC, b"12"), Head::Complete(12)),
            (with(HAS_CRC, b"1"), Head::Partial),
            (with(HAS_NAME, &b"a".repeat(LONGEST_HEADER)), Head::No),
        ] {
            assert_eq!(read_gzip_head(&bytes), expected, "{bytes:?}");
        }
    }

    /// Fails if a header is read in pieces in another way than at once, wherever it is cut.
    #[test]
    fn header_in_pieces_is_same_header() {
        for flags in 0..0x20_u8 {
            let header = [
                &[0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 255],
                &b"\x03\0\0ab\0name\0comment\0more"[..],
            ]
            .concat();
            for step in 1..header.len() {
                let mut cursor = HeadCursor::default();
                for length in (0..=header.len()).step_by(step) {
                    let bytes = &header[..length];
                    let shown = resume_head(bytes, &mut cursor);
                    assert_eq!(
                        shown,
                        read_gzip_head(bytes),
                        "{flags:x}: {length} by {step}"
                    );
                    if let Head::Complete(_) = shown {
                        break;
                    }
                }
            }
        }
    }

    /// Fails if a header over the limit passes because all of it is there.
    #[test]
    fn header_over_limit_is_refused_when_complete() {
        let named = |length: usize| {
            let fixed = [0x1f, 0x8b, 8, HAS_NAME, 0, 0, 0, 0, 0, 255];
            [&fixed[..], &b"a".repeat(length - 11), b"\0data"].concat()
        };
        let longest = Head::Complete(LONGEST_HEADER);
        assert_eq!(read_gzip_head(&named(LONGEST_HEADER)), longest);
        assert_eq!(read_gzip_head(&named(LONGEST_HEADER + 1)), Head::No);
        let mut summed = named(LONGEST_HEADER - 1);
        summed[3] |= HAS_CRC;
        assert_eq!(read_gzip_head(&summed), Head::No);
    }
}
