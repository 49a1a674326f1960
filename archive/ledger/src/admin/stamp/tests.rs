//! Logs of the admin data that are cut, torn or deleted, stamps that are gone or wrong, and what is made of them.

use std::path::{Path, PathBuf};

use archive_db::DbError;
use archive_durable::AppendFile;

use super::super::tests::{row, store};
use super::*;

/// Returns a copy of everything that a kill would leave at this moment.
fn image(data: &Path) -> tempfile::TempDir {
    let image = tempfile::tempdir().unwrap();
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([data.join("admin"), data.join(STAMP)])
        .arg(image.path())
        .status();
    assert!(copied.unwrap().success());
    image
}

fn newest_log(data: &Path) -> PathBuf {
    let entries = std::fs::read_dir(data.join("admin")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|kind| kind == "log"))
        .max()
        .unwrap()
}

fn names(admin: &Admin) -> Vec<String> {
    let files = admin.list_files(None).unwrap();
    files
        .map(|row| row.unwrap().record.name.to_string())
        .collect()
}

fn is_behind(opened: &Result<Admin, AdminError>) -> bool {
    matches!(
        opened,
        Err(AdminError::Damaged { error, .. }) if matches!(**error, DbError::Behind { .. })
    )
}

/// Commits a change that is not acknowledged.
fn store_unacknowledged(admin: &Admin, name: &str) {
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, &row(name)).unwrap();
    admin.commit_unstamped(changes).unwrap();
}

/// Appends what a power cut leaves of a write: its whole length, and zeros.
fn tear(log: &Path) {
    let mut torn = vec![0x12, 0x34, 0x56, 0x78, 0xe8, 3, 1];
    torn.resize(1007, 0);
    AppendFile::open(log).unwrap().append(&torn).unwrap();
}

/// Fails if a row that was acknowledged may vanish with the end of the log, or with all of it.
#[test]
fn cut_log_behind_a_commit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    for name in ["a", "b", "c"] {
        store(&admin, name);
    }
    let length = std::fs::metadata(newest_log(directory.path()))
        .unwrap()
        .len();
    for cut in [1, 40, length / 2, length] {
        let image = image(directory.path());
        let log = newest_log(image.path());
        AppendFile::open(&log).unwrap().cut(length - cut).unwrap();
        for _ in 0..2 {
            let opened = Admin::open(image.path());
            assert!(is_behind(&opened), "{cut} bytes cut: {opened:?}");
            let said = opened.unwrap_err().to_string();
            assert!(said.contains("holdfast admin restore"), "{said}");
        }
    }
    let image = image(directory.path());
    std::fs::remove_file(newest_log(image.path())).unwrap();
    assert!(is_behind(&Admin::open(image.path())), "without its log");
}

/// Fails if what was not acknowledged stays without a stamp while nothing else happens.
#[test]
fn idle_archive_is_stamped_by_its_worker() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    store_unacknowledged(&admin, "a");
    let open_cut = || {
        let image = image(directory.path());
        let log = newest_log(image.path());
        let length = std::fs::metadata(&log).unwrap().len();
        AppendFile::open(&log).unwrap().cut(length - 1).unwrap();
        Admin::open(image.path())
    };
    assert!(names(&open_cut().unwrap()).is_empty());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut worker = StampWorker(admin.clone());
    runtime.block_on(worker.step()).unwrap();
    let opened = open_cut();
    assert!(is_behind(&opened), "{opened:?}");
}

/// Fails if a write that a power cut tore stops the repository, or a restart, or is cut away in silence.
#[test]
fn torn_tail_of_the_log_is_cut() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    store(&admin, "a");
    store(&admin, "b");
    let image = image(directory.path());
    tear(&newest_log(image.path()));
    let again = Admin::open(image.path()).unwrap();
    assert_eq!(names(&again), ["a", "b"]);
    let said = again.torn().unwrap().to_string();
    assert!(said.contains("1007 bytes after byte"), "{said}");
    store(&again, "c");
    drop(again);
    let third = Admin::open(image.path()).unwrap();
    assert_eq!((names(&third).len(), third.torn()), (3, None));
}

