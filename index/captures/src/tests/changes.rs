//! Queries while the index changes, resume keys, and queries that make no sense.

use super::{add, answer, capture, empty, everything, open};
use crate::{Collapse, Cursor, Field, Keep, Limit, Order, Query, QueryError, Target};

/// Fails if a resume key leaves out or repeats a capture because others came or went.
#[test]
fn resume_key_is_stable_under_changes() {
    let (_memory, captures) = empty();
    let at = |n: u64| capture(&format!("http://a.dk/{n:04}"), "20200101000000", n);
    let even: Vec<_> = (0..50).map(|n| at(n * 2)).collect();
    add(&captures, "even", &even);
    let mut query = Query::new(Target::all());
    query.limit = Some(Limit::First(10));
    let mut seen = Vec::new();
    for round in 0..5_u64 {
        let mut matches = captures.query(&query).unwrap();
        seen.extend(
            matches
                .by_ref()
                .map(|found| found.unwrap().capture.offset.unwrap()),
        );
        query.after = matches.resume().unwrap();
        drop(matches);
        // Before the place, where it was seen; its own row goes, too.
        add(&captures, &format!("odd {round}"), &[at(round * 2 + 1)]);
        if round == 2 {
            let rest: Vec<_> = (30..50).map(|n| at(n * 2)).collect();
            add(&captures, "even", &rest);
            while !captures.sweep(7).unwrap().is_complete {}
        }
    }
    assert_eq!(seen, (0..50).map(|n| n * 2).collect::<Vec<_>>());
    assert_eq!(query.after, None);
}

/// Fails if a query that makes no sense is answered somehow.
#[test]
fn senseless_queries_are_refused() {
    let (_memory, captures) = empty();
    add(
        &captures,
        "a",
        &[
            capture("http://a.dk/", "20200101000000", 0),
            capture("http://b.dk/", "20200101000000", 1),
        ],
    );
    let refusal = |query: &Query| captures.query(query).unwrap_err();
    let all = Query::new(Target::all());
    let closest = all.clone().closest("2020").unwrap();
    assert_eq!(refusal(&closest), QueryError::ClosestOfMany);

    let last = |field| Collapse {
        field,
        characters: None,
        keep: Keep::Last,
    };
    let mut several = all.clone();
    several.collapse = vec![last(Field::Key), last(Field::Status)];
    assert_eq!(refusal(&several), QueryError::KeepLast);
    let mut nearest = Query::new(Target::exact("http://a.dk/"))
        .closest("2020")
        .unwrap();
    nearest.collapse = vec![last(Field::Status)];
    assert_eq!(refusal(&nearest), QueryError::KeepLast);

    let cursor_of = |query: &Query| -> Cursor {
        let mut matches = captures.query(query).unwrap();
        matches.next().unwrap().unwrap();
        matches.cursor().unwrap().clone()
    };
    let cursor = cursor_of(&all);
    let mut behind = all.clone();
    behind.after = Some(cursor.clone());
    assert_eq!(answer(&captures, &behind).len(), 1);
    behind.limit = Some(Limit::Last(1));
    assert_eq!(refusal(&behind), QueryError::LastAfterCursor);
    for mut other in [
        Query::new(Target::exact("http://c.dk/")),
        nearest.clone(),
        several,
    ] {
        other.after = Some(cursor.clone());
        other.collapse.truncate(1);
        if let Some(collapse) = other.collapse.first_mut() {
            collapse.keep = Keep::First;
        }
        assert_eq!(refusal(&other), QueryError::ForeignCursor);
    }
    let mut downwards = all;
    downwards.order = Order::Descending;
    downwards.after = Some(cursor);
    assert_eq!(refusal(&downwards), QueryError::ForeignCursor);
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
    let query = Query::new(Target::all());
    let mut matches = captures.query(&query).unwrap();
    let mut seen = vec![matches.next().unwrap().unwrap().capture];
    captures.withdraw("0").unwrap();
    captures.delete("1").unwrap();
    add(&captures, "2", &super::of_file("2", 10));
    add(&captures, "3", &super::of_file("3", 10));
    assert!(
        !captures.sweep(u64::MAX).unwrap().is_complete,
        "a query runs"
    );
    seen.extend(matches.map(|found| found.unwrap().capture));
    assert_eq!(seen, before);
    let after = everything(&captures);
    assert_eq!(after.len(), 20);
    assert!(captures.sweep(u64::MAX).unwrap().is_complete);
    assert_eq!(everything(&captures), after);
    drop(captures);
    assert_eq!(everything(&open(&memory)), after);
}
