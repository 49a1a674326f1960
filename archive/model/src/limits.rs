//! Limits that several parts enforce alike: what one part accepts, no other refuses.

/// The longest reason, in characters: why a person wants something done, or why something failed.
pub const LONGEST_REASON: usize = 1000;

/// The most gaps that one node may name in one answer.
pub const MOST_GAPS: usize = 256;

/// The largest component of a batch job, in bytes.
pub const LARGEST_COMPONENT: u64 = 64 << 20;
