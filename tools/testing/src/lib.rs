//! Helpers of tests: waiting without hanging on luck, numbers and bytes that look random, readers and writers that
//! fail, ports, the rights of root given up, the memory of a process, and the word of a test that is skipped. Tests see
//! this crate under `[dev-dependencies]`; nothing else does.
//!
//! A test meets time in three ways:
//!
//! - Its subject waits, and the subject is ours: hand it the clock of an `archive_daemon::clock::ManualClock` and
//!   advance that clock. It stands beside `Clock`, because it is one of the two sources that a `Clock` has.
//! - The test waits for a state that others bring about (another task, a process, a disk): [`eventually`], or
//!   [`eventually_blocking`] outside a runtime. The message of a wait that is given up says what was awaited, where,
//!   and what was seen last.
//! - A future must end and might not: [`in_time`], or [`in_time_blocking`] for work on a thread.
//!
//! The limits are against hanging. None of them decides how fast something is: a machine that is ten times slower
//! passes the same tests.
//!
//! A helper that belongs to one crate is in that crate, behind its feature `testing`:
//!
//! | For a test | From |
//! |---|---|
//! | a key that signs, a trust file, an admission | `archive_proof::testing` |
//! | an authority, certificates, credentials | `archive_rpc::testing` |
//! | the machine of a node, with its disks | `archive_bitarchive::testing::NodeMachine` |
//! | admin data with rows | `archive_ledger::restore::testing` |
//! | replicas that answer by a script, a coordinator's parts | `archive_stores::scripted`, `archive_stores::coordinator::undriven` |
//! | an archive, an index in memory | the feature `fake` of `archive_client` and `index_client` |
//! | a whole cluster on port 0 | `conformance/tests/cluster/world.rs` |
//!
//! Harnesses of one test suite stand beside its tests, because nothing else uses them: `CrashMachine` in `conformance`
//! (a node that is killed, and a disk whose files say what they must contain), `MonitorEnvironment` in the tests of
//! `archive-monitor`, `DoorEnvironment` in those of `archive-rpc` (servers, with certificates that have expired or are
//! revoked).
//!
//! Functions panic where a test has to fail; none returns an error.

#![warn(missing_docs)]

mod memory;
mod ports;
mod random;
mod rights;
mod skip;
mod streams;
mod wait;

pub use memory::peak_memory;
pub use ports::PortBlock;
pub use random::{Random, noise};
pub use rights::give_up_root;
pub use skip::skipped;
pub use streams::{FailingReader, FullDisk, PieceReader};
pub use wait::{
    NoSeenState, Observation, PATIENCE, eventually, eventually_blocking, in_time, in_time_blocking,
};
