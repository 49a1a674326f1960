//! From captures near a time to the one that is shown, with its record opened.
//!
//! Owns the reads and look-ups that the resolver asks for. Which capture is shown is decided there.

use archive_client::ClientError;
use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{
    CaptureField, CaptureQuery, Filter, FilterTest, KeyMatch, Limit, MatchKind,
};
use archive_model::FileName;
use std::time::Duration;
use viewer_replay::memento::AnswerField;
use viewer_replay::request::ReplayTarget;
use viewer_replay::resolve::{
    HeadSource, NotFoundReason, RecordFacts, ResolveOutcome, ResolveStep, Resolver, ShownCapture,
    StepAnswer,
};
use viewer_replay::response::StoredMessage;

use super::look_up::NearbyCaptures;
use super::{Server, Visit, gone_notice, index_failed, record_failed};
use crate::answer::Notice;
use crate::records::{OpenRecord, RecordError, RecordPlace};

/// The longest search for captures by their digest, of which the index has no order.
const DIGEST_TIME: Duration = Duration::from_secs(3);

/// The most captures with one digest that are looked at.
const DIGEST_CAPTURES: u64 = 5;

/// A capture that is shown, and the record with its payload.
#[derive(Debug)]
pub(super) struct CaptureContent {
    pub(super) capture: ShownCapture,
    /// The message whose head is shown.
    pub(super) message: StoredMessage,
    pub(super) payload: OpenRecord,
}

/// A capture on its way out.
#[derive(Debug)]
pub(super) struct OutgoingCapture {
    pub(super) content: CaptureContent,
    /// The URL that it is a capture of.
    pub(super) url: String,
    /// The fields that its address asks for.
    pub(super) fields: Vec<AnswerField>,
}

impl Server {
    /// Finds what is shown of captures near a time.
    pub(super) async fn show_capture(
        &self,
        visit: &Visit,
        near: &NearbyCaptures,
    ) -> Result<CaptureContent, Notice> {
        let access = |capture: &Capture| visit.decide_anywhere(capture);
        let mut resolver = Resolver::new();
        let mut step = resolver.take_answer(StepAnswer::Captures(near.captures.clone()), &access);
        let mut heads: Vec<(Capture, StoredMessage)> = Vec::new();
        let mut last: Option<OpenRecord> = None;
        let mut failure: Option<RecordError> = None;
        loop {
            let answer = match step {
                ResolveStep::Read(capture) => {
                    // The permit of the last record is given back before another one is asked for.
                    drop(last.take());
                    match self.read(&capture).await {
                        Ok(record) => {
                            let head = record.message.head();
                            let facts = RecordFacts::read_facts(record.kind, &record.header, head);
                            heads.push((*capture, record.message.clone()));
                            last = Some(record);
                            StepAnswer::Record(facts)
                        }
                        Err(error) => {
                            let is_passing = error.is_passing();
                            failure = Some(main_failure(failure.take(), error));
                            if is_passing {
                                StepAnswer::Unavailable
                            } else {
                                StepAnswer::Missing
                            }
                        }
                    }
                }
                ResolveStep::FindByUrl { key, time, .. } => {
                    let found = self.near_anywhere(visit, &key, time).await;
                    StepAnswer::Captures(found.map_err(|error| index_failed(&error))?.captures)
                }
                ResolveStep::FindByDigest { digest } => {
                    let found = self.by_digest(near, &digest).await?;
                    found.map_or(StepAnswer::Unavailable, StepAnswer::Captures)
                }
                ResolveStep::Finished(outcome) => {
                    return finish(outcome, heads, last, failure.as_ref());
                }
            };
            step = resolver.take_answer(answer, &access);
        }
    }

    async fn read(&self, capture: &Capture) -> Result<OpenRecord, RecordError> {
        let nowhere = || {
            let words = "the index names no file and no place in it".to_owned();
            RecordError::Archive(ClientError::NotFound(words))
        };
        let file = capture
            .file
            .as_deref()
            .and_then(|file| FileName::new(file).ok());
        let place = RecordPlace {
            file: file.ok_or_else(nowhere)?,
            offset: capture.offset.ok_or_else(nowhere)?,
            length: capture.length,
        };
        self.parts.records.open_record(&place).await
    }

    /// Returns the captures of the same host with a digest. The index has no order of digests, so that other hosts are
    /// not searched, and the search has a limit of time. Returns `None` if it was not over by then.
    async fn by_digest(
        &self,
        near: &NearbyCaptures,
        digest: &str,
    ) -> Result<Option<Vec<Capture>>, Notice> {
        let url = near
            .captures
            .first()
            .and_then(|capture| capture.original.as_deref());
        let Some(keys) = url.and_then(|url| KeyMatch::for_url(MatchKind::Host, url).ok()) else {
            return Ok(Some(Vec::new()));
        };
        let mut query = CaptureQuery::new(keys);
        query.limit = Some(Limit::First(DIGEST_CAPTURES));
        let bare = digest.strip_prefix("sha1:").unwrap_or(digest);
        query.filters = vec![
            Filter {
                field: CaptureField::Digest,
                negate: false,
                test: FilterTest::Exact(bare.to_owned()),
            },
            Filter {
                field: CaptureField::Mime,
                negate: true,
                test: FilterTest::Exact("warc/revisit".to_owned()),
            },
        ];
        let search = async {
            let mut stream = self.parts.index.query(&query).await?;
            let mut found = Vec::new();
            while let Some(capture) = stream.next().await? {
                found.push(capture);
            }
            Ok(found)
        };
        match self.parts.clock.run_with_timeout(DIGEST_TIME, search).await {
            Ok(found) => found
                .map(Some)
                .map_err(|error: index_client::IndexCallError| index_failed(&error)),
            Err(_elapsed) => {
                tracing::warn!(digest, "the original of a revisit was not found in time");
                Ok(None)
            }
        }
    }
}

