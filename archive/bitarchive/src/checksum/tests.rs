//! Tests of the table and of the line that a removed row leaves.

use archive_db::{Database, DatabaseOptions, Table, Text};
use archive_durable::{AppendFile, StampWriter};
use archive_model::{Cause, FileName, Root};
use archive_proof::TrustFile;
use jiff::Timestamp;

use super::put_aside::{append_removed_row, is_torn};
use super::table::{ChecksumTable, ChecksumTableError, RecordedFile};
use super::{
    ChecksumReplica, ChecksumReplicaOptions, PutAsideError, RemovedRow, removed_lines, table,
};
use crate::error::NodeError;

fn open_table(data: &std::path::Path) -> ChecksumTable {
    let node = "n-1".parse().unwrap();
    let replica = "n".parse().unwrap();
    ChecksumTable::init(data, &node, &replica).unwrap();
    ChecksumTable::open(data, &node, &replica).unwrap()
}

pub(crate) fn replica(data: &std::path::Path) -> ChecksumReplica {
    ChecksumReplica::open(ChecksumReplicaOptions {
        node: "n-1".parse().unwrap(),
        replica: "n".parse().unwrap(),
        data: data.to_owned(),
        reserve: 0,
        removals_per_hour: 2,
        trust: TrustFile::new(Vec::new()).unwrap(),
    })
    .unwrap()
}

fn recorded(byte: u8) -> RecordedFile {
    RecordedFile {
        size: 7,
        root: Root::from_bytes([byte; 32]),
        stored: Timestamp::UNIX_EPOCH,
    }
}

/// Fails if a second content under a name replaces the checksum or the admission that is recorded.
#[test]
fn one_name_has_one_content_for_ever() {
    let directory = crate::testing::directory();
    let record = open_table(directory.path());
    let name = FileName::new("a").unwrap();
    assert_eq!(
        record.add_file(&name, recorded(1), "one").unwrap(),
        recorded(1)
    );
    let kept = record.add_file(&name, recorded(2), "two").unwrap();
    assert_eq!(kept, recorded(1), "what is there stays");
    assert_eq!(record.admission(&name).unwrap().unwrap(), "one");
}

/// Fails if a table that is initialised a second time loses its rows.
#[test]
fn second_initialisation_keeps_the_rows() {
    let directory = crate::testing::directory();
    let name = FileName::new("a").unwrap();
    let first = open_table(directory.path());
    first.add_file(&name, recorded(1), "one").unwrap();
    drop(first);
    let again = open_table(directory.path());
    assert_eq!(again.file(&name).unwrap(), Some(recorded(1)));
}

/// Fails if a table that lost rows since its label was written is served.
#[test]
fn table_that_ends_before_its_label_is_refused() {
    let directory = crate::testing::directory();
    let data = directory.path().join("data");
    let older = directory.path().join("old");
    let name = FileName::new("a").unwrap();
    drop(open_table(&data));
    std::fs::rename(data.join("table"), &older).unwrap();
    let copy = std::process::Command::new("cp")
        .arg("-r")
        .args([&older, &data.join("table")])
        .status();
    assert!(copy.unwrap().success());
    let now = open_table(&data);
    now.add_file(&name, recorded(1), "one").unwrap();
    drop(now);
    std::fs::remove_dir_all(data.join("table")).unwrap();
    std::fs::rename(&older, data.join("table")).unwrap();
    let error = ChecksumTable::open(&data, &"n-1".parse().unwrap(), &"n".parse().unwrap());
    let error = error.unwrap_err();
    assert!(
        matches!(error, ChecksumTableError::Damaged { .. }),
        "{error}"
    );
}

/// Copies the table as a kill would leave it at this moment, under another name.
fn image(data: &std::path::Path) -> std::path::PathBuf {
    let copy = data.with_extension("image");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([data, copy.as_path()])
        .status();
    assert!(copied.unwrap().success());
    copy
}

fn newest_log(data: &std::path::Path) -> std::path::PathBuf {
    let entries = std::fs::read_dir(data.join("table")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|kind| kind == "log"))
        .max()
        .unwrap()
}

