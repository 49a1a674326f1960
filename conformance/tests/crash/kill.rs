//! A node is killed again and again while it stores, and starts again each time as if nothing had been.

use std::collections::BTreeMap;
use std::time::Duration;

use archive_bitarchive::{CatalogEntry, Condition};
use archive_model::FileName;
use conformance::machine::{self, CrashMachine};

use super::child::Child;
use super::{
    BEFORE, final_names_bear_whole_files, listed_files_are_right, listing,
    manifests_say_what_is_there, scratch,
};

const KILLS: i64 = 100;

/// Longest time from a beginning to a kill, in microseconds.
const LONGEST: u64 = 120_000;

/// Returns a number below `limit` that looks random and is the same in every run.
pub(super) fn chance(of: i64, limit: u64) -> u64 {
    let hash = blake3::hash(format!("kill {of}").as_bytes());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap()) % limit
}

/// Fails if a node that is killed at any moment lacks a file that it acknowledged, refuses to start, or keeps the bytes
/// of a broken store permanently.
#[test]
fn repeatedly_killed_node_keeps_all_acknowledged_files() {
    let place = scratch();
    let machine = CrashMachine::prepare(&place.path().join("machine")).unwrap();
    let mut acknowledged = BTreeMap::new();
    for round in 0..KILLS {
        let mut child = Child::at(&machine, BEFORE + round * 10)
            .endless(&format!("r{round}"))
            .spawn();
        // Every other one may die while it starts.
        if round % 2 == 0 {
            assert!(child.heard("ready", 1), "round {round}: it did not start");
        }
        std::thread::sleep(Duration::from_micros(chance(round, LONGEST)));
        child.kill();
        let outcome = child.wait();
        assert!(outcome.refused.is_empty(), "round {round}: {outcome:?}");
        acknowledged.extend(outcome.acknowledged);

        let node = machine.start(BEFORE + round * 10 + 5).unwrap();
        let listed = listing(&node);
        let what = format!("after kill {round}");
        listed_files_are_right(&listed, &acknowledged, &what);
        // What was being stored is stored now, from wherever it had come to.
        for name in missing_or_unfinished(&machine, &listed) {
            let entry = machine::store(&node, &name, BEFORE + round * 10 + 5)
                .unwrap()
                .unwrap();
            acknowledged.insert(name, entry.row.root.unwrap().to_string());
        }
        node.files.reap_uploads(i64::MAX).unwrap();
        assert_eq!(machine.incoming().unwrap(), [""; 0], "{what}");
    }
    assert!(
        acknowledged.len() > 500,
        "only {} files in {KILLS} rounds",
        acknowledged.len()
    );
    println!("{KILLS} kills, {} files", acknowledged.len());
    drop(machine.start(BEFORE * 2).unwrap());
    final_names_bear_whole_files(&machine, "at the end");
    manifests_say_what_is_there(&machine, "at the end");
    let there: BTreeMap<_, _> = machine.files().unwrap().into_iter().collect();
    assert!(acknowledged.keys().all(|name| there.contains_key(name)));
}

/// Returns the files whose uploads the last kill cut: those listed as missing, and those of which there is only a part.
fn missing_or_unfinished(
    machine: &CrashMachine,
    listed: &BTreeMap<FileName, CatalogEntry>,
) -> Vec<FileName> {
    let cut = machine.incoming().unwrap();
    let cut = cut
        .iter()
        .filter(|id| !id.contains('.'))
        .map(|id| FileName::new(id.trim_start_matches("u-")).unwrap());
    let is_present = |name: &FileName| {
        listed
            .get(name)
            .is_some_and(|entry| entry.row.condition == Condition::Present)
    };
    let mut names: Vec<_> = listed.keys().cloned().chain(cut).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !is_present(name));
    names
}
