//! Tests with databases that were damaged on disk: the damage is noticed, and what is lost is said.

use std::fs::{self, OpenOptions as FileOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureQuery, KeyMatch, KeyRange};

use super::*;

const MEMORY: usize = 8 << 20;

fn capture(number: u64) -> Capture {
    let mut capture = Capture::new("", "20200101000000".parse().unwrap());
    capture.original = Some(format!("http://a{}.example/{number}", number % 97));
    capture.offset = Some(number);
    capture
}

/// Fills the database with captures of a file and of a set, and closes it.
fn fill(data: &Path) {
    let opened = open_index(data, MEMORY).unwrap();
    assert_eq!(opened.rebuilt, None);
    let mut writer = opened.captures.begin_file("a.warc").unwrap();
    for number in 0..5000 {
        writer.push_capture(&capture(number)).unwrap();
    }
    writer.complete_file(None).unwrap();
    let mut set = opened.captures.begin_import("old").unwrap();
    let line = "org,old)/ 20010101000000 {\"url\": \"http://old.org/\", \"filename\": \"o.arc\", \"offset\": \"7\"}\n";
    set.read_lines("old.cdxj", line.as_bytes()).unwrap();
    set.complete_import().unwrap();
    opened.health.note_damage(&opened.captures).unwrap();
}

/// Returns the number of captures that a query gives, all of them read.
fn count(captures: &CaptureIndex) -> Result<usize, DbError> {
    let found = captures
        .query_captures(&CaptureQuery::new(KeyMatch::Within(KeyRange::all())))
        .unwrap();
    let mut count = 0;
    for capture in found {
        capture?;
        count += 1;
    }
    Ok(count)
}

fn files(data: &Path, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(data)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = entries
        .filter(|path| path.file_name().unwrap().to_string_lossy().contains(kind))
        .collect();
    all.sort();
    all
}

fn flip(path: &Path, at: u64) {
    let file = FileOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x55], at).unwrap();
}

/// Returns a directory whose database was closed with its rows in files of their own.
fn filled(directory: &Path) -> PathBuf {
    let data = directory.join("captures");
    fill(&data);
    // The rows in its log are written to tables when it is opened again.
    let opened = open_index(&data, MEMORY).unwrap();
    assert_eq!(opened.rebuilt, None);
    assert_eq!(count(&opened.captures).unwrap(), 5001);
    assert_eq!(opened.health.lost_sets(), BTreeSet::new());
    drop(opened);
    assert!(!files(&data, ".sst").is_empty());
    data
}

/// Opens a damaged database: it is begun anew, says why, and names the set that went with it until it is there again.
fn is_begun_anew(data: &Path, what: &str) {
    let opened = open_index(data, MEMORY).unwrap();
    let rebuilt = opened.rebuilt.clone();
    let reason = rebuilt.unwrap_or_else(|| panic!("{what}: it passes for whole"));
    assert!(!reason.is_empty(), "{what}");
    assert_eq!(count(&opened.captures).unwrap(), 0, "{what}");
    let lost = BTreeSet::from(["old".to_owned()]);
    assert_eq!(opened.health.lost_sets(), lost, "{what}");
    drop(opened);
    let again = open_index(data, MEMORY).unwrap();
    assert_eq!(
        (again.rebuilt, again.health.lost_sets()),
        (None, lost),
        "{what}"
    );
    again
        .captures
        .begin_import("old")
        .unwrap()
        .complete_import()
        .unwrap();
    again.health.note_damage(&again.captures).unwrap();
    assert_eq!(again.health.lost_sets(), BTreeSet::new(), "{what}");
}