/// Fails if a row that was acknowledged may vanish with the end of the log, busy or idle.
#[test]
fn cut_log_behind_an_added_row_is_refused() {
    let directory = crate::testing::directory();
    let data = directory.path().join("data");
    let record = open_table(&data);
    for name in ["a", "b"] {
        let name = FileName::new(name).unwrap();
        record.add_file(&name, recorded(1), "one").unwrap();
    }
    let image = image(&data);
    let log = newest_log(&image);
    let length = std::fs::metadata(&log).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&log).unwrap();
    file.set_len(length - 1).unwrap();
    let error = ChecksumTable::open(&image, &"n-1".parse().unwrap(), &"n".parse().unwrap());
    let error = error.unwrap_err();
    assert!(
        matches!(error, ChecksumTableError::Damaged { .. }),
        "{error}"
    );
}

/// Fails if a write that a power cut tore, and that was not acknowledged, stops the replica.
#[test]
fn torn_tail_of_the_log_is_cut() {
    let directory = crate::testing::directory();
    let data = directory.path().join("data");
    let record = open_table(&data);
    let name = FileName::new("a").unwrap();
    record.add_file(&name, recorded(1), "one").unwrap();
    let image = image(&data);
    let mut torn = vec![0x12, 0x34, 0x56, 0x78, 0xe8, 3, 1];
    torn.resize(1007, 0);
    AppendFile::open(&newest_log(&image))
        .unwrap()
        .append(&torn)
        .unwrap();
    let again =
        ChecksumTable::open(&image, &"n-1".parse().unwrap(), &"n".parse().unwrap()).unwrap();
    assert_eq!(again.file(&name).unwrap(), Some(recorded(1)));
}

/// Fails if a label that is empty, cut, or of another format lets a table open.
#[test]
fn a_label_that_is_none_is_refused() {
    let directory = crate::testing::directory();
    drop(open_table(directory.path()));
    let label = directory.path().join("holdfast-checksum-replica.json");
    let text = std::fs::read_to_string(&label).unwrap();
    for wrong in [
        "",
        "{}",
        &text[..20],
        &text.replace("replica/2", "replica/1"),
        &text.replace("replica/2", "replica/3"),
    ] {
        std::fs::write(&label, wrong).unwrap();
        let error = ChecksumTable::open(
            directory.path(),
            &"n-1".parse().unwrap(),
            &"n".parse().unwrap(),
        );
        let error = error.unwrap_err();
        assert!(
            matches!(error, ChecksumTableError::Label { .. }),
            "{wrong}: {error}"
        );
    }
}

/// Fails if an older build opens a table of a later release, or changes it.
#[test]
fn table_of_a_later_release_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let name = FileName::new("a").unwrap();
    drop(open_table(directory.path()));
    let options = DatabaseOptions::new("checksums", 2, &["files", "admissions", "later"]);
    let path = directory.path().join("table");
    std::fs::remove_dir_all(&path).unwrap();
    let later = Database::open(&path, &options).unwrap();
    let admissions: Table<Text<FileName>, String> = later.table("admissions").unwrap();
    let mut batch = later.batch();
    let key = Text(name.clone());
    batch.put(&admissions, &key, &"one".to_owned()).unwrap();
    batch.commit().unwrap();
    let reach = later.reach().to_string();
    StampWriter::begin(&directory.path().join("table.stamp"), reach.as_bytes()).unwrap();
    drop((later, admissions));
    let node = "n-1".parse().unwrap();
    let replica = "n".parse().unwrap();
    let error = ChecksumTable::open(directory.path(), &node, &replica).unwrap_err();
    assert!(matches!(error, ChecksumTableError::Database(_)), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("checksums version 2; this build reads checksums version 1"),
        "{said}"
    );
    let later = Database::open(&path, &options).unwrap();
    let admissions: Table<Text<FileName>, String> = later.table("admissions").unwrap();
    assert_eq!(admissions.get(&Text(name)).unwrap(), Some("one".to_owned()));
}

/// Makes a table of 500 rows.
pub(crate) fn fill(data: &std::path::Path) {
    let record = open_table(data);
    for number in 0..500_u32 {
        let name = FileName::new(&format!("f{number:04}")).unwrap();
        let noise = blake3::hash(&number.to_le_bytes()).to_hex();
        record
            .add_file(&name, recorded(1), &noise.repeat(8))
            .unwrap();
    }
}

/// Damages the admissions of a table that was opened again, and nothing that a listing reads.
pub(crate) fn damage_admissions(data: &std::path::Path) {
    let tables = std::fs::read_dir(data.join("table")).unwrap();
    let tables = tables.map(|entry| entry.unwrap().path());
    let tables = tables.filter(|path| path.extension().is_some_and(|kind| kind == "sst"));
    let largest = tables.max_by_key(|path| path.metadata().unwrap().len());
    let largest = largest.unwrap();
    let mut bytes = std::fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    for byte in &mut bytes[middle..middle + 14] {
        *byte ^= 0x55;
    }
    std::fs::write(&largest, bytes).unwrap();
}

