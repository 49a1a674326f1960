//! The life of one harvest job: a directory, a crawl, its documentation, and the archive.
//!
//! Owns the order of things: archive files are stored while the crawl runs, the metadata file is stored last, and a
//! local file goes only on a receipt that is kept. A job whose process has ended is resumed from its directory; what
//! such a process left is salvaged. Decides nothing about what is fetched, and nothing about where the archive keeps
//! it.
//!
//! The rooms, in reading order; each uses only those below it:
//! - `job`: a job from its seeds to its receipts;
//! - `report`: how the job ended, with `domains` and `failed_seeds`, as the logs tell it;
//! - `crawl`: the crawl, with `actions`, the requests of people while it runs, `failures`, which they may have tried
//!   again, and `view_door`, where they are shown what it does;
//! - `run`: what the steps of a job share, and the way of each whole file; `error`: the reasons why a job breaks off;
//! - `upload`: archive files on their way into the archive; `salvage`: what a dead process has left;
//! - `document`: reports and the metadata file, with `error_logs` and `requests_log`; `progress_log`: the log of the
//!   crawl;
//! - `last_lines`: the end of the crawl log, for those who watch;
//! - `environment` and `notice`: the machine around a job, and what people are told;
//! - [`directory`]: all that a job has on disk; [`lock`]: one process at a time; `receipts`: which files count as
//!   stored.
//!
//! Promised: no file is deleted before the archive has proven with a receipt that it has these bytes.
//!
//! Not promised: that a job whose frontier is lost can go on. It ends with what it has recorded.
//!
//! ```no_run
//! use archive_daemon::clock::{Chance, Clock};
//! use harvest_controller::{JobConsole, JobDirectory, JobEnvironment, HarvestJobError, JobReport, run_job};
//! use harvest_model::HarvestJob;
//! use tokio::sync::{mpsc, watch};
//!
//! /// Runs a job whose files stay in its directory.
//! async fn harvest(job: HarvestJob, base: &std::path::Path) -> Result<JobReport, HarvestJobError> {
//!     let environment = JobEnvironment {
//!         clock: Clock::system_clock(),
//!         chance: Chance::system_chance(),
//!         archive: None,
//!         patience: std::time::Duration::from_hours(1),
//!         keeps_files: true,
//!         host: "crawler-1".to_owned(),
//!         address: std::net::Ipv4Addr::LOCALHOST.into(),
//!         organization: "example.dk".to_owned(),
//!     };
//!     let directory = JobDirectory::create_directory(base, job, environment.clock.now())?;
//!     let (_control, requests) = mpsc::unbounded_channel();
//!     let (progress, _) = watch::channel(Default::default());
//!     let console = JobConsole {
//!         requests,
//!         progress,
//!         notify: &|notice| println!("{notice:?}"),
//!     };
//!     run_job(&directory, &environment, console).await
//! }
//! ```

mod actions;
mod crawl;
pub mod directory;
mod document;
mod domains;
mod environment;
mod error;
mod error_logs;
mod failed_seeds;
mod failures;
mod job;
mod last_lines;
pub mod lock;
mod notice;
mod progress_log;
mod receipts;
mod report;
mod requests_log;
mod run;
mod salvage;
mod upload;
mod view_door;

pub use directory::{JobDirectory, JobDirectoryError, JobRemains, RunSettings};
pub use domains::DomainOutcome;
pub use environment::JobEnvironment;
pub use error::HarvestJobError;
pub use failed_seeds::{FailedSeed, SeedState};
pub use job::{JobConsole, run_job};
pub use last_lines::{LastLine, last_log_lines};
pub use notice::JobNotice;
pub use report::{CrawlOutcomeKind, HarvestJobEnd, JobReport, JobReportFile, QuarantinedPattern};
pub use view_door::ask_view;
