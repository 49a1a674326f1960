//! Files that are renamed, moved and linked behind a node's back: reported, copied again, and nothing of it is touched.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::archive::{Archive, content};
use crate::steps::{BY_HAND, FiledAnomaly, filed};

const SIZE: usize = 100_000;

/// Returns the anomalies of replica two: these names, and what is wrong with each.
fn wrong(expected: &[(&str, &str)]) -> BTreeSet<FiledAnomaly> {
    let expected = expected.iter();
    expected
        .map(|(name, kind)| filed(name, "two", kind))
        .collect()
}

/// Fails if a file that was renamed behind the node's back is not missed, or if putting its stray name aside costs the
/// file it is linked to.
#[test]
fn renamed_and_linked_files_are_reported_and_restored() {
    const NODE: &str = "bitarchive-two";
    let mut archive = Archive::processes(&BY_HAND);
    let names = ["a.warc", "b.warc", "c.warc", "d.warc", "e.warc"];
    for name in names {
        archive.store(name, SIZE);
    }
    let at = |name: &str| archive.file("two", name);
    // A directory to which none of these names belongs.
    let directory_of = |name: &str| at(name).parent().expect("a directory").to_owned();
    let wrong_directory = (0..=u8::MAX)
        .map(|number| archive.volume("two").join(format!("files/{number:02x}")))
        .find(|path| names.iter().all(|name| directory_of(name) != *path))
        .expect("a directory");
    let strays: [(&str, PathBuf); 4] = [
        ("a.warc", at("renamed.warc")),
        ("b.warc", wrong_directory.join("b.warc")),
        ("c.warc", at("linked.warc")),
        ("d.warc", wrong_directory.join("d.warc")),
    ];

    std::fs::rename(at("a.warc"), &strays[0].1).expect("rename");
    std::fs::rename(at("b.warc"), &strays[1].1).expect("rename");
    std::fs::hard_link(at("c.warc"), &strays[2].1).expect("link");
    std::fs::hard_link(at("d.warc"), &strays[3].1).expect("link");
    // A check under a running node and a start both find the old names and the new. A file in the wrong directory is
    // moved to its own, unless that name is taken.
    let all = wrong(&[
        ("a.warc", "missing"),
        ("linked.warc", "unexpected"),
        ("renamed.warc", "unexpected"),
    ]);
    archive.check_until("checksums", "the old names and the new", &all);
    let catalog = archive.data().join("two/node/catalog");
    for is_anew in [false, true] {
        archive.kill(NODE);
        if is_anew {
            std::fs::remove_dir_all(&catalog).expect("remove");
        }
        archive.restart(NODE);
        archive.wait_for_answers();
        archive.check_until("files", "the old names and the new", &all);
        let listed = archive.listed("two");
        for name in names {
            assert!(listed.contains(name), "the row of {name} is kept: {listed}");
        }
    }

    archive.run(&["repair", "a.warc"]).expect(0);
    for name in names {
        assert!(archive.is_whole("two", name, SIZE), "{name}");
    }
    let strangers = wrong(&[
        ("linked.warc", "unexpected"),
        ("renamed.warc", "unexpected"),
    ]);
    archive.check_until("checksums", "the new names", &strangers);
    assert!(!strays[1].1.try_exists().expect("looked"), "it was moved");
    for (name, stray) in strays.iter().filter(|(name, _)| *name != "b.warc") {
        let left = std::fs::read(stray).expect("it is left alone");
        assert!(left == content(name, SIZE), "{}", stray.display());
    }

    // Two persons put the strangers aside, by their own checksums; the files that they were linked to stay.
    for (name, stray) in [("a.warc", "renamed.warc"), ("c.warc", "linked.warc")] {
        let request = archive.removal_of(stray, "two", &content(name, SIZE));
        archive.approve(&request).expect(0);
        assert!(!archive.file("two", stray).try_exists().expect("looked"));
    }
    archive.run(&["check", "checksums"]).expect(0);
    for name in names {
        assert!(archive.is_whole("two", name, SIZE), "{name}");
    }
    assert!(strays[3].1.is_file());
}
