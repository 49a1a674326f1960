//! Moves into the attic and back, and purges.

mod drain;
mod purge;

use std::time::Duration;

use archive_daemon::Period;
use archive_model::{Cause, FileContent, Mode};
use jiff::SignedDuration;

use super::disks::{id, store_on, with_two};
use super::*;
use crate::attic::{
    AtticId, AtticItemKind, AtticReason, ItemReference, LocalAtticItem, RemovalOrder,
};

pub(super) fn cause() -> Cause {
    Cause::new("officer/o-1", "a test").unwrap()
}

pub(super) fn root(bytes: &[u8]) -> Root {
    Root::from_bytes(*blake3::hash(bytes).as_bytes())
}

fn later(duration: Duration) -> Timestamp {
    now()
        .checked_add(SignedDuration::try_from(duration).unwrap())
        .unwrap()
}

const DAY: Duration = Duration::from_hours(24);

pub(super) fn items(node: &Node) -> Vec<LocalAtticItem> {
    let mut items = Vec::new();
    for (volume, layout) in node.disks.volumes.online_layouts() {
        let mut listed = crate::attic::list_items(&layout, &volume).unwrap();
        listed.sort_unstable();
        items.extend(
            listed
                .iter()
                .map(|one| crate::attic::read_item(&layout, one)),
        );
    }
    items
}

pub(super) fn removal(file: &str, volume: VolumeId, checksum: Root) -> RemovalOrder {
    RemovalOrder {
        name: name(file),
        volume,
        checksum,
        cause: cause(),
    }
}

fn put_aside(node: &Node, file: &str, bytes: &[u8]) -> Result<LocalAtticItem, NodeError> {
    node.attic
        .put_copy_aside(&removal(file, id("v1"), root(bytes)), now())
}

fn restore_item(node: &Node, item: &LocalAtticItem) -> Result<CatalogEntry, NodeError> {
    node.attic
        .restore_item(&id("v1"), &AtticId::new(&item.id).unwrap(), &cause(), now())
}

impl NodeMachine {
    fn place(&self, item: &LocalAtticItem) -> PathBuf {
        self.path("disk/attic").join(&item.id)
    }

    pub(super) fn manifest(&self, file: &str) -> String {
        let manifest =
            Layout::new(&self.path("disk")).manifest(crate::FileDirectory::for_name(&name(file)));
        std::fs::read_to_string(manifest).unwrap_or_default()
    }
}

/// Returns the root of the whole file in an item.
fn checksum_in(node: &Node, item: &LocalAtticItem) -> Option<Root> {
    let name = item
        .name
        .as_ref()
        .filter(|_| item.kind == AtticItemKind::File)?;
    let layout = node.disks.find_layout(&item.volume).ok()?;
    let place = layout.attic().join(&item.id);
    let file = place.join(layout.target_paths(name).file.file_name().unwrap());
    std::fs::read(file).ok().map(|bytes| root(&bytes))
}

fn purge(node: &Node, item: &LocalAtticItem, now: Timestamp) -> Result<u64, NodeError> {
    let checksum = checksum_in(node, item);
    purge_named(node, item, checksum, now)
}

fn purge_named(
    node: &Node,
    item: &LocalAtticItem,
    checksum: Option<Root>,
    now: Timestamp,
) -> Result<u64, NodeError> {
    let id = AtticId::new(&item.id).unwrap();
    node.attic.purge_item(
        &ItemReference {
            volume: item.volume.clone(),
            id,
            checksum,
            cause: cause(),
        },
        now,
    )
}

/// Fails if a move into the attic or out of it changes a copy, or loses its sidecar or outboard.
#[test]
fn copy_moves_to_attic_and_back_whole() {
    let machine = NodeMachine::new();
    let (mut node, _) = machine.start();
    for (file, size) in [
        ("a", 100_000),
        ("small", 10),
        ("why", 20_000),
        ("why.json", 20_000),
        ("empty", 0),
    ] {
        let content = bytes(size);
        let stored = machine.store(&node, file, &content).unwrap();
        assert!(machine.manifest(file).contains(&format!("  {file}\n")));
        let item = put_aside(&node, file, &content).unwrap();
        assert_eq!(
            (item.kind, item.name.as_ref(), item.damaged.as_ref()),
            (AtticItemKind::File, Some(&name(file)), None)
        );
        assert_eq!(
            (item.who.as_str(), item.why.as_str()),
            ("officer/o-1", "a test")
        );
        assert!(item.bytes > size as u64, "with its sidecar");
        let target = machine.target(file);
        for path in [&target.file, &target.sidecar, &target.outboard] {
            assert!(!path.try_exists().unwrap(), "{}", path.display());
        }
        assert!(node.files.find_copies(&name(file)).unwrap().is_empty());
        assert!(!machine.manifest(file).contains(&format!("  {file}\n")));
        assert_eq!(items(&node), std::slice::from_ref(&item));

        drop(node);
        let (again, found) = machine.start();
        node = again;
        assert_eq!(found.missing, 0, "withdrawn is not missing");
        assert_eq!(items(&node), std::slice::from_ref(&item));

        let back = restore_item(&node, &item).unwrap();
        assert_eq!(back, stored);
        assert_eq!(std::fs::read(&target.file).unwrap(), content);
        assert!(machine.manifest(file).contains(&format!("  {file}\n")));
        assert!(items(&node).is_empty());
        assert_eq!(machine.incoming(), 0);
        let reading = node.files.open_file(&name(file)).unwrap();
        assert_eq!(reading.outboard.is_some(), size > 16_384);
    }
    drop(node);
    let (_, found) = machine.start();
    assert_eq!((found.unchanged, found.manifests), (5, 0), "{found:?}");
}

