//! Files are added, replaced, hidden, shown and deleted: all at once, and through every cut.

use archive_formats::cdx::Capture;

use super::{add, capture, empty, everything, of_file, open, sorted};
use crate::{CaptureIndex, CheckPoint, FileProgress, FollowPosition, IndexCounts};

fn state(position: u64) -> FollowPosition {
    FollowPosition {
        feed: "one".to_owned(),
        position,
    }
}

/// Removes the rows that no query shows, and returns how many they were.
fn sweep(captures: &CaptureIndex) -> u64 {
    let mut removed = 0;
    for _ in 0..10_000 {
        let swept = captures.sweep_rows(1000).unwrap();
        removed += swept.removed;
        if swept.is_complete {
            assert_eq!(
                captures.sweep_rows(1000).unwrap().read,
                0,
                "nothing is left"
            );
            return removed;
        }
    }
    panic!("the sweep does not end");
}

fn names(names: impl Iterator<Item = Result<String, crate::DbError>>) -> Vec<String> {
    names.map(Result::unwrap).collect()
}

/// Enough captures for several batches.
const MANY: u64 = 30_000;

/// Fails if a writer that was cut off at any point is seen, or what it wrote stays after a sweep.
#[test]
fn cut_off_file_is_invisible_and_swept() {
    for (before, pushed) in [(0, 1), (0, MANY), (10, 1), (10, MANY)] {
        let (memory, captures) = empty();
        let old = of_file("a", before);
        if before > 0 {
            add(&captures, "a", &old);
        }
        let mut writer = captures.begin_file("a").unwrap();
        for capture in of_file("a", pushed) {
            writer.push_capture(&capture).unwrap();
        }
        assert_eq!(everything(&captures), sorted(old.clone()), "while written");
        assert_eq!(sweep(&captures), 0, "the writer continues");
        drop((writer, captures));
        let captures = open(&memory);
        assert_eq!(everything(&captures), sorted(old.clone()), "cut off");
        assert_eq!(captures.counts().captures, before);
        let removed = sweep(&captures);
        assert!(
            removed < pushed && (removed > 0) == (pushed == MANY),
            "{removed}"
        );
        assert_eq!(everything(&captures), sorted(old));
        let new = of_file("a", MANY / 2);
        add(&captures, "a", &new);
        drop(captures);
        let captures = open(&memory);
        assert_eq!(everything(&captures), sorted(new));
        assert_eq!(sweep(&captures), before);
        assert_eq!(
            captures.verify().unwrap(),
            MANY / 2 + 4,
            "and four rows beside them"
        );
    }
}

/// Fails if a sweep takes away rows of a file that is written while it runs.
#[test]
fn sweep_leaves_what_is_being_written() {
    let (_memory, captures) = empty();
    add(&captures, "a", &of_file("a", 5000));
    captures.delete_file("a").unwrap();
    assert!(!captures.sweep_rows(100).unwrap().is_complete);
    let mut writer = captures.begin_file("b").unwrap();
    let new = of_file("b", MANY);
    for (number, capture) in new.iter().enumerate() {
        writer.push_capture(capture).unwrap();
        if number % 1000 == 0 {
            captures.sweep_rows(100).unwrap();
        }
    }
    writer.complete_file(None).unwrap();
    assert!(sweep(&captures) > 0);
    assert_eq!(everything(&captures), sorted(new));
}

/// Fails if old and new captures of a file are seen together, or the old ones come back.
#[test]
fn second_reading_replaces_the_first() {
    let (memory, captures) = empty();
    add(&captures, "a", &of_file("a", 100));
    add(&captures, "b", &of_file("b", 3));
    let mut writer = captures.begin_file("a").unwrap();
    writer
        .push_capture(&capture("http://new.dk/", "20210101000000", 5))
        .unwrap();
    assert_eq!(everything(&captures).len(), 103);
    assert_eq!(writer.complete_file(Some(state(7))), Ok(1));
    let all = everything(&captures);
    assert_eq!(all.len(), 4);
    assert_eq!(captures.follow_position(), Ok(Some(state(7))));
    drop(captures);
    let captures = open(&memory);
    assert_eq!(everything(&captures), all);
    assert_eq!(captures.follow_position(), Ok(Some(state(7))));
    assert_eq!(sweep(&captures), 100);
    assert_eq!(everything(&captures), all);
}

