//! The batch engine: one program over many files, where their bytes are.
//!
//! Owns what a job is ([`Job`], [`Plan`]), which jobs are built in ([`built_in`]), and how one file goes through one
//! ([`run_file`]). Knows no network, no node and no clock of its own: the caller brings the bytes, proven while they are
//! read ([`Source`]), takes the output ([`Sink`]), and says when it is over ([`Control`]).
//!
//! Each file has a job of its own, which is gone after it. So what a job writes about a file depends on that file alone;
//! one file cannot spoil another; and a job that was interrupted goes on after any file. What spans files is the
//! reduce step, which sees all the output in the order of the names.

pub mod component;
pub mod control;
pub mod job;
pub mod plan;
pub mod reduce;
pub mod run;

pub use component::{About, Component, Components};
pub use control::{Control, Stop};
pub use job::{File, Job, JobError, ReadError, Reads, Sink, Source};
pub use plan::{Argument, InvalidJob, JobInfo, Plan, Reduce, built_in, plan};
pub use reduce::reduce;
pub use run::{Done, run_file};
