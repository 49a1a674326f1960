//! Limits that several parts enforce alike: what one part accepts, no other refuses.

use std::time::Duration;

/// The longest reason, in characters: why a person wants something done, or why something failed.
pub const LONGEST_REASON: usize = 1000;

/// The most gaps that one node may name in one answer.
pub const MOST_GAPS: usize = 256;

/// The most listings that a monitor serves at once: each holds a window of every node's connection.
pub const MOST_LISTINGS: usize = 8;

/// The most listings of a replica that a repository gathers at once for all callers: fewer than its monitor serves, so
/// that a slow reader never keeps a check from listing.
pub const MOST_GATHERED_LISTINGS: usize = 4;

const _: () = assert!(MOST_GATHERED_LISTINGS < MOST_LISTINGS);

/// The longest id of an anomaly, a request, or an item of an attic, in bytes.
pub const LONGEST_ID: usize = 200;

/// The largest component of a batch job, in bytes.
pub const LARGEST_COMPONENT: u64 = 64 << 20;

/// The most arguments of a batch job.
pub const MOST_ARGUMENTS: usize = 100;

/// The most bytes of all names and values of the arguments of a batch job together.
pub const LONGEST_ARGUMENTS: usize = 64 << 10;

/// The time that a node may take over a copy, beside the time for its bytes.
pub const NODE_PATIENCE: Duration = Duration::from_mins(5);

/// The slowest reading of a copy that is waited for, in bytes per second.
pub const READING_RATE: u64 = 20_000_000;
