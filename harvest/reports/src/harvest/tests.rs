//! Objects, bytes and stop reasons of domains.

use super::*;
use crate::progress::{CrawlState, EndMessage, StateNote};

fn line(status: i32, uri: &str, source: &str, annotations: &str) -> CrawlLogLine {
    format!("2021-07-05T15:20:39Z {status} 7 {uri} - - t #001 - - {source} {annotations}")
        .parse()
        .unwrap()
}

/// Returns the last two labels of a host: what the public suffix list says of `.dk`.
fn domain_of(host: &str) -> Option<String> {
    let mut labels = host.rsplit('.');
    let top = labels.next()?;
    let label = labels.next()?;
    (top == "dk").then(|| format!("{label}.{top}"))
}

fn report(disregard_seed: bool, lines: &[CrawlLogLine]) -> Vec<(String, u64, u64, StopReason)> {
    let mut report = HarvestReport::new(StopReason::TimeLimit, disregard_seed);
    for line in lines {
        report.add_line(line, domain_of);
    }
    let domains = report.domains();
    domains
        .map(|(domain, report)| {
            (
                domain.to_owned(),
                report.objects,
                report.bytes,
                report.stop_reason,
            )
        })
        .collect()
}

/// Fails if an embed counts for its own domain though the job is told to charge its seed, or the other way round.
#[test]
fn source_tag_decides_the_domain() {
    let lines = [
        line(
            200,
            "http://www.a.dk/",
            "http://www.a.dk/",
            "content-size:10",
        ),
        line(
            200,
            "http://cdn.b.dk/x",
            "http://www.a.dk/",
            "content-size:20",
        ),
        line(1, "dns:www.c.dk", "-", "content-size:3"),
        line(
            200,
            "http://d.dk/",
            "http://elsewhere.com/",
            "content-size:40",
        ),
    ];
    let reason = StopReason::TimeLimit;
    assert_eq!(
        report(false, &lines),
        [
            ("a.dk".to_owned(), 2, 30, reason),
            ("c.dk".to_owned(), 1, 3, reason),
            ("d.dk".to_owned(), 1, 40, reason),
        ]
    );
    assert_eq!(
        report(true, &lines),
        [
            ("a.dk".to_owned(), 1, 10, reason),
            ("b.dk".to_owned(), 1, 20, reason),
            ("c.dk".to_owned(), 1, 3, reason),
            ("d.dk".to_owned(), 1, 40, reason),
        ]
    );
}

/// Fails if a later quota replaces the first one, or a quota is believed without its status.
#[test]
fn first_quota_is_the_reason() {
    let uri = "http://a.dk/";
    for (lines, expected) in [
        (
            vec![line(200, uri, "-", "Q:groupMaxAllKb")],
            StopReason::TimeLimit,
        ),
        (
            vec![line(-5003, uri, "-", "Q:groupMaxAllKb")],
            StopReason::SizeLimit,
        ),
        (
            vec![
                line(-5003, uri, "-", "x,Q:groupMaxFetchSuccesses"),
                line(-5003, uri, "-", "Q:groupMaxAllKb"),
            ],
            StopReason::ObjectLimit,
        ),
        (
            vec![line(-5003, uri, "-", "Q:serverMaxAllKb")],
            StopReason::TimeLimit,
        ),
    ] {
        assert_eq!(report(false, &lines)[0].3, expected, "{lines:?}");
    }
}

/// Fails if failures count as objects, their bytes are added, or the size of the body is taken for that of the record.
#[test]
fn only_fetched_uris_count() {
    let lines = [
        line(0, "http://a.dk/", "-", "content-size:1"),
        line(404, "http://a.dk/", "-", "content-size:10"),
        line(200, "http://a.dk/", "-", "-"),
        line(-2, "http://a.dk/", "-", "content-size:100"),
        line(-9998, "http://e.dk/", "-", "-"),
    ];
    let reason = StopReason::TimeLimit;
    assert_eq!(
        report(false, &lines),
        [
            ("a.dk".to_owned(), 3, 11, reason),
            ("e.dk".to_owned(), 0, 0, reason)
        ]
    );
}

/// Fails if a domain is listed twice because of its spelling, or a line without one is not counted.
#[test]
fn domains_are_in_unicode() {
    let mut harvest = HarvestReport::new(StopReason::DownloadComplete, false);
    harvest.add_line(
        &line(200, "http://www.xn--brn-0na.dk/", "-", "-"),
        domain_of,
    );
    harvest.add_line(&line(200, "http://b\u{f8}rn.dk/", "-", "-"), domain_of);
    harvest.add_line(&line(200, "http://a.com/", "urn:x", "-"), domain_of);
    harvest.add_line(&line(200, "http://xn--\u{ff}.dk/", "-", "-"), domain_of);
    let found: Vec<_> = harvest
        .domains()
        .map(|(domain, report)| (domain, report.objects))
        .collect();
    assert_eq!(found, [("b\u{f8}rn.dk", 2)]);
    assert_eq!(harvest.lines_without_domain(), 2);
}

/// Fails if a crawl that did not end by itself is taken for complete.
#[test]
fn default_reason_follows_the_last_line() {
    let time = "2021-07-05T15:20:39Z".parse().unwrap();
    let note = |state| StateNote { time, state }.to_string();
    for (line, expected) in [
        (None, StopReason::DownloadUnfinished),
        (
            Some(crate::progress::progress_legend()),
            StopReason::DownloadUnfinished,
        ),
        (
            Some(note(CrawlState::Ending(EndMessage::Finished))),
            StopReason::DownloadUnfinished,
        ),
        (
            Some(note(CrawlState::Ended(EndMessage::Finished))),
            StopReason::DownloadComplete,
        ),
        (
            Some(note(CrawlState::Ended(EndMessage::EndedByOperator))),
            StopReason::DownloadUnfinished,
        ),
        (
            Some(note(CrawlState::Ended(EndMessage::TimeLimit))),
            StopReason::TimeLimit,
        ),
        (
            Some(note(CrawlState::Ended(EndMessage::DataLimit))),
            StopReason::DownloadComplete,
        ),
        (
            Some("20080602075245 CRAWL ENDED - Finished - Ended by operator".to_owned()),
            StopReason::DownloadUnfinished,
        ),
    ] {
        assert_eq!(
            StopReason::from_last_progress_line(line.as_deref()),
            expected,
            "{line:?}"
        );
    }
}

/// Fails if a number names another reason than in NetarchiveSuite's database.
#[test]
fn reasons_keep_their_numbers() {
    for (number, reason) in (0..).zip(StopReason::ALL) {
        assert_eq!(reason.number(), number);
        assert_eq!(StopReason::from_number(number), Some(reason));
    }
    assert_eq!(StopReason::ConfigSizeLimit.number(), 3);
    assert_eq!(StopReason::TimeLimit.number(), 6);
    assert_eq!(StopReason::from_number(7), None);
}
