//! The opening of databases: which are opened, created or refused.

use std::fs;

use archive_db::{Database, DatabaseOptions, DbError, Table};
use tempfile::TempDir;

use crate::files::{
    Rows, assert_damaged, committed, crash_image, files, options, rows, size, truncate, value,
};

/// Fails if a crash at the beginning of a creation leaves a directory that can never be opened.
#[test]
fn interrupted_creation_is_completed() {
    let (_directory, path, database, _) = committed(0);
    drop(database);
    let image = crash_image(&path, "image");
    for file in files(&image, "", "")
        .iter()
        .filter(|file| !file.ends_with("LOCK"))
    {
        fs::remove_file(file).unwrap();
    }
    assert_eq!(
        rows(&Database::open(&image, &options()).unwrap()).unwrap(),
        []
    );
}

/// Fails if two handles have one database open, or a table does not keep it open.
#[test]
fn second_opening_is_refused_as_busy() {
    let (_directory, path, database, _) = committed(1);
    let table: Rows = database.table("rows").unwrap();
    assert!(matches!(
        Database::open(&path, &options()),
        Err(DbError::Busy { .. })
    ));
    assert!(matches!(
        Database::destroy(&path),
        Err(DbError::Busy { .. })
    ));
    drop(database);
    assert!(
        matches!(Database::open(&path, &options()), Err(DbError::Busy { .. })),
        "a table keeps it open"
    );
    assert_eq!(table.count(), Ok(1));
    drop(table);
    Database::open(&path, &options()).unwrap();
}

/// Fails if a database of another name or version is read, or changed before it is refused.
#[test]
fn other_name_or_version_is_refused_and_unchanged() {
    let (_directory, path, database, _) = committed(1);
    drop(database);
    let refused = |options: DatabaseOptions| match Database::open(&path, &options) {
        Err(error @ DbError::Format { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let other = refused(DatabaseOptions::new("admin", 1, &["rows", "more"]));
    assert!(
        other.contains("holds catalog version 1; this build reads admin version 1"),
        "{other}"
    );
    for version in [0, 2] {
        let other = refused(DatabaseOptions::new("catalog", version, &["more"]));
        let expected = format!("catalog version 1; this build reads catalog version {version}");
        assert!(other.contains(&expected), "{other}");
    }
    let database = Database::open(&path, &options()).unwrap();
    assert!(matches!(
        database.table::<u64, String>("more"),
        Err(DbError::NoTable { .. })
    ));
}

/// Fails if a database of another program is opened, or changed before it is refused.
#[test]
fn somebody_elses_database_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("theirs");
    let theirs = rocksdb::DB::open_default(&path).unwrap();
    theirs.put("key", "value").unwrap();
    drop(theirs);
    assert!(matches!(
        Database::open(&path, &options()),
        Err(DbError::Format { .. })
    ));
    assert_eq!(
        rocksdb::DB::open_default(&path)
            .unwrap()
            .get("key")
            .unwrap()
            .unwrap(),
        b"value"
    );
}

/// Fails if a database with some of the rows of a load passes for whole.
#[test]
fn load_that_a_crash_cut_off_is_damage() {
    let (_directory, path, database, _) = committed(0);
    let table: Rows = database.table("rows").unwrap();
    let mut load = database.load().unwrap();
    for number in 0..20_000 {
        load.put(&table, &number, &value(number)).unwrap();
    }
    assert_damaged(
        Database::open(&crash_image(&path, "image"), &options()),
        "within the load",
    );
    let sequence = load.finish().unwrap();
    let finished = Database::open(
        &crash_image(&path, "finished"),
        &options().at_least(sequence),
    )
    .unwrap();
    assert_eq!(rows(&finished).unwrap().len(), 20_000);
}

/// Fails if sequence numbers alone decide: those of a database that was built anew begin again.
#[test]
fn database_of_before_a_rebuild_is_refused() {
    let (_directory, path, database, _) = committed(50);
    let older = crash_image(&path, "older");
    let before = database.reach();
    drop(database);
    Database::destroy(&path).unwrap();
    let rebuilt = Database::open(&path, &options()).unwrap();
    let reach = rebuilt.reach();
    assert!(reach.sequence < before.sequence, "{reach} {before}");
    drop(rebuilt);
    assert!(Database::open(&path, &options().with_reach(reach.clone())).is_ok());
    match Database::open(&older, &options().with_reach(reach)) {
        Err(error @ DbError::Other { .. }) => {
            assert!(error.is_damage());
            assert!(
                error.to_string().contains("made at another time"),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(Database::open(&older, &options().with_reach(before)).is_ok());
}

/// Fails if a batch that one of many threads committed is lost by a crash, or stands in only one of its tables where
/// the log was cut.
#[test]
fn batches_of_many_threads_are_whole() {
    let (_directory, path, database, _) = committed(0);
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let database = database.clone();
            scope.spawn(move || {
                let rows: Rows = database.table("rows").unwrap();
                let other: Table<u64, u64> = database.table("other").unwrap();
                for number in (thread..200).step_by(8) {
                    let mut batch = database.batch();
                    batch.put(&rows, &number, &value(number)).unwrap();
                    batch.put(&other, &number, &thread).unwrap();
                    let sequence = batch.commit().unwrap();
                    assert!(database.sequence() >= sequence);
                }
            });
        }
    });
    let others = |database: &Database| -> Vec<u64> {
        let other: Table<u64, u64> = database.table("other").unwrap();
        other.scan().unwrap().map(|row| row.unwrap().0).collect()
    };
    let image = crash_image(&path, "image");
    let whole = Database::open(&image, &options().at_least(database.sequence())).unwrap();
    assert_eq!(rows(&whole).unwrap(), (0..200).collect::<Vec<_>>());
    assert_eq!(others(&whole), (0..200).collect::<Vec<_>>());
    // The log ends anywhere within the last batches.
    for cut in (1..800).step_by(31) {
        let image = crash_image(&path, &format!("cut {cut}"));
        let log = &files(&image, "", ".log")[0];
        truncate(log, size(log) - cut);
        let database = Database::open(&image, &options()).unwrap();
        let numbers = rows(&database).unwrap();
        assert!(numbers.len() < 200, "{cut} bytes cut");
        assert_eq!(numbers, others(&database), "{cut} bytes cut");
    }
}
