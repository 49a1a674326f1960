//! A query of the wire, answered capture by capture for as long as somebody takes them.

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::CaptureQuery;
use index_captures::{CaptureIndex, QueryError};

/// Calls `give` with each capture that answers the query, in order, until it says that no more are wanted. Returns how
/// many were given.
///
/// # Errors
///
/// Fails when the query breaks a rule, or the database fails: what was given is then not the whole answer.
pub(crate) fn answer_query(
    captures: &CaptureIndex,
    query: &CaptureQuery,
    mut give: impl FnMut(Capture) -> bool,
) -> Result<u64, QueryError> {
    let mut count = 0_u64;
    for capture in captures.query_captures(query)? {
        if !give(capture?) {
            break;
        }
        count = count.saturating_add(1);
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
