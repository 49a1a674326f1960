//! Reports of logs that are made up, compared with counts of their bare fields: odd URIs, huge numbers, lines that are
//! no lines, a last line that is cut.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use harvest_reports::harvest::{HarvestReport, StopReason};
use harvest_reports::log::{CrawlLogReader, LogEntry};
use harvest_reports::progress::EndMessage;
use harvest_reports::statistics::{CrawlStatistics, CrawlSummary};
use tools_testing::Random;
use url::Url;

const STATUSES: [&str; 18] = [
    "200",
    "200",
    "200",
    "404",
    "301",
    "304",
    "1",
    "1001",
    "0",
    "-1",
    "-2",
    "-6",
    "-9998",
    "-5003",
    "-5000",
    "-50",
    "999",
    "2147483647",
];

const URIS: [&str; 16] = [
    "http://a.dk/",
    "http://a.dk/x%20y%0A",
    "HTTP://A.DK/Case",
    "https://www.b.dk:8443/?q=a,b&c=\"d\"",
    "http://u@c.dk/#top",
    "http://[2001:db8::1]/",
    "http://127.0.0.1/",
    "http://blåbær.dk/ø",
    "http://xn--blbr-roah.dk/",
    "dns:a.dk",
    "dns:b.dk",
    "data:text/plain,x",
    "nonsense",
    "http://",
    "http://a.dk/%zz%00%FF",
    "http://e.dk/content-size:9,3t",
];

const TYPES: [&str; 8] = [
    "text/html",
    "image/png",
    "unknown",
    "-",
    "text/dns",
    "(others)",
    "text/h\u{fc}ml",
    "x,y\"z",
];

const SIZES: [&str; 7] = [
    "0",
    "1",
    "1500",
    "4294967296",
    "18446744073709551615",
    "-",
    "9223372036854775808",
];

const ANNOTATIONS: [&str; 12] = [
    "-",
    "3t",
    "content-size:1700",
    "content-size:18446744073709551615",
    "content-size:18446744073709551616",
    "duplicate:\"1-2-x.warc.gz,123,20210705152039378\",content-size:9",
    "deduplicate:1-2-x.arc.gz,123,20210705152039378,content-size:8",
    "duplicate:server-not-modified,content-size:7",
    "warcRevisit:digest,content-size:6",
    "Q:groupMaxAllKb",
    "2t,Q:groupMaxFetchSuccesses",
    "robotExcluded,\"unended,quote",
];

const SEEDS: [&str; 4] = ["-", "http://a.dk/", "http://seed.dk/", "nonsense"];

fn line(random: &mut Random) -> Vec<u8> {
    match random.below(40) {
        0 => return b"garbage\n".to_vec(),
        1 => return b"\n".to_vec(),
        2 => {
            return b"2021-07-05T15:20:39.378Z 200 1 http://a.dk/\xFF - - t #001 - - - -\n"
                .to_vec();
        }
        3 => {
            return [
                b"2021-07-05T15:20:39.378Z 200 1 http://a.dk/".as_slice(),
                &vec![b'x'; 1 << 20],
                b" - - t #001 - - - -\n",
            ]
            .concat();
        }
        _ => {}
    }
    let hops = random.pick(&["-", "L", "LLE", "R"]);
    let via = random.pick(&["-", "http://a.dk/"]);
    let line = format!(
        "2021-07-05T15:20:39.378Z {:>5} {:>10} {} {hops} {via} {} #{:03} {} {} {} {}\n",
        random.pick(&STATUSES),
        random.pick(&SIZES),
        random.pick(&URIS),
        random.pick(&TYPES),
        random.below(1000),
        random.pick(&["-", "20210705152039301+52"]),
        random.pick(&["-", "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"]),
        random.pick(&SEEDS),
        random.pick(&ANNOTATIONS),
    );
    line.into_bytes()
}

/// A line of the log as nothing but its fields.
struct LogFields(Vec<String>);

impl LogFields {
    fn status(&self) -> i64 {
        self.0[1].parse().unwrap()
    }

    fn content_size(&self) -> Option<u64> {
        self.0[11].split(',').find_map(|text| {
            let number = text.strip_prefix("content-size:")?;
            number.parse().ok()
        })
    }

    fn bytes(&self) -> u64 {
        let size = || self.0[2].parse().ok();
        self.content_size().or_else(size).unwrap_or(0)
    }

