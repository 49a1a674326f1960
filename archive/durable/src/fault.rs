//! Makes the nth system call of this crate fail, or the process die there (feature `faults`, tests only).
//!
//! The plan is one per process: crash tests run the code under test in a child process.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::io::Errno;

/// The fault that happens when the armed call is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The process dies before the call, as by a kill.
    Abort,
    /// Half of a write is done, then the process dies; before any other call it just dies.
    Torn,
    /// The call fails with this error, once.
    Fail(Errno),
    /// The call and all after it fail with this error: a dead or full disk. The disk then has what a process that died
    /// there would leave.
    FailFromHere(Errno),
    /// As [`Self::FailFromHere`], but half of a write is done.
    TornFromHere(Errno),
    /// A bit of the written bytes flips in memory, on its way to the disk, without an error. Any other call is made.
    Flip,
}

/// A planned fault: the call that it hits, and its kind.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// The number of the call to hit, counted from 0 among those that match.
    pub at: u64,
    /// The name of the calls that count; `None` for all.
    pub operation: Option<&'static str>,
    /// The fault at that call.
    pub fault: InjectedFault,
}

#[derive(Debug)]
struct FaultState {
    plan: Option<FaultPlan>,
    seen: u64,
}

static STATE: Mutex<FaultState> = Mutex::new(FaultState {
    plan: None,
    seen: 0,
});

/// Starts counting from 0, with or without a plan.
pub fn arm_fault(plan: Option<FaultPlan>) {
    *STATE.lock() = FaultState { plan, seen: 0 };
}

/// The bytes that cannot be read, like bad sectors, whatever else is armed.
static BAD: Mutex<Vec<(PathBuf, Range<u64>)>> = Mutex::new(Vec::new());

/// Makes these bytes of these files unreadable, and all others readable again.
pub fn make_unreadable(bad: Vec<(PathBuf, Range<u64>)>) {
    *BAD.lock() = bad;
}

/// The names whose inodes cannot be read, whatever else is armed.
static LOST: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Makes looking at these names fail, and looking at all others work again.
pub fn make_lost(lost: Vec<PathBuf>) {
    *LOST.lock() = lost;
}

/// Marks a look at the inode of a name.
pub(crate) fn look_point(path: &Path) -> io::Result<()> {
    let lost = LOST.lock();
    if lost.iter().any(|lost| lost == path) {
        return Err(Errno::IO.into());
    }
    Ok(())
}

/// Marks a read of these bytes.
pub(crate) fn bad_point(path: &Path, read: Range<u64>) -> io::Result<()> {
    let bad = BAD.lock();
    let is_bad = bad
        .iter()
        .any(|(file, range)| file == path && range.start < read.end && read.start < range.end);
    if is_bad {
        return Err(Errno::IO.into());
    }
    Ok(())
}

/// Marks a read of `length` bytes, at which faults are counted.
pub(crate) fn read_point(path: &Path, offset: u64, length: usize) -> io::Result<()> {
    bad_point(path, offset..offset.saturating_add(length as u64))?;
    fault_point("read", path).map(|_| ())
}

/// Returns the number of matching calls since [`arm_fault`].
pub fn matched_calls() -> u64 {
    STATE.lock().seen
}

/// The verdict on a call, before it is made.
pub(crate) enum CallVerdict {
    Go,
    GoHalfThenDie,
    GoHalfThenFail(Errno),
    GoFlipped,
}

pub(crate) fn fault_point(operation: &'static str, _path: &Path) -> io::Result<CallVerdict> {
    let mut state = STATE.lock();
    let Some(plan) = state.plan.clone() else {
        state.seen += 1;
        return Ok(CallVerdict::Go);
    };
    if plan.operation.is_some_and(|only| only != operation) {
        return Ok(CallVerdict::Go);
    }
    let now = state.seen;
    state.seen += 1;
    let is_write = matches!(operation, "write" | "pwrite");
    match plan.fault {
        InjectedFault::Torn if now == plan.at && is_write => Ok(CallVerdict::GoHalfThenDie),
        InjectedFault::TornFromHere(errno) if now == plan.at && is_write => {
            Ok(CallVerdict::GoHalfThenFail(errno))
        }
        InjectedFault::Flip if now == plan.at && is_write => Ok(CallVerdict::GoFlipped),
        InjectedFault::Abort | InjectedFault::Torn if now == plan.at => std::process::abort(),
        InjectedFault::Fail(errno) if now == plan.at => Err(errno.into()),
        InjectedFault::FailFromHere(errno) | InjectedFault::TornFromHere(errno)
            if now >= plan.at =>
        {
            Err(errno.into())
        }
        InjectedFault::Abort
        | InjectedFault::Torn
        | InjectedFault::Fail(_)
        | InjectedFault::FailFromHere(_)
        | InjectedFault::TornFromHere(_)
        | InjectedFault::Flip => Ok(CallVerdict::Go),
    }
}
