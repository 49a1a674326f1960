//! A node on real volumes with a real catalog: what it takes, what it refuses, and what its next start finds.
#![expect(clippy::disallowed_methods, reason = "tests make and damage files")]

use archive_model::{FileName, Root, UploadId, VolumeId};
use archive_proof::{Admission, Envelope, SigningKey};

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::catalog::{CatalogEntry, Condition};
use crate::layout::Layout;
use crate::reconcile::ReconcileReport;
use crate::testing::{NodeMachine, sign};

mod adopt;
mod answered;
mod attic;
mod broken;
mod crash;
mod disks;
mod evidence;
mod mend;
mod misplaced;
mod names;
mod older;
mod published;
mod resume;
mod scrub;
mod strangers;
mod verify;
mod versions;
mod walk;

impl NodeMachine {
    fn incoming(&self) -> usize {
        std::fs::read_dir(self.path("disk/incoming"))
            .unwrap()
            .count()
    }
}

fn admission(file: &str, bytes: &[u8], upload: &str) -> Admission {
    Admission {
        upload: UploadId::new(upload).unwrap(),
        ..crate::testing::admission(file, bytes, now())
    }
}

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_second(4_000_000_000).unwrap()
}

fn bytes(size: usize) -> Vec<u8> {
    tools_testing::noise(size, 31)
}

fn listing(node: &Node) -> Vec<CatalogEntry> {
    node.files
        .list_entries(None)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn without_verified(mut entries: Vec<CatalogEntry>) -> Vec<CatalogEntry> {
    for entry in &mut entries {
        entry.row.verified = None;
    }
    entries
}

fn make_writable(path: &Path) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
}

/// Fails if a file or its outboard is lost or taken for changed at a restart, an empty file too, or a listing does not
/// continue after a name.
#[test]
fn stored_files_are_unchanged_after_restart() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    for size in [0, 1, 16_384, 16_385, 200_000] {
        machine
            .store(&node, &format!("f{size}"), &bytes(size))
            .unwrap();
    }
    let before = listing(&node);
    drop(node);
    let (node, found) = machine.start();
    assert_eq!(
        found,
        ReconcileReport {
            unchanged: 5,
            ..ReconcileReport::default()
        }
    );
    assert_eq!(listing(&node), before);
    let reading = node.files.open_file(&name("f200000")).unwrap();
    assert_eq!(
        reading.data.root().unwrap().as_bytes(),
        blake3::hash(&bytes(200_000)).as_bytes()
    );
    assert!(reading.outboard.is_some());
    assert_eq!(
        node.files
            .list_entries(Some(&name("f16384")))
            .unwrap()
            .count(),
        2,
        "a listing continues after a name"
    );
    assert_eq!(machine.incoming(), 0);
}

/// Fails if a file is committed whose name, size, root or upload differs from its admission, or whose admission no
/// trusted key signed, or its bytes keep their room.
#[test]
fn bytes_that_are_not_admitted_get_no_name() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let good = admission("a", &bytes(20_000), "u1");
    let other = SigningKey::from_seed([8; 32]);
    let cases = [
        sign(&Admission {
            name: name("b"),
            ..good.clone()
        }),
        sign(&Admission {
            size: 19_999,
            ..good.clone()
        }),
        sign(&Admission {
            root: Root::from_bytes([0; 32]),
            ..good.clone()
        }),
        sign(&Admission {
            upload: UploadId::new("u2").unwrap(),
            ..good.clone()
        }),
        good.sign(&other).unwrap(),
    ];
    for refused in cases {
        let mut receiving = node
            .files
            .begin_upload(&good.upload, &name("a"), 20_000)
            .unwrap();
        receiving.write_all(&bytes(20_000)).unwrap();
        let error = receiving.commit_upload(&refused, now()).unwrap_err();
        assert!(
            matches!(
                error,
                NodeError::Mismatch { .. } | NodeError::Admission { .. }
            ),
            "{error}"
        );
        assert_eq!(
            machine.incoming(),
            0,
            "no room is kept for what was refused"
        );
        assert!(!machine.target("a").file.try_exists().unwrap());
        assert!(node.files.find_copies(&name("a")).unwrap().is_empty());
    }
    machine.store(&node, "a", &bytes(20_000)).unwrap();
}

/// Fails if a second upload overwrites a file, begins beside a running upload of the same name, or is not given the
/// root of the file that is there.
#[test]
fn a_name_is_taken_once() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let first = UploadId::new("first").unwrap();
    let receiving = node.files.begin_upload(&first, &name("a"), 10).unwrap();
    assert!(
        matches!(machine.store(&node, "a", b"x"), Err(NodeError::Busy { upload, .. }) if upload == first)
    );
    drop(receiving);
    machine.store(&node, "a", b"one").unwrap();
    let Err(NodeError::Taken { root, .. }) = machine.store(&node, "a", b"two") else {
        panic!("not refused")
    };
    assert_eq!(root.unwrap().as_bytes(), blake3::hash(b"one").as_bytes());
    assert_eq!(std::fs::read(machine.target("a").file).unwrap(), b"one");
}

