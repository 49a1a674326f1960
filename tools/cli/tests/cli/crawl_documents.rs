//! `crawl`: the documents of a job, read as the field describes them: Heritrix' logs and reports, NetarchiveSuite's
//! metadata file.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::crawls::{Site, only_entry};
use crate::holdfast::{Place, executable, run};

/// The columns of `progress-statistics.log`, and where each ends.
const COLUMNS: [(&str, usize); 12] = [
    ("discovered", 32),
    ("queued", 44),
    ("downloaded", 57),
    ("doc/s(avg)", 74),
    ("KB/s(avg)", 85),
    ("dl-failures", 99),
    ("busy-thread", 113),
    ("mem-use-KB", 126),
    ("heap-size-KB", 140),
    ("congestion", 153),
    ("max-depth", 165),
    ("avg-depth", 177),
];

fn digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the lines of the crawl log as their 12 fields, each of which is what it has to be.
fn crawl_log(job: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(job.join("logs/crawl.log")).unwrap();
    let lines = text.lines().map(|line| {
        let fields: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
        assert_eq!(fields.len(), 12, "{line}");
        let time = &fields[0];
        assert_eq!(time.len(), 24, "{line}");
        assert!(time.ends_with('Z') && &time[10..11] == "T" && &time[19..20] == ".");
        // Status and size are aligned at their right ends.
        assert_eq!(
            (&line[25..30], &line[31..41]),
            (
                format!("{:>5}", fields[1]).as_str(),
                format!("{:>10}", fields[2]).as_str(),
            )
        );
        assert!(fields[7].starts_with('#') && fields[7].len() >= 4, "{line}");
        let status: i32 = fields[1].parse().unwrap();
        if status > 0 {
            let (begun, took) = fields[8].split_once('+').unwrap();
            assert!(digits(begun, 17) && took.parse::<u64>().is_ok(), "{line}");
            let digest = fields[9].strip_prefix("sha1:").unwrap();
            let is_base32 = |c: char| c.is_ascii_uppercase() || ('2'..='7').contains(&c);
            assert!(
                digest.len() == 32 && digest.chars().all(is_base32),
                "{line}"
            );
            let size = fields[11]
                .split(',')
                .find_map(|text| text.strip_prefix("content-size:"));
            assert!(
                size.unwrap().parse::<u64>().unwrap() >= fields[2].parse().unwrap(),
                "{line}"
            );
        }
        fields
    });
    lines.collect()
}

fn report(job: &Path, name: &str, header: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(job.join("reports").join(name)).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(header));
    let rows = lines.map(|line| line.split(' ').map(str::to_owned).collect());
    rows.collect()
}

/// Returns the sum of the first column of a report whose rows are sorted by it.
fn sum(rows: &[Vec<String>]) -> usize {
    let numbers: Vec<usize> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] >= pair[1]),
        "{rows:?}"
    );
    numbers.iter().sum()
}

