//! `scrub`, `admin export` and `notify test`.

use proto_archive::wire::scrub_request::Order as Scrub;
use proto_archive::wire::scrub_state::Activity;
use proto_archive::wire::{
    ExportResponse, Gap, NotifyTestResponse, ScrubState, ScrubsResponse, scrubs_response,
};
use tonic::Status;

use crate::holdfast::Place;

/// Fails if a pause or a rate reaches the archive as another one than was typed, or if a node that was not reached
/// passes for obeying.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scrub_orders_reach_the_archive_unchanged() {
    let place = Place::new().await;
    let scrub = |gaps: Vec<Gap>, words: &[&str]| {
        let one = scrubs_response::One {
            replica: "two".into(),
            state: Some(ScrubState {
                node: "two-1".into(),
                activity: Activity::Paused.into(),
                paused_until: "2026-01-02T03:04:05Z".into(),
                bytes_per_second: 20_000_000,
                due: 3,
                ..ScrubState::default()
            }),
        };
        let answer = ScrubsResponse {
            scrubs: vec![one],
            gaps,
        };
        place.world.archive.state().keeping.scrubs.say([answer]);
        let ran = place.holdfast(&[&["scrub"], words, &["--as", "operator"]].concat());
        (ran, place.world.archive.state().keeping.scrubs.asked.pop())
    };
    let (ran, asked) = scrub(vec![], &["status", "--replica", "two"]);
    let ran = ran.expect(0);
    assert!(
        ran.out
            .contains("paused until 2026-01-02T03:04:05Z  20.0 MB/s    3"),
        "{ran:?}"
    );
    let asked = asked.unwrap();
    assert_eq!(
        (asked.replica.as_str(), asked.order.unwrap().order()),
        ("two", Scrub::Unspecified)
    );
    let order = |words: &[&str]| {
        let (ran, asked) = scrub(vec![], words);
        ran.expect(0);
        let order = asked.unwrap().order.unwrap();
        (order.order(), order.pause_seconds, order.bytes_per_second)
    };
    assert_eq!(order(&["pause", "--for", "2 h"]), (Scrub::Pause, 7200, 0));
    assert_eq!(order(&["pause"]), (Scrub::Pause, 0, 0));
    assert_eq!(order(&["resume", "--node", "two-1"]), (Scrub::Resume, 0, 0));
    assert_eq!(
        order(&["throttle", "20 MB"]),
        (Scrub::Throttle, 0, 20_000_000)
    );
    assert_eq!(
        order(&["throttle", "--replica", "two"]),
        (Scrub::Throttle, 0, 0)
    );
    for words in [
        &["pause", "--for", "0 s"][..],
        &["throttle", "0"],
        &["throttle", "-1"],
        &["stop"],
    ] {
        scrub(vec![], words).0.usage();
    }
    let gap = Gap {
        replica: "one".into(),
        reason: "silent".into(),
        ..Gap::default()
    };
    let ran = scrub(vec![gap], &["pause", "--json"]).0.expect(1);
    assert_eq!(ran.json()["scrubs"][0]["state"], "paused");
    assert!(
        ran.err.contains("not asked: replica one: silent"),
        "{ran:?}"
    );
    place
        .world
        .archive
        .state()
        .keeping
        .scrubs
        .say([ScrubsResponse::default()]);
    let ran = place
        .holdfast(&["scrub", "status", "--node", "n-9", "--as", "officer"])
        .expect(1);
    assert!(ran.err.contains("no such node"), "{ran:?}");
}

/// Fails if an export that was cut, even within a line, leaves a file, or replaces one without `--force`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_file_is_whole_or_absent() {
    let place = Place::new().await;
    let part = |lines: &'static str| ExportResponse {
        lines: lines.as_bytes().into(),
    };
    let export = |words: &[&str]| {
        place.holdfast(&[&["admin", "export", "--as", "operator"], words].concat())
    };
    let whole = || [part("{\"a\":1}\n{}\n"), part("{}\n")];
    place.world.archive.state().keeping.export.say(whole());
    assert_eq!(export(&[]).expect(0).out, "{\"a\":1}\n{}\n{}\n");
    assert_eq!(export(&["-o", "all"]).expect(0).out, "all  3 lines, 14 B\n");
    assert_eq!(place.read("all"), b"{\"a\":1}\n{}\n{}\n");
    export(&["-o", "all"]).expect(5);
    assert_eq!(
        export(&["-o", "all", "--force", "--json"]).expect(0).json()["lines"],
        3
    );
    assert!(
        export(&["--json"])
            .expect(2)
            .err
            .contains("name a file with -o")
    );
    place
        .world
        .archive
        .state()
        .keeping
        .export
        .fail(whole(), Status::unavailable("gone"));
    export(&["-o", "cut"]).expect(4);
    assert!(!place.has("cut") && !place.has("cut.partial"));
    place.world.archive.state().keeping.export.say([part("{")]);
    export(&["-o", "cut"]).expect(4);
    assert!(!place.has("cut"));
}

/// Fails if `notify test` exits with 0 although a channel refused the message, or none is configured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undelivered_notification_is_a_failure() {
    let place = Place::new().await;
    let test = |outcomes: &[&str], failed| {
        let outcomes = outcomes.iter().map(|line| (*line).to_owned()).collect();
        let answer = NotifyTestResponse { outcomes, failed };
        place
            .world
            .archive
            .state()
            .keeping
            .notify_test
            .say([answer]);
        place.holdfast(&["notify", "test", "--as", "operator"])
    };
    assert_eq!(
        test(&["command: sent"], false).expect(0).out,
        "command: sent\n"
    );
    test(&["command: sent", "smtp: refused"], true).expect(1);
    assert!(
        test(&[], false)
            .expect(1)
            .err
            .contains("no notification channel is configured")
    );
}
