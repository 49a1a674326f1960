//! The client against an archive over real TLS that misbehaves.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "helpers of the tests"
)]

mod archive;
mod get;
mod keep;
mod keep_acts;
mod keeping;
mod list;
mod record;
mod salvage;
mod samples;
mod serving;
mod store;
mod world;
