//! A node over real TLS that says what a test tells it to say, true or not.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use proto_archive::wire::files_response::End;
use proto_archive::wire::node_server::Node;
use proto_archive::wire::{
    CopyCondition, FileEntry, FilesRequest, FilesResponse, FindRequest, FindResponse, Gap,
    NodeStateRequest, NodeStatus, ReadRequest, Segment, UploadRequest, UploadResponse,
};
use tonic::{Request, Response, Status, Streaming};

use crate::served::FakeNodeServer;
use crate::world::{Monitor, MonitorEnvironment};

/// A step of a node in its listing.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Sends good entries for the given names.
    Names(Vec<String>),
    /// Sends the given entries.
    Entries(Vec<FileEntry>),
    /// Ends the listing, with a number of entries and gaps.
    End(u64, Vec<Gap>),
    /// Sends nothing, without end.
    Stall,
    /// Sends sorted names without end.
    Forever,
    /// Sends empty messages without end.
    EmptyForever,
    /// Ends with an error.
    Fail(&'static str),
}

/// The answer of a node that is asked for a file.
#[derive(Clone, Debug)]
pub(crate) enum Find {
    /// The node has the file in this condition, on `v1`.
    Has(CopyCondition),
    /// The node does not have the file.
    Nothing,
    /// The node does not have the file, and one volume is offline.
    Offline,
    /// The node receives the file just now.
    Receives,
    /// The node never answers.
    Hangs,
    /// The node answers for another file.
    Other,
    /// The node has the file on more volumes than any node has.
    Everywhere,
}

pub(crate) struct FakeNode {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<SeenCalls>,
    served: FakeNodeServer,
}

/// The calls that a node has seen.
#[derive(Default)]
pub(crate) struct SeenCalls {
    pub(crate) after: Mutex<Vec<String>>,
    /// The number of listings that were of findings only.
    pub(crate) of_findings: AtomicUsize,
    /// The number of messages of listings that were taken from the node.
    pub(crate) messages: AtomicUsize,
    /// The number of listings that are open.
    pub(crate) listings: AtomicUsize,
}

struct Service {
    id: String,
    files: Vec<Step>,
    find: Find,
    seen: Arc<SeenCalls>,
}

/// Counts a listing while it is open.
struct OpenListing(Arc<SeenCalls>);

