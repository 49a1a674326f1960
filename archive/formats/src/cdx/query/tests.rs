//! Keys, spans, filters and cursors, and thinning held against models that do it the long way.

use super::*;

/// Fails if a match kind selects other keys than the field's servers do.
#[test]
fn match_kinds_select_their_keys() {
    use MatchKind::{Domain, Exact, Host, Prefix, Range};

    let keys = [
        "com,example",
        "com,example)/",
        "com,example)/a",
        "com,example)/a/b",
        "com,example)/ab",
        "com,example,www2)/a",
        "com,example-two)/",
        "com,example:8080)/a",
        "com,examples)/a",
        "org,example)/",
    ];
    let check = |kind: MatchKind, url: &str, expected: &[&str]| {
        let keys_of_url = KeyMatch::for_url(kind, url).unwrap();
        let found: Vec<&str> = keys
            .into_iter()
            .filter(|k| keys_of_url.matches(k))
            .collect();
        assert_eq!(found, expected, "{kind} {url}");
    };
    check(Exact, "http://example.com/a", &["com,example)/a"]);
    check(
        Prefix,
        "http://example.com/a",
        &["com,example)/a", "com,example)/a/b", "com,example)/ab"],
    );
    check(Prefix, "http://example.com/a/", &["com,example)/a/b"]);
    let host = [
        "com,example)/",
        "com,example)/a",
        "com,example)/a/b",
        "com,example)/ab",
    ];
    check(Host, "https://www.example.com/z?q", &host);
    check(Host, "example.com:8080/", &["com,example:8080)/a"]);
    let domain: Vec<&str> = host.into_iter().chain(["com,example,www2)/a"]).collect();
    check(Domain, "example.com", &domain);
    check(Domain, "com", &keys[..9]);
    check(Range, "example.com:8080/", &keys[7..]);
}

/// Fails if a prefix of high characters loses keys, or an open range ends.
#[test]
fn prefix_ranges_end_behind_last_key() {
    let range = KeyRange::of_prefix("a~\u{10ffff}");
    assert_eq!(range.end.as_deref(), Some("a\u{7f}"));
    assert!(range.contains("a~\u{10ffff}z"));
    let all = KeyRange::of_prefix("\u{10ffff}");
    assert_eq!(all.end, None);
    assert!(KeyRange::of_prefix("").contains("anything"));
}

/// Fails if a URL without a host gets the keys of all hosts.
#[test]
fn host_match_needs_a_host() {
    for url in ["urn:isbn:1", "dns:example.com", ""] {
        for kind in [MatchKind::Host, MatchKind::Domain] {
            assert_eq!(KeyMatch::for_url(kind, url), Err(NoHost), "{kind} {url:?}");
        }
        assert!(KeyMatch::for_url(MatchKind::Exact, url).is_ok());
    }
}

/// Fails if an end of a span is left out, or milliseconds fall behind their second.
#[test]
fn spans_include_both_ends() {
    let check = |from: &str, to: &str, stamp: &str, expected: bool| {
        let span = TimeSpan::parse(from, to).unwrap();
        let stamp = stamp.parse().unwrap();
        assert_eq!(span.contains(stamp), expected, "{from} {to} {stamp}");
    };
    check("2014", "2014", "20140101000000", true);
    check("2014", "2014", "20141231235959", true);
    check("2014", "2014", "20141231235959999", true);
    check("2014", "2014", "20150101000000", false);
    check("2014", "2014", "20131231235959999", false);
    check("", "201402", "20140228235959", true);
    check("", "201402", "20140301000000", false);
    check("20140102030405", "", "20140102030405001", true);
    check("20140102030405", "", "20140102030404999", false);
    check("20140102030405500", "", "20140102030405499", false);
    check("", "20140102030405500", "20140102030405501", false);
    check("", "", "99991231235959", true);
    check("2015", "2014", "20150101000000", false);
    assert!(TimeSpan::parse("2015", "2014").unwrap().is_empty());
    assert!(!TimeSpan::parse("2014", "2014").unwrap().is_empty());
}

/// Fails if a day that no calendar has opens or closes a span.
#[test]
fn impossible_dates_are_refused() {
    for text in [
        "20140230",
        "201413",
        "2014010125",
        "20x4",
        "-1",
        "201401010000000",
    ] {
        assert!(TimeSpan::parse(text, "").is_err(), "{text}");
        assert!(TimeSpan::parse("", text).is_err(), "{text}");
    }
}

