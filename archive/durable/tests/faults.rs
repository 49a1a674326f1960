//! A damaged copy is repaired while the disk stops at every system call in turn, also in the middle of a write.
//!
//! A disk on which every call from some call on fails has the same bytes as one whose process died at that call.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests make and damage files"
)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use archive_durable::fault::{self, FaultPlan, InjectedFault};
use archive_durable::{
    DiskError, DiskSeverity, FinalPaths, Journal, JournalWriter, JournaledGroups, RepairedCopy,
    Stage, directory, exchange,
};
use archive_model::{FileContent, FileName, Groups, Root};
use parking_lot::Mutex;
use rustix::io::Errno;

/// The lock of the plan, of which a process has one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const SIZE: usize = 5 * 16_384 + 77;

fn good() -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

/// Returns the bytes, damaged in the groups 1 and 5, and longer than they should be.
fn damaged() -> Vec<u8> {
    let mut bytes = good();
    for at in [20_000, 81_950] {
        bytes[at] ^= 1;
    }
    bytes.extend([9; 5000]);
    bytes
}

fn groups() -> Groups {
    Groups::groups_touching([16_384..32_768, 81_920..81_921])
}

fn root() -> Root {
    Root::from_bytes(*blake3::hash(&good()).as_bytes())
}

struct TestVolume {
    directory: tempfile::TempDir,
    target: FinalPaths,
}

impl TestVolume {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["incoming", "files", "meta"] {
            std::fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        let at = |path: &str| directory.path().join(path);
        let target = FinalPaths {
            file: at("files/f"),
            sidecar: at("meta/f.json"),
            outboard: at("meta/f.bao"),
        };
        std::fs::write(&target.file, damaged()).expect("a file");
        std::fs::write(&target.outboard, "rotten").expect("a file");
        let sealed = std::os::unix::fs::PermissionsExt::from_mode(0o444);
        std::fs::set_permissions(&target.file, sealed).expect("read-only");
        Self { directory, target }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn content(&self) -> Vec<u8> {
        std::fs::read(&self.target.file).expect("the final name is never without a file")
    }

    fn exchange(&self) -> Result<(), DiskError> {
        let mut stage = Stage::create(&self.path("incoming"), "f.mend")?;
        stage.reserve_space(SIZE as u64)?;
        stage.write_all(&good())?;
        let received = stage.finish()?;
        assert_eq!(received.root(), root());
        let proven = RepairedCopy::settle_repair(received)?
            .prove_copy(root(), &mut |_| ControlFlow::Continue(()));
        match proven {
            Ok(proven) => proven.exchange_copy(&self.target),
            Err(error) => Err(error.unwrap_or_else(unproven)),
        }
    }

