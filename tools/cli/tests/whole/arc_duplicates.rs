//! Duplicates of the time of ARC files: nothing of them was stored but a line in a log, and they are found and replayed
//! all the same.

use serde_json::Value;

use crate::archive::{Archive, wait};
use crate::replays::ask;

const PAGE: &str = "http://www.arc.example/page";
const BODY: &str = "<p>as it was in 2008</p>";

/// Returns an ARC file of a first record and others, each by URL, time, type and bytes, and the offsets of the others.
fn arc(name: &str, records: &[(&str, &str, &str, &str)]) -> (Vec<u8>, Vec<usize>) {
    let version = "1 0 X\nURL IP-address Archive-date Content-type Archive-length\n\n";
    let mut bytes = format!(
        "filedesc://{name} 0.0.0.0 20080101000000 text/plain {}\n{version}\n",
        version.len()
    )
    .into_bytes();
    let mut offsets = Vec::new();
    for (url, time, kind, block) in records {
        offsets.push(bytes.len());
        let head = format!("{url} 127.0.0.1 {time} {kind} {}\n", block.len());
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(block.as_bytes());
        bytes.push(b'\n');
    }
    (bytes, offsets)
}

fn store(archive: &Archive, name: &str, bytes: &[u8]) {
    let path = archive.path(name);
    std::fs::write(&path, bytes).expect("write");
    archive
        .run(&["store", path.to_str().expect("text")])
        .expect(0);
}

fn captures(archive: &Archive, url: &str) -> Vec<Value> {
    let ran = archive.run(&["--json", "captures", url]).expect(0);
    let lines = ran.out.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a document"))
        .collect()
}

fn until(archive: &Archive, url: &str, count: usize) -> Vec<Value> {
    wait(&format!("{count} captures of {url}"), || {
        let found = captures(archive, url);
        (found.len() == count).then_some(found.clone()).ok_or(found)
    })
}

/// Fails if a duplicate that only a log names is not found, leads elsewhere than to its original, is replayed at
/// another time than it was captured, stays when its original is withdrawn, or makes the comparing worker complain.
#[test]
fn duplicates_in_logs_are_found_and_replayed() {
    let archive = Archive::processes(&["index.compare=1 s"]);
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{BODY}");
    let (old, offsets) = arc(
        "1-1-20080101000000-00000.arc",
        &[(PAGE, "20080101000000", "text/html", &block)],
    );
    let [offset] = offsets.as_slice() else {
        panic!("{offsets:?}");
    };
    // One with quotes and a time, one as older crawlers wrote it, one whose original is not archived, one that is a
    // revisit record of a WARC file, and one that cannot be read.
    let line = |day: u32, annotation: &str| {
        format!(
            "2009-07-{day:02}T15:20:40.378Z   200       {} {PAGE} - - text/html #002 200907{day:02}152040300+10 sha1:BBBB - {annotation},content-size:99\n",
            block.len()
        )
    };
    let log = [
        line(
            1,
            &format!("duplicate:\"1-1-20080101000000-00000.arc,{offset},20080101000000000\""),
        ),
        line(
            2,
            &format!("deduplicate:1-1-20080101000000-00000.arc,{offset},20080101000000000"),
        ),
        line(3, "duplicate:\"gone.arc.gz,7,20080101000000000\""),
        line(4, "duplicate:\"new.warc.gz,7,20080101000000000\""),
        line(5, "duplicate:\"1-1-20080101000000-00000.arc\""),
    ]
    .concat();
    let logs = "metadata://netarkivet.dk/crawl/logs/crawl.log?jobid=2";
    let (metadata, _) = arc(
        "2-metadata-1.arc",
        &[(logs, "20090706000000", "text/plain", &log)],
    );
    // The log comes first: where its originals lie is known later.
    store(&archive, "2-metadata-1.arc", &metadata);
    until(&archive, logs, 1);
    assert_eq!(captures(&archive, PAGE), Vec::<Value>::new());
    store(&archive, "1-1-20080101000000-00000.arc", &old);
    let found = until(&archive, PAGE, 3);
    let times: Vec<&Value> = found.iter().map(|capture| &capture["timestamp"]).collect();
    assert_eq!(
        times,
        ["20080101000000", "20090701152040", "20090702152040"]
    );
    for capture in &found {
        assert_eq!(
            capture["filename"], "1-1-20080101000000-00000.arc",
            "{capture:#}"
        );
        assert_eq!(capture["offset"], offset.to_string(), "{capture:#}");
        let mut capture = capture.clone();
        // The line of the log distinguishes it, and nothing else in it is of the log.
        capture.as_object_mut().unwrap().remove("source-line");
        assert!(!capture.to_string().contains("metadata"), "{capture:#}");
    }
    for time in times {
        let time = time.as_str().expect("text");
        let answer = ask(&archive, &format!("/all/{time}id_/{PAGE}"), "");
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (200, BODY.as_bytes()),
            "{answer:#?}"
        );
    }
    let rows = ask(&archive, &format!("/all/cdx?url={PAGE}"), "").text();
    assert_eq!(rows.lines().count(), 3, "{rows}");

    // The comparing worker reads logs, too, and finds no difference.
    wait("the file with the log was compared", || {
        let status = archive.run(&["--json", "index", "status"]);
        let is_compared = status.json()["comparison"]["name"] == "2-metadata-1.arc";
        (status.code == 0 && is_compared)
            .then_some(())
            .ok_or(status)
    });
    let status = archive.json(&["index", "status"], 0);
    assert_eq!(status["differed"], 0, "{status:#}");

    for replica in ["one", "two"] {
        let words = [
            "remove",
            "1-1-20080101000000-00000.arc",
            "--replica",
            replica,
        ];
        let checksum = blake3::hash(&old).to_hex();
        let more = [
            "--checksum",
            &checksum,
            "--reason",
            "a court order",
            "--last-copies",
        ];
        let request = archive.asked(&[&words[..], &more].concat());
        archive.until(&["--as", "custodian/custodian-2", "approve", &request], 0);
    }
    until(&archive, PAGE, 0);
    archive.stop();
}
