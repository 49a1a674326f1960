//! Disks that turn read-only, are mounted in each other's place, or are somebody else's, under a running node:
//! reported, nothing is missing, nothing is repaired, and all is well when they are put right.

use std::path::Path;
use std::process::Command;

use crate::archive::{Archive, content, files_below, wait};
use crate::mounts::{has_own_mounts, run};
use crate::steps::FiledAnomaly;

const SIZE: usize = 100_000;

/// Settings with which damage is repaired at once.
const EAGER: [&str; 6] = [
    "repair.automatic=all",
    "repair.delay=1 s",
    "repair.settled=0 s",
    "scrub.enabled=false",
    "bitarchive.look=1 s",
    "bitarchive.reserve=0 B",
];

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Returns an archive whose replica two takes new files on these disks only, each a file system of its own, mounted
/// behind where its volume is.
fn with_disks(disks: &[&str]) -> Archive {
    let archive = Archive::start(&EAGER);
    let (_, old) = volumes(&archive).remove(0);
    for disk in disks {
        let behind = behind(&archive, disk);
        let place = archive.path(disk);
        for directory in [&behind, &place] {
            std::fs::create_dir(directory).expect("mkdir");
        }
        run(
            "mount",
            &["-t", "tmpfs", "-o", "size=32M", "tmpfs", text(&behind)],
        );
        run("mount", &["--bind", text(&behind), text(&place)]);
        let words = ["volume", "init", text(&place), "--node", "two-1"];
        archive.run(&words).expect(0);
    }
    archive.run(&["volume", "read-only", &old]).expect(0);
    archive
}

fn behind(archive: &Archive, disk: &str) -> std::path::PathBuf {
    archive.path(&format!("behind-{disk}"))
}

/// Returns the volumes of replica two: what is wrong with each, if anything, and its id.
fn volumes(archive: &Archive) -> Vec<(String, String)> {
    let ran = archive.run(&["--json", "status"]);
    let status = ran.json();
    let replicas = status["replicas"].as_array().expect("replicas");
    let two = replicas.iter().find(|one| one["replica"] == "two");
    let volumes = two.expect("two")["nodes"][0]["volumes"].as_array();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let all = volumes.expect("volumes").iter();
    all.map(|volume| (text(&volume["problem"]), text(&volume["volume"])))
        .collect()
}

fn problems(archive: &Archive) -> Vec<String> {
    let all = volumes(archive).into_iter();
    all.map(|(problem, _)| problem)
        .filter(|problem| !problem.is_empty())
        .collect()
}

fn unmount(path: &Path) {
    // A reader may still have a file of it open.
    wait("the disk to be let go", || {
        Command::new("umount")
            .arg(path)
            .output()
            .expect("umount")
            .status
            .success()
    });
}

/// A check says that something was not heard, and files nothing else; twice, with every repair allowed in between.
fn nothing_is_concluded(archive: &Archive, what: &str) {
    for _ in 0..2 {
        let checked = archive.until(&["check", "files"], 1);
        assert!(!checked.out.contains("missing"), "{what}: {checked:?}");
        assert_eq!(concluded(archive), [], "{what}");
    }
}

/// Returns the filed anomalies that say more than that a copy could not be looked at.
fn concluded(archive: &Archive) -> Vec<FiledAnomaly> {
    let filed = archive.filed().into_iter();
    filed.filter(|(_, _, kind)| kind != "unverified").collect()
}

/// All is well, and nothing was put aside or copied meanwhile.
fn nothing_has_happened(archive: &Archive, what: &str) {
    archive.until(&["check", "files"], 0);
    archive.until(&["check", "checksums"], 0);
    assert_eq!(archive.filed().len(), 0, "{what}");
    let attics = archive.json(&["attic", "list"], 0);
    assert_eq!(
        attics["items"].as_array().map(Vec::len),
        Some(0),
        "{attics}"
    );
    assert_eq!(files_below(&archive.volume("two")).len(), 0, "{what}");
    let trail = archive.run(&["audit"]).expect(0).out;
    assert!(!trail.contains("repaired"), "{what}: {trail}");
}

