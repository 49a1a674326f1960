//! Components as jobs, from outside: honest ones, hostile ones, and the examples as researchers build them.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    reason = "tests stop at the first surprise"
)]

#[path = "components/drive.rs"]
mod drive;
#[path = "components/examples.rs"]
mod examples;
#[path = "components/honest.rs"]
mod honest;
#[path = "components/hostile.rs"]
mod hostile;
