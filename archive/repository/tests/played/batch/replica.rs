//! A fake replica of a monitor and two nodes, which send what a test has scripted, correct or not, and fail where the
//! script says. All files are on the node `n-1`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use archive_rpc::CallErrorKind;
use parking_lot::{Mutex, MutexGuard};
use proto_archive::wire::batch_failure::Kind as Failure;
use proto_archive::wire::batch_run_request::Step as Asked;
use proto_archive::wire::batch_run_response::{Begin, Done, End, Progress, Step, Want};
use proto_archive::wire::node_server::Node;
use proto_archive::wire::replica_server::Replica;
use proto_archive::wire::{
    BatchFailure, BatchReduceRequest, BatchReduceResponse, BatchRunRequest, BatchRunResponse,
    NodeStatus, ReplicaStateRequest, ReplicaStateResponse, batch_reduce_request,
    batch_reduce_response,
};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

/// The root and the size of every file.
pub(crate) const ROOT: [u8; 32] = [7; 32];
pub(crate) const SIZE: u64 = 100;

/// A scripted early end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// The run ends with UNAVAILABLE after this number of messages.
    Broken(usize),
    /// The stream ends without its last message.
    Ended(usize),
    /// No more messages are sent, and the stream stays open.
    Hangs(usize),
}

/// A change of the correct messages of a run.
pub(crate) type Lie = fn(Vec<Step>) -> Vec<Step>;

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the script"
)]
pub(crate) struct Script {
    /// Files by name, with the output for each.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Files with a failure.
    pub(crate) failing: BTreeSet<String>,
    /// Files that a node has and cannot read, after some output.
    pub(crate) unread: BTreeSet<String>,
    /// The early ends of the next runs of each job; later runs are completed.
    pub(crate) cuts: BTreeMap<String, VecDeque<RunEnd>>,
    pub(crate) lie: Option<Lie>,
    /// Whether there is a node `n-2`, which is silent.
    pub(crate) has_silent_node: bool,
    /// Whether the monitor is silent.
    pub(crate) silent: bool,
    /// The number of requests for which the monitor has not heard of the nodes yet.
    pub(crate) unheard: usize,
    /// Whether the node `n-3` is alive, which ends each run in which it is asked, and has no place for a reduce step.
    pub(crate) has_breaking_node: bool,
    /// The number of times that this node was asked.
    pub(crate) breaks: usize,
    /// Whether nodes request the component.
    pub(crate) wants: bool,
    /// The component that was sent last.
    pub(crate) component: Vec<u8>,
    /// Whether components have a reduce step.
    pub(crate) reduces: bool,
    /// The file after which each run began.
    pub(crate) runs: Vec<(String, String)>,
    /// The number of runs under way.
    pub(crate) running: usize,
    /// The number of those of the index.
    pub(crate) of_index: BTreeSet<String>,
    /// The address of each node.
    pub(crate) endpoints: BTreeMap<&'static str, String>,
}

/// The state that the monitor and the nodes share; clones share it.
#[derive(Clone, Default)]
pub(crate) struct PlayedReplica(pub(crate) Arc<Mutex<Script>>);

/// A node of the fake replica.
pub(crate) struct PlayedNode {
    pub(crate) id: &'static str,
    pub(crate) replica: PlayedReplica,
}

struct RunGuard(PlayedReplica);

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.script().running -= 1;
    }
}

impl PlayedReplica {
    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock()
    }

    fn messages(&self, after: &str, names: &[String]) -> Vec<Step> {
        let script = self.script();
        let mut steps = Vec::new();
        let mut files = 0;
        for (name, output) in &script.files {
            let is_named = names.is_empty() || names.contains(name);
            if name.as_str() <= after || !is_named {
                continue;
            }
            steps.push(Step::Begin(Begin { name: name.clone() }));
            for chunk in output.chunks(5) {
                steps.push(Step::Output(chunk.to_vec().into()));
            }
            steps.push(Step::Progress(Progress {
                node: "n-1".to_owned(),
                files: files + 1,
                files_total: script.files.len() as u64,
                bytes: 10,
            }));
            let failures = if script.unread.contains(name) {
                Some(BatchFailure {
                    kind: Failure::Unread.into(),
                    offset: None,
                    reason: "its volume went away while it was read".to_owned(),
                })
            } else {
                script.failing.contains(name).then(|| BatchFailure {
                    kind: Failure::Damaged.into(),
                    offset: Some(16384),
                    reason: "bytes are not what was admitted".to_owned(),
                })
            };
            steps.push(Step::Done(Done {
                name: name.clone(),
                node: "n-1".to_owned(),
                volume: "v-1".to_owned(),
                root: ROOT.to_vec().into(),
                size: SIZE,
                records: 2,
                output: output.len() as u64,
                failures: failures.into_iter().collect(),
                more_failures: 0,
            }));
            files += 1;
        }
        steps.push(Step::End(End {
            files,
            gaps: Vec::new(),
        }));
        match script.lie {
            Some(lie) => lie(steps),
            None => steps,
        }
    }
}

/// Sends a message. Returns whether the receiver is still there.
async fn send(answers: &mpsc::Sender<Result<BatchRunResponse, Status>>, step: Step) -> bool {
    let message = BatchRunResponse { step: Some(step) };
    answers.send(Ok(message)).await.is_ok()
}

