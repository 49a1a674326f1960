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
pub use build::{Builder, HeaderBuildError};
pub use header::Header;
pub use reader::{Dictionary, KnownFormat, ReadRecordError, ReaderOptions, Record, WarcReader};
pub use record::{RecordSummary, Trailer, Version, WarcType};
pub use segments::{JoinedBlocks, SegmentError, SegmentFault, Segments};
pub use validate::{Rule, RuleSeverity, Validator, Violation, validate_record};
pub use writer::{RecordPlace, WarcWriter, WriteError};
