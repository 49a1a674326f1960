//! One stream in, one out per replica. A replica that stalls is dropped, not waited for.
//!
//! What happens is reported as events; what it means is for the store core to decide. The bytes are hashed once, here,
//! while they pass.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Tasks};
use archive_model::{Digests, FileName, NodeId, ReplicaId, Root, StoreFailure, UploadId};
use archive_proof::TreeBuilder;
use archive_rpc::Kind;
use bytes::Bytes;
use md5::{Digest, Md5};
use sha2::Sha256;
use tokio::sync::{mpsc, watch};
use tonic::Status;

use crate::coordinator::Mail;
use crate::depositor::{Chunk, Source};
use crate::replicas::{Copy, Opened, Replicas, Upload, failure};
use crate::store::{Content, Event, Requester};

/// Chunks on their way to one replica.
const WINDOW: usize = 8;

/// The pause before a node that is busy with the same name is asked again.
const BUSY: Duration = Duration::from_millis(200);

/// How often a replica that takes bytes is said to live.
const PROGRESS: Duration = Duration::from_secs(10);

/// How long the node is waited for after the last byte, beside the size-dependent part, and the slowest reading back.
const VERIFY: (Duration, u64) = (Duration::from_mins(5), 20_000_000);

/// What every transfer needs.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) mail: Mail,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Clock,
    pub(crate) stall: Duration,
    pub(crate) md5: bool,
}

/// What is being stored.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) name: FileName,
    pub(crate) upload: UploadId,
    pub(crate) size: u64,
}

/// How a file goes into a replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct Route {
    /// Nodes that shall not have it.
    pub(crate) avoid: Vec<NodeId>,
    /// The coordinator is not told how far it is: to it, the replica has the file all the time.
    pub(crate) is_quiet: bool,
}

/// The admission, once there is one; dropped without one, the targets give up.
pub(crate) type Seal = watch::Sender<Option<Arc<str>>>;

impl Transfers {
    /// Tees the depositor's stream into `targets`. The caller gives the admission through the result.
    pub(crate) fn start(
        &self,
        item: Item,
        requester: Requester,
        source: Source,
        targets: Vec<ReplicaId>,
    ) -> Seal {
        let (seal, sealed) = watch::channel(None);
        let mut lanes = Vec::new();
        for replica in targets {
            let (lane, chunks) = mpsc::channel(WINDOW);
            lanes.push((replica.clone(), lane));
            let (transfers, item, sealed) = (self.clone(), item.clone(), sealed.clone());
            self.tasks.spawn_once("upload", async move {
                transfers.fill(replica, item, chunks, sealed).await;
                Ok::<(), std::convert::Infallible>(())
            });
        }
        let (transfers, name) = (self.clone(), item.name);
        self.tasks.spawn_once("transfer", async move {
            let event = match transfers.tee(&name, source, lanes).await {
                Some(content) => Event::Received { requester, content },
                None => Event::SourceGone { requester },
            };
            transfers.mail.happened(name, event).await;
            Ok::<(), std::convert::Infallible>(())
        });
        seal
    }

    /// Reads the depositor's stream and only hashes it.
    pub(crate) fn compare(&self, name: FileName, requester: Requester, source: Source) {
        let transfers = self.clone();
        self.tasks.spawn_once("compare", async move {
            let event = match transfers.tee(&name, source, Vec::new()).await {
                Some(content) => Event::Received { requester, content },
                None => Event::SourceGone { requester },
            };
            transfers.mail.happened(name, event).await;
            Ok::<(), std::convert::Infallible>(())
        });
    }

