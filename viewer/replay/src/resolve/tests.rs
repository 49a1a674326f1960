//! Tests of resolution, against a small archive that answers the steps.

use archive_formats::warc::{Header, WarcType};

use super::*;

mod archive;

use archive::{TestArchive, refusal_of, shown_of};

const SAME: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.0/revisit/server-not-modified";
const DIGEST: &str = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";
const OTHER_DIGEST: &str = "sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A";

/// Fails if another capture than the nearest one is shown, or something is shown where nothing is.
#[test]
fn nearest_capture_is_shown() {
    let mut archive = TestArchive::default();
    archive.response("http://a.dk/", "2019", DIGEST);
    archive.response("http://a.dk/", "2021", OTHER_DIGEST);
    assert_eq!(archive.shown("http://a.dk/", "2018"), (0, None));
    assert_eq!(archive.shown("http://a.dk/", "2022"), (1, None));
    let nothing = ResolveOutcome::NotFound(NotFoundReason::NoCapture);
    assert_eq!(archive.resolve("http://b.dk/", "2022"), nothing);
}

/// Fails if a redirect to the same key is shown while there is another capture: a browser would go round for good.
#[test]
fn self_redirects_are_passed_over() {
    let mut archive = TestArchive::default();
    archive.redirect("http://a.dk/", "20200101000000", "https://www.a.dk/");
    archive.redirect("http://a.dk/", "20200101000001", "/");
    // The index does not always know the redirect: then the record says it.
    archive
        .redirect("http://a.dk/", "20200101000002", "//a.dk")
        .redirect = None;
    archive.response("https://www.a.dk/", "20200101000000", DIGEST);
    archive.redirect("http://b.dk/", "2020", "http://b.dk/other");
    assert_eq!(archive.shown("http://a.dk/", "20200101000000"), (3, None));
    assert_eq!(archive.shown("http://a.dk/", "2030"), (3, None));
    assert_eq!(archive.shown("http://b.dk/", "2020"), (4, None));
    archive.captures.remove(3);
    assert!(shown_of(&archive.resolve("http://a.dk/", "2030")).is_self_redirect);
}

/// Fails if a part of a resource or an answer without one is preferred to a whole one.
#[test]
fn poor_statuses_are_second_choice() {
    let mut archive = TestArchive::default();
    for (time, status) in [
        ("2020", "206 Partial"),
        ("2021", "304 Not Modified"),
        ("2022", "100 Continue"),
    ] {
        archive.add(
            "http://a.dk/",
            time,
            WarcType::Response,
            &[],
            &format!("HTTP/1.1 {status}"),
        );
    }
    assert_eq!(archive.shown("http://a.dk/", "2021"), (1, None));
    archive.add(
        "http://a.dk/",
        "2001",
        WarcType::Response,
        &[],
        "HTTP/1.1 404 Not Found",
    );
    assert_eq!(archive.shown("http://a.dk/", "2021"), (3, None));
}

/// Fails if an excluded capture hides the next one, or a blocked one does not.
#[test]
fn access_is_asked_before_choice() {
    let mut archive = TestArchive::with_rules(
        "dk,a)/ - {\"access\": \"exclude\", \"before\": \"2010\"}\ndk,a)/ - {\"access\": \"block\", \"after\": \"2020\"}",
    );
    for time in ["2009", "2015", "2021"] {
        archive.response("http://a.dk/", time, DIGEST);
    }
    assert_eq!(archive.shown("http://a.dk/", "2000"), (1, None));
    assert_eq!(
        refusal_of(&archive.resolve("http://a.dk/", "2030")),
        "block by rules:2"
    );
    archive.captures.truncate(1);
    let nothing = ResolveOutcome::NotFound(NotFoundReason::NoCapture);
    assert_eq!(archive.resolve("http://a.dk/", "2009"), nothing);
    assert!(!archive.steps.borrow().contains(&"read 0".to_owned()));
    assert!(!archive.steps.borrow().contains(&"read 2".to_owned()));
}