/// Returns the failure that the answer reports: the first one, and a passing one before those that last, because the
/// record that was not read may have been the right one.
fn main_failure(known: Option<RecordError>, error: RecordError) -> RecordError {
    match known {
        Some(known) if known.is_passing() || !error.is_passing() => known,
        _ => error,
    }
}

fn finish(
    outcome: ResolveOutcome,
    heads: Vec<(Capture, StoredMessage)>,
    last: Option<OpenRecord>,
    failure: Option<&RecordError>,
) -> Result<CaptureContent, Notice> {
    let shown = match outcome {
        ResolveOutcome::Shown(shown) => *shown,
        ResolveOutcome::Refused(decision) => {
            return Err(match decision.verdict.status() {
                Some(451) => Notice::blocked_notice(),
                _ => no_capture(),
            });
        }
        ResolveOutcome::NotFound(reason) => return Err(not_found(reason, failure)),
        ResolveOutcome::Unavailable => {
            // The answer says that asking again may help; a lasting failure does not explain that.
            let passing = failure.filter(|error| error.is_passing());
            return Err(passing.map_or_else(
                || {
                    Notice::unavailable_notice(
                        "The archive does not answer now; try again in a moment.",
                    )
                },
                record_failed,
            ));
        }
    };
    let Some(payload) = last else {
        return Err(gone_notice());
    };
    let own = heads
        .into_iter()
        .find(|(capture, _)| *capture == shown.capture);
    let message = match (shown.head, own) {
        (HeadSource::Capture, Some((_, message))) => message,
        (HeadSource::Capture, None) | (HeadSource::Original, _) => payload.message.clone(),
    };
    Ok(CaptureContent {
        capture: shown,
        message,
        payload,
    })
}

fn not_found(reason: NotFoundReason, failure: Option<&RecordError>) -> Notice {
    let is_of_record = matches!(
        reason,
        NotFoundReason::NoRecord | NotFoundReason::NoOriginal | NotFoundReason::UnnamedOriginal
    );
    if let Some(error) = failure.filter(|_| is_of_record) {
        return record_failed(error);
    }
    match reason {
        NotFoundReason::NoCapture => no_capture(),
        NotFoundReason::NoRecord => gone_notice(),
        NotFoundReason::NoOriginal => Notice::not_found(
            "This capture only says that its content was the same as that of an earlier one, and that one is not in the archive. \
             No other capture of the same host was found to have the content; those of other hosts are not searched for it.",
        ),
        NotFoundReason::UnnamedOriginal => Notice::not_found(
            "This capture only says that its content was the same as that of an earlier one, and does not name that one. No other \
             capture of the same host was found to have the content; those of other hosts are not searched for it, and the \
             archive may have it there.",
        ),
        NotFoundReason::ChainTooLong => Notice::not_found(
            "This capture refers to another one, and that to further ones; the content was not found within two steps.",
        ),
        NotFoundReason::Circle => Notice::not_found(
            "This capture says that its content was the same as that of another one, and that one refers back to it.",
        ),
    }
}

/// Makes the notice that the archive has no capture that this visitor may know of.
pub(super) fn no_capture() -> Notice {
    Notice::not_found("The archive has no capture of this address.")
        .and_words("Look for others with /<collection>/cdx?url=<url>&matchType=prefix.")
}

/// Makes the notice that the archive has no capture of a target that this visitor may know of.
pub(super) fn no_capture_of(target: &ReplayTarget) -> Notice {
    if target.is_of_get() {
        return no_capture();
    }
    Notice::not_found(
        "The archive has no capture of this address that was asked for with this method and this body.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lasting(words: &str) -> RecordError {
        RecordError::Archive(ClientError::NotFound(words.to_owned()))
    }

    fn passing(words: &str) -> RecordError {
        RecordError::Archive(ClientError::Unavailable(words.to_owned()))
    }

    /// Fails if a record that is missing hides another one that cannot be read now, or a later failure hides the first.
    #[test]
    fn passing_failure_outlives_lasting_ones() {
        for (failures, expected) in [
            ([lasting("a"), lasting("b")], "a"),
            ([passing("a"), lasting("b")], "a"),
            ([passing("a"), passing("b")], "a"),
            ([lasting("a"), passing("b")], "b"),
        ] {
            let mut told = None;
            for failure in failures {
                told = Some(main_failure(told.take(), failure));
            }
            let told = told.unwrap().to_string();
            assert!(told.starts_with(expected), "{told}");
        }
    }

    /// Fails if a search that was not over is answered as if nothing were there.
    #[test]
    fn unfinished_search_is_503() {
        for failure in [None, Some(lasting("a")), Some(passing("b"))] {
            let refused = finish(
                ResolveOutcome::Unavailable,
                Vec::new(),
                None,
                failure.as_ref(),
            );
            assert_eq!(refused.unwrap_err().status(), 503, "{failure:?}");
        }
    }
}
