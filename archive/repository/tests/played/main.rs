//! Tests of a whole repository with real TLS, RocksDB and files, and fake replicas that answer as each test tells them.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod acts;
mod batch;
mod checks;
mod lab;
mod sidecars;
mod starts;
