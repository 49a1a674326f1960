//! Databases on a real disk, in one binary, so that RocksDB links once.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod damage;
mod files;
mod opening;
mod unsynced;
