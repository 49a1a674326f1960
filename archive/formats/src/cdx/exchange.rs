//! Captures of requests that had a body: a response and the request beside it are indexed under one key.
//!
//! Owns which records belong to one exchange, as cdxj-indexer has it: neighbours in the file with one URL, of which one
//! names the other in WARC-Concurrent-To. The key of the response to a POST or PUT is made from the posted body
//! ([`post`](crate::post)); all other captures are as without. Differs from cdxj-indexer 1.5.0 on purpose: either
//! record may name the other, and the first value does not hide the further ones; a revisit is a response, too. Holds
//! one capture back, until the record behind it is read; does not look further than that.

use std::io::Read;

use super::{Capture, ExtractedCapture, extract_capture};
use crate::http::{Body, BodyError, DecodeLimits, Head, HeadError, Start};
use crate::post::{self, PostUrl};
use crate::surt::UrlKey;
use crate::warc::{Header, ReadRecordError, Record, WarcType};

/// The longest head of a request that is read.
const HEAD_LIMIT: usize = 1 << 20;

/// The number of bytes that are looked at of a body without a length.
const UNKNOWN_LENGTH: u64 = 8192;

/// Makes the captures of a file, and joins requests with their responses.
#[derive(Debug)]
pub struct Exchanges {
    file: String,
    before: Option<Half>,
}

/// A record that its neighbour may belong to.
#[derive(Debug)]
struct Half {
    id: String,
    url: String,
    concurrent_to: Vec<String>,
    side: Side,
    capture: Option<Capture>,
}

#[derive(Debug)]
enum Side {
    Request(Option<PostedRequest>),
    Response,
    Neither,
}

/// The query that a POST or PUT makes.
#[derive(Debug)]
struct PostedRequest {
    method: String,
    appended: PostUrl,
}

impl Exchanges {
    /// Makes an empty one for the file of this name.
    pub fn new(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            before: None,
        }
    }

    /// Reads the next record of the file to its end. The capture in the result is of this record or of the one before
    /// it; the omission and the end are of this record.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if its policy refuses a defect.
    pub fn read_record<R: Read>(
        &mut self,
        record: Record<'_, R>,
    ) -> Result<ExtractedCapture, ReadRecordError> {
        let mut half = Half::new(record.header(), record.kind());
        let mut extracted = if record.kind() == WarcType::Request {
            let (posted, end) = posted(record, &half.url)?;
            half.side = Side::Request(posted);
            ExtractedCapture {
                capture: None,
                omitted: None,
                head: None,
                end,
            }
        } else {
            extract_capture(record, &self.file)?
        };
        half.capture = extracted.capture.take();
        extracted.capture = match self.before.take() {
            Some(before) if before.is_concurrent(&half) => join(before, half),
            before => {
                self.before = Some(half);
                before.and_then(|half| half.capture)
            }
        };
        Ok(extracted)
    }

    /// Returns the capture that was held back, at the end of the file.
    pub fn finish_exchange(&mut self) -> Option<Capture> {
        self.before.take()?.capture
    }
}

impl Half {
    fn new(header: &Header, kind: WarcType) -> Self {
        let side = match kind {
            WarcType::Response | WarcType::Revisit => Side::Response,
            WarcType::Request => Side::Request(None),
            _ => Side::Neither,
        };
        Self {
            id: header
                .read_uri("WARC-Record-ID")
                .unwrap_or_default()
                .into_owned(),
            url: super::extract::header_url(header).unwrap_or_default(),
            concurrent_to: header
                .all_values("WARC-Concurrent-To")
                .map(|id| bare(&id).to_owned())
                .collect(),
            side,
            capture: None,
        }
    }

    fn is_concurrent(&self, next: &Self) -> bool {
        let one_asks_one_answers = matches!(
            (&self.side, &next.side),
            (Side::Request(_), Side::Response) | (Side::Response, Side::Request(_))
        );
        let names = |one: &Self, other: &Self| {
            !other.id.is_empty() && one.concurrent_to.contains(&other.id)
        };
        one_asks_one_answers && self.url == next.url && (names(next, self) || names(self, next))
    }
}

fn bare(id: &[u8]) -> &str {
    let id = str::from_utf8(id).unwrap_or_default().trim();
    id.strip_prefix('<')
        .and_then(|id| id.strip_suffix('>'))
        .unwrap_or(id)
}

/// Returns the capture of an exchange, under the key of its request.
fn join(one: Half, other: Half) -> Option<Capture> {
    let (posted, capture) = match (one.side, other.side) {
        (Side::Request(posted), _) => (posted, other.capture),
        (_, Side::Request(posted)) => (posted, one.capture),
        (Side::Response | Side::Neither, _) => (None, one.capture.or(other.capture)),
    };
    let mut capture = capture?;
    if let Some(posted) = posted {
        capture.key = UrlKey::parse(&posted.appended.url).to_string();
        capture
            .extra
            .push(("requestBody".to_owned(), posted.appended.body));
        capture
            .extra
            .push(("method".to_owned(), posted.method.to_ascii_uppercase()));
    }
    Some(capture)
}

/// Returns the query of a request, if it had a body to ask with, and the end of the request.
fn posted<R: Read>(
    mut record: Record<'_, R>,
    url: &str,
) -> Result<(Option<PostedRequest>, crate::warc::RecordSummary), ReadRecordError> {
    let head = match Head::read_head(&mut record, HEAD_LIMIT) {
        Ok(head) => Some(head),
        Err(HeadError::TooLarge { .. }) => None,
        Err(HeadError::Io(error)) => return Err(error.into()),
    };
    let mut posted = None;
    if let Some(head) = head
        && let Start::Request { method, .. } = head.start()
        && let Some(method) = ["POST", "PUT"]
            .iter()
            .find(|known| method.eq_ignore_ascii_case(known.as_bytes()))
    {
        let body = body(&head, &mut record)?;
        let appended = post::append_post_query(url, method, head.get("Content-Type"), &body);
        posted = appended.map(|appended| PostedRequest {
            method: (*method).to_owned(),
            appended,
        });
    }
    Ok((posted, record.read_end()?))
}

/// Returns as much of the body as its header announces, within what a key looks at.
fn body<R: Read>(head: &Head, record: &mut Record<'_, R>) -> Result<Vec<u8>, ReadRecordError> {
    let length = match head.get("Content-Length") {
        // A length that is invalid is not believed, and neither is the body that it belongs to.
        Some(_) => head.content_length().unwrap_or(0),
        None => UNKNOWN_LENGTH,
    };
    let mut body = Vec::new();
    let limit = length.min(post::MAX_BODY as u64);
    let limits = DecodeLimits::default();
    let decoded = Body::decoded_body(head, record, limits);
    match decoded.take(limit).read_to_end(&mut body) {
        Ok(_) => {}
        Err(error) if BodyError::find_within(&error).is_some() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(body)
}
