//! Batch jobs: one program over many files, where their bytes are.
//!
//! Owns what a job is ([`Job`], [`Plan`]), which jobs are built in ([`built_in`]), and the way of one file through a
//! job ([`run_file`]). Jobs of users, which are WebAssembly components, are [`Plan`]s of `archive-component`, which has
//! the engine for them. Knows no network, no node and no clock of its own: the caller brings the bytes, proven while
//! they are read ([`FileSource`]), takes the output ([`Sink`]), and says when the job has to end ([`StopControl`]).
//!
//! Each file has a job of its own, which is dropped after it. So what a job writes about a file depends on that file
//! alone; one file cannot spoil another; and a job that was interrupted continues after any file. Work over several
//! files is that of the reduce step, which sees all the output in the order of the names.
//!
//! Everything of a file that is not in the output is reported with its place: damaged bytes, defects of the file,
//! failures of the job itself. Memory is bounded for a file, a record, a page and a line of any size.
//!
//! The rooms in reading order:
//!
//! - [`control`] (how a job is stopped), [`job`] (what a job is shown of a file, and where it writes);
//! - [`mod@plan`] (which job, with which arguments; the built-in ones below it);
//! - [`run`] (one file through one job), [`mod@reduce`] (the outputs of all files become one result).
//!
//! ```
//! use archive_batch::{StopControl, File, FileInput, ReadBytesError, Reducer, FileSource, plan_job, run_file};
//! use archive_model::{FileName, Root};
//!
//! /// A file in memory. A node has one that proves what it reads.
//! struct Memory(&'static [u8]);
//!
//! impl FileSource for Memory {
//!     fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadBytesError> {
//!         let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
//!         let count = buffer.len().min(self.0.len() - from);
//!         buffer[..count].copy_from_slice(&self.0[from..from + count]);
//!         Ok(count)
//!     }
//! }
//!
//! let bytes = b"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: urn:x\r\nContent-Type: text/plain\r\n\
//!     Content-Length: 5\r\n\r\nhello\r\n\r\n";
//! let file = File {
//!     name: FileName::new("a.warc")?,
//!     size: bytes.len() as u64,
//!     root: Root::from_bytes(*blake3::hash(bytes).as_bytes()),
//!     stored: "2026-11-21T19:14:09Z".to_owned(),
//! };
//! let plan = plan_job("mime-statistics", &[])?;
//! let control = StopControl::default();
//! let mut output = Vec::new();
//! let input = FileInput { file: &file, source: &mut Memory(bytes) };
//! let done = run_file(plan.as_ref(), input, &mut output, &control)?;
//! assert!(done.failures.is_empty());
//!
//! let scratch = std::env::temp_dir();
//! let mut result = Vec::new();
//! Reducer::new(plan.reduce(), &scratch).reduce_outputs(&mut output.as_slice(), &mut result, &control)?;
//! assert_eq!(result, b"text/plain\t1\t5\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

pub mod control;
pub mod job;
pub mod plan;
pub mod reduce;
pub mod run;

pub use control::{Stop, StopControl};
pub use job::{BatchJobError, File, FileSource, Job, ReadBytesError, Reads, Sink};
pub use plan::{Argument, InvalidJob, JobInfo, Plan, Reduce, built_in, plan_job};
pub use reduce::Reducer;
pub use run::{FileInput, FileResult, run_file};
