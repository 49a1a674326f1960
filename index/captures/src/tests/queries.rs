//! Queries give what a walk over a list would give.

use std::cmp::Reverse;

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{
    CaptureField, CaptureQuery, Collapse, Cursor, Filter, FilterTest, Keep, KeyMatch, KeyRange,
    Limit, MatchKind, Order, TimeSpan, time_distance,
};
use archive_formats::date::Stamp;
use archive_formats::surt::UrlKey;
use tools_testing::Random;

use super::{add, answer, capture, empty, of_url, sorted};
use crate::CaptureIndex;

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

/// Keys that are asked for, and whether a key belongs to them in other words.
type Case = (KeyMatch, fn(&str) -> bool);

fn cases() -> Vec<Case> {
    let of = |kind, url| KeyMatch::for_url(kind, url).unwrap();
    let between = KeyRange {
        start: UrlKey::parse("a.dk/x").to_string(),
        end: Some(UrlKey::parse("aa.dk/").to_string()),
    };
    vec![
        (of(MatchKind::Exact, "http://a.dk/x"), |key| {
            key == "dk,a)/x"
        }),
        (of(MatchKind::Prefix, "a.dk/x"), |key| {
            key.starts_with("dk,a)/x")
        }),
        (of(MatchKind::Prefix, "a.dk/x/"), |key| {
            key.starts_with("dk,a)/x/")
        }),
        (of(MatchKind::Host, "a.dk"), |key| key.starts_with("dk,a)")),
        (of(MatchKind::Domain, "a.dk"), |key| {
            ["dk,a)", "dk,a,"]
                .iter()
                .any(|start| key.starts_with(start))
        }),
        (KeyMatch::Within(between), |key| {
            ("dk,a)/x".."dk,aa)/").contains(&key)
        }),
        (KeyMatch::Within(KeyRange::all()), |_| true),
        (of(MatchKind::Exact, "http://nowhere/"), |_| false),
    ]
}

/// Returns an index of some files, one of which is withdrawn and one deleted; and what it shows, in order.
fn filled(random: &mut Random) -> (crate::MemoryPlace, CaptureIndex, Vec<Capture>) {
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
            captures.withdraw_file(&name).unwrap();
        } else if file == 5 {
            captures.delete_file(&name).unwrap();
        } else {
            shown.extend(all);
        }
    }
    (memory, captures, sorted(shown))
}

/// Returns the digits of a time, filled up to 17.
fn millis(stamp: Stamp) -> String {
    let digits = format!("{:0<17}", stamp.to_string());
    format!("{digits}{}", u8::from(stamp.has_millis()))
}

/// Returns the captures of a list that a query asks for, before order and limit.
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
        for (keys, has) in cases() {
            for (from, to) in [
                ("", ""),
                ("2000", "2000"),
                ("20000101000000", ""),
                ("", "1999"),
                ("20000102", "20000101"),
            ] {
                let expected = chosen(&list, has, from, to);
                let mut query = CaptureQuery::new(keys.clone());
                query.span = TimeSpan::parse(from, to).unwrap();
                assert_eq!(answer(&captures, &query), expected, "{query:?}");
                check_orders(&captures, &query, &expected, &mut random);
            }
        }
    }
}

fn check_orders(
    captures: &CaptureIndex,
    query: &CaptureQuery,
    expected: &[Capture],
    random: &mut Random,
) {
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
        check_thinning(captures, &query, expected);
    }
}

