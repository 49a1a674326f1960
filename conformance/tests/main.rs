//! The tests that no single crate can have, in one binary.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

mod architecture;
mod circles;
mod cluster;
mod crash;
mod doors;
mod errors;
mod flaky;
mod hostile;
mod needs;
mod rooms;
mod tidy;

/// Fails with one line per finding and what to do about them.
#[track_caller]
fn assert_none(findings: &[String], what_to_do: &str) {
    assert!(
        findings.is_empty(),
        "\n  {}\n{what_to_do}",
        findings.join("\n  ")
    );
}
