//! An older copy of a whole catalog is put back: the node lists what it listed before, and nothing false is reported.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::archive::{Archive, content, wait};
use crate::steps::{BY_HAND, filed};

const SIZE: usize = 100_000;
const NODE: &str = "bitarchive-two";

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(status.expect("cp").success());
}

fn stop(archive: &Archive) {
    archive.end(NODE, Signal::TERM);
}

fn start(archive: &mut Archive) {
    archive.restart(NODE);
    archive.wait_for_answers();
}

/// Fails if a node believes an older copy of its catalog, and so lists damage that was mended and lacks files that were
/// stored since.
#[test]
fn older_catalog_lists_the_same_files() {
    let mut archive = Archive::processes(&[&BY_HAND[..], &["bitarchive.look=1 s"]].concat());
    for name in ["kept.warc", "mended.warc", "gone.warc", "removed.warc"] {
        archive.store(name, SIZE);
    }
    // The old catalog knows of damage that is mended later, and of a file that is missing and copied later.
    archive.flip("two", "mended.warc", 40_000);
    std::fs::remove_file(archive.file("two", "gone.warc")).expect("remove");
    archive.run(&["check", "checksums"]).expect(1);
    stop(&archive);
    let catalog = archive.data().join("two/node/catalog");
    let old = archive.path("old");
    copy(&catalog, &old);
    let stamp = || std::fs::read_to_string(catalog.with_extension("stamp")).expect("a stamp");
    start(&mut archive);
    let then = stamp();

    archive.until(&["repair", "--all"], 0);
    for name in ["new.warc", "short.warc"] {
        archive.store(name, SIZE);
    }
    let request = archive.removal_of("removed.warc", "two", &content("removed.warc", SIZE));
    archive.approve(&request).expect(0);
    archive.flip("two", "new.warc", 20_000);
    archive.run(&["check", "checksums"]).expect(1);
    archive.run(&["repair", "--all"]).expect(0);
    let nothing = BTreeSet::new();
    archive.check_until("checksums", "before", &nothing);
    let before = archive.listed("two");
    assert_eq!(before.lines().count(), 5, "{before}");
    wait("the stamp to be written", || stamp() != then);

    let put_back = |archive: &Archive| {
        stop(archive);
        std::fs::remove_dir_all(&catalog).expect("remove");
        copy(&old, &catalog);
    };
    put_back(&archive);
    start(&mut archive);
    archive.check_until("files", "nothing is wrong", &nothing);
    assert_eq!(archive.listed("two"), before);
    archive.check_until("checksums", "nothing is wrong", &nothing);
    assert_eq!(archive.listed("two"), before);

    // Files that are lost meanwhile are reported.
    let then = stamp();
    archive.store("last.warc", SIZE);
    wait("the stamp to be written", || stamp() != then);
    put_back(&archive);
    std::fs::remove_file(archive.file("two", "new.warc")).expect("remove");
    start(&mut archive);
    let missing = BTreeSet::from([filed("new.warc", "two", "missing")]);
    archive.check_until("files", "what is lost", &missing);
    archive.run(&["repair", "--all"]).expect(0);
    archive.check_until("checksums", "at the end", &nothing);
    let listed = archive.listed("two");
    let rest: Vec<_> = listed
        .lines()
        .filter(|line| !line.contains("last"))
        .collect();
    assert_eq!(rest, before.lines().collect::<Vec<_>>());
}
