//! The trail while its writer continues, stops or is undone.

use std::fs;

use super::*;
use crate::audit_log::{AuditLog, LogOptions, LogPosition};

fn line(number: u64) -> AuditLine {
    AuditLine {
        at: Timestamp::from_second(i64::try_from(number).unwrap()).unwrap(),
        who: "harvester/h".to_owned(),
        file: Some(FileName::new(&format!("f-{number}")).unwrap()),
        what: format!("{number}: said \"no\"\n{{\"number\":{number}}}"),
    }
}

fn note(admin: &Admin, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut changes = admin.begin_changes();
        changes.note_line(line(number));
        admin.commit_changes(changes).unwrap();
    }
}

/// Returns the lines of the trail, and how many of them are in the log.
fn said(admin: &Admin, at: &Path) -> (Vec<String>, usize) {
    let entries: Vec<_> = Trail::read_trail(admin, at)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.number).collect();
    assert!(numbers.iter().copied().eq(0..entries.len() as u64));
    let logged = entries
        .iter()
        .filter(|entry| entry.previous.is_some())
        .count();
    (
        entries.into_iter().map(|entry| entry.line.what).collect(),
        logged,
    )
}

/// Fails if a line of the trail is lost, doubled or out of order where its writer died between log and table, or a log
/// that was taken away is begun anew.
#[test]
fn trail_is_whole_wherever_its_writer_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let admin = Admin::init(&directory.path().join("data")).unwrap();
    let expected = |to: u64| (0..to).map(|number| line(number).what).collect::<Vec<_>>();
    assert_eq!(said(&admin, &at), (vec![], 0));
    note(&admin, 0..5);
    assert_eq!(said(&admin, &at), (expected(5), 0));
    let log = trail_writer::open_trail_log(&admin, &at, &|| false).unwrap();
    let (log, is_all) = trail_writer::write_next(log, &admin).unwrap();
    assert!(is_all);
    assert_eq!(said(&admin, &at), (expected(5), 5));
    assert_eq!(
        admin.audit_rows(0).unwrap().count(),
        1,
        "the newest row stays"
    );
    note(&admin, 5..8);
    assert_eq!(said(&admin, &at), (expected(8), 5));
    // Appended, and the process dies before the rows are deleted.
    let mut dying = log;
    let rows: Vec<_> = admin.audit_rows(5).unwrap().map(Result::unwrap).collect();
    dying.append(&rows).unwrap();
    drop(dying);
    assert_eq!(said(&admin, &at), (expected(8), 8));
    let log = trail_writer::open_trail_log(&admin, &at, &|| false).unwrap();
    let (log, _) = trail_writer::write_next(log, &admin).unwrap();
    assert_eq!(said(&admin, &at), (expected(8), 8));
    note(&admin, 8..9);
    trail_writer::write_next(log, &admin).unwrap();
    assert_eq!(said(&admin, &at), (expected(9), 9));
    drop(admin);
    let admin = Admin::init(&directory.path().join("data")).unwrap();
    trail_writer::open_trail_log(&admin, &at, &|| false).unwrap();
    // Somebody takes the log away.
    fs::remove_dir_all(&at).unwrap();
    let refused = trail_writer::open_trail_log(&admin, &at, &|| false);
    assert!(
        matches!(refused, Err(LogError::Changed { .. })),
        "{refused:?}"
    );
    assert!(
        Trail::read_trail(&admin, &at)
            .unwrap()
            .last()
            .unwrap()
            .is_err(),
        "a hole is no end"
    );
}

/// The writers of the trail, each step of theirs alone.
struct Writers<'a> {
    admin: &'a Admin,
    log: AuditLog,
    /// Where the log ends.
    position: LogPosition,
    /// The lines that were committed.
    committed: u64,
}

/// A step of the writers.
#[derive(Clone, Copy, Debug)]
enum WriterStep {
    /// A change with two lines is committed.
    Commit,
    /// All rows are made durable in the log.
    Append,
    /// The rows that are in the log are deleted from the table, but for the newest.
    Delete,
}

impl Writers<'_> {
    fn take(&mut self, steps: &[WriterStep]) {
        for step in steps {
            match step {
                WriterStep::Commit => {
                    let mut changes = self.admin.begin_changes();
                    for number in [self.committed, self.committed + 1] {
                        changes.note_line(line(number));
                    }
                    self.admin.commit_changes(changes).unwrap();
                    self.committed += 2;
                }
                WriterStep::Append => {
                    let rows = self.admin.audit_rows(self.log.next()).unwrap();
                    let rows: Vec<_> = rows.map(Result::unwrap).collect();
                    self.position = self.log.append(&rows).unwrap();
                }
                WriterStep::Delete => {
                    let last = self.log.next().saturating_sub(1);
                    self.admin.set_log_end(self.position, last).unwrap();
                }
            }
        }
    }
}

/// Lets writers take steps at each point of a reading: between the two readings of the table, before the log is opened,
/// and after the first line. The log has files of a few lines, so that it also begins new ones.
///
/// Fails if a reader sees a gap in the numbers, a line out of order, one twice, or not all that were committed before.
#[test]
fn trail_is_gapless_while_writers_take_steps() {
    use WriterStep::{Append, Commit, Delete};
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let admin = Admin::init(&directory.path().join("data")).unwrap();
    let begun = trail_writer::open_trail_log(&admin, &at, &|| false).unwrap();
    drop(begun);
    let options = LogOptions {
        known: admin.log_end().unwrap(),
        longest: 600,
    };
    let log = AuditLog::open(&at, &admin, options, &|| false).unwrap();
    let mut writers = Writers {
        admin: &admin,
        log,
        position: LogPosition::first_position(),
        committed: 0,
    };
    let turns: [&[WriterStep]; 5] = [
        &[],
        &[Commit],
        &[Append],
        &[Append, Delete],
        &[Commit, Append, Delete, Commit],
    ];
    for (first, second, third) in (0..125).map(|at| (at / 25, at / 5 % 5, at % 5)) {
        writers.take(&[Commit]);
        let before = writers.committed;
        let snapshot = admin.trail_with(|| writers.take(turns[first])).unwrap();
        writers.take(turns[second]);
        let mut trail = Trail::from_snapshot(snapshot, &at).unwrap();
        let mut entries = vec![trail.next().unwrap().unwrap()];
        writers.take(turns[third]);
        entries.extend(trail.map(Result::unwrap));
        assert_eq!(entries.len() as u64, before, "{first} {second} {third}");
        for (number, entry) in (0..).zip(&entries) {
            assert_eq!((entry.number, &entry.line), (number, &line(number)));
        }
    }
    assert!(writers.position.file > 10, "{:?}", writers.position);
}
