//! An index in memory, for the tests of code that asks one: it answers by the shared terms of
//! `archive_formats::cdx::query` alone, which makes it the model of a real one.
//!
//! ```
//! use archive_formats::cdx::Capture;
//! use archive_formats::cdx::query::{CaptureQuery, KeyMatch, MatchKind};
//! use index_client::{CaptureSearch, FakeIndex};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let capture = Capture::new("org,example)/", "20260102030405".parse()?);
//! let index = FakeIndex::new(vec![capture.clone()]);
//! let query = CaptureQuery::new(KeyMatch::for_url(MatchKind::Host, "example.org")?);
//! let mut captures = index.query(&query).await?;
//! assert_eq!(captures.next().await?, Some(capture));
//! assert_eq!(captures.next().await?, None);
//! # Ok(())
//! # }
//! ```

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureQuery, Cursor, Order};
use archive_rpc::CallErrorKind;

use crate::IndexFuture;
use crate::captures::{CaptureSearch, CaptureStream};
use crate::error::IndexCallError;

/// An index of these captures.
#[derive(Clone, Debug, Default)]
pub struct FakeIndex {
    captures: Vec<Capture>,
}

impl FakeIndex {
    /// Makes an index. Captures of one key and second stay in the order that they have here.
    pub fn new(mut captures: Vec<Capture>) -> Self {
        captures.sort_by(|one, other| Order::Ascending.compare_captures(one, other));
        Self { captures }
    }

    /// Answers a query at once.
    ///
    /// # Errors
    ///
    /// Fails when the query breaks a rule.
    pub fn answer_to(&self, query: &CaptureQuery) -> Result<Vec<Capture>, IndexCallError> {
        let invalid = |error: archive_formats::cdx::query::InvalidQuery| {
            IndexCallError::new(CallErrorKind::Invalid, error.to_string())
        };
        query.validate_query().map_err(invalid)?;
        let mut found: Vec<&Capture> = match query.order {
            Order::Descending => self.captures.iter().rev().collect(),
            Order::Ascending | Order::Closest(_) => self.captures.iter().collect(),
        };
        found.sort_by(|one, other| query.order.compare_captures(one, other));
        if let Some(cursor) = &query.cursor {
            let place = found
                .iter()
                .position(|capture| Cursor::from_capture(capture) == *cursor);
            found.drain(..place.map_or(0, |at| at + 1));
        }
        found.retain(|capture| query.accepts_capture(capture));
        let found = found.into_iter().cloned().map(Ok::<_, IndexCallError>);
        let thinned = query.thin_captures(found);
        thinned.map(|run| run.map(|run| run.capture)).collect()
    }
}

impl CaptureSearch for FakeIndex {
    fn query<'a>(&'a self, query: &'a CaptureQuery) -> IndexFuture<'a, CaptureStream> {
        let answer = self.answer_to(query);
        Box::pin(async move {
            let captures = answer?.into_iter().map(Ok);
            Ok(CaptureStream::new(tokio_stream::iter(captures)))
        })
    }
}