/// Fails if a withdrawn file is seen, does not come back as it was, or is seen once it was read again.
#[test]
fn withdrawn_file_hides_and_comes_back() {
    let (memory, captures) = empty();
    add(&captures, "a", &of_file("a", 10));
    add(&captures, "b", &of_file("b", 10));
    let all = everything(&captures);
    let b = sorted(of_file("b", 10));
    captures.withdraw_file("a").unwrap();
    for captures in [captures.clone(), captures] {
        assert_eq!(everything(&captures), b);
        assert_eq!(
            (captures.counts().captures, captures.counts().withdrawn),
            (10, 1)
        );
        let entry = captures.file_entry("a").unwrap().unwrap();
        assert!(entry.is_withdrawn && entry.captures == 10);
    }
    let captures = open(&memory);
    assert_eq!(everything(&captures), b);
    assert_eq!(sweep(&captures), 0, "it is kept");
    captures.reinstate_file("a").unwrap();
    assert_eq!(everything(&captures), all);
    captures.withdraw_file("a").unwrap();
    add(&captures, "a", &of_file("a", 20));
    assert_eq!(everything(&captures), b, "read again, and still withdrawn");
    captures.reinstate_file("a").unwrap();
    assert_eq!(everything(&captures).len(), 30);
    assert_eq!(captures.counts().captures, 30);
}

/// Fails if the queue forgets a file, keeps one that is done, or asks for one that is withdrawn.
#[test]
fn queue_has_files_that_wait() {
    let (memory, captures) = empty();
    let mut update = captures.update_files();
    for name in ["c", "a", "b", "d", "e"] {
        update.set_progress(name, FileProgress::PENDING);
    }
    update.set_note("a", Some("root".to_owned()));
    update
        .withdraw_file("b")
        .withdraw_file("unheard")
        .set_position(state(5));
    assert_eq!(
        captures.counts(),
        IndexCounts::default(),
        "not yet committed"
    );
    update.commit().unwrap();
    add(&captures, "c", &of_file("c", 2));
    add(&captures, "d", &[]);
    let parked = FileProgress::Parked {
        attempts: 3,
        reason: "damaged".to_owned(),
    };
    let mut update = captures.update_files();
    update.set_progress("e", parked.clone());
    update.commit().unwrap();
    let check = |captures: &CaptureIndex| {
        assert_eq!(names(captures.pending_files().unwrap()), ["a"]);
        assert_eq!(names(captures.parked_files().unwrap()), ["e"]);
        let counts = IndexCounts {
            pending: 1,
            indexed: 1,
            nothing_to_index: 1,
            parked: 1,
            withdrawn: 2,
            captures: 2,
            ..IndexCounts::default()
        };
        assert_eq!(captures.counts(), counts);
        let entry = captures.file_entry("a").unwrap().unwrap();
        assert_eq!(
            (entry.progress, entry.note.as_deref()),
            (FileProgress::PENDING, Some("root"))
        );
        assert_eq!(captures.file_entry("e").unwrap().unwrap().progress, parked);
        assert_eq!(
            captures.file_entry("d").unwrap().unwrap().progress,
            FileProgress::NothingToIndex
        );
        assert_eq!(captures.file_entry("nothing"), Ok(None));
        let files = captures.list_files(Some("b")).unwrap();
        assert_eq!(
            names(files.map(|file| file.map(|file| file.name))),
            ["c", "d", "e", "unheard"]
        );
        assert_eq!(captures.follow_position(), Ok(Some(state(5))));
    };
    check(&captures);
    drop(captures);
    check(&open(&memory));
}

/// Fails if changes of one batch undo each other wrongly, or the counts drift.
#[test]
fn changes_of_a_batch_take_effect_in_order() {
    let (memory, captures) = empty();
    add(&captures, "a", &of_file("a", 4));
    let mut update = captures.update_files();
    update
        .withdraw_file("a")
        .delete_file("a")
        .set_progress("a", FileProgress::PENDING);
    update
        .delete_file("b")
        .set_note("c", None)
        .reinstate_file("c");
    update.commit().unwrap();
    assert_eq!(everything(&captures), []);
    assert_eq!(names(captures.pending_files().unwrap()), ["a", "c"]);
    let entry = captures.file_entry("a").unwrap().unwrap();
    assert_eq!((entry.captures, entry.is_withdrawn), (0, false));
    let counts = captures.counts();
    assert_eq!((counts.pending, counts.captures), (2, 0));
    drop(captures);
    assert_eq!(open(&memory).counts(), counts);
}

/// Fails if a file that is deleted leaves rows, or one that is stored again does not count.
#[test]
fn deleted_file_leaves_nothing() {
    let (memory, captures) = empty();
    for round in 1..4 {
        add(&captures, "a", &of_file("a", 50));
        assert_eq!(everything(&captures).len(), 50);
        captures.delete_file("a").unwrap();
        assert_eq!(everything(&captures), []);
        assert_eq!(captures.counts(), IndexCounts::default());
        if round % 2 == 0 {
            assert_eq!(sweep(&captures), 100);
            assert_eq!(captures.verify().unwrap(), 2);
        }
    }
    drop(captures);
    assert_eq!(everything(&open(&memory)), []);
}