    /// Reads the source to its end, hashing and handing on; `None`: it broke off.
    async fn tee(
        &self,
        name: &FileName,
        mut source: Source,
        mut lanes: Vec<(ReplicaId, mpsc::Sender<Bytes>)>,
    ) -> Option<Content> {
        let mut hash = Hash::new(self.md5 || source.has_md5);
        let is_teeing = !lanes.is_empty();
        loop {
            match source.next().await {
                Err(why) => {
                    tracing::info!(file = %name, %why, "a depositor's stream broke off");
                    return None;
                }
                Ok(Chunk::End) => return hash.finish(),
                Ok(Chunk::Data(bytes)) => {
                    hash.update(&bytes)?;
                    if hash.size > source.announced {
                        // Longer than announced: whatever follows, it will be refused.
                        return hash.finish();
                    }
                    let mut open = Vec::with_capacity(lanes.len());
                    for (replica, lane) in lanes {
                        match self
                            .clock
                            .timeout(self.stall, lane.send(bytes.clone()))
                            .await
                        {
                            Ok(Ok(())) => open.push((replica, lane)),
                            // It has ended and said why.
                            Ok(Err(_closed)) => {}
                            Err(_late) => {
                                let reason = StoreFailure::Stalled(self.stall.as_secs());
                                self.mail
                                    .happened(name.clone(), Event::Failed { replica, reason })
                                    .await;
                            }
                        }
                    }
                    lanes = open;
                    if is_teeing && lanes.is_empty() {
                        tracing::warn!(file = %name, "no replica takes the file any more");
                        return None;
                    }
                    source.taken(hash.size);
                }
            }
        }
    }

    /// Brings one replica the bytes of `chunks`, then the admission; reports how it went.
    pub(crate) async fn fill(
        &self,
        replica: ReplicaId,
        item: Item,
        mut chunks: mpsc::Receiver<Bytes>,
        sealed: watch::Receiver<Option<Arc<str>>>,
    ) {
        let route = Route::default();
        let filled = self.carry(&replica, &item, &mut chunks, sealed, route);
        match filled.await {
            Ok(None) => {}
            Ok(Some(Carried { copy, read_back })) if let Some(root) = copy.root => {
                let event = Event::Completed {
                    replica,
                    node: copy.node,
                    volume: copy.volume,
                    root,
                    at: copy.stored,
                    read_back,
                };
                self.mail.happened(item.name, event).await;
            }
            Ok(Some(_)) => {
                let why = "a node stored a file without a root".to_owned();
                let reason = StoreFailure::Unreachable(why);
                self.mail
                    .happened(item.name, Event::Failed { replica, reason })
                    .await;
            }
            Err(status) => {
                let reason = failure(&status, "storing the file");
                tracing::warn!(file = %item.name, %replica, %reason, "a replica did not take a file");
                self.mail
                    .happened(item.name, Event::Failed { replica, reason })
                    .await;
            }
        }
    }

    /// The same; how it went is the result. None: the admission never came.
    pub(crate) async fn carry(
        &self,
        replica: &ReplicaId,
        item: &Item,
        chunks: &mut mpsc::Receiver<Bytes>,
        mut sealed: watch::Receiver<Option<Arc<str>>>,
        route: Route,
    ) -> Result<Option<Carried>, Status> {
        let tell = async |event| {
            if !route.is_quiet {
                self.mail.happened(item.name.clone(), event).await;
            }
        };
        let (node, opened) = self.open(replica, item, route.avoid).await?;
        let placed = Event::Placed {
            replica: replica.clone(),
            node,
        };
        tell(placed).await;
        let mut upload = match opened {
            Opened::Stored(copy) => {
                return Ok(Some(Carried {
                    copy,
                    read_back: false,
                }));
            }
            Opened::Ready(upload) => upload,
        };
        let mut told = self.clock.instant();
        while let Some(bytes) = chunks.recv().await {
            let sent = self.clock.timeout(self.stall, upload.data(bytes)).await;
            sent.map_err(|late| {
                Kind::TimedOut.status(format!("the node takes no bytes: {late}"))
            })??;
            if self.clock.instant().saturating_duration_since(told) >= PROGRESS {
                told = self.clock.instant();
                let replica = replica.clone();
                tell(Event::Progress { replica }).await;
            }
        }
        // The stream ended or broke off: only the admission tells.
        let admission = match sealed.wait_for(Option::is_some).await {
            Ok(admission) => admission.clone(),
            Err(_given_up) => None,
        };
        let Some(admission) = admission else {
            return Ok(None);
        };
        let uploaded = Event::DataUploaded {
            replica: replica.clone(),
        };
        tell(uploaded).await;
        self.commit(upload, &admission, item.size).await.map(Some)
    }

