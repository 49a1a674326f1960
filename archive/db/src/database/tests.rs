//! Logs of a database that were cut, or are gone.

use std::fs::OpenOptions;

use super::*;

/// Two logs are alive: the older one, closed, has the rows of `a`; the newer one those of `b`.
fn two_logs(directory: &Path) -> (Vec<PathBuf>, u64, Options) {
    let options = Options::new("test", 1, &["a", "b"]);
    let database = Database::open(&directory.join("live"), &options).unwrap();
    let (a, b) = (
        database.table::<u64, u64>("a").unwrap(),
        database.table::<u64, u64>("b").unwrap(),
    );
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

#[test]
fn a_closed_log_that_was_cut_or_is_gone_is_damage_though_the_sequence_is_right() {
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

#[test]
fn two_whole_logs_open() {
    let directory = tempfile::tempdir().unwrap();
    let (_, sequence, options) = two_logs(directory.path());
    let database =
        Database::open(&directory.path().join("image"), &options.at_least(sequence)).unwrap();
    assert_eq!(database.table::<u64, u64>("a").unwrap().count(), Ok(10));
    assert_eq!(database.table::<u64, u64>("b").unwrap().count(), Ok(2));
}
