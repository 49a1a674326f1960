//! Bytes and records: WARC, ARC, HTTP, CDX, SURT and crawl logs, read and written over `std::io`.
//!
//! Owns the meaning of the formats of web archives. Knows no network, no async and no archive.
//!
//! Broken files are the daily bread of an archive: readers here report each defect with its place ([`defect`]), and go
//! on with the next record. Memory is bounded at any size of a file, a record, a header or a line.
//!
//! The rooms in reading order:
//!
//! - [`warc`], [`arc`] (records, read, written and validated), [`defect`] (what can be wrong with a file);
//! - `input`, `stream`, `gzip`, `zst` (the bytes of a file, its members and frames), [`record_end`] (the end of one
//!   record);
//! - [`http`] (messages in records), [`date`], [`digest`] (values of fields);
//! - [`cdx`], [`surt`], [`post`], `json` (captures, as indexes name them);
//! - [`xhtml`] (pages of XML, for readers of HTML);
//! - [`crawl_log`], [`lines`] (logs of crawls, and lines of any length).
//!
//! ```
//! use archive_formats::warc::{Builder, WarcType, WarcReader, WarcWriter};
//!
//! let record = Builder::new(WarcType::Resource, "urn:uuid:6f6e9f5e-0d2b-4a0b-8f6c-7a1b2c3d4e5f", "2026-11-21T19:14:09Z")
//!     .target_uri("http://example.org/")
//!     .content_type("text/plain");
//! let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
//! writer.write_record(&record.render_head(5)?, 5, &mut &b"hello"[..])?;
//!
//! let file = writer.into_inner();
//! let mut reader = WarcReader::new(file.as_slice());
//! while let Some(record) = reader.next_record()? {
//!     assert_eq!(record.kind(), WarcType::Resource);
//!     let end = record.read_end()?;
//!     assert_eq!((end.offset, end.length), (0, Some(file.len() as u64)));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

pub mod arc;
pub mod cdx;
pub mod crawl_log;
pub mod date;
pub mod defect;
pub mod digest;
mod gzip;
pub mod http;
mod input;
mod json;
pub mod lines;
pub mod post;
pub mod record_end;
mod stream;
pub mod surt;
pub mod warc;
pub mod xhtml;
mod zst;
