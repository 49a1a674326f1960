//! The rights of the process that runs the tests.

use rustix::io::Errno;
use rustix::thread::{self, CapabilitySet};

/// Gives up the rights of root over the permissions of files, for this thread and its children: no part runs as root,
/// and what only root can do is no proof. Does nothing where the kernel does not allow it.
///
/// # Panics
///
/// Panics if the kernel allows only a part of it.
#[expect(clippy::expect_used, reason = "a test with half of its rights fails")]
pub fn give_up_root() {
    let given_up = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    for one in given_up.iter() {
        match thread::remove_capability_from_bounding_set(one) {
            Err(Errno::PERM) => return,
            other => other.expect("a smaller bounding set"),
        }
    }
    let mut sets = thread::capabilities(None).expect("the capabilities of this thread");
    sets.effective.remove(given_up);
    sets.permitted.remove(given_up);
    sets.inheritable.remove(given_up);
    thread::set_capabilities(None, sets).expect("fewer capabilities");
}
