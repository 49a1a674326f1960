//! Queries give what a walk over a list would give.

use std::cmp::Reverse;

use archive_formats::cdx::Capture;
use archive_formats::date::Stamp;

use super::{Random, add, answer, capture, empty, sorted};
use crate::{Captures, Collapse, Field, Filter, Keep, Limit, Order, Query, Target};

const HOSTS: [&str; 6] = ["a.dk", "www.a.dk", "b.a.dk", "aa.dk", "a.dk:8080", "a-b.dk"];
const PATHS: [&str; 6] = ["/", "/x", "/x/y", "/xy?b=1&a=2", "/X/", "/~z"];
const TIMES: [&str; 8] = [
    "19991231235959",
    "20000101000000",
    "20000101000000000",
    "20000101000000500",
    "20000101000001",
    "20000301120000",
    "20001231235959",
    "20200229000000",
];

/// A target, and whether a URL belongs to it in other words.
type Case = (Target, fn(&str) -> bool);

fn cases() -> Vec<Case> {
    vec![
        (Target::exact("http://a.dk/x"), |key| key == "dk,a)/x"),
        (Target::prefix("a.dk/x"), |key| key.starts_with("dk,a)/x")),
        (Target::prefix("a.dk/x/"), |key| key.starts_with("dk,a)/x/")),
        (Target::host("a.dk").unwrap(), |key| {
            key.starts_with("dk,a)") || key.starts_with("dk,a:")
        }),
        (Target::domain("a.dk").unwrap(), |key| {
            ["dk,a)", "dk,a:", "dk,a,"]
                .iter()
                .any(|start| key.starts_with(start))
        }),
        (Target::range("a.dk/x", Some("aa.dk/")), |key| {
            ("dk,a)/x".."dk,aa)/").contains(&key)
        }),
        (Target::all(), |_| true),
        (Target::exact("http://nowhere/"), |_| false),
    ]
}

/// An index of some files, one of which is withdrawn and one deleted; and what it shows, in order.
fn filled(random: &mut Random) -> (crate::Memory, Captures, Vec<Capture>) {
    let (memory, captures) = empty();
    let mut shown = Vec::new();
    for file in 0..8 {
        let name = format!("{file}.warc.gz");
        let mut all = Vec::new();
        for number in 0..random.below(60) {
            let url = format!("http://{}{}", random.pick(&HOSTS), random.pick(&PATHS));
            let mut capture = capture(&url, TIMES[random.index(TIMES.len())], number * 10);
            capture.status = *random.pick(&[None, Some(200), Some(301), Some(404)]);
            capture.mime = random.pick(&[None, Some("text/html".to_owned())]).clone();
            capture.file = Some(name.clone());
            all.push(capture);
        }
        add(&captures, &name, &all);
        if file == 3 {
            captures.withdraw(&name).unwrap();
        } else if file == 5 {
            captures.delete(&name).unwrap();
        } else {
            shown.extend(all);
        }
    }
    (memory, captures, sorted(shown))
}

/// The digits of a time, filled up to 17.
fn millis(stamp: Stamp) -> String {
    let digits = format!("{:0<17}", stamp.to_string());
    format!("{digits}{}", u8::from(stamp.has_millis()))
}

/// Those of the list that a query asks for, before order and limit.
fn chosen(list: &[Capture], has: fn(&str) -> bool, from: &str, to: &str) -> Vec<Capture> {
    let chosen = list.iter().filter(|capture| has(&capture.key));
    let time = |capture: &&Capture| {
        let digits = capture.timestamp.to_string();
        let seconds = &digits[..14];
        (from.is_empty() || seconds >= format!("{from:0<14}").as_str())
            && (to.is_empty() || seconds <= format!("{to:9<14}").as_str())
    };
    chosen.filter(time).cloned().collect()
}

/// Fails if a query gives other captures, or in another order, than a list does.
#[test]
fn answers_are_those_of_a_list() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let (_memory, captures, list) = filled(&mut random);
        for (target, has) in cases() {
            for (from, to) in [
                ("", ""),
                ("2000", "2000"),
                ("20000101000000", ""),
                ("", "1999"),
                ("20000102", "20000101"),
            ] {
                let expected = chosen(&list, has, from, to);
                let some = |text: &'static str| (!text.is_empty()).then_some(text);
                let query = Query::new(target.clone())
                    .between(some(from), some(to))
                    .unwrap();
                assert_eq!(
                    answer(&captures, &query),
                    expected,
                    "{target:?} {from} {to}"
                );
                check_orders(&captures, &query, &expected, &mut random);
                check_filters(&captures, &query, &expected);
            }
        }
    }
}

