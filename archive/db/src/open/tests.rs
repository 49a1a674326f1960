//! Logs of a database that were cut or removed.

use std::fs::OpenOptions;
use std::path::PathBuf;

use super::*;
use crate::table::Table;

/// Two logs are alive: the older one, closed, has the rows of `a`; the newer one those of `b`.
fn two_logs(directory: &Path) -> (Vec<PathBuf>, u64, DatabaseOptions) {
    let options = DatabaseOptions::new("test", 1, &["a", "b"]);
    let database = Database::open(&directory.join("live"), &options).unwrap();
    let a = database.table::<u64, u64>("a").unwrap();
    let b = database.table::<u64, u64>("b").unwrap();
    let put = |table: &Table<u64, u64>, number| {
        let mut batch = database.batch();
        batch.put(table, &number, &number).unwrap();
        batch.commit().unwrap()
    };
    for number in 0..10 {
        put(&a, number);
    }
    put(&b, 1);
    database
        .inner
        .db
        .flush_cf(database.inner.family("b").unwrap())
        .unwrap();
    let sequence = put(&b, 2);
    let image = directory.join("image");
    fs::create_dir(&image).unwrap();
    let mut logs = Vec::new();
    for entry in fs::read_dir(directory.join("live")).unwrap() {
        let copy = image.join(entry.as_ref().unwrap().file_name());
        fs::copy(entry.unwrap().path(), &copy).unwrap();
        if copy.extension().is_some_and(|kind| kind == "log") {
            logs.push(copy);
        }
    }
    logs.sort();
    (logs, sequence, options)
}

/// Fails if the sequence number alone decides: a closed log that is cut or gone costs rows, and the newest log still
/// ends at the right one.
#[test]
fn closed_log_that_was_cut_is_damage() {
    for cut in [None, Some(1), Some(40)] {
        let directory = tempfile::tempdir().unwrap();
        let (logs, sequence, options) = two_logs(directory.path());
        let [older, _] = logs.as_slice() else {
            panic!("{logs:?}")
        };
        match cut {
            None => fs::remove_file(older).unwrap(),
            Some(bytes) => {
                let length = fs::metadata(older).unwrap().len();
                OpenOptions::new()
                    .write(true)
                    .open(older)
                    .unwrap()
                    .set_len(length - bytes)
                    .unwrap();
            }
        }
        let result = Database::open(&directory.path().join("image"), &options.at_least(sequence));
        assert!(
            matches!(result, Err(DbError::Damaged { .. })),
            "{cut:?}: {result:?}"
        );
    }
}

/// Fails if two live logs that are whole pass for damage, or the rows of one are lost.
#[test]
fn two_whole_logs_open() {
    let directory = tempfile::tempdir().unwrap();
    let (_, sequence, options) = two_logs(directory.path());
    let database =
        Database::open(&directory.path().join("image"), &options.at_least(sequence)).unwrap();
    assert_eq!(database.table::<u64, u64>("a").unwrap().count(), Ok(10));
    assert_eq!(database.table::<u64, u64>("b").unwrap().count(), Ok(2));
}

/// The names of the files of a database, with their bytes.
fn files_of(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Fails if a row that stands only in the log is not read, if a file is changed, or if a write is taken.
#[test]
fn database_that_is_read_is_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let options = DatabaseOptions::new("test", 1, &["a"]);
    let written = Database::open(directory.path(), &options).unwrap();
    let mut batch = written.batch();
    let table = written.table::<u64, u64>("a").unwrap();
    batch.put(&table, &1, &2).unwrap();
    batch.commit().unwrap();
    let reach = written.reach();
    drop((written, table));
    let before = files_of(directory.path());
    {
        let options = options.clone().with_reach(reach.clone());
        let read = Database::open_to_read(directory.path(), &options).unwrap();
        let table = read.table::<u64, u64>("a").unwrap();
        assert_eq!(table.get(&1), Ok(Some(2)));
        let mut batch = read.batch();
        batch.put(&table, &3, &4).unwrap();
        assert!(batch.commit().is_err());
    }
    assert_eq!(before, files_of(directory.path()));
    let ahead = options.clone().at_least(reach.sequence + 1);
    let refused = Database::open_to_read(directory.path(), &ahead);
    assert!(
        matches!(refused, Err(DbError::Behind { .. })),
        "{refused:?}"
    );
    let newer = DatabaseOptions::new("test", 2, &["a"]);
    let refused = Database::open_to_read(directory.path(), &newer);
    assert!(
        matches!(refused, Err(DbError::Format { .. })),
        "{refused:?}"
    );
    let absent = Database::open_to_read(&directory.path().join("absent"), &options);
    assert!(matches!(absent, Err(DbError::Behind { .. })), "{absent:?}");
}