/// Fails if only the rows that a listing shows are read with their checksums.
#[test]
fn damage_in_table_of_admissions_is_found() {
    let directory = crate::testing::directory();
    let node = "n-1".parse().unwrap();
    let replica = "n".parse().unwrap();
    let open = || ChecksumTable::open(directory.path(), &node, &replica).unwrap();
    fill(directory.path());
    let mut rows = 0;
    let mut count = |more| {
        rows += more;
        std::ops::ControlFlow::Continue(())
    };
    open().verify_admissions(&mut count).unwrap();
    assert_eq!(rows, 500);

    damage_admissions(directory.path());
    let record = open();
    assert_eq!(
        record.files(None).unwrap().count(),
        500,
        "a listing is whole"
    );
    let error = record.verify_admissions(&mut |_| std::ops::ControlFlow::Continue(()));
    assert!(
        matches!(error, Err(ChecksumTableError::Damaged { .. })),
        "{error:?}"
    );
}

/// Fails if a line that a crash cut short spoils the line appended after it, or is skipped silently.
#[test]
fn a_torn_line_stays_apart_from_the_next() {
    let directory = crate::testing::directory();
    let path = table::removed_rows_path(directory.path());
    assert!(!is_torn(&path).unwrap());
    let line = RemovedRow {
        at: Timestamp::UNIX_EPOCH,
        name: FileName::new("a").unwrap(),
        size: 7,
        root: Root::from_bytes([1; 32]),
        stored: Timestamp::UNIX_EPOCH,
        who: "officer/a".to_owned(),
        why: "why\nnot".to_owned(),
        admission: None,
        approval: None,
    };
    append_removed_row(&path, &line).unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    append_removed_row(&path, &line).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let last = text.lines().last().unwrap();
    assert_eq!(serde_json::from_str::<RemovedRow>(last).unwrap(), line);
    assert_eq!(text.lines().count(), 2);
    let lines: Vec<_> = removed_lines(directory.path()).unwrap().collect();
    assert!(lines[0].as_ref().unwrap_err().contains("line 1 of"));
    assert_eq!(lines[1..], [Ok(line)]);
}

/// Fails if a disk that fails within the list of removed rows is asked for further lines without end.
#[test]
fn a_disk_that_fails_ends_the_lines() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(table::removed_rows_path(directory.path())).unwrap();
    let lines = removed_lines(directory.path()).unwrap().take(3);
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let why = lines[0].as_ref().unwrap_err();
    assert!(why.contains("the rest cannot be read"), "{why}");
}

/// Fails if a restart forgets the limit, a row is removed although its removal was refused, or a damaged memory of the
/// limit lets rows be removed.
#[test]
fn the_limit_on_removals_holds_over_a_restart() {
    let directory = crate::testing::directory();
    let data = directory.path();
    let name = |number: u8| FileName::new(&format!("f-{number}")).unwrap();
    let first = open_table(data);
    for number in 0..4 {
        first
            .add_file(&name(number), recorded(number), "one")
            .unwrap();
    }
    drop(first);
    let remove = |number: u8, minute: i64| {
        let replica = replica(data);
        let now = Timestamp::from_second(1_800_000_000 + minute * 60).unwrap();
        let root = recorded(number).root;
        let cause = Cause::new("officer/a", "why").unwrap();
        let removed = replica.put_aside(&name(number), &root, &cause, now);
        let is_there = replica.table().file(&name(number)).unwrap().is_some();
        assert_eq!(is_there, removed.is_err());
        removed
    };
    remove(0, 0).unwrap();
    remove(1, 10).unwrap();
    for minute in [11, 59] {
        let refused = remove(2, minute).unwrap_err();
        assert!(
            matches!(
                refused,
                PutAsideError::Node(NodeError::TooManyRemovals { most: 2, .. })
            ),
            "{refused}"
        );
    }
    remove(2, 60).unwrap();
    std::fs::write(data.join("removals.json"), "{").unwrap();
    let refused = remove(3, 1000).unwrap_err();
    assert!(
        matches!(refused, PutAsideError::Node(NodeError::Removals { .. })),
        "{refused}"
    );
}
