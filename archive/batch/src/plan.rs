//! The job and its arguments: everything that is decided before the first file.

use std::fmt;

pub use archive_model::Reduce;

use self::arguments::Arguments;
use crate::control::StopControl;
use crate::job::{BatchJobError, Job};

mod arguments;
mod checksum;
mod crawl_log;
mod dedup_cdx;
mod export;
mod extract_cdx;
mod extract_links;
mod extract_metadata;
mod extract_text;
mod file_list;
mod html;
mod mime_statistics;
mod url_search;
mod view;

#[cfg(test)]
mod tests;

/// The reason why a job cannot be run so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJob {
    /// No built-in job has this name.
    #[error("there is no job {0:?}; `holdfast batch jobs` lists them")]
    Unknown(String),
    /// The job needs an argument that was not given.
    #[error("the job {job} needs the argument {argument}: {about}")]
    Missing {
        /// The job.
        job: &'static str,
        /// The argument.
        argument: &'static str,
        /// The purpose of the argument.
        about: &'static str,
    },
    /// An argument is not one of the job's, stands twice, or is no such value.
    #[error("argument {argument:?}: {reason}")]
    Argument {
        /// The argument, as it was given.
        argument: String,
        /// The problem of the value.
        reason: String,
    },
    /// The component cannot be used, and why.
    #[error("the component is refused: {0}")]
    Component(String),
}

/// An argument of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The name of the argument, given as `--arg NAME=VALUE`.
    pub name: &'static str,
    /// The meaning of the argument, for people.
    pub about: &'static str,
    /// The value if the argument is not given; `None` if it must be given.
    pub default: Option<&'static str>,
}

/// The description of a built-in job, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobInfo {
    /// The name of the job, as in `holdfast batch run NAME`.
    pub name: &'static str,
    /// The work of the job, in a sentence or two.
    pub about: &'static str,
    /// The meaning of one line, or piece, of its output.
    pub output: &'static str,
    /// The arguments of the job.
    pub arguments: &'static [Argument],
    /// The way in which the outputs of all files become one.
    pub reduce: Reduce,
}

/// A job with its arguments, ready for any number of files, on any number of threads.
pub trait Plan: Send + Sync + fmt::Debug {
    /// Returns the way in which the outputs of all files become one.
    fn reduce(&self) -> Reduce;

    /// Starts a job for one file. The job ends soon after `control` is stopped.
    ///
    /// # Errors
    /// The job cannot be started, as for a component that traps at once.
    fn start(&self, control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError>;
}

/// A built-in job: its description, and how it is prepared with its arguments.
struct BuiltInJob {
    info: JobInfo,
    prepare: Prepare,
}

/// A function that prepares a job with its arguments.
type Prepare = fn(&Arguments) -> Result<Box<dyn Plan>, InvalidJob>;

impl BuiltInJob {
    const fn new(info: JobInfo, prepare: Prepare) -> Self {
        Self { info, prepare }
    }
}

/// Every built-in job, sorted by name. A job that stands here is listed, run, described and tested.
static BUILT_IN: &[BuiltInJob] = &[
    BuiltInJob::new(checksum::INFO, checksum::plan_checksum),
    BuiltInJob::new(crawl_log::DOMAIN, crawl_log::plan_domain_lines),
    BuiltInJob::new(crawl_log::LINES, crawl_log::plan_log_lines),
    BuiltInJob::new(dedup_cdx::INFO, dedup_cdx::plan_dedup_cdx),
    BuiltInJob::new(export::INFO, export::plan_export),
    BuiltInJob::new(extract_cdx::INFO, extract_cdx::plan_extract_cdx),
    BuiltInJob::new(extract_links::INFO, |_| {
        Ok(Box::new(extract_links::ExtractLinks))
    }),
    BuiltInJob::new(
        extract_metadata::INFO,
        extract_metadata::plan_extract_metadata,
    ),
    BuiltInJob::new(extract_text::INFO, |_| {
        Ok(Box::new(extract_text::ExtractText))
    }),
    BuiltInJob::new(file_list::INFO, |_| Ok(Box::new(file_list::FileList))),
    BuiltInJob::new(file_list::SINCE, file_list::plan_files_since),
    BuiltInJob::new(mime_statistics::INFO, |_| {
        Ok(Box::new(mime_statistics::MimeStatistics))
    }),
    BuiltInJob::new(url_search::INFO, url_search::plan_url_search),
];

/// Returns the descriptions of the built-in jobs, by name.
pub fn built_in() -> impl Iterator<Item = &'static JobInfo> {
    BUILT_IN.iter().map(|job| &job.info)
}

/// Prepares a built-in job.
///
/// # Errors
///
/// [`InvalidJob`] if there is no such job, or an argument is missing, unknown or wrong.
pub fn plan_job(name: &str, arguments: &[(String, String)]) -> Result<Box<dyn Plan>, InvalidJob> {
    let Some(job) = BUILT_IN.iter().find(|job| job.info.name == name) else {
        return Err(InvalidJob::Unknown(name.to_owned()));
    };
    (job.prepare)(&Arguments::read_given(&job.info, arguments)?)
}