/// Fails if the trail does not say that a torn write was cut away, or says it where none was.
#[test]
fn cut_tail_is_in_the_trail() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    store(&admin, "a");
    let reported = |admin: &Admin| {
        let now = Timestamp::from_second(1_000_000_000).unwrap();
        admin.report_torn_tail("kb", now).unwrap();
        let lines = admin.audit_rows(0).unwrap();
        let lines = lines.map(|row| row.unwrap().1).skip(1);
        let reported = lines.map(|line| (line.at, line.who, line.file, line.what));
        reported.collect::<Vec<_>>()
    };
    assert_eq!(reported(&admin), []);
    let image = image(directory.path());
    tear(&newest_log(image.path()));
    let reported = reported(&Admin::open(image.path()).unwrap());
    let [(at, who, None, what)] = &reported[..] else {
        panic!("{reported:?}")
    };
    assert_eq!((at.as_second(), &**who), (1_000_000_000, "repository/kb"));
    assert!(what.contains("1007 bytes after byte"), "{what}");
}

/// Fails if admin data whose stamp is gone, or says less than a stamp, are opened.
#[test]
fn data_without_whole_stamp_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let stamp = directory.path().join(STAMP);
    let admin = Admin::init(directory.path()).unwrap();
    store(&admin, "a");
    drop(admin);
    archive_durable::replace_file(&stamp, b"3\n").unwrap();
    let opened = Admin::open(directory.path());
    assert!(
        matches!(&opened, Err(AdminError::Stamp { text, .. }) if text == "3\n"),
        "{opened:?}"
    );
    archive_durable::StampWriter::begin(&stamp, br#"{"sequence":3}"#).unwrap();
    let opened = Admin::open(directory.path());
    assert!(
        matches!(opened, Err(AdminError::Stamp { .. })),
        "{opened:?}"
    );
    std::fs::remove_file(&stamp).unwrap();
    let opened = Admin::open(directory.path());
    assert!(
        matches!(opened, Err(AdminError::Unstamped(_))),
        "{opened:?}"
    );
}

/// Fails if a beginning that was cut off before there were tables is not completed.
#[test]
fn beginning_that_was_cut_off_is_completed() {
    let directory = tempfile::tempdir().unwrap();
    let text = serde_json::to_vec(&StampContent::default()).unwrap();
    archive_durable::StampWriter::begin(&directory.path().join(STAMP), &text).unwrap();
    let opened = Admin::open(directory.path());
    assert!(matches!(opened, Err(AdminError::Absent(_))), "{opened:?}");
    store(&Admin::init(directory.path()).unwrap(), "a");
    assert_eq!(names(&Admin::open(directory.path()).unwrap()), ["a"]);
}

/// Fails if the end of the audit log is known nowhere but in it.
#[test]
fn stamp_knows_the_end_of_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    store(&admin, "a");
    let known = || {
        read_stamp(&directory.path().join(STAMP))
            .unwrap()
            .unwrap()
            .audit
    };
    assert_eq!(known(), None);
    let line = admin.audit_rows(0).unwrap().next().unwrap().unwrap().1;
    let mut position = LogPosition::first_position();
    position.chain.chain_line(0, &line).unwrap();
    admin.set_log_end(position, 0).unwrap();
    store(&admin, "b");
    let end = LogEnd::at(&position).unwrap();
    assert_eq!((end.lines, known()), (1, Some(end.clone())));
    drop(admin);
    let admin = Admin::open(directory.path()).unwrap();
    store(&admin, "c");
    assert_eq!(known(), Some(end), "also after a restart");
}

/// Fails if the sequence number alone decides whether it is the database that was here.
#[test]
fn older_database_is_refused_though_it_came_further() {
    let directory = tempfile::tempdir().unwrap();
    let before = directory.path().join("before");
    let admin = Admin::init(&before).unwrap();
    for number in 0..20 {
        store(&admin, &format!("file-{number}"));
    }
    drop(admin);
    let restored = directory.path().join("restored");
    let admin = Admin::init(&restored).unwrap();
    store(&admin, "file-0");
    drop(admin);
    assert_eq!(names(&Admin::open(&restored).unwrap()).len(), 1);

    std::fs::remove_dir_all(restored.join("admin")).unwrap();
    let moved = std::process::Command::new("mv")
        .args([before.join("admin"), restored.join("admin")])
        .status();
    assert!(moved.unwrap().success());
    let opened = Admin::open(&restored);
    assert!(
        matches!(&opened, Err(AdminError::Damaged { error, .. }) if matches!(**error, DbError::Other { .. })),
        "{opened:?}"
    );
}