/// Returns the records of an archive file, as the executable lists them.
fn records(path: &Path) -> Vec<Value> {
    let listed = run(executable().args(["warc", "list", "--json"]).arg(path)).expect(0);
    let lines = listed.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the lines of the record of a metadata file whose URI has a part.
pub fn document(metadata: &Path, part: &str) -> String {
    let documented = records(metadata);
    let offset = documented.iter().find_map(|record| {
        let url = record["url"].as_str()?;
        url.contains(part).then(|| record["offset"].to_string())
    });
    let mut command = executable();
    command.args(["warc", "cat"]).arg(metadata);
    let record = run(command.args(["--offset", &offset.unwrap()]))
        .expect(0)
        .out;
    let (_, content) = record.split_once("\r\n\r\n").unwrap();
    content.trim_end_matches("\r\n").to_owned()
}

/// Fails if a log, a report or the metadata file cannot be read by the rules of the field, or they contradict each
/// other.
#[test]
fn crawl_documents_are_as_the_field_expects() {
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let mut command = executable();
    command.args([
        "crawl",
        &site.base,
        "--delay",
        "0",
        "--no-store",
        "--job",
        "12",
    ]);
    command.args(["--harvest", "34", "--organization", "example.dk", "--keep"]);
    run(command.arg(directory.path())).expect(0);
    let job = only_entry(directory.path());
    let log = crawl_log(&job);
    let fetched: Vec<&Vec<String>> = log
        .iter()
        .filter(|fields| !fields[1].starts_with('-'))
        .collect();

    let types = report(&job, "mimetype-report.txt", "[#urls] [#bytes] [mime-types]");
    assert_eq!(sum(&types), fetched.len());
    let codes = report(&job, "responsecode-report.txt", "[#urls] [rescode]");
    assert_eq!(sum(&codes), fetched.len());
    let hosts = report(
        &job,
        "hosts-report.txt",
        "[#urls] [#bytes] [host] [#robots] [#remaining] [#novel-urls] [#novel-bytes] [#dup-by-hash-urls] [#dup-by-hash-bytes] \
         [#not-modified-urls] [#not-modified-bytes]",
    );
    assert_eq!(sum(&hosts), fetched.len());
    assert!(hosts.iter().all(|row| row.len() == 11), "{hosts:?}");
    let seeds = report(
        &job,
        "seeds-report.txt",
        "[code] [status] [seed] [redirect]",
    );
    assert_eq!(
        seeds,
        [["200", "CRAWLED", site.base.as_str()].map(str::to_owned)]
    );
    let text = std::fs::read_to_string(job.join("reports/crawl-report.txt")).unwrap();
    let keys = text.lines().filter_map(|line| line.split_once(": "));
    let keys: BTreeMap<&str, &str> = keys.collect();
    assert_eq!(
        (keys["crawl status"], keys["seeds crawled"]),
        ("Finished", "1")
    );
    assert_eq!(keys["URIs processed"].parse::<usize>().unwrap(), log.len());

    let text = std::fs::read_to_string(job.join("logs/progress-statistics.log")).unwrap();
    let legend = text.lines().next().unwrap();
    for (name, end) in COLUMNS {
        assert_eq!(&legend[end - name.len()..end], name);
    }
    assert!(
        text.trim_end().ends_with(" CRAWL ENDED - Finished"),
        "{text}"
    );

    let archive_file = only_entry(&job.join("warcs"));
    let name = archive_file.file_name().unwrap().to_str().unwrap();
    let parts: Vec<&str> = name.split('-').collect();
    assert_eq!(
        (parts[0], parts[1], parts[3]),
        ("12", "34", "00001"),
        "{name}"
    );
    assert!(digits(parts[2], 17) && name.ends_with(".warc.gz"), "{name}");
    let metadata = job.join("metadata/12-metadata-1.warc.gz");
    let documented = records(&metadata);
    assert_eq!(documented[0]["type"], "warcinfo");
    let urls = documented[1..].iter().map(|record| {
        assert_eq!(record["type"], "resource");
        record["url"].as_str().unwrap()
    });
    let urls: Vec<&str> = urls.collect();
    let section = |url: &str| {
        let sections = ["/setup/", "/reports/", "/logs/", "/index/"];
        let path = url.strip_prefix("metadata://example.dk/crawl").unwrap();
        sections
            .iter()
            .position(|section| path.starts_with(section))
            .unwrap()
    };
    assert!(
        urls.windows(2)
            .all(|pair| section(pair[0]) <= section(pair[1])),
        "{urls:?}"
    );
    assert_eq!(
        urls[0],
        "metadata://example.dk/crawl/setup/duplicatereductionjobs?majorversion=1&minorversion=0&harvestid=34&harvestnum=0&jobid=12"
    );
    assert!(
        urls[1..]
            .iter()
            .all(|url| url.contains("harvestid=34&jobid=12")),
        "{urls:?}"
    );

    // The CDX says of each response where it lies.
    let cdx = document(&metadata, "/crawl/index/cdx?");
    let responses = records(&archive_file)
        .into_iter()
        .filter(|record| record["type"] == "response");
    let responses = responses.map(|record| {
        let url = record["url"].as_str().unwrap().to_owned();
        (url, record["offset"].to_string())
    });
    let responses: BTreeSet<(String, String)> = responses.collect();
    let lines: Vec<Vec<&str>> = cdx.lines().map(|line| line.split(' ').collect()).collect();
    let mut listed = BTreeSet::new();
    for fields in &lines {
        assert_eq!(fields.len(), 8, "{fields:?}");
        assert!(digits(fields[2], 14) && fields[7].len() == 32, "{fields:?}");
        assert_eq!(fields[5], name);
        listed.insert((fields[0].to_owned(), fields[6].to_owned()));
    }
    assert_eq!(listed, responses);
}

/// Fails if a receipt that a crawl has kept is not good by itself, or one that was changed passes for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_receipts_are_verified_offline() {
    let place = Place::new().await;
    let site = Site::serve();
    let words = ["crawl", &site.base, "--delay", "0", "--max-objects", "5"];
    place.holdfast(&words).expect(0);
    let receipts = only_entry(&place.path("holdfast-crawls")).join("receipts");
    let entries = std::fs::read_dir(&receipts).unwrap();
    let paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(paths.len(), 2);
    for path in paths {
        let path = path.to_str().unwrap();
        let good = place.holdfast(&["verify", "receipt", path, "--json"]);
        let said = good.expect(0).json();
        assert_eq!(said["receipts"][0]["valid"], true);
        let name = said["receipts"][0]["name"].as_str().unwrap();
        assert!(path.ends_with(&format!("{name}.receipt.json")), "{path}");
        let mut envelope: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let payload = envelope["payload"].as_str().unwrap().to_owned();
        let (first, rest) = payload.split_at(payload.len() / 2);
        let other = if rest.starts_with('A') { "B" } else { "A" };
        envelope["payload"] = format!("{first}{other}{}", &rest[1..]).into();
        archive_durable::replace_file(Path::new(path), envelope.to_string().as_bytes()).unwrap();
        let bad = place.holdfast(&["verify", "receipt", path]);
        assert_ne!(bad.code, 0, "{bad:?}");
    }
}

