//! The batch jobs of a node: one program over the files that are there, each read through its proof; and the reduce
//! steps of components. No other part of the archive runs foreign code, so that this is a crate of its own: a node
//! stores files without it.
//!
//! Owns how much of the machine a job takes: *workers* are its permits to compute, one for each file, given in the
//! order of the names. Every job has its own, and the operating system shares the cores: a job that computes for
//! minutes at each file keeps no other waiting. A file whose output nobody takes yet holds a bounded buffer and no
//! permit (`output`).
//!
//! A component takes memory also while its output waits, so that as many files of a job are begun as fit into its share
//! of the memory, and at least one (`memory`).
//!
//! Jobs of the index have places of their own: they wait for no job of a person, and share the cores with them.
//!
//! The rooms, in reading order:
//!
//! - `node_jobs` has what all jobs of a node share, and gives each its place;
//! - `unclean` refuses a job at which this node ended twice without a stop;
//! - `names` pages through the catalog: no snapshot of it is held while a job runs;
//! - `pick` decides which copy of a file is read, or why none is;
//! - `source` proves what a job is shown, and `file` puts one file through the job;
//! - `output` is the way out for one file, and `memory` says how many are begun;
//! - `context` has what the threads of one job share, and `early_end` the reasons why a job ends before its last file;
//! - `running` has the files that are computed ahead, and gives what comes of them in the order of the names;
//! - `instruments` counts what jobs do;
//! - `rpc` is the door: the calls for a run and for a reduce step.
//!
//! Not promised: anything over a restart. The repository asks again, after the last file that is done.

mod context;
mod early_end;
mod file;
mod instruments;
mod memory;
mod names;
mod node_jobs;
mod output;
mod pick;
mod rpc;
mod running;
mod source;
mod unclean;

use std::sync::Arc;

use archive_bitarchive::settings::NodeBatchSettings;
use archive_bitarchive::{JobRunner, Node, RunnerError};
use archive_daemon::Daemon;

use crate::instruments::JobInstruments;
use crate::node_jobs::{NodeJobs, NodeJobsParts};
use crate::rpc::Runner;

/// Starts the runner of the batch jobs of a node. Its metrics bear the label `node`.
///
/// # Errors
///
/// Returns an error if the directory for compiled components cannot be made, if the jobs that ran before cannot be read
/// or noted, or if the engine for components does not start.
pub fn start_runs(
    node: &Arc<Node>,
    settings: NodeBatchSettings,
    daemon: &Daemon,
) -> Result<Box<dyn JobRunner>, RunnerError> {
    let metrics = daemon.metrics.with_label("node", node.id.as_str());
    let node_jobs = NodeJobs::open(NodeJobsParts {
        node: Arc::clone(node),
        data: node.data.clone(),
        settings,
        clock: daemon.clock.clone(),
        tasks: daemon.tasks.clone(),
        executable: daemon.executable.clone(),
        instruments: JobInstruments::new(&metrics)?,
    })?;
    Ok(Box::new(Runner(Arc::new(node_jobs))))
}
