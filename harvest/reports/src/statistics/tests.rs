//! The reports of one small crawl, as whole texts.

use std::time::Duration;

use super::*;
use crate::log::{CrawlLogReader, LogEntry};
use crate::progress::EndMessage;

/// A crawl of three seeds, of which one was never fetched: DNS, robots.txt, a redirect, a page that was there before,
/// one that has not changed, one that was removed, a quota, a rule of robots.txt, a name that nobody knows, and two
/// lines that are damaged.
const LOG: &str = "\
2021-07-05T15:20:39.378Z     1         56 dns:www.a.dk P http://www.a.dk/ text/dns #001 20210705152039301+52 - http://www.a.dk/ content-size:56
2021-07-05T15:20:39.478Z   404        100 http://www.a.dk/robots.txt P http://www.a.dk/ text/html #001 20210705152039401+52 sha1:A http://www.a.dk/ content-size:350
2021-07-05T15:20:40.378Z   301          0 http://www.a.dk/ - - unknown #001 20210705152040301+52 sha1:B http://www.a.dk/ content-size:200,2t
2021-07-05T15:20:41.378Z   200       2000 https://www.a.dk/forside R http://www.a.dk/ text/html #001 20210705152041301+52 sha1:C http://www.a.dk/ content-size:2300,3t
2021-07-05T15:20:42.378Z   200        500 https://www.a.dk/logo.png RE https://www.a.dk/forside image/png #002 20210705152042301+52 sha1:D http://www.a.dk/ duplicate:\"6-1-x.warc.gz,123,20200705152039378\",content-size:800
2021-07-05T15:20:43.378Z   304          0 https://www.a.dk/style.css RE https://www.a.dk/forside text/css #002 20210705152043301+52 sha1:E http://www.a.dk/ duplicate:server-not-modified,warcRevisit:notModified,content-size:150
2021-07-05T15:20:44.378Z   200       3000 https://cdn.b.dk/a.js RE https://www.a.dk/forside text/javascript #003 20210705152044301+52 sha1:F http://www.a.dk/ warcRevisit:digest,content-size:3300
2021-07-05T15:20:45.378Z   200       1000 http://xn--brn-0na.dk/ - - text/html #004 20210705152045301+52 sha1:G http://xn--brn-0na.dk/ -
2021-07-05T15:20:46.378Z   404        300 http://xn--brn-0na.dk/x L http://xn--brn-0na.dk/ text/html #004 20210705152046301+52 sha1:H http://xn--brn-0na.dk/ content-size:600
2021-07-05T15:20:47.378Z -9998          - http://xn--brn-0na.dk/admin L http://xn--brn-0na.dk/ unknown #004 - - http://xn--brn-0na.dk/ robotExcluded
2021-07-05T15:20:48.378Z -5003          - https://www.a.dk/more RL https://www.a.dk/forside unknown #001 - - http://www.a.dk/ Q:groupMaxAllKb
2021-07-05T15:20:48.478Z -5003          - http://xn--brn-0na.dk/y L http://xn--brn-0na.dk/ unknown #004 - - http://xn--brn-0na.dk/ Q:groupMaxFetchSuccesses
garbage
2021-07-05T15:20:49.378Z    -1          - dns:gone.dk LP https://gone.dk/ unknown #005 20210705152049301+5 - http://www.a.dk/ 3t
2021-07-05T15:20:49.478Z    -6          - https://gone.dk/ RL https://www.a.dk/forside unknown #005 - - http://www.a.dk/ -
2021-07-05T15:20:50.378Z   200       100 http://www.a.dk/cut L http://www.a.dk/ text/html #001 20210705152050301+52 sha1:I http://www.a.dk/ content-si";

fn statistics(log: &str) -> CrawlStatistics {
    // As in `seeds.txt`: without scheme and slash, with a fragment, and with letters that URLs encode.
    let seeds = [
        "www.a.dk",
        "http://b\u{f8}rn.dk/#top",
        "http://never.dk/a b",
    ];
    let mut statistics = CrawlStatistics::new(seeds);
    for entry in CrawlLogReader::new(log.as_bytes()) {
        match entry.unwrap() {
            LogEntry::Line(line) => statistics.add_line(&line),
            LogEntry::Unreadable(line) => statistics.add_unreadable(line),
        }
    }
    statistics
}

/// Fails if a URI is counted under the wrong sum, a line is passed over, or a key has another name than in Heritrix.
#[test]
fn crawl_report_has_all_sums() {
    let summary = CrawlSummary {
        name: "7-1".to_owned(),
        end: EndMessage::Finished,
        duration: Duration::from_secs(11),
    };
    assert_eq!(
        statistics(LOG).crawl_report(&summary),
        "crawl name: 7-1
crawl status: Finished
duration: 11s

seeds crawled: 2
seeds uncrawled: 1

hosts visited: 3

URIs processed: 14
URI successes: 9
URI failures: 2
URI disregards: 3

novel URIs: 6
duplicate-by-hash URIs: 2
not-modified URIs: 1

total crawled bytes: 8756 (8.5 KiB)
novel crawled bytes: 4506 (4.4 KiB)
duplicate-by-hash crawled bytes: 4100 (4 KiB)
not-modified crawled bytes: 150 (150 B)

URIs/sec: 0.82
KB/sec: 0

unreadable log lines: 2
unreadable log line: line 13 (byte 2018): 1 fields, where a line of a crawl log has at least 10
unreadable log line: line 16 (byte 2278): the log ends within this line
"
    );
}

