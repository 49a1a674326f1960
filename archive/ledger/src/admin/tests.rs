//! Admin data after a restart, their counts, and what is not an empty archive.

use archive_decisions::store::{FileRecord, ReplicaSpec};
use archive_model::{ReplicaId, ReplicaKind, ReplicaState, VolumeKey};
use jiff::Timestamp;

use super::*;
use crate::standing::{ReplicaRow, StandingSnapshot};

pub(super) fn row(name: &str) -> AdminRow {
    let spec = ReplicaSpec {
        id: ReplicaId::new("one").unwrap(),
        kind: ReplicaKind::Bitarchive,
        required: true,
    };
    let record = FileRecord::free_name(FileName::new(name).unwrap(), &[spec]).unwrap();
    AdminRow {
        record,
        depositor: "harvester/h".to_owned(),
        admission: None,
    }
}

pub(super) fn store(admin: &Admin, name: &str) {
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, &row(name)).unwrap();
    let line = AuditLine {
        at: Timestamp::UNIX_EPOCH,
        who: "harvester/h".to_owned(),
        file: Some(FileName::new(name).unwrap()),
        what: "stored".to_owned(),
    };
    changes.note_line(line);
    admin.commit_changes(changes).unwrap();
}

/// Fails if a committed row or line of the trail is lost at a restart, or the trail is sorted by name and not by time.
#[test]
fn rows_and_trail_are_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    store(&admin, "b");
    store(&admin, "a");
    admin.write_stamp().unwrap();
    drop(admin);
    let admin = Admin::init(directory.path()).unwrap();
    let names = |after: Option<&str>| {
        let after = after.map(|name| FileName::new(name).unwrap());
        let rows = admin.list_files(after.as_ref()).unwrap();
        rows.map(|row| row.unwrap().record.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(None), ["a", "b"]);
    assert_eq!(names(Some("a")), ["b"]);
    assert_eq!(
        admin.file(&FileName::new("a").unwrap()).unwrap(),
        Some(row("a"))
    );
    let trail = admin
        .audit_rows(0)
        .unwrap()
        .map(|row| row.unwrap().1.file.unwrap().to_string());
    assert_eq!(
        trail.collect::<Vec<_>>(),
        ["b", "a"],
        "in the order of what happened"
    );
}

/// Fails if a row that changes while the counts are taken is counted twice or not at all.
#[test]
fn rows_are_counted_while_they_change() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let file = |name: &str, size: u64| {
        let mut row = row(name);
        row.record.content = Some(archive_decisions::store::Content {
            root: archive_model::Root::from_bytes([1; 32]),
            size,
            digests: archive_model::Digests::default(),
        });
        row
    };
    let put = |row: &AdminRow| {
        let mut changes = admin.begin_changes();
        admin.put_row(&mut changes, row).unwrap();
        admin.put_row(&mut changes, row).unwrap();
        admin.commit_changes(changes).unwrap();
    };
    put(&file("a", 5));
    put(&file("b", 7));
    assert_eq!(admin.counts(), None);
    let mut seen = 0;
    admin
        .count_rows(|_| {
            seen += 1;
            put(&file("c", 11));
            put(&file("a", 13));
        })
        .unwrap();
    let counts = admin.counts().unwrap();
    assert_eq!((seen, counts.files, counts.bytes), (2, 3, 31));
    let mut now = StandingSnapshot::default();
    assert_eq!(now.below_required(&counts), 3);
    let one = counts.lacking.keys().next().unwrap().lacking.clone();
    let filling = ReplicaRow::Filling {
        since: Timestamp::UNIX_EPOCH,
        by: "operator/otto".to_owned(),
    };
    let excuse = |id: &ReplicaId| (id.clone(), filling.clone());
    now.replicas = one.iter().map(excuse).collect();
    assert_eq!(now.below_required(&counts), 0);
    let mut changes = admin.begin_changes();
    admin
        .forget_file(&mut changes, &FileName::new("b").unwrap())
        .unwrap();
    admin.commit_changes(changes).unwrap();
    assert_eq!(admin.counts().unwrap().bytes, 24);
}

