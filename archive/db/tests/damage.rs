//! Files that were cut, flipped or deleted behind the database: it notices, and never gives a short answer.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use archive_db::{Database, DatabaseOptions, DbError};

use crate::files::{
    Rows, assert_damaged, committed, crash_image, files, flip, loaded, options, rows, size,
    truncate, value,
};

/// Fails if a commit is lost when the process ends, with or without closing the database.
#[test]
fn committed_rows_survive_crash_and_close() {
    let (_directory, path, database, sequence) = committed(50);
    let image = crash_image(&path, "image");
    let expected: Vec<u64> = (0..50).collect();
    drop(database);
    for path in [image, path] {
        for _ in 0..3 {
            let database = Database::open(&path, &options().at_least(sequence)).unwrap();
            assert_eq!(rows(&database).unwrap(), expected);
        }
    }
}

/// Fails if a log that ends within a write is refused, or costs rows that were committed before.
#[test]
fn torn_tail_costs_only_its_own_commit() {
    let (_directory, path, _database, sequence) = committed(20);
    for cut in [1, 7, 50] {
        let image = crash_image(&path, &format!("cut {cut}"));
        let log = &files(&image, "", ".log")[0];
        truncate(log, size(log) - cut);
        let database = Database::open(&image, &options()).unwrap();
        assert_eq!(
            rows(&database).unwrap(),
            (0..19).collect::<Vec<_>>(),
            "{cut} bytes cut"
        );
        assert_eq!(database.sequence(), sequence - 1);
    }
}

/// Fails if rows that went with a log pass unnoticed where a stamp knows of them.
#[test]
fn log_that_was_cut_is_behind_its_stamp() {
    let (_directory, path, _database, sequence) = committed(100);
    let cut = crash_image(&path, "cut");
    let log = &files(&cut, "", ".log")[0];
    truncate(log, size(log) * 2 / 3);
    let gone = crash_image(&path, "gone");
    for log in files(&gone, "", ".log") {
        fs::remove_file(log).unwrap();
    }
    let absent = path.with_file_name("absent");
    for image in [&cut, &gone, &absent] {
        match Database::open(image, &options().at_least(sequence)) {
            Err(DbError::Behind { stamp, found, .. }) => {
                assert!(stamp == sequence && found < sequence);
            }
            other => panic!("{}: {other:?}", image.display()),
        }
    }
    assert!(
        !absent.try_exists().unwrap(),
        "a database that should be there is not made anew"
    );
    // Without a stamp nothing tells that rows are missing; so a cache compares with the disk, and a record has a stamp.
    let left = rows(&Database::open(&cut, &options()).unwrap()).unwrap();
    assert_eq!(left, (0..left.len() as u64).collect::<Vec<_>>());
    assert!(left.len() < 100);
}

/// Fails if a database that was ours and lost its own table of contents is taken for somebody else's.
#[test]
fn manifest_without_its_tail_is_damage_where_stamped() {
    let (_directory, path, database, sequence) = committed(10);
    drop(database);
    let length = size(&files(&path, "MANIFEST", "")[0]);
    let mut nameless = 0;
    for keep in 0..length {
        let image = crash_image(&path, &format!("cut {keep}"));
        truncate(&files(&image, "MANIFEST", "")[0], keep);
        let again = || Database::open(&image, &options().at_least(sequence));
        let Err(error) = again() else {
            assert_eq!(rows(&again().unwrap()).unwrap().len(), 10, "{keep} bytes");
            continue;
        };
        assert!(error.is_damage(), "{keep} of {length} bytes: {error}");
        nameless += u64::from(error.to_string().contains("no longer says what it is"));
        fs::remove_dir_all(image).unwrap();
    }
    assert!(nameless > 0);
}

/// Fails if damage before the tail of a log ends it silently.
#[test]
fn flipped_bit_within_log_is_damage_without_stamp() {
    let (_directory, path, _database, _) = committed(100);
    for number in [0, 50, 99] {
        let image = crash_image(&path, &format!("flip {number}"));
        let log = &files(&image, "", ".log")[0];
        let row = value(number).into_bytes();
        let position = fs::read(log)
            .unwrap()
            .windows(row.len())
            .position(|bytes| bytes == row)
            .unwrap();
        flip(log, position as u64);
        assert_damaged(Database::open(&image, &options()), &format!("row {number}"));
    }
}

