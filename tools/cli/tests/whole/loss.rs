//! Nodes, disks and tables that are absent: their files are never taken for missing.

use std::path::Path;

use crate::archive::{Archive, wait};

fn stored(archive: &Archive, names: &[&str]) {
    for name in names {
        archive.store(name, 100_000);
    }
}

/// Fails if the files of a dead node are reported as missing, by a monitor above all that was started after the node
/// had died.
#[test]
fn killed_node_makes_check_partial_without_missing_files() {
    let mut archive = Archive::processes(&["repair.automatic=all", "repair.delay=1 s"]);
    stored(&archive, &["a.warc", "b.warc", "c.warc"]);
    archive.kill("bitarchive-two");
    for part in ["monitor-two", "repository"] {
        archive.kill(part);
        archive.restart(part);
    }
    // Before a monitor that was just started knows its nodes, there is nothing to file of any.
    wait("what could not be looked at is filed", || {
        let checked = archive.run(&["check", "files"]);
        assert!(!checked.out.contains("missing"), "{checked:?}");
        let filed = archive.run(&["anomalies"]);
        assert!(!filed.out.contains("missing"), "{filed:?}");
        let names_who = checked.out.contains("two");
        let is_filed = (checked.code, filed.code) == (1, 1) && names_who;
        is_filed.then_some(()).ok_or((checked, filed))
    });
    archive.restart("bitarchive-two");
    archive.until(&["check", "files"], 0);
    archive.run(&["anomalies"]).expect(0);
}

/// Fails if an empty disk in the place of a full one makes its files missing, or if one person alone can give the full
/// one up.
#[test]
fn empty_replacement_disk_needs_two_persons_to_retire() {
    let archive = Archive::start(&["repair.automatic=off", "scrub.enabled=false"]);
    let names = ["a.warc", "b.warc", "c.warc"];
    stored(&archive, &names);
    let volume = archive.volume("two");
    std::fs::rename(&volume, archive.path("pulled-out")).expect("rename");
    std::fs::create_dir(&volume).expect("mkdir");
    let checked = archive.until(&["check", "files"], 1);
    assert!(!checked.out.contains("missing"), "{checked:?}");

    // The disk is given up by two persons. While its node has no other, nothing can be copied again.
    // The next heartbeat says that it is offline.
    let status = archive.until(&["--json", "status"], 1).json();
    let (node, old) = of_replica(&status, "two");
    let asked = archive
        .run(&[
            "volume",
            "retire",
            &old,
            "--reason",
            "the disk was pulled out",
        ])
        .expect(0);
    let request = asked
        .out
        .split(|c: char| !c.is_ascii_alphanumeric())
        .find(|word| {
            word.strip_prefix('r')
                .is_some_and(|rest| rest.parse::<u64>().is_ok())
        })
        .expect("the id of the request")
        .to_owned();
    let alone = archive.run(&["approve", &request]);
    assert_eq!(alone.code, 5, "one person is not two: {alone:?}");
    archive
        .run(&["--as", "custodian/custodian-1", "approve", &request])
        .expect(0);
    let missing = |archive: &Archive| {
        let checked = archive.run(&["check", "files"]).expect(1);
        let is_missing = |name| checked.out.contains(&format!("missing      {name}  two"));
        let are_all = names.into_iter().all(is_missing);
        are_all.then_some(()).ok_or(checked)
    };
    wait("what the volume had is missing", || missing(&archive));

    // A new disk beside it takes everything.
    let spare = archive.data().join("two").join("spare");
    std::fs::create_dir(&spare).expect("mkdir");
    archive
        .run(&["volume", "init", path(&spare), "--node", &node])
        .expect(0);
    archive.until(&["repair", "--all"], 0);
    archive.until(&["check", "checksums"], 0);
    let found = crate::archive::files_below(&spare);
    assert_eq!(found.len(), names.len(), "{found:?}");
}

/// Returns the first node and volume of a replica in what `status --json` says.
fn of_replica(status: &serde_json::Value, replica: &str) -> (String, String) {
    let found = status["replicas"]
        .as_array()
        .expect("replicas")
        .iter()
        .find(|one| one["replica"] == replica || one["id"] == replica)
        .expect("the replica");
    let node = &found["nodes"][0];
    let volume = node["volumes"]
        .as_array()
        .expect("volumes")
        .iter()
        .find_map(|volume| volume["volume"].as_str())
        .expect("a volume");
    (
        node["node"].as_str().expect("a node").to_owned(),
        volume.to_owned(),
    )
}

fn path(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Fails if a catalog that is built anew, or admin data that are restored from the replicas, list other files than
/// before.
#[test]
fn catalogs_and_admin_data_come_back() {
    let mut archive = Archive::processes(&["repair.automatic=off", "scrub.enabled=false"]);
    stored(&archive, &["a.warc", "b.warc", "c.warc"]);
    let listing = |archive: &Archive| {
        ["one", "two", "three"].map(|replica| {
            archive
                .run(&["list", "--replica", replica, "--checksums"])
                .expect(0)
                .out
        })
    };
    let before = listing(&archive);
    let admin = archive.run(&["list", "--checksums"]).expect(0).out;
    archive.kill("bitarchive-one");
    let catalog = find(&archive.data().join("one"), "catalog");
    std::fs::remove_dir_all(catalog).expect("remove");
    archive.restart("bitarchive-one");
    archive.until(&["check", "files"], 0);
    assert_eq!(listing(&archive), before);

    archive.kill("repository");
    let data = archive.data().join("repository");
    std::fs::remove_dir_all(&data).expect("remove");
    let settings = archive.data().join("settings/repository.toml");
    archive
        .run(&[
            "admin",
            "restore",
            "--settings",
            path(&settings),
            "--from-replicas",
        ])
        .expect(0);
    archive.restart("repository");
    archive.until(&["check", "files"], 0);
    assert_eq!(archive.run(&["list", "--checksums"]).expect(0).out, admin);
    assert_eq!(listing(&archive), before);
    archive.run(&["check", "checksums"]).expect(0);
}

fn find(below: &Path, name: &str) -> std::path::PathBuf {
    let direct = below.join(name);
    if direct.is_dir() {
        return direct;
    }
    let entries = std::fs::read_dir(below).expect("list");
    entries
        .map(|entry| entry.expect("an entry").path().join(name))
        .find(|path| path.is_dir())
        .expect("it is there")
}
