//! The verification of copies: each is judged by its root, even if all else is rotten.

use std::os::unix::fs::PermissionsExt;

use archive_model::Groups;

use super::broken::{SIZE, damage, on, set, spoil, verify};
use super::*;
use crate::work::Work;

/// A way for bytes to rot.
type Rot = fn(&mut Vec<u8>);

fn later() -> Timestamp {
    now() + jiff::SignedDuration::from_hours(1)
}

/// Fails if a good copy is not noted as verified now, or a flipped group is not named.
#[test]
fn verification_is_dated_and_names_flips() {
    let machine = NodeMachine::new();
    let node = machine.with_file("a");
    let mut read = 0;
    let entry = node
        .files
        .verify_copy(&name("a"), None, later(), &mut |bytes| {
            read += bytes;
            on(bytes)
        })
        .unwrap();
    assert_eq!(entry.row.condition, Condition::Present);
    assert_eq!(entry.row.verified, Some(later()));
    assert_eq!(read, SIZE as u64);
    assert_eq!(node.files.count_findings().total(), 0);
    machine.flip("a", &[0, 3, 10]);
    let found = verify(&node, "a");
    assert_eq!(damage(&found), (set(&[0, 3, 10]), Groups::none()));
    assert_eq!(
        found.row.verified,
        Some(later()),
        "when it was last found good"
    );
    assert_eq!(listing(&node), std::slice::from_ref(&found));
    assert_eq!(node.files.count_findings().damaged, 1);
    machine.flip("a", &[3]);
    assert_eq!(damage(&verify(&node, "a")).0, set(&[0, 10]));
    machine.flip("a", &[0, 10]);
    assert_eq!(verify(&node, "a").row.condition, Condition::Present);
    assert_eq!(node.files.count_findings().total(), 0);
}

/// Fails if a verification reads through a link, or takes a directory for a file.
#[test]
fn links_and_directories_are_never_followed() {
    let all = Groups::all(SIZE as u64);
    let machine = NodeMachine::new();
    let node = machine.with_file("a");
    let path = machine.target("a").file;
    let content = bytes(SIZE);
    let cases: [(&str, Vec<u8>, Groups); 7] = [
        (
            "cut in the last group",
            content[..SIZE - 1].to_vec(),
            set(&[10]),
        ),
        (
            "cut at a group",
            content[..16_384 * 9].to_vec(),
            set(&[9, 10]),
        ),
        ("empty", Vec::new(), all.clone()),
        ("grown", [&content[..], b"x"].concat(), set(&[10])),
        (
            "grown and flipped",
            [b"x", &content[1..], &vec![0; 50_000]].concat(),
            set(&[0, 10]),
        ),
        ("zeros", vec![0; SIZE], all.clone()),
        ("garbage", vec![77; SIZE], all.clone()),
    ];
    for (what, spoilt, corrupt) in cases {
        spoil(&path, |content| *content = spoilt);
        assert_eq!(
            damage(&verify(&node, "a")),
            (corrupt, Groups::none()),
            "{what}"
        );
    }
    let missing = |what: &str| {
        let entry = verify(&node, "a");
        assert!(
            matches!(entry.row.condition, Condition::Missing { .. }),
            "{what}: {entry:?}"
        );
    };
    std::fs::remove_file(&path).unwrap();
    missing("gone");
    std::fs::create_dir(&path).unwrap();
    missing("a directory");
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(machine.path("elsewhere"), &content).unwrap();
    std::os::unix::fs::symlink(machine.path("elsewhere"), &path).unwrap();
    missing("a link to the very bytes");
    // Something that is no file in the place of the file goes aside when the file is stored again.
    machine.store(&node, "a", &content).unwrap();
    assert_eq!(verify(&node, "a").row.condition, Condition::Present);
    assert_eq!(machine.content("a"), content);
    assert!(machine.attic()[0].join("a").is_symlink());
    assert_eq!(std::fs::read(machine.path("elsewhere")).unwrap(), content);
}

/// Fails if a file that may not be read counts as good, or as missing.
#[test]
fn file_without_permission_is_wholly_unreadable() {
    let machine = NodeMachine::new();
    let node = machine.with_file("a");
    let path = machine.target("a").file;
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        tools_testing::skipped("root reads a file without permission");
        return;
    }
    let (corrupt, unreadable) = damage(&verify(&node, "a"));
    assert_eq!(
        (corrupt, unreadable),
        (Groups::none(), Groups::all(SIZE as u64))
    );
}