/// Fails if the name of a removed copy stays taken, or an item replaces the file that has its name now.
#[test]
fn item_never_comes_back_over_another_file() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..3 {
        machine.store(&node, "a", b"one").unwrap();
        ids.insert(put_aside(&node, "a", b"one").unwrap().id);
    }
    assert_eq!(ids.len(), 3, "within one second");
    machine.store(&node, "a", b"one").unwrap();
    let item = items(&node).remove(0);
    assert!(matches!(
        restore_item(&node, &item),
        Err(NodeError::Taken { .. })
    ));
    put_aside(&node, "a", b"one").unwrap();
    // A stranger under the name, of which the catalog knows nothing yet.
    std::fs::write(machine.target("a").file, "stranger").unwrap();
    assert!(matches!(
        restore_item(&node, &item),
        Err(NodeError::Taken { .. })
    ));
    assert_eq!(
        std::fs::read(machine.target("a").file).unwrap(),
        b"stranger"
    );
    std::fs::remove_file(machine.target("a").file).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    assert_eq!(items(&node).len(), 4);
}

/// Fails if a removal with a wrong checksum moves the copy, uses up the allowance of removals or reveals the right one,
/// or a rotten copy is known by its recorded root only.
#[test]
fn another_checksum_moves_nothing_and_learns_nothing() {
    let machine = NodeMachine::new();
    let limits = AtticSettings {
        removals_per_hour: 1,
        ..AtticSettings::default()
    };
    let (node, _) = machine.start_with(limits);
    machine.store(&node, "a", b"one").unwrap();
    for _ in 0..3 {
        let refused = put_aside(&node, "a", b"two").unwrap_err();
        assert!(matches!(refused, NodeError::OtherCopy { .. }));
        assert!(!refused.to_string().contains(&root(b"one").to_string()));
    }
    assert!(items(&node).is_empty());
    assert!(matches!(
        put_aside(&node, "b", b"two"),
        Err(NodeError::NotFound(_))
    ));
    let v9 = id("v9");
    assert!(
        node.attic
            .put_copy_aside(&removal("a", v9.clone(), root(b"one")), now())
            .is_err()
    );
    // A rotten copy is named by its present root, not by that of the catalog.
    make_writable(&machine.target("a").file);
    std::fs::write(machine.target("a").file, "rot").unwrap();
    assert!(matches!(
        put_aside(&node, "a", b"one"),
        Err(NodeError::OtherCopy { .. })
    ));
    put_aside(&node, "a", b"rot").unwrap();
}

/// Fails if a file without an admission cannot be removed, or comes back from the attic.
#[test]
fn unexpected_file_is_never_taken_back() {
    let machine = NodeMachine::new();
    std::fs::write(machine.target("a").file, "stranger").unwrap();
    let (node, found) = machine.start();
    assert_eq!(found.unexpected, 1);
    let item = put_aside(&node, "a", b"stranger").unwrap();
    assert!(node.files.find_copies(&name("a")).unwrap().is_empty());
    let refused = restore_item(&node, &item).unwrap_err();
    assert!(matches!(refused, NodeError::Admission { .. }), "{refused}");
    assert_eq!(items(&node), [item]);
}

type Damage<'a> = (&'a str, &'a dyn Fn(&Path), bool);