    fn in_place(&self) -> Result<(), DiskError> {
        let change = JournaledGroups {
            name: FileName::new("f").expect("a name"),
            size: SIZE as u64,
            root: root(),
            groups: groups(),
        };
        let mut writer = JournalWriter::create(&self.path("incoming/f.journal"), &change)?;
        for range in change.groups.byte_ranges(change.size) {
            let range = usize::try_from(range.start).expect("small")
                ..usize::try_from(range.end).expect("small");
            writer.append(&good()[range])?;
        }
        let journal = writer.finish()?.ok_or_else(unproven)?;
        journal.apply_to(&self.target.file)?;
        if !journal.is_in(&self.target.file)? {
            return Err(unproven());
        }
        journal.remove()
    }
}

/// Makes the error of a copy that cannot be proven: a read failed, or the disk lies.
fn unproven() -> DiskError {
    DiskError::new("read", Path::new("f"), Errno::IO)
}

fn at_every_call(
    repair: impl Fn(&TestVolume) -> Result<(), DiskError>,
    check: impl Fn(&TestVolume, &str),
) {
    let _one = ONE_AT_A_TIME.lock();
    let place = TestVolume::new();
    fault::arm_fault(None);
    repair(&place).expect("nothing fails");
    let calls = fault::matched_calls();
    assert!(calls > 10, "{calls} calls");
    assert_eq!(place.content(), good());
    let mut was_old = false;
    let mut was_good = false;
    for at in 0..calls {
        for fault in [
            InjectedFault::FailFromHere(Errno::IO),
            InjectedFault::TornFromHere(Errno::IO),
        ] {
            let place = TestVolume::new();
            fault::arm_fault(Some(FaultPlan {
                at,
                operation: None,
                fault,
            }));
            let result = repair(&place);
            fault::arm_fault(None);
            let what = format!("{fault:?} at call {at} of {calls}: {result:?}");
            assert!(result.is_err(), "{what}");
            was_old |= place.content() == damaged();
            was_good |= place.content() == good();
            check(&place, &what);
        }
    }
    assert!(was_old && was_good);
    println!("{calls} calls, each failing and torn");
}

/// Fails if an exchange that stops at some system call leaves a mixed copy or none, or cannot be done again.
#[test]
fn crash_of_exchange_leaves_old_or_repaired_copy() {
    at_every_call(TestVolume::exchange, |place, what| {
        let content = place.content();
        assert!(content == damaged() || content == good(), "{what}");
        // The exchange can be done again, once its remains have been removed.
        for entry in std::fs::read_dir(place.path("incoming")).expect("listed") {
            std::fs::remove_file(entry.expect("an entry").path()).expect("removed");
        }
        if content == damaged() {
            place.exchange().expect("nothing fails");
            assert_eq!(place.content(), good(), "{what}");
        }
    });
}

/// Fails if a repair in place that stops at some system call leaves a mixed copy which no journal completes.
#[test]
fn journal_recovers_a_crashed_repair_in_place() {
    at_every_call(TestVolume::in_place, |place, what| {
        let content = place.content();
        let path = place.path("incoming/f.journal");
        let journal = match Journal::open(&path) {
            Err(error) if error.is_absent() => None,
            other => other.expect("it can be read"),
        };
        match journal {
            None => assert!(content == damaged() || content == good(), "{what}"),
            Some(journal) => {
                assert_eq!(journal.journaled_groups().groups, groups());
                for _twice in 0..2 {
                    journal.apply_to(&place.target.file).expect("nothing fails");
                    assert!(journal.is_in(&place.target.file).expect("read"), "{what}");
                }
                assert_eq!(place.content(), good(), "{what}");
                journal.remove().expect("nothing fails");
            }
        }
    });
}

/// Fails if a cut, changed or incomplete journal is applied, or one is applied to a file that has a second name.
#[test]
fn a_journal_counts_only_whole() {
    let _one = ONE_AT_A_TIME.lock();
    fault::arm_fault(None);
    let place = TestVolume::new();
    let path = place.path("incoming/f.journal");
    let change = JournaledGroups {
        name: FileName::new("f").expect("a name"),
        size: 30_000,
        root: root(),
        groups: Groups::groups_touching(std::iter::once(16_384..16_385)),
    };
    let mut writer = JournalWriter::create(&path, &change).expect("created");
    writer.append(&good()[16_384..30_000]).expect("written");
    let journal = writer.finish().expect("written").expect("whole");
    assert_eq!(journal.journaled_groups(), &change);
    std::fs::hard_link(&place.target.file, place.path("files/second")).expect("a link");
    assert!(
        journal
            .apply_to(&place.target.file)
            .expect_err("two names")
            .is_taken(),
        "never through a second name"
    );
    let whole = std::fs::read(&path).expect("read");
    for at in (0..whole.len()).step_by(97) {
        std::fs::write(&path, &whole[..at]).expect("written");
        assert!(Journal::open(&path).expect("read").is_none(), "cut at {at}");
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        std::fs::write(&path, &flipped).expect("written");
        assert!(
            Journal::open(&path).expect("read").is_none(),
            "flip at {at}"
        );
    }
    let mut writer =
        JournalWriter::create(&place.path("incoming/short"), &change).expect("created");
    writer.append(b"too short").expect("written");
    assert!(
        writer.finish().expect("written").is_none(),
        "bytes are missing"
    );
}

/// Fails if an outboard is computed from damaged data, or a failure leaves a torn outboard or none.
#[test]
fn an_outboard_is_rebuilt_from_good_data_only() {
    let _one = ONE_AT_A_TIME.lock();
    let rebuild = |place: &TestVolume| {
        let data = archive_durable::UncachedFile::open(&place.target.file)?;
        let beside = place.path("incoming/f.outboard");
        let content = FileContent {
            root: root(),
            size: SIZE as u64,
        };
        exchange::rebuild_outboard(&data, content, &beside, &place.target.outboard)
    };
    let place = TestVolume::new();
    assert!(!rebuild(&place).expect("read"), "the data is damaged");
    assert_eq!(
        std::fs::read(&place.target.outboard).expect("read"),
        b"rotten"
    );
    std::fs::remove_file(&place.target.file).expect("removed");
    std::fs::write(&place.target.file, good()).expect("written");
    fault::arm_fault(None);
    assert!(rebuild(&place).expect("rebuilt"));
    let calls = fault::matched_calls();
    let outboard = std::fs::read(&place.target.outboard).expect("read");
    assert_eq!(outboard.len(), 64 * 5);
    for at in 0..calls {
        std::fs::remove_file(&place.target.outboard).expect("removed");
        std::fs::write(&place.target.outboard, "rotten").expect("written");
        fault::arm_fault(Some(FaultPlan {
            at,
            operation: None,
            fault: InjectedFault::TornFromHere(Errno::NOSPC),
        }));
        let failed = rebuild(&place);
        fault::arm_fault(None);
        let found = std::fs::read(&place.target.outboard).expect("old or new, never neither");
        assert!(found == b"rotten" || found == outboard, "{at}: {failed:?}");
    }
    assert!(
        rebuild(&place).expect("rebuilt"),
        "what was left does not hinder"
    );
}

/// Fails if one name with an unreadable inode takes the disk offline, or a disk on which every change fails stays
/// online.
#[test]
fn bad_inode_of_a_name_blames_no_disk() {
    let _one = ONE_AT_A_TIME.lock();
    let place = TestVolume::new();
    let bad = place.path("incoming/bad");
    std::fs::write(&bad, "x").expect("written");
    for is_lost in [true, false] {
        let lost = if is_lost {
            vec![bad.clone()]
        } else {
            Vec::new()
        };
        fault::make_lost(lost);
        fault::arm_fault(Some(FaultPlan {
            at: 0,
            operation: None,
            fault: InjectedFault::FailFromHere(Errno::IO),
        }));
        let to = place.path("incoming/to");
        let errors = [
            directory::remove_name(&bad).expect_err("it fails"),
            directory::move_new(&bad, &to).expect_err("it fails"),
        ];
        fault::arm_fault(None);
        for error in errors {
            let is_of_the_disk = error.severity() == DiskSeverity::Disk;
            assert_eq!(is_of_the_disk, !is_lost, "{error}");
        }
    }
}

/// Fails if bytes that flipped after they were hashed get a final name: only a read past memory shows them.
#[test]
fn bytes_flipped_before_writing_never_bear_a_name() {
    let _one = ONE_AT_A_TIME.lock();
    let store = |place: &TestVolume| {
        let mut stage = Stage::create(&place.path("incoming"), "u").expect("created");
        for part in good().chunks(30_000) {
            stage.write_all(part).expect("nothing fails");
        }
        let received = stage.finish().expect("nothing fails");
        assert_eq!(received.root(), root(), "what was received is right");
        let sealed = received.seal_file(b"{}").expect("nothing fails");
        let verified = match sealed.verify_file() {
            Ok(verified) => verified,
            Err(None) => return false,
            Err(Some(error)) => panic!("{error}"),
        };
        verified.publish_file(&place.target).expect("published");
        true
    };
    let mut refused = 0;
    for at in 0.. {
        let place = TestVolume::new();
        for old in [&place.target.file, &place.target.outboard] {
            std::fs::remove_file(old).expect("removed");
        }
        fault::arm_fault(Some(FaultPlan {
            at,
            operation: Some("write"),
            fault: InjectedFault::Flip,
        }));
        let is_stored = store(&place);
        let has_flipped = fault::matched_calls() > at;
        fault::arm_fault(None);
        if is_stored {
            // The flipped bit is in the outboard or sidecar, and not in the file.
            assert_eq!(place.content(), good(), "write {at}");
        } else {
            assert!(!place.target.file.exists(), "write {at}");
            refused += 1;
        }
        if !has_flipped {
            assert!(is_stored && at > 4, "{at} writes");
            break;
        }
    }
    assert_eq!(
        refused,
        good().chunks(30_000).len(),
        "each part of the file"
    );
}
