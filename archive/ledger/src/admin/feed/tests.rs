//! Numbers without holes, however many commit at once, and positions that another history does not know.

use std::path::Path;

use archive_decisions::store::NamePhase;
use archive_model::{ReplicaState, Root};
use jiff::Timestamp;

use super::super::stamp::STAMP;
use super::super::{AdminRestore, AdminRow};
use super::*;
use crate::restore::testing::row;

fn put(admin: &Admin, row: &AdminRow) {
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, row).unwrap();
    admin.commit_changes(changes).unwrap();
}

fn put_unstamped(admin: &Admin, row: &AdminRow) {
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, row).unwrap();
    admin.commit_unstamped(changes).unwrap();
}

fn end_of_feed(admin: &Admin) -> FeedPosition {
    *admin.follow_feed().borrow()
}

fn all(admin: &Admin) -> Vec<FeedChange> {
    let rows = admin.read_feed(0, u64::MAX).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Returns the kind and the file of every change, and checks that the changes are numbered without holes.
fn changes(admin: &Admin) -> Vec<(ChangeKind, String)> {
    let all = all(admin);
    let numbers: Vec<_> = all.iter().map(|change| change.position.number).collect();
    let expected: Vec<_> = (1..=all.len() as u64).collect();
    assert_eq!(numbers, expected);
    let words = all.into_iter();
    words
        .map(|change| (change.kind, change.file.name.to_string()))
        .collect()
}

fn withdrawn(mut row: AdminRow) -> AdminRow {
    for copy in row.record.replicas.values_mut() {
        copy.state = ReplicaState::Withdrawn("r-1".to_owned());
    }
    row
}

/// Fails if a decision is not in the feed in its own batch, or anything else is.
#[test]
fn decisions_about_files_are_changes() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut early = row("a", 1);
    early.record.phase = NamePhase::Incomplete;
    put(&admin, &early);
    assert_eq!(changes(&admin), [], "no depositor got an answer");
    put(&admin, &row("a", 1));
    put(&admin, &row("a", 1));
    put(&admin, &row("b", 2));
    put(&admin, &withdrawn(row("b", 2)));
    put(&admin, &row("b", 2));
    put(&admin, &row("a", 3));
    drop(admin);
    let admin = Admin::open(directory.path()).unwrap();
    let named = |kind, name: &str| (kind, name.to_owned());
    assert_eq!(
        changes(&admin),
        [
            named(ChangeKind::Stored, "a"),
            named(ChangeKind::Stored, "b"),
            named(ChangeKind::Withdrawn, "b"),
            named(ChangeKind::Restored, "b"),
            named(ChangeKind::NewRoot, "a"),
        ]
    );
    let last = all(&admin).pop().unwrap();
    assert_eq!(
        (last.file.size, last.file.root),
        (3, Root::from_bytes([3; 32]))
    );
    assert_eq!(
        end_of_feed(&admin),
        last.position,
        "after a start all of it may be announced"
    );
}

/// Fails if tasks that commit at once get one number twice, or leave one out.
#[test]
fn concurrent_commits_leave_no_holes() {
    const EACH: u8 = 60;
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let admin = admin.clone();
            scope.spawn(move || {
                for number in 0..EACH {
                    put(&admin, &row(&format!("f-{thread}-{number}"), 1));
                }
            });
        }
    });
    let mut names = changes(&admin);
    assert_eq!(names.len(), 4 * usize::from(EACH));
    names.sort_by(|(_, one), (_, other)| one.cmp(other));
    names.dedup();
    assert_eq!(names.len(), 4 * usize::from(EACH), "each file once");
    // The lineage is that of the order that was committed.
    let mut lineage = admin.feed.begin.lineage;
    for change in all(&admin) {
        lineage = next_lineage(lineage, change.kind, &change.file);
        assert_eq!(change.position.lineage, lineage);
    }
}

/// Fails if a change is announced that a power cut may still undo.
#[test]
fn change_is_announced_after_the_stamp() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut end = admin.follow_feed();
    put_unstamped(&admin, &row("a", 1));
    assert!(!end.has_changed().unwrap());
    assert_eq!(end_of_feed(&admin).number, 0);
    let position = all(&admin)[0].position;
    assert!(!admin.is_in_feed(position).unwrap(), "nobody can have it");
    admin.write_stamp().unwrap();
    assert!(end.has_changed().unwrap());
    assert_eq!(*end.borrow_and_update(), position);
    assert!(admin.is_in_feed(position).unwrap());
    admin.write_stamp().unwrap();
    assert!(!end.has_changed().unwrap(), "nothing is new");
}