/// Fails if the repository starts with empty admin data where its database is gone, empty or behind its stamp, or the
/// stamp is unreadable.
#[test]
fn a_database_that_vanished_is_no_empty_archive() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    store(&admin, "a");
    admin.write_stamp().unwrap();
    drop(admin);
    std::fs::remove_dir_all(directory.path().join("admin")).unwrap();
    // The same holds if an operator takes the archive for a new one, or has mounted nothing at all.
    for opened in [Admin::init(directory.path()), Admin::open(directory.path())] {
        assert!(matches!(opened, Err(AdminError::Absent(_))), "{opened:?}");
    }
    let nowhere = Admin::open(&directory.path().join("elsewhere"));
    assert!(matches!(nowhere, Err(AdminError::Absent(_))), "{nowhere:?}");
    std::fs::create_dir(directory.path().join("admin")).unwrap();
    assert!(Admin::open(directory.path()).is_err());
    std::fs::write(directory.path().join("admin/LOCK"), "").unwrap();
    let error = Admin::open(directory.path()).unwrap_err();
    assert!(
        matches!(&error, AdminError::Damaged { error, .. } if matches!(**error, DbError::Behind { .. })),
        "{error}"
    );
    std::fs::write(directory.path().join("admin.stamp"), "many").unwrap();
    assert!(matches!(
        Admin::open(directory.path()),
        Err(AdminError::Stamp { .. })
    ));
}

/// Fails if a node that takes a file is known to its monitor alone: were both gone, its files would be missing.
#[test]
fn node_with_a_copy_belongs_to_its_replica() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let node = NodeId::new("one-1").unwrap();
    let one = ReplicaId::new("one").unwrap();
    let mut row = row("a");
    row.record.replicas.get_mut(&one).unwrap().node = Some(node.clone());
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, &row).unwrap();
    admin.commit_changes(changes).unwrap();
    drop(admin);
    let admin = Admin::init(directory.path()).unwrap();
    assert_eq!(admin.list_nodes(&one).unwrap(), [node]);
}

/// Fails if a volume is not remembered in the batch of its first copy, or is forgotten while it has one.
#[test]
fn volume_with_copies_is_never_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let place = |volume: &str| VolumeKey {
        replica: "one".parse().unwrap(),
        node: "n-1".parse().unwrap(),
        volume: volume.parse().unwrap(),
    };
    let put = |admin: &Admin, volume: &str, state| {
        let mut row = row("a");
        let copy = row.record.replicas.values_mut().next().unwrap();
        copy.state = state;
        copy.node = Some("n-1".parse().unwrap());
        copy.volume = Some(volume.parse().unwrap());
        let mut changes = admin.begin_changes();
        admin.put_row(&mut changes, &row).unwrap();
        admin.commit_changes(changes).unwrap();
    };
    let known = |admin: &Admin| Vec::from_iter(admin.known_volumes().unwrap());
    let admin = Admin::init(directory.path()).unwrap();
    put(&admin, "v-1", ReplicaState::DataUploaded);
    assert_eq!(known(&admin), [], "nothing is there yet");
    put(&admin, "v-1", ReplicaState::UploadCompleted);
    assert_eq!(known(&admin), [place("v-1")]);
    assert!(!admin.forget_if_empty(&place("v-1")).unwrap());
    put(&admin, "v-2", ReplicaState::UploadCompleted);
    drop(admin);
    let admin = Admin::open(directory.path()).unwrap();
    assert_eq!(known(&admin), [place("v-1"), place("v-2")]);
    assert!(admin.forget_if_empty(&place("v-1")).unwrap());
    assert_eq!(known(&admin), [place("v-2")]);
}

/// Fails if a node or a volume comes or goes unnoticed, or those who have read them read them again for nothing.
#[test]
fn version_of_members_changes_with_them_only() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut version = admin.members_version();
    let mut has_changed = || {
        let before = std::mem::replace(&mut version, admin.members_version());
        version != before
    };
    let row = crate::restore::testing::row("a", 1);
    for is_new in [true, false] {
        let mut changes = admin.begin_changes();
        admin.put_row(&mut changes, &row).unwrap();
        admin.commit_changes(changes).unwrap();
        assert_eq!(has_changed(), is_new);
    }
    let replica = "one".parse().unwrap();
    let node = "one-9".parse().unwrap();
    for is_new in [true, false] {
        admin
            .add_nodes(&replica, std::slice::from_ref(&node))
            .unwrap();
        assert_eq!(has_changed(), is_new);
    }
    let volumes = admin.known_volumes().unwrap();
    let used = volumes.first().unwrap();
    assert!(!admin.forget_if_empty(used).unwrap() && !has_changed());
    let mut changes = admin.begin_changes();
    admin.forget_file(&mut changes, &row.record.name).unwrap();
    admin.commit_changes(changes).unwrap();
    assert!(admin.forget_if_empty(used).unwrap() && has_changed());
}
