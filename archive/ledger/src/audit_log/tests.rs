//! Tampering with a log, and whether it is noticed.

use std::collections::BTreeMap;
use std::fs;

use archive_model::FileName;
use jiff::Timestamp;

use super::*;

/// The size of a file of the log; small, so that a few lines make several files.
const SHORT: u64 = 700;

const LINES: u64 = 12;

struct Table(BTreeMap<u64, AuditLine>);

impl TrailRows for Table {
    fn row(&self, number: u64) -> Result<Option<AuditLine>, DbError> {
        Ok(self.0.get(&number).cloned())
    }
}

fn line(number: u64) -> AuditLine {
    AuditLine {
        at: Timestamp::from_second(i64::try_from(number).unwrap()).unwrap(),
        who: "harvester/h".to_owned(),
        file: Some(FileName::new(&format!("f-{number}")).unwrap()),
        what: format!("{number}: said \"no\"\n{{\"number\":{number}}}"),
    }
}

fn rows(from: u64, to: u64) -> Table {
    Table((from..to).map(|number| (number, line(number))).collect())
}

fn open(at: &Path, known: Option<LogPosition>, rows: &Table) -> Result<AuditLog, LogError> {
    let longest = SHORT;
    AuditLog::open(at, rows, LogOptions { known, longest }, &|| false)
}

/// Writes a log of [`LINES`] lines. Returns the position after each line, and the content of each file.
fn written(at: &Path) -> (Vec<LogPosition>, Vec<Vec<u8>>) {
    let mut log = open(at, Some(LogPosition::first_position()), &rows(0, 0)).unwrap();
    let mut positions = vec![LogPosition::first_position()];
    for number in 0..LINES {
        positions.push(log.append(&[(number, line(number))]).unwrap());
    }
    (positions, contents(at))
}

fn contents(at: &Path) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = fs::read_dir(at)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    names.iter().map(|name| fs::read(name).unwrap()).collect()
}

#[expect(clippy::disallowed_methods, reason = "tests damage files")]
fn put(at: &Path, contents: &[Vec<u8>]) {
    _ = fs::remove_dir_all(at);
    fs::create_dir(at).unwrap();
    for (number, bytes) in contents.iter().enumerate() {
        fs::write(files::log_path(at, number as u64), bytes).unwrap();
    }
}

fn is_refused(at: &Path, known: LogPosition) -> bool {
    let before = contents(at);
    let opened = open(at, Some(known), &rows(LINES - 1, LINES));
    let is_refused = matches!(opened, Err(LogError::Changed { .. }));
    assert!(
        !is_refused || contents(at) == before,
        "nothing is done to a log that is refused"
    );
    is_refused
}

/// Returns the lines of each file, with their line feeds.
fn lines(files: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
    let split = |bytes: &Vec<u8>| {
        bytes
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    };
    files.iter().map(split).collect()
}

/// Fails if the chain of hashes begins anew with a file of the log or a restart, a restart alters the log, or a line
/// feed in a reason makes a second line.
#[test]
fn chain_continues_over_files_and_restart() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let (positions, files) = written(&at);
    assert!(files.len() > 2 && files.iter().all(|file| file.len() as u64 <= SHORT));
    let last = *positions.last().unwrap();
    let log = open(&at, Some(last), &rows(LINES - 1, LINES)).unwrap();
    assert_eq!((log.position, contents(&at)), (last, files.clone()));
    let paths: Vec<_> = (0..files.len())
        .map(|number| files::log_path(&at, number as u64))
        .collect();
    let verified = verify_log(&paths).unwrap();
    assert_eq!((verified.lines, verified.numbers), (LINES, 0..LINES));
    assert_eq!((verified.head, verified.torn), (last.chain.previous(), 0));
    let rest = verify_log(&paths[1..]).unwrap();
    assert_eq!(
        (rest.numbers.end, rest.head),
        (LINES, last.chain.previous())
    );
    // No name and no reason makes a second line of one.
    assert_eq!(lines(&files).concat().len() as u64, LINES);
}

/// Fails if a torn last line is not completed from the table, or a cut that takes a line known to be durable goes
/// unnoticed.
#[test]
fn tail_cut_anywhere_is_completed_or_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let (positions, files) = written(&at);
    let last = *positions.last().unwrap();
    let newest = lines(&files).concat().pop().unwrap().len();
    let end = files.last().unwrap().len();
    for cut in 0..=end {
        let mut torn = files.clone();
        torn.last_mut().unwrap().truncate(cut);
        // All lines were sure: only the newest, which the table keeps, may be missing.
        put(&at, &torn);
        if cut >= end - newest {
            let log = open(&at, Some(last), &rows(LINES - 1, LINES)).unwrap();
            assert_eq!(log.position.chain, last.chain);
            assert_eq!(contents(&at), files, "cut at {cut}");
        } else {
            assert!(is_refused(&at, last), "cut at {cut}");
        }
        // Nothing of the last file was sure yet: all of it is written again, and nothing twice.
        put(&at, &torn);
        let sure = positions
            .iter()
            .rfind(|at| at.file + 1 < files.len() as u64)
            .unwrap();
        let table = rows(sure.chain.next() - 1, LINES);
        let mut log = open(&at, Some(*sure), &table).unwrap();
        let missing: Vec<_> = table
            .0
            .into_iter()
            .filter(|(n, _)| *n >= log.next())
            .collect();
        assert_eq!(log.append(&missing).unwrap().chain, last.chain);
        assert_eq!(
            lines(&contents(&at)).concat(),
            lines(&files).concat(),
            "cut at {cut}"
        );
    }
}