/// Fails if a seed is missed because it is written otherwise than its URL, or the redirect is lost.
#[test]
fn seeds_report_names_uncrawled_first() {
    assert_eq!(
        statistics(LOG).seeds_report(),
        "[code] [status] [seed] [redirect]
0 NOTCRAWLED http://never.dk/a%20b
301 CRAWLED www.a.dk https://www.a.dk/forside
200 CRAWLED http://b\u{f8}rn.dk/#top
"
    );
}

/// Fails if failed seeds are taken for crawled, or their order is not the one of Heritrix.
#[test]
fn seeds_are_sorted_as_heritrix_does() {
    let mut statistics = CrawlStatistics::new(["http://a/", "http://b/", "http://c/", "http://d/"]);
    for (uri, status) in [
        ("http://a/", 404),
        ("http://b/", -2),
        ("http://c/", -1),
        ("http://d/", 503),
    ] {
        let line = format!("2021-07-05T15:20:39Z {status} - {uri} - - unknown #001 - - - -");
        statistics.add_line(&line.parse().unwrap());
    }
    assert_eq!(
        statistics.seeds_report(),
        "[code] [status] [seed] [redirect]
-1 NOTCRAWLED http://c/
-2 NOTCRAWLED http://b/
503 CRAWLED http://d/
404 CRAWLED http://a/
"
    );
}

/// Fails if DNS counts for a host, a host without a fetched URI is left out, or a column is swapped.
#[test]
fn hosts_report_has_every_host() {
    let remaining = [("www.a.dk".to_owned(), 12), ("waiting.dk".to_owned(), 3)];
    assert_eq!(
        statistics(LOG).hosts_report(remaining),
        "[#urls] [#bytes] [host] [#robots] [#remaining] [#novel-urls] [#novel-bytes] [#dup-by-hash-urls] \
[#dup-by-hash-bytes] [#not-modified-urls] [#not-modified-bytes]
5 3800 www.a.dk 0 12 3 2850 1 800 1 150
2 1600 xn--brn-0na.dk 1 0 2 1600 0 0 0 0
1 3300 cdn.b.dk 0 0 0 0 1 3300 0 0
1 56 dns: 0 0 1 56 0 0 0 0
0 0 gone.dk 0 0 0 0 0 0 0 0
0 0 waiting.dk 0 3 0 0 0 0 0 0
"
    );
}

/// Fails if a report is not sorted by its counts, or counts URIs that were not fetched.
#[test]
fn tallies_are_sorted_by_count() {
    let statistics = statistics(LOG);
    assert_eq!(
        statistics.mimetype_report(),
        "[#urls] [#bytes] [mime-types]
4 4250 text/html
1 800 image/png
1 150 text/css
1 56 text/dns
1 3300 text/javascript
1 200 unknown
"
    );
    assert_eq!(
        statistics.responsecode_report(),
        "[#urls] [rescode]\n4 200\n2 404\n1 1\n1 301\n1 304\n"
    );
}

/// Fails if a URI counts for its own host's seed instead of the seed that led to it.
#[test]
fn source_report_counts_hosts_by_seed() {
    assert_eq!(
        statistics(LOG).source_report(),
        "[source] [host] [#urls]
http://www.a.dk/ www.a.dk 6
http://www.a.dk/ cdn.b.dk 1
http://xn--brn-0na.dk/ xn--brn-0na.dk 2
"
    );
}

/// Fails if a stage counts the URIs of another one.
#[test]
fn stages_count_what_the_log_shows() {
    let stages = statistics(LOG).stage_reports();
    let counters = stages.iter().flat_map(|stage| &stage.counters);
    let counted: Vec<_> = counters.filter(|(_, count)| *count > 0).collect();
    let expected = [
        ("URIs over the byte limit", 1),
        ("URIs over the object limit", 1),
        ("URIs precluded", 1),
        ("URIs answered", 1),
        ("URIs failed", 1),
        ("URIs answered", 8),
        ("URIs failed", 1),
        ("duplicate URIs", 2),
        ("not-modified URIs", 1),
        ("retries", 5),
    ];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(counted, expected.iter().collect::<Vec<_>>());
}

/// Fails if hosts can fill the memory with names that they invent, or such URIs are not counted at all.
#[test]
fn invented_media_types_share_a_row() {
    let mut statistics = CrawlStatistics::default();
    let line = "2021-07-05T15:20:39Z 200 1 http://a/ - - x #001 - - - -";
    let mut line: CrawlLogLine = line.parse().unwrap();
    for number in 0..MEDIA_TYPES.rows + 5 {
        line.media_type = Some(format!("type/{number}"));
        statistics.add_line(&line);
    }
    line.media_type = Some("x".repeat(100_000));
    statistics.add_line(&line);
    let report = statistics.mimetype_report();
    assert_eq!(report.lines().nth(1), Some("6 6 (others)"));
    assert_eq!(report.lines().count(), MEDIA_TYPES.rows + 2);
}

/// Fails if a URI of another protocol loses its host, or one without a host stops the counting.
#[test]
fn hosts_are_read_from_any_uri() {
    for (uri, expected) in [
        ("http://B\u{d8}RN.dk:8080/x", Some("xn--brn-0na.dk")),
        ("ftp://user@A.dk/x", Some("a.dk")),
        ("http://[::1]/", Some("[::1]")),
        ("dns:WWW.a.dk", Some("www.a.dk")),
        ("dns:a.dk?type=A", Some("a.dk")),
        ("dns://192.0.2.1/a.dk;type=A", Some("a.dk")),
        ("dns:", None),
        ("dns://x", None),
        ("mailto:a@a.dk", None),
        ("http://", None),
        ("", None),
    ] {
        assert_eq!(host_of(uri).as_deref(), expected, "{uri}");
    }
}
