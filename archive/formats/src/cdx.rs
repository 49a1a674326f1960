//! CDX: a line for each capture, in all the forms that indexes and tools use.
//!
//! Owns [`Capture`] and the form of its lines: CDX with 9, 11 and 14 fields or any legend, CDXJ, and the 7 or 8 fields
//! of NetarchiveSuite. A written line reads back, and a line that was read is written as it was, except for blanks in a
//! CDX field, which are escaped. A line that cannot be read is an error with its place; the lines after it are read.
//! Does not make captures out of records, and does not know the content of an index.

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
pub use extract::{ExtractedCapture, extract_capture, extract_with_digest};
pub use legend::{CdxField, InvalidLegend, Legend};
pub use reader::{BadLine, CdxReader, ReadLineError};
pub use sort::{SortError, Sorter};
pub use writer::CdxWriter;

use thiserror::Error;

use crate::date::{InvalidDate, Stamp};

/// A capture: a URL at a time, and the place of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The key that lines are sorted by: [`UrlKey`](crate::surt::UrlKey), or what the line had.
    pub key: String,
    /// The time of the capture.
    pub timestamp: Stamp,
    /// The URL as it was requested.
    pub original: Option<String>,
    /// The media type, without parameters.
    pub mime: Option<String>,
    /// The status of the response.
    pub status: Option<u16>,
    /// The digest of the payload as the line has it: CDX leaves out `sha1:`, CDXJ mostly does not.
    pub digest: Option<String>,
    /// The target of a redirect: an absolute URL, where the capture was made from a record.
    pub redirect: Option<String>,
    /// Robot flags: `A` no archive, `F` no follow, `I` no index, …
    pub robots: Option<String>,
    /// The number of bytes of the record that a reader cuts out:
    /// [`RecordSummary::index_length`](crate::warc::RecordSummary::index_length).
    pub length: Option<u64>,
    /// The offset of the record in its file.
    pub offset: Option<u64>,
    /// The name of the file that the record is in.
    pub file: Option<String>,
    /// The place of the record that a revisit refers to.
    pub original_record: Option<OriginalRecord>,
    /// Fields that have no place above, by name (CDXJ) or letter (CDX), in their order.
    pub extra: Vec<(String, String)>,
}

/// The place of the record that a resolved revisit refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginalRecord {
    /// The stored length of the record.
    pub length: Option<u64>,
    /// The offset of the record in its file.
    pub offset: Option<u64>,
    /// The name of the file that the record is in.
    pub file: Option<String>,
}

impl Capture {
    /// Makes a capture of which only key and time are known.
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

    /// Returns a field that has no place of its own: `method`, `requestBody`, `recordDigest`, an unknown letter.
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
/// let capture = Format::sniff_line(line)?.read_line(line)?;
/// assert_eq!((capture.key.as_str(), capture.status), ("dk,a)/", Some(200)));
/// assert!(Format::cdx11().write_line(&capture).starts_with("dk,a)/ 20260102030405 http://a.dk/ "));
/// # Ok::<(), archive_formats::cdx::InvalidLine>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// CDXJ: `SURT timestamp {json}`.
    Cdxj,
    /// CDX: fields in the order of a legend.
    Cdx(Legend),
}

impl Format {
    /// Returns CDX with 9 fields: ` CDX N b a m s k r V g`.
    pub fn cdx9() -> Self {
        Self::Cdx(Legend::cdx9())
    }

    /// Returns CDX with 11 fields: ` CDX N b a m s k r M S V g`.
    pub fn cdx11() -> Self {
        Self::Cdx(Legend::cdx11())
    }

    /// Returns CDX with 14 fields: the 11, and length, offset and file of the original of a revisit. Has no header
    /// line.
    pub fn cdx14() -> Self {
        Self::Cdx(Legend::cdx14())
    }

    /// Returns NetarchiveSuite's form: `A e b m n g v c`, or without the checksum `c`. Has no header line.
    pub fn netarchive_suite(checksum: bool) -> Self {
        Self::Cdx(Legend::netarchive_suite(checksum))
    }

    /// Returns the header line without its line end, if the form has one.
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
    pub fn read_line(&self, line: &str) -> Result<Capture, InvalidLine> {
        match self {
            Self::Cdxj => json::read_json_line(line),
            Self::Cdx(legend) => legend.read_line(line),
        }
    }

    /// Writes one line, without its line end.
    pub fn write_line(&self, capture: &Capture) -> String {
        match self {
            Self::Cdxj => json::write_json_line(capture),
            Self::Cdx(legend) => legend.write_line(capture),
        }
    }

    /// Detects the form of a file from its first line, which is a header or a capture already.
    ///
    /// # Errors
    ///
    /// Fails if the line has no known form, or is a header that cannot be read.
    pub fn sniff_line(line: &str) -> Result<Self, InvalidLine> {
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
    /// The header cannot be read.
    #[error(transparent)]
    Legend(InvalidLegend),
    /// The first line is neither a header nor CDXJ, and no form has this number of fields.
    #[error(
        "no known form has {fields} fields; name the fields in a header line such as ` CDX N b a m s k r M S V g`"
    )]
    Unknown {
        /// The number of fields of the line.
        fields: usize,
    },
    /// The line has too many or too few fields.
    #[error("{found} fields where the form has {expected}")]
    Fields {
        /// The number of letters of the legend.
        expected: usize,
        /// The number of fields of the line.
        found: usize,
    },
    /// The date of the capture is invalid.
    #[error("timestamp: {0}")]
    Timestamp(InvalidDate),
    /// The line has no key, and nothing that a key could be made from.
    #[error("no key and no URL")]
    NoKey,
    /// A field is not the number that it has to be.
    #[error("{field} is no number: {value:?}")]
    Number {
        /// The name of the field.
        field: &'static str,
        /// The value of the field.
        value: String,
    },
    /// The CDXJ line has no JSON object behind key and timestamp, or an invalid one.
    #[error("JSON: {0}")]
    Json(String),
    /// The line is not UTF-8.
    #[error("byte {at} is not UTF-8")]
    NotUtf8 {
        /// The position of the first invalid byte in the line, counted from 0.
        at: usize,
    },
    /// The line is longer than the reader may hold.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

#[cfg(test)]
mod tests;