/// Fails if a disk that turned read-only has its files reported as missing, or takes files again before a person has
/// cleared it.
#[test]
fn read_only_disk_serves_without_storing_until_cleared() {
    if !has_own_mounts("mounted::read_only_disk_serves_without_storing_until_cleared") {
        return;
    }
    let archive = with_disks(&["disk"]);
    let names = ["a.warc", "b.warc", "c.warc"];
    for name in names {
        archive.until(&["store", text(&archive.make(name, SIZE))], 0);
    }
    let behind = behind(&archive, "disk");
    assert_eq!(files_below(&behind).len(), names.len());
    run("mount", &["-o", "remount,ro", text(&behind)]);
    // Nothing is written, so nothing is wrong yet.
    archive.run(&["check", "checksums"]).expect(0);
    archive.store_into_some("d.warc", SIZE);
    wait("the disk to be reported", || {
        let problems = problems(&archive);
        let is_told = problems
            .iter()
            .any(|problem| problem.contains("Read-only file system"));
        is_told.then_some(()).ok_or(problems)
    });
    for _ in 0..2 {
        archive.until(&["check", "files"], 1);
        let filed = concluded(&archive);
        let is_old = |name: &str| names.contains(&name);
        assert!(!filed.iter().any(|(name, ..)| is_old(name)), "{filed:?}");
    }
    for name in names {
        let back = archive.path("back");
        archive
            .run(&["get", name, "-o", text(&back), "--force"])
            .expect(0);
        assert!(std::fs::read(&back).expect("read") == content(name, SIZE));
    }
    // Writable again, it is not believed before people say so.
    run("mount", &["-o", "remount,rw", text(&behind)]);
    archive.store_into_some("d.warc", SIZE);
    let (_, id) = volumes(&archive)
        .into_iter()
        .find(|(problem, _)| !problem.is_empty())
        .expect("it is offline");
    archive.run(&["volume", "clear", &id]).expect(0);
    archive.until(&["store", text(&archive.path("d.warc"))], 0);
    nothing_has_happened(&archive, "cleared");
    assert_eq!(files_below(&behind).len(), names.len() + 1);
    archive.stop();
}

/// Fails if what is sent to one disk counts as taken from all of them, or both go to the one with most room.
#[test]
fn two_stores_at_once_fill_two_disks() {
    if !has_own_mounts("mounted::two_stores_at_once_fill_two_disks") {
        return;
    }
    let archive = with_disks(&["left", "right"]);
    let files = ["a.warc", "b.warc"].map(|name| archive.make(name, 20_000_000));
    archive
        .run(&["store", "-j", "2", text(&files[0]), text(&files[1])])
        .expect(0);
    for disk in ["left", "right"] {
        assert_eq!(files_below(&behind(&archive, disk)).len(), 1, "{disk}");
    }
    archive.stop();
}

/// Fails if a node takes another disk at a mount point for its own, so that files are reported as missing or stored on
/// the wrong disk.
#[test]
fn swapped_disk_is_offline_without_missing_files() {
    if !has_own_mounts("mounted::swapped_disk_is_offline_without_missing_files") {
        return;
    }
    let archive = with_disks(&["left", "right"]);
    let names = ["a.warc", "b.warc", "c.warc", "d.warc", "e.warc", "f.warc"];
    for name in names {
        archive.until(&["store", text(&archive.make(name, SIZE))], 0);
    }
    let left = archive.path("left");
    let right = archive.path("right");
    let disks = [behind(&archive, "left"), behind(&archive, "right")];
    for disk in &disks {
        assert!(!files_below(disk).is_empty(), "both have some");
    }
    let told = |what: &str, count: usize| {
        wait(what, || {
            let problems = problems(&archive);
            let is_so =
                problems.len() == count && problems.iter().all(|problem| problem.contains(what));
            is_so.then_some(()).ok_or(problems)
        });
    };

    // The disk of the other replica's node, over it.
    run(
        "mount",
        &["--bind", text(&archive.volume("one")), text(&left)],
    );
    told("of node one-1 in replica one", 1);
    nothing_is_concluded(&archive, "another node's disk");
    unmount(&left);
    nothing_has_happened(&archive, "another node's disk");

    // Nothing at all.
    unmount(&left);
    told("there is no holdfast-volume.json", 1);
    nothing_is_concluded(&archive, "an empty mount point");

    // Both, each where the other was.
    unmount(&right);
    run("mount", &["--bind", text(&disks[1]), text(&left)]);
    run("mount", &["--bind", text(&disks[0]), text(&right)]);
    told("mount each disk where it was", 2);
    nothing_is_concluded(&archive, "swapped disks");
    archive.store_into_some("g.warc", SIZE);

    unmount(&left);
    unmount(&right);
    run("mount", &["--bind", text(&disks[0]), text(&left)]);
    run("mount", &["--bind", text(&disks[1]), text(&right)]);
    archive.until(&["store", text(&archive.path("g.warc"))], 0);
    nothing_has_happened(&archive, "swapped disks");
    let count: usize = disks.iter().map(|disk| files_below(disk).len()).sum();
    assert_eq!(count, names.len() + 1);
    for name in names {
        let back = archive.path(&format!("back-{name}"));
        archive.run(&["get", name, "-o", text(&back)]).expect(0);
        assert!(std::fs::read(&back).expect("read") == content(name, SIZE));
    }
    archive.stop();
}
