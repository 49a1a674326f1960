//! The word of a test that cannot run where it is.
//!
//! `tools/test` lists these words at its end: no test is green in silence because its tool or its data is missing.

use std::io::Write as _;

/// Says that the running test is skipped, and why: past the harness, which shows nothing of a test that did not fail.
///
/// # Panics
///
/// Panics if standard error cannot be written.
#[expect(
    clippy::expect_used,
    reason = "a test that cannot say that it is skipped fails"
)]
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("SKIPPED: {test}: {why}\n");
    let written = std::io::stderr().write_all(line.as_bytes());
    written.expect("standard error takes a line");
}
