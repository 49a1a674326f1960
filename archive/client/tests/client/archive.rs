//! An archive in memory that does what a test orders, right or wrong.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use archive_model::{GROUP_SIZE, NodeId, ReplicaId, ReplicaKind};
use archive_proof::testing::admission;
use archive_proof::{Admission, CustodyStatement, Receipt, SigningKey};
use archive_rpc::CallErrorKind;
use parking_lot::{Mutex, MutexGuard};
use proto_archive::wire::access_server::Access;
use proto_archive::wire::ingest_server::Ingest;
use proto_archive::wire::salvage_response::Hole;
use proto_archive::wire::store_request::{Open, Step as Request};
use proto_archive::wire::store_response::{Ready, Step as Response, Stored};
use proto_archive::wire::{
    GetRequest, GetResponse, ListRequest, ListResponse, ReceiptRequest, ReceiptResponse,
    SalvageResponse, StatRequest, StatResponse, StatusRequest, StatusResponse, StoreRequest,
    StoreResponse,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::BoxStream;
use tonic::{Status, Streaming};

use crate::keeping::Script;
use crate::serving::{claim_holes, honest, salvaged};
use crate::world::key;

/// The fault of one store. Numbers count the messages that came: the open is the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// No fault.
    Honest,
    /// Ends the stream after this number of messages.
    EndAfter(usize),
    /// Ends the stream with an error.
    FailAfter(usize, CallErrorKind),
    /// Asks to be killed, and is silent.
    DieAfter(usize),
    /// Sends and takes nothing more.
    SilentAfter(usize),
    /// Asks to continue at this byte.
    Ready(u64),
    /// Answers something else than `ready`.
    Instead(Instead),
    /// Sends a receipt that is wrong.
    Receipt(Wrong),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instead {
    Nothing,
    Taken,
    /// A good receipt for this name and size, but other content.
    OtherContent,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wrong {
    Key,
    Name,
    Size,
    Root,
    Garbage,
    Flipped,
    NoReplica,
}

/// A store as the server saw it.
#[derive(Clone, Debug)]
pub struct ReceivedStore {
    pub open: Open,
    pub offset: u64,
    pub received: u64,
}

pub type GetFault = Arc<dyn Fn(Vec<GetResponse>) -> Vec<Result<GetResponse, Status>> + Send + Sync>;

#[derive(Default)]
pub struct State {
    pub faults: VecDeque<Fault>,
    pub seen: Vec<ReceivedStore>,
    /// The bytes that were received under each name.
    pub files: BTreeMap<String, Vec<u8>>,
    pub get_fault: Option<GetFault>,
    /// The holes that `salvage` reports, in every file.
    pub holes: Vec<Hole>,
    /// The holes that `salvage` sends as they are, right or wrong, in place of those in `holes`.
    pub claimed_holes: Vec<Hole>,
    pub list: Vec<Result<ListResponse, Status>>,
    pub list_asked: Option<ListRequest>,
    pub stat: StatResponse,
    pub status: StatusResponse,
    pub receipt: Option<String>,
    pub keeping: Script,
    tasks: JoinSet<()>,
}

#[derive(Clone, Default)]
pub struct Archive {
    state: Arc<Mutex<State>>,
    deaths: Arc<watch::Sender<usize>>,
}

impl Archive {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits until a store asks for the server to be killed.
    pub async fn death(&self) {
        let mut deaths = self.deaths.subscribe();
        deaths
            .wait_for(|deaths| *deaths > 0)
            .await
            .expect("a sender");
    }

    pub fn put(&self, name: &str, bytes: &[u8]) {
        self.state().files.insert(name.to_owned(), bytes.to_vec());
    }

    pub fn fault(&self, faults: &[Fault]) {
        self.state().faults = faults.iter().copied().collect();
    }
}

pub fn receipt(admission: &Admission, replicas: usize, signer: &SigningKey) -> String {
    let custody = |replica: &&str| CustodyStatement {
        replica: ReplicaId::new(replica).expect("id"),
        kind: ReplicaKind::Bitarchive,
        completed: admission.admitted,
        node: NodeId::new("n-1").expect("id"),
        volume: None,
    };
    let receipt = Receipt {
        admission: admission.sign(&key(1)).expect("sign"),
        replicas: ["one", "two"].iter().take(replicas).map(custody).collect(),
        issued: admission.admitted,
    };
    receipt.sign(signer).expect("sign").as_str().to_owned()
}

fn wrong_receipt(wrong: Wrong, name: &str, bytes: &[u8]) -> String {
    let good = admission(name, bytes);
    match wrong {
        Wrong::Key => receipt(&good, 2, &key(2)),
        Wrong::Name => receipt(&admission("other.warc", bytes), 2, &key(1)),
        Wrong::Size => receipt(
            &Admission {
                size: good.size + 1,
                ..good
            },
            2,
            &key(1),
        ),
        Wrong::Root => receipt(&admission(name, &vec![1; bytes.len()]), 2, &key(1)),
        Wrong::Garbage => "{}".to_owned(),
        Wrong::Flipped => {
            receipt(&good, 2, &key(1)).replacen("\"payload\":\"e", "\"payload\":\"f", 1)
        }
        Wrong::NoReplica => receipt(&good, 0, &key(1)),
    }
}

/// A call of `store`.
struct Call {
    archive: Archive,
    fault: Fault,
    index: usize,
    answers: mpsc::Sender<Result<StoreResponse, Status>>,
}

impl Call {
    async fn run(self, mut requests: Streaming<StoreRequest>) {
        let mut open = None;
        let mut count = 0;
        while let Some(Ok(message)) = requests.next().await {
            count += 1;
            match message.step.expect("a step") {
                Request::Open(asked) => {
                    let offset = self.begin(&asked);
                    open = Some(asked);
                    if self.breaks(count).await {
                        return;
                    }
                    self.ready(offset, open.as_ref().expect("an open")).await;
                }
                Request::Data(bytes) => {
                    let name = &open.as_ref().expect("an open first").name;
                    let taken = {
                        let mut state = self.archive.state();
                        state.seen[self.index].received += bytes.len() as u64;
                        let file = state.files.get_mut(name).expect("begun");
                        file.extend_from_slice(&bytes);
                        file.len() as u64
                    };
                    if self.breaks(count).await {
                        return;
                    }
                    self.say(Response::Taken(taken)).await;
                }
                Request::Close(_) => {
                    if self.breaks(count).await {
                        return;
                    }
                    self.finish(open.as_ref().expect("an open first")).await;
                    return;
                }
            }
        }
    }

    /// Keeps whole groups of what an earlier stream left.
    fn begin(&self, open: &Open) -> u64 {
        let mut state = self.archive.state();
        let file = state.files.entry(open.name.clone()).or_default();
        let whole = file.len() as u64 / GROUP_SIZE * GROUP_SIZE;
        file.truncate(usize::try_from(whole).expect("small"));
        state.seen[self.index].open = open.clone();
        state.seen[self.index].offset = whole;
        whole
    }

    async fn ready(&self, offset: u64, open: &Open) {
        let ready = |offset| {
            Response::Ready(Ready {
                upload: "u-1".to_owned(),
                offset,
            })
        };
        match self.fault {
            Fault::Ready(other) => self.say(ready(other)).await,
            Fault::Instead(Instead::Nothing) => self.answer(StoreResponse { step: None }).await,
            Fault::Instead(Instead::Taken) => self.say(Response::Taken(1)).await,
            Fault::Instead(Instead::OtherContent) => {
                let size = usize::try_from(open.size).expect("small");
                self.stored(
                    receipt(&admission(&open.name, &vec![9; size]), 2, &key(1)),
                    true,
                )
                .await;
            }
            _ => self.say(ready(offset)).await,
        }
    }

    async fn finish(&self, open: &Open) {
        let bytes = self.archive.state().files[&open.name].clone();
        let root = blake3::hash(&bytes);
        if bytes.len() as u64 != open.size
            || (!open.blake3.is_empty() && open.blake3 != root.as_bytes().as_slice())
        {
            let status =
                CallErrorKind::Mismatch.to_status(format!("{}: not what was announced", open.name));
            _ = self.answers.send(Err(status)).await;
            return;
        }
        let text = match self.fault {
            Fault::Receipt(wrong) => wrong_receipt(wrong, &open.name, &bytes),
            _ => receipt(&admission(&open.name, &bytes), 2, &key(1)),
        };
        self.stored(text, false).await;
    }

    async fn stored(&self, receipt: String, already: bool) {
        self.say(Response::Stored(Stored {
            receipt,
            already,
            ..Stored::default()
        }))
        .await;
    }

    /// Carries out the fault if it is due after `count` messages; returns whether the call ends.
    async fn breaks(&self, count: usize) -> bool {
        match self.fault {
            Fault::EndAfter(n) => n == count,
            Fault::FailAfter(n, kind) if n == count => {
                let status = kind.to_status("as the test wants it");
                _ = self.answers.send(Err(status)).await;
                true
            }
            Fault::DieAfter(n) if n == count => {
                self.archive.deaths.send_modify(|deaths| *deaths += 1);
                std::future::pending().await
            }
            Fault::SilentAfter(n) if n == count => std::future::pending().await,
            _ => false,
        }
    }

    async fn say(&self, step: Response) {
        self.answer(StoreResponse { step: Some(step) }).await;
    }

    async fn answer(&self, response: StoreResponse) {
        // The client may have ended.
        _ = self.answers.send(Ok(response)).await;
    }
}

#[tonic::async_trait]
impl Ingest for Archive {
    async fn store(
        &self,
        request: tonic::Request<Streaming<StoreRequest>>,
    ) -> Result<tonic::Response<BoxStream<StoreResponse>>, Status> {
        let (answers, stream) = mpsc::channel(4);
        let mut state = self.state();
        let fault = state.faults.pop_front().unwrap_or(Fault::Honest);
        let call = Call {
            archive: self.clone(),
            fault,
            index: state.seen.len(),
            answers,
        };
        state.seen.push(ReceivedStore {
            open: Open::default(),
            offset: 0,
            received: 0,
        });
        state.tasks.spawn(call.run(request.into_inner()));
        Ok(tonic::Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn stat(
        &self,
        _request: tonic::Request<StatRequest>,
    ) -> Result<tonic::Response<StatResponse>, Status> {
        Ok(tonic::Response::new(self.state().stat.clone()))
    }
}

#[tonic::async_trait]
impl Access for Archive {
    async fn get(
        &self,
        request: tonic::Request<GetRequest>,
    ) -> Result<tonic::Response<BoxStream<GetResponse>>, Status> {
        let request = request.into_inner();
        let state = self.state();
        let Some(bytes) = state.files.get(&request.name) else {
            return Err(CallErrorKind::NotFound
                .to_status(format!("{} is not in the archive", request.name)));
        };
        let size = bytes.len() as u64;
        let end = if request.end == 0 {
            size
        } else {
            request.end.min(size)
        };
        let messages = honest(&request.name, bytes, request.start..end);
        let messages = match &state.get_fault {
            Some(fault) => fault(messages),
            None => messages.into_iter().map(Ok).collect(),
        };
        Ok(tonic::Response::new(Box::pin(tokio_stream::iter(messages))))
    }

    async fn salvage(
        &self,
        request: tonic::Request<GetRequest>,
    ) -> Result<tonic::Response<BoxStream<SalvageResponse>>, Status> {
        let state = self.state();
        let mut parts = salvaged(&state.files, &state.holes, request.get_ref())?;
        if !state.claimed_holes.is_empty() {
            claim_holes(&mut parts, &state.claimed_holes);
        }
        Ok(tonic::Response::new(Box::pin(tokio_stream::iter(parts))))
    }

    async fn list(
        &self,
        request: tonic::Request<ListRequest>,
    ) -> Result<tonic::Response<BoxStream<ListResponse>>, Status> {
        let mut state = self.state();
        state.list_asked = Some(request.into_inner());
        let list = std::mem::take(&mut state.list);
        Ok(tonic::Response::new(Box::pin(tokio_stream::iter(list))))
    }

    async fn receipt(
        &self,
        request: tonic::Request<ReceiptRequest>,
    ) -> Result<tonic::Response<ReceiptResponse>, Status> {
        let said = self.state().receipt.clone();
        let receipt =
            said.ok_or_else(|| CallErrorKind::NotFound.to_status(request.into_inner().name))?;
        Ok(tonic::Response::new(ReceiptResponse { receipt }))
    }

    async fn status(
        &self,
        _request: tonic::Request<StatusRequest>,
    ) -> Result<tonic::Response<StatusResponse>, Status> {
        let state = self.state();
        let files = state.files.len() as u64;
        Ok(tonic::Response::new(StatusResponse {
            files,
            ..state.status.clone()
        }))
    }
}
