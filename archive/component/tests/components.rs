//! Components as jobs, from outside: honest ones, hostile ones, and the examples as researchers build them.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
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
