//! Bytes and records: WARC, ARC, HTTP, CDX and SURT, read and written over `std::io`.
//!
//! Owns what the formats of web archives mean. Knows no network, no async and no archive.

pub mod cdx;
pub mod date;
pub mod digest;
pub mod http;
mod json;
pub mod post;
pub mod surt;
