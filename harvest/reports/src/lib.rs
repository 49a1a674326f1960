//! The documentation of a crawl, as texts and as a metadata file.
//!
//! Owns the reports that Heritrix writes at the end of a crawl, the lines of its progress log, the harvest report of
//! NetarchiveSuite and the metadata WARC file of a job. All of them are functions of the crawl log and of rows that the
//! crawler hands over. Knows no clock and no network, and writes temporary files only.
//!
//! The rooms, in reading order:
//! - [`log`]: the lines of a crawl log; `novelty`: what a line says of a payload that was seen before;
//! - [`statistics`]: sums of lines, and the reports that are made of them alone;
//! - [`harvest`]: the harvest of each domain; [`processors`]: the counters of the stages;
//! - [`frontier`], [`threads`], [`archive_files`]: reports of rows that the crawler hands over; [`progress`]: lines
//!   while it runs;
//! - [`index`]: the index of an archive file; [`warcinfo`]: the block that begins it; [`metadata`]: the metadata file;
//! - [`text`]: numbers as Heritrix writes them.
//!
//! A line of the crawl log that cannot be read is counted and named in `crawl-report.txt`.
//!
//! ```
//! use harvest_reports::harvest::{HarvestReport, StopReason};
//! use harvest_reports::log::{CrawlLogReader, LogEntry};
//! use harvest_reports::statistics::CrawlStatistics;
//!
//! let log = "2021-07-05T15:20:39.378Z   200       1234 http://www.a.dk/ - - text/html #007 \
//!     20210705152039301+52 - - content-size:1500\n";
//! let mut statistics = CrawlStatistics::new(["http://www.a.dk"]);
//! let mut harvest = HarvestReport::new(StopReason::DownloadComplete, false);
//! let domain_of = |host: &str| host.strip_prefix("www.").map(str::to_owned);
//! for entry in CrawlLogReader::new(log.as_bytes()) {
//!     match entry? {
//!         LogEntry::Line(line) => {
//!             statistics.add_line(&line);
//!             harvest.add_line(&line, domain_of);
//!         }
//!         LogEntry::Unreadable(line) => statistics.add_unreadable(line),
//!     }
//! }
//! assert_eq!(statistics.seeds_report(), "[code] [status] [seed] [redirect]\n200 CRAWLED http://www.a.dk\n");
//! assert_eq!(harvest.domains().next().map(|(domain, report)| (domain, report.bytes)), Some(("a.dk", 1500)));
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod archive_files;
pub mod frontier;
pub mod harvest;
pub mod index;
pub mod log;
pub mod metadata;
mod novelty;
pub mod processors;
pub mod progress;
pub mod statistics;
pub mod text;
pub mod threads;
pub mod warcinfo;
