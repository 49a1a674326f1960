//! `captures` and `index`: requests that make no sense, and an index that does not answer.

use crate::holdfast::{Place, executable, run};

/// Fails if nonsense is asked of an index, or the exit code is not that of a wrong command line.
#[test]
fn nonsense_is_refused_before_anything_is_asked() {
    for words in [
        &["captures"][..],
        &["captures", "a.example", "--match", "some"],
        &["captures", "a.example", "--limit", "many"],
        &["captures", "a.example", "--from", "20161301"],
        &["captures", "a.example", "--to", "yesterday"],
        &[
            "captures",
            "a.example",
            "--match",
            "host",
            "--closest",
            "2016",
        ],
        &["captures", "dns:a.example", "--match", "domain"],
        &[
            "captures",
            "a.example",
            "--collection",
            "all",
            "--limit",
            "-1",
        ],
        &["index"],
        &["index", "rebuild"],
        &["index", "retry", "../escape"],
        &["index", "import", "a.cdx"],
        &["index", "import", "--set", "a"],
        &["index", "import", "a.cdx", "--set", "A b"],
        &["index", "export"],
        &["index", "export", "-o", "-", "--max-size", "1 MB"],
        &["index", "export", "-o", "x", "--max-size", "0"],
        &["index", "--settings", "a.toml", "status"],
    ] {
        let ran = run(executable().args(words));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{words:?}: {ran:?}");
    }
}

/// Fails if a client file without an index leads to anything but a word about it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_index_is_reported() {
    let place = Place::new().await;
    for words in [
        &["captures", "http://a.example/"][..],
        &["index", "status"],
        &["index", "retry"],
    ] {
        let ran = place.holdfast(words).expect(3);
        assert!(ran.err.contains("names no index"), "{ran:?}");
    }
    let words = ["captures", "http://a.example/", "--collection", "all"];
    let ran = place.holdfast(&words).expect(3);
    assert!(ran.err.contains("names no viewer"), "{ran:?}");
    let ran = run(executable().args(["index", "--settings", "/nowhere.toml"]));
    assert_eq!(ran.code, 3, "{ran:?}");
}
