//! Databases whose batches are written without a sync: after a crash they have a prefix of the writes.

use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use archive_db::{Database, DatabaseOptions, DbError, Table};

use crate::files::{crash_image, files, size, truncate};

/// The unit in which a disk keeps or loses unsynced bytes.
const PAGE: usize = 4096;

fn options() -> DatabaseOptions {
    DatabaseOptions::new("frontier", 1, &["left", "right"]).syncs_later()
}

/// Writes a row of each number into both tables, a batch for each.
fn write(database: &Database, numbers: std::ops::Range<u64>) {
    let left: Table<u64, String> = database.table("left").unwrap();
    let right: Table<u64, u64> = database.table("right").unwrap();
    for number in numbers {
        let mut batch = database.batch();
        batch.put(&left, &number, &"x".repeat(300)).unwrap();
        batch.put(&right, &number, &(number * 2)).unwrap();
        batch.write().unwrap();
    }
}

/// Returns the number of rows: a prefix of those written, the same one in both tables.
fn prefix(path: &Path) -> u64 {
    let database = Database::open(path, &options()).unwrap();
    let left: Table<u64, String> = database.table("left").unwrap();
    let right: Table<u64, u64> = database.table("right").unwrap();
    let lefts: Vec<u64> = left.scan().unwrap().map(|row| row.unwrap().0).collect();
    let rights: Vec<u64> = right.scan().unwrap().map(|row| row.unwrap().0).collect();
    assert_eq!(lefts, (0..lefts.len() as u64).collect::<Vec<_>>());
    assert_eq!(lefts, rights);
    lefts.len() as u64
}

fn newest_log(path: &Path) -> std::path::PathBuf {
    let mut logs = files(path, "", ".log");
    logs.sort();
    logs.pop().unwrap()
}

/// Fails if the end of the process costs a batch, or a database for records takes one without a sync.
#[test]
fn written_batch_survives_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("database");
    let database = Database::open(&path, &options()).unwrap();
    write(&database, 0..20);
    assert_eq!(prefix(&crash_image(&path, "killed")), 20);

    let record = directory.path().join("record");
    let strict = Database::open(&record, &DatabaseOptions::new("record", 1, &["left"])).unwrap();
    let left: Table<u64, String> = strict.table("left").unwrap();
    let mut batch = strict.batch();
    batch.put(&left, &1, &"x".to_owned()).unwrap();
    assert!(matches!(batch.write(), Err(DbError::SyncedOnly { .. })));
    assert_eq!(left.get(&1).unwrap(), None);
}

/// Fails if a power cut leaves anything but a prefix of the batches, or costs one that was synced.
#[test]
fn lost_pages_leave_a_synced_prefix() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("database");
    let database = Database::open(&path, &options()).unwrap();
    write(&database, 0..40);
    database.sync().unwrap();
    let synced = usize::try_from(size(&newest_log(&path))).unwrap();
    write(&database, 40..80);
    let whole = usize::try_from(size(&newest_log(&path))).unwrap();
    let first = synced.div_ceil(PAGE);
    let pages = whole.div_ceil(PAGE);
    assert!(pages - first > 2, "{pages} pages, {first} of them synced");
    for lost in first..pages {
        let image = crash_image(&path, &format!("cut {lost}"));
        truncate(&newest_log(&image), (lost * PAGE) as u64);
        let cut = prefix(&image);
        assert!(
            (40..80).contains(&cut),
            "{cut} after a cut before page {lost}"
        );
        // The length and the pages behind were written, and this page was not.
        let image = crash_image(&path, &format!("hole {lost}"));
        let mut log = OpenOptions::new()
            .write(true)
            .open(newest_log(&image))
            .unwrap();
        log.seek(SeekFrom::Start((lost * PAGE) as u64)).unwrap();
        log.write_all(&vec![0; PAGE.min(whole - lost * PAGE)])
            .unwrap();
        let hole = prefix(&image);
        assert!(
            (40..=cut).contains(&hole),
            "{hole} with a hole at page {lost}, {cut} before it"
        );
    }
}

/// Fails if one table is ahead of the other where the log lost its tail after tables were flushed.
#[test]
fn flushed_tables_agree_after_a_cut() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("database");
    // The memory is so small that tables are flushed while rows are written.
    let database = Database::open(&path, &options().with_memory(1 << 20)).unwrap();
    write(&database, 0..6000);
    // The database is closed, so that nothing works on its files any more.
    drop(database);
    assert!(!files(&path, "", ".sst").is_empty());
    let log = newest_log(&path);
    truncate(&log, size(&log) / 2);
    let left = prefix(&path);
    assert!((1..6000).contains(&left), "{left}");
}
