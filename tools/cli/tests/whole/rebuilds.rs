//! A node that is killed again and again while it builds its catalog anew: afterwards it lists what it listed before.

use std::time::Instant;

use tools_testing::Random;

use crate::archive::{Archive, content};
use crate::kills::chosen;
use crate::steps::BY_HAND;

/// More than a node writes into its catalog at a time.
const FILES: usize = 1100;

fn size(name: &str) -> usize {
    name.len() * 100
}

/// Fails if a catalog whose rebuild was killed lacks files and passes for whole, or has forgotten that a file is
/// missing.
///
/// `HOLDFAST_KILLS` is how often (8), `HOLDFAST_SEED` repeats the choices of a run.
#[test]
fn catalog_is_unchanged_after_killed_rebuild() {
    const NODE: &str = "bitarchive-two";
    let (kills, seed) = chosen(8);
    let mut dice = Random::new(seed);
    let mut archive = Archive::processes(&BY_HAND);
    let directory = archive.path("many");
    std::fs::create_dir(&directory).expect("mkdir");
    for number in 0..FILES {
        let name = format!("many-{number:04}.warc");
        std::fs::write(directory.join(&name), content(&name, size(&name))).expect("write");
    }
    let words = ["store", "--recursive", directory.to_str().expect("text")];
    archive.run(&words).expect(0);
    // Missing on purpose: that one is, is part of what the node knows.
    let gone = archive.file("two", "many-0007.warc");
    std::fs::remove_file(&gone).expect("remove");
    archive.run(&["check", "checksums"]).expect(1);
    let before = archive.listed("two");
    let filed = archive.filed();
    assert_eq!(before.lines().count(), FILES);
    assert_eq!(filed.len(), 1, "{filed:?}");

    let catalog = archive.data().join("two/node/catalog");
    assert!(catalog.is_dir(), "{}", catalog.display());
    // The time that it takes when the node is not killed.
    archive.kill(NODE);
    std::fs::remove_dir_all(&catalog).expect("remove");
    let begun = Instant::now();
    archive.restart(NODE);
    archive.wait_for_answers();
    let span = begun.elapsed();
    println!("{span:?} until it is built");

    archive.kill(NODE);
    for round in 0..kills {
        // Every other time the node continues with the catalog that the last kill left.
        if round % 2 == 0 {
            std::fs::remove_dir_all(&catalog).expect("remove");
        }
        archive.restart(NODE);
        let moment = dice.below(u64::try_from(span.as_micros()).expect("short"));
        // A random moment at which the node is killed: any moment is right.
        std::thread::sleep(std::time::Duration::from_micros(moment));
        assert!(
            archive.is_running(NODE),
            "round {round}: it ended by itself"
        );
        archive.kill(NODE);
    }
    archive.restart(NODE);
    archive.wait_for_answers();
    archive.check_until("files", "what was missing, and nothing else", &filed);
    assert_eq!(archive.listed("two"), before);
    archive.no_file_is_short(size);
    archive.run(&["repair", "--all"]).expect(0);
    archive.run(&["check", "checksums"]).expect(0);
    assert_eq!(archive.listed("two"), before);
}
