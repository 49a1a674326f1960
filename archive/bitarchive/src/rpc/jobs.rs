//! The calls of batch jobs: the node passes them to a runner, which is another crate. So the crate that stores files
//! links no engine for components.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::Daemon;
use archive_rpc::AnswerStream;
use proto_archive::wire;
use tonic::{Response, Streaming};

use crate::node::Node;
use crate::settings::NodeBatchSettings;

/// The runner of the batch jobs of one node. A caller may be silent for `idle` while it owes a message.
pub trait JobRunner: Send + Sync {
    /// Runs a job over the files of the node, for as long as its caller listens.
    fn run(
        &self,
        steps: Streaming<wire::BatchRunRequest>,
        idle: Duration,
    ) -> Response<AnswerStream<wire::BatchRunResponse>>;

    /// Runs the reduce step of a component, for as long as its caller listens.
    fn reduce(
        &self,
        steps: Streaming<wire::BatchReduceRequest>,
        idle: Duration,
    ) -> Response<AnswerStream<wire::BatchReduceResponse>>;
}

/// The reason why a node cannot run batch jobs at all, as its runner says it.
pub type RunnerError = Box<dyn Error + Send + Sync>;

/// Makes the runner of a node that starts.
pub type StartRunner =
    fn(&Arc<Node>, NodeBatchSettings, &Daemon) -> Result<Box<dyn JobRunner>, RunnerError>;
