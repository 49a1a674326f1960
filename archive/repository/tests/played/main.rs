//! A whole repository, its TLS, RocksDB and files real, and its replicas played by servers that say what a test tells them.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod batch;
mod checks;
mod lab;
mod sidecars;
mod starts;
