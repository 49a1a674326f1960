//! Data of other releases: they are kept, read, or refused by name, and never read as something else.

use archive_db::{Database, DatabaseOptions, Table, TableValue, Text};
use archive_durable::Sidecar;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use super::attic::{cause, items, removal, root};
use super::broken::{mend, set, spoil, verify};
use super::*;
use crate::attic::AtticId;

type Key = (Text<FileName>, Text<VolumeId>);

fn volume() -> VolumeId {
    VolumeId::new("v1").unwrap()
}

fn catalog(machine: &NodeMachine) -> PathBuf {
    machine.path("data/catalog")
}

/// Returns the reason why a node does not start.
fn refused(machine: &NodeMachine) -> String {
    let options = machine.options.clone();
    Node::open(options, now()).unwrap_err().to_string()
}

/// Fails if an older build drops a field of a later release from a sidecar.
#[test]
fn unknown_field_stays_in_its_sidecar() {
    let machine = NodeMachine::new();
    let content = bytes(5 * 16_384);
    let (node, _) = machine.start();
    machine.store(&node, "a", &content).unwrap();
    drop(node);
    let path = machine.target("a").sidecar;
    spoil(&path, |text| {
        let mut sidecar = Sidecar::from_json(text).unwrap();
        let later = to_raw_value(&serde_json::json!({"copies": [1, 2]})).unwrap();
        sidecar.unknown.insert("lineage".to_owned(), later);
        *text = sidecar.to_json().unwrap();
    });
    let written = std::fs::read(&path).unwrap();
    std::fs::remove_dir_all(catalog(&machine)).unwrap();
    let (node, found) = machine.start();
    assert_eq!((found.added, found.unexpected), (1, 0), "{found:?}");
    // Damage that is mended, an outboard that is made anew, the way into the attic and back.
    machine.flip("a", &[2]);
    verify(&node, "a");
    mend(&node, "a", &content, &set(&[2])).unwrap();
    std::fs::remove_file(machine.target("a").outboard).unwrap();
    assert_eq!(verify(&node, "a").row.condition, Condition::Present);
    let aside = node
        .attic
        .put_copy_aside(&removal("a", volume(), root(&content)), now());
    let aside = AtticId::new(&aside.unwrap().id).unwrap();
    assert!(!path.try_exists().unwrap());
    node.attic
        .restore_item(&volume(), &aside, &cause(), now())
        .unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), written);
}

/// Fails if an older build overwrites a sidecar of a later format, or believes it.
#[test]
fn sidecar_of_later_format_is_kept() {
    let machine = NodeMachine::new();
    let content = bytes(20_000);
    let (node, _) = machine.start();
    let stored = machine.store(&node, "a", &content).unwrap();
    let path = machine.target("a").sidecar;
    let admitted = node.files.read_admission(&stored).unwrap();
    drop(node);
    spoil(&path, |text| {
        let later =
            String::from_utf8_lossy(text).replace("holdfast-sidecar/1", "holdfast-sidecar/2");
        *text = later.into_bytes();
    });
    let later = std::fs::read(&path).unwrap();
    std::fs::remove_dir_all(catalog(&machine)).unwrap();
    let (node, _) = machine.start();
    let entry = verify(&node, "a");
    let Condition::Unexpected { why } = &entry.row.condition else {
        panic!("{entry:?}")
    };
    assert!(why.contains("holdfast-sidecar/2"), "{why}");
    assert_eq!(entry.row.root, Some(root(&content)));
    assert_eq!(std::fs::read(&path).unwrap(), later);
    // The file can be adopted; what the later release wrote lies in the attic then.
    let admission = Envelope::parse(admitted.as_bytes()).unwrap();
    node.files
        .adopt_file(&name("a"), &volume(), &admission, now())
        .unwrap();
    assert_eq!(verify(&node, "a").row.condition, Condition::Present);
    let item = items(&node).remove(0);
    let kept = machine.path("disk/attic").join(&item.id).join("a.json");
    assert_eq!(std::fs::read(kept).unwrap(), later);
}

