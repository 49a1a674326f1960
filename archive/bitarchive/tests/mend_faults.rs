//! A node mends a copy while its disk stops at every system call in turn, also in the middle of a write; and reads
//! copies of which some groups cannot be read.
//!
//! A disk on which every call fails from one on holds what a process that died there would have left.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests make and damage files"
)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use archive_bitarchive::testing::NodeMachine;
use archive_bitarchive::{CatalogEntry, Condition, MendReport, Node, NodeError};
use archive_durable::fault::{self, FaultPlan, InjectedFault};
use archive_model::{FileName, Groups, MendOrder, Root, VolumeId};
use archive_proof::{CopyBytes, TreeBuilder, encode_ranges};
use jiff::Timestamp;
use parking_lot::Mutex;
use rustix::io::Errno;
use tools_testing::give_up_root;

/// The plan is one per process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const NAME: &str = "a.warc";

const SIZE: usize = 5 * 16_384 + 77;

/// Makes a machine with a good copy, and with this reserve on its disk from now on.
fn with_copy(reserve: u64) -> NodeMachine {
    give_up_root();
    let mut machine = NodeMachine::new();
    machine.now = now();
    let (node, _) = machine.start();
    machine.store(&node, NAME, &good()).expect("stored");
    machine.options.reserve = reserve;
    machine
}

fn start(machine: &NodeMachine) -> Node {
    machine.start().0
}

fn file(machine: &NodeMachine) -> PathBuf {
    machine.target(NAME).file
}

/// Damages the groups 1 and 5, and makes the file longer.
fn damage(machine: &NodeMachine) {
    let path = file(machine);
    std::fs::remove_file(&path).expect("removed");
    std::fs::write(&path, damaged()).expect("written");
    let sealed = std::os::unix::fs::PermissionsExt::from_mode(0o444);
    std::fs::set_permissions(&path, sealed).expect("read-only");
}

fn read(machine: &NodeMachine) -> Vec<u8> {
    std::fs::read(file(machine)).expect("the final name is never without a file")
}