/// A capture from few words: key, timestamp, digest, offset.
fn capture(key: &str, stamp: &str, digest: &str, offset: u64) -> Capture {
    let mut capture = Capture::new(key, stamp.parse().unwrap());
    capture.digest = Some(digest.to_owned());
    capture.offset = Some(offset);
    capture.file = Some("a b.warc.gz".to_owned());
    capture
}

/// Fails if a cursor changes on its way through a URL, or another text passes for one.
#[test]
fn cursors_read_back_and_others_do_not() {
    let cursor = Cursor::from_capture(&capture("org,a)/x?y=%20", "20140102030405678", "d", 77));
    let text = cursor.to_string();
    assert!(
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    );
    assert_eq!(text.parse(), Ok(cursor));
    let bare = Cursor::from_capture(&Capture::new("k", "20140102030405".parse().unwrap()));
    assert_eq!(bare.to_string().parse(), Ok(bare));
    let mut told_of = capture("k", "20140102030405", "d", 7);
    for (name, value) in [(SET_FIELD, "a set é"), (LINE_FIELD, "m 1.warc:17")] {
        told_of.extra.push((name.to_owned(), value.to_owned()));
    }
    let cursor = Cursor::from_capture(&told_of);
    let source = cursor.source.as_deref().unwrap();
    assert_eq!(
        (source.set.as_str(), source.line.as_str()),
        ("a set é", "m 1.warc:17")
    );
    assert_eq!(cursor.to_string().parse(), Ok(cursor));
    for text in [
        "",
        "org%2Ca%29%2F+20140102030405",
        "AAAA",
        "b3JnLGEpLyAyMDE0",
        // `k 20140102030405 0 9 0 ab`: the length of the set is beyond the end of the text.
        "ayAyMDE0MDEwMjAzMDQwNSAwIDkgMCBhYg",
        // `k 20140102030405 0 1 0 é`: a set that ends within a letter.
        "ayAyMDE0MDEwMjAzMDQwNSAwIDEgMCDDqQ",
        // `k 20140102030405 0 +1 0 a`: no number.
        "ayAyMDE0MDEwMjAzMDQwNSAwICsxIDAgYQ",
        "==",
    ] {
        assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
    }
    // Every cut of a valid text is refused without a panic, or is another valid one.
    for end in 0..text.len() {
        let _cut = text[..end].parse::<Cursor>();
    }
}

/// Fails if a test of a filter means something else, or `!` does not turn it round.
#[test]
fn filters_test_their_field() {
    let mut capture = capture("org,a)/", "20140102030405", "sha1:ABC", 1);
    capture.mime = Some("text/html".to_owned());
    capture.status = Some(200);
    let check = |field: &str, test: FilterTest, expected: bool| {
        let field = CaptureField::of_name(field).unwrap();
        for negate in [false, true] {
            let filter = Filter {
                field: field.clone(),
                negate,
                test: test.clone(),
            };
            assert_eq!(filter.accepts(&capture), expected != negate, "{filter:?}");
        }
    };
    let exact = |text: &str| FilterTest::Exact(text.to_owned());
    let contains = |text: &str| FilterTest::Contains(text.to_owned());
    let matches = |text: &str, at| FilterTest::Matches(Pattern::new(text, at).unwrap());
    check("mime", exact("text/html"), true);
    check("mime", exact("text"), false);
    check("m", contains("xt/h"), true);
    check("s", exact("200"), true);
    check("digest", exact("ABC"), true);
    check("digest", exact("sha1:ABC"), true);
    check("digest", exact("BC"), false);
    check("redirect", exact("-"), true);
    check("mime", matches("text", Anchoring::Whole), false);
    check("mime", matches("text|text/html", Anchoring::Whole), true);
    check("mime", matches("text", Anchoring::Start), true);
    check("mime", matches("html", Anchoring::Start), false);
    check("mime", matches("html", Anchoring::Anywhere), true);
    check("timestamp", matches("2014.*", Anchoring::Whole), true);
}

/// Fails if an expression that takes too much memory, or is not one, is compiled.
#[test]
fn unusable_expressions_are_refused() {
    let pattern = |text: &str| Pattern::new(text, Anchoring::Whole);
    assert!(matches!(
        pattern(&"a".repeat(MAX_PATTERN + 1)),
        Err(InvalidExpression::Long(_))
    ));
    assert!(matches!(
        pattern("(?:a{1000}){1000}"),
        Err(InvalidExpression::Large)
    ));
    for text in ["(", "a)(b", "*", "(?!a)", r"(a)\1", &"(".repeat(200)] {
        assert!(
            matches!(pattern(text), Err(InvalidExpression::Syntax(_))),
            "{text}"
        );
    }
    // No expression explodes: time is in proportion to the text.
    let slow = pattern("(a*)*(a*)*b").unwrap();
    assert!(!slow.is_match(&"a".repeat(100_000)));
}