/// Fails if a restart loses the bytes of an upload, or an abandoned one keeps its room.
#[test]
fn cut_upload_resumes_and_abandoned_one_is_reaped() {
    let machine = NodeMachine::new();
    let content = bytes(100_000);
    let upload = UploadId::new("u1").unwrap();
    let (node, _) = machine.start();
    let mut receiving = node
        .files
        .begin_upload(&upload, &name("a"), 100_000)
        .unwrap();
    receiving.write_all(&content[..70_000]).unwrap();
    assert_eq!(receiving.sync_bytes().unwrap(), 65_536);
    drop(receiving);
    drop(node);
    let (node, found) = machine.start();
    assert_eq!(found, ReconcileReport::default(), "an upload is no file");
    assert_eq!(node.files.reap_uploads(0).unwrap(), 0, "it is not old yet");
    let mut receiving = node
        .files
        .begin_upload(&upload, &name("a"), 100_000)
        .unwrap();
    assert_eq!(receiving.received(), 65_536);
    assert_eq!(
        receiving.root_so_far().as_bytes(),
        blake3::hash(&content[..65_536]).as_bytes()
    );
    assert_eq!(
        node.files.reap_uploads(i64::MAX).unwrap(),
        0,
        "it is being received"
    );
    receiving.write_all(&content[65_536..]).unwrap();
    receiving
        .commit_upload(&sign(&admission("a", &content, "u1")), now())
        .unwrap();
    let other = UploadId::new("u2").unwrap();
    let mut receiving = node.files.begin_upload(&other, &name("b"), 50_000).unwrap();
    receiving.write_all(&content[..40_000]).unwrap();
    drop(receiving);
    let receiving = node
        .files
        .begin_upload_anew(&other, &name("b"), 50_000)
        .unwrap();
    assert_eq!(receiving.received(), 0, "what was left is forgotten");
    drop(receiving);
    assert_eq!(node.files.reap_uploads(i64::MAX).unwrap(), 1);
    assert_eq!(machine.incoming(), 0);
}

/// Fails if a catalog that is rebuilt from the disks is not the one that was lost.
#[test]
fn lost_or_damaged_catalog_is_rebuilt() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    for number in 0..50 {
        machine
            .store(&node, &format!("f{number:02}"), &bytes(number * 1000))
            .unwrap();
    }
    std::fs::remove_file(machine.target("f07").file).unwrap();
    drop(node);
    let (node, _) = machine.start();
    let before = without_verified(listing(&node));
    drop(node);
    let catalog = machine.path("data/catalog");
    let damages: [&dyn Fn(); 3] = [
        &|| std::fs::remove_dir_all(&catalog).unwrap(),
        &|| std::fs::remove_file(catalog.join("CURRENT")).unwrap(),
        &|| {
            for entry in std::fs::read_dir(&catalog).unwrap() {
                let path = entry.unwrap().path();
                if path
                    .extension()
                    .is_some_and(|kind| kind == "sst" || kind == "log")
                {
                    let mut content = std::fs::read(&path).unwrap();
                    let middle = content.len() / 2;
                    content
                        .get_mut(middle)
                        .into_iter()
                        .for_each(|byte| *byte ^= 0x10);
                    std::fs::write(&path, content).unwrap();
                }
            }
        },
    ];
    for damage in damages {
        damage();
        let (node, _) = machine.start();
        assert_eq!(without_verified(listing(&node)), before);
    }
}

/// Fails if the row of a file goes with the file, or its name cannot be stored again.
#[test]
fn lost_file_stays_known_and_is_stored_again() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", &bytes(20_000)).unwrap();
    drop(node);
    std::fs::remove_file(machine.target("a").file).unwrap();
    let (node, found) = machine.start();
    assert_eq!(found.missing, 1);
    assert!(matches!(
        listing(&node)[0].row.condition,
        Condition::Missing { .. }
    ));
    assert!(matches!(
        node.files.open_file(&name("a")),
        Err(NodeError::NotFound(_))
    ));
    machine.store(&node, "a", &bytes(20_000)).unwrap();
    assert_eq!(listing(&node)[0].row.condition, Condition::Present);
    let kept = std::fs::read_dir(machine.path("disk/attic"))
        .unwrap()
        .count();
    assert_eq!(kept, 1, "the old sidecar and outboard are in the attic");
}

/// Fails if a disk that is away makes its files missing, or frees their names.
#[test]
fn absent_volume_makes_no_file_missing() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", b"one").unwrap();
    drop(node);
    std::fs::rename(machine.path("disk"), machine.path("away")).unwrap();
    std::fs::create_dir(machine.path("disk")).unwrap();
    let (node, found) = machine.start();
    assert_eq!(found, ReconcileReport::default());
    assert_eq!(
        listing(&node)[0].row.condition,
        Condition::Present,
        "nobody looked"
    );
    assert!(matches!(
        node.files.open_file(&name("a")),
        Err(NodeError::Offline { .. })
    ));
    assert!(matches!(
        machine.store(&node, "a", b"two"),
        Err(NodeError::Taken { .. })
    ));
    assert!(matches!(
        machine.store(&node, "b", b"two"),
        Err(NodeError::NoSpace(_))
    ));
    assert_eq!(
        std::fs::read_dir(machine.path("disk")).unwrap().count(),
        0,
        "nothing is written to a wrong disk"
    );
    std::fs::remove_dir(machine.path("disk")).unwrap();
    std::fs::rename(machine.path("away"), machine.path("disk")).unwrap();
    assert_eq!(node.disks.refresh_volumes(now()).unwrap().unchanged, 1);
    node.files.open_file(&name("a")).unwrap();
}
