//! A monitor that brings what a test has told it to bring, true or not, and breaks off where it is told to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use archive_model::NodeId;
use archive_rpc::Kind;
use proto_archive::batch_broken::broken;
use proto_archive::wire::batch_run_request::Step as Asked;
use proto_archive::wire::batch_run_response::{Done, End, Progress, Step, Want};
use proto_archive::wire::replica_server::Replica;
use proto_archive::wire::{
    BatchFailure, BatchReduceRequest, BatchReduceResponse, BatchRunRequest, BatchRunResponse, Gap,
    NodeStatus, ReplicaStateRequest, ReplicaStateResponse, batch_reduce_request,
    batch_reduce_response,
};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

/// What is read of every file.
pub(crate) const ROOT: [u8; 32] = [7; 32];
pub(crate) const SIZE: u64 = 100;

/// How a run ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// With UNAVAILABLE after so many messages.
    Broken(usize),
    /// The stream just ends.
    Ended(usize),
    /// Nothing more comes, and nothing ends.
    Hangs(usize),
}

/// What a run does to the messages that would be true.
pub(crate) type Lie = fn(Vec<Step>) -> Vec<Step>;

#[derive(Default)]
pub(crate) struct Script {
    /// Files by name, with what is written about each.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Those that fail.
    pub(crate) failing: BTreeSet<String>,
    /// Those that a node has and cannot read, after some output.
    pub(crate) unread: BTreeSet<String>,
    /// What becomes of the next runs of each job; then they are whole.
    pub(crate) cuts: BTreeMap<String, VecDeque<Cut>>,
    pub(crate) lie: Option<Lie>,
    /// Of the node `n-2`, which is silent.
    pub(crate) gaps: Vec<Gap>,
    pub(crate) silent: bool,
    /// Not heard of yet by the monitor, so often as it is asked.
    pub(crate) unheard: usize,
    /// A node that is alive, and ends each run that it is asked in.
    pub(crate) breaks: Option<&'static str>,
    /// Which nodes each run was not to ask.
    pub(crate) without: Vec<Vec<String>>,
    /// Asks for the component.
    pub(crate) wants: bool,
    /// The component that was sent last.
    pub(crate) component: Vec<u8>,
    /// Whether components have a reduce step.
    pub(crate) reduces: bool,
    /// After which file each run began.
    pub(crate) runs: Vec<(String, String)>,
    /// Runs that are under way.
    pub(crate) running: usize,
    /// Those of the index.
    pub(crate) of_index: BTreeSet<String>,
}

#[derive(Clone, Default)]
pub(crate) struct Monitor(pub(crate) Arc<Mutex<Script>>);

struct Running(Monitor);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.script().running -= 1;
    }
}

impl Monitor {
    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
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
                    kind: "unread".to_owned(),
                    offset: None,
                    reason: "its volume went away while it was read".to_owned(),
                })
            } else {
                script.failing.contains(name).then(|| BatchFailure {
                    kind: "damaged".to_owned(),
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
            gaps: script.gaps.clone(),
        }));
        match script.lie {
            Some(lie) => lie(steps),
            None => steps,
        }
    }
}

/// Whether somebody still listens.
async fn send(answers: &mpsc::Sender<Result<BatchRunResponse, Status>>, step: Step) -> bool {
    let message = BatchRunResponse { step: Some(step) };
    answers.send(Ok(message)).await.is_ok()
}