fn names(machine: &NodeMachine, directory: &str) -> Vec<String> {
    let listed = std::fs::read_dir(machine.path(directory)).expect("listed");
    listed
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

fn name() -> FileName {
    FileName::new(NAME).expect("a name")
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

fn good() -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

fn damaged() -> Vec<u8> {
    let mut bytes = good();
    for at in [20_000, 81_950] {
        bytes[at] ^= 1;
    }
    bytes.extend([9; 5000]);
    bytes
}

fn root() -> Root {
    Root::from_bytes(*blake3::hash(&good()).as_bytes())
}

fn on(_bytes: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn verify(node: &Node) -> Result<CatalogEntry, NodeError> {
    node.files.verify_copy(&name(), None, now(), &mut on)
}

fn mend(node: &Node, groups: &Groups) -> Result<MendReport, NodeError> {
    let order = MendOrder {
        name: name(),
        volume: None,
        root: root(),
        groups: groups.clone(),
        who: "officer/anna".to_owned(),
        why: "test".to_owned(),
    };
    let content = good();
    let mut builder = TreeBuilder::new(Vec::new());
    builder.update(&content).expect("hashed");
    let tree = builder.finish().expect("hashed");
    let mut mend = node.files.begin_mend(order, now())?;
    for range in groups.byte_ranges(SIZE as u64) {
        let mut encoded = Vec::new();
        let ranges = std::slice::from_ref(&range);
        let copy = CopyBytes {
            data: &content,
            outboard: Some(&tree.sink),
        };
        encode_ranges(copy, tree.content(), ranges, &mut encoded).expect("encoded");
        mend.write_segment(range.start, range.end - range.start, &encoded, &mut on)?;
    }
    mend.close_mend(now(), &mut on)
}

fn groups() -> Groups {
    Groups::groups_touching([16_384..32_768, 81_920..81_921])
}

/// Clears the poison that a failing disk leaves.
fn start_again(machine: &NodeMachine) -> Node {
    let node = start(machine);
    let volume = VolumeId::new("v1").expect("an id");
    node.disks.clear_volume(&volume, now()).expect("cleared");
    node
}

fn at_every_call(reserve: u64) {
    let _one = ONE_AT_A_TIME.lock();
    fault::arm_fault(None);
    let machine = with_copy(reserve);
    let node = start(&machine);
    damage(&machine);
    verify(&node).expect("verified");
    fault::arm_fault(None);
    mend(&node, &groups()).expect("nothing fails");
    let calls = fault::matched_calls();
    drop(node);
    let mut ends = [0, 0, 0];
    for at in 0..calls {
        for fault in [
            InjectedFault::FailFromHere(Errno::IO),
            InjectedFault::TornFromHere(Errno::IO),
            InjectedFault::Fail(Errno::NOSPC),
        ] {
            let is_full = matches!(fault, InjectedFault::Fail(_));
            fault::arm_fault(None);
            let machine = with_copy(reserve);
            let node = start(&machine);
            damage(&machine);
            verify(&node).expect("verified");
            fault::arm_fault(Some(FaultPlan {
                at,
                operation: None,
                fault,
            }));
            let result = mend(&node, &groups());
            fault::arm_fault(None);
            let what = format!("{fault:?} at call {at} of {calls}: {result:?}");
            let content = read(&machine);
            let is_old = content == damaged();
            if reserve == 0 {
                assert!(is_old || content == good(), "{what}");
            }
            if content == good() || !is_old {
                assert!(
                    !names(&machine, "disk/attic").is_empty(),
                    "{what}: no evidence"
                );
            }
            if result.is_ok() {
                assert_eq!(content, good(), "{what}");
            } else if is_full {
                assert!(
                    node.disks
                        .volumes
                        .list_volumes()
                        .iter()
                        .all(|volume| volume.problem.is_none()),
                    "{what}: a full disk is not blamed"
                );
            }
            drop(node);
            let node = start_again(&machine);
            let content = read(&machine);
            assert!(
                content == damaged() || content == good(),
                "{what}: after the start"
            );
            assert_eq!(names(&machine, "disk/incoming"), [""; 0], "{what}");
            ends[usize::from(content == good()) + usize::from(result.is_ok())] += 1;
            let entry = verify(&node).expect("verified");
            let is_present = entry.row.condition == Condition::Present;
            assert_eq!(is_present, content == good(), "{what}: {entry:?}");
            if !is_present {
                mend(&node, &groups()).expect("nothing fails");
                assert_eq!(read(&machine), good(), "{what}");
            }
        }
    }
    println!(
        "{calls} calls: {} old, {} new, {} said so",
        ends[0], ends[1], ends[2]
    );
    assert!(ends[0] > 0 && ends[1] > 0);
}

/// Fails if a mend beside that dies at some call leaves a copy that is neither the old nor the repaired one.
#[test]
fn crash_leaves_old_or_repaired_copy() {
    at_every_call(0);
}

/// Fails if a mend in place that dies at some call is not finished at the next start.
#[test]
fn start_finishes_a_cut_mend_in_place() {
    at_every_call(u64::MAX);
}

/// Fails if groups that cannot be read are not mended, or take the volume offline.
#[test]
fn unreadable_groups_are_mended_without_blaming_volume() {
    let _one = ONE_AT_A_TIME.lock();
    fault::arm_fault(None);
    for reserve in [0, u64::MAX] {
        let machine = with_copy(reserve);
        let node = start(&machine);
        let bad = |ranges: &[std::ops::Range<u64>]| {
            let file = file(&machine);
            fault::make_unreadable(
                ranges
                    .iter()
                    .map(|range| (file.clone(), range.clone()))
                    .collect(),
            );
        };
        bad(&[20_000..20_001, 81_919..81_921]);
        let entry = verify(&node).expect("verified");
        let Condition::Damaged {
            corrupt,
            unreadable,
            ..
        } = &entry.row.condition
        else {
            panic!("{entry:?}")
        };
        assert!(corrupt.is_empty());
        let all: Vec<u64> = unreadable.iter().collect();
        assert_eq!(all, [1, 4, 5]);
        let some = Groups::groups_touching(std::iter::once(16_384..16_385));
        let error = mend(&node, &some).expect_err("two cannot be read and were not sent");
        assert!(
            matches!(
                error,
                NodeError::Segment {
                    offset: 32_768..,
                    ..
                }
            ),
            "{error}"
        );
        assert!(
            node.disks
                .volumes
                .list_volumes()
                .iter()
                .all(|volume| volume.problem.is_none())
        );
        if reserve == 0 {
            let mended = mend(&node, unreadable).expect("mended");
            assert_eq!(mended.groups, 3);
            let attic = names(&machine, "disk/attic");
            let place = machine.path("disk/attic").join(&attic[0]);
            let text = std::fs::read(place.join("a.warc.pos.mend")).expect("read");
            let positions: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            assert_eq!(positions["unreadable"], serde_json::json!([[1, 2], [4, 6]]));
        }
        bad(&[]);
        if reserve != 0 {
            // A bad sector is replaced by the disk when it is written.
            mend(&node, unreadable).expect("mended");
        }
        assert_eq!(
            verify(&node).expect("verified").row.condition,
            Condition::Present
        );
        assert_eq!(read(&machine), good());
    }
}

/// Fails if a file that may not be read cannot be mended.
#[test]
fn file_without_permission_is_mended_whole() {
    let _one = ONE_AT_A_TIME.lock();
    fault::arm_fault(None);
    let machine = with_copy(0);
    let node = start(&machine);
    let nothing = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(file(&machine), nothing).expect("set");
    if std::fs::File::open(file(&machine)).is_ok() {
        tools_testing::skipped("root reads a file without permission");
        return;
    }
    let all = Groups::all(SIZE as u64);
    let entry = verify(&node).expect("verified");
    let is_unreadable =
        matches!(&entry.row.condition, Condition::Damaged { unreadable, .. } if *unreadable == all);
    assert!(is_unreadable, "{entry:?}");
    mend(&node, &all).expect("mended");
    assert_eq!(read(&machine), good());
    assert_read_only(&file(&machine));
}

fn assert_read_only(path: &Path) {
    let permissions = std::fs::metadata(path).expect("there").permissions();
    assert!(permissions.readonly());
}
