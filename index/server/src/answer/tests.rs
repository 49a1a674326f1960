//! Answers beside the model of `index_client`, which knows the shared terms of queries only.

use archive_formats::cdx::query::{
    CaptureField, Collapse, Cursor, Filter, FilterTest, Keep, KeyMatch, KeyRange, Limit, MatchKind,
    Order, SET_FIELD, TimeSpan,
};
use archive_formats::date::Stamp;
use archive_formats::surt::UrlKey;
use index_captures::{MemoryPlace, OpenOptions};
use index_client::FakeIndex;

use super::*;

fn capture(url: &str, time: &str, file: &str, offset: u64) -> Capture {
    let key = UrlKey::parse(url).to_string();
    let mut capture = Capture::new(key, time.parse().unwrap());
    capture.original = Some(url.to_owned());
    capture.status = Some(if offset.is_multiple_of(3) { 404 } else { 200 });
    capture.mime = Some("text/html".to_owned());
    capture.file = Some(file.to_owned());
    capture.offset = Some(offset);
    capture
}

/// Returns captures of several URLs and times, some of one second in two files, in the order of the index.
fn all() -> Vec<Capture> {
    let urls = [
        "http://a.example/",
        "http://a.example/b",
        "http://b.example/x?y=1",
    ];
    let times = [
        "20200101000000",
        "20200101000001",
        "20210203040506",
        "20991231235959",
    ];
    let mut all = Vec::new();
    for url in urls {
        for time in times {
            for (file, offset) in [("a.warc", 0), ("a.warc", 7), ("b.warc", 3)] {
                all.push(capture(url, time, file, offset));
            }
        }
    }
    all
}

fn index(all: &[Capture]) -> CaptureIndex {
    let memory = MemoryPlace::new().unwrap();
    let opened = CaptureIndex::open_in_memory(&memory, &OpenOptions::default()).unwrap();
    for file in ["a.warc", "b.warc"] {
        let mut writer = opened.captures.begin_file(file).unwrap();
        for capture in all {
            if capture.file.as_deref() == Some(file) {
                writer.push_capture(capture).unwrap();
            }
        }
        writer.complete_file(None).unwrap();
    }
    opened.captures
}

fn answer_of(captures: &CaptureIndex, query: &CaptureQuery) -> Vec<Capture> {
    let mut found = Vec::new();
    let count = answer_query(captures, query, |capture| {
        found.push(capture);
        true
    });
    assert_eq!(count.unwrap(), found.len() as u64);
    found
}

fn keys() -> Vec<KeyMatch> {
    let of = |kind, url| KeyMatch::for_url(kind, url).unwrap();
    vec![
        of(MatchKind::Exact, "http://a.example/b"),
        of(MatchKind::Prefix, "http://a.example/"),
        of(MatchKind::Domain, "http://example/"),
        of(MatchKind::Host, "http://b.example/"),
        of(MatchKind::Exact, "http://nowhere.example/"),
        KeyMatch::Within(KeyRange::all()),
    ]
}

fn queries() -> Vec<CaptureQuery> {
    let not_found = Filter {
        field: CaptureField::Status,
        negate: true,
        test: FilterTest::Exact("404".to_owned()),
    };
    let collapse = Collapse {
        field: CaptureField::Timestamp,
        characters: Some(4),
    };
    let mut queries = Vec::new();
    for keys in keys() {
        for span in [
            ("", ""),
            ("2021", ""),
            ("", "20200101000000"),
            ("2022", "2021"),
        ] {
            for order in [Order::Ascending, Order::Descending] {
                for thin in 0..4 {
                    queries.push(CaptureQuery {
                        span: TimeSpan::parse(span.0, span.1).unwrap(),
                        order,
                        filters: vec![not_found.clone(); thin % 2],
                        collapse: vec![collapse.clone(); thin / 2],
                        keep: Keep::Last,
                        ..CaptureQuery::new(keys.clone())
                    });
                }
            }
        }
        if matches!(keys, KeyMatch::Exact(_)) {
            let at = "20200630000000".parse().unwrap();
            queries.push(CaptureQuery {
                order: Order::Closest(at),
                ..CaptureQuery::new(keys.clone())
            });
        }
    }
    queries
}