impl Drop for OpenListing {
    fn drop(&mut self) {
        self.0.listings.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeNode {
    pub(crate) async fn start(
        world: &MonitorEnvironment,
        id: &str,
        files: Vec<Step>,
        find: Find,
    ) -> Self {
        let seen = Arc::new(SeenCalls::default());
        let service = Service {
            id: id.to_owned(),
            files,
            find,
            seen: Arc::clone(&seen),
        };
        let served = FakeNodeServer::start(world, id, service).await;
        Self {
            address: served.address,
            seen,
            served,
        }
    }

    /// Starts a node that has these files, tells the truth, and was heard of.
    pub(crate) async fn honest(
        world: &MonitorEnvironment,
        monitor: &Monitor,
        id: &str,
        names: &[&str],
    ) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let count = u64::try_from(names.len()).expect("few");
        let steps = if names.is_empty() {
            vec![]
        } else {
            vec![Step::Names(names)]
        };
        let steps = steps
            .into_iter()
            .chain([Step::End(count, vec![])])
            .collect();
        Self::scripted(world, monitor, id, steps).await
    }

    /// Starts a node that lists by the given steps, and was heard of.
    pub(crate) async fn scripted(
        world: &MonitorEnvironment,
        monitor: &Monitor,
        id: &str,
        files: Vec<Step>,
    ) -> Self {
        let node = Self::start(world, id, files, Find::Nothing).await;
        world
            .beat(monitor, id, &node.address.to_string(), 100)
            .await;
        node
    }

    /// Starts a node that answers as given when it is asked for a file, and was heard of.
    pub(crate) async fn finding(
        world: &MonitorEnvironment,
        monitor: &Monitor,
        id: &str,
        find: Find,
        usable: u64,
    ) -> Self {
        let node = Self::start(world, id, vec![], find).await;
        world
            .beat(monitor, id, &node.address.to_string(), usable)
            .await;
        node
    }

    pub(crate) async fn kill(&self) {
        self.served.kill().await;
    }
}

/// Returns the entry of a good copy.
pub(crate) fn entry(node: &str, name: &str) -> FileEntry {
    FileEntry {
        name: name.to_owned(),
        node: node.to_owned(),
        volume: "v1".to_owned(),
        size: 7,
        root: vec![1; 32].into(),
        condition: CopyCondition::Present.into(),
        stored: "2026-01-02T03:04:05.123456789Z".parse().ok(),
        verified: "2026-02-03T04:05:06.123456789Z".parse().ok(),
        ..FileEntry::default()
    }
}

type Messages = Pin<Box<dyn Stream<Item = Result<FilesResponse, Status>> + Send>>;

fn entries(entries: Vec<FileEntry>) -> Messages {
    Box::pin(stream::iter([Ok(FilesResponse {
        entries,
        ..FilesResponse::default()
    })]))
}

fn perform(id: &str, step: Step) -> Messages {
    match step {
        Step::Names(names) => {
            let id = id.to_owned();
            let messages: Vec<Vec<String>> = names.chunks(1000).map(<[String]>::to_vec).collect();
            Box::pin(stream::iter(messages).map(move |names| {
                let entries = names.iter().map(|name| entry(&id, name)).collect();
                Ok(FilesResponse {
                    entries,
                    ..FilesResponse::default()
                })
            }))
        }
        Step::Entries(list) => entries(list),
        Step::End(count, gaps) => {
            let end = Some(End { count, gaps });
            Box::pin(stream::iter([Ok(FilesResponse {
                end,
                ..FilesResponse::default()
            })]))
        }
        Step::Stall => Box::pin(stream::pending()),
        Step::Forever => {
            let id = id.to_owned();
            Box::pin(stream::iter(0_u64..).map(move |i| {
                let entries = (0..1000)
                    .map(|j| entry(&id, &format!("f-{:012}", i * 1000 + j)))
                    .collect();
                Ok(FilesResponse {
                    entries,
                    ..FilesResponse::default()
                })
            }))
        }
        Step::EmptyForever => Box::pin(stream::repeat_with(|| Ok(FilesResponse::default()))),
        Step::Fail(reason) => Box::pin(stream::iter([Err(Status::data_loss(reason))])),
    }
}

#[tonic::async_trait]
impl Node for Service {
    async fn upload(
        &self,
        _: Request<Streaming<UploadRequest>>,
    ) -> Result<Response<Pin<Box<dyn Stream<Item = Result<UploadResponse, Status>> + Send>>>, Status>
    {
        Err(Status::unimplemented("bytes never come from a monitor"))
    }

    async fn read(
        &self,
        _: Request<ReadRequest>,
    ) -> Result<Response<Pin<Box<dyn Stream<Item = Result<Segment, Status>> + Send>>>, Status> {
        Err(Status::unimplemented("bytes never go to a monitor"))
    }

    async fn find(&self, request: Request<FindRequest>) -> Result<Response<FindResponse>, Status> {
        let name = request.into_inner().name;
        let mut answer = FindResponse::default();
        match self.find {
            Find::Has(condition) => {
                let condition = condition.into();
                answer.entries.push(FileEntry {
                    condition,
                    ..entry(&self.id, &name)
                });
            }
            Find::Nothing => {}
            Find::Offline => {
                let volume = "v2".to_owned();
                let reason = "not mounted".to_owned();
                answer.gaps.push(Gap {
                    volume,
                    reason,
                    ..Gap::default()
                });
            }
            Find::Receives => {
                "u0".clone_into(&mut answer.receiving);
                answer.gaps.push(Gap::default());
            }
            Find::Hangs => std::future::pending().await,
            Find::Everywhere => answer.entries = vec![entry(&self.id, &name); 257],
            Find::Other => answer.entries.push(entry(&self.id, "other.warc")),
        }
        Ok(Response::new(answer))
    }

    async fn files(&self, request: Request<FilesRequest>) -> Result<Response<Messages>, Status> {
        let request = request.into_inner();
        self.seen
            .of_findings
            .fetch_add(usize::from(request.only_findings), Ordering::SeqCst);
        self.seen.after.lock().push(request.after);
        self.seen.listings.fetch_add(1, Ordering::SeqCst);
        let open = OpenListing(Arc::clone(&self.seen));
        let id = self.id.clone();
        let steps = self.files.clone();
        let messages = stream::iter(steps).flat_map(move |step| perform(&id, step));
        Ok(Response::new(Box::pin(messages.inspect(move |_| {
            open.0.messages.fetch_add(1, Ordering::SeqCst);
        }))))
    }

    async fn node_state(
        &self,
        _: Request<NodeStateRequest>,
    ) -> Result<Response<NodeStatus>, Status> {
        Err(Status::unimplemented("a monitor learns it from heartbeats"))
    }
}
