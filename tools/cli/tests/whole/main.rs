//! A whole archive as `holdfast up` makes it: damaged, killed, deprived of its disks, and used by the command line
//! alone.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    clippy::disallowed_methods,
    reason = "helpers of the tests; tests damage files"
)]

mod arc_duplicates;
mod archive;
mod batch;
mod captures;
mod compiler;
mod damage;
mod following;
mod hang;
mod index_damage;
mod kills;
mod loss;
mod losses;
mod modes;
mod mounted;
#[path = "../../../../conformance/tests/crash/mounts.rs"]
mod mounts;
mod names;
mod older;
mod rebuilds;
mod removals;
mod repairs;
mod replays;
mod scrubs;
mod steps;
mod unreadable;
