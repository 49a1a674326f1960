//! Revisits: where their originals are looked for, and what is said if they are not there.

use super::test_archive::{OK, TestArchive, Warc};
use super::{FIRST, SECOND};

/// Fails if a revisit shows its own empty body, or one that leads nowhere shows anything.
#[tokio::test]
async fn revisit_shows_its_original() {
    let earlier = Warc::new().response("http://example.org/a", FIRST, OK, b"same");
    let later = Warc::new()
        .revisit(
            "http://example.org/b",
            SECOND,
            ("http://example.org/a", FIRST),
            b"same",
        )
        .revisit(
            "http://example.org/c",
            SECOND,
            ("http://example.org/none", FIRST),
            b"gone",
        );
    let world = TestArchive::new().with("1-a.warc.gz", earlier).await;
    // The original lies in a file of an earlier job, which the collection does not have.
    let world = world
        .with("2-b.warc.gz", later)
        .await
        .set("collection=[{ name = \"two\", jobs = [2] }]");
    let served = world.serve().await;
    let answer = served.get("/two/2021id_/http://example.org/b").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "same"));
    assert_eq!(
        answer.field("memento-datetime"),
        Some("Fri, 01 Jan 2021 00:00:00 GMT")
    );
    let lost = served.get("/two/2021id_/http://example.org/c").await;
    assert_eq!(lost.status, 404);
    assert!(lost.text().contains("earlier one"), "{}", lost.text());
    assert_eq!(
        served.get("/two/2020id_/http://example.org/a").await.status,
        404
    );
}

/// Fails if an original that nothing names is not found at its own host, or is called missing although it was not
/// looked for.
#[tokio::test]
async fn unnamed_original_is_searched_at_own_host() {
    let warc = Warc::new()
        .response("http://example.org/first", FIRST, OK, b"own")
        .response("http://other.example/first", FIRST, OK, b"other")
        .unnamed_revisit("http://example.org/own", SECOND, b"own")
        .unnamed_revisit("http://example.org/other", SECOND, b"other")
        .revisit(
            "http://example.org/named",
            SECOND,
            ("http://other.example/first", FIRST),
            b"other",
        );
    let archive = TestArchive::new().with("1-a.warc.gz", warc).await;
    let served = archive.serve().await;
    for (name, body) in [("own", "own"), ("named", "other")] {
        let path = format!("/all/2021id_/http://example.org/{name}");
        let answer = served.get(&path).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, body));
    }
    let answer = served.get("/all/2021id_/http://example.org/other").await;
    assert_eq!(answer.status, 404);
    for words in ["does not name that one", "other hosts are not searched"] {
        assert!(answer.text().contains(words), "{}", answer.text());
    }
}
