//! The end of one gzip member (RFC 1952): its header, what it inflates to, and its two sums.
//!
//! Not promised: what is inflated. It is counted and thrown away.

use std::fmt;

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{LONGEST_HEADER, NoRecord, RecordKind, Seen};

/// How much is inflated at a time, in bytes.
const BUFFER: usize = 32 * 1024;

/// FLG: what the header has beside its ten bytes.
const HEADER_SUM: u8 = 0x02;
const EXTRA: u8 = 0x04;
const NAME: u8 = 0x08;
const COMMENT: u8 = 0x10;
const RESERVED: u8 = 0xe0;

/// A member, as far as it has come.
pub(super) struct Member {
    part: Part,
    flags: u8,
    /// The bytes of a part of fixed length.
    field: Vec<u8>,
    /// How many bytes the header has.
    header: usize,
    inflate: Decompress,
    sum: Crc,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The ten bytes that every member has.
    Fixed,
    ExtraLength,
    Extra(usize),
    /// A text up to a zero.
    Name,
    Comment,
    HeaderSum,
    Body,
    /// CRC-32 and length of what was inflated.
    Sums,
}

impl Default for Member {
    fn default() -> Self {
        Self {
            part: Part::Fixed,
            flags: 0,
            field: Vec::new(),
            header: 0,
            inflate: Decompress::new(false),
            sum: Crc::new(),
            buffer: vec![0; BUFFER],
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("part", &self.part)
            .field("inflated", &self.inflate.total_out())
            .finish_non_exhaustive()
    }
}

impl Member {
    /// Takes the next bytes, from the magic number on.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Seen, NoRecord> {
        let mut rest = bytes;
        while let Some(byte) = rest.first() {
            if self.part == Part::Body {
                let used = self.inflate(rest)?;
                rest = rest.get(used..).unwrap_or_default();
                continue;
            }
            if self.part != Part::Sums {
                self.header += 1;
                if self.header > 2 * LONGEST_HEADER {
                    return Err(broken("its header has no end"));
                }
            }
            rest = rest.get(1..).unwrap_or_default();
            if self.take(*byte)? {
                return Ok(Seen::End(bytes.len() - rest.len()));
            }
        }
        Ok(Seen::More)
    }

    /// Takes one byte of anything but the body; says whether it was the last of the member.
    fn take(&mut self, byte: u8) -> Result<bool, NoRecord> {
        match self.part {
            Part::Name | Part::Comment => {
                if byte == 0 {
                    self.part = self.after(self.part);
                }
                return Ok(false);
            }
            Part::Extra(left) => {
                self.part = match left {
                    0 | 1 => self.after(self.part),
                    more => Part::Extra(more - 1),
                };
                return Ok(false);
            }
            Part::Fixed | Part::ExtraLength | Part::HeaderSum | Part::Body | Part::Sums => {}
        }
        self.field.push(byte);
        match (self.part, self.field.as_slice()) {
            (Part::Fixed, [_, _, method, flags, _, _, _, _, _, _]) => {
                if *method != 8 || flags & RESERVED != 0 {
                    return Err(broken("its header is none"));
                }
                self.flags = *flags;
                self.part = self.after(Part::Fixed);
            }
            (Part::ExtraLength, [low, high]) => {
                let length = usize::from(u16::from_le_bytes([*low, *high]));
                self.part = Part::Extra(length);
                if length == 0 {
                    self.part = self.after(self.part);
                }
            }
            (Part::HeaderSum, [_, _]) => self.part = Part::Body,
            (Part::Sums, [sum @ .., _, _, _, _]) if sum.len() == 4 => {
                let mut numbers = self.field.chunks_exact(4).map(|bytes| {
                    let bytes = bytes.try_into().unwrap_or_default();
                    u32::from_le_bytes(bytes)
                });
                let (sum, length) = (numbers.next(), numbers.next());
                if (sum, length) != (Some(self.sum.sum()), Some(self.sum.amount())) {
                    return Err(broken("its checksum is not that of what is in it"));
                }
                return Ok(true);
            }
            _ => return Ok(false),
        }
        self.field.clear();
        Ok(false)
    }

    /// What follows a part of the header.
    fn after(&self, part: Part) -> Part {
        let has = |flag| self.flags & flag != 0;
        match part {
            Part::Fixed if has(EXTRA) => Part::ExtraLength,
            Part::Fixed | Part::ExtraLength | Part::Extra(_) if has(NAME) => Part::Name,
            Part::Fixed | Part::ExtraLength | Part::Extra(_) | Part::Name if has(COMMENT) => {
                Part::Comment
            }
            Part::Fixed | Part::ExtraLength | Part::Extra(_) | Part::Name | Part::Comment
                if has(HEADER_SUM) =>
            {
                Part::HeaderSum
            }
            Part::Fixed
            | Part::ExtraLength
            | Part::Extra(_)
            | Part::Name
            | Part::Comment
            | Part::HeaderSum
            | Part::Body
            | Part::Sums => Part::Body,
        }
    }

    /// Inflates what there is of the body, and says how many bytes that were.
    fn inflate(&mut self, bytes: &[u8]) -> Result<usize, NoRecord> {
        let mut rest = bytes;
        loop {
            let (read, made) = (self.inflate.total_in(), self.inflate.total_out());
            let none = FlushDecompress::None;
            let status = self.inflate.decompress(rest, &mut self.buffer, none);
            let status = status.map_err(|_error| broken("what follows cannot be inflated"))?;
            let count = |now: u64, then: u64| usize::try_from(now - then).unwrap_or(usize::MAX);
            let read = count(self.inflate.total_in(), read);
            let made = count(self.inflate.total_out(), made);
            self.sum.update(self.buffer.get(..made).unwrap_or_default());
            rest = rest.get(read..).unwrap_or_default();
            if status == Status::StreamEnd {
                self.part = Part::Sums;
                return Ok(bytes.len() - rest.len());
            }
            if rest.is_empty() && made < BUFFER {
                return Ok(bytes.len());
            }
            if read == 0 && made == 0 {
                return Err(broken("what follows cannot be inflated"));
            }
        }
    }
}

fn broken(what: &str) -> NoRecord {
    NoRecord::Broken {
        kind: RecordKind::Gzip,
        what: what.to_owned(),
    }
}
