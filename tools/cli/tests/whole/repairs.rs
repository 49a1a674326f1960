//! Parts that are killed while copies are repaired: each repair is done or reported as not done, and can be ordered
//! again.

use std::collections::BTreeSet;
use std::time::Instant;

use tools_testing::Random;

use crate::archive::Archive;
use crate::kills::{PARTS, chosen};
use crate::steps::{BY_HAND, FiledAnomaly, filed};

const FILES: usize = 12;
const SIZE: usize = 600_000;

fn name(number: usize) -> String {
    format!("repair-{number:02}.warc.gz")
}

/// Damages one copy of every file: flipped in one, flipped in the other, gone there. Returns the damage that is to be
/// reported.
fn damage(archive: &Archive, dice: &mut Random) -> BTreeSet<FiledAnomaly> {
    let damaged = (0..FILES).map(|number| {
        let name = name(number);
        let replica = if number % 3 == 0 { "one" } else { "two" };
        if number % 3 == 2 {
            std::fs::remove_file(archive.file(replica, &name)).expect("remove");
            filed(&name, replica, "missing")
        } else {
            for _ in 0..=dice.below(4) {
                let offset = dice.below(SIZE as u64);
                archive.damage(replica, &name, offset, |byte| byte.wrapping_add(1));
            }
            filed(&name, replica, "corrupt")
        }
    });
    damaged.collect()
}

/// Fails if a part that is killed during a repair leaves a short file, damage that is not filed any more, or the
/// remnant of a mend.
///
/// `HOLDFAST_KILLS` is how often (8), `HOLDFAST_SEED` repeats the choices of a run.
#[test]
fn killed_repair_is_done_or_reported() {
    let (kills, seed) = chosen(8);
    let mut dice = Random::new(seed);
    let mut archive = Archive::processes(&BY_HAND);
    let directory = archive.path("all");
    std::fs::create_dir(&directory).expect("mkdir");
    for number in 0..FILES {
        let bytes = crate::archive::content(&name(number), SIZE);
        std::fs::write(directory.join(name(number)), bytes).expect("write");
    }
    let words = ["store", "--recursive", directory.to_str().expect("text")];
    archive.run(&words).expect(0);

    // The time that it takes when no part is killed.
    let damaged = damage(&archive, &mut dice);
    archive.check_until("checksums", "damage", &damaged);
    let begun = Instant::now();
    archive.run(&["repair", "--all"]).expect(0);
    let span = begun.elapsed();

    let mut halves = 0;
    for round in 0..kills {
        let damaged = damage(&archive, &mut dice);
        archive.check_until("checksums", "damage", &damaged);
        let mut repairing = archive.begin(&["repair", "--all"]);
        let part = PARTS[usize::try_from(dice.below(6)).expect("small")];
        archive.kill_within(span, part, &mut dice);
        repairing.wait().expect("an end");
        archive.no_file_is_short(|_| SIZE);
        archive.wait_for_answers();
        let left = || -> BTreeSet<_> {
            let is_left =
                |(name, replica, _): &&FiledAnomaly| !archive.is_whole(replica, name, SIZE);
            damaged.iter().filter(is_left).cloned().collect()
        };
        let count = left().len();
        halves += usize::from(count > 0 && count < FILES);
        println!("round {round}: {part} killed, {count} left");
        // A repository that starts goes on with a copy that it was making again.
        archive.check_until_as(
            "checksums",
            "what is not repaired is reported, and nothing else",
            left,
        );
        archive.until(&["repair", "--all"], 0);
        archive.no_file_is_short(|_| SIZE);
    }
    println!("{halves} of {kills} kills came in the middle of a repair of {span:?}");
    archive.until(&["check", "checksums"], 0);
    for number in 0..FILES {
        for replica in ["one", "two"] {
            let name = name(number);
            assert!(
                archive.is_whole(replica, &name, SIZE),
                "{name} in {replica}"
            );
        }
    }
    // What a killed mend left goes when its node starts.
    for (part, replica) in [("bitarchive-one", "one"), ("bitarchive-two", "two")] {
        archive.kill(part);
        archive.restart(part);
        archive.wait_for_answers();
        assert_eq!(archive.mends(replica), [""; 0]);
    }
    archive.until(&["check", "checksums"], 0);
}