    /// Returns how the payload is known: 0: new, 1: by its digest, 2: by the answer of its host.
    fn novelty(&self) -> usize {
        let annotations = &self.0[11];
        if annotations.contains("server-not-modified") {
            2
        } else {
            usize::from(annotations.contains("duplicate:") || annotations.contains("warcRevisit:"))
        }
    }
}

fn host(uri: &str) -> String {
    if let Some(name) = uri.strip_prefix("dns:") {
        return name.to_owned();
    }
    let url = Url::parse(uri).ok();
    let host = url.as_ref().and_then(Url::host_str);
    host.filter(|host| !host.is_empty())
        .unwrap_or("-")
        .to_owned()
}

/// Returns the whole lines of a log that have 12 fields, and the number of those that are no lines.
fn fields(log: &[u8]) -> (Vec<LogFields>, u64) {
    let mut lines = Vec::new();
    let mut others = 0;
    let whole = log.split_inclusive(|byte| *byte == b'\n');
    for line in whole {
        let text = str::from_utf8(line).ok();
        let text = text.filter(|text| text.ends_with('\n') && text.len() < 1 << 20);
        let fields: Vec<String> = text
            .unwrap_or_default()
            .split_ascii_whitespace()
            .map(str::to_owned)
            .collect();
        if fields.len() == 12 {
            lines.push(LogFields(fields));
        } else {
            others += 1;
        }
    }
    (lines, others)
}

/// Returns the rows of a report behind its header.
fn rows(report: &str) -> Vec<Vec<String>> {
    assert!(!report.contains(|letter: char| letter.is_control() && letter != '\n'));
    let rows = report.lines().skip(1);
    rows.map(|row| row.split(' ').map(str::to_owned).collect())
        .collect()
}

/// Sums by name, as a report has them and as the log has them.
fn assert_sums(rows: &[Vec<String>], name: usize, expected: &BTreeMap<String, Vec<u64>>) {
    let mut found = BTreeMap::new();
    for row in rows {
        let numbers = row.iter().enumerate().filter(|(column, _)| *column != name);
        let numbers: Vec<u64> = numbers.map(|(_, number)| number.parse().unwrap()).collect();
        assert_eq!(found.insert(row[name].clone(), numbers), None, "{row:?}");
    }
    assert_eq!(&found, expected);
}

fn add(sums: &mut BTreeMap<String, Vec<u64>>, name: &str, numbers: &[u64]) {
    let sum = sums
        .entry(name.to_owned())
        .or_insert_with(|| vec![0; numbers.len()]);
    for (sum, number) in sum.iter_mut().zip(numbers) {
        *sum = sum.saturating_add(*number);
    }
}

