//! The common parts of a run and of a reduce step: the checks before it begins, its early end, and the component.

use std::sync::Arc;
use std::time::Duration;

use archive_batch::{InvalidJob, Stop, StopControl};
use archive_component::{CompileError, Component};
use archive_model::Root;
use archive_rpc::{Answers, CallErrorKind, InvalidMessage, run_blocking};
use bytes::Bytes;
use proto_archive::batch_run::JobRun;
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::node_jobs::NodeJobs;
use crate::unclean::{BeginError, NotedRun};

/// The most bytes of a component in one message.
const LARGEST_PIECE: usize = 1 << 20;

/// Ends the computing of a job when it is dropped.
#[derive(Default)]
pub(super) struct StopOnDrop {
    pub(super) control: StopControl,
    pub(super) stop: CancellationToken,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.control.stop(Stop::Cancelled);
        self.stop.cancel();
    }
}

/// Waits for the next message of the caller, which may be silent for `idle`.
pub(super) async fn next<T>(
    steps: &mut (impl Stream<Item = Result<T, Status>> + Unpin),
    idle: Duration,
) -> Result<T, Status> {
    let message = tokio::time::timeout(idle, steps.next()).await;
    let message = message.map_err(|_late| {
        CallErrorKind::TimedOut.to_status(format!("stalled: no message within {idle:?}"))
    })?;
    message.unwrap_or_else(|| {
        Err(CallErrorKind::Unavailable.to_status("the stream ended: the job is cancelled"))
    })
}

/// Refuses a job of another replica.
pub(super) fn check_replica(node_jobs: &NodeJobs, run: &JobRun) -> Result<(), InvalidMessage> {
    if run.spec.replica == node_jobs.node.replica {
        return Ok(());
    }
    let reason = format!("is not {}, which this node is of", node_jobs.node.replica);
    Err(InvalidMessage::invalid_field("replica", reason))
}

/// Notes on disk that the job runs here, for as long as the returned value lives. A job that has ended this node twice
/// is refused.
pub(super) async fn note_run(node_jobs: &NodeJobs, run: &JobRun) -> Result<NotedRun, Status> {
    let unclean = node_jobs.unclean.clone();
    let id = run.id.clone();
    let noted = run_blocking(move || unclean.begin_run(&id)).await?;
    noted.map_err(|error| match error {
        BeginError::Refused(..) => CallErrorKind::Unavailable.to_status(error.to_string()),
        BeginError::Disk(_) => CallErrorKind::Storage.to_status(error.to_string()),
    })
}

/// Waits until the job has to end early, and returns why.
pub(super) async fn wait_for_early_end<T>(
    node_jobs: &NodeJobs,
    answers: &Answers<T>,
    left: Duration,
    control: &StopControl,
) -> Status {
    let stop = node_jobs.tasks.stop_token();
    let time = async {
        // Even a sleep of no time takes a moment.
        if !left.is_zero() {
            node_jobs.clock.sleep(left).await;
        }
    };
    tokio::select! {
        biased;
        () = answers.closed() => Status::cancelled("the caller has gone away"),
        () = stop.cancelled() => {
            CallErrorKind::Unavailable.to_status("the node is stopping; ask again when it is back")
        }
        () = time => {
            control.stop(Stop::Time);
            CallErrorKind::TimedOut.to_status("the time of the job is over")
        }
    }
}

/// The pieces of a component on its way here: exactly the bytes that were announced.
#[derive(Debug)]
pub(super) struct ComponentPieces {
    bytes: Vec<u8>,
    /// The number of bytes that were announced.
    size: u64,
}

impl ComponentPieces {
    /// Begins a component of `size` bytes.
    pub(super) const fn new(size: u64) -> Self {
        Self {
            bytes: Vec::new(),
            size,
        }
    }

    /// Returns whether more bytes have to come.
    pub(super) const fn are_missing(&self) -> bool {
        (self.bytes.len() as u64) < self.size
    }

    /// Adds the next piece.
    pub(super) fn add_piece(&mut self, piece: &Bytes) -> Result<(), InvalidMessage> {
        let refused = |reason| Err(InvalidMessage::invalid_field("component", reason));
        if piece.is_empty() || piece.len() > LARGEST_PIECE {
            return refused(format!("has a message of {} bytes", piece.len()));
        }
        let total = (self.bytes.len() + piece.len()) as u64;
        let size = self.size;
        if total > size {
            return refused(format!("is announced as {size} bytes, and {total} came"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}

/// Compiles a component, one at a time on this node. If the job ends meanwhile, the compiling ends too.
pub(super) async fn compile_component(
    node_jobs: &NodeJobs,
    digest: Root,
    ComponentPieces { bytes, .. }: ComponentPieces,
    control: StopControl,
) -> Result<Arc<Component>, Status> {
    let found = Root::from_bytes(*blake3::hash(&bytes).as_bytes());
    if found != digest {
        let reason = format!("the component is not {digest}, but {found}: send that one");
        return Err(CallErrorKind::Mismatch.to_status(reason));
    }
    let permit = Arc::clone(&node_jobs.compiling).acquire_owned().await;
    let permit = permit.map_err(|error| CallErrorKind::Internal.to_status(error.to_string()))?;
    let components = node_jobs.components.clone();
    let compiled = run_blocking(move || {
        let _permit = permit;
        // Another job may have compiled the component meanwhile.
        match components.get(&digest) {
            Some(component) => Ok(component),
            None => components.compile_component(&bytes, &control),
        }
    });
    compiled.await?.map_err(|error| match error {
        CompileError::Refused(error) => refused_status(&error),
        CompileError::Stopped(_) => Status::cancelled("the job was cancelled"),
        CompileError::Untried(_) => CallErrorKind::Unavailable.to_status(error.to_string()),
    })
}

/// Returns the status for a job that cannot be run.
pub(super) fn refused_status(error: &InvalidJob) -> Status {
    match error {
        InvalidJob::Unknown(_) => CallErrorKind::NotFound.to_status(error.to_string()),
        InvalidJob::Missing { .. } | InvalidJob::Argument { .. } => {
            InvalidMessage::invalid_field("arguments", error.to_string()).into()
        }
        InvalidJob::Component(_) => CallErrorKind::Mismatch.to_status(error.to_string()),
    }
}
