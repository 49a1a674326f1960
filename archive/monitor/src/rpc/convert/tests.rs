//! Messages of nodes, translated.

use super::*;

/// The field that is to be named, and how it is spoilt.
type FieldFault<T> = (&'static str, fn(&mut T));

fn node() -> NodeId {
    NodeId::new("a").unwrap()
}

fn entry() -> wire::FileEntry {
    wire::FileEntry {
        name: "f.warc".to_owned(),
        node: "a".to_owned(),
        volume: "v1".to_owned(),
        size: 5,
        root: vec![7; 32].into(),
        condition: wire::CopyCondition::Present.into(),
        ..wire::FileEntry::default()
    }
}

/// Fails if an entry with a value that cannot be, for instance a name with `..` or another node's id, is accepted, or
/// the error blames another field.
#[test]
fn a_bad_entry_names_its_field() {
    assert!(wire_listed(&node(), entry()).is_ok());
    let spoilt: [FieldFault<wire::FileEntry>; 10] = [
        ("name", |e| e.name = "../f".to_owned()),
        ("name", |e| e.name.clear()),
        ("volume", |e| e.volume.clear()),
        ("node", |e| e.node = "b".to_owned()),
        ("root", |e| e.root.truncate(31)),
        ("condition", |e| e.condition = 0),
        ("condition", |e| e.condition = 99),
        ("corrupt", |e| {
            e.corrupt = vec![wire::GroupRange { start: 4, end: 4 }];
        }),
        ("stored", |e| e.stored.get_or_insert_default().nanos = -1),
        ("verified", |e| {
            e.verified.get_or_insert_default().seconds = i64::MAX;
        }),
    ];
    for (field, spoil) in spoilt {
        let mut entry = entry();
        spoil(&mut entry);
        assert_eq!(wire_listed(&node(), entry).unwrap_err().field, field);
    }
}

fn status() -> wire::NodeStatus {
    let volume = wire::VolumeStatus {
        volume: "v1".to_owned(),
        mode: wire::Mode::ReadWrite.into(),
        ..wire::VolumeStatus::default()
    };
    wire::NodeStatus {
        node: "a".to_owned(),
        endpoint: "h:1".to_owned(),
        volumes: vec![volume],
        usable: 7,
        ..wire::NodeStatus::default()
    }
}

/// Fails if a report with a value that cannot be, a volume twice or too many bytes is accepted, or the error blames
/// another field.
#[test]
fn a_bad_report_names_its_field() {
    let good = read_report(status()).unwrap();
    assert!(good.takes_files() && good.usable == 7);
    let spoilt: [FieldFault<wire::NodeStatus>; 9] = [
        ("endpoint", |s| s.endpoint.clear()),
        ("mode", |s| s.mode = 9),
        ("oldest_verification", |s| {
            s.oldest_verification = "once".to_owned();
        }),
        ("verify_by", |s| s.verify_by = "soon".to_owned()),
        ("volume", |s| s.volumes[0].volume.clear()),
        ("volume", |s| s.volumes[0].volume = "V 1".to_owned()),
        ("mode", |s| s.volumes[0].mode = 9),
        ("volumes", |s| s.volumes.push(s.volumes[0].clone())),
        ("status", |s| s.volumes[0].path = "x".repeat(LARGEST_STATUS)),
    ];
    for (field, spoil) in spoilt {
        let mut status = status();
        spoil(&mut status);
        assert_eq!(read_report(status).unwrap_err().field, field);
    }
}

/// Fails if a field of a node's report is lost on its way to the repository, or a draining node counts as one that
/// takes files.
#[test]
fn node_report_is_passed_on_whole() {
    let said = wire::NodeStatus {
        mode: wire::Mode::Draining.into(),
        findings: 3,
        findings_stamp: u64::MAX,
        oldest_verification: "2026-01-02T03:04:05Z".to_owned(),
        verify_by: "2026-02-01T03:04:05Z".to_owned(),
        ..status()
    };
    let read = read_report(said.clone()).unwrap();
    assert!(!read.takes_files());
    let node = node();
    let liveness = NodeLiveness {
        node: &node,
        life: NodeLife::Alive,
        last: Some((jiff::Timestamp::UNIX_EPOCH, &read)),
        unreported: Vec::new(),
    };
    let expected = wire::NodeStatus {
        seen: "1970-01-01T00:00:00Z".to_owned(),
        alive: true,
        ..said
    };
    assert_eq!(node_status(&liveness), expected);
}

/// Fails if the room of a node's other volumes is lost between what it says and what is passed on.
#[test]
fn room_of_other_volumes_is_passed_on() {
    let said = wire::NodeStatus {
        usable_elsewhere: vec![5, 2],
        ..status()
    };
    let read = read_report(said).unwrap();
    assert_eq!(read.free_rooms(), [7, 5, 2]);
    let node = node();
    let liveness = NodeLiveness {
        node: &node,
        life: NodeLife::Alive,
        last: Some((jiff::Timestamp::UNIX_EPOCH, &read)),
        unreported: Vec::new(),
    };
    let written = node_status(&liveness);
    assert_eq!((written.usable, written.usable_elsewhere), (7, vec![5, 2]));
}

/// Fails if a path without a volume refuses the whole report or counts as room, or a volume that the node does not name
/// any more is not listed.
#[test]
fn path_without_volume_is_shown_and_takes_nothing() {
    let mut status = status();
    let stray = &mut status.volumes[0];
    stray.volume.clear();
    stray.mode = wire::Mode::Unspecified.into();
    stray.problem = "empty".to_owned();
    let report = read_report(status).unwrap();
    assert!(!report.takes_files());
    let node = node();
    let forgotten = VolumeId::new("v9").unwrap();
    let liveness = NodeLiveness {
        node: &node,
        life: NodeLife::Silent,
        last: Some((jiff::Timestamp::UNIX_EPOCH, &report)),
        unreported: vec![&forgotten],
    };
    let written = node_status(&liveness);
    assert_eq!(
        (written.volumes[0].problem.as_str(), written.alive),
        ("empty", false)
    );
    assert_eq!(written.seen, "1970-01-01T00:00:00Z");
    let last = written.volumes.last().unwrap();
    assert_eq!(
        (last.volume.as_str(), last.problem.as_str()),
        ("v9", UNREPORTED)
    );
}

/// Fails if a node can report a gap in the name of another node or replica, or a disk without a volume id loses its
/// path.
#[test]
fn a_node_speaks_of_its_own_gaps_only() {
    let theirs = wire::Gap {
        replica: "two".to_owned(),
        node: "b".to_owned(),
        volume: "v1".to_owned(),
        reason: "gone".to_owned(),
    };
    let read = read_gap(&node(), &theirs);
    assert_eq!(read.to_string(), "node a, volume v1: gone");
    let written = wire_gaps(&ReplicaId::new("one").unwrap(), &[read]);
    assert_eq!(
        (written[0].replica.as_str(), written[0].node.as_str()),
        ("one", "a")
    );
    let disk = wire::Gap {
        volume: "/disks/1".to_owned(),
        ..theirs
    };
    let disk = read_gap(&node(), &disk);
    assert_eq!(disk.volume, Some(VolumeName::Path("/disks/1".to_owned())));
    assert_eq!(disk.to_string(), "node a, volume /disks/1: gone");
}

/// Fails if a bad id in a list of nodes is skipped, or the error does not name the list.
#[test]
fn bad_node_id_in_list_names_the_list() {
    let error = node_ids("avoid", &["a".to_owned(), "B".to_owned()]).unwrap_err();
    assert_eq!(error.field, "avoid");
}
