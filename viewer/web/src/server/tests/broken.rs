//! An index that is down, or breaks in the middle of its answer.

use std::sync::Arc;

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::CaptureQuery;
use archive_rpc::CallErrorKind as ErrorKind;
use index_client::{CaptureSearch, CaptureStream, IndexCallError, IndexFuture as IndexAnswer};

use super::test_archive::TestArchive;
use super::three_pages;

/// An index that answers with some captures, and then breaks.
pub(super) struct BrokenIndex(pub(super) Vec<Capture>);

impl CaptureSearch for BrokenIndex {
    fn query<'a>(&'a self, _query: &'a CaptureQuery) -> IndexAnswer<'a, CaptureStream> {
        let down = || IndexCallError::new(ErrorKind::Unavailable, "nobody answers");
        let captures = self.0.clone().into_iter().map(Ok);
        let items: Vec<_> = captures.chain([Err(down())]).collect();
        Box::pin(async move {
            match items.len() {
                1 => Err(down()),
                _ => Ok(CaptureStream::new(futures_util::stream::iter(items))),
            }
        })
    }
}

/// Fails if an index that is down looks like an archive without captures.
#[tokio::test]
async fn index_down_is_503_with_retry_after() {
    let world = TestArchive {
        index: Some(Arc::new(BrokenIndex(Vec::new()))),
        ..TestArchive::new()
    };
    let served = world.serve().await;
    for path in [
        "/all/cdx?url=http://example.org/",
        "/all/2020id_/http://example.org/",
        "/all/http://example.org/",
        "/all/timemap/link/http://example.org/",
    ] {
        let answer = served.get(path).await;
        assert_eq!(answer.status, 503, "{path}");
        assert!(answer.field("retry-after").is_some(), "{path}");
        assert!(
            !answer.text().contains("nobody answers"),
            "words of parts are for the log"
        );
    }
}

/// Fails if an answer that broke off looks whole to its client.
#[tokio::test]
async fn broken_answer_is_never_whole() {
    let mut captures = three_pages().await.captures;
    let one = captures[0].clone();
    captures.extend(std::iter::repeat_n(one, 5_000));
    let world = TestArchive {
        index: Some(Arc::new(BrokenIndex(captures))),
        ..TestArchive::new()
    };
    let served = world.serve().await;
    let answer = served.get("/all/cdx?url=http://example.org/page").await;
    assert_eq!(answer.status, 200);
    assert!(!answer.is_whole && !answer.body.is_empty());
}