/// Fails if a database that lost a part of its rows answers from the rest, is refused at the start, or is begun anew
/// without a word.
#[test]
fn damaged_database_is_begun_anew() {
    type Damage = fn(&Path);
    let cases: [(&str, Damage); 7] = [
        ("CURRENT is gone", |data| {
            fs::remove_file(data.join("CURRENT")).unwrap();
        }),
        ("CURRENT is empty", |data| {
            fs::write(data.join("CURRENT"), b"").unwrap();
        }),
        ("the manifest is gone", |data| {
            fs::remove_file(files(data, "MANIFEST").last().unwrap()).unwrap();
        }),
        ("the manifest is cut", |data| {
            let path = files(data, "MANIFEST").pop().unwrap();
            let length = path.metadata().unwrap().len();
            let file = FileOptions::new().write(true).open(path).unwrap();
            file.set_len(length / 2).unwrap();
        }),
        ("the manifest has flipped bits", |data| {
            let path = files(data, "MANIFEST").pop().unwrap();
            flip(&path, path.metadata().unwrap().len() / 2);
        }),
        ("a table is gone", |data| {
            for path in files(data, ".sst") {
                fs::remove_file(path).unwrap();
            }
        }),
        ("all is gone", |data| fs::remove_dir_all(data).unwrap()),
    ];
    for (what, damage) in cases {
        let directory = tempfile::tempdir().unwrap();
        let data = filled(directory.path());
        damage(&data);
        is_begun_anew(&data, what);
    }
}

/// Fails if bits that flip in a table lead to a list without the captures that they made unreadable, or to a panic; or
/// if the database passes for whole at the next start.
#[test]
fn flipped_bits_in_tables_are_no_shorter_answers() {
    let directory = tempfile::tempdir().unwrap();
    let data = filled(directory.path());
    let image = directory.path().join("image");
    copy(directory.path(), &data, &image);
    let tables = files(&image, ".sst");
    for table in &tables {
        let length = table.metadata().unwrap().len();
        for at in (0..length).step_by(usize::try_from(length / 7 + 1).unwrap()) {
            let own = directory.path().join("own");
            let data = own.join("captures");
            if own.try_exists().unwrap() {
                fs::remove_dir_all(&own).unwrap();
            }
            copy(directory.path(), &image, &data);
            flip(&data.join(table.file_name().unwrap()), at);
            let opened = open_index(&data, MEMORY).unwrap();
            if opened.rebuilt.is_some() {
                continue;
            }
            match count(&opened.captures) {
                // Bytes that nothing is read from.
                Ok(count) => assert_eq!(count, 5001, "{} {at}", table.display()),
                Err(error) => {
                    assert!(error.is_damage(), "{error}");
                    opened.health.check_error(&error);
                    drop(opened);
                    let again = open_index(&data, MEMORY).unwrap();
                    let reason = again.rebuilt.expect("it passes for whole");
                    assert_eq!(reason, error.to_string());
                }
            }
        }
    }
}

/// Copies a database, and the file beside that of the test to the place beside the copy.
fn copy(directory: &Path, from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let beside = directory.join("captures.state.json");
    fs::copy(beside, record_path(to)).unwrap();
}

/// Fails if damage is reported for an error that passes, or a part with a damaged database continues.
#[tokio::test]
async fn only_damage_ends_the_part() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open_index(&directory.path().join("captures"), MEMORY).unwrap();
    let path = directory.path().to_path_buf();
    let what = "no space".to_owned();
    opened.health.check_error(&DbError::Io {
        path: path.clone(),
        what,
    });
    let stop = CancellationToken::new();
    stop.cancel();
    assert!(opened.health.clone().watch_health(stop).await.is_ok());
    let what = "a block differs".to_owned();
    opened.health.check_error(&DbError::Damaged { path, what });
    let ended = opened
        .health
        .clone()
        .watch_health(CancellationToken::new())
        .await;
    assert!(ended.unwrap_err().to_string().contains("a block differs"));
}

/// Fails if a record that cannot be read keeps the part from starting.
#[test]
fn unreadable_record_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let data = filled(directory.path());
    fs::write(record_path(&data), b"{\"sequence\": -").unwrap();
    let opened = open_index(&data, MEMORY).unwrap();
    assert_eq!(
        (opened.rebuilt, count(&opened.captures).unwrap()),
        (None, 5001)
    );
}
