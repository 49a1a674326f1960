//! WARC records, and ARC records as a dialect of them: read, built and written.
//!
//! Owns ISO 28500. The content of a block is the business of other modules.

pub mod build;
pub mod header;
pub mod reader;
pub mod record;
mod resync;
pub mod segments;
pub mod validate;
pub mod writer;

pub use crate::stream::Compression;
pub use build::{BuildError, Builder};
pub use header::Header;
pub use reader::{Dictionary, KnownFormat, Options, ReadError, Reader, Record};
pub use record::{Kind, RecordSummary, Trailer, Version};
pub use segments::{Fault, JoinedBlocks, SegmentError, Segments};
pub use validate::{Rule, Severity, Validator, Violation, validate};
pub use writer::{RecordPlace, WriteError, Writer};
