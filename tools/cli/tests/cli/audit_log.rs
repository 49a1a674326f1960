//! `verify audit`: an audit log that is whole, changed, cut, out of order or written anew.

use std::path::{Path, PathBuf};

use archive_ledger::admin::AuditLine;
use archive_ledger::audit_log::Chain;
use jiff::Timestamp;

use crate::holdfast::{Ran, executable, run};

fn verify(words: &[&str], files: &[&Path]) -> Ran {
    run(executable()
        .args(["verify", "audit"])
        .args(words)
        .args(files))
}

/// Returns two files of ten lines, and the hash after each line.
fn log(said: &str) -> ([String; 2], Vec<String>) {
    let mut files = [String::new(), String::new()];
    let mut hashes = Vec::new();
    let mut chain = Chain::start_chain();
    for number in 0..10_u64 {
        let line = AuditLine {
            at: Timestamp::UNIX_EPOCH,
            who: "officer/o".to_owned(),
            file: None,
            what: format!("{said} {number}"),
        };
        let text = String::from_utf8(chain.chain_line(number, &line).expect("the next line"))
            .expect("text");
        files[usize::from(number >= 6)].push_str(&text);
        hashes.push(chain.previous().to_string());
    }
    (files, hashes)
}

#[expect(clippy::disallowed_methods, reason = "tests damage files")]
fn put(at: &Path, files: &[String]) -> Vec<PathBuf> {
    _ = std::fs::remove_dir_all(at);
    std::fs::create_dir(at).expect("mkdir");
    let named = files.iter().enumerate().map(|(number, text)| {
        let path = at.join(format!("audit-{number:06}.jsonl"));
        std::fs::write(&path, text).expect("write");
        path
    });
    named.collect()
}

/// Fails if a good log is refused because its last line is being written, or if a hash that was kept elsewhere is not
/// found in it.
#[test]
fn intact_log_passes_and_contains_given_hashes() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let (files, hashes) = log("did");
    let paths = put(&at, &files);
    let ran = verify(&[], &[&at]).expect(0);
    assert!(
        ran.out.contains("good") && ran.out.contains("10 lines, number 0 to 9"),
        "{ran:?}"
    );
    assert!(
        ran.out.contains(&hashes[9]) && ran.err.contains("compared with nothing"),
        "{ran:?}"
    );
    let said = verify(&["--json", "--head", &hashes[4]], &[&at])
        .expect(0)
        .json();
    assert_eq!(said["valid"], true);
    assert_eq!(
        (said["lines"].as_u64(), said["last"].as_u64()),
        (Some(10), Some(9))
    );
    assert_eq!(said["sought"], 4);
    let both = verify(&[], &[&paths[0], &paths[1]]).expect(0);
    assert!(both.out.contains("2 files: good"), "{both:?}");
    let rest = verify(&[], &[&paths[1]]).expect(0);
    assert!(
        rest.err.contains("before number 6 were not checked"),
        "{rest:?}"
    );
    // What is being written just now.
    let torn = [files[0].clone(), files[1].clone() + "{\"number\":10,"];
    put(&at, &torn);
    let ran = verify(&[], &[&at]).expect(0);
    assert!(ran.err.contains("13 bytes after the last line"), "{ran:?}");
}