/// Fails if a comparison of the index with a file cannot see a difference.
#[test]
fn stored_captures_can_be_compared() {
    let (_memory, captures) = empty();
    let all = of_file("a", 30);
    add(&captures, "a", &all);
    captures.withdraw_file("a").unwrap();
    for capture in &all {
        assert_eq!(
            captures.find_capture("a", capture, 0).unwrap().as_ref(),
            Some(capture)
        );
        let mut other = capture.clone();
        other.offset = Some(1);
        assert_eq!(captures.find_capture("a", &other, 0), Ok(None));
        other.offset = None;
        assert_eq!(captures.find_capture("a", &other, 0), Ok(None));
        assert_eq!(captures.find_capture("b", capture, 0), Ok(None));
    }
}

/// Fails if a capture that a file only names is shown elsewhere than at its record, or although the file that has the
/// record is not in the archive, or withdrawn; or if a check does not read it.
#[test]
fn logged_capture_is_shown_at_its_record() {
    let (_memory, captures) = empty();
    let mut told_of = capture("http://a.dk/", "20210101000000", 0);
    told_of.offset = None;
    told_of.original_record = Some(archive_formats::cdx::OriginalRecord {
        length: None,
        offset: Some(700),
        file: Some("old.arc".to_owned()),
    });
    let mut expected = told_of.clone();
    expected.original_record = None;
    expected.offset = Some(700);
    expected.file = Some("old.arc".to_owned());
    // An imported line is as it was, whatever the archive has.
    let mut set = captures.begin_import("set").unwrap();
    set.push_capture(&told_of).unwrap();
    set.complete_import().unwrap();
    let imported = everything(&captures);
    assert_eq!(imported.len(), 1);
    add(&captures, "1-metadata-1.arc", &[told_of.clone(), told_of]);
    assert_eq!(everything(&captures), imported, "no file has its record");
    let mut update = captures.update_files();
    update.set_progress("old.arc", FileProgress::PENDING);
    update.commit().unwrap();
    let shown = || {
        let shown = everything(&captures).into_iter();
        shown
            .filter(|found| found.offset.is_some())
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(), [expected.clone(), expected.clone()]);
    captures.withdraw_file("old.arc").unwrap();
    assert_eq!(everything(&captures), imported);
    captures.reinstate_file("old.arc").unwrap();
    assert_eq!(shown().len(), 2);
    let mut point = CheckPoint::default();
    assert_eq!(captures.check_rows(&mut point, 2), Ok(false));
    assert_eq!(captures.check_rows(&mut point, 2), Ok(true));
    assert_eq!(point, CheckPoint::default(), "it begins anew");
}

/// Fails if a key made by older rules, or a foreign file name, gets into the index.
#[test]
fn keys_and_names_are_made_again() {
    let (_memory, captures) = empty();
    let mut foreign = capture("http://www.A.dk/B", "20200101000000", 0);
    foreign.key = "old".to_owned();
    foreign.file = Some("other".to_owned());
    add(&captures, "a", &[foreign]);
    let [found]: [Capture; 1] = everything(&captures).try_into().unwrap();
    assert_eq!(
        (found.key.as_str(), found.file.as_deref()),
        ("dk,a)/b", Some("a"))
    );
}

/// Fails if files are seen after they were forgotten, or imported sets are forgotten with them.
#[test]
fn forgotten_files_leave_sets() {
    let (memory, captures) = empty();
    add(&captures, "a", &of_file("a", 40));
    let mut import = captures.begin_import("set").unwrap();
    import.push_capture(&of_file("x", 1)[0]).unwrap();
    import.complete_import().unwrap();
    let mut update = captures.update_files();
    update
        .set_progress("b", FileProgress::PENDING)
        .set_position(state(9));
    update.commit().unwrap();
    captures.forget_files().unwrap();
    let check = |captures: &CaptureIndex| {
        assert_eq!(everything(captures), of_file("x", 1));
        assert_eq!(captures.follow_position(), Ok(None));
        assert_eq!(captures.list_files(None).unwrap().count(), 0);
        assert_eq!(captures.pending_files().unwrap().count(), 0);
        let counts = captures.counts();
        assert_eq!(
            (counts.sets, counts.set_captures, counts.captures),
            (1, 1, 0)
        );
    };
    check(&captures);
    drop(captures);
    check(&open(&memory));
    let captures = open(&memory);
    assert_eq!(sweep(&captures), 40);
    assert_eq!(everything(&captures), of_file("x", 1));
}