/// Fails if the original is not found by the reference of the revisit, or a wrong head is taken.
#[test]
fn revisits_are_resolved_by_reference() {
    let mut archive = TestArchive::default();
    archive.response("http://b.dk/x", "20190102030405", DIGEST);
    archive.revisit(
        "http://a.dk/",
        "2020",
        SAME,
        Some(("http://b.dk/x", "2019-01-02T03:04:05Z")),
    );
    archive.response("http://c.dk/", "20190102030405", OTHER_DIGEST);
    archive.revisit(
        "http://c.dk/",
        "2020",
        NOT_MODIFIED,
        Some(("<http://c.dk/>", "2019-01-02T03:04:05Z")),
    );
    assert_eq!(archive.shown("http://a.dk/", "2020"), (1, Some(0)));
    assert_eq!(archive.shown("http://c.dk/", "2020"), (3, Some(2)));
    let head = |url: &str| shown_of(&archive.resolve(url, "2020")).head;
    assert_eq!(head("http://a.dk/"), HeadSource::Capture);
    assert_eq!(head("http://c.dk/"), HeadSource::Original);
    assert!(!archive.steps.borrow().contains(&"digest".to_owned()));
}

/// Fails if a revisit without a reference is not resolved by its digest at any URL, or a 304 by the capture before it.
#[test]
fn revisits_without_reference_are_resolved() {
    let mut archive = TestArchive::default();
    archive.response("http://far.dk/", "2019", DIGEST);
    archive.response("http://a.dk/", "2019", OTHER_DIGEST);
    archive.revisit("http://a.dk/", "2020", SAME, None);
    archive.response("http://b.dk/", "2018", DIGEST);
    archive.response("http://b.dk/", "2021", DIGEST);
    archive.revisit("http://b.dk/", "2020", NOT_MODIFIED, None);
    assert_eq!(archive.shown("http://a.dk/", "2020"), (2, Some(0)));
    assert_eq!(archive.shown("http://b.dk/", "2020"), (5, Some(3)));
    // A wrong date, as old crawlers wrote it, is mended by the digest.
    archive.revisit(
        "http://c.dk/",
        "2020",
        SAME,
        Some(("http://far.dk/", "2001-01-01T00:00:00Z")),
    );
    assert_eq!(archive.shown("http://c.dk/", "2020"), (6, Some(0)));
}

/// Fails if the place of the original in a line of 14 fields is not used first.
#[test]
fn place_in_index_is_used_first() {
    let mut archive = TestArchive::default();
    archive.response("http://a.dk/", "2019", DIGEST);
    archive
        .revisit("http://a.dk/", "2020", SAME, None)
        .original_record = Some(archive_formats::cdx::OriginalRecord {
        length: None,
        offset: Some(0),
        file: Some("x.warc.gz".to_owned()),
    });
    assert_eq!(archive.shown("http://a.dk/", "2020"), (1, Some(0)));
    assert_eq!(*archive.steps.borrow(), ["read 1", "read 0"]);
}

/// Fails if a chain of two is not followed, or one of three is.
#[test]
fn chains_end_after_two_links() {
    let mut archive = TestArchive::default();
    archive.response("http://a.dk/", "20170101000000", DIGEST);
    archive.revisit(
        "http://b.dk/",
        "20180101000000",
        SAME,
        Some(("http://a.dk/", "2017-01-01T00:00:00Z")),
    );
    archive.revisit(
        "http://c.dk/",
        "20190101000000",
        SAME,
        Some(("http://b.dk/", "2018-01-01T00:00:00Z")),
    );
    archive.revisit(
        "http://d.dk/",
        "20200101000000",
        SAME,
        Some(("http://c.dk/", "2019-01-01T00:00:00Z")),
    );
    assert_eq!(archive.shown("http://c.dk/", "2019"), (2, Some(0)));
    // The digest finds the original of the long chain; without digests there is a word about it.
    assert_eq!(archive.shown("http://d.dk/", "2020"), (3, Some(0)));
    for capture in &mut archive.captures {
        capture.digest = None;
    }
    for (header, _) in &mut archive.records {
        let text = String::from_utf8_lossy(header.raw()).replace("WARC-Payload-Digest", "X-None");
        *header = Header::parse(text.as_bytes());
    }
    assert_eq!(archive.shown("http://c.dk/", "2019"), (2, Some(0)));
    let too_long = ResolveOutcome::NotFound(NotFoundReason::ChainTooLong);
    assert_eq!(archive.resolve("http://d.dk/", "2020"), too_long);
}

