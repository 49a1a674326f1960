//! `check`, `anomalies` and `repair`: their output and their exit codes.

use std::os::unix::fs::FileExt;

use proto_archive::wire::anomaly_state::{Finder, State};
use proto_archive::wire::check_response::{Progress, Report, Step};
use proto_archive::wire::repair_response::Outcome;
use proto_archive::wire::{
    AnomaliesResponse, AnomalyCount, AnomalyKind, AnomalyState, CheckResponse, Gap, GroupRange,
    RepairResponse,
};
use tonic::Status;

use crate::holdfast::{Place, Ran};

pub fn anomaly(file: &str, kind: AnomalyKind) -> AnomalyState {
    AnomalyState {
        id: "17".into(),
        file: file.into(),
        replica: "two".into(),
        kind: kind.into(),
        since: "2026-01-02T03:04:05Z".into(),
        state: State::Open.into(),
        found_by: Finder::Scrub.into(),
        size: 160_000,
        ..AnomalyState::default()
    }
}

fn corrupt(file: &str) -> AnomalyState {
    let range = |start, end| GroupRange { start, end };
    AnomalyState {
        groups: vec![range(3, 4), range(7, 10)],
        ..anomaly(file, AnomalyKind::Corrupt)
    }
}

fn step(step: Step) -> CheckResponse {
    CheckResponse { step: Some(step) }
}

fn report(replica: &str, wrong: &[(AnomalyKind, u64)], gaps: Vec<Gap>) -> CheckResponse {
    step(Step::Report(Report {
        replica: replica.into(),
        files: 3,
        intact: 2,
        withdrawn: 0,
        not_stored: 0,
        anomalies: wrong
            .iter()
            .map(|(kind, count)| AnomalyCount {
                kind: (*kind).into(),
                count: *count,
            })
            .collect(),
        gaps,
    }))
}

fn gap() -> Gap {
    Gap {
        replica: "two".into(),
        node: "n-2".into(),
        volume: String::new(),
        reason: "silent".into(),
    }
}

fn check(place: &Place, answers: Vec<CheckResponse>, words: &[&str]) -> Ran {
    place.world.archive.state().keeping.check.say(answers);
    place.holdfast(&[&["check"], words, &["--as", "officer"]].concat())
}

/// Fails if a check leaves a replica or an anomaly out of its lines or its JSON, or writes progress among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_prints_anomalies_and_summary_per_replica() {
    let place = Place::new().await;
    let all = || {
        let progress = Progress {
            replica: "two".into(),
            files: 1,
            ..Progress::default()
        };
        vec![
            step(Step::Progress(progress)),
            step(Step::Anomaly(corrupt("a b"))),
            report("one", &[], vec![]),
            report("two", &[(AnomalyKind::Corrupt, 1)], vec![]),
        ]
    };
    let ran = check(&place, all(), &["files"]).expect(1);
    let expected = "corrupt      a b  two  groups 3,7-9 (bytes 49152-65535,114688-159999)\n\
                    replica one: 3 files, 2 intact\n\
                    replica two: 3 files, 2 intact; 1 corrupt\n";
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (expected, ""));
    let said = check(&place, all(), &["files", "--json"]).expect(1).json();
    assert_eq!(
        (&said["complete"], &said["open"]),
        (&true.into(), &1.into())
    );
    assert_eq!(
        said["anomalies"][0]["groups"],
        serde_json::json!([[3, 4], [7, 10]])
    );
    assert_eq!(said["replicas"][1]["anomalies"]["corrupt"], 1);

    let good = || vec![report("one", &[], vec![]), report("two", &[], vec![])];
    check(&place, good(), &["checksums"]).expect(0);
    let said = check(&place, good(), &["checksums", "--json"])
        .expect(0)
        .json();
    assert_eq!(
        (&said["complete"], &said["anomalies"]),
        (&true.into(), &serde_json::json!([]))
    );
}

