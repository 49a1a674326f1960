//! A checksum replica as the repository meets it: over real TLS, with senders that break off, err and lie.
#![expect(clippy::expect_used, reason = "helpers of the tests")]

mod answers;
mod life;
mod replica;
mod uploads;
