//! Duplicates, and the first captures that they lead to.

use super::*;

const URL: &str = "http://a.dk/";

/// Returns the job in which the content was captured first.
fn first() -> Metadata {
    Metadata::job(1)
        .log(&[log_line(URL, 1, "one", "-")])
        .cdx(&[cdx_line(URL, 1, "1.warc", 11)])
}

/// Fails if a chain over three jobs does not end at the first capture, or is cut where a revisit has no record.
#[test]
fn duplicates_over_three_jobs_lead_to_first() {
    let second_url = "http://a.dk/2";
    let third_url = "http://a.dk/3";
    for has_record in [true, false] {
        let mut second =
            Metadata::job(2).log(&[log_line(second_url, 2, "one", &duplicate("1.warc", 11, 1))]);
        if has_record {
            second = second.cdx(&[cdx_line(second_url, 2, "2.warc", 22)]);
        }
        let url = if has_record { third_url } else { second_url };
        let third = Metadata::job(3).log(&[log_line(url, 3, "one", &duplicate("2.warc", 22, 2))]);
        // The order of the files is not that of the jobs.
        let built = BuiltIndex::new(&[third.gzip(), first().plain(), second.plain()]);
        built.assert_no_problem();
        assert_eq!(built.report.duplicates, 2);
        let captures = if has_record { 3 } else { 2 };
        assert_eq!(built.report.captures, captures, "{}", built.text());
        for url in [URL, second_url, url] {
            let place = Some(("1.warc".to_owned(), 11));
            assert_eq!(built.place(url, "one"), place, "{url} {has_record}");
        }
        let earlier = built.index().latest_by_url(url).unwrap().unwrap();
        assert_eq!(earlier.uri, URL);
        assert_eq!(earlier.time.to_string(), "20260102030001");
    }
}

/// Fails if the validators of one URL are sent for another.
#[test]
fn validators_stay_with_their_url() {
    let captured = format!(
        r#"dk,a)/ 20260102030001 {{"url": "{URL}", "digest": "{}", "offset": "11", "filename": "1.warc", "record-id": "urn:uuid:1", "etag": "7"}}"#,
        sha1("one")
    );
    let first = Metadata::job(1).captures(&[captured]);
    let other = "http://a.dk/2";
    let second = Metadata::job(2).log(&[log_line(other, 2, "one", &duplicate("1.warc", 11, 1))]);
    let built = BuiltIndex::new(&[first.plain(), second.plain()]);
    let index = built.index();
    let validators = |url: &str| index.latest_by_url(url).unwrap().unwrap().etag;
    assert_eq!(validators(URL).as_deref(), Some("7"));
    assert_eq!(validators(other), None);
    let earlier = index.latest_by_url(other).unwrap().unwrap();
    assert_eq!(earlier.record_id.as_deref(), Some("urn:uuid:1"));
}

/// Fails if a duplicate is lost whose original has no line in a log.
#[test]
fn origin_without_log_gets_digest_of_duplicate() {
    let first = Metadata::job(1).cdx(&[cdx_line(URL, 1, "1.warc", 11)]);
    let second = Metadata::job(2).log(&[log_line(URL, 2, "one", &duplicate("1.warc", 11, 1))]);
    let built = BuiltIndex::new(&[first.plain(), second.plain()]);
    assert_eq!(built.place(URL, "one"), Some(("1.warc".to_owned(), 11)));
    assert_eq!(built.report.captures, 1);
}

/// Fails if an origin that is in no file gets into the index, or is not named.
#[test]
fn dangling_duplicate_is_named_and_left_out() {
    let second = Metadata::job(2).log(&[log_line(URL, 2, "one", &duplicate("0.warc", 5, 1))]);
    let built = BuiltIndex::new(&[second.plain()]);
    assert_eq!(built.report.captures, 0);
    let [problem] = built.problems().try_into().unwrap();
    let origin = "no metadata file has its origin 0.warc, offset 5, 20260102030001000";
    assert!(problem.contains(origin), "{problem}");
}

/// Fails if a duplicate of a revisit of unknown origin is taken for a capture.
#[test]
fn duplicate_of_unknown_revisit_is_named() {
    let second = Metadata::job(2)
        .log(&[log_line(URL, 2, "one", "duplicate:digest")])
        .cdx(&[cdx_line(URL, 2, "2.warc", 22)]);
    let third = Metadata::job(3).log(&[log_line(URL, 3, "one", &duplicate("2.warc", 22, 2))]);
    let built = BuiltIndex::new(&[second.plain(), third.plain()]);
    assert_eq!(built.report.captures, 0);
    let [problem] = built.problems().try_into().unwrap();
    assert!(
        problem.contains("a revisit whose origin is not known"),
        "{problem}"
    );
}

/// Fails if a loop is followed without an end, or a chain that is longer than allowed is.
#[test]
fn loops_are_named_and_left_out() {
    let two = "http://a.dk/2";
    let looping = Metadata::job(1)
        .log(&[
            log_line(URL, 1, "one", &duplicate("f", 2, 2)),
            log_line(two, 2, "one", &duplicate("f", 1, 1)),
        ])
        .cdx(&[cdx_line(URL, 1, "f", 1), cdx_line(two, 2, "f", 2)]);
    let built = BuiltIndex::new(&[looping.plain()]);
    assert_eq!(built.report.captures, 0);
    let problems = built.problems();
    assert_eq!(problems.len(), 2);
    assert!(
        problems[0].contains("lead on without an end"),
        "{problems:?}"
    );
}

/// Fails if a chain is cut before its sixteenth step, or continues behind it.
#[test]
fn chains_have_sixteen_steps_at_most() {
    let url = |n: u32| format!("http://a.dk/{n}");
    let logged = (0..=18).map(|n: u32| {
        let annotation = match n {
            0 => "-".to_owned(),
            n => duplicate("f", u64::from(n) - 1, n - 1),
        };
        log_line(&url(n), n, "one", &annotation)
    });
    let indexed = (0..=18).map(|n| cdx_line(&url(n), n, "f", n.into()));
    let metadata = Metadata::job(1)
        .log(&logged.collect::<Vec<_>>())
        .cdx(&indexed.collect::<Vec<_>>());
    let built = BuiltIndex::new(&[metadata.plain()]);
    assert_eq!(built.place(&url(17), "one"), Some(("f".to_owned(), 0)));
    assert_eq!(built.place(&url(18), "one"), None);
    assert_eq!(built.report.problem_count, 1);
}

/// Fails if a liar's origin, which has other content, becomes that of a revisit.
#[test]
fn origin_with_other_digest_is_contradiction() {
    let second = Metadata::job(2).log(&[log_line(URL, 2, "other", &duplicate("1.warc", 11, 1))]);
    let built = BuiltIndex::new(&[first().plain(), second.plain()]);
    assert_eq!(built.place(URL, "other"), None);
    let [problem] = built.problems().try_into().unwrap();
    assert!(
        problem.contains("1.warc, offset 11 has another digest"),
        "{problem}"
    );
}

/// Fails if a record that one file calls a revisit is taken for a response because another file says less.
#[test]
fn revisit_in_one_file_is_never_response() {
    let second = Metadata::job(2)
        .log(&[log_line(URL, 2, "one", "duplicate:digest")])
        .cdx(&[cdx_line(URL, 2, "2.warc", 22)]);
    let third = Metadata::job(3)
        .log(&[log_line(URL, 2, "one", "-")])
        .cdx(&[cdx_line(URL, 2, "2.warc", 22)]);
    let built = BuiltIndex::new(&[third.plain(), second.plain()]);
    assert_eq!(built.report.captures, 0, "{}", built.text());
}
