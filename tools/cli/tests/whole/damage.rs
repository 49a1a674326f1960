//! Bits that flip: named to the group, mended from another replica, and reported.

use std::collections::BTreeMap;

use tools_testing::Random;

use crate::archive::{Archive, wait};

const GROUP: u64 = 16_384;

/// With the disks left alone by everything but the commands of the test.
const BY_HAND: [&str; 2] = ["repair.automatic=off", "scrub.enabled=false"];

/// Everything at once: what a person would wait weeks for.
const AT_ONCE: [&str; 6] = [
    "repair.automatic=all",
    "repair.delay=1 s",
    "repair.settled=0 s",
    "scrub.deadline=5 s",
    "scrub.young=2 s",
    "scrub.enabled=true",
];

/// Fails if a flipped bit reaches a reader, is found in another group than its own, or costs more than its group to
/// repair.
#[test]
fn one_flipped_bit_is_found_avoided_mended_reported() {
    let size = 40 << 20;
    let archive = Archive::start(&BY_HAND);
    archive.store("big.warc.gz", size);
    archive.run(&["check", "checksums"]).expect(0);
    archive.flip("one", "big.warc.gz", 1000 * GROUP + 7);
    archive.run(&["check", "files"]).expect(0);
    let said = archive.run(&["check", "checksums"]).expect(1).out;
    for word in ["corrupt", "big.warc.gz", "one", "1000"] {
        assert!(said.contains(word), "{word} in {said}");
    }
    let back = archive.path("back");
    archive
        .run(&["get", "big.warc.gz", "-o", back.to_str().expect("text")])
        .expect(0);
    assert!(std::fs::read(&back).expect("read") == crate::archive::content("big.warc.gz", size));

    let planned = archive.run(&["repair", "--all", "--dry-run"]).expect(0).out;
    assert!(planned.contains("16384 bytes"), "{planned}");
    assert!(
        !archive.is_whole("one", "big.warc.gz", size),
        "nothing moved"
    );
    let repaired = archive.json(&["repair", "--all", "--reason", "a test"], 0);
    let moved = repaired["bytes_moved"].as_u64().expect("a number");
    assert!((1..=32_768).contains(&moved), "{repaired}");
    assert!(archive.is_whole("one", "big.warc.gz", size));
    archive.run(&["check", "checksums"]).expect(0);
    let attic = archive.run(&["attic", "list"]).expect(0).out;
    assert!(
        attic.contains("big.warc.gz") && attic.contains("groups"),
        "{attic}"
    );
    let trail = archive
        .run(&["audit", "--file", "big.warc.gz"])
        .expect(0)
        .out;
    assert!(
        trail.contains("corrupt") && trail.contains("repaired"),
        "{trail}"
    );
}

/// Fails if copies that are damaged in different groups cannot mend each other, if a group that is damaged in all costs
/// readers the rest of the file, or if anything is written into a copy that cannot be made whole.
#[test]
fn copies_mend_each_other_unless_they_share_damage() {
    let size = 8 << 20;
    let archive = Archive::start(&BY_HAND);
    archive.store("both.warc", size);
    archive.store("lost.warc", size);
    // A hundred bits at random in each copy, in no group of both.
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut dice = Random::new(seed);
    let mut hit = BTreeMap::new();
    for replica in ["one", "two"] {
        let mut left = 100;
        while left > 0 {
            let offset = dice.below(u64::try_from(size).expect("small"));
            if *hit.entry(offset / GROUP).or_insert(replica) == replica {
                let bit = dice.below(8);
                archive.damage(replica, "both.warc", offset, |byte| byte ^ (1 << bit));
                left -= 1;
            }
        }
    }
    for replica in ["one", "two"] {
        archive.flip(replica, "lost.warc", 3 * GROUP + 1);
    }
    archive.flip("one", "lost.warc", 9 * GROUP);
    let said = archive.run(&["check", "checksums"]).expect(1).out;
    assert!(
        said.contains("both.warc") && said.contains("lost.warc"),
        "{said}"
    );
    let lost = archive.file("one", "lost.warc");
    let before = std::fs::read(&lost).expect("read");
    let repaired = archive.run(&["repair", "--all"]).expect(1);
    for replica in ["one", "two"] {
        assert!(
            archive.is_whole(replica, "both.warc", size),
            "{replica}: {repaired:?}"
        );
    }
    let range = format!("{}-{}", 3 * GROUP, 4 * GROUP - 1);
    assert!(
        repaired.out.contains("lost") && repaired.out.contains(&range),
        "{repaired:?}"
    );
    // Nothing was touched, and everything else of it is still served.
    assert!(std::fs::read(&lost).expect("read") == before);
    let back = archive.path("rest");
    let out = back.to_str().expect("text");
    archive
        .run(&["get", "lost.warc", "--salvage", "-o", out])
        .expect(1);
    let rest = std::fs::read(&back).expect("read");
    let mut meant = crate::archive::content("lost.warc", size);
    let hole =
        usize::try_from(3 * GROUP).expect("small")..usize::try_from(4 * GROUP).expect("small");
    meant[hole].fill(0);
    assert!(rest == meant, "all but the lost group");
    let good = archive.path("good");
    let out = good.to_str().expect("text");
    archive
        .run(&["get", "lost.warc", "--range", "0-49151", "-o", out])
        .expect(0);
    assert!(std::fs::read(&good).expect("read") == meant[..49_152]);
    let said = archive.run(&["check", "checksums"]).expect(1).out;
    assert!(
        said.contains("lost.warc") && !said.contains("both.warc"),
        "{said}"
    );
}