/// A sequence of captures in the order of an index, with runs in its digests.
fn sequence(seed: u64, length: usize) -> Vec<Capture> {
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut captures: Vec<Capture> = (0..length)
        .map(|n| {
            let key = format!("org,a)/{}", random(3));
            let stamp = format!("2014010203{:02}{:02}", random(2), random(60));
            let digest = ["x", "xy", "sha1:x", "z"][usize::try_from(random(4)).unwrap()];
            capture(&key, &stamp, digest, u64::try_from(n).unwrap())
        })
        .collect();
    captures.sort_by(|a, b| Order::Ascending.compare_captures(a, b));
    captures
}

/// Thins by building all runs first.
fn model(
    captures: &[Capture],
    collapse: &[Collapse],
    keep: Keep,
    limit: Option<Limit>,
) -> Vec<CollapsedRun> {
    let value = |c: &Capture| -> Vec<String> {
        collapse.iter().map(|by| by.value(c).into_owned()).collect()
    };
    let mut runs: Vec<Vec<Capture>> = Vec::new();
    for capture in captures {
        match runs.last_mut() {
            Some(run) if !collapse.is_empty() && value(&run[0]) == value(capture) => {
                run.push(capture.clone());
            }
            _ => runs.push(vec![capture.clone()]),
        }
    }
    let all: Vec<CollapsedRun> = runs
        .into_iter()
        .map(|mut run| {
            let capture = match keep {
                Keep::First => run.remove(0),
                Keep::Last => run.pop().unwrap(),
            };
            CollapsedRun {
                capture,
                skipped: u64::try_from(run.len()).unwrap(),
                last_skipped: run.last().map(|c| c.timestamp),
            }
        })
        .collect();
    let size = |n: u64| usize::try_from(n).unwrap().min(all.len());
    match limit {
        None => all,
        Some(Limit::First(n)) => all[..size(n)].to_vec(),
        Some(Limit::Last(n)) => all[all.len() - size(n)..].to_vec(),
    }
}

fn by(field: &str, characters: Option<usize>) -> Collapse {
    Collapse {
        field: CaptureField::of_name(field).unwrap(),
        characters,
    }
}

/// Fails if a run is split, joined, miscounted, or the limit counts captures instead of runs.
#[test]
fn thinning_agrees_with_its_model() {
    let collapses = [
        vec![],
        vec![by("digest", None)],
        vec![by("timestamp", Some(12))],
        vec![by("urlkey", None), by("digest", Some(1))],
        vec![by("mime", None)],
    ];
    let limits = [
        None,
        Some(Limit::First(0)),
        Some(Limit::First(3)),
        Some(Limit::Last(0)),
        Some(Limit::Last(2)),
    ];
    for seed in 0..40 {
        let captures = sequence(seed, usize::try_from(seed).unwrap());
        for collapse in &collapses {
            for keep in [Keep::First, Keep::Last] {
                for limit in limits {
                    let expected = model(&captures, collapse, keep, limit);
                    let items = || captures.iter().cloned().map(Ok::<_, ()>);
                    let thinner = || Thinner::new(collapse.clone(), keep, limit);
                    let whole: Vec<CollapsedRun> =
                        ThinnedCaptures::new(items(), thinner().whole_runs())
                            .map(Result::unwrap)
                            .collect();
                    assert_eq!(whole, expected, "{seed} {collapse:?} {keep:?} {limit:?}");
                    let fast =
                        ThinnedCaptures::new(items(), thinner()).map(|run| run.unwrap().capture);
                    assert!(fast.eq(expected.into_iter().map(|run| run.capture)));
                }
            }
        }
    }
}

/// Fails if resuming behind the place that a cut answer names loses or repeats a run.
#[test]
fn resumed_answers_join_without_gap() {
    for seed in 0..40 {
        let captures = sequence(seed, 30);
        for collapse in [vec![], vec![by("digest", None)]] {
            let expected = model(&captures, &collapse, Keep::First, None);
            for limit in 1..5 {
                let mut rest = captures.clone();
                let mut joined = Vec::new();
                loop {
                    let limit = Some(Limit::First(limit));
                    let thinner = Thinner::new(collapse.clone(), Keep::First, limit);
                    let items = rest.iter().cloned().map(Ok::<_, ()>);
                    let mut answer = ThinnedCaptures::new(items, thinner.whole_runs());
                    joined.extend(answer.by_ref().map(Result::unwrap));
                    let Some(place) = answer.resume_cursor() else {
                        break;
                    };
                    let at = rest
                        .iter()
                        .position(|c| Cursor::from_capture(c) == *place)
                        .unwrap();
                    rest.drain(..=at);
                }
                assert_eq!(joined, expected, "{seed} {collapse:?} {limit}");
            }
        }
    }
}

