//! Queries while the index changes, resume keys, and queries that make no sense.

use archive_formats::cdx::query::{Cursor, InvalidQuery, Limit, MAX_LAST, Order};
use archive_formats::cdx::{Capture, OriginalRecord};

use super::{add, answer, answer_with_sources, capture, empty, everything, of_all, of_url, open};
use crate::QueryError;

/// Fails if a resume key leaves out or repeats a capture because others came or went.
#[test]
fn resume_key_is_stable_under_changes() {
    let (_memory, captures) = empty();
    let at = |n: u64| capture(&format!("http://a.dk/{n:04}"), "20200101000000", n);
    let even: Vec<_> = (0..50).map(|n| at(n * 2)).collect();
    add(&captures, "even", &even);
    let mut query = of_all();
    query.limit = Some(Limit::First(10));
    let mut seen = Vec::new();
    for round in 0..5_u64 {
        let page = answer(&captures, &query);
        query.cursor = page.last().map(Cursor::from_capture);
        seen.extend(page.iter().map(|found| found.offset.unwrap()));
        // Before the place, where it was seen; its own row goes, too.
        add(&captures, &format!("odd {round}"), &[at(round * 2 + 1)]);
        if round == 2 {
            let rest: Vec<_> = (30..50).map(|n| at(n * 2)).collect();
            add(&captures, "even", &rest);
            while !captures.sweep_rows(7).unwrap().is_complete {}
        }
    }
    assert_eq!(seen, (0..50).map(|n| n * 2).collect::<Vec<_>>());
    assert_eq!(answer(&captures, &query), []);
}

/// Fails if captures of one second are lost or repeated when an answer is resumed in the middle of them.
#[test]
fn resume_key_leads_through_one_second() {
    let (_memory, captures) = empty();
    let mut file: Vec<Capture> = (0..9)
        .map(|n| capture("http://a.dk/", "20200101000000", n))
        .collect();
    for capture in &mut file {
        capture.file = Some("a.warc".to_owned());
    }
    add(&captures, "a.warc", &file);
    for order in [Order::Ascending, Order::Descending] {
        let mut query = of_url("http://a.dk/");
        query.order = order;
        let whole = answer(&captures, &query);
        assert_eq!(whole.len(), 9);
        query.limit = Some(Limit::First(1));
        let mut seen = Vec::new();
        while let Some(found) = answer(&captures, &query).pop() {
            query.cursor = Some(Cursor::from_capture(&found));
            seen.push(found.offset.unwrap());
            assert!(seen.len() <= 9, "{seen:?}");
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..9).collect::<Vec<_>>());

        // A cursor of a capture that was removed by then: its second is read again.
        let mut gone = Cursor::from_capture(&whole[5]);
        gone.file = "gone".to_owned();
        query.cursor = Some(gone);
        query.limit = None;
        assert_eq!(answer(&captures, &query), whole);
    }
}

/// Fails if an answer that is resumed behind each capture repeats one, leaves one out or never ends, where several sets
/// and lines name one record.
#[test]
fn resume_key_leads_through_equal_captures() {
    let (_memory, captures) = empty();
    let record = |file: Option<&str>, offset| {
        let mut capture = capture("http://a.dk/", "20200101000000", 0);
        (capture.file, capture.offset) = (file.map(str::to_owned), offset);
        capture
    };
    let one = record(Some("a"), Some(5));
    let two = record(Some("a"), Some(6));
    add(&captures, "a", &[one.clone(), two.clone()]);
    // Metadata files and lines without a place name the same records, some more than once.
    let mut told_of = record(None, None);
    told_of.original_record = Some(OriginalRecord {
        length: None,
        offset: Some(5),
        file: Some("a".to_owned()),
    });
    for name in ["m 1", "m 2"] {
        add(&captures, name, &[told_of.clone(), told_of.clone()]);
    }
    for set in ["x", "x y"] {
        let mut import = captures.begin_import(set).unwrap();
        for capture in [&one, &two, &record(None, None), &record(Some("a"), None)] {
            import.push_capture(capture).unwrap();
            import.push_capture(capture).unwrap();
        }
        import.complete_import().unwrap();
    }
    for order in [Order::Ascending, Order::Descending] {
        let mut query = of_url("http://a.dk/");
        query.order = order;
        let whole = answer_with_sources(&captures, &query);
        assert_eq!(whole.len(), 2 + 4 + 2 * (2 + 4));
        for count in 1..4 {
            query.cursor = None;
            query.limit = Some(Limit::First(count));
            let mut seen = Vec::new();
            loop {
                let page = answer_with_sources(&captures, &query);
                let Some(last) = page.last() else { break };
                query.cursor = Some(Cursor::from_capture(last).to_string().parse().unwrap());
                seen.extend(page);
                assert!(seen.len() <= whole.len(), "it never ends: {seen:?}");
            }
            assert_eq!(seen, whole, "{count} at a time");
        }
    }
}

/// Fails if a query that breaks a rule is answered somehow.
#[test]
fn invalid_query_is_refused() {
    let (_memory, captures) = empty();
    let mut closest = of_all();
    closest.order = Order::Closest("20200101000000".parse().unwrap());
    let mut last = of_all();
    last.limit = Some(Limit::Last(MAX_LAST + 1));
    for (query, why) in [
        (closest, InvalidQuery::ClosestOfMany),
        (last, InvalidQuery::Last(MAX_LAST + 1)),
    ] {
        let refusal = captures.query_captures(&query).unwrap_err();
        assert!(refusal.is_invalid());
        assert_eq!(refusal, QueryError::Invalid(why));
    }
}

/// Fails if a query sees a part of what happens while it runs.
#[test]
fn running_query_sees_its_beginning() {
    let (memory, captures) = empty();
    let files: Vec<String> = (0..3).map(|n| n.to_string()).collect();
    for name in &files {
        add(&captures, name, &super::of_file(name, 200));
    }
    let before = everything(&captures);
    let query = of_all();
    let mut matches = captures.query_captures(&query).unwrap();
    let mut seen = vec![matches.next().unwrap().unwrap()];
    captures.withdraw_file("0").unwrap();
    captures.delete_file("1").unwrap();
    add(&captures, "2", &super::of_file("2", 10));
    add(&captures, "3", &super::of_file("3", 10));
    assert!(
        !captures.sweep_rows(u64::MAX).unwrap().is_complete,
        "a query runs"
    );
    seen.extend(matches.map(|found| found.unwrap()));
    assert_eq!(seen, before);
    let after = everything(&captures);
    assert_eq!(after.len(), 20);
    assert!(captures.sweep_rows(u64::MAX).unwrap().is_complete);
    assert_eq!(everything(&captures), after);
    drop(captures);
    assert_eq!(everything(&open(&memory)), after);
}