/// Fails if some byte of a log can flip, and rows are missing without an error.
#[test]
fn no_flip_in_a_log_passes_its_stamp() {
    let (_directory, path, _database, sequence) = committed(100);
    let length = size(&files(&path, "", ".log")[0]);
    for (number, position) in (0..length).step_by(211).enumerate() {
        let image = crash_image(&path, &format!("flip {number}"));
        flip(&files(&image, "", ".log")[0], position);
        match Database::open(&image, &options().at_least(sequence)) {
            Err(error) => assert!(error.is_damage(), "byte {position}: {error}"),
            Ok(database) => panic!(
                "byte {position}: opened with {:?}",
                rows(&database).map(|rows| rows.len())
            ),
        }
    }
}

/// Fails if a listing ends early at damage, in either direction, as if that were its end.
#[test]
fn flipped_bit_in_a_table_is_an_error() {
    let (_directory, path) = loaded(20_000);
    let table = &files(&path, "", ".sst")[0];
    flip(table, size(table) / 2);
    let database = Database::open(&path, &options()).unwrap();
    let rows: Rows = database.table("rows").unwrap();

    let listing: Vec<_> = rows.scan().unwrap().collect();
    let (end, before) = listing.split_last().unwrap();
    assert_damaged(end.clone(), "the last item");
    assert!(
        before.iter().all(Result::is_ok) && before.len() < 20_000,
        "{}",
        before.len()
    );
    assert_damaged(rows.count(), "count");
    assert_damaged(database.verify(), "verify");
    assert_damaged(
        rows.range(..).unwrap().collect::<Result<Vec<_>, _>>(),
        "a range",
    );
    let mut backwards: Vec<_> = rows.range_backwards(..).unwrap().collect();
    assert_damaged(backwards.pop().unwrap(), "the last item backwards");
    assert!(backwards.iter().all(Result::is_ok));
    assert!(before.len() + backwards.len() < 20_000);

    let lost: Vec<u64> = (0..20_000)
        .filter(|number| rows.get(number).is_err())
        .collect();
    assert!(
        !lost.is_empty(),
        "the rows of the damaged block cannot be told"
    );
    assert!(
        (0..20_000)
            .filter(|number| !lost.contains(number))
            .all(|number| rows.get(&number).unwrap().is_some())
    );
}

/// Fails if some byte of a table can flip, and rows are missing without an error.
#[test]
fn no_flip_in_a_table_shortens_a_listing() {
    let (_directory, path) = loaded(300);
    let length = size(&files(&path, "", ".sst")[0]);
    let mut noticed = 0;
    for (number, position) in (0..length)
        .step_by(usize::try_from(length).unwrap() / 60)
        .enumerate()
    {
        let image = crash_image(&path, &format!("flip {number}"));
        flip(&files(&image, "", ".sst")[0], position);
        match Database::open(&image, &options()).and_then(|database| rows(&database)) {
            Ok(rows) => assert_eq!(rows, (0..300).collect::<Vec<_>>(), "byte {position}"),
            Err(error) => {
                assert!(error.is_damage(), "byte {position}: {error}");
                noticed += 1;
            }
        }
    }
    assert!(noticed > 10, "only {noticed} flips were noticed");
}

/// Fails if a database whose files were removed, cut or flipped is begun anew, at the first attempt or a later one.
#[test]
fn damaged_files_are_never_a_new_database() {
    type Deed = fn(&Path);
    let deeds: [(&str, &str, &str, Deed); 8] = [
        ("CURRENT", "", "gone", |file| fs::remove_file(file).unwrap()),
        ("CURRENT", "", "empty", |file| truncate(file, 0)),
        ("CURRENT", "", "flipped", |file| flip(file, 0)),
        ("MANIFEST", "", "gone", |file| {
            fs::remove_file(file).unwrap();
        }),
        ("MANIFEST", "", "empty", |file| truncate(file, 0)),
        ("MANIFEST", "", "flipped", |file| flip(file, size(file) / 2)),
        ("", ".sst", "gone", |file| fs::remove_file(file).unwrap()),
        ("", ".sst", "cut", |file| truncate(file, size(file) / 2)),
    ];
    let (_directory, path) = loaded(300);
    for (start, end, what, deed) in deeds {
        let image = crash_image(&path, &format!("{start}{end} {what}"));
        deed(&files(&image, start, end)[0]);
        for attempt in 1..=2 {
            assert_damaged(
                Database::open(&image, &options()),
                &format!("{start}{end} {what}, attempt {attempt}"),
            );
        }
        // A cache is destroyed and created again.
        Database::destroy(&image).unwrap();
        let database = Database::open(&image, &options()).unwrap();
        assert_eq!(rows(&database).unwrap(), []);
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the shape that `Options::torn_tail` asks for"
)]
fn cut(log: &Path, length: u64) -> Result<(), String> {
    truncate(log, length);
    Ok(())
}

