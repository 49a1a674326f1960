//! Databases on disk, and damage to their files.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use archive_db::{Database, DatabaseOptions, DbError, Table};
use tempfile::TempDir;

pub(crate) type Rows = Table<u64, String>;

pub(crate) fn options() -> DatabaseOptions {
    DatabaseOptions::new("catalog", 1, &["rows", "other"])
}

pub(crate) fn value(number: u64) -> String {
    format!("value {number} {}", "x".repeat(100))
}

/// Makes a database with `rows` rows, each committed alone. Returns its directory, its path, itself and its sequence.
pub(crate) fn committed(rows: u64) -> (TempDir, PathBuf, Database, u64) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("database");
    let database = Database::open(&path, &options()).unwrap();
    let table: Rows = database.table("rows").unwrap();
    let mut sequence = 0;
    for number in 0..rows {
        let mut batch = database.batch();
        batch.put(&table, &number, &value(number)).unwrap();
        sequence = batch.commit().unwrap();
    }
    (directory, path, database, sequence)
}

/// Makes a closed database with `rows` rows in tables on disk, and no row in a log.
pub(crate) fn loaded(rows: u64) -> (TempDir, PathBuf) {
    let (directory, path, database, _) = committed(0);
    let table: Rows = database.table("rows").unwrap();
    let mut load = database.load().unwrap();
    for number in 0..rows {
        load.put(&table, &number, &value(number)).unwrap();
    }
    load.finish().unwrap();
    (directory, path)
}

/// Copies the files as they are, as a kill at this moment would leave them.
pub(crate) fn crash_image(path: &Path, name: &str) -> PathBuf {
    let copy = path.with_file_name(name);
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    copy
}

/// Lists the files whose names start and end so, the longest first.
pub(crate) fn files(path: &Path, start: &str, end: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.retain(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.starts_with(start) && name.ends_with(end) && name != "LOG"
    });
    found.sort_by_key(|file| std::cmp::Reverse(size(file)));
    assert!(!found.is_empty(), "no {start}*{end} in {}", path.display());
    found
}

pub(crate) fn size(file: &Path) -> u64 {
    fs::metadata(file).unwrap().len()
}

pub(crate) fn truncate(file: &Path, length: u64) {
    OpenOptions::new()
        .write(true)
        .open(file)
        .unwrap()
        .set_len(length)
        .unwrap();
}

pub(crate) fn flip(file: &Path, position: u64) {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(file)
        .unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(position)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(position)).unwrap();
    file.write_all(&[byte[0] ^ 0x10]).unwrap();
}

/// Returns the numbers of the rows, if all of them could be read; each has its value.
pub(crate) fn rows(database: &Database) -> Result<Vec<u64>, DbError> {
    let table: Rows = database.table("rows")?;
    let mut numbers = Vec::new();
    for row in table.scan()? {
        let (number, found) = row?;
        assert_eq!(found, value(number));
        numbers.push(number);
    }
    Ok(numbers)
}

#[track_caller]
pub(crate) fn assert_damaged<T: std::fmt::Debug>(result: Result<T, DbError>, what: &str) {
    match result {
        Err(error @ DbError::Damaged { .. }) => assert!(error.is_damage()),
        other => panic!("{what}: {other:?}"),
    }
}
