//! Calls to the replicas: their monitors, and through them their nodes. Performs what was decided, and reports.
//!
//! A door: wire types end here. A node is dialled under its own name, so that nobody else answers for it.

mod admissions;
mod people;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use archive_model::{FileName, NodeId, ReplicaId, Root, StoreFailure, UploadId, VolumeId};
use archive_rpc::{ConnectError, Credentials, Expected, Grant, Kind, Limits, Role, connect_lazy};
use bytes::Bytes;
use jiff::Timestamp;
use proto_archive::wire::node_client::NodeClient;
use proto_archive::wire::replica_client::ReplicaClient;
use proto_archive::wire::upload_request::{Close, Open, Start, Step};
use proto_archive::wire::upload_response::Step as Answer;
use proto_archive::{convert as fields, wire};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

pub(crate) use admissions::Admissions;

use crate::attention::NodeSeen;
use crate::settings::ReplicaSettings;
use crate::standing::{Now, View};
pub(crate) use people::{Aside, Cause, Found, How, Listing, Verified};

/// The replicas of the archive, as the repository calls them.
#[derive(Debug)]
pub(crate) struct Replicas {
    monitors: BTreeMap<ReplicaId, ReplicaClient<Channel>>,
    credentials: Credentials,
    limits: Limits,
    nodes: Mutex<BTreeMap<NodeId, (String, NodeClient<Channel>)>>,
    /// Which nodes belong to which replica: each monitor is told with every question about its state.
    members: Mutex<BTreeMap<ReplicaId, Vec<NodeId>>>,
    /// What is out of service is not asked, and what it says is not heard.
    standing: View,
}

/// A copy that a node says it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) node: NodeId,
    pub(crate) volume: VolumeId,
    pub(crate) root: Option<Root>,
    pub(crate) stored: Timestamp,
    pub(crate) is_present: bool,
}

/// Where a replica has a file, and whether everybody was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) copies: Vec<Copy>,
    /// Who did not answer, and why; none: nobody is missing.
    pub(crate) silent: Option<String>,
}

/// A node that was chosen for an upload.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) node: NodeId,
    client: NodeClient<Channel>,
}

/// An open upload into one node.
#[derive(Debug)]
pub(crate) enum Opened {
    /// It takes bytes from the first on.
    Ready(Upload),
    /// It has the file already.
    Stored(Copy),
}

/// An upload into one node.
#[derive(Debug)]
pub(crate) struct Upload {
    steps: mpsc::Sender<wire::UploadRequest>,
    answers: Streaming<wire::UploadResponse>,
}

impl Replicas {
    /// Dials each monitor at the first call.
    pub(crate) fn new(
        replicas: &[ReplicaSettings],
        credentials: Credentials,
        limits: Limits,
        standing: View,
    ) -> Result<Self, ConnectError> {
        let mut monitors = BTreeMap::new();
        for replica in replicas {
            let expected = expected(Role::Monitor, replica.id.as_str())?;
            let channel = connect_lazy(&replica.monitor, &credentials, &expected, &limits)?;
            monitors.insert(replica.id.clone(), ReplicaClient::new(channel));
        }
        Ok(Self {
            monitors,
            credentials,
            limits,
            nodes: Mutex::default(),
            members: Mutex::default(),
            standing,
        })
    }

    fn monitor(&self, replica: &ReplicaId) -> Result<ReplicaClient<Channel>, Status> {
        let unknown = || Kind::NotFound.status(format!("replica {replica} is not in the settings"));
        if self.standing.now().is_retired(replica) {
            return Err(Kind::NotFound.status(format!("replica {replica} is retired")));
        }
        self.monitors.get(replica).cloned().ok_or_else(unknown)
    }

