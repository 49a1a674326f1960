//! The facts about a record: its type, its version, and those that reading it to its end has shown.
//!
//! Owns the names of types and versions. Reads nothing itself.

use std::fmt;

use crate::defect::Defect;

/// The type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WarcType {
    /// A description of the records that follow.
    Warcinfo,
    /// A complete response.
    Response,
    /// A resource without protocol information.
    Resource,
    /// A complete request.
    Request,
    /// Metadata about another record.
    Metadata,
    /// A capture with the same content as an earlier one.
    Revisit,
    /// A conversion of another record.
    Conversion,
    /// A further segment of a record.
    Continuation,
    /// The version block of an ARC file.
    ArcHeader,
    /// Any other type, or none.
    Unknown,
}

impl WarcType {
    /// Reads the value of `WARC-Type`.
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

    /// Returns the type as it stands in `WARC-Type`.
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

impl fmt::Display for WarcType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The version of the format that a record names.
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
    /// Any other version.
    Unknown,
}

impl Version {
    /// Reads the first line of a record.
    pub fn from_line(line: &[u8]) -> Self {
        match line.trim_ascii_end().to_ascii_uppercase().as_slice() {
            b"WARC/1.0" => Self::Warc1_0,
            b"WARC/1.1" => Self::Warc1_1,
            b"WARC/0.18" => Self::Warc0_18,
            b"WARC/0.17" => Self::Warc0_17,
            _ => Self::Unknown,
        }
    }

    /// Returns whether the version is one of ARC.
    pub fn is_arc(self) -> bool {
        matches!(self, Self::Arc1 | Self::Arc2)
    }
}

/// The line ends behind a block.
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

    /// Returns the number of bytes of line ends.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the line ends as they stand in the file; `None` if they have more than eight bytes.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.kept.get(..usize::try_from(self.length).ok()?)
    }

    /// Returns whether the line ends are the two that WARC prescribes.
    pub fn is_regular(&self) -> bool {
        self.bytes() == Some(b"\r\n\r\n")
    }
}

/// The facts that reading a record to its end has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordSummary {
    /// The offset in the file of the record, or of its member in a compressed file.
    pub offset: u64,
    /// The number of bytes that the record takes in the file, with the line ends behind it. `None` if it shares its
    /// member with other records, or is damaged.
    pub length: Option<u64>,
    /// The number of bytes that a reader cuts out to have the record, as indexes count them: those of its members; of
    /// an uncompressed record header and block, without the line ends. Of a damaged record, the bytes up to where
    /// reading continues. `None` if the record cannot be cut out, because it shares its member or its end is not known.
    pub index_length: Option<u64>,
    /// The offset of the record in the decompressed bytes, counted from where reading began.
    pub position: u64,
    /// The offset of the record in the decompressed bytes of its member.
    pub in_member: u64,
    /// The length of the header.
    pub header_length: u64,
    /// The length of the block by the header.
    pub announced: Option<u64>,
    /// The length that the block has.
    pub block_length: u64,
    /// The line ends behind the block.
    pub trailer: Trailer,
    /// The number of members that the record lies in.
    pub members: u64,
    /// Whether another record lies in the same member.
    pub shared: bool,
    /// Whether the block has the announced length, and no damage.
    pub complete: bool,
    /// The defects of the record, and those of the bytes before it that belong to no record.
    pub defects: Vec<Defect>,
}

impl RecordSummary {
    /// Returns the length of the decompressed record: header, block and the line ends behind it.
    pub fn uncompressed_length(&self) -> u64 {
        self.header_length + self.block_length + self.trailer.length()
    }
}