#[tonic::async_trait]
impl Replica for Monitor {
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
            seen: "2026-01-01T00:00:00Z".to_owned(),
            ..NodeStatus::default()
        };
        let mut nodes = vec![node("n-1", true)];
        if script.unheard > 0 {
            script.unheard -= 1;
            for node in &mut nodes {
                node.alive = false;
                node.seen.clear();
            }
        }
        nodes.extend(script.breaks.map(|broken| node(broken, true)));
        if !script.gaps.is_empty() {
            nodes.push(node("n-2", false));
        }
        Ok(Response::new(ReplicaStateResponse {
            replica: String::new(),
            nodes,
        }))
    }

    async fn run_batch(
        &self,
        request: Request<Streaming<BatchRunRequest>>,
    ) -> Result<Response<BoxStream<BatchRunResponse>>, Status> {
        let mut asked = request.into_inner();
        let first = asked.message().await?.and_then(|first| first.step);
        let Some(Asked::Open(open)) = first else {
            return Err(Status::invalid_argument("no open"));
        };
        let (cut, wants, broken_node) = {
            let mut script = self.script();
            let is_asked = |node: &&str| !open.without.iter().any(|without| without == *node);
            let broken_node = script.breaks.filter(is_asked);
            script.without.push(open.without.clone());
            script.runs.push((open.id.clone(), open.after.clone()));
            if open.of_index {
                script.of_index.insert(open.id.clone());
            }
            script.running += 1;
            let cut = script.cuts.get_mut(&open.id).and_then(VecDeque::pop_front);
            (cut, script.wants, broken_node)
        };
        if let Some(node) = broken_node {
            self.script().running -= 1;
            let said = format!("node {node}: the catalog is damaged");
            return Err(broken(Kind::Storage, &NodeId::new(node).unwrap(), said));
        }
        let running = Running(self.clone());
        let spec = open.spec.unwrap();
        let size = spec.component_size;
        let steps = self.messages(&open.after, &spec.names);
        let (answers, stream) = mpsc::channel(1);
        let own = self.clone();
        #[expect(clippy::disallowed_methods, reason = "a monitor of a test")]
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
                        Ok(_) | Err(_) => return,
                    }
                }
                own.script().component = component;
            }
            let most = match cut {
                None => usize::MAX,
                Some(Cut::Broken(most) | Cut::Ended(most) | Cut::Hangs(most)) => most,
            };
            for step in steps.into_iter().take(most) {
                if !send(&answers, step).await {
                    return;
                }
            }
            match cut {
                Some(Cut::Broken(_)) => {
                    let broken = Err(Status::unavailable("node n-1: it broke off"));
                    drop(answers.send(broken).await);
                }
                Some(Cut::Hangs(_)) => answers.closed().await,
                Some(Cut::Ended(_)) | None => {}
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn reduce_batch(
        &self,
        request: Request<Streaming<BatchReduceRequest>>,
    ) -> Result<Response<BoxStream<BatchReduceResponse>>, Status> {
        use batch_reduce_request::Step as In;
        use batch_reduce_response::Step as Out;
        let mut asked = request.into_inner();
        let (reduces, is_known) = {
            let script = self.script();
            (script.reduces, !script.wants)
        };
        let (answers, stream) = mpsc::channel(4);
        #[expect(clippy::disallowed_methods, reason = "a monitor of a test")]
        tokio::spawn(async move {
            let answer = |step| Ok(BatchReduceResponse { step: Some(step) });
            let (mut size, mut output) = (0, Vec::new());
            while let Some(Ok(BatchReduceRequest { step: Some(step) })) = asked.next().await {
                match step {
                    In::Open(open) => {
                        size = open
                            .spec
                            .map(|spec| spec.component_size)
                            .unwrap_or_default();
                        if is_known {
                            size = 0;
                        } else {
                            drop(answers.send(answer(Out::Want(Want {}))).await);
                        }
                    }
                    In::Component(bytes) => size = size.saturating_sub(bytes.len() as u64),
                    In::Data(_) | In::End(_) if size > 0 => {
                        let wrong = Status::invalid_argument("is not component");
                        drop(answers.send(Err(wrong)).await);
                        return;
                    }
                    In::Data(bytes) => output.extend_from_slice(&bytes),
                    In::End(_) if !reduces => {
                        let none = Status::not_found("it has no reduce step");
                        drop(answers.send(Err(none)).await);
                        return;
                    }
                    In::End(_) => {
                        output.reverse();
                        drop(answers.send(answer(Out::Data(output.into()))).await);
                        let end = batch_reduce_response::End::default();
                        drop(answers.send(answer(Out::End(end))).await);
                        return;
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}