/// Fails if a circle of revisits is not noticed.
#[test]
fn circles_are_noticed() {
    let mut archive = TestArchive::default();
    archive.revisit(
        "http://a.dk/",
        "20180101000000",
        SAME,
        Some(("http://b.dk/", "2019-01-01T00:00:00Z")),
    );
    archive.revisit(
        "http://b.dk/",
        "20190101000000",
        SAME,
        Some(("http://a.dk/", "2018-01-01T00:00:00Z")),
    );
    let circle = ResolveOutcome::NotFound(NotFoundReason::Circle);
    assert_eq!(archive.resolve("http://a.dk/", "2018"), circle);
    archive.revisit(
        "http://c.dk/",
        "20190101000000",
        SAME,
        Some(("http://c.dk/", "2019-01-01T00:00:00Z")),
    );
    archive.records.truncate(3);
    archive.captures.retain(|capture| capture.key == "dk,c)/");
    assert_eq!(archive.resolve("http://c.dk/", "2019"), circle);
}

/// Fails if a missing original has no word of its own, or a record that cannot be read passes for one that is not
/// there.
#[test]
fn missing_and_unavailable_are_distinguished() {
    let mut archive = TestArchive::default();
    archive.revisit(
        "http://a.dk/",
        "2020",
        SAME,
        Some(("http://b.dk/", "2019-01-01T00:00:00Z")),
    );
    let no_original = ResolveOutcome::NotFound(NotFoundReason::NoOriginal);
    assert_eq!(archive.resolve("http://a.dk/", "2020"), no_original);
    archive
        .response("http://b.dk/", "20190101000000", DIGEST)
        .offset = Some(500);
    assert_eq!(
        archive.resolve("http://a.dk/", "2020"),
        ResolveOutcome::Unavailable
    );
    archive.captures.last_mut().unwrap().offset = Some(404);
    assert_eq!(archive.resolve("http://a.dk/", "2020"), no_original);
    let no_record = ResolveOutcome::NotFound(NotFoundReason::NoRecord);
    assert_eq!(archive.resolve("http://b.dk/", "2019"), no_record);
    archive.captures.last_mut().unwrap().offset = Some(500);
    assert_eq!(
        archive.resolve("http://b.dk/", "2019"),
        ResolveOutcome::Unavailable
    );
    // Another copy of the payload helps.
    archive.response("http://c.dk/", "2018", DIGEST);
    assert_eq!(archive.shown("http://a.dk/", "2020"), (0, Some(2)));
}

/// Fails if a revisit that names no original is answered as if the original were known not to be in the archive, or the
/// other way round.
#[test]
fn unnamed_original_has_own_reason() {
    let gone = Some(("http://b.dk/", "2019-01-01T00:00:00Z"));
    for (profile, refers_to, expected) in [
        (SAME, None, NotFoundReason::UnnamedOriginal),
        (SAME, gone, NotFoundReason::NoOriginal),
        (NOT_MODIFIED, None, NotFoundReason::NoOriginal),
    ] {
        let mut archive = TestArchive::default();
        archive.revisit("http://a.dk/", "2020", profile, refers_to);
        let outcome = archive.resolve("http://a.dk/", "2020");
        let expected = ResolveOutcome::NotFound(expected);
        assert_eq!(outcome, expected, "{profile} {refers_to:?}");
    }
}

/// Fails if a row that names a record which is not there hides another row of the same capture.
#[test]
fn row_without_record_hides_no_twin() {
    let mut archive = TestArchive::default();
    archive
        .response("http://a.dk/", "20190101000000", DIGEST)
        .offset = Some(404);
    archive.response("http://a.dk/", "20190101000000", DIGEST);
    archive.response("http://a.dk/", "20190101000001", DIGEST);
    assert_eq!(archive.shown("http://a.dk/", "2019"), (1, None));
    // Another second is another capture.
    let no_record = ResolveOutcome::NotFound(NotFoundReason::NoRecord);
    archive.captures[1].offset = Some(404);
    assert_eq!(archive.resolve("http://a.dk/", "2019"), no_record);
    // A part is better than nothing.
    archive.captures[1].offset = Some(1);
    archive.captures[1].status = Some(206);
    assert_eq!(archive.shown("http://a.dk/", "2019"), (1, None));
}

