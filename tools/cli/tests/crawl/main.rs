//! `holdfast crawl` against the servers and the readers of the field, each a process of its own.
//!
//! Servers listen on loopback. Judges are Python, written from the standards alone. A test without its tools says
//! SKIPPED.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    clippy::disallowed_methods,
    dead_code,
    reason = "helpers of the tests, some of which other tests share; tests write files"
)]

#[path = "../whole/archive.rs"]
mod archive;
mod documents;
mod duplicates;
#[path = "../../../../conformance/tests/crash/image.rs"]
mod image;
mod interruptions;
mod limits;
#[path = "../../../../conformance/tests/crash/mounts.rs"]
mod mounts;
mod politeness;
mod power;
mod protocols;
mod room;
mod services;
mod sites;
mod support;
mod traps;
mod uploads;
mod wire;
