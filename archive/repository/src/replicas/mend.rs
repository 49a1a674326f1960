//! Mending one copy: the groups that it lacks, each with its proof, and what became of it.

use archive_model::{FileName, Groups, NodeId, ReplicaId, Root, VolumeId};
use archive_rpc::Kind;
use bytes::Bytes;
use proto_archive::wire::mend_request::{Close, Open, Step};
use proto_archive::{convert as fields, wire};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::copies::copy;
use super::{Copy, Replicas};

/// Messages on their way, either way.
const WINDOW: usize = 16;

/// What is to be mended.
#[derive(Clone, Debug)]
pub(crate) struct MendOrder {
    pub(crate) replica: ReplicaId,
    pub(crate) node: NodeId,
    pub(crate) volume: VolumeId,
    pub(crate) name: FileName,
    /// What the copy shall be.
    pub(crate) root: Root,
    /// The groups that are brought.
    pub(crate) groups: Groups,
    /// Who asked for it, as `role/name`, and why.
    pub(crate) who: String,
    pub(crate) why: String,
}

/// One end of a mending: bytes go in, answers come out, in parallel.
#[derive(Debug)]
pub(crate) struct Mending {
    steps: Option<mpsc::Sender<wire::MendRequest>>,
    answers: mpsc::Receiver<Result<Mended, Status>>,
}

/// What a node says while it mends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mended {
    /// So many bytes were read back.
    Progress(u64),
    /// The copy as it is now, and where the replaced groups lie in the attic of its volume.
    Done { copy: Copy, attic: String },
}

impl Replicas {
    /// Begins to mend a copy. The future beside it carries the call: it must be polled until it ends, or dropped, which
    /// ends the call and leaves the copy as it was.
    pub(crate) async fn mend(
        &self,
        order: &MendOrder,
    ) -> Result<(Mending, impl Future<Output = ()> + Send + use<'_>), Status> {
        let mut client = self.node_client(&order.replica, &order.node).await?;
        let (steps, requests) = mpsc::channel(WINDOW);
        let (told, answers) = mpsc::channel(WINDOW);
        let open = Open {
            name: order.name.to_string(),
            volume: order.volume.to_string(),
            root: fields::root_bytes(&order.root),
            groups: fields::group_ranges(&order.groups),
            who: order.who.clone(),
            why: order.why.clone(),
        };
        send(&steps, Step::Open(open)).await?;
        let (replica, node) = (order.replica.clone(), order.node.clone());
        let call = async move {
            let ended = async {
                let mut stream = client
                    .mend(ReceiverStream::new(requests))
                    .await
                    .map_err(|status| self.failed(&replica, &node, status))?
                    .into_inner();
                while let Some(message) = stream.message().await? {
                    let mended = match &message.entry {
                        None => Mended::Progress(message.bytes),
                        Some(entry) => Mended::Done {
                            copy: copy(entry)?,
                            attic: message.attic,
                        },
                    };
                    if told.send(Ok(mended)).await.is_err() {
                        return Ok(());
                    }
                }
                Err(Kind::Unavailable.status("the node ended the repair without a result"))
            };
            let ended: Result<(), Status> = ended.await;
            if let Err(status) = ended {
                // Whoever has its result does not listen any more.
                drop(told.send(Err(status)).await);
            }
        };
        Ok((
            Mending {
                steps: Some(steps),
                answers,
            },
            call,
        ))
    }
}

impl Mending {
    /// Sends the next part.
    pub(crate) async fn segment(
        &self,
        offset: u64,
        length: u64,
        encoded: Bytes,
    ) -> Result<(), Status> {
        let segment = wire::Segment {
            offset,
            length,
            encoded,
        };
        self.step(Step::Segment(segment)).await
    }

    /// Says that all groups were sent: only this lets the node change anything.
    pub(crate) async fn close(&mut self) -> Result<(), Status> {
        self.step(Step::Close(Close {})).await?;
        self.steps = None;
        Ok(())
    }

    /// What the node says next.
    pub(crate) async fn next(&mut self) -> Result<Mended, Status> {
        let ended = || Kind::Unavailable.status("the node ended the repair without a result");
        self.answers.recv().await.ok_or_else(ended)?
    }

    async fn step(&self, step: Step) -> Result<(), Status> {
        let closed = || Kind::Internal.status("the repair was closed already");
        send(self.steps.as_ref().ok_or_else(closed)?, step).await
    }
}

async fn send(steps: &mpsc::Sender<wire::MendRequest>, step: Step) -> Result<(), Status> {
    let message = wire::MendRequest { step: Some(step) };
    steps
        .send(message)
        .await
        .map_err(|_closed| Kind::Unavailable.status("the node ended the repair"))
}
