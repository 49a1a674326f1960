//! Revisit records of our own jobs: chains of them, over the metadata of several jobs, ours and NetarchiveSuite's.

use super::*;

const URL: &str = "http://a.dk/";

/// Returns the time of a second, as a record has it.
fn date(second: u32) -> String {
    format!("2026-01-02T03:00:{second:02}Z")
}

/// Returns a line of our index of captures.
fn captured(url: &str, second: u32, payload: &str, offset: u64) -> String {
    format!(
        r#"dk,a)/ 202601020300{second:02} {{"url": "{url}", "mime": "text/html", "status": "200", "digest": "{}", "offset": "{offset}", "filename": "{second}.warc.gz", "recordId": "urn:uuid:{second}"}}"#,
        sha1(payload)
    )
}

/// Returns a line of a revisit that refers to the record of a second, by the fields that are given.
fn revisit(url: &str, second: u32, payload: &str, refers_to: &[(&str, &str)]) -> String {
    let refers_to = refers_to
        .iter()
        .map(|(name, value)| format!(r#", "{name}": "{value}""#));
    let line = captured(url, second, payload, 1).replace("text/html", "warc/revisit");
    let line = line.strip_suffix('}').unwrap();
    format!("{line}{}}}", refers_to.collect::<String>())
}

/// Fails if a revisit of our own is not followed to its first capture: by the id of the record, or by URI and time.
#[test]
fn own_revisits_lead_to_first_capture() {
    let other = "http://a.dk/other";
    for fields in [
        &[("refersTo", "urn:uuid:1")][..],
        &[("refersToTargetUri", URL), ("refersToDate", &date(1))],
        // The id is that of a record which is in no file, and the capture is there.
        &[
            ("refersTo", "urn:uuid:9"),
            ("refersToTargetUri", URL),
            ("refersToDate", &date(1)),
        ],
    ] {
        let first = Metadata::job(1).captures(&[captured(URL, 1, "one", 11)]);
        let second = Metadata::job(2).captures(&[revisit(other, 2, "one", fields)]);
        let third = Metadata::job(3).captures(&[revisit(
            "http://a.dk/third",
            3,
            "one",
            &[("refersToTargetUri", other), ("refersToDate", &date(2))],
        )]);
        let built = BuiltIndex::new(&[third.plain(), second.gzip(), first.plain()]);
        built.assert_no_problem();
        let expected = Some(("1.warc.gz".to_owned(), 11));
        for url in [URL, other, "http://a.dk/third"] {
            assert_eq!(built.place(url, "one"), expected, "{url} {fields:?}");
        }
        assert_eq!(built.index().list_jobs().unwrap(), [1, 2, 3]);
    }
}

/// Fails if a chain breaks where it goes from our metadata into NetarchiveSuite's, or back.
#[test]
fn chains_cross_from_ours_to_theirs() {
    let two = "http://a.dk/2";
    let three = "http://a.dk/3";
    let theirs = Metadata::job(1)
        .log(&[log_line(URL, 1, "one", "-")])
        .cdx(&[cdx_line(URL, 1, "1.arc", 11)]);
    let ours = Metadata::job(2).captures(&[revisit(
        two,
        2,
        "one",
        &[("refersToTargetUri", URL), ("refersToDate", &date(1))],
    )]);
    let theirs_again =
        Metadata::job(3).log(&[log_line(three, 3, "one", &duplicate("2.warc.gz", 1, 2))]);
    let built = BuiltIndex::new(&[theirs_again.gzip(), ours.plain(), theirs.plain()]);
    built.assert_no_problem();
    let expected = Some(("1.arc".to_owned(), 11));
    for url in [URL, two, three] {
        assert_eq!(built.place(url, "one"), expected, "{url}");
    }
}

/// Fails if a revisit whose first capture is in no file gets into the index, or is not named with what it refers to.
#[test]
fn own_dangling_revisit_is_named() {
    let fields = [
        ("refersTo", "urn:uuid:9"),
        ("refersToTargetUri", URL),
        ("refersToDate", &date(1)),
    ];
    let second = Metadata::job(2).captures(&[revisit(URL, 2, "one", &fields)]);
    let built = BuiltIndex::new(&[second.plain()]);
    assert_eq!(built.report.captures, 0);
    let [problem] = built.problems().try_into().unwrap();
    let origin = "its origin http://a.dk/ of 20260102030001, record urn:uuid:9";
    assert!(problem.contains(origin), "{problem}");
}

/// Fails if revisits that refer to each other are followed without an end.
#[test]
fn own_loop_is_named() {
    let fields = |id| [("refersTo", id)];
    let looping = Metadata::job(1).captures(&[
        revisit(URL, 1, "one", &fields("urn:uuid:2")),
        revisit(URL, 2, "one", &fields("urn:uuid:1")),
        revisit(URL, 3, "one", &fields("urn:uuid:3")),
    ]);
    let built = BuiltIndex::new(&[looping.plain()]);
    assert_eq!(built.report.captures, 0);
    assert_eq!(built.report.problem_count, 3, "{:?}", built.problems());
}

/// Fails if the order of the inputs, a repeated one, or the memory changes a byte of the index.
#[test]
fn order_of_inputs_changes_no_byte() {
    let mut inputs = Vec::new();
    for job in 1..=4 {
        let urls = (0..40).map(|n| format!("http://a.dk/{n}"));
        let logged = urls.clone().enumerate().map(|(n, url)| {
            let annotation = match (job, n % 3) {
                (1, _) | (_, 0) => "-".to_owned(),
                (_, _) => duplicate("1.arc", u64::try_from(n).unwrap(), 1),
            };
            log_line(&url, job, &format!("{}", n % 7), &annotation)
        });
        let indexed = urls.enumerate().map(|(n, url)| {
            let offset = u64::try_from(n).unwrap();
            cdx_line(&url, job, &format!("{job}.arc"), offset)
        });
        let metadata = Metadata::job(job)
            .log(&logged.collect::<Vec<_>>())
            .cdx(&indexed.collect::<Vec<_>>());
        inputs.push(metadata.gzip());
        // Two captures of one URL in one second, in two files of the same job.
        let one = captured(URL, job, "x", 5);
        let two = captured(URL, job, "y", 6).replace("uuid:", "uuid:0");
        inputs.push(Metadata::job(job + 10).captures(&[one]).plain());
        inputs.push(Metadata::job(job + 10).captures(&[two]).gzip());
    }
    let expected = BuiltIndex::new(&inputs);
    expected.assert_no_problem();
    assert!(expected.report.duplicates > 50, "{:?}", expected.report);
    for turn in 1..inputs.len() {
        inputs.rotate_left(turn);
        inputs.swap(0, turn);
        let built = BuiltIndex::with_memory(&inputs, 4096);
        assert_eq!(built.text(), expected.text(), "{turn}");
    }
    inputs.extend_from_within(3..7);
    assert_eq!(BuiltIndex::new(&inputs).text(), expected.text());
}
