//! Time limits for other parts that work on a whole file: a fixed time, and more for each byte of it.

use std::time::Duration;

use archive_model::limits::{NODE_PATIENCE, READING_RATE};

/// The fixed part for the archive, which waits for all replicas.
const ARCHIVE: Duration = Duration::from_mins(30);

/// The slowest writing and reading back, in bytes per second.
const WRITING_RATE: u64 = 10_000_000;

/// The slowest reading of what a node has of an upload, in bytes per second.
const RESUMING_RATE: u64 = 50_000_000;

/// The slowest storing into all replicas, in bytes per second.
const STORING_RATE: u64 = 1_000_000;

/// Returns how long a node may take, or be silent, while it reads `size` bytes of a copy.
pub const fn read_limit(size: u64) -> Duration {
    NODE_PATIENCE.saturating_add(Duration::from_secs(size / READING_RATE))
}

/// Returns how long a node may take, or be silent, while it writes `size` bytes and reads them back.
pub const fn write_limit(size: u64) -> Duration {
    NODE_PATIENCE.saturating_add(Duration::from_secs(size / WRITING_RATE))
}

/// Returns how long a node may take to read the `bytes` that it has of an upload; `stall` is how long it may be silent.
pub const fn resume_limit(stall: Duration, bytes: u64) -> Duration {
    stall.saturating_add(Duration::from_secs(bytes / RESUMING_RATE))
}

/// Returns how long the archive may take to store `size` bytes after the last one was sent.
pub const fn store_limit(size: u64) -> Duration {
    ARCHIVE.saturating_add(Duration::from_secs(size / STORING_RATE))
}
