//! A node that runs batch jobs as a test tells it to, true or not.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::{Stream, StreamExt, stream};
use proto_archive::wire::batch_run_response::{Begin, Done, End, Progress, Step, Want};
use proto_archive::wire::node_server::Node;
use proto_archive::wire::{
    BatchRunRequest, BatchRunResponse, Gap, batch_run_request, batch_run_response,
};
use tonic::{Request, Response, Status, Streaming};

use crate::served::Served;
use crate::world::{Monitor, World};

/// One thing that a node does in a job.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// It sends this.
    Send(batch_run_response::Step),
    /// It asks for the component, and waits for so many bytes.
    Want(usize),
    /// It says every 100 ms that it lives, for ever.
    Compute,
    /// It sends nothing, for ever.
    Stall,
    /// It sends output for ever.
    Forever,
    /// It ends with an error.
    Fail(Status),
}

/// What a node has seen of its callers.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) open: Mutex<Vec<batch_run_request::Open>>,
    pub(crate) component: Mutex<Vec<u8>>,
    /// Messages that were taken from it.
    pub(crate) messages: AtomicUsize,
    /// Jobs that run.
    pub(crate) jobs: AtomicUsize,
}

struct Service {
    id: String,
    acts: Vec<Act>,
    seen: Arc<Seen>,
}

struct Open(Arc<Seen>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.jobs.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) struct BatchNode {
    pub(crate) seen: Arc<Seen>,
    served: Served,
}

impl BatchNode {
    /// A node that was heard of, and acts like this in every job.
    pub(crate) async fn start(world: &World, monitor: &Monitor, id: &str, acts: Vec<Act>) -> Self {
        let seen = Arc::new(Seen::default());
        let service = Service {
            id: id.to_owned(),
            acts,
            seen: Arc::clone(&seen),
        };
        let served = Served::start(world, id, service).await;
        let address = served.address.to_string();
        world.beat(monitor, id, &address, 100).await;
        Self { seen, served }
    }

    pub(crate) async fn kill(&self) {
        self.served.kill().await;
    }
}

/// The file begins.
pub(crate) fn begin(name: &str) -> Act {
    Act::Send(Step::Begin(Begin {
        name: name.to_owned(),
    }))
}

/// Some of its output.
pub(crate) fn output(bytes: &[u8]) -> Act {
    Act::Send(Step::Output(bytes.to_vec().into()))
}

/// The file ends.
pub(crate) fn done(node: &str, name: &str, output: u64) -> Act {
    Act::Send(Step::Done(Done {
        name: name.to_owned(),
        node: node.to_owned(),
        volume: "v1".to_owned(),
        root: vec![1; 32].into(),
        size: 7,
        output,
        ..Done::default()
    }))
}

/// A whole file, of which the output is its name.
pub(crate) fn whole(node: &str, name: &str) -> Vec<Act> {
    let length = u64::try_from(name.len()).expect("short");
    vec![
        begin(name),
        output(name.as_bytes()),
        done(node, name, length),
    ]
}

/// How far it is.
pub(crate) fn progress(node: &str, files: u64) -> Act {
    Act::Send(Step::Progress(Progress {
        node: node.to_owned(),
        files,
        ..Progress::default()
    }))
}

/// The end.
pub(crate) fn end(files: u64, gaps: Vec<Gap>) -> Act {
    Act::Send(Step::End(End { files, gaps }))
}

type Messages = Pin<Box<dyn Stream<Item = Result<BatchRunResponse, Status>> + Send>>;

fn message(step: batch_run_response::Step) -> BatchRunResponse {
    BatchRunResponse { step: Some(step) }
}

fn one(step: batch_run_response::Step) -> Messages {
    Box::pin(stream::iter([Ok(message(step))]))
}

type Requests = Arc<tokio::sync::Mutex<Streaming<BatchRunRequest>>>;

fn perform(id: &str, act: Act, requests: &Requests, seen: &Arc<Seen>) -> Messages {
    match act {
        Act::Send(step) => one(step),
        Act::Want(size) => {
            let (requests, seen) = (Arc::clone(requests), Arc::clone(seen));
            let received = stream::once(async move {
                let mut requests = requests.lock().await;
                let mut bytes = Vec::new();
                while bytes.len() < size {
                    // One that is cut is the caller's affair.
                    let Ok(Some(request)) = requests.message().await else {
                        return;
                    };
                    let Some(batch_run_request::Step::Component(piece)) = request.step else {
                        panic!("not a component");
                    };
                    bytes.extend_from_slice(&piece);
                }
                *seen.component.lock().expect("whole") = bytes;
            });
            let nothing = received.filter_map(|()| std::future::ready(None));
            Box::pin(one(Step::Want(Want {})).chain(nothing))
        }
        Act::Compute => {
            let id = id.to_owned();
            Box::pin(stream::unfold(0, move |files| {
                let id = id.clone();
                async move {
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    let far = Progress {
                        node: id,
                        files,
                        ..Progress::default()
                    };
                    Some((Ok(message(Step::Progress(far))), files + 1))
                }
            }))
        }
        Act::Stall => Box::pin(stream::pending()),
        Act::Forever => Box::pin(stream::repeat_with(|| {
            Ok(message(Step::Output(vec![7; 64 * 1024].into())))
        })),
        Act::Fail(status) => Box::pin(stream::iter([Err(status)])),
    }
}

#[tonic::async_trait]
impl Node for Service {
    async fn run_batch(
        &self,
        request: Request<Streaming<BatchRunRequest>>,
    ) -> Result<Response<Messages>, Status> {
        let mut requests = request.into_inner();
        let first = requests.message().await?.expect("a first message");
        let Some(batch_run_request::Step::Open(open)) = first.step else {
            panic!("not opened");
        };
        self.seen.open.lock().expect("whole").push(open);
        self.seen.jobs.fetch_add(1, Ordering::SeqCst);
        let open = Open(Arc::clone(&self.seen));
        let requests = Arc::new(tokio::sync::Mutex::new(requests));
        let (id, acts, seen) = (self.id.clone(), self.acts.clone(), Arc::clone(&self.seen));
        let messages = stream::iter(acts)
            .flat_map(move |act| perform(&id, act, &requests, &seen))
            .inspect(move |_| {
                open.0.messages.fetch_add(1, Ordering::SeqCst);
            });
        Ok(Response::new(Box::pin(messages)))
    }
}