/// Fails if a position of the future, or of another history, passes for a known one: changes would be left out.
#[test]
fn position_of_another_history_is_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let begin = end_of_feed(&admin);
    for number in 1..4 {
        put(&admin, &row(&format!("f-{number}"), number));
    }
    let is_known = |position| admin.is_in_feed(position).unwrap();
    assert!(is_known(begin));
    for change in all(&admin) {
        let position = change.position;
        assert!(is_known(position), "{position}");
        let another = FeedPosition {
            lineage: position.lineage ^ 1,
            ..position
        };
        assert!(!is_known(another), "{another}");
        let later = FeedPosition {
            number: position.number + 1,
            ..position
        };
        assert!(!is_known(later), "{later}");
    }
    let future = FeedPosition {
        number: u64::MAX,
        ..end_of_feed(&admin)
    };
    assert!(!is_known(future));
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Admin::init(elsewhere.path()).unwrap();
    assert!(
        !is_known(end_of_feed(&other)),
        "the beginning of another archive"
    );
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([from.join("admin"), from.join(STAMP)])
        .arg(to)
        .status();
    assert!(copied.unwrap().success());
}

/// Fails if a follower of the archive before its admin data were put back from a backup misses what came instead.
#[test]
fn diverged_backup_knows_only_common_positions() {
    let directory = tempfile::tempdir().unwrap();
    let backup = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    put(&admin, &row("a", 1));
    put(&admin, &row("b", 2));
    let common = end_of_feed(&admin);
    copy(directory.path(), backup.path());
    put(&admin, &row("c", 3));
    let lost = end_of_feed(&admin);

    let again = Admin::open(backup.path()).unwrap();
    assert_eq!(end_of_feed(&again), common);
    assert!(!again.is_in_feed(lost).unwrap(), "it is beyond the end");
    put(&again, &row("d", 4));
    put(&again, &row("e", 5));
    assert!(end_of_feed(&again).number > lost.number);
    assert!(again.is_in_feed(common).unwrap());
    assert!(
        !again.is_in_feed(lost).unwrap(),
        "there it was another file"
    );
}

/// Fails if a kill, whenever it comes, leaves a file that stands without its change, or a change twice.
#[test]
fn kill_leaves_files_and_feed_alike() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    for number in 1..6 {
        let row = row(&format!("f-{number}"), number);
        let is_told = number % 2 == 0;
        if is_told {
            put(&admin, &row);
        } else {
            put_unstamped(&admin, &row);
        }
        let image = tempfile::tempdir().unwrap();
        copy(directory.path(), image.path());
        let killed = Admin::open(image.path()).unwrap();
        let names: Vec<_> = changes(&killed).into_iter().map(|(_, name)| name).collect();
        let standing = killed.list_files(None).unwrap();
        let standing: Vec<_> = standing
            .map(|row| row.unwrap().record.name.to_string())
            .collect();
        assert_eq!(names, standing);
        assert_eq!(all(&killed), all(&admin), "the same positions");
        assert_eq!(end_of_feed(&killed).number, u64::from(number));
        put(&killed, &self::row("next", 9));
        assert_eq!(end_of_feed(&killed).number, u64::from(number) + 1);
    }
}

/// Fails if admin data that were restored take positions of the lost ones for their own.
#[test]
fn restored_admin_data_begin_another_feed() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let begin = end_of_feed(&admin);
    put(&admin, &row("a", 1));
    let end = end_of_feed(&admin);
    drop(admin);
    std::fs::remove_dir_all(directory.path().join("admin")).unwrap();
    let mut restoring = AdminRestore::begin_restore(directory.path()).unwrap();
    restoring.restore_file(&row("a", 1)).unwrap();
    restoring.finish_restore(Timestamp::UNIX_EPOCH).unwrap();

    let admin = Admin::open(directory.path()).unwrap();
    assert_eq!(changes(&admin), []);
    for position in [begin, end] {
        assert!(!admin.is_in_feed(position).unwrap(), "{position}");
    }
    put(&admin, &row("a", 1));
    assert_eq!(changes(&admin), [], "it stood before");
    put(&admin, &row("b", 2));
    assert!(!admin.is_in_feed(end).unwrap(), "number 1 is another one");
    assert_eq!(changes(&admin), [(ChangeKind::Stored, "b".to_owned())]);
}