fn check_orders(captures: &Captures, query: &Query, expected: &[Capture], random: &mut Random) {
    let mut query = query.clone();
    let mut backwards = expected.to_vec();
    backwards.reverse();
    for (order, expected) in [
        (Order::Ascending, expected),
        (Order::Descending, &backwards),
    ] {
        query.order = order;
        assert_eq!(answer(captures, &query), expected);
        check_limits(captures, &query, expected, random);
        check_collapse(captures, &query, expected);
    }
}

/// Every limit gives a part of the whole, and pages put together give the whole.
fn check_limits(captures: &Captures, query: &Query, whole: &[Capture], random: &mut Random) {
    let length = whole.len() as u64;
    for count in [0, 1, random.below(length + 1), length, length + 5] {
        let count_in = usize::try_from(count.min(length)).unwrap();
        let mut query = query.clone();
        query.limit = Some(Limit::First(count));
        assert_eq!(answer(captures, &query), whole[..count_in]);
        query.limit = Some(Limit::Last(count));
        assert_eq!(answer(captures, &query), whole[whole.len() - count_in..]);
    }
    let mut query = query.clone();
    query.limit = Some(Limit::First(1 + random.below(9)));
    assert_eq!(paged(captures, &query), whole, "{query:?}");
}

/// All pages of a query, each begun with the resume key of the one before it.
fn paged(captures: &Captures, query: &Query) -> Vec<Capture> {
    let mut query = query.clone();
    let mut all = Vec::new();
    loop {
        let mut matches = captures.query(&query).unwrap();
        all.extend(matches.by_ref().map(|found| found.unwrap().capture));
        match matches.resume().unwrap() {
            None => return all,
            Some(cursor) => query.after = Some(cursor.to_string().parse().unwrap()),
        }
    }
}

fn check_collapse(captures: &Captures, query: &Query, whole: &[Capture]) {
    let collapse = |field: &str, characters, keep| Collapse {
        field: Field::from_name(field),
        characters,
        keep,
    };
    let value = |c: &Collapse, capture: &Capture| -> String {
        let text = c.field.text(capture).into_owned();
        text.chars()
            .take(c.characters.unwrap_or(usize::MAX))
            .collect()
    };
    for step in [
        collapse("urlkey", None, Keep::First),
        collapse("timestamp", Some(4), Keep::First),
        collapse("urlkey", None, Keep::Last),
        collapse("status", None, Keep::Last),
        collapse("url", Some(0), Keep::First),
    ] {
        let mut expected: Vec<Capture> = Vec::new();
        for capture in whole {
            let is_same = expected
                .last()
                .is_some_and(|last| value(&step, last) == value(&step, capture));
            match (is_same, step.keep) {
                (true, Keep::First) => {}
                (true, Keep::Last) => *expected.last_mut().unwrap() = capture.clone(),
                (false, _) => expected.push(capture.clone()),
            }
        }
        let mut query = query.clone();
        query.collapse = vec![step];
        assert_eq!(answer(captures, &query), expected, "{query:?}");
        query.limit = Some(Limit::First(2));
        assert_eq!(paged(captures, &query), expected, "{query:?}");
        query.limit = Some(Limit::Last(3));
        let last = expected.len().saturating_sub(3);
        assert_eq!(answer(captures, &query), expected[last..], "{query:?}");
    }
}

fn check_filters(captures: &Captures, query: &Query, whole: &[Capture]) {
    type Holds = fn(&Capture) -> bool;
    let filters: [(Filter, Holds); 4] = [
        (Filter::equals(Field::Status, "200"), |c| {
            c.status == Some(200)
        }),
        (Filter::equals(Field::Mime, "-").negated(), |c| {
            c.mime.is_some()
        }),
        (Filter::contains(Field::Original, "b.a"), |c| {
            c.original.as_ref().unwrap().contains("b.a")
        }),
        (Filter::matches(Field::Status, "[34]..").unwrap(), |c| {
            matches!(c.status, Some(300..500))
        }),
    ];
    let mut query = query.clone();
    let mut expected = whole.to_vec();
    for (filter, holds) in filters {
        query.filters.push(filter);
        expected.retain(holds);
        assert_eq!(answer(captures, &query), expected);
    }
}

