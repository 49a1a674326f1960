//! Tests of the record and of the line that a removed row leaves.

use archive_model::{FileName, Root};
use jiff::Timestamp;

use super::put_aside::{append, is_torn};
use super::record::{Record, RecordError, Recorded};
use super::{Removed, record, removed_lines};

fn record(data: &std::path::Path) -> Record {
    let (node, replica) = ("n-1".parse().unwrap(), "n".parse().unwrap());
    Record::init(data, &node, &replica).unwrap();
    Record::open(data, &node, &replica).unwrap()
}

fn recorded(byte: u8) -> Recorded {
    Recorded {
        size: 7,
        root: Root::from_bytes([byte; 32]),
        stored: Timestamp::UNIX_EPOCH,
    }
}

#[test]
fn one_name_has_one_content_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let record = record(directory.path());
    let name = FileName::new("a").unwrap();
    assert_eq!(record.add(&name, recorded(1), "one").unwrap(), recorded(1));
    let kept = record.add(&name, recorded(2), "two").unwrap();
    assert_eq!(kept, recorded(1), "what is there stays");
    assert_eq!(record.admission(&name).unwrap().unwrap(), "one");
}

#[test]
fn made_again_it_stays_what_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let name = FileName::new("a").unwrap();
    let first = record(directory.path());
    first.add(&name, recorded(1), "one").unwrap();
    drop(first);
    let again = record(directory.path());
    assert_eq!(again.file(&name).unwrap(), Some(recorded(1)));
}

#[test]
fn a_table_that_ends_before_the_label_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (data, older) = (directory.path().join("data"), directory.path().join("old"));
    let name = FileName::new("a").unwrap();
    drop(record(&data));
    std::fs::rename(data.join("table"), &older).unwrap();
    let copy = std::process::Command::new("cp")
        .arg("-r")
        .args([&older, &data.join("table")])
        .status();
    assert!(copy.unwrap().success());
    let now = record(&data);
    now.add(&name, recorded(1), "one").unwrap();
    now.stamp().unwrap();
    drop(now);
    std::fs::remove_dir_all(data.join("table")).unwrap();
    std::fs::rename(&older, data.join("table")).unwrap();
    let error = Record::open(&data, &"n-1".parse().unwrap(), &"n".parse().unwrap());
    let error = error.unwrap_err();
    assert!(matches!(error, RecordError::Damaged { .. }), "{error}");
}

#[test]
fn a_label_that_is_none_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(record(directory.path()));
    let label = directory.path().join("holdfast-checksum-replica.json");
    let text = std::fs::read_to_string(&label).unwrap();
    for wrong in [
        "",
        "{}",
        &text[..20],
        &text.replace("replica/1", "replica/2"),
    ] {
        std::fs::write(&label, wrong).unwrap();
        let error = Record::open(
            directory.path(),
            &"n-1".parse().unwrap(),
            &"n".parse().unwrap(),
        );
        let error = error.unwrap_err();
        assert!(
            matches!(error, RecordError::Label { .. }),
            "{wrong}: {error}"
        );
    }
}

#[test]
fn a_torn_line_stays_apart_from_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = record::removed(directory.path());
    assert!(!is_torn(&path).unwrap());
    let line = Removed {
        at: Timestamp::UNIX_EPOCH,
        name: FileName::new("a").unwrap(),
        size: 7,
        root: Root::from_bytes([1; 32]),
        stored: Timestamp::UNIX_EPOCH,
        who: "officer/a".to_owned(),
        why: "why\nnot".to_owned(),
        admission: None,
    };
    append(&path, &line).unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    append(&path, &line).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let last = text.lines().last().unwrap();
    assert_eq!(serde_json::from_str::<Removed>(last).unwrap(), line);
    assert_eq!(text.lines().count(), 2);
    let lines: Vec<_> = removed_lines(directory.path()).unwrap().collect();
    assert!(lines[0].as_ref().unwrap_err().contains("line 1 of"));
    assert_eq!(lines[1..], [Ok(line)]);
}
