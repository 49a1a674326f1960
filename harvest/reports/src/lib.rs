//! The documentation of a crawl, as texts and as a metadata file.
//!
//! Owns the reports that Heritrix writes at the end of a crawl, the lines of its progress log, the harvest report of
//! NetarchiveSuite and the metadata WARC file of a job. All of them are functions of the crawl log and of rows that the crawler
//! hands over. Knows no clock and no network, and writes temporary files only.
//!
//! A line of the crawl log that cannot be read is counted and named in `crawl-report.txt`.

pub mod archive_files;
pub mod frontier;
pub mod log;
pub mod processors;
pub mod progress;
pub mod statistics;
pub mod text;
pub mod threads;