/// Fails if zeros that a power cut left at the end of the log are kept, refused, or cost a line that the table still
/// has.
#[test]
fn lines_lost_in_a_crash_are_rewritten() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let (positions, files) = written(&at);
    let sure = positions[5];
    let start = usize::try_from(sure.length).unwrap();
    let file = usize::try_from(sure.file).unwrap();
    for from in start..files[file].len() {
        let mut torn = files.clone();
        torn[file][from..].fill(0);
        torn.last_mut().unwrap().push(7);
        put(&at, &torn);
        let table = rows(4, LINES);
        let mut log = open(&at, Some(sure), &table).unwrap();
        let missing: Vec<_> = table
            .0
            .into_iter()
            .filter(|(n, _)| *n >= log.next())
            .collect();
        log.append(&missing).unwrap();
        assert_eq!(
            lines(&contents(&at)).concat(),
            lines(&files).concat(),
            "zeros from {from}"
        );
    }
}

/// Fails if a byte of the log is not covered by the chain of hashes, or a damaged log is altered when it is opened.
#[test]
fn a_flipped_bit_in_any_byte_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let (positions, files) = written(&at);
    let last = *positions.last().unwrap();
    for file in 0..files.len() {
        for byte in 0..files[file].len() {
            let mut changed = files.clone();
            changed[file][byte] ^= 1 << (byte % 8);
            put(&at, &changed);
            assert!(is_refused(&at, last), "file {file}, byte {byte}");
        }
    }
}

/// Fails if a line or file of the log can be removed, doubled, moved or added unnoticed, or the whole log be rewritten
/// with right hashes.
#[test]
fn tampered_lines_are_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let (positions, files) = written(&at);
    let last = *positions.last().unwrap();
    let all = lines(&files);
    let joined =
        |lines: &[Vec<Vec<u8>>]| lines.iter().map(|file| file.concat()).collect::<Vec<_>>();
    for file in 0..all.len() {
        for index in 0..all[file].len() {
            let is_newest = file + 1 == all.len() && index + 1 == all[file].len();
            let mut gone = all.clone();
            gone[file].remove(index);
            put(&at, &joined(&gone));
            assert_eq!(
                is_refused(&at, last),
                !is_newest,
                "line {index} of {file} is gone"
            );
            let mut twice = all.clone();
            let line = twice[file][index].clone();
            twice[file].insert(index, line);
            put(&at, &joined(&twice));
            assert!(is_refused(&at, last), "line {index} of {file} twice");
            if index > 0 {
                let mut swapped = all.clone();
                swapped[file].swap(index - 1, index);
                put(&at, &joined(&swapped));
                assert!(is_refused(&at, last), "line {index} of {file} swapped");
            }
        }
        put(&at, &files);
        fs::remove_file(files::log_path(&at, file as u64)).unwrap();
        assert!(is_refused(&at, last), "file {file} is gone");
    }
    // A line more, well formed, that the archive did not write.
    let mut chain = last.chain;
    let mut forked = files.clone();
    forked
        .last_mut()
        .unwrap()
        .extend(chain.chain_line(LINES, &line(99)).unwrap());
    put(&at, &forked);
    assert!(is_refused(&at, last));
    // The whole log written anew, with right hashes and one changed word.
    let other = directory.path().join("other");
    let mut log = open(&other, Some(LogPosition::first_position()), &rows(0, 0)).unwrap();
    for number in 0..LINES {
        let mut line = line(number);
        if number == 3 {
            line.who = "harvester/x".to_owned();
        }
        log.append(&[(number, line)]).unwrap();
    }
    put(&at, &contents(&other));
    assert!(is_refused(&at, last));
    // A log of which the admin data know nothing.
    put(&at, &files);
    let unknown = open(&at, None, &rows(0, 3));
    assert!(matches!(unknown, Err(LogError::Changed { .. })));
    put(&at, &files);
    assert!(
        open(&at, None, &rows(0, LINES)).is_ok(),
        "a crash before the first was sure"
    );
}

/// Fails if a forged line whose number has no next one stops the reader that verifies it.
#[test]
fn the_highest_number_is_refused() {
    let at = tempfile::tempdir().unwrap();
    let path = files::log_path(at.path(), 0);
    let number = u64::MAX;
    let zeros = "0".repeat(64);
    let text = format!(
        "{{\"number\":{number},\"at\":\"2026-01-01T00:00:00Z\",\"who\":\"\",\"file\":null,\"what\":\"\",\
         \"previous\":\"{zeros}\"}}\n"
    );
    let mut file = AppendFile::open(&path).unwrap();
    file.append(text.as_bytes()).unwrap();
    let error = verify_log(&[path]).unwrap_err().to_string();
    assert!(error.contains("the highest there is"), "{error}");
}
