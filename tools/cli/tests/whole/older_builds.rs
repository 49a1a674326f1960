//! Data directories that earlier builds wrote open as they are, and their contents are listed in the same words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testing::PortBlock;

use crate::archive::Archive;

/// The path of the data directory on the machine of the older build.
const OLD_PLACE: &str = "/srv/archive";

/// The answers of that build, with the words that ask for them.
const ANSWERS: [(&str, &[&str]); 8] = [
    ("list", &["list"]),
    ("stat-a.bin", &["stat", "a.bin"]),
    ("stat-b.bin", &["stat", "b.bin"]),
    ("stat-c.bin", &["stat", "c.bin"]),
    ("attic", &["attic", "list"]),
    ("anomalies", &["anomalies", "--all"]),
    ("audit", &["audit"]),
    ("captures", &["captures", "http://example.org/"]),
];

/// Without these settings, acts that became due since the directory was written are done at the start: a check, an
/// export (a file more in each answer), and the removal of replaced groups from an attic.
const NOTHING_IS_DUE: [&str; 3] = [
    "repository.export=0 s",
    "checks.files=0 s",
    "attic.evidence=36500 d",
];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/archive-before-one-house.tar.gz")
}

/// Unpacks the data directory into `into`, and makes its settings those of this place.
fn unpack(into: &Path, block: &PortBlock) {
    let status = Command::new("tar")
        .args(["--no-same-owner", "-xzf"])
        .arg(golden())
        .arg("-C")
        .arg(into)
        .status();
    assert!(status.expect("tar").success());
    let data = into.join("data");
    let settings = std::fs::read_dir(data.join("settings")).expect("list");
    let mut files: Vec<PathBuf> = settings.map(|entry| entry.expect("entry").path()).collect();
    files.push(data.join("client.toml"));
    files.extend(["one", "two"].map(|node| data.join(node).join("node/volumes.json")));
    let mut ports = BTreeMap::new();
    let mut free = block.first()..;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("read");
        let text = text.replace(OLD_PLACE, data.to_str().expect("text"));
        std::fs::write(
            &file,
            with_ports(&text, |old| {
                *ports
                    .entry(old)
                    .or_insert_with(|| free.next().expect("a port"))
            }),
        )
        .expect("write");
    }
}

/// Returns the text with a new port in the place of each old one.
fn with_ports(text: &str, mut new_port: impl FnMut(u16) -> u16) -> String {
    let mut out = String::new();
    let mut pieces = text.split_inclusive(':').peekable();
    while let Some(piece) = pieces.next() {
        out.push_str(piece);
        let Some(next) = pieces.peek_mut() else { break };
        let digits = next
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(next.len());
        let is_address = piece.ends_with("127.0.0.1:") || piece.ends_with("localhost:");
        let Some(old) = next[..digits].parse().ok().filter(|_| is_address) else {
            continue;
        };
        out.push_str(&new_port(old).to_string());
        *next = &next[digits..];
    }
    out
}

/// Takes away the lines that the trail got since: a week after the directory was written, its open request expires.
fn cut_later_lines(now: &mut Value, said: &Value) {
    let then = said["lines"].as_array().expect("lines").len();
    now["lines"].as_array_mut().expect("lines").truncate(then);
    now["count"] = said["count"].clone();
}

/// Fails if a table, a sidecar, a manifest, a client file or a settings file of an earlier build is refused or misread,
/// or a field of a document that scripts read has another name or value.
#[test]
fn archive_of_earlier_build_is_unchanged() {
    let mut archive = Archive::in_directory(&NOTHING_IS_DUE, unpack);
    archive.up(&[]);
    for (answer, words) in ANSWERS {
        let path = archive.path("said").join(format!("{answer}.json"));
        let said: Value =
            serde_json::from_slice(&std::fs::read(path).expect("read")).expect(answer);
        let mut now = archive.json(words, 0);
        if answer == "audit" {
            cut_later_lines(&mut now, &said);
        }
        assert_eq!(now, said, "{answer}");
    }
    // The second one was open, and has ended after a week.
    let requests = archive.json(&["requests", "--all"], 0);
    let acts: Vec<_> = requests["requests"]
        .as_array()
        .expect("requests")
        .iter()
        .collect();
    assert_eq!(acts.len(), 2, "{requests:#}");
    assert_eq!(acts[0]["state"], "done", "{requests:#}");

    for name in ["b.bin", "c.bin", "d.bin", "pages.warc.gz"] {
        let out = archive.path(name);
        archive
            .run(&["get", name, "--output", out.to_str().expect("text")])
            .expect(0);
    }
    let receipt = archive.path("said/receipt-d.bin.json");
    archive
        .run(&["verify", "receipt", receipt.to_str().expect("text")])
        .expect(0);
    let audit = archive.data().join("repository/audit");
    archive
        .run(&["verify", "audit", audit.to_str().expect("text")])
        .expect(0);
    archive.run(&["check", "checksums"]).expect(0);
    let volumes = archive.json(&["volume", "list"], 0);
    let volumes = volumes["volumes"].as_array().expect("volumes");
    let modes = volumes.iter().map(|volume| &volume["status"]["mode"]);
    let modes: Vec<_> = modes.collect();
    assert_eq!(modes, ["read-only", "read-write", "read-write"]);

    // The archive continues from there, once the volume takes files again.
    let read_only = volumes[0]["volume"].as_str().expect("an id");
    archive.run(&["volume", "read-write", read_only]).expect(0);
    archive.store("new.bin", 1000);
    archive.down();
    archive.up(&[]);
    archive.run(&["check", "checksums"]).expect(0);
    archive.stop();
}