    async fn commit(&self, upload: Upload, admission: &str, size: u64) -> Result<Carried, Status> {
        let (least, rate) = VERIFY;
        let limit = least.saturating_add(Duration::from_secs(size / rate));
        match self.clock.timeout(limit, upload.close(admission)).await {
            Ok(copy) => Ok(Carried {
                copy: copy?,
                read_back: true,
            }),
            Err(_late) => Err(Kind::TimedOut.status("the node did not answer after the last byte")),
        }
    }

    /// Opens an upload on a node of the replica; on another one where the first cannot.
    async fn open(
        &self,
        replica: &ReplicaId,
        item: &Item,
        mut avoid: Vec<NodeId>,
    ) -> Result<(NodeId, Opened), Status> {
        let until = self.clock.instant() + self.stall;
        let avoided = avoid
            .iter()
            .map(|node| format!("; node {node} is to be avoided"));
        let mut refusals: String = avoided.collect();
        loop {
            let placed = self
                .replicas
                .place(replica, &item.name, &item.upload, item.size, &avoid)
                .await;
            let place = placed.map_err(|status| {
                let said = format!("{}{refusals}", status.message());
                Kind::of(&status).status(said)
            })?;
            let opening = place.open(&item.upload, &item.name, item.size);
            let opened = self.clock.timeout(self.stall, opening).await;
            let status = match opened {
                Ok(Ok(opened)) => return Ok((place.node, opened)),
                Ok(Err(status)) => status,
                Err(late) => Kind::TimedOut.status(late.to_string()),
            };
            if Kind::of(&status) == Kind::Busy && self.clock.instant() < until {
                // The node has not yet seen the end of the stream before this one.
                self.clock.sleep(BUSY).await;
                continue;
            }
            let another_might = matches!(
                Kind::of(&status),
                Kind::NoSpace | Kind::Unavailable | Kind::Storage | Kind::TimedOut
            );
            if !another_might || avoid.contains(&place.node) {
                return Err(status);
            }
            tracing::info!(file = %item.name, node = %place.node, %status, "another node is tried");
            refusals = format!("{refusals}; node {}: {}", place.node, status.message());
            avoid.push(place.node);
        }
    }
}

/// A copy that a replica has now.
pub(crate) struct Carried {
    pub(crate) copy: Copy,
    /// Whether it was brought now and read back; it was there before otherwise, and nobody looked.
    read_back: bool,
}

/// All that is computed while the bytes pass.
struct Hash {
    tree: TreeBuilder<std::io::Sink>,
    sha256: Sha256,
    md5: Option<Md5>,
    size: u64,
}

impl Hash {
    fn new(md5: bool) -> Self {
        let tree = TreeBuilder::new(std::io::sink());
        Self {
            tree,
            sha256: Sha256::new(),
            md5: md5.then(Md5::new),
            size: 0,
        }
    }

    /// `None` never comes: a sink takes everything.
    fn update(&mut self, bytes: &[u8]) -> Option<()> {
        self.sha256.update(bytes);
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        self.size += bytes.len() as u64;
        self.tree.update(bytes).ok()
    }

    fn finish(self) -> Option<Content> {
        let root: Root = self.tree.finish().ok()?.root;
        let digests = Digests {
            sha256: Some(self.sha256.finalize().into()),
            md5: self.md5.map(|md5| md5.finalize().into()),
        };
        Some(Content {
            root,
            size: self.size,
            digests,
        })
    }
}