#[tonic::async_trait]
impl Replica for PlayedReplica {
    async fn replica_state(
        &self,
        _request: Request<ReplicaStateRequest>,
    ) -> Result<Response<ReplicaStateResponse>, Status> {
        let mut script = self.script();
        if script.silent {
            return Err(Status::unavailable("the monitor is stopping"));
        }
        let node = |node: &str, alive: bool| NodeStatus {
            node: node.to_owned(),
            alive,
            endpoint: script.endpoints.get(node).cloned().unwrap_or_default(),
            seen: "2026-01-01T00:00:00Z".to_owned(),
            ..NodeStatus::default()
        };
        let mut nodes = vec![node("n-1", true)];
        if script.has_breaking_node {
            nodes.push(node("n-3", true));
        }
        if script.has_silent_node {
            nodes.push(node("n-2", false));
        }
        if script.unheard > 0 {
            script.unheard -= 1;
            for node in nodes.iter_mut().filter(|node| node.node == "n-1") {
                node.alive = false;
                node.seen.clear();
            }
        }
        Ok(Response::new(ReplicaStateResponse {
            replica: String::new(),
            nodes,
        }))
    }
}

#[tonic::async_trait]
impl Node for PlayedNode {
    async fn run_batch(
        &self,
        request: Request<Streaming<BatchRunRequest>>,
    ) -> Result<Response<BoxStream<BatchRunResponse>>, Status> {
        if self.id == "n-3" {
            self.replica.script().breaks += 1;
            return Err(CallErrorKind::Storage.to_status("the catalog is damaged"));
        }
        let mut asked = request.into_inner();
        let first = asked.message().await?.and_then(|first| first.step);
        let Some(Asked::Open(open)) = first else {
            return Err(Status::invalid_argument("no open"));
        };
        let (cut, wants) = {
            let mut script = self.replica.script();
            script.runs.push((open.id.clone(), open.after.clone()));
            if open.of_index {
                script.of_index.insert(open.id.clone());
            }
            script.running += 1;
            let cut = script.cuts.get_mut(&open.id).and_then(VecDeque::pop_front);
            (cut, script.wants)
        };
        let running = RunGuard(self.replica.clone());
        let spec = open.spec.unwrap();
        let size = spec.component_size;
        let steps = self.replica.messages(&open.after, &spec.names);
        let (answers, stream) = mpsc::channel(1);
        let own = self.replica.clone();
        #[expect(clippy::disallowed_methods, reason = "a node of a test")]
        tokio::spawn(async move {
            let _running = running;
            if wants {
                send(&answers, Step::Want(Want {})).await;
                let mut component = Vec::new();
                while (component.len() as u64) < size {
                    match asked.message().await {
                        Ok(Some(BatchRunRequest {
                            step: Some(Asked::Component(bytes)),
                        })) => component.extend_from_slice(&bytes),
                        _ => return,
                    }
                }
                own.script().component = component;
            }
            let most = match cut {
                None => usize::MAX,
                Some(RunEnd::Broken(most) | RunEnd::Ended(most) | RunEnd::Hangs(most)) => most,
            };
            for step in steps.into_iter().take(most) {
                if !send(&answers, step).await {
                    return;
                }
            }
            match cut {
                Some(RunEnd::Broken(_)) => {
                    let broken = Err(Status::unavailable("it broke off"));
                    _ = answers.send(broken).await;
                }
                Some(RunEnd::Hangs(_)) => answers.closed().await,
                Some(RunEnd::Ended(_)) | None => {}
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn reduce_batch(
        &self,
        request: Request<Streaming<BatchReduceRequest>>,
    ) -> Result<Response<BoxStream<BatchReduceResponse>>, Status> {
        use batch_reduce_request::Step as In;
        use batch_reduce_response::{End, Ready, Step as Out};
        if self.id == "n-3" {
            return Err(CallErrorKind::Busy.to_status("2 reduce steps run here already"));
        }
        let mut asked = request.into_inner();
        let (reduces, is_known) = {
            let script = self.replica.script();
            (script.reduces, !script.wants)
        };
        let (answers, stream) = mpsc::channel(4);
        #[expect(clippy::disallowed_methods, reason = "a node of a test")]
        tokio::spawn(async move {
            let say = async |answer| drop(answers.send(answer).await);
            let answer = |step| Ok(BatchReduceResponse { step: Some(step) });
            let mut missing = None;
            let mut output = Vec::new();
            let mut is_ready = false;
            while let Some(Ok(BatchReduceRequest { step: Some(step) })) = asked.next().await {
                let is_out_of_turn = match (step, missing) {
                    (In::Open(open), None) if is_known => {
                        drop(open);
                        missing = Some(0);
                        false
                    }
                    (In::Open(open), None) => {
                        missing = open.spec.map(|spec| spec.component_size);
                        say(answer(Out::Want(Want {}))).await;
                        false
                    }
                    (In::Component(bytes), Some(left)) if left > 0 => {
                        missing = left.checked_sub(bytes.len() as u64);
                        missing.is_none()
                    }
                    (In::Data(bytes), Some(0)) if is_ready => {
                        output.extend_from_slice(&bytes);
                        false
                    }
                    (In::End(_), Some(0)) if is_ready => {
                        output.reverse();
                        say(answer(Out::Data(output.into()))).await;
                        say(answer(Out::End(End::default()))).await;
                        return;
                    }
                    (In::Open(_) | In::Component(_) | In::Data(_) | In::End(_), _) => true,
                };
                if is_out_of_turn {
                    say(Err(Status::invalid_argument("is not what was asked for"))).await;
                    return;
                }
                if missing == Some(0) && !is_ready {
                    if !reduces {
                        say(Err(Status::not_found("it has no reduce step"))).await;
                        return;
                    }
                    is_ready = true;
                    say(answer(Out::Ready(Ready {}))).await;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}
