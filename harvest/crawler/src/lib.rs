//! One crawl: what is fetched, how, and how it is written down.
//!
//! Owns the exchange with hosts, byte for byte as it went over the wire. Decides nothing about what may be fetched, when or in
//! which order: `harvest-policy` does. Knows no archive.

pub mod archive_files;
pub mod capture;
pub mod cookies;
pub mod crawl;
pub mod dns;
pub mod exchange;
pub mod fetch;
pub mod frontier;
pub mod login;
pub mod process;
pub mod recorder;
pub mod suffixes;