/// Fails if a filter's victims are not counted behind the capture before them, or come again after resuming.
#[test]
fn filtered_captures_count_as_skipped() {
    let captures = ["x", "z", "z", "x", "x", "z"].into_iter().enumerate();
    let captures: Vec<Capture> = captures
        .map(|(n, digest)| {
            let stamp = format!("2014010203040{n}");
            capture("k", &stamp, digest, u64::try_from(n).unwrap())
        })
        .collect();
    let filter = Filter {
        field: CaptureField::Digest,
        negate: true,
        test: FilterTest::Exact("z".to_owned()),
    };
    let thinner = Thinner::new(vec![], Keep::First, Some(Limit::First(1)));
    let thinner = thinner.whole_runs().with_filters(vec![filter]);
    let items = captures.iter().cloned().map(Ok::<_, ()>);
    let mut answer = ThinnedCaptures::new(items, thinner);
    let run = answer.next().unwrap().unwrap();
    assert_eq!((run.capture.offset, run.skipped), (Some(0), 2));
    assert_eq!(run.last_skipped, Some(captures[2].timestamp));
    assert!(answer.next().is_none());
    assert_eq!(
        answer.resume_cursor(),
        Some(&Cursor::from_capture(&captures[2]))
    );
}

/// Fails if an error passes for the end of the captures, or a run comes out behind it.
#[test]
fn errors_end_thinning() {
    for limit in [None, Some(Limit::Last(5)), Some(Limit::First(9))] {
        let mut items: Vec<Result<Capture, &str>> = sequence(3, 4).into_iter().map(Ok).collect();
        items.push(Err("broken"));
        items.extend(sequence(4, 4).into_iter().map(Ok));
        let thinner = Thinner::new(vec![by("digest", None)], Keep::Last, limit);
        let all: Vec<_> = ThinnedCaptures::new(items.into_iter(), thinner).collect();
        assert_eq!(all.last(), Some(&Err("broken")), "{limit:?}");
        assert_eq!(all.iter().filter(|item| item.is_err()).count(), 1);
    }
}

/// Fails if the limits of a query, or closeness of many keys, are not refused.
#[test]
fn impossible_queries_are_refused() {
    let exact = || CaptureQuery::new(KeyMatch::for_url(MatchKind::Exact, "a.org").unwrap());
    assert_eq!(exact().validate_query(), Ok(()));
    let at = "20140101000000".parse().unwrap();
    let mut query = exact();
    query.order = Order::Closest(at);
    assert_eq!(query.validate_query(), Ok(()));
    query.cursor = Some(Cursor::from_capture(&capture(
        "k",
        "20140102030405",
        "d",
        1,
    )));
    assert_eq!(query.validate_query(), Err(InvalidQuery::ClosestCursor));
    query.keys = KeyMatch::for_url(MatchKind::Host, "a.org").unwrap();
    assert_eq!(query.validate_query(), Err(InvalidQuery::ClosestOfMany));
    let mut query = exact();
    query.limit = Some(Limit::Last(MAX_LAST + 1));
    assert_eq!(
        query.validate_query(),
        Err(InvalidQuery::Last(MAX_LAST + 1))
    );
    let mut query = exact();
    query.collapse = vec![by("digest", None); MAX_COLLAPSES + 1];
    assert!(query.validate_query().is_err());
}

/// Fails if the order by closeness takes the later of two that are equally far away.
#[test]
fn closest_order_prefers_earlier_of_two() {
    let at = "20140102030410".parse().unwrap();
    let order = Order::Closest(at);
    let mut stamps = [
        "20140102030400",
        "20140102030420",
        "20140102030411",
        "20140102030410",
    ];
    stamps
        .sort_by(|a, b| order.compare_captures(&capture("k", a, "d", 1), &capture("k", b, "d", 1)));
    let expected = [
        "20140102030410",
        "20140102030411",
        "20140102030400",
        "20140102030420",
    ];
    assert_eq!(stamps, expected);
}