/// Fails if a flipped bit or a deleted file is not found by the scrub, or waits for a person although repairs are
/// automatic.
#[test]
fn scrubbing_finds_and_the_archive_mends_by_itself() {
    let size = 2 << 20;
    let archive = Archive::start(&AT_ONCE);
    archive.store("left.warc", size);
    archive.store("gone.warc", size);
    archive.flip("two", "left.warc", 5 * GROUP);
    std::fs::remove_file(archive.file("one", "gone.warc")).expect("remove");
    wait("both copies to be whole again", || {
        let are_whole = archive.is_whole("two", "left.warc", size)
            && archive.is_whole("one", "gone.warc", size);
        are_whole.then_some(()).ok_or_else(|| archive.filed())
    });
    archive.until(&["check", "checksums"], 0);
}

/// Fails if a broken controller makes the archive repair more than 20 files unasked, or if a person cannot release the
/// brake.
#[test]
fn mass_damage_waits_for_a_person() {
    let archive = Archive::start(&AT_ONCE);
    let directory = archive.path("many");
    std::fs::create_dir(&directory).expect("mkdir");
    // Twice as many as the brake lets through, and one: whatever was mended before it held, the rest is too many.
    let names: Vec<String> = (0..41)
        .map(|number| format!("many-{number:02}.warc"))
        .collect();
    for name in &names {
        let bytes = crate::archive::content(name, 50_000);
        std::fs::write(directory.join(name), bytes).expect("write");
    }
    archive
        .run(&["store", "--recursive", directory.to_str().expect("text")])
        .expect(0);
    let whole = |names: &[String]| {
        names
            .iter()
            .filter(|name| archive.is_whole("one", name, 50_000))
            .count()
    };
    // All at one stroke, as a broken controller does it.
    archive.run(&["scrub", "pause"]).expect(0);
    for name in &names {
        archive.flip("one", name, 20_000);
    }
    archive.run(&["scrub", "resume"]).expect(0);
    wait("the brake", || {
        let status = archive.run(&["status"]).out;
        let holds = status.contains("`repair --all`");
        holds.then_some(()).ok_or(status)
    });
    wait("all of it to be filed", || {
        let filed = archive.run(&["anomalies", "--all"]).out;
        let is_all = names.iter().all(|name| filed.contains(name.as_str()));
        is_all.then_some(()).ok_or(filed)
    });
    let mended = whole(&names);
    assert!(mended <= 20, "the brake holds after 20 files: {mended}");
    // What was begun before the brake held comes to its end: how many are left is reported anew.
    let mut has_asked = false;
    wait("the rest to be repaired by order", || {
        let refused = archive.run(&["repair", "--all"]);
        let asked = refused.err.split("--confirm ").nth(1);
        let Some(asked) = asked.filter(|_| refused.code == 5) else {
            return (refused.code == 0).then_some(()).ok_or(refused);
        };
        has_asked = true;
        let left: String = asked.chars().take_while(char::is_ascii_digit).collect();
        let ordered = archive.run(&["repair", "--all", "--confirm", &left]);
        (ordered.code == 0).then_some(()).ok_or(ordered)
    });
    assert!(has_asked, "more than 20 need a confirmation");
    assert_eq!(whole(&names), names.len());
}
