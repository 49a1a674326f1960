//! CDX: one line for one capture, in all the forms that indexes and tools speak.
//!
//! Owns [`Capture`] and what its lines look like: CDX with 9, 11 and 14 fields or any legend, CDXJ, and the 7 or 8 fields of
//! NetarchiveSuite. What is written reads back, and what is read is written as it was, except for blanks in a CDX field,
//! which are escaped. A line that cannot be read is an error with its place; the lines after it are read.
//! Does not make captures out of records, and does not know what is in an index.

mod exchange;
mod extract;
mod json;
mod legend;
pub mod query;
mod reader;
mod redirect;
mod sort;
mod writer;

pub use exchange::Exchanges;
pub use extract::{Extracted, extract, extract_with_digest};
pub use legend::{Field, InvalidLegend, Legend};
pub use reader::{BadLine, ReadError, Reader};
pub use sort::{SortError, Sorter};
pub use writer::Writer;

use thiserror::Error;

use crate::date::{InvalidDate, Stamp};

/// One capture: a URL at a time, and where its record lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The key that lines are sorted by: [`UrlKey`](crate::surt::UrlKey), or what the line had.
    pub key: String,
    /// When.
    pub timestamp: Stamp,
    /// The URL as it was asked for.
    pub original: Option<String>,
    /// The media type, without parameters.
    pub mime: Option<String>,
    /// The status of the response.
    pub status: Option<u16>,
    /// The digest of the payload as the line has it: CDX leaves out `sha1:`, CDXJ mostly does not.
    pub digest: Option<String>,
    /// Where the response redirects to: an absolute URL, where it was made from a record.
    pub redirect: Option<String>,
    /// Robot flags: `A` no archive, `F` no follow, `I` no index, …
    pub robots: Option<String>,
    /// The number of bytes a reader cuts out: [`End::index_length`](crate::warc::End::index_length).
    pub length: Option<u64>,
    /// Where the record begins in its file.
    pub offset: Option<u64>,
    /// The file.
    pub file: Option<String>,
    /// Where the record lies that a revisit refers to.
    pub original_record: Option<OriginalRecord>,
    /// Fields that have no place above, by name (CDXJ) or letter (CDX), in their order.
    pub extra: Vec<(String, String)>,
}

/// Where the record of a resolved revisit lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginalRecord {
    /// Its stored length.
    pub length: Option<u64>,
    /// Where it begins.
    pub offset: Option<u64>,
    /// Its file.
    pub file: Option<String>,
}

impl Capture {
    /// A capture of which nothing else is known yet.
    pub fn new(key: impl Into<String>, timestamp: Stamp) -> Self {
        Self {
            key: key.into(),
            timestamp,
            original: None,
            mime: None,
            status: None,
            digest: None,
            redirect: None,
            robots: None,
            length: None,
            offset: None,
            file: None,
            original_record: None,
            extra: Vec::new(),
        }
    }

    /// A field that has no place of its own: `method`, `requestBody`, `recordDigest`, an unknown letter.
    pub fn extra(&self, name: &str) -> Option<&str> {
        self.extra
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A form of lines.
///
/// ```
/// use archive_formats::cdx::Format;
///
/// let line = "dk,a)/ 20260102030405 {\"url\": \"http://a.dk/\", \"status\": \"200\"}";
/// let capture = Format::sniff(line)?.read(line)?;
/// assert_eq!((capture.key.as_str(), capture.status), ("dk,a)/", Some(200)));
/// assert!(Format::cdx11().write(&capture).starts_with("dk,a)/ 20260102030405 http://a.dk/ "));
/// # Ok::<(), archive_formats::cdx::InvalidLine>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// `SURT timestamp {json}`.
    Cdxj,
    /// Fields in an order.
    Cdx(Legend),
}

impl Format {
    /// ` CDX N b a m s k r V g`
    pub fn cdx9() -> Self {
        Self::Cdx(Legend::cdx9())
    }

    /// ` CDX N b a m s k r M S V g`
    pub fn cdx11() -> Self {
        Self::Cdx(Legend::cdx11())
    }

    /// The 11 fields, and length, offset and file of the original of a revisit. Has no header line.
    pub fn cdx14() -> Self {
        Self::Cdx(Legend::cdx14())
    }

    /// NetarchiveSuite's `A e b m n g v c`, or without the checksum `c`. Has no header line.
    pub fn netarchive_suite(checksum: bool) -> Self {
        Self::Cdx(Legend::netarchive_suite(checksum))
    }

    /// The header line without its line end, if the form has one.
    pub fn header(&self) -> Option<String> {
        match self {
            Self::Cdxj => None,
            Self::Cdx(legend) => legend.header(),
        }
    }

    /// Reads one line, without its line end.
    ///
    /// # Errors
    ///
    /// Fails if the line does not have this form.
    pub fn read(&self, line: &str) -> Result<Capture, InvalidLine> {
        match self {
            Self::Cdxj => json::read(line),
            Self::Cdx(legend) => legend.read(line),
        }
    }

    /// Writes one line, without its line end.
    pub fn write(&self, capture: &Capture) -> String {
        match self {
            Self::Cdxj => json::write(capture),
            Self::Cdx(legend) => legend.write(capture),
        }
    }

    /// The form of a file by its first line; the line is a header or a capture already.
    ///
    /// # Errors
    ///
    /// Fails if the line has no known form, or is a header that cannot be read.
    pub fn sniff(line: &str) -> Result<Self, InvalidLine> {
        if let Some(legend) = Legend::of_header(line) {
            return Ok(Self::Cdx(legend.map_err(InvalidLine::Legend)?));
        }
        let mut parts = line.splitn(3, ' ');
        if line.starts_with('!') || parts.nth(2).is_some_and(|json| json.starts_with('{')) {
            return Ok(Self::Cdxj);
        }
        Legend::of_count(line.split(' ').count())
            .map(Self::Cdx)
            .ok_or(InvalidLine::Unknown {
                fields: line.split(' ').count(),
            })
    }
}

/// The reason why a line does not have its form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidLine {
    /// A header that cannot be read.
    #[error(transparent)]
    Legend(InvalidLegend),
    /// The first line is neither a header nor CDXJ, and no form has this number of fields.
    #[error(
        "no known form has {fields} fields; name the fields in a header line such as ` CDX N b a m s k r M S V g`"
    )]
    Unknown {
        /// The number of its fields.
        fields: usize,
    },
    /// Too many or too few.
    #[error("{found} fields where the form has {expected}")]
    Fields {
        /// As many as the legend has letters.
        expected: usize,
        /// As many as there are.
        found: usize,
    },
    /// The date of the capture.
    #[error("timestamp: {0}")]
    Timestamp(InvalidDate),
    /// No key, and nothing that a key could be made from.
    #[error("no key and no URL")]
    NoKey,
    /// A field that has to be a number.
    #[error("{field} is no number: {value:?}")]
    Number {
        /// Which.
        field: &'static str,
        /// The value of the field.
        value: String,
    },
    /// CDXJ without a JSON object behind key and timestamp, or with one that is not valid.
    #[error("JSON: {0}")]
    Json(String),
    /// A line that is no text.
    #[error("byte {at} is not UTF-8")]
    NotUtf8 {
        /// Where in the line, counted from 0.
        at: usize,
    },
    /// A line that is longer than the reader was told to hold.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
}

#[cfg(test)]
mod tests;
