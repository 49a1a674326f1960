//! Batch jobs through the doors of a whole repository: TLS, RocksDB and files are real, its replica is played.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod ends;
mod limits;
mod monitor;
mod resumed;
mod world;