/// Fails if a check with a gap, one that was cut, or one that counts more than it listed exits with 0 or calls itself
/// complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_is_not_whole_says_so() {
    let place = Place::new().await;
    let partial = || vec![report("two", &[], vec![gap()])];
    let ran = check(&place, partial(), &["files", "--replica", "two"]).expect(1);
    assert!(ran.out.contains("NOT COMPLETE"), "{ran:?}");
    assert!(
        ran.err
            .contains("not checked: replica two, node n-2: silent"),
        "{ran:?}"
    );
    let said = check(&place, partial(), &["files", "--json"])
        .expect(1)
        .json();
    assert_eq!(
        (&said["complete"], &said["open"]),
        (&false.into(), &0.into())
    );

    let cut = || vec![step(Step::Anomaly(anomaly("a", AnomalyKind::Missing)))];
    let ran = check(&place, cut(), &["files"]).expect(4);
    assert!(
        ran.err.contains("not complete") && ran.out.contains("missing"),
        "{ran:?}"
    );
    let said = check(&place, cut(), &["files", "--json"]).expect(4).json();
    assert_eq!(
        (&said["complete"], &said["error"]["class"]),
        (&false.into(), &"unreachable".into())
    );

    let more = vec![report("two", &[(AnomalyKind::Missing, 2)], vec![])];
    let ran = check(&place, more, &["files"]).expect(1);
    assert!(
        ran.err.contains("2 further anomalies that were not shown"),
        "{ran:?}"
    );
    let accepted = AnomalyState {
        state: State::Accepted.into(),
        ..anomaly("a", AnomalyKind::Lost)
    };
    let lived_with = vec![
        step(Step::Anomaly(accepted)),
        report("two", &[(AnomalyKind::Lost, 1)], vec![]),
    ];
    let ran = check(&place, lived_with, &["files"]).expect(0);
    assert!(ran.out.contains("[accepted]"), "{ran:?}");
}

/// Fails if an empty or absent list of names leads to a check of all files, or if a list of a terabyte is read into
/// memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_asks_only_for_named_files() {
    let place = Place::new().await;
    place.write("names", "a\nMåned 1.warc\n".as_bytes());
    let good = || vec![report("two", &[], vec![])];
    let words = [
        "checksums",
        "b",
        "--names",
        "names",
        "--replica",
        "two",
        "--challenge",
    ];
    check(&place, good(), &words).expect(0);
    let asked = place
        .world
        .archive
        .state()
        .keeping
        .check
        .asked
        .pop()
        .unwrap();
    assert_eq!(asked.names, ["b", "a", "Måned 1.warc"]);
    assert_eq!((asked.replica.as_str(), asked.challenge), ("two", true));
    place.write("empty", b"\n");
    for words in [
        ["files", "--names", "empty"],
        ["files", "--names", "absent"],
        ["files", "../a", "b"],
        ["files", "--replica", "No 1"],
        ["everything", "a", "b"],
    ] {
        check(&place, good(), &words).usage();
    }
    let huge = place.write("huge", b"");
    let file = std::fs::File::options().write(true).open(huge).unwrap();
    file.write_all_at(b"a\n", 0).unwrap();
    file.set_len(1 << 40).unwrap();
    check(&place, good(), &["files", "--names", "huge"]).usage();
    assert_eq!(
        place.world.archive.state().keeping.check.asked.len(),
        0,
        "nothing was asked"
    );
}

/// Fails if a person of the wrong role does not learn which role it takes and how to act in it, or if an archive
/// without checks passes one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denied_caller_learns_role_and_old_archive_fails() {
    let place = Place::new().await;
    let ran = place.holdfast(&["check", "files"]).expect(5);
    for part in [
        "is for officer",
        "harvester/anna",
        "custodian/cus-1",
        "--as",
    ] {
        assert!(ran.err.contains(part), "{part}: {ran:?}");
    }
    let ran = place
        .holdfast(&["check", "files", "--as", "officer", "--json"])
        .expect(1);
    assert!(
        ran.err
            .contains("does not offer checks; it runs an older version"),
        "{ran:?}"
    );
    assert_eq!(ran.json()["error"]["class"], "failed");
}

/// Fails if a closed anomaly counts as an open one, or if one of a kind that this release does not know is passed over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anomalies_are_open_until_they_end() {
    let place = Place::new().await;
    let list = |anomalies: Vec<AnomalyState>, words: &[&str]| {
        place
            .world
            .archive
            .state()
            .keeping
            .anomalies
            .say([AnomaliesResponse { anomalies }]);
        place.holdfast(&[&["anomalies", "--as", "operator"], words].concat())
    };
    let closed = AnomalyState {
        state: State::Closed.into(),
        ended: "2026-01-03T00:00:00Z".into(),
        ended_why: "repaired".into(),
        ..anomaly("a", AnomalyKind::Missing)
    };
    let ran = list(vec![corrupt("a"), closed.clone()], &["--all"]).expect(1);
    let expected = "17  2026-01-02T03:04:05Z  scrub  corrupt      a  two  groups 3,7-9 (bytes 49152-65535,114688-159999)\n\
                    17  2026-01-02T03:04:05Z  scrub  missing      a  two [closed 2026-01-03T00:00:00Z: repaired]\n";
    assert_eq!(ran.out, expected);
    list(vec![closed], &["--all", "--file", "a"]).expect(0);
    let asked = place
        .world
        .archive
        .state()
        .keeping
        .anomalies
        .asked
        .pop()
        .unwrap();
    assert_eq!((asked.all, asked.file.as_str()), (true, "a"));
    let said = list(vec![], &["--json"]).expect(0).json();
    assert_eq!(
        (&said["open"], &said["complete"]),
        (&0.into(), &true.into())
    );
    let newer = AnomalyState {
        kind: 99,
        ..anomaly("a", AnomalyKind::Lost)
    };
    list(vec![newer], &[]).expect(1);
    list(vec![], &["--all", "accept", "17", "--reason", "x"]).usage();
}