/// Compares two answers. Captures that are equally close may come in any order.
fn check(query: &CaptureQuery, found: &[Capture], expected: &[Capture]) {
    if !matches!(query.order, Order::Closest(_)) {
        assert_eq!(found, expected, "{query:?}");
        return;
    }
    let times = |all: &[Capture]| -> Vec<Stamp> { all.iter().map(|one| one.timestamp).collect() };
    assert_eq!(times(found), times(expected), "{query:?}");
    if query.limit.is_none() {
        let all_are_there = expected.iter().all(|capture| found.contains(capture));
        assert!(all_are_there, "{query:?}");
    }
}

/// Fails if a capture does not name the set that it was imported with, or a line can pass for one of another set.
#[test]
fn imported_captures_name_their_set() {
    let captures = index(&all());
    let mut set = captures.begin_import("old").unwrap();
    let line = "example,a)/ 20010101000000 {\"url\": \"http://a.example/\", \"filename\": \"o.arc\", \"offset\": \"7\", \"set\": \"other\"}\n";
    set.read_lines("old.cdxj", line.as_bytes()).unwrap();
    set.complete_import().unwrap();
    let keys = KeyMatch::for_url(MatchKind::Exact, "http://a.example/").unwrap();
    let mut query = CaptureQuery::new(keys);
    let sets = |query: &CaptureQuery| {
        let mut sets = Vec::new();
        answer_query(&captures, query, |capture| {
            sets.push(capture.extra(SET_FIELD).map(str::to_owned));
            true
        })
        .unwrap();
        sets
    };
    let found = sets(&query);
    assert_eq!((found.len(), found[0].as_deref()), (13, Some("old")));
    assert!(found[1..].iter().all(Option::is_none), "{found:?}");
    query.filters.push(Filter {
        field: CaptureField::Extra(SET_FIELD.to_owned()),
        negate: false,
        test: FilterTest::Exact("old".to_owned()),
    });
    assert_eq!(sets(&query).len(), 1);
}

/// Fails if the index and the shared terms disagree about which captures answer a query, in which order.
#[test]
fn answers_are_those_of_the_model() {
    let all = all();
    let index = index(&all);
    let model = FakeIndex::new(all.clone());
    for query in queries() {
        check(
            &query,
            &answer_of(&index, &query),
            &model.answer_to(&query).unwrap(),
        );
        for limit in [Limit::First(0), Limit::First(2), Limit::Last(2)] {
            let query = CaptureQuery {
                limit: Some(limit),
                ..query.clone()
            };
            check(
                &query,
                &answer_of(&index, &query),
                &model.answer_to(&query).unwrap(),
            );
        }
    }
}

/// Fails if an answer that is resumed at any capture loses one, or gives one again.
#[test]
fn resumed_answers_go_on_behind_their_cursor() {
    let all = all();
    let index = index(&all);
    let plain = queries().into_iter();
    let plain = plain
        .filter(|query| query.collapse.is_empty() && !matches!(query.order, Order::Closest(_)));
    for query in plain {
        let whole = answer_of(&index, &query);
        for (at, capture) in whole.iter().enumerate() {
            let query = CaptureQuery {
                cursor: Some(Cursor::from_capture(capture)),
                ..query.clone()
            };
            assert_eq!(answer_of(&index, &query), whole[at + 1..], "{query:?}");
        }
    }
}

/// Fails if captures are lost when the capture of a cursor was removed by the time that the answer is resumed.
#[test]
fn cursor_of_lost_capture_repeats_its_second() {
    let all = all();
    let index = index(&all);
    let keys = KeyMatch::for_url(MatchKind::Exact, "http://a.example/b").unwrap();
    for order in [Order::Ascending, Order::Descending] {
        let query = CaptureQuery {
            order,
            ..CaptureQuery::new(keys.clone())
        };
        let whole = answer_of(&index, &query);
        let mut cursor = Cursor::from_capture(&whole[4]);
        cursor.file = "gone.warc".to_owned();
        let query = CaptureQuery {
            cursor: Some(cursor),
            ..query
        };
        assert_eq!(answer_of(&index, &query), whole[3..]);
    }
}
