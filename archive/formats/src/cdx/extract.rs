//! The capture that an index has of a record.
//!
//! Owns which records are captures, and the fields of their captures: those that cdxj-indexer writes by default, so
//! that the two can be compared. Does not resolve revisits, and does not join requests with responses:
//! [`Exchanges`](super::Exchanges) does.
//!
//! Captures are responses, revisits, and resources and metadata that are not `application/warc-fields`. They differ
//! from those of cdxj-indexer 1.5.0 on purpose: the media type is in small letters; a response that is not HTTP has the
//! type of its record; a record without a digest gets one only if it is whole; the target of a redirect is a field.

use std::io::{self, BufRead, Read};

use super::{Capture, redirect};
use crate::date::{DateReading, WarcDate};
use crate::digest::{Algorithm, Hashers};
use crate::http::{Head, HeadError, MediaType};
use crate::surt::UrlKey;
use crate::warc::{Header, ReadRecordError, Record, RecordSummary, WarcType};

/// The longest head of an HTTP message that is read. Nothing is taken from a longer one.
const HEAD_LIMIT: usize = 1 << 20;

/// The result of reading a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtractedCapture {
    /// The capture; `None` if the record has no place in an index.
    pub capture: Option<Capture>,
    /// The reason why a capture has no place in an index, though it should have one.
    pub omitted: Option<String>,
    /// The head of the HTTP message of a capture.
    pub head: Option<Head>,
    /// The end of the record, as reading it has shown.
    pub end: RecordSummary,
}

/// Reads a record of the file of this name to its end.
///
/// # Errors
///
/// Fails if the file cannot be read, or if its policy refuses a defect.
pub fn extract_capture<R: Read>(
    record: Record<'_, R>,
    file: &str,
) -> Result<ExtractedCapture, ReadRecordError> {
    read(record, file, None)
}

/// Reads a record to its end, and computes the digest of its stored payload, whatever its header says.
///
/// # Errors
///
/// Fails if the file cannot be read, or if its policy refuses a defect.
pub fn extract_with_digest<R: Read>(
    record: Record<'_, R>,
    file: &str,
    algorithm: Algorithm,
) -> Result<ExtractedCapture, ReadRecordError> {
    read(record, file, Some(algorithm))
}

fn read<R: Read>(
    mut record: Record<'_, R>,
    file: &str,
    algorithm: Option<Algorithm>,
) -> Result<ExtractedCapture, ReadRecordError> {
    let (mut capture, omitted) = match begin(&record) {
        Ok(capture) => (capture, None),
        Err(why) => (None, Some(why)),
    };
    let mut computed = None;
    let mut head = None;
    if let Some(capture) = &mut capture {
        if algorithm.is_some() {
            capture.digest = None;
        }
        (head, computed) = fill(capture, &mut record, algorithm)?;
    }
    let end = record.read_end()?;
    if let Some(capture) = &mut capture {
        capture.file = Some(file.to_owned());
        capture.offset = Some(end.offset);
        capture.length = end.index_length;
        if end.complete {
            capture.digest = capture.digest.take().or(computed);
        }
    }
    Ok(ExtractedCapture {
        capture,
        omitted,
        head,
        end,
    })
}

/// Begins a capture from the header; `None` for a record that is not a capture.
fn begin<R: Read>(record: &Record<'_, R>) -> Result<Option<Capture>, String> {
    let header = record.header();
    let kind = record.kind();
    let is_capture = match kind {
        WarcType::Response | WarcType::Revisit => true,
        WarcType::Resource | WarcType::Metadata => {
            media(record).is_none_or(|media| media.essence != "application/warc-fields")
        }
        WarcType::Warcinfo
        | WarcType::Request
        | WarcType::Conversion
        | WarcType::Continuation
        | WarcType::ArcHeader
        | WarcType::Unknown => false,
    };
    if !is_capture {
        return Ok(None);
    }
    let Some(url) = header_url(header) else {
        // Metadata without a URL is about a file.
        let needs_url = kind != WarcType::Metadata;
        return if needs_url {
            Err(format!("a {kind} without WARC-Target-URI"))
        } else {
            Ok(None)
        };
    };
    let date = header.text_of("WARC-Date").unwrap_or_default();
    let date = WarcDate::read_date(date.trim(), DateReading::Lenient)
        .map_err(|error| format!("WARC-Date {date:?}: {error}"))?;
    let mut capture = Capture::new(UrlKey::parse(&url).as_str(), date.stamp());
    capture.original = Some(url);
    capture.mime = if kind == WarcType::Revisit {
        Some("warc/revisit".to_owned())
    } else {
        media(record).map(|media| media.essence)
    };
    capture.digest = header
        .text_of("WARC-Payload-Digest")
        .map(|digest| digest.trim().to_owned());
    Ok(Some(capture))
}

/// Returns the URL of a record. Bytes that are not UTF-8 are read as Latin-1, so that different URLs stay different.
pub(super) fn header_url(header: &Header) -> Option<String> {
    let value = header.get("WARC-Target-URI")?;
    let bare = value
        .strip_prefix(b"<")
        .and_then(|value| value.strip_suffix(b">"))
        .unwrap_or(&value);
    Some(match str::from_utf8(bare) {
        Ok(text) => text.to_owned(),
        Err(_) => bare.iter().copied().map(char::from).collect(),
    })
}

fn media<R: Read>(record: &Record<'_, R>) -> Option<MediaType> {
    MediaType::read_media(&record.header().get("Content-Type")?)
}

/// Completes a capture from the block: its head, and the digest of its payload if the header has none.
fn fill<R: Read>(
    capture: &mut Capture,
    record: &mut Record<'_, R>,
    algorithm: Option<Algorithm>,
) -> Result<(Option<Head>, Option<String>), ReadRecordError> {
    let kind = record.kind();
    let mut message = None;
    let mut hashers = match (algorithm, &capture.digest, kind) {
        (Some(algorithm), _, _) => Some(Hashers::new([algorithm])),
        (None, Some(_), _) | (None, None, WarcType::Revisit) => None,
        (None, None, _) => Some(Hashers::new([Algorithm::Sha1])),
    };
    let is_message = matches!(kind, WarcType::Response | WarcType::Revisit)
        && media(record).is_some_and(|media| media.essence == "application/http");
    if is_message {
        match Head::read_head(record, HEAD_LIMIT) {
            Ok(head) => {
                capture.status = head.status();
                if kind == WarcType::Response && head.status().is_some() {
                    let media = head.get("Content-Type").and_then(MediaType::read_media);
                    capture.mime = media.map(|media| media.essence);
                }
                let url = capture.original.as_deref().unwrap_or_default();
                capture.redirect = redirect::redirect_target(url, &head);
                if let Some(hashers) = &mut hashers {
                    hashers.update(head.unread_bytes());
                }
                message = Some(head);
            }
            Err(HeadError::TooLarge { .. }) => hashers = None,
            Err(HeadError::Io(error)) => return Err(error.into()),
        }
    }
    let Some(mut hashers) = hashers else {
        return Ok((message, None));
    };
    loop {
        let bytes = match record.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let count = bytes.len();
        if count == 0 {
            break;
        }
        hashers.update(bytes);
        record.consume(count);
    }
    let digest = hashers.finish().first().map(ToString::to_string);
    Ok((message, digest))
}
