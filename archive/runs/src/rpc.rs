//! The door: the calls of the repository for a run over the files of this node, and for a reduce step of a component.

mod job;
mod reduce;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use archive_bitarchive::JobRunner;
use archive_rpc::AnswerStream;
use proto_archive::wire;
use tonic::{Response, Streaming};

use crate::node_jobs::NodeJobs;

/// The runner to which the door of a node passes the calls of batch jobs.
pub(crate) struct Runner(pub(crate) Arc<NodeJobs>);

impl JobRunner for Runner {
    fn run(
        &self,
        steps: Streaming<wire::BatchRunRequest>,
        idle: Duration,
    ) -> Response<AnswerStream<wire::BatchRunResponse>> {
        run::run_files(&self.0, idle, steps)
    }

    fn reduce(
        &self,
        steps: Streaming<wire::BatchReduceRequest>,
        idle: Duration,
    ) -> Response<AnswerStream<wire::BatchReduceResponse>> {
        reduce::run_reduce(&self.0, idle, steps)
    }
}