/// Fails if the nearest captures are not the first ones, or a page leaves one out.
#[test]
fn closest_captures_come_first() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let (_memory, captures, list) = filled(&mut random);
        for url in ["http://a.dk/x", "http://a.dk/", "http://none/"] {
            let key = capture(url, "20000101000000", 0).key;
            for at in [
                "1",
                "1999",
                "20000101000000",
                "20000101000000250",
                "2000",
                "20000303",
                "9999",
            ] {
                let query = Query::new(Target::exact(url)).closest(at).unwrap();
                let Order::Closest(at) = query.order else {
                    panic!()
                };
                let distance = |c: &Capture| {
                    c.timestamp
                        .time()
                        .as_millisecond()
                        .abs_diff(at.time().as_millisecond())
                };
                let (mut earlier, mut later): (Vec<_>, Vec<_>) = list
                    .iter()
                    .filter(|c| c.key == key)
                    .cloned()
                    .partition(|c| millis(c.timestamp) < millis(at));
                earlier.reverse();
                let mut expected = Vec::new();
                let (mut e, mut l) = (earlier.drain(..).peekable(), later.drain(..).peekable());
                loop {
                    let is_later = match (e.peek(), l.peek()) {
                        (None, None) => break,
                        (Some(e), Some(l)) => distance(l) < distance(e),
                        (e, _) => e.is_none(),
                    };
                    expected.extend(if is_later { l.next() } else { e.next() });
                }
                assert_eq!(answer(&captures, &query), expected, "{at}");
                assert!(expected.is_sorted_by_key(|c| distance(c)));
                for limit in 1..4 {
                    let mut query = query.clone();
                    query.limit = Some(Limit::First(limit));
                    assert_eq!(paged(&captures, &query), expected, "{at}");
                    query.limit = Some(Limit::Last(limit));
                    let count = usize::try_from(limit).unwrap();
                    let last = &expected[expected.len().saturating_sub(count)..];
                    assert_eq!(answer(&captures, &query), last, "{at}");
                }
            }
        }
    }
}

/// Fails if a date that does not exist is taken, or a short one means another span.
#[test]
fn dates_are_padded_or_refused_with_words() {
    let query = || Query::new(Target::all());
    let query_2016 = query().between(Some("2016"), Some("201602")).unwrap();
    assert_eq!(query_2016.from.unwrap().to_string(), "20160101000000");
    assert_eq!(query_2016.to.unwrap().to_string(), "20160229235959");
    for wrong in [
        "",
        "201613",
        "20150229",
        "2016-01",
        "201601010000000",
        "x",
        "20160101240000",
    ] {
        for error in [
            query().between(Some(wrong), None).unwrap_err(),
            query().between(None, Some(wrong)).unwrap_err(),
            query().closest(wrong).unwrap_err(),
        ] {
            let words = error.to_string();
            assert!(error.is_invalid() && words.contains(wrong), "{words}");
            assert!(words.contains("give 1 to 14 digits"), "{words}");
        }
    }
}

/// Fails if a long list of times that are not asked for hides those that are.
#[test]
fn many_times_are_passed_over() {
    let (_memory, captures) = empty();
    let mut all = Vec::new();
    for url in ["http://a.dk/1", "http://a.dk/2", "http://a.dk/3"] {
        for second in 0..60 {
            for minute in 0..5 {
                all.push(capture(
                    url,
                    &format!("202001010{minute}00{second:02}"),
                    all.len() as u64,
                ));
            }
        }
    }
    all.sort_by_key(|c| (c.key.clone(), c.timestamp));
    add(&captures, "a", &all);
    let mut query = Query::new(Target::prefix("a.dk/"))
        .between(Some("2020010103"), Some("2020010103"))
        .unwrap();
    let mut offsets: Vec<_> = all
        .iter()
        .filter(|c| c.timestamp.to_string().starts_with("2020010103"))
        .map(|c| c.offset)
        .collect();
    assert_eq!(offsets.len(), 180);
    let found =
        |query: &Query| -> Vec<_> { answer(&captures, query).iter().map(|c| c.offset).collect() };
    assert_eq!(found(&query), offsets);
    query.order = Order::Descending;
    offsets.sort_by_key(|offset| Reverse(all.iter().position(|c| c.offset == *offset)));
    assert_eq!(found(&query), offsets);
}
