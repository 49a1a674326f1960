//! Content encodings, and the limits within which they are undone.

/// An encoding of content that can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `gzip`, or `x-gzip`.
    Gzip,
    /// `deflate`: with zlib's frame, or without as some servers have it.
    Deflate,
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
}

impl Coding {
    /// Returns the encoding of a name, in any case.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("gzip") || is("x-gzip") {
            Some(Self::Gzip)
        } else if is("deflate") || is("x-deflate") {
            Some(Self::Deflate)
        } else if is("br") {
            Some(Self::Brotli)
        } else if is("zstd") {
            Some(Self::Zstd)
        } else {
            None
        }
    }

    /// Returns the name of the encoding in headers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

/// The limits within which a body is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// The most bytes after any of the content encodings.
    pub output: u64,
    /// The most decoded bytes for each encoded one. Not checked for streams of less than a mebibyte.
    pub ratio: u64,
    /// The most encodings that a body may have on top of each other.
    pub codings: usize,
}

impl Default for DecodeLimits {
    /// Returns 1 GiB, 1100 to 1 (no gzip of real bytes comes to more; brotli and zstd of real pages stay far below), 4
    /// encodings.
    fn default() -> Self {
        Self {
            output: 1 << 30,
            ratio: 1100,
            codings: 4,
        }
    }
}