/// Fails if a search by digest that was not over counts as one that found nothing.
#[test]
fn unfinished_digest_search_is_unavailable() {
    let mut archive = TestArchive {
        is_digest_search_slow: true,
        ..TestArchive::default()
    };
    let original = Some(("http://b.dk/", "2019-01-01T00:00:00Z"));
    archive.revisit("http://a.dk/", "2020", SAME, original);
    let outcome = archive.resolve("http://a.dk/", "2020");
    assert_eq!(outcome, ResolveOutcome::Unavailable);
}

/// Fails if the payload of a URL that the visitor may not see is shown under another one.
#[test]
fn refused_original_is_not_shown() {
    let mut archive = TestArchive::with_rules(
        "dk,b)/ - {\"access\": \"block\"}\ndk,c)/ - {\"access\": \"exclude\"}",
    );
    archive.response("http://b.dk/", "20190101000000", DIGEST);
    archive.revisit(
        "http://a.dk/",
        "2020",
        SAME,
        Some(("http://b.dk/", "2019-01-01T00:00:00Z")),
    );
    assert_eq!(
        refusal_of(&archive.resolve("http://a.dk/", "2020")),
        "block by rules:1"
    );
    assert!(!archive.steps.borrow().contains(&"read 0".to_owned()));
    archive.response("http://d.dk/", "2015", DIGEST);
    assert_eq!(archive.shown("http://a.dk/", "2020"), (1, Some(2)));
}

/// Fails if an original whose digest is another one is shown.
#[test]
fn original_with_other_digest_is_refused() {
    let mut archive = TestArchive::default();
    archive.response("http://b.dk/", "20190101000000", OTHER_DIGEST);
    archive.revisit(
        "http://a.dk/",
        "2020",
        SAME,
        Some(("http://b.dk/", "2019-01-01T00:00:00Z")),
    );
    let no_original = ResolveOutcome::NotFound(NotFoundReason::NoOriginal);
    assert_eq!(archive.resolve("http://a.dk/", "2020"), no_original);
    // An index without digests does not hide it: the record has one.
    archive.captures[0].digest = None;
    assert_eq!(archive.resolve("http://a.dk/", "2020"), no_original);
    assert!(archive.steps.borrow().contains(&"read 0".to_owned()));
}

/// Fails if a hundred captures that are of no use are all read, or an answer to nothing panics.
#[test]
fn work_is_bounded() {
    let mut archive = TestArchive::default();
    archive.revisit("http://a.dk/", "2020", SAME, None);
    for at in 0..100 {
        archive
            .response(&format!("http://b{at}.dk/"), "2019", DIGEST)
            .offset = Some(500 + at);
    }
    assert_eq!(
        archive.resolve("http://a.dk/", "2020"),
        ResolveOutcome::Unavailable
    );
    let reads = archive
        .steps
        .borrow()
        .iter()
        .filter(|step| step.starts_with("read"))
        .count();
    assert!((2..=10).contains(&reads), "{reads}");
    let access = |capture: &Capture| archive.access(capture);
    for answer in [
        StepAnswer::Missing,
        StepAnswer::Unavailable,
        StepAnswer::Record(RecordFacts::new(WarcType::Response)),
    ] {
        let step = Resolver::new().take_answer(answer, &access);
        assert_eq!(step, ResolveStep::Finished(ResolveOutcome::Unavailable));
    }
}

/// Fails if a profile of any version is not known.
#[test]
fn profiles_of_all_versions_are_known() {
    for version in ["0.18", "1.0", "1.1"] {
        let uri = |name: &str| format!("http://netpreserve.org/warc/{version}/revisit/{name}");
        assert_eq!(
            RevisitProfile::read_profile(&uri("server-not-modified")),
            RevisitProfile::NotModified
        );
        assert_eq!(
            RevisitProfile::read_profile(&uri("identical-payload-digest")),
            RevisitProfile::IdenticalPayload
        );
    }
}
