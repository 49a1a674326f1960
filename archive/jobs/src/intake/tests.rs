//! Each way to lie, and that who does not is believed.

use archive_model::{FailureKind, FileFailure, NameList, NamePattern, NodeId, Root, VolumeId};

use super::*;

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn pattern(text: &str) -> FileSelection {
    FileSelection::Pattern(NamePattern::parse(text).unwrap())
}

fn outcome(file: &str, output: u64) -> FileOutcome {
    FileOutcome {
        name: name(file),
        node: NodeId::new("n").unwrap(),
        volume: VolumeId::new("v").unwrap(),
        root: Root::from_bytes([1; 32]),
        size: 1,
        records: 0,
        output,
        failures: Vec::new(),
        more_failures: 0,
    }
}

fn failure(reason: String) -> FileFailure {
    FileFailure {
        kind: FailureKind::Job,
        offset: None,
        reason,
    }
}

fn run() -> Intake {
    Intake::new(Some(name("b")), FileSelection::default(), 10, 100)
}

#[test]
fn an_honest_run_is_believed() {
    let mut run = Intake::new(Some(name("b")), pattern("[b-e]"), 10, 15);
    run.output(2).unwrap();
    run.output(0).unwrap();
    run.output(3).unwrap();
    run.done(&outcome("c", 5)).unwrap();
    run.done(&outcome("e", 0)).unwrap();
    run.end(2).unwrap();
}

#[test]
fn names_come_in_order_and_after_what_is_there() {
    for (first, second) in [("c", "c"), ("d", "c"), ("c", "b")] {
        let mut run = run();
        run.done(&outcome(first, 0)).unwrap();
        let lie = run.done(&outcome(second, 0)).unwrap_err();
        assert!(matches!(lie, Lie::Order { .. }), "{lie}");
    }
    for early in ["a", "b"] {
        assert!(matches!(
            run().done(&outcome(early, 0)),
            Err(Lie::Order { .. })
        ));
    }
    let mut asked = Intake::new(None, pattern("a.*"), 0, 1);
    assert_eq!(asked.done(&outcome("b", 0)), Err(Lie::Unasked(name("b"))));
    // A node of an older release reads every file.
    let names = NameList::new(vec![name("a"), name("c")]).unwrap();
    let mut listed = Intake::new(None, FileSelection::Names(names), 0, 1);
    listed.done(&outcome("a", 0)).unwrap();
    assert_eq!(listed.done(&outcome("b", 0)), Err(Lie::Unasked(name("b"))));
}

#[test]
fn what_is_announced_must_come_and_no_more_than_may() {
    let mut short = run();
    short.output(4).unwrap();
    assert!(matches!(
        short.done(&outcome("c", 5)),
        Err(Lie::Length {
            said: 5,
            came: 4,
            ..
        })
    ));
    assert!(run().done(&outcome("c", 1)).is_err());
    let mut much = run();
    much.output(90).unwrap();
    assert_eq!(much.output(1), Err(Lie::TooMuch(100)));
    assert_eq!(run().output(u64::MAX), Err(Lie::TooMuch(100)));
}

#[test]
fn what_nobody_has_read_takes_nothing_of_what_may_be_written() {
    let unread = |kinds: &[FailureKind]| {
        let mut one = outcome("c", 90);
        one.failures = kinds
            .iter()
            .map(|kind| FileFailure {
                kind: *kind,
                ..failure("x".to_owned())
            })
            .collect();
        let mut run = run();
        run.output(90).unwrap();
        run.done(&one).unwrap();
        let is_free = run.output(90).is_ok();
        assert_eq!(is_unread(&one), is_free, "{kinds:?}");
        is_free
    };
    assert!(unread(&[FailureKind::Unread]));
    assert!(unread(&[FailureKind::Unread, FailureKind::Unread]));
    assert!(!unread(&[]));
    assert!(!unread(&[FailureKind::Damaged]));
    assert!(!unread(&[FailureKind::Unread, FailureKind::Job]));
}

#[test]
fn an_end_must_be_one() {
    let mut run = run();
    run.output(1).unwrap();
    assert_eq!(run.end(0), Err(Lie::Cut));
    run.done(&outcome("c", 1)).unwrap();
    for said in [0, 2, u64::MAX] {
        assert_eq!(run.end(said), Err(Lie::Count { said, came: 1 }));
    }
    run.end(1).unwrap();
    assert_eq!(run.end(1), Err(Lie::AfterEnd));
    assert_eq!(run.output(1), Err(Lie::AfterEnd));
    assert_eq!(run.done(&outcome("d", 0)), Err(Lie::AfterEnd));
}

#[test]
fn failures_are_bounded() {
    let with = |count: usize, length: usize, more: u64| {
        let mut one = outcome("c", 0);
        one.failures = vec![failure("ä".repeat(length)); count];
        one.more_failures = more;
        run().done(&one)
    };
    assert_eq!(with(MOST_FAILURES, LONGEST_REASON, 7), Ok(()));
    assert!(with(MOST_FAILURES + 1, 1, 0).is_err());
    assert!(with(1, LONGEST_REASON + 1, 0).is_err());
    assert!(with(0, 0, 1).is_err());
}
