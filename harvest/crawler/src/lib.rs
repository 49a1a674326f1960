//! One crawl: what is fetched, how, and how it is written down.
//!
//! Owns the exchange with hosts, byte for byte as it went over the wire, and the order in which an outcome is recorded.
//! Decides nothing about what may be fetched, when or in which order: `harvest-policy` does. Knows no archive.
//!
//! The rooms, in the order in which a URI passes through them:
//! - [`crawl`]: a crawl as its job sees it; its owner decides on one thread, and its workers do all that has to be
//!   waited for;
//! - [`frontier`]: the URIs that are still to be fetched, their queues, and what people have asked for, on disk;
//! - [`dns`], [`login`], [`cookies`]: what a request needs beside its URI;
//! - [`fetch`]: a connection, a request and a response; [`exchange`]: their bytes;
//! - [`process`]: the records, the log line and the links of a response; [`capture`]: the records themselves;
//! - [`recorder`]: records, line and outcome, written in this order; [`archive_files`]: the files that the records go
//!   into;
//! - [`suffixes`]: the list of public suffixes of an order.
//!
//! Promised: after any end of the process, a power cut included, the files have all records of every outcome that
//! stands in the frontier, and every other URI is fetched again.
//!
//! Not promised: that a URI is fetched once only, or that a crawl whose state was damaged can be resumed. Such a crawl
//! is refused before anything of it is changed.
//!
//! ```no_run
//! use std::path::PathBuf;
//! use std::sync::Arc;
//!
//! use archive_daemon::clock::{Chance, Clock};
//! use harvest_crawler::crawl::{Crawl, CrawlEnd, CrawlError, CrawlSettings, MIN_FREE};
//! use harvest_model::HarvestJob;
//!
//! /// Crawls a job to its end; returns whether all was fetched that may be.
//! async fn harvest(job: HarvestJob, directory: PathBuf) -> Result<bool, CrawlError> {
//!     let settings = CrawlSettings {
//!         directory,
//!         job: Arc::new(job),
//!         host: "crawler-1".to_owned(),
//!         version: "0.1.0".to_owned(),
//!         warcinfo: "software: Holdfast/0.1.0\r\n".to_owned(),
//!         known: None,
//!         min_free: MIN_FREE,
//!     };
//!     let (crawl, mut handle) = Crawl::new(settings, Clock::system_clock(), Chance::system_chance());
//!     let storing = async {
//!         while let Some(file) = handle.closed.recv().await {
//!             println!("{}: {} bytes", file.name, file.size);
//!         }
//!     };
//!     let (outcome, ()) = tokio::join!(crawl.run_crawl(), storing);
//!     Ok(outcome?.end == CrawlEnd::Finished)
//! }
//! ```

#![warn(missing_docs)]

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