    fn node(&self, node: &NodeId, endpoint: &str) -> Result<NodeClient<Channel>, Status> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = nodes.get(node).filter(|(known, _)| known == endpoint) {
            return Ok(client.clone());
        }
        let channel = expected(Role::Node, node.as_str())
            .and_then(|expected| connect_lazy(endpoint, &self.credentials, &expected, &self.limits))
            .map_err(|error| Kind::Unavailable.status(error.to_string()))?;
        let client = NodeClient::new(channel).max_decoding_message_size(16 << 20);
        nodes.insert(node.clone(), (endpoint.to_owned(), client.clone()));
        Ok(client)
    }

    /// Which node is to take the file.
    pub(crate) async fn place(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        upload: &UploadId,
        size: u64,
        avoid: &[NodeId],
    ) -> Result<Place, Status> {
        let request = wire::PlaceRequest {
            name: name.to_string(),
            upload: upload.to_string(),
            size,
            avoid: avoid.iter().map(NodeId::to_string).collect(),
        };
        let placed = self.monitor(replica)?.place(request).await?.into_inner();
        let node = fields::node_id(&placed.node)?;
        Ok(Place {
            client: self.node(&node, &placed.endpoint)?,
            node,
        })
    }

    /// Where the replica has the file.
    pub(crate) async fn locate(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Located, Status> {
        let request = wire::FindRequest {
            name: name.to_string(),
        };
        let found = self.monitor(replica)?.locate(request).await?.into_inner();
        let now = self.standing.now();
        // What a volume holds that nobody can look at now is no copy, whatever its node remembers of it.
        let is_seen = |entry: &&wire::FileEntry| {
            let is_silent = |gap: &wire::Gap| gap.node == entry.node && gap.volume == entry.volume;
            !is_given_up(&now, &entry.volume) && !found.gaps.iter().any(is_silent)
        };
        let seen = found.entries.iter().filter(is_seen);
        let copies = seen.map(copy).collect::<Result<_, _>>()?;
        let gaps = found
            .gaps
            .iter()
            .filter(|gap| !is_given_up(&now, &gap.volume));
        let silent = gaps.map(describe).collect::<Vec<_>>().join("; ");
        Ok(Located {
            copies,
            silent: (!silent.is_empty()).then_some(silent),
        })
    }

    /// Sets which nodes belong to a replica.
    pub(crate) fn set_members(&self, replica: &ReplicaId, nodes: Vec<NodeId>) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.insert(replica.clone(), nodes);
    }

    /// The nodes of a replica, as its monitor sees them; it is told which ones to miss.
    pub(crate) async fn state(&self, replica: &ReplicaId) -> Result<Vec<wire::NodeStatus>, Status> {
        let (mut nodes, now) = (self.heard(replica).await?, self.standing.now());
        for node in &mut nodes {
            people::mark_retired(&now, replica, node);
        }
        Ok(nodes)
    }

    /// The same, in the nodes' own words.
    async fn heard(&self, replica: &ReplicaId) -> Result<Vec<wire::NodeStatus>, Status> {
        let members = self
            .members
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(replica)
            .cloned();
        let unknown =
            || Kind::Unavailable.status(format!("the nodes of replica {replica} are not read yet"));
        let known = members
            .ok_or_else(unknown)?
            .iter()
            .map(NodeId::to_string)
            .collect();
        let now = self.standing.now();
        let retired = now.retired_nodes(replica);
        let retired = retired.iter().map(NodeId::to_string).collect();
        let request = wire::ReplicaStateRequest { known, retired };
        let answer = self.monitor(replica)?.replica_state(request).await?;
        Ok(answer.into_inner().nodes)
    }

    /// Tells a monitor which nodes it has; gives those it has heard of.
    pub(crate) async fn nodes_heard(&self, replica: &ReplicaId) -> Result<Vec<NodeId>, Status> {
        let nodes = self.state(replica).await?;
        nodes
            .iter()
            .map(|status| Ok(fields::node_id(&status.node)?))
            .collect()
    }

    /// The nodes of a replica, as far as people must look at them.
    pub(crate) async fn nodes_seen(&self, replica: &ReplicaId) -> Result<Vec<NodeSeen>, Status> {
        let seen = |status: wire::NodeStatus| NodeSeen {
            is_alive: status.alive,
            seen: status.seen,
            offline: status
                .volumes
                .into_iter()
                .filter(|volume| !volume.problem.is_empty() && !volume.retired)
                .map(|volume| match volume.volume.as_str() {
                    "" => (volume.path, volume.problem),
                    _ => (volume.volume, volume.problem),
                })
                .collect(),
            node: status.node,
        };
        Ok(self.state(replica).await?.into_iter().map(seen).collect())
    }

    /// Everything that the replica has, sorted by name.
    pub(crate) async fn listing(
        &self,
        replica: &ReplicaId,
        after: &str,
    ) -> Result<Listing, Status> {
        let request = wire::FilesRequest {
            after: after.to_owned(),
            only_findings: false,
        };
        let monitor = self.monitor(replica)?.max_decoding_message_size(16 << 20);
        let mut monitor = monitor;
        let messages = monitor.listing(request).await?.into_inner();
        Ok(Listing::new(messages, self.standing.now()))
    }

    /// The bytes of a file, in segments that prove themselves.
    pub(crate) async fn read(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &FileName,
        root: &Root,
        (start, end): (u64, u64),
    ) -> Result<Streaming<wire::Segment>, Status> {
        let known = self
            .nodes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(node)
            .map(|(_, c)| c.clone());
        let mut client = if let Some(client) = known {
            client
        } else {
            let nodes = self.state(replica).await?;
            let found = nodes
                .iter()
                .find(|status| status.node == node.as_str() && !status.endpoint.is_empty());
            let silent = || Kind::Unavailable.status(format!("node {node} is silent"));
            self.node(node, &found.ok_or_else(silent)?.endpoint)?
        };
        let request = wire::ReadRequest {
            name: name.to_string(),
            root: fields::root_bytes(root),
            start,
            end,
        };
        match client.read(request).await {
            Ok(answer) => Ok(answer.into_inner()),
            Err(status) => {
                // The node may have moved: ask for its endpoint again next time.
                self.nodes
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(node);
                Err(status)
            }
        }
    }
}