/// Fails if a line that was edited, removed or moved passes, or a log that was written anew passes against a hash that
/// was kept elsewhere.
#[test]
fn changed_log_is_reported_with_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let (files, hashes) = log("did");
    let broken = |files: &[String], place: &str| {
        put(&at, files);
        let ran = verify(&[], &[&at]).expect(1);
        assert!(ran.err.contains(place), "{place}: {ran:?}");
        assert!(
            ran.err.contains("restore the log from a copy") && ran.out.is_empty(),
            "{ran:?}"
        );
        let said = verify(&["--json"], &[&at]).expect(1).json();
        assert_eq!(said["valid"], false);
        (
            said["file"].as_str().unwrap().to_owned(),
            said["line"].as_u64().unwrap(),
        )
    };
    // One word of the third line: the fourth says so.
    let edited = [files[0].replacen("did 2", "hid 2", 1), files[1].clone()];
    let (file, line) = broken(&edited, "audit-000000.jsonl line 4");
    assert!(file.ends_with("audit-000000.jsonl") && line == 4);
    // The last line of a file: the first of the next says so.
    let edited = [files[0].replacen("did 5", "hid 5", 1), files[1].clone()];
    broken(&edited, "audit-000001.jsonl line 1");
    let gone = files[0].split_inclusive('\n');
    let gone = gone.filter(|line| !line.contains("did 3")).collect();
    broken(&[gone, files[1].clone()], "audit-000000.jsonl line 4");
    broken(
        &[files[1].clone(), files[0].clone()],
        "audit-000000.jsonl line 1",
    );
    broken(
        &["\0\u{1}\n".to_owned(), files[1].clone()],
        "audit-000000.jsonl line 1",
    );
    // Without its last line, or written anew as a whole: only a hash that was kept elsewhere shows it.
    for other in [log("made up").0, [files[0].clone(), String::new()]] {
        put(&at, &other);
        verify(&[], &[&at]).expect(0);
        let ran = verify(&["--head", &hashes[9]], &[&at]).expect(1);
        assert!(ran.err.contains("no line of it has the hash"), "{ran:?}");
    }
    // A file of the middle is missing.
    let paths = put(&at, &files);
    std::fs::remove_file(&paths[0]).unwrap();
    let ran = verify(&[], &[&at]).expect(1);
    assert!(
        ran.err
            .contains("audit-000000.jsonl line 1: the file is gone"),
        "{ran:?}"
    );
}

/// Fails if lines that were removed from the end, or a log that was written anew, are good beside the stamp that knows
/// better, or if a stamp is used where it lies beside another log.
#[test]
fn removed_last_lines_are_noticed_by_the_stamp() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let (files, hashes) = log("did");
    put(&at, &files);
    let stamp = directory.path().join("admin.stamp");
    let end = format!(
        r#"{{"sequence":7,"database":"x","audit":{{"lines":9,"head":"{}"}}}}"#,
        hashes[8]
    );
    archive_durable::StampWriter::begin(&stamp, end.as_bytes()).unwrap();
    let ran = verify(&[], &[&at]).expect(0);
    assert!(
        ran.out.contains("all 9 lines that") && ran.err.is_empty(),
        "{ran:?}"
    );
    let said = verify(&["--json"], &[&at]).expect(0).json();
    assert_eq!(said["known"]["lines"], 9);

    let kept = |count: usize| {
        let lines = files[1].split_inclusive('\n');
        [files[0].clone(), lines.take(count).collect()]
    };
    put(&at, &kept(3));
    verify(&[], &[&at]).expect(0);
    for count in 0..3 {
        put(&at, &kept(count));
        let ran = verify(&[], &[&at]).expect(1);
        let gone = format!("the last {} lines are missing", 3 - count);
        assert!(ran.err.contains(&gone) && ran.out.is_empty(), "{ran:?}");
        let elsewhere = directory.path().join(format!("copy-{count}/audit"));
        std::fs::create_dir(elsewhere.parent().unwrap()).unwrap();
        put(&elsewhere, &kept(count));
        let ran = verify(&[], &[&elsewhere]).expect(0);
        assert!(ran.err.contains("compared with nothing"), "{ran:?}");
        verify(&["--stamp", stamp.to_str().unwrap()], &[&elsewhere]).expect(1);
    }
    put(&at, &log("made up").0);
    let ran = verify(&[], &[&at]).expect(1);
    assert!(ran.err.contains("the log was written anew"), "{ran:?}");
    let absent = directory.path().join("nothing");
    verify(&["--stamp", absent.to_str().unwrap()], &[&at]).expect(1);
}

/// Fails if a folder without a log passes for an intact log.
#[test]
fn file_that_is_no_log_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    put(&at, &[]);
    let ran = verify(&[], &[&at]).expect(1);
    assert!(ran.err.contains("no line of an audit log"), "{ran:?}");
    let absent = directory.path().join("nothing");
    let ran = verify(&[], &[&absent]).expect(2);
    assert!(ran.err.contains("there is no such file"), "{ran:?}");
    verify(&["--head", "abc"], &[&at]).usage();
    verify(&[], &[]).usage();
}