/// Writes `bytes` over the first bytes of a log.
fn overwrite(log: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(log).unwrap();
    file.write_all(bytes).unwrap();
}

/// Returns options with a stamp that is brought up to date before a commit is acknowledged.
fn stamped(sequence: u64) -> DatabaseOptions {
    options().at_least(sequence).torn_tail(cut)
}

/// Appends what a power cut leaves of a write: its whole length, and zeros from `zeros` on.
fn tear(log: &Path, zeros: usize) {
    let length = 3000_u16.min(u16::try_from(32_768 - size(log) % 32_768).unwrap() - 8);
    let mut record = vec![0x12, 0x34, 0x56, 0x78];
    record.extend(length.to_le_bytes());
    record.push(1);
    record.resize(7 + usize::from(length), b'x');
    record.iter_mut().skip(zeros).for_each(|byte| *byte = 0);
    let mut file = OpenOptions::new().append(true).open(log).unwrap();
    file.write_all(&record).unwrap();
}

/// Fails if a write that a power cut tore stops a record, is served, or takes a whole write with it.
#[test]
fn torn_write_is_cut_where_the_stamp_allows() {
    for (count, zeros) in [(20, 7), (20, 0), (400, 1000), (0, 7)] {
        let (_directory, path, database, _) = committed(count);
        let sequence = database.sequence();
        let expected: Vec<u64> = (0..count).collect();
        let image = crash_image(&path, "image");
        drop(database);
        let log = files(&image, "", ".log")[0].clone();
        let whole = size(&log);
        tear(&log, zeros);
        let torn = size(&log);
        if zeros == 7 {
            assert_damaged(Database::open(&image, &options()), "nobody stamps");
            assert_eq!(size(&log), torn, "nothing is cut");
        }
        let database = Database::open(&image, &stamped(sequence)).unwrap();
        assert_eq!(rows(&database).unwrap(), expected);
        if zeros == 7 {
            let cut = database.torn().unwrap();
            assert_eq!((cut.kept, cut.cut), (whole, torn - whole));
        }
        drop(database);
        let again = Database::open(&image, &stamped(sequence)).unwrap();
        assert_eq!(rows(&again).unwrap(), expected);
        assert_eq!(again.torn(), None, "it is said once");
    }
}

/// Fails if a write of which somebody was told is cut away.
#[test]
fn torn_write_before_the_stamp_is_refused() {
    // The last sector is a part of the last row.
    let mut all = (20..80).map(committed);
    let is_so = |path: &Path| matches!(size(&files(path, "", ".log")[0]) % 512, 1..=100);
    let found = all.find(|(_, path, ..)| is_so(path));
    let (_directory, path, _database, sequence) = found.unwrap();
    let image = crash_image(&path, "image");
    let log = files(&image, "", ".log")[0].clone();
    let whole = size(&log);
    // The sector did not reach the disk, and the row was acknowledged.
    let mut bytes = fs::read(&log).unwrap();
    let from = bytes.len() - bytes.len() % 512;
    bytes[from..].fill(0);
    overwrite(&log, &bytes);
    for _ in 0..2 {
        let opened = Database::open(&image, &stamped(sequence));
        assert!(
            matches!(opened, Err(DbError::Behind { found, .. }) if found == sequence - 1),
            "{opened:?}"
        );
        assert_eq!(size(&log), whole, "nothing is cut");
    }
    assert!(Database::open(&image, &stamped(sequence - 1)).is_ok());
}

/// Fails if damage of another kind, or with whole writes behind it, is cut away.
#[test]
fn other_damage_of_a_log_is_never_cut() {
    let (_directory, path, _database, _) = committed(100);
    let flipped = crash_image(&path, "flipped");
    let log = files(&flipped, "", ".log")[0].clone();
    flip(&log, size(&log) - 30);
    let zeros = crash_image(&path, "zeros");
    let other = files(&zeros, "", ".log")[0].clone();
    let mut bytes = fs::read(&other).unwrap();
    bytes[4096..4608].fill(0);
    overwrite(&other, &bytes);
    for (image, log) in [(flipped, log), (zeros, other)] {
        let before = size(&log);
        assert_damaged(
            Database::open(&image, &stamped(0)),
            &image.display().to_string(),
        );
        assert_eq!(size(&log), before);
    }
}