/// Fails if a rotten outboard makes good data damaged, or stays rotten.
#[test]
fn rotten_outboard_never_blames_the_data() {
    let machine = NodeMachine::new();
    let node = machine.with_file("a");
    let path = machine.target("a").outboard;
    let good = std::fs::read(&path).unwrap();
    assert_eq!(good.len(), 10 * 64);
    let rots: [(&str, Rot); 6] = [
        ("the root pair", |outboard| outboard[9 * 64 + 3] ^= 1),
        ("in the middle", |outboard| outboard[6 * 64 + 40] ^= 1),
        ("a leaf", |outboard| outboard[5] ^= 1),
        ("all of it", |outboard| outboard.fill(0)),
        ("cut", |outboard| outboard.truncate(100)),
        ("grown", |outboard| outboard.push(0)),
    ];
    for (what, rot) in rots {
        spoil(&path, rot);
        assert_eq!(
            verify(&node, "a").row.condition,
            Condition::Present,
            "{what}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), good, "{what}");
        assert_eq!(machine.incoming(), 0);
    }
    std::fs::remove_file(&path).unwrap();
    verify(&node, "a");
    assert_eq!(std::fs::read(&path).unwrap(), good);
    // With damage in the data, the data is named, exactly, and the outboard waits.
    machine.flip("a", &[4]);
    spoil(&path, |outboard| outboard[9 * 64 + 3] ^= 1);
    assert_eq!(damage(&verify(&node, "a")).0, set(&[4]));
    assert_ne!(std::fs::read(&path).unwrap(), good);
    machine.flip("a", &[4]);
    assert_eq!(verify(&node, "a").row.condition, Condition::Present);
    assert_eq!(std::fs::read(&path).unwrap(), good);
}

/// Fails if a good file with a rotten sidecar passes, or cannot be read.
#[test]
fn rotten_sidecar_makes_file_unexpected_but_readable() {
    let machine = NodeMachine::new();
    let node = machine.with_file("a");
    spoil(&machine.target("a").sidecar, |text| text[100] ^= 1);
    let entry = verify(&node, "a");
    assert!(matches!(entry.row.condition, Condition::Unexpected { .. }));
    assert!(entry.row.root.is_some());
    assert_eq!(entry.row.verified, Some(now()));
    node.files.open_file(&name("a")).unwrap();
    spoil(&machine.target("a").sidecar, |text| text[100] ^= 1);
    assert_eq!(verify(&node, "a").row.condition, Condition::Present);
}

/// Fails if the repository cannot recognise an unexpected file, because it has no root.
#[test]
fn verified_stranger_gets_a_root() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    std::fs::write(machine.target("a").file, "not ours").unwrap();
    let entry = verify(&node, "a");
    assert!(matches!(entry.row.condition, Condition::Unexpected { .. }));
    assert_eq!(
        entry.row.root.unwrap().as_bytes(),
        blake3::hash(b"not ours").as_bytes()
    );
    assert!(matches!(
        node.files.verify_copy(&name("b"), None, now(), &mut on),
        Err(NodeError::NotFound(_))
    ));
}

/// Fails if a verification, a mend and an upload can work on one file at once, or a verification that was stopped
/// counts as done.
#[test]
fn work_on_a_file_excludes_other_work() {
    let machine = NodeMachine::new();
    let node = machine.with_file("a");
    let hold = node.files.locks.hold_file(&name("a"), Work::Mend).unwrap();
    assert!(matches!(
        node.files.verify_copy(&name("a"), None, now(), &mut on),
        Err(NodeError::AtWork { .. })
    ));
    drop(hold);
    let upload = UploadId::new("u9").unwrap();
    let receiving = node.files.begin_upload(&upload, &name("b"), 5).unwrap();
    std::fs::write(machine.target("b").file, "x").unwrap();
    assert!(matches!(
        node.files.verify_copy(&name("b"), None, now(), &mut on),
        Err(NodeError::NotFound(_))
    ));
    assert!(matches!(
        node.files.locks.hold_file(&name("b"), Work::Verify),
        Err(NodeError::Busy { .. })
    ));
    drop(receiving);
    let hold = node
        .files
        .locks
        .hold_file(&name("c"), Work::Verify)
        .unwrap();
    assert!(matches!(
        node.files.begin_upload(&upload, &name("c"), 5),
        Err(NodeError::AtWork { .. })
    ));
    drop(hold);
    let mut calls = 0;
    let stopped = node.files.verify_copy(&name("a"), None, later(), &mut |_| {
        calls += 1;
        std::ops::ControlFlow::Break(())
    });
    assert!(matches!(stopped, Err(NodeError::Stopped(_))));
    assert_eq!(calls, 1);
    assert_eq!(
        listing(&node)[0].row.verified,
        Some(now()),
        "nothing is written"
    );
}

/// Fails if a disk that is unmounted during a verification makes its files damaged or missing.
#[test]
fn volume_lost_during_read_changes_no_row() {
    let machine = NodeMachine::new();
    let node = machine.with_file("a");
    let before = listing(&node);
    let away = node
        .files
        .verify_copy(&name("a"), None, later(), &mut |bytes| {
            std::fs::rename(machine.path("disk"), machine.path("away")).unwrap();
            std::fs::create_dir(machine.path("disk")).unwrap();
            on(bytes)
        });
    assert!(matches!(away, Err(NodeError::Offline { .. })), "{away:?}");
    let gone = node.files.verify_copy(&name("a"), None, later(), &mut on);
    assert!(matches!(gone, Err(NodeError::Offline { .. })), "{gone:?}");
    assert_eq!(listing(&node), before);
}
