//! A node that is killed again and again while it scrubs: it continues where it was, and comes to the end.

use std::time::{Duration, Instant};

use serde_json::Value;
use tools_testing::Random;

use crate::archive::{Archive, wait};
use crate::kills::chosen;

const SIZE: usize = 100_000;
const NODE: &str = "bitarchive-two";

/// The time that a new file may wait to be read twice.
const YOUNG: Duration = Duration::from_secs(2);

/// Returns the report of the node's scrub about itself.
fn scrub(archive: &Archive) -> Option<Value> {
    let ran = archive.run(&["--json", "scrub", "status", "--replica", "two"]);
    assert!(matches!(ran.code, 0 | 1), "{ran:#?}");
    ran.json()["scrubs"].get(0).cloned()
}

fn number(state: &Value, key: &str) -> u64 {
    state[key].as_u64().expect("a number")
}

/// Waits until the node has looked over its catalog since it started.
fn surveyed(archive: &Archive) -> Value {
    wait("the scrub to look over the catalog", || {
        match scrub(archive) {
            Some(state) if state["oldest"].is_string() => Ok(state),
            other => Err(other),
        }
    })
}

/// Fails if a killed scrub begins with the first file again, so that damage at the end is never found, or skips files
/// that it had not read.
///
/// `HOLDFAST_KILLS` is how often (4), `HOLDFAST_SEED` repeats the choices of a run.
#[test]
fn killed_scrub_resumes_and_finds_damage_at_end() {
    let (kills, seed) = chosen(4);
    let mut dice = Random::new(seed);
    let files = kills * 12;
    // Every file is due once when it is as old as this, and not again within the test.
    let mut archive = Archive::processes(&[
        "repair.automatic=off",
        "scrub.young=2 s",
        "scrub.deadline=10 h",
    ]);
    archive.run(&["scrub", "pause"]).expect(0);
    let name = |number: u64| format!("scrub-{number:04}.warc");
    for number in 0..files {
        archive.store(&name(number), SIZE);
    }
    let stored = Instant::now();
    let last = name(files - 1);
    archive.flip("two", &last, 50_000);
    wait("the last file to be due", || stored.elapsed() > YOUNG);
    archive.kill(NODE);
    archive.restart(NODE);
    archive.wait_for_answers();
    let state = surveyed(&archive);
    assert_eq!(number(&state, "due"), files, "all are to be read: {state}");
    let slowly = ["scrub", "throttle", "200 kB", "--replica", "two"];
    archive.run(&slowly).expect(0);
    archive.run(&["scrub", "resume"]).expect(0);

    let mut read = 0;
    for round in 0..kills {
        let more = 1 + dice.below(5);
        let here = wait("some files to be read", || {
            let here = scrub(&archive).map_or(0, |state| number(&state, "files"));
            if here >= more { Ok(here) } else { Err(here) }
        });
        archive.kill(NODE);
        read += here;
        archive.restart(NODE);
        archive.wait_for_answers();
        let state = surveyed(&archive);
        let due = number(&state, "due");
        let again = number(&state, "files");
        println!("round {round}: {read} of {files} were read, {due} are due");
        assert!(
            due + read <= files,
            "{read} were read, and {due} of {files} are to be read: {state}"
        );
        assert!(due + again > 0, "it was not at its end: {state}");
    }
    wait("the damage at the end", || {
        let wrong = archive.filed();
        let of_last = wrong.iter().any(|(name, replica, kind)| {
            (name, replica.as_str(), kind.as_str()) == (&last, "two", "corrupt")
        });
        (of_last && wrong.len() == 1).then_some(()).ok_or(wrong)
    });
    wait("the end of the round", || {
        let state = scrub(&archive);
        let is_over = state
            .as_ref()
            .is_some_and(|state| number(state, "due") == 0);
        is_over.then_some(()).ok_or(state)
    });
    archive.run(&["repair", "--all"]).expect(0);
    archive.run(&["check", "checksums"]).expect(0);
}
