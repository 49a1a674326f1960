//! Which job, with which arguments: everything that is decided before the first file.

use std::fmt;

use crate::control::Control;
use crate::job::{Job, JobError};

mod file_list;

/// Why a job cannot be run so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJob {
    /// There is no built-in job of this name.
    #[error("there is no job {0:?}; `holdfast batch jobs` lists them")]
    Unknown(String),
    /// It needs an argument that was not given.
    #[error("the job {job} needs the argument {argument}: {about}")]
    Missing {
        /// The job.
        job: &'static str,
        /// The argument.
        argument: &'static str,
        /// What it is for.
        about: &'static str,
    },
    /// An argument is not one of the job's, stands twice, or is no such value.
    #[error("argument {argument:?}: {reason}")]
    Argument {
        /// As it was given.
        argument: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The component cannot be used, and why.
    #[error("the component is refused: {0}")]
    Component(String),
}

/// One argument of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// As it is given: `--arg NAME=VALUE`.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// What it is when it is not given; nothing: it must be given.
    pub default: Option<&'static str>,
}

/// How the outputs of all files become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// One after the other, by the names of the files.
    Concatenate,
    /// Their lines, sorted by bytes.
    Sort,
    /// Their lines, sorted by bytes, each once.
    Unique,
    /// Lines `key TAB number [TAB number …]`: the numbers of each key added up, sorted by key.
    Sum,
    /// The component's own `reduce`.
    Component,
}

impl fmt::Display for Reduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Concatenate => "concatenate",
            Self::Sort => "sort",
            Self::Unique => "unique",
            Self::Sum => "sum",
            Self::Component => "component",
        })
    }
}

/// What people are told of a built-in job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobInfo {
    /// Its name: `holdfast batch run NAME`.
    pub name: &'static str,
    /// What it does, in a sentence or two.
    pub about: &'static str,
    /// What one line, or piece, of its output is.
    pub output: &'static str,
    /// Its arguments.
    pub arguments: &'static [Argument],
    /// How the outputs of all files become one.
    pub reduce: Reduce,
}

/// A job with its arguments, ready for any number of files, on any number of threads.
pub trait Plan: Send + Sync + fmt::Debug {
    /// How the outputs of all files become one.
    fn reduce(&self) -> Reduce;

    /// A job for one file. What it computes ends soon after `control` says so.
    fn start(&self, control: &Control) -> Result<Box<dyn Job + '_>, JobError>;
}

/// The built-in jobs, by name.
pub fn built_in() -> &'static [JobInfo] {
    &[file_list::INFO]
}

/// Prepares a built-in job.
pub fn plan(name: &str, arguments: &[(String, String)]) -> Result<Box<dyn Plan>, InvalidJob> {
    match name {
        "file-list" => file_list::plan(arguments),
        _ => Err(InvalidJob::Unknown(name.to_owned())),
    }
}
