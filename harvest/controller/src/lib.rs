//! The life of one harvest job: a directory, a crawl, its documentation, and the archive.
//!
//! Owns the order of things: archive files are stored while the crawl goes on, the metadata file is stored last, and a local file
//! goes only on a receipt that is kept. A job whose process has ended is resumed from its directory; what such a process left is
//! salvaged. Decides nothing about what is fetched, and nothing about where the archive keeps it.

mod actions;
mod crawl;
pub mod directory;
mod document;
mod error_logs;
pub mod job;
pub mod lock;
mod progress_log;
mod receipts;
pub mod report;
mod requests_log;
mod salvage;
mod unanswered;
mod upload;

pub use directory::{JobDirectory, JobDirectoryError, RunSettings};
pub use job::{JobEnvironment, JobError, JobNotice, run_job};
pub use report::{DomainOutcome, FileOutcome, JobReport, JobStatus, QuarantinedPattern};
pub use unanswered::UnansweredSeed;
