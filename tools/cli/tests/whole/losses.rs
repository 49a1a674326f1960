//! The records in damaged bytes, by name: of what can be repaired, of what is lost, and of what was salvaged.

use archive_formats::warc::{Builder, WarcType, WarcWriter};
use serde_json::Value;

use crate::archive::Archive;
use crate::steps::BY_HAND;

const GROUP: u64 = 16_384;

/// Returns a file of records in gzip members, and where each begins and ends.
fn made(archive: &Archive, name: &str, lengths: &[usize]) -> Vec<(u64, u64)> {
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    let mut records = Vec::new();
    for (number, length) in lengths.iter().enumerate() {
        let block = crate::archive::content(&number.to_string(), *length);
        let id = format!("urn:uuid:00000000-0000-4000-8000-{number:012}");
        let record = Builder::new(WarcType::Resource, &id, "2026-11-21T19:14:09Z")
            .target_uri(&url(number))
            .content_type("image/x");
        let length = u64::try_from(*length).expect("small");
        let start = writer.position();
        let head = record.render_head(length).expect("a header");
        writer
            .write_record(&head, length, &mut block.as_slice())
            .expect("a record");
        records.push((start, writer.position()));
    }
    let path = archive.path(name);
    std::fs::write(&path, writer.into_inner()).expect("write");
    archive
        .run(&["store", path.to_str().expect("text")])
        .expect(0);
    records
}

fn url(number: usize) -> String {
    format!("http://example.org/{number}")
}

/// Returns the places and addresses of records in a document.
fn named(value: &Value) -> Vec<(u64, String)> {
    let records = value["records"].as_array().expect("records");
    let each = records.iter().map(|record| {
        let url = record["url"].as_str().expect("a URL").to_owned();
        (record["offset"].as_u64().expect("an offset"), url)
    });
    each.collect()
}

/// Fails if damage is reported in other records than those that lie in the damaged group, or differently by
/// `anomalies`, `repair` and `get`.
#[test]
fn damage_is_reported_in_records() {
    let archive = Archive::start(&BY_HAND);
    let lengths = [100, 10_000, 3_000, 5_000, 30_000, 60_000, 200];
    let lost = made(&archive, "lost.warc.gz", &lengths);
    let corrupt = made(&archive, "corrupt.warc.gz", &lengths);
    archive.store("none.bin", 50_000);
    for replica in ["one", "two"] {
        archive.flip(replica, "lost.warc.gz", GROUP + 5);
        archive.flip(replica, "none.bin", GROUP + 5);
    }
    archive.flip("one", "corrupt.warc.gz", GROUP + 5);
    archive.run(&["check", "checksums"]).expect(1);
    let hit = |records: &[(u64, u64)]| -> Vec<(u64, String)> {
        let all = records.iter().enumerate();
        let hit = all.filter(|(_, (start, end))| *start < 2 * GROUP && GROUP < *end);
        hit.map(|(number, (start, _))| (*start, url(number)))
            .collect()
    };

    // In one copy only: all of them, each with its length.
    let filed = |file: &str| archive.json(&["anomalies", "--records", "--file", file], 1);
    let said = filed("corrupt.warc.gz");
    let anomaly = &said["anomalies"][0];
    assert_eq!(named(anomaly), hit(&corrupt), "{said}");
    assert!(anomaly.get("unknown").is_none(), "{said}");
    let (start, end) = corrupt[3];
    let whole = start > GROUP && end < 2 * GROUP;
    let record = anomaly["records"]
        .as_array()
        .expect("records")
        .iter()
        .find(|record| record["offset"] == start)
        .expect("a record");
    assert_eq!(
        record,
        &serde_json::json!({
            "offset": start, "length": end - start, "type": "resource", "url": url(3),
            "date": "2026-11-21T19:14:09Z", "id": "urn:uuid:00000000-0000-4000-8000-000000000003", "whole": whole
        })
    );

    // In both: the one that goes into the hole, and the bytes of those that begin in it.
    let only = &hit(&lost)[..1];
    let first = &only[0];
    let (next, _) = lost
        .iter()
        .find(|(start, _)| *start >= 2 * GROUP)
        .expect("one behind");
    let unknown = serde_json::json!([{"start": GROUP, "end": next}]);
    let said = filed("lost.warc.gz");
    let anomalies = said["anomalies"].as_array().expect("anomalies");
    assert!(anomalies.len() >= 2, "{said}");
    for anomaly in anomalies {
        assert_eq!(named(anomaly), only, "{said}");
        assert_eq!(anomaly["unknown"], unknown, "{said}");
    }

    let text = archive.run(&["anomalies", "--records"]).expect(1).out;
    println!("{text}");
    let range = format!("unknown bytes {GROUP}-{}:", next - 1);
    for part in [
        range.as_str(),
        "not an archive file: bytes 16384-32767",
        "partly  offset ",
        "  resource  2026-11-21T19:14:09Z  http://example.org/3  urn:uuid:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let planned = archive.run(&["repair", "--all", "--dry-run", "--records"]);
    println!("{}", planned.out);
    assert!(planned.out.contains("http://example.org/3"), "{planned:?}");
    let done = archive.json(&["repair", "--all", "--records"], 1);
    let repairs = done["repairs"].as_array().expect("repairs");
    let of = |outcome: &str| {
        let is_so = |step: &&Value| step["outcome"] == outcome && step["file"] != "none.bin";
        repairs.iter().find(is_so).expect("a repair")
    };
    assert_eq!(named(of("repaired")), hit(&corrupt), "{done}");
    assert_eq!(named(of("lost")), only, "{done}");
    assert_eq!(of("lost")["unknown"], unknown, "{done}");

    // The salvage of the lost file names the same losses, and so does its map.
    let out = archive.path("rest.warc.gz");
    let out = out.to_str().expect("text");
    let said = archive
        .run(&["get", "lost.warc.gz", "--salvage", "-o", out])
        .expect(1)
        .out;
    println!("{said}");
    assert!(said.contains(&range) && said.contains(&first.1), "{said}");
    let map = std::fs::read_to_string(format!("{out}.holes.jsonl")).expect("a map");
    println!("{map}");
    let lines: Vec<Value> = map
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 3, "{map}");
    assert_eq!(lines[0]["start"], GROUP);
    assert_eq!(lines[1]["record"]["url"], first.1);
    assert_eq!(lines[2]["unknown-records"], unknown[0]);
    archive
        .run(&["--as", "custodian/custodian-1", "anomalies", "--records"])
        .expect(1);
}
