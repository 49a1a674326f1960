//! The trail while its writer goes on, stops or is undone.

use std::fs;

use super::*;

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
        let mut changes = admin.change();
        changes.note(line(number));
        admin.commit(changes).unwrap();
    }
}

/// Returns the lines of the trail, and how many of them are in the log.
fn said(admin: &Admin, at: &Path) -> (Vec<String>, usize) {
    let entries: Vec<_> = Trail::read(admin, at)
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

#[test]
fn trail_is_whole_wherever_its_writer_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("audit");
    let admin = Admin::init(&directory.path().join("data")).unwrap();
    let expected = |to: u64| (0..to).map(|number| line(number).what).collect::<Vec<_>>();
    assert_eq!(said(&admin, &at), (vec![], 0));
    note(&admin, 0..5);
    assert_eq!(said(&admin, &at), (expected(5), 0));
    let log = trail_writer::open(&admin, &at, &|| false).unwrap();
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
    // Appended, and the process dies before the rows are gone.
    let mut dying = log;
    let rows: Vec<_> = admin.audit_rows(5).unwrap().map(Result::unwrap).collect();
    dying.append(&rows).unwrap();
    drop(dying);
    assert_eq!(said(&admin, &at), (expected(8), 8));
    let log = trail_writer::open(&admin, &at, &|| false).unwrap();
    let (log, _) = trail_writer::write_next(log, &admin).unwrap();
    assert_eq!(said(&admin, &at), (expected(8), 8));
    note(&admin, 8..9);
    trail_writer::write_next(log, &admin).unwrap();
    assert_eq!(said(&admin, &at), (expected(9), 9));
    drop(admin);
    let admin = Admin::init(&directory.path().join("data")).unwrap();
    trail_writer::open(&admin, &at, &|| false).unwrap();
    // Somebody takes the log away.
    fs::remove_dir_all(&at).unwrap();
    let refused = trail_writer::open(&admin, &at, &|| false);
    assert!(
        matches!(refused, Err(LogError::Changed { .. })),
        "{refused:?}"
    );
    assert!(
        Trail::read(&admin, &at).unwrap().last().unwrap().is_err(),
        "a hole is no end"
    );
}
