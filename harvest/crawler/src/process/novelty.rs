//! The captures of earlier jobs, and what of a response they make a repetition.
//!
//! Owns when a response becomes a `revisit` record, and which requests are conditional. A capture that is referred to
//! is always a `response` record. Text is left out unless the order says so, as in NetarchiveSuite: pages stay readable
//! by themselves. A request is conditional only where the answer "not modified" hides no links: the body of such an
//! answer is not there to be read.

use archive_formats::crawl_log::DuplicateOrigin;
use archive_formats::http::MediaType;
use harvest_policy::status::FetchStatus;
use index_dedup::{DedupError, DedupIndex, EarlierCapture};

use super::FetchedUri;
use crate::capture::{Novelty, RevisitTarget as CapturedBefore};

/// The media types, or the ends of them, whose documents have links.
const WITH_LINKS: [&str; 7] = ["html", "xml", "css", "javascript", "json", "pdf", "mpegurl"];

/// The captures of earlier jobs.
#[derive(Debug)]
pub struct KnownCaptures {
    /// The index of the captures.
    pub index: DedupIndex,
    /// Whether text is looked up, too.
    pub with_text: bool,
}

/// A response compared with earlier captures.
#[derive(Debug)]
pub(super) struct CaptureComparison {
    pub(super) novelty: Novelty,
    pub(super) annotations: Vec<String>,
}

impl Default for CaptureComparison {
    fn default() -> Self {
        Self {
            novelty: Novelty::New,
            annotations: Vec::new(),
        }
    }
}

impl KnownCaptures {
    /// Returns the capture that a request for a URI is conditional on.
    ///
    /// # Errors
    ///
    /// [`DedupError`] if the index is damaged or cannot be read.
    pub fn find_condition(&self, uri: &str) -> Result<Option<EarlierCapture>, DedupError> {
        let earlier = self.index.latest_by_url(uri)?;
        Ok(earlier.filter(|earlier| {
            let media_type = earlier.mime.as_deref().unwrap_or_default();
            let has_validator = earlier.etag.is_some() || earlier.last_modified.is_some();
            let has_links = WITH_LINKS.iter().any(|end| media_type.ends_with(end));
            has_validator && !has_links && self.is_looked_up(media_type)
        }))
    }

    /// Returns whether captures of a media type are looked up.
    fn is_looked_up(&self, media_type: &str) -> bool {
        !media_type.is_empty() && (self.with_text || !media_type.starts_with("text/"))
    }

    /// Compares a response with the earlier captures of its URI.
    pub(super) fn compare_payload(
        &self,
        fetched: &FetchedUri,
        status: FetchStatus,
    ) -> Result<CaptureComparison, DedupError> {
        let response = &fetched.fetched.exchange.response;
        if let (304, Some(earlier)) = (status.number(), &fetched.condition) {
            return Ok(CaptureComparison {
                annotations: vec![
                    "duplicate:server-not-modified".to_owned(),
                    origin(earlier).to_string(),
                ],
                novelty: Novelty::NotModified(captured_before(earlier)),
            });
        }
        let head = response.head.as_ref();
        let media_type = head.and_then(|head| MediaType::read_media(head.get("content-type")?));
        let is_whole = response.truncation.is_none();
        let is_good = matches!(status.number(), 200..=299);
        let is_looked_up =
            media_type.is_some_and(|media_type| self.is_looked_up(&media_type.essence));
        if !(is_whole && is_good && is_looked_up) {
            return Ok(CaptureComparison::default());
        }
        let digest = &response.payload_digest;
        let earlier = self.index.by_url_and_digest(&fetched.uri.uri, digest)?;
        Ok(
            earlier.map_or_else(CaptureComparison::default, |earlier| CaptureComparison {
                annotations: vec![origin(&earlier).to_string()],
                novelty: Novelty::SamePayload(captured_before(&earlier)),
            }),
        )
    }
}

/// Returns the annotation of the crawl log that names the first capture.
fn origin(earlier: &EarlierCapture) -> DuplicateOrigin {
    DuplicateOrigin {
        file: earlier.file.clone(),
        offset: earlier.offset,
        time: earlier.time,
    }
}

fn captured_before(earlier: &EarlierCapture) -> CapturedBefore {
    CapturedBefore {
        uri: earlier.uri.clone(),
        time: earlier.time.time(),
        record_id: earlier.record_id.clone(),
    }
}
