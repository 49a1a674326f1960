//! A record as several jobs look at it: its URL, its time, its type, the page in it.
//!
//! Owns the limits of what is held of a page. Does not know what a job does with it.

use std::io::Read;

use archive_formats::date::{DateReading, Stamp, WarcDate};
use archive_formats::http::{Body, BodyError, DecodeLimits, Head, HeadError, MediaType, Note};
use archive_formats::warc::{Record, WarcType};

use crate::job::BatchJobError;

/// The longest head of an HTTP message that is read.
pub(super) const HEAD_LIMIT: usize = 1 << 20;

/// The most of a body that is held, once its encodings are undone.
pub(super) const LARGEST_PAGE: u64 = 16 << 20;

/// The longest line that a job writes for something to sort, or reads.
pub(super) const LONGEST_LINE: usize = 1 << 20;

/// Returns the URL that the record is of; empty when it names no URL.
pub(super) fn record_url<R: Read>(record: &Record<'_, R>) -> String {
    let url = record.header().read_uri("WARC-Target-URI");
    url.unwrap_or_default().into_owned()
}

/// Returns the time when the record was made, if its header has it.
pub(super) fn record_time<R: Read>(record: &Record<'_, R>) -> Option<Stamp> {
    let date = record.header().text_of("WARC-Date")?;
    let date = WarcDate::read_date(date.trim(), DateReading::Lenient).ok()?;
    Some(date.stamp())
}

/// Returns the media type of the record's block.
pub(super) fn record_media<R: Read>(record: &Record<'_, R>) -> Option<MediaType> {
    MediaType::read_media(&record.header().get("Content-Type")?)
}

/// Whether the record holds the answer of a server over HTTP.
pub(super) fn is_answer<R: Read>(record: &Record<'_, R>) -> bool {
    matches!(record.kind(), WarcType::Response | WarcType::Revisit)
        && record_media(record).is_some_and(|media| media.essence == "application/http")
}

/// Whether its block is a document, and no message: metadata, a resource, what an ARC file has of other schemes.
pub(super) fn is_document<R: Read>(record: &Record<'_, R>) -> bool {
    let kind = record.kind();
    matches!(kind, WarcType::Metadata | WarcType::Resource)
        || (kind == WarcType::Response && !is_answer(record))
}

/// Returns `text` as a field of a line: blanks and control characters are escaped.
pub(super) fn escape_field(text: &str) -> String {
    use std::fmt::Write as _;
    let mut field = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_whitespace() || c.is_control() {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string cannot fail.
                let _ok = write!(field, "%{byte:02X}").is_ok();
            }
        } else {
            field.push(c);
        }
    }
    if field.is_empty() {
        field.push('-');
    }
    field
}

/// Reads the head of an answer.
pub(super) fn read_head<R: Read>(record: &mut Record<'_, R>) -> Result<Head, BatchJobError> {
    Head::read_head(record, HEAD_LIMIT).map_err(|error| match error {
        HeadError::Io(error) => BatchJobError::Read(error.into()),
        error @ HeadError::TooLarge { .. } => BatchJobError::Failed(error.to_string()),
    })
}

/// Returns the type that a server gave to its answer.
pub(super) fn media_of(head: &Head) -> Option<MediaType> {
    head.get("Content-Type").and_then(MediaType::read_media)
}

/// The body of a successful answer.
pub(super) struct Page {
    /// The URL of the page.
    pub(super) url: String,
    /// The time when the page was fetched, in 14 digits, or nothing.
    pub(super) timestamp: String,
    /// The media type that the server named.
    pub(super) media: MediaType,
    /// The bytes of the page without encodings, as far as they could be decoded.
    pub(super) bytes: Vec<u8>,
    /// The reason why `bytes` is not the whole page.
    pub(super) flaw: Option<String>,
}

/// Returns the page in a record, if it is the answer to a request that went well (status 200) and of a type that is
/// wanted.
pub(super) fn read_page<R: Read>(
    record: &mut Record<'_, R>,
    is_wanted: impl Fn(&MediaType) -> bool,
) -> Result<Option<Page>, BatchJobError> {
    if record.kind() != WarcType::Response || !is_answer(record) {
        return Ok(None);
    }
    let url = record_url(record);
    let timestamp = record_time(record).map_or_else(String::new, |time| time.to_string());
    let is_segment = record.header().get("WARC-Segment-Number").is_some();
    let head = read_head(record)?;
    let Some(media) =
        media_of(&head).filter(|media| head.status() == Some(200) && is_wanted(media))
    else {
        return Ok(None);
    };
    let limits = DecodeLimits {
        output: LARGEST_PAGE + 1,
        ..DecodeLimits::default()
    };
    let mut bytes = Vec::new();
    let mut body = Body::decoded_body(&head, record, limits);
    let read = body.by_ref().take(LARGEST_PAGE + 1).read_to_end(&mut bytes);
    let mut flaw = None;
    if let Err(error) = read {
        match BodyError::find_within(&error) {
            Some(error) => flaw = Some(error.to_string()),
            None => return Err(BatchJobError::Read(error.into())),
        }
    }
    for note in body.notes() {
        if let Note::LeftCoded(name) = note {
            return Err(BatchJobError::Failed(format!(
                "the body is encoded as {name:?}, which nobody can undo here"
            )));
        }
    }
    if bytes.len() as u64 > LARGEST_PAGE {
        bytes.truncate(usize::try_from(LARGEST_PAGE).expect("a page fits in memory"));
        flaw = Some(format!(
            "only the first {} MiB of the body were read",
            LARGEST_PAGE >> 20
        ));
    }
    if is_segment {
        flaw.get_or_insert_with(|| {
            "only this segment of the body was read: the others are in other records".to_owned()
        });
    }
    Ok(Some(Page {
        url,
        timestamp,
        media,
        bytes,
        flaw,
    }))
}
