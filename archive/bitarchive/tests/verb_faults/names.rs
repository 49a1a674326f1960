//! Names of single files that are met between two starts, and that nobody has made durable.

use super::*;

/// Fails if a file that is met under its name counts as stored before that name is durable: a crash may have come just
/// before its sync. Or if the next look passes, because the kernel reports a failed sync once.
#[test]
fn unsynced_name_is_not_taken_over() {
    let _one = ONE_AT_A_TIME.lock();
    let machine = with_volume();
    store(&machine);
    let target = machine.target(NAME);
    let copies = [
        (&target.file, machine.path("file")),
        (&target.sidecar, machine.path("sidecar")),
    ];
    for (path, copy) in &copies {
        std::fs::copy(path, copy).expect("a copy");
    }
    let node = start(&machine);
    put_aside(&node).expect("put aside");
    for (path, copy) in &copies {
        std::fs::rename(copy, path).expect("under its name again");
    }
    fault::arm_fault(Some(FaultPlan {
        at: 0,
        operation: Some("fsync directory"),
        fault: InjectedFault::Fail(Errno::IO),
    }));
    let refused = restore_item(&node);
    fault::arm_fault(None);
    let directory = target.file.parent().expect("a directory");
    let is_unsynced = matches!(
        &refused,
        Err(NodeError::Disk(error)) if error.operation == "fsync directory" && error.path == directory
    );
    assert!(is_unsynced, "{refused:?}");
    let entries = node.files.find_copies(&name()).expect("entries");
    assert!(entries.is_empty(), "{entries:?}");
    // The act is repeated, as by a repeated request: without a look at the attic, which is on that disk.
    let again = adopt(&node);
    assert!(matches!(again, Err(NodeError::Offline { .. })), "{again:?}");
}