/// Asserts that every limit gives a part of the whole, and that pages put together give the whole.
fn check_limits(
    captures: &CaptureIndex,
    query: &CaptureQuery,
    whole: &[Capture],
    random: &mut Random,
) {
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

/// Returns all pages of a query, each resumed at the last capture of the one before it.
fn paged(captures: &CaptureIndex, query: &CaptureQuery) -> Vec<Capture> {
    let mut query = query.clone();
    let mut all = Vec::new();
    loop {
        let page = answer(captures, &query);
        let Some(last) = page.last() else {
            return all;
        };
        query.cursor = Some(Cursor::from_capture(last).to_string().parse().unwrap());
        all.extend(page);
    }
}

/// Filters, collapse and limits thin out the whole as they thin out a list.
fn check_thinning(captures: &CaptureIndex, query: &CaptureQuery, whole: &[Capture]) {
    let filters = [
        (CaptureField::Status, FilterTest::Exact("200".to_owned())),
        (CaptureField::Mime, FilterTest::Contains("-".to_owned())),
    ];
    let filters = filters.map(|(field, test)| Filter {
        field,
        negate: true,
        test,
    });
    for count in 0..=filters.len() {
        for (field, characters) in [
            (CaptureField::Key, None),
            (CaptureField::Timestamp, Some(4)),
        ] {
            for keep in [Keep::First, Keep::Last] {
                for limit in [None, Some(Limit::First(2)), Some(Limit::Last(3))] {
                    let mut query = query.clone();
                    query.filters = filters.iter().take(count).cloned().collect();
                    query.collapse = vec![Collapse {
                        field: field.clone(),
                        characters,
                    }];
                    (query.keep, query.limit) = (keep, limit);
                    let accepted = whole
                        .iter()
                        .filter(|capture| query.accepts_capture(capture));
                    let thinned = query.thin_captures(accepted.cloned().map(Ok::<_, ()>));
                    let expected: Vec<_> = thinned.map(|run| run.unwrap().capture).collect();
                    assert_eq!(answer(captures, &query), expected, "{query:?}");
                }
            }
        }
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
                "00010101000000",
                "19990101000000",
                "20000101000000",
                "20000101000000250",
                "20000303000000",
                "99990101000000",
            ] {
                let at: Stamp = at.parse().unwrap();
                let mut query = of_url(url);
                query.order = Order::Closest(at);
                let distance = |c: &Capture| time_distance(at, c.timestamp);
                let (mut earlier, mut later): (Vec<_>, Vec<_>) = list
                    .iter()
                    .filter(|c| c.key == key)
                    .cloned()
                    .partition(|c| millis(c.timestamp) < millis(at));
                earlier.reverse();
                let mut expected = Vec::new();
                let mut e = earlier.drain(..).peekable();
                let mut l = later.drain(..).peekable();
                loop {
                    let is_later = match (e.peek(), l.peek()) {
                        (None, None) => break,
                        (Some(e), Some(l)) => distance(l) < distance(e),
                        (e, _) => e.is_none(),
                    };
                    expected.extend(if is_later { l.next() } else { e.next() });
                }
                assert_eq!(answer(&captures, &query), expected, "{at}");
                assert!(expected.is_sorted_by_key(distance));
                for limit in 1..4 {
                    let mut query = query.clone();
                    query.limit = Some(Limit::First(limit));
                    let count = usize::try_from(limit).unwrap();
                    let head = &expected[..expected.len().min(count)];
                    assert_eq!(answer(&captures, &query), head, "{at}");
                    query.limit = Some(Limit::Last(limit));
                    let tail = &expected[expected.len().saturating_sub(count)..];
                    assert_eq!(answer(&captures, &query), tail, "{at}");
                }
            }
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
    let keys = KeyMatch::for_url(MatchKind::Prefix, "a.dk/").unwrap();
    let mut query = CaptureQuery::new(keys);
    query.span = TimeSpan::parse("2020010103", "2020010103").unwrap();
    let mut offsets: Vec<_> = all
        .iter()
        .filter(|c| c.timestamp.to_string().starts_with("2020010103"))
        .map(|c| c.offset)
        .collect();
    assert_eq!(offsets.len(), 180);
    let found = |query: &CaptureQuery| -> Vec<_> {
        answer(&captures, query).iter().map(|c| c.offset).collect()
    };
    assert_eq!(found(&query), offsets);
    query.order = Order::Descending;
    offsets.sort_by_key(|offset| Reverse(all.iter().position(|c| c.offset == *offset)));
    assert_eq!(found(&query), offsets);
}