impl Place {
    /// Opens the upload. Bytes are sent from the first on: what an earlier stream left is forgotten.
    pub(crate) async fn open(
        &self,
        upload: &UploadId,
        name: &FileName,
        size: u64,
    ) -> Result<Opened, Status> {
        let (steps, requests) = mpsc::channel(4);
        let open = Open {
            upload: upload.to_string(),
            name: name.to_string(),
            size,
            from_start: true,
        };
        send(&steps, Step::Open(open)).await?;
        let mut client = self.client.clone();
        let mut answers = client
            .upload(ReceiverStream::new(requests))
            .await?
            .into_inner();
        match next(&mut answers).await? {
            Answer::Stored(entry) => Ok(Opened::Stored(copy(&entry)?)),
            Answer::Ready(_) => {
                send(&steps, Step::Start(Start { offset: 0 })).await?;
                Ok(Opened::Ready(Upload { steps, answers }))
            }
        }
    }
}

impl Upload {
    /// Sends bytes, as fast as the node takes them. What the node said when it does not: why.
    pub(crate) async fn data(&mut self, bytes: Bytes) -> Result<(), Status> {
        match send(&self.steps, Step::Data(bytes)).await {
            Ok(()) => Ok(()),
            // The stream broke; the reason waits on the other side.
            Err(broken) => Err(self.answers.message().await.err().unwrap_or(broken)),
        }
    }

    /// Gives the admission and waits until the node has committed.
    pub(crate) async fn close(mut self, admission: &str) -> Result<Copy, Status> {
        let close = Close {
            admission: admission.to_owned(),
        };
        if let Err(broken) = send(&self.steps, Step::Close(close)).await {
            return Err(self.answers.message().await.err().unwrap_or(broken));
        }
        match next(&mut self.answers).await? {
            Answer::Stored(entry) => copy(&entry),
            Answer::Ready(_) => Err(Kind::Internal.status("the node said `ready` to `close`")),
        }
    }
}

async fn send(steps: &mpsc::Sender<wire::UploadRequest>, step: Step) -> Result<(), Status> {
    let message = wire::UploadRequest { step: Some(step) };
    steps
        .send(message)
        .await
        .map_err(|_closed| Kind::Unavailable.status("the node ended the upload"))
}

async fn next(answers: &mut Streaming<wire::UploadResponse>) -> Result<Answer, Status> {
    let ended = || Kind::Unavailable.status("the node ended the upload without an answer");
    answers
        .message()
        .await?
        .and_then(|message| message.step)
        .ok_or_else(ended)
}

/// Who must answer. Never just anybody of that role: a name that no certificate can bear is refused.
fn expected(role: Role, name: &str) -> Result<Expected, ConnectError> {
    Grant::new(role, name)
        .map(|grant| Expected::named(&grant))
        .map_err(|error| ConnectError::Address(error.to_string()))
}

fn copy(entry: &wire::FileEntry) -> Result<Copy, Status> {
    Ok(Copy {
        node: fields::node_id(&entry.node)?,
        volume: fields::volume_id(&entry.volume)?,
        root: fields::optional_root("root", &entry.root)?,
        stored: fields::time("stored", &entry.stored)?,
        is_present: entry.condition() == wire::Condition::Present,
    })
}

/// Whether a volume that was named is out of service: nothing on it counts, and nobody misses it.
fn is_given_up(now: &Now, volume: &str) -> bool {
    VolumeId::new(volume).is_ok_and(|volume| now.volumes.contains_key(&volume))
}

fn describe(gap: &wire::Gap) -> String {
    match (gap.node.as_str(), gap.volume.as_str()) {
        ("", _) => gap.reason.clone(),
        (node, "") => format!("node {node}: {}", gap.reason),
        (node, volume) => format!("node {node}, volume {volume}: {}", gap.reason),
    }
}

/// Why a replica does not have the file, from what the call said.
pub(crate) fn failure(status: &Status, doing: &str) -> StoreFailure {
    let said = status.message().to_owned();
    match Kind::of(status) {
        Kind::NoSpace => StoreFailure::NoSpace,
        Kind::Exists => StoreFailure::Conflict,
        Kind::TimedOut => StoreFailure::TimedOut(doing.to_owned()),
        Kind::Storage => StoreFailure::Disk(said),
        Kind::Busy => StoreFailure::NotAccepting(said),
        Kind::Mismatch => StoreFailure::ReadBackDiffers,
        Kind::Invalid
        | Kind::NotFound
        | Kind::NotEnoughReplicas
        | Kind::Damaged
        | Kind::Refused
        | Kind::Unavailable
        | Kind::Internal => StoreFailure::Unreachable(said),
    }
}