/// Fails if an item with a rotten file, sidecar or reason is restored out of the attic, or a rotten or absent outboard,
/// which can be computed again, prevents that.
#[test]
fn only_proven_bytes_come_back() {
    let content = bytes(60_000);
    let flip = |path: &Path| {
        make_writable(path);
        let mut bytes = std::fs::read(path).unwrap();
        bytes[20] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };

    let damages: [Damage<'_>; 9] = [
        ("nothing", &|_| {}, true),
        (
            "the outboard rotted",
            &|place| flip(&place.join("a.bao")),
            true,
        ),
        (
            "no outboard",
            &|place| std::fs::remove_file(place.join("a.bao")).unwrap(),
            true,
        ),
        ("the file rotted", &|place| flip(&place.join("a")), false),
        (
            "no file",
            &|place| std::fs::remove_file(place.join("a")).unwrap(),
            false,
        ),
        (
            "the sidecar rotted",
            &|place| flip(&place.join("a.json")),
            false,
        ),
        (
            "no sidecar",
            &|place| std::fs::remove_file(place.join("a.json")).unwrap(),
            false,
        ),
        (
            "no reason",
            &|place| std::fs::remove_file(place.join("why.json")).unwrap(),
            false,
        ),
        (
            "the reason names another file",
            &|place| {
                let path = place.join("why.json");
                let text = std::fs::read_to_string(&path).unwrap();
                std::fs::write(&path, text.replace("\"a\"", "\"../../b\"")).unwrap();
            },
            false,
        ),
    ];
    for (what, damage, comes_back) in damages {
        let machine = NodeMachine::new();
        let (node, _) = machine.start();
        machine.store(&node, "a", &content).unwrap();
        let item = put_aside(&node, "a", &content).unwrap();
        damage(&machine.place(&item));
        let result = restore_item(&node, &item);
        assert_eq!(result.is_ok(), comes_back, "{what}: {result:?}");
        assert_eq!(
            machine.target("a").file.try_exists().unwrap(),
            comes_back,
            "{what}"
        );
        assert_eq!(items(&node).is_empty(), comes_back, "{what}");
        assert_eq!(machine.incoming(), 0, "{what}");
        if comes_back {
            let made = node.files.open_file(&name("a")).unwrap().outboard.unwrap();
            let mut expected = Vec::new();
            let data = content.as_slice();
            let admitted = FileContent {
                root: root(data),
                size: data.len() as u64,
            };
            archive_proof::rebuild_outboard(&data, admitted, &mut expected).unwrap();
            assert_eq!(made.root().unwrap(), root(&expected), "{what}");
        }
    }
}

/// Fails if an item is restored onto a volume that drains or is offline, into a read-only node, or beside a copy on
/// another volume.
#[test]
fn nothing_comes_back_where_nothing_is_taken() {
    let machine = with_two();
    let (node, _) = machine.start();
    store_on(&machine, &node, "v1", "a", b"one");
    let item = put_aside(&node, "a", b"one").unwrap();
    node.disks
        .set_volume_mode(&id("v1"), Mode::Draining)
        .unwrap();
    assert!(matches!(
        restore_item(&node, &item),
        Err(NodeError::TakesNothing { .. })
    ));
    node.disks
        .set_volume_mode(&id("v1"), Mode::ReadWrite)
        .unwrap();
    node.disks.set_node_mode(Mode::ReadOnly).unwrap();
    assert!(matches!(
        restore_item(&node, &item),
        Err(NodeError::TakesNothing { .. })
    ));
    node.disks.set_node_mode(Mode::ReadWrite).unwrap();
    store_on(&machine, &node, "v2", "a", b"one");
    assert!(
        matches!(restore_item(&node, &item), Err(NodeError::Taken { .. })),
        "on another volume"
    );
    let gone = AtticId::new("20260101T000000Z-none").unwrap();
    assert!(matches!(
        node.attic.restore_item(&id("v1"), &gone, &cause(), now()),
        Err(NodeError::NoItem { .. })
    ));
    std::fs::rename(machine.path("disk"), machine.path("away")).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    assert!(matches!(
        restore_item(&node, &item),
        Err(NodeError::Offline { .. })
    ));
    assert!(matches!(
        put_aside(&node, "a", b"one"),
        Err(NodeError::Offline { .. })
    ));
    assert!(matches!(
        purge(&node, &item, later(90 * DAY)),
        Err(NodeError::Offline { .. })
    ));
}

/// Fails if a restart or a purge passes the brake uncounted.
#[test]
fn brake_survives_restart_and_counts_purges() {
    let machine = NodeMachine::new();
    let limits = AtticSettings {
        removals_per_hour: 3,
        min_age: Period::from_secs(60),
        ..AtticSettings::default()
    };
    let (mut node, _) = machine.start_with(limits);
    for file in ["a", "b", "c", "d"] {
        machine.store(&node, file, b"x").unwrap();
    }
    let v1 = id("v1");
    let aside = |node: &Node, file: &str, at: Timestamp| {
        node.attic
            .put_copy_aside(&removal(file, v1.clone(), root(b"x")), at)
    };
    let minute = |minutes: u64| later(Duration::from_mins(minutes));
    let item = aside(&node, "a", minute(0)).unwrap();
    aside(&node, "b", minute(1)).unwrap();
    purge(&node, &item, minute(2)).unwrap();
    for _ in 0..2 {
        let refused = aside(&node, "c", minute(59)).unwrap_err();
        assert!(matches!(refused, NodeError::TooManyRemovals { again, .. } if again == minute(60)));
        assert!(machine.target("c").file.try_exists().unwrap());
        drop(node);
        node = machine.start_with(limits).0;
    }
    aside(&node, "c", minute(60)).unwrap();
    let rest = items(&node);
    assert!(matches!(
        purge(&node, &rest[0], minute(60)),
        Err(NodeError::TooManyRemovals { .. })
    ));
    purge(&node, &rest[0], minute(61)).unwrap();
    let nothing = AtticSettings {
        removals_per_hour: 0,
        ..limits
    };
    drop(node);
    let (node, _) = machine.start_with(nothing);
    assert!(matches!(
        aside(&node, "d", minute(600)),
        Err(NodeError::TooManyRemovals { .. })
    ));
}
