//! The facts about a record: its type, its version, and those that reading it to its end has shown.
//!
//! Owns the names of types and versions. Reads nothing itself.

use std::fmt;

use crate::defect::Defect;

/// The type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// About the records that follow.
    Warcinfo,
    /// A complete answer.
    Response,
    /// A resource without protocol information.
    Resource,
    /// A complete request.
    Request,
    /// About another record.
    Metadata,
    /// The same content as a record before.
    Revisit,
    /// Another form of a record.
    Conversion,
    /// A further segment of a record.
    Continuation,
    /// The version block of an ARC file.
    ArcHeader,
    /// Any other, or none.
    Unknown,
}

impl Kind {
    /// From the value of `WARC-Type`.
    pub fn from_bytes(value: &[u8]) -> Self {
        for kind in [
            Self::Response,
            Self::Request,
            Self::Metadata,
            Self::Revisit,
            Self::Warcinfo,
            Self::Resource,
            Self::Conversion,
            Self::Continuation,
        ] {
            if value.eq_ignore_ascii_case(kind.name().as_bytes()) {
                return kind;
            }
        }
        Self::Unknown
    }

    /// As it stands in `WARC-Type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warcinfo => "warcinfo",
            Self::Response => "response",
            Self::Resource => "resource",
            Self::Request => "request",
            Self::Metadata => "metadata",
            Self::Revisit => "revisit",
            Self::Conversion => "conversion",
            Self::Continuation => "continuation",
            Self::ArcHeader => "arc_header",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The version of the format that a record says it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Version {
    /// ARC, version 1.
    Arc1,
    /// ARC, version 2.
    Arc2,
    /// `WARC/0.17`, a draft.
    Warc0_17,
    /// `WARC/0.18`, a draft.
    Warc0_18,
    /// `WARC/1.0`: ISO 28500:2009.
    Warc1_0,
    /// `WARC/1.1`: ISO 28500:2017.
    Warc1_1,
    /// Any other.
    Unknown,
}

impl Version {
    /// From the first line of a record.
    pub fn from_line(line: &[u8]) -> Self {
        match line.trim_ascii_end().to_ascii_uppercase().as_slice() {
            b"WARC/1.0" => Self::Warc1_0,
            b"WARC/1.1" => Self::Warc1_1,
            b"WARC/0.18" => Self::Warc0_18,
            b"WARC/0.17" => Self::Warc0_17,
            _ => Self::Unknown,
        }
    }

    /// Whether it is one of the versions of ARC.
    pub fn is_arc(self) -> bool {
        matches!(self, Self::Arc1 | Self::Arc2)
    }
}

/// The line ends after a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    kept: [u8; 8],
    length: u64,
}

impl Trailer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let from = usize::try_from(self.length).unwrap_or(usize::MAX);
        for (slot, &byte) in self.kept.iter_mut().skip(from).zip(bytes) {
            *slot = byte;
        }
        self.length += bytes.len() as u64;
    }

    /// Returns how many bytes of line ends there are.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The line ends as they stand in the file; nothing when there are more than eight bytes of them.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.kept.get(..usize::try_from(self.length).ok()?)
    }

    /// Whether they are the two that WARC prescribes.
    pub fn is_regular(&self) -> bool {
        self.bytes() == Some(b"\r\n\r\n")
    }
}

/// The facts that reading a record to its end has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Where it begins in the file: itself in a plain file, its member in a compressed one.
    pub offset: u64,
    /// The number of bytes of the file it takes, with the line ends after it. `None` when it shares its member with
    /// other records, or is damaged.
    pub length: Option<u64>,
    /// The number of bytes a reader cuts out to have the record, as indexes count them: those of its members; of a
    /// record that is not compressed header and block, without the line ends. Of a damaged one, those up to where
    /// reading goes on. Nothing when they cannot be cut out, because it shares its member or nobody knows where they
    /// end.
    pub index_length: Option<u64>,
    /// Where it begins in the decompressed bytes, counted from where reading began.
    pub position: u64,
    /// Where it begins in the decompressed bytes of its member.
    pub in_member: u64,
    /// Length of the header.
    pub header_length: u64,
    /// The length of the block by the header.
    pub announced: Option<u64>,
    /// The length that the block has.
    pub block_length: u64,
    /// The line ends after the block.
    pub trailer: Trailer,
    /// In how many members it lies.
    pub members: u64,
    /// Whether another record lies in its member.
    pub shared: bool,
    /// Whether the block has the length that the header says, and no damage.
    pub complete: bool,
    /// The defects of the record, and those of the bytes before it that belong to no record.
    pub defects: Vec<Defect>,
}

impl End {
    /// Length of the record when it is decompressed: header, block and the line ends after it.
    pub fn uncompressed(&self) -> u64 {
        self.header_length + self.block_length + self.trailer.length()
    }
}