fn repair(outcome: Outcome, file: &str) -> RepairResponse {
    RepairResponse {
        outcome: outcome.into(),
        anomaly: Some(corrupt(file)),
        what: "4 groups from one".into(),
        bytes_moved: 66_000,
        ..RepairResponse::default()
    }
}

/// Fails if a repair that leaves a file lost, failed or waiting exits with 0, or if a dry run passes off a done step as
/// planned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_says_what_became_of_each() {
    let place = Place::new().await;
    let run = |answers: Vec<RepairResponse>, words: &[&str]| {
        place.world.archive.state().keeping.repair.say(answers);
        place.holdfast(&[&["repair", "--as", "officer"], words].concat())
    };
    let progress = RepairResponse {
        bytes_verified: 7,
        ..repair(Outcome::Progress, "a")
    };
    let ran = run(
        vec![progress, repair(Outcome::Repaired, "a")],
        &["a", "--reason", "why"],
    )
    .expect(0);
    let expected = "repaired  corrupt      a  two  groups 3,7-9 (bytes 49152-65535,114688-159999) -> \
                    4 groups from one, 66.0 kB moved\n1 repaired; 66.0 kB moved\n";
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (expected, ""));
    let asked = place
        .world
        .archive
        .state()
        .keeping
        .repair
        .asked
        .pop()
        .unwrap();
    assert_eq!((asked.all, asked.reason.as_str()), (false, "why"));
    for (outcome, word, code) in [
        (Outcome::Lost, "lost", 1),
        (Outcome::Failed, "failed", 1),
        (Outcome::Waiting, "waiting", 1),
        (Outcome::Officer, "officer", 1),
        (Outcome::Nothing, "nothing", 0),
    ] {
        let said = run(vec![repair(outcome, "a")], &["--all", "--json"])
            .expect(code)
            .json();
        assert_eq!(said["outcomes"][word], 1, "{said}");
    }
    let ran = run(vec![], &["--all", "--dry-run"]).expect(0);
    assert_eq!(ran.out, "nothing is filed that could be repaired\n");
    run(
        vec![repair(Outcome::Repaired, "a")],
        &["--all", "--dry-run"],
    )
    .expect(1);
    for words in [
        &[] as &[&str],
        &["a", "--all"],
        &["--all", "--confirm", "0"],
        &["a", "--reason", " "],
    ] {
        run(vec![], words).usage();
    }
}

/// Fails if the words with which the archive explains its brake do not reach the person, or the exit code is not that
/// of a refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_brake_says_which_command_confirms() {
    let place = Place::new().await;
    let said = "31 files are more than 20; look why, then `holdfast repair --all --confirm 31`";
    let brake = Status::failed_precondition(said);
    place
        .world
        .archive
        .state()
        .keeping
        .repair
        .fail(vec![], brake);
    let ran = place
        .holdfast(&["repair", "--all", "--as", "officer"])
        .expect(5);
    assert_eq!(
        (ran.out.as_str(), ran.err),
        ("", format!("holdfast: {said}\n"))
    );
    let ran = place
        .holdfast(&["repair", "a", "--as", "officer", "--json"])
        .expect(5);
    assert_eq!(ran.json()["error"]["class"], "refused");
    let bare = RepairResponse {
        anomaly: Some(AnomalyState {
            file: "a".into(),
            ..AnomalyState::default()
        }),
        what: "a: nothing is filed of it".into(),
        ..repair(Outcome::Nothing, "a")
    };
    place.world.archive.state().keeping.repair.say([bare]);
    let ran = place
        .holdfast(&["repair", "a", "--as", "officer"])
        .expect(0);
    assert!(
        ran.out.starts_with("nothing   a: nothing is filed of it"),
        "{ran:?}"
    );
}
