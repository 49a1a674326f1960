//! Files as other programs make them, damage them and read them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod damage;
mod files;
mod holes;
mod hostile;
mod indexing;
mod judges;
mod reading;
mod samples;
mod validating;
mod writing;
