//! Parts that are killed while two persons remove a copy: it is in its place or in the attic, whole, and the request
//! says which.

use std::time::Instant;

use tools_testing::Random;

use crate::archive::{Archive, content, wait};
use crate::kills::chosen;
use crate::steps::BY_HAND;

const SIZE: usize = 200_000;

/// The parts that a removal from replica two meets.
const PARTS: [&str; 3] = ["repository", "bitarchive-two", "monitor-two"];

/// Returns the state of a request.
fn state(archive: &Archive, request: &str) -> String {
    let all = archive.json(&["requests", "--all"], 0);
    let requests = all["requests"].as_array().expect("requests");
    let found = requests.iter().find(|one| one["id"] == request);
    let state = found.expect("it is kept")["state"].as_str();
    state.expect("a state").to_owned()
}

/// Returns how often the copy of replica two lies in the attic, whole.
fn in_attic(archive: &Archive, name: &str) -> usize {
    let attic = archive.volume("two").join("attic");
    let items = std::fs::read_dir(attic).expect("list");
    let copies = items.map(|item| item.expect("an item").path().join(name));
    copies
        .filter(|copy| std::fs::read(copy).is_ok_and(|found| found == content(name, SIZE)))
        .count()
}

/// Fails if a kill during a removal leaves the copy in neither place or in both, or if the request says done while the
/// copy is still there.
///
/// `HOLDFAST_KILLS` is how often (8), `HOLDFAST_SEED` repeats the choices of a run.
#[test]
fn killed_removal_is_done_or_reported_as_undone() {
    let (kills, seed) = chosen(8);
    let mut dice = Random::new(seed);
    let mut archive =
        Archive::processes(&[&BY_HAND[..], &["attic.removals_per_hour=100000"]].concat());
    archive.store("first.warc", SIZE);
    let request = archive.removal_of("first.warc", "two", &content("first.warc", SIZE));
    let begun = Instant::now();
    archive.approve(&request).expect(0);
    let span = begun.elapsed();
    let mut names = vec!["first.warc".to_owned()];
    for round in 0..kills {
        let name = format!("remove-{round}.warc");
        archive.store(&name, SIZE);
        let mut request = archive.removal_of(&name, "two", &content(&name, SIZE));
        let words = ["--as", "custodian/custodian-2", "approve", &request];
        let mut approving = archive.begin(&words);
        let part = PARTS[usize::try_from(dice.below(3)).expect("small")];
        archive.kill_within(span, part, &mut dice);
        let code = approving.wait().expect("an end").code();
        archive.wait_for_answers();
        // What was approved is carried out without another order.
        let first = wait("the request to end", || {
            let state = state(&archive, &request);
            if state == "approved" {
                Err(state)
            } else {
                Ok(state)
            }
        });
        println!(
            "round {round}: {part} killed, approve ended with {code:?}, the request is {first}"
        );
        assert!(code != Some(0) || first == "done", "{first}");
        if first != "done" {
            assert!(matches!(first.as_str(), "open" | "failed"), "{first}");
            assert!(archive.is_whole("two", &name, SIZE), "{name} is {first}");
            assert_eq!(in_attic(&archive, &name), 0, "{name} is {first}");
            if first == "failed" {
                request = archive.removal_of(&name, "two", &content(&name, SIZE));
            }
            archive.approve(&request).expect(0);
        }
        let there = archive.file("two", &name).try_exists().expect("looked");
        assert!(!there, "{name} is removed");
        assert_eq!(in_attic(&archive, &name), 1, "{name} is removed");
        names.push(name);
    }
    archive.until(&["check", "checksums"], 0);
    let listed = archive.listed("two");
    let attic = archive.run(&["attic", "list"]).expect(0).out;
    for name in &names {
        assert!(archive.is_whole("one", name, SIZE), "{name} in one");
        assert!(!listed.contains(name.as_str()), "{listed}");
        assert_eq!(attic.matches(name.as_str()).count(), 1, "{attic}");
    }
    assert_eq!(archive.filed().len(), 0);
}
