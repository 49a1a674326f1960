//! The facts about a fetch that the header of its request has.

use axum::http::{HeaderMap, HeaderValue};
use viewer_replay::delivery::FetchFacts;

/// Returns the facts that a header has.
pub(super) fn fetch_facts(headers: &HeaderMap) -> FetchFacts<'_> {
    FetchFacts::read_facts(|name| headers.get(name).map(HeaderValue::as_bytes))
}
