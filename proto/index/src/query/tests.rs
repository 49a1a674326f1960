//! Queries on their way over the wire and back, and faulty ones.

use super::*;

fn fields() -> Vec<CaptureField> {
    let mut fields = CaptureField::cdx11().to_vec();
    fields.extend([
        CaptureField::OriginalLength,
        CaptureField::OriginalOffset,
        CaptureField::OriginalFile,
        CaptureField::Extra("method".to_owned()),
        CaptureField::Line,
    ]);
    fields
}

fn exact() -> CaptureQuery {
    CaptureQuery::new(KeyMatch::Exact(UrlKey::parse("http://www.example.org/a")))
}

/// A query in which everything is said.
fn whole() -> CaptureQuery {
    let tests = |n: usize| match n % 5 {
        0 => FilterTest::Contains(String::new()),
        1 => FilterTest::Exact("200".to_owned()),
        2 => FilterTest::Matches(Pattern::new("a.*", Anchoring::Whole).unwrap()),
        3 => FilterTest::Matches(Pattern::new("a.*", Anchoring::Start).unwrap()),
        _ => FilterTest::Matches(Pattern::new("", Anchoring::Anywhere).unwrap()),
    };
    let filters = fields().into_iter().zip(0..).map(|(field, n)| Filter {
        field,
        negate: n % 2 == 0,
        test: tests(n),
    });
    CaptureQuery {
        keys: KeyMatch::Within(KeyRange::of_prefix("org,example)/")),
        span: TimeSpan::parse("2020", "20210506070809").unwrap(),
        filters: filters.collect(),
        order: Order::Descending,
        collapse: vec![
            Collapse {
                field: CaptureField::Digest,
                characters: None,
            },
            Collapse {
                field: CaptureField::Timestamp,
                characters: Some(0),
            },
        ],
        keep: Keep::Last,
        limit: Some(Limit::Last(7)),
        cursor: Some(Cursor {
            key: "org,example)/b".to_owned(),
            timestamp: "20200101000000123".parse().unwrap(),
            file: "a b.warc".to_owned(),
            offset: u64::MAX,
            source: Some(Box::new(CursorSource {
                set: "a set".to_owned(),
                line: "m.warc:17".to_owned(),
            })),
        }),
    }
}

/// Fails if a part of a query is lost, or becomes another one, on the way.
#[test]
fn queries_survive_the_wire() {
    let closest = CaptureQuery {
        order: Order::Closest("20200101000000".parse().unwrap()),
        limit: Some(Limit::First(0)),
        ..exact()
    };
    let everything = CaptureQuery::new(KeyMatch::Within(KeyRange {
        start: String::new(),
        end: None,
    }));
    for query in [exact(), closest, everything, whole()] {
        assert_eq!(read_query(write_query(&query)), Ok(query));
    }
}

/// Fails if a faulty query is run, or the error does not name its field.
#[test]
fn faulty_queries_name_their_field() {
    let refused = |field: &str, change: &dyn Fn(&mut wire::QueryRequest)| {
        let mut message = write_query(&whole());
        change(&mut message);
        let error = read_query(message).unwrap_err();
        assert_eq!(error.field, field, "{error}");
    };
    refused("keys", &|message| message.keys = None);
    refused("exact", &|message| {
        message.keys = Some(Keys::Exact(String::new()));
    });
    refused("exact", &|message| {
        message.keys = Some(Keys::Exact("a".repeat(LONGEST_TEXT + 1)));
    });
    refused("from", &|message| message.from = "2020".to_owned());
    refused("to", &|message| message.to = "20201301000000".to_owned());
    refused("order", &|message| message.order = 0);
    refused("order", &|message| message.order = 99);
    refused("closest", &|message| {
        message.order = wire::Order::Closest.into();
    });
    refused("query", &|message| {
        message.order = wire::Order::Closest.into();
        message.closest = "20200101000000".to_owned();
    });
    refused("query", &|message| {
        message.limit = Some(WireLimit::Last(u64::MAX));
    });
    refused("filters", &|message| {
        message.filters = vec![wire::Filter::default(); MAX_FILTERS + 1];
    });
    refused("collapse", &|message| {
        message.collapse = vec![wire::Collapse::default(); MAX_COLLAPSES + 1];
    });
    refused("filters.test", &|message| message.filters[0].test = None);
    refused("filters.field", &|message| message.filters[0].field = None);
    refused("filters.field", &|message| {
        message.filters[0].field = Some(wire::Field {
            name: wire::FieldName::Extra.into(),
            extra: String::new(),
        });
    });
    let pattern = |expression: &str, anchoring: i32| {
        let expression = expression.to_owned();
        Some(Test::Matches(wire::filter::Pattern {
            expression,
            anchoring,
        }))
    };
    for bad in ["(", "(?=a)", "((((a{99}){99}){99}){99}){99}"] {
        refused("filters.matches.expression", &|message| {
            message.filters[0].test = pattern(bad, 1);
        });
    }
    for bad in [0, 9] {
        refused("filters.matches.anchoring", &|message| {
            message.filters[0].test = pattern("a", bad);
        });
    }
    refused("collapse.field", &|message| {
        message.collapse[0].field = None;
    });
    refused("cursor.timestamp", &|message| {
        message.cursor.as_mut().unwrap().timestamp.clear();
    });
    let long = || "a".repeat(LONGEST_TEXT + 1);
    refused("cursor.set", &|message| {
        message.cursor.as_mut().unwrap().set = long();
    });
    refused("cursor.line", &|message| {
        message.cursor.as_mut().unwrap().line = long();
    });
}