/// Fails if an older build opens or destroys a catalog of a later release.
#[test]
fn catalog_of_later_release_is_left_alone() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", b"one").unwrap();
    let before = listing(&node);
    drop(node);
    let row = before[0].row.clone();
    std::fs::remove_dir_all(catalog(&machine)).unwrap();
    let options = DatabaseOptions::new("catalog", 3, &["files", "findings", "later"]);
    let later = Database::open(&catalog(&machine), &options).unwrap();
    let files: Table<Key, crate::Row> = later.table("files").unwrap();
    let mut batch = later.batch();
    let key = (Text(name("a")), Text(volume()));
    batch.put(&files, &key, &row).unwrap();
    batch.commit().unwrap();
    let stamp = machine.path("data/catalog.stamp");
    std::fs::write(stamp, later.reach().to_string()).unwrap();
    drop((later, files));
    let said = refused(&machine);
    assert!(
        said.contains("catalog version 3") && said.contains("this build reads"),
        "{said}"
    );
    // The later release still has all of it.
    let later = Database::open(&catalog(&machine), &options).unwrap();
    let files: Table<Key, crate::Row> = later.table("files").unwrap();
    assert_eq!(files.get(&key).unwrap(), Some(row));
    drop((later, files));
    // A user who goes back permanently does without it.
    std::fs::remove_dir_all(catalog(&machine)).unwrap();
    let (node, _) = machine.start();
    assert_eq!(without_verified(listing(&node)), without_verified(before));
}

/// A row of a version that no release has written yet.
#[derive(Serialize, Deserialize)]
struct LaterRow(u64);

impl TableValue for LaterRow {
    const VERSION: u8 = 99;
}

/// Fails if a catalog with rows that this build cannot read is used.
#[test]
fn row_of_unknown_version_rebuilds_the_catalog() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    for file in ["a", "b", "c"] {
        machine.store(&node, file, &bytes(20_000)).unwrap();
    }
    let before = without_verified(listing(&node));
    drop(node);
    let options = DatabaseOptions::new("catalog", 2, &["files", "findings"]);
    let database = Database::open(&catalog(&machine), &options).unwrap();
    let rows: Table<Key, LaterRow> = database.table("files").unwrap();
    let mut batch = database.batch();
    let key = (Text(name("b")), Text(volume()));
    batch.put(&rows, &key, &LaterRow(7)).unwrap();
    batch.commit().unwrap();
    drop((database, rows));
    let (node, found) = machine.start();
    assert_eq!((found.added, found.unexpected), (3, 0), "{found:?}");
    assert_eq!(without_verified(listing(&node)), before);
}

/// Fails if an older build overwrites the memory or the label of a later release.
#[test]
fn later_memory_and_labels_are_refused_by_name() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", b"one").unwrap();
    drop(node);
    let later = |path: &Path, from: &str, to: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    };
    let label = machine
        .path("disk")
        .join(archive_durable::volume::LABEL_NAME);
    later(&label, "holdfast-volume/1", "holdfast-volume/2");
    let (node, found) = machine.start();
    assert_eq!(found, ReconcileReport::default(), "nothing is missing");
    let problem = node
        .disks
        .volumes
        .find_volume(&volume())
        .unwrap()
        .problem
        .unwrap();
    assert!(
        problem.to_string().contains("holdfast-volume/2"),
        "{problem}"
    );
    assert_eq!(listing(&node)[0].row.condition, Condition::Present);
    drop(node);
    later(&label, "holdfast-volume/2", "holdfast-volume/1");
    let memory = machine.path("data/volumes.json");
    later(&memory, "holdfast-volumes/1", "holdfast-volumes/2");
    let said = refused(&machine);
    assert!(said.contains("holdfast-volumes/2"), "{said}");
    later(&memory, "holdfast-volumes/2", "holdfast-volumes/1");
    assert_eq!(machine.start().1.unchanged, 1);
}