fn assert_reports(log: &[u8]) {
    let mut statistics = CrawlStatistics::new(["http://a.dk/", "http://seed.dk/"]);
    let mut harvest = HarvestReport::new(StopReason::DownloadComplete, false);
    let domain_of = |host: &str| Some(host.to_owned());
    for entry in CrawlLogReader::new(log) {
        match entry.unwrap() {
            LogEntry::Line(line) => {
                statistics.add_line(&line);
                harvest.add_line(&line, domain_of);
            }
            LogEntry::Unreadable(line) => statistics.add_unreadable(line),
        }
    }
    let (lines, unreadable) = fields(log);
    let summary = CrawlSummary {
        name: "7".to_owned(),
        end: EndMessage::Finished,
        duration: Duration::from_secs(10),
    };
    let reports: BTreeMap<_, _> = statistics.write_reports(&summary, []).into_iter().collect();

    let mut types = BTreeMap::new();
    let mut codes = BTreeMap::new();
    let mut hosts = BTreeMap::new();
    let mut sources: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in &lines {
        let status = line.status();
        let host = host(&line.0[3]);
        // URLs, bytes, robots, remaining, then both by novelty.
        let mut of_host = [0; 10];
        if status == -9998 {
            of_host[2] = 1;
        }
        if status <= 0 {
            add(&mut hosts, &host, &of_host);
            continue;
        }
        let bytes = line.bytes();
        let media_type = match line.0[6].as_str() {
            "-" => "unknown",
            other => other,
        };
        add(&mut types, media_type, &[1, bytes]);
        add(&mut codes, &line.0[1], &[1]);
        (of_host[0], of_host[1]) = (1, bytes);
        let novelty = 4 + 2 * line.novelty();
        (of_host[novelty], of_host[novelty + 1]) = (1, bytes);
        let row = if status == 1 { "dns:" } else { &host };
        add(&mut hosts, row, &of_host);
        if line.0[10] != "-" {
            add(&mut sources, &format!("{} {host}", line.0[10]), &[1]);
        }
    }
    for sums in hosts.values_mut() {
        // The sum of a host is that of its parts.
        sums[1] = [5, 7, 9]
            .iter()
            .fold(0_u64, |sum, part| sum.saturating_add(sums[*part]));
    }
    assert_sums(&rows(&reports["mimetype-report.txt"]), 2, &types);
    assert_sums(&rows(&reports["responsecode-report.txt"]), 1, &codes);
    assert_sums(&rows(&reports["hosts-report.txt"]), 2, &hosts);
    let found = rows(&reports["source-report.txt"]).into_iter();
    let found = found.map(|row| {
        (
            format!("{} {}", row[0], row[1]),
            vec![row[2].parse().unwrap()],
        )
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), sources);

    let keys = reports["crawl-report.txt"].lines();
    let keys = keys.filter_map(|line| line.split_once(": "));
    let keys: BTreeMap<&str, &str> = keys.collect();
    let count = |is: fn(i64) -> bool| lines.iter().filter(|line| is(line.status())).count();
    let is_disregarded = |status| matches!(status, -9998 | -5003 | -5000);
    let is_failure = |status| status < 0 && !matches!(status, -9998 | -5003 | -5000 | -50);
    for (key, expected) in [
        ("URIs processed", lines.len()),
        ("URI successes", count(|status| status > 0)),
        ("URI failures", count(is_failure)),
        ("URI disregards", count(is_disregarded)),
    ] {
        assert_eq!(keys[key].parse(), Ok(expected), "{key}");
    }
    let named = keys.get("unreadable log lines").copied().unwrap_or("0");
    assert_eq!(named.parse(), Ok(unreadable));

    let last = |seed: &str| {
        let line = lines.iter().rev().find(|line| line.0[3] == seed);
        line.map_or(0, LogFields::status)
    };
    for row in rows(&reports["seeds-report.txt"]) {
        let status = last(&row[2]);
        let state = if status > 0 { "CRAWLED" } else { "NOTCRAWLED" };
        assert_eq!((row[0].parse(), row[1].as_str()), (Ok(status), state));
    }
    assert_harvest(&harvest, &lines);
}

/// Compares the harvest report with the rules of NetarchiveSuite, applied to bare fields.
fn assert_harvest(harvest: &HarvestReport, lines: &[LogFields]) {
    let mut expected: BTreeMap<String, (u64, u64, StopReason)> = BTreeMap::new();
    for line in lines {
        let domain = [&line.0[10], &line.0[3]].map(|uri| host(uri));
        let Some(domain) = domain.iter().find(|domain| *domain != "-") else {
            continue;
        };
        // Domains are named in Unicode.
        let domain = domain.replace("xn--blbr-roah.dk", "blåbær.dk");
        let row = expected.entry(domain);
        let row = row.or_insert((0, 0, StopReason::DownloadComplete));
        if line.status() >= 0 {
            row.0 += 1;
            row.1 = row.1.saturating_add(line.content_size().unwrap_or(0));
        }
        if line.status() == -5003 && row.2 == StopReason::DownloadComplete {
            if line.0[11].contains("Q:groupMaxAllKb") {
                row.2 = StopReason::SizeLimit;
            } else if line.0[11].contains("Q:groupMaxFetchSuccesses") {
                row.2 = StopReason::ObjectLimit;
            }
        }
    }
    let found = harvest.domains();
    let found = found.map(|(domain, report)| {
        let row = (report.objects, report.bytes, report.stop_reason);
        (domain.to_owned(), row)
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
}

/// Fails if a number of a report is not that of the log, whatever stands in the log.
#[test]
fn numbers_of_reports_are_those_of_log() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let count = random.below(120);
        let mut log = Vec::new();
        for _ in 0..count {
            log.extend(line(&mut random));
        }
        if seed % 2 == 0 && !log.is_empty() {
            let length = u64::try_from(log.len()).unwrap();
            log.truncate(usize::try_from(random.below(length)).unwrap());
        }
        assert_reports(&log);
    }
}