/// Returns a member of each line of an index of captures that is of a revisit, or of a response.
fn members(captures: &str, is_revisit: bool, name: &str) -> BTreeSet<String> {
    let lines = captures.lines().filter_map(|line| {
        let (_, json) = line.split_once(" {").unwrap();
        let json: Value = serde_json::from_str(&format!("{{{json}")).unwrap();
        let is_one = (json["mime"] == "warc/revisit") == is_revisit;
        is_one.then(|| json[name].as_str().unwrap().to_owned())
    });
    lines.collect()
}

/// Fails if a third crawl refers to a revisit of the second, or a job does not document which jobs it was deduplicated
/// against.
#[test]
fn third_crawl_refers_to_first() {
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let crawl = |job: &str, index: Option<&Path>| {
        let mut command = executable();
        command.args(["crawl", &site.base, "--delay", "0", "--no-store", "--job"]);
        command.arg(job).arg("--keep").arg(path(job));
        if let Some(index) = index {
            command.args(["--dedup-all", "--dedup"]).arg(index);
        }
        run(&mut command).expect(0);
        only_entry(&path(job)).join(format!("metadata/{job}-metadata-1.warc.gz"))
    };
    let index = |name: &str, metadata: &[&Path]| {
        let mut command = executable();
        command.args(["index", "dedup", "--json", "-o"]);
        let built = run(command.arg(path(name)).args(metadata)).expect(0).json();
        (path(name), built)
    };
    let first = crawl("1", None);
    let (of_first, built) = index("1.dedup", &[&first]);
    let captures = built["captures"].as_u64().unwrap();
    let second = crawl("2", Some(&of_first));
    // The second crawl adds a robots.txt that is not there, and revisits that all lead to the first.
    let (of_both, built) = index("2.dedup", &[&second, &first]);
    assert_eq!(built["captures"], captures + 1);
    assert_eq!(built["duplicates"], 61);
    let third = crawl("3", Some(&of_both));
    for (metadata, jobs) in [(&first, ""), (&second, "1"), (&third, "1,2")] {
        assert_eq!(document(metadata, "/setup/duplicatereductionjobs?"), jobs);
    }
    let captures = |metadata: &Path| document(metadata, "/crawl/index/captures?");
    let originals = members(&captures(&first), false, "recordId");
    for metadata in [&second, &third] {
        let refers_to = members(&captures(metadata), true, "refersTo");
        assert_eq!(refers_to.len(), 61);
        assert!(refers_to.is_subset(&originals));
    }
}
