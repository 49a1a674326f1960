//! One stream in, one out per replica. A replica that stalls is dropped, not waited for.
//!
//! Every event is reported; what it means is for the store core to decide. The bytes are hashed once, here,
//! while they pass.
//!
//! A stream that broke off is resumed if the same content is announced by a strong digest: at the last point that
//! the hashing has kept and every node has. What arrives is compared with all that was announced for it.

mod hash;
mod item;
mod offset_agreement;
mod pace;
mod resume_points;
mod route;
mod upload;
mod verdict;

use std::pin::pin;
use std::time::Duration;

use archive_daemon::Tasks;
use archive_decisions::store::{Content, Requester, StoringEvent};
use archive_model::{FileName, ReplicaId, StoreFailure, UploadId};
use archive_replicas::store_failure;
use archive_rpc::CallError;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use hash::Hash;
pub use item::{DepositArrival, StoringFile};
use offset_agreement::OffsetAgreement;
pub use pace::Pace;
pub use resume_points::ResumePoints;
use route::is_given_up;
pub use route::{Route, UploadedCopy};
pub(crate) use upload::UploadStart;
pub(crate) use verdict::UploadFeed;
pub use verdict::{Seal, UploadVerdict, VerdictReceiver};

use crate::calls::ReplicaCalls;
use crate::depositor::{Chunk, DepositStream};
use crate::limits;
use crate::mail::Mail;
use crate::metrics::Stores;

/// The most chunks that are on their way to one replica.
const WINDOW: usize = 8;

/// The time between two signs of life of a replica that takes bytes.
const PROGRESS: Duration = Duration::from_secs(10);

/// The channel of the upload into one replica.
type UploadChannel = (ReplicaId, mpsc::Sender<Bytes>);

/// The means of every transfer.
#[derive(Clone, Debug)]
pub struct Transfers {
    /// The calls to the replicas where bytes go. A replica may take no byte for as long as a part may be silent.
    pub calls: ReplicaCalls,
    /// The sender of messages to the coordinator.
    pub mail: Mail,
    /// The tasks that run the transfers.
    pub tasks: Tasks,
    /// Whether MD5 is computed for every file.
    pub md5: bool,
    /// The points at which streams broke off.
    pub resume_points: ResumePoints,
    /// The metrics of stores.
    pub stores: Stores,
}

impl Transfers {
    /// Tees the depositor's stream into `targets`. The caller gives the admission through the returned seal.
    pub fn start_transfer(&self, arrival: DepositArrival, targets: Vec<ReplicaId>) -> Seal {
        let (seal, sealed) = watch::channel(None);
        let with_md5 = self.md5 || arrival.claim.digests.md5.is_some();
        let before =
            self.resume_points
                .take_points(&arrival.item.upload, &arrival.source, with_md5);
        let mut agreement = OffsetAgreement::new(before);
        let mut channels = Vec::new();
        for replica in targets {
            let (sender, chunks) = mpsc::channel(WINDOW);
            channels.push((replica.clone(), sender));
            let transfers = self.clone();
            let item = arrival.item.clone();
            let feed = UploadFeed {
                chunks,
                sealed: sealed.clone(),
            };
            let route = Route {
                offset_bid: agreement.add_bid(),
                ..Route::default()
            };
            self.tasks.spawn_once("upload", async move {
                transfers
                    .upload_and_report(replica, item, feed, route)
                    .await;
            });
        }
        let transfers = self.clone();
        self.tasks.spawn_once("transfer", async move {
            transfers
                .receive(arrival, channels, agreement, with_md5)
                .await;
        });
        seal
    }

    /// Agrees with the replicas where to begin, reads the depositor's stream, and reports how it ended.
    async fn receive(
        &self,
        arrival: DepositArrival,
        channels: Vec<UploadChannel>,
        agreement: OffsetAgreement,
        with_md5: bool,
    ) {
        let DepositArrival {
            item,
            claim,
            requester,
            mut source,
        } = arrival;
        let limit = limits::resume_limit(self.calls.stall, agreement.furthest_offset());
        let mut agreeing = pin!(agreement.agree_start(&self.calls.clock, limit));
        let begin = loop {
            tokio::select! {
                begin = &mut agreeing => break begin,
                // The depositor hears that it is not forgotten.
                () = self.calls.clock.sleep(PROGRESS) => source.wait_until_ready(),
            }
        };
        let from = begin.offset;
        let points = begin.points;
        if from > 0 {
            tracing::info!(file = %item.name, from, "a store is resumed");
            self.stores.resumed.inc_by(from);
        }
        source.begin_reading(item.upload.clone(), from);
        let mut hash = Hash::after_offset(from, points, with_md5);
        let answers = source.answer_sender();
        let content = tokio::select! {
            biased;
            content = self.tee(&item.name, &mut source, channels, &mut hash) => content,
            // The depositor has gone away: the next stream need not wait for this one's slowest replica.
            () = answers.closed() => None,
        };
        // Until a replica has committed, a stream may have to be sent again even though all its bytes are here.
        self.resume_points.put_points(&item.upload, &source, hash);
        let Some(content) = content else {
            return self
                .mail
                .send_event(item.name, StoringEvent::SourceGone { requester })
                .await;
        };
        let mut event = StoringEvent::Received {
            requester,
            content: content.clone(),
        };
        if let Err(error) = claim.verify_content(&item.name, &content) {
            self.resume_points.forget_points(&item.upload);
            if from > 0 {
                // Which stream is to blame is unknown: the bytes before `from` may be another's. The file is sent
                // again, whole.
                tracing::warn!(file = %item.name, from, %error, "the content of a resumed store is not what was announced");
                event = StoringEvent::SourceGone { requester };
            }
        }
        self.mail.send_event(item.name, event).await;
    }

    /// Reads and hashes the depositor's stream without storing it, and reports its content.
    pub fn compare_content(
        &self,
        name: FileName,
        upload: UploadId,
        requester: Requester,
        mut source: DepositStream,
    ) {
        let transfers = self.clone();
        self.tasks.spawn_once("compare", async move {
            source.begin_reading(upload, 0);
            let mut hash = Hash::new(transfers.md5 || source.claim.digests.md5.is_some());
            let content = transfers
                .tee(&name, &mut source, Vec::new(), &mut hash)
                .await;
            let event = match content {
                Some(content) => StoringEvent::Received { requester, content },
                None => StoringEvent::SourceGone { requester },
            };
            transfers.mail.send_event(name, event).await;
        });
    }

    /// Reads the source to its end, hashes its bytes, and hands them on. Returns `None` if the source broke off, or if
    /// no replica takes its bytes any more.
    async fn tee(
        &self,
        name: &FileName,
        source: &mut DepositStream,
        mut channels: Vec<UploadChannel>,
        hash: &mut Hash,
    ) -> Option<Content> {
        let is_teeing = !channels.is_empty();
        loop {
            match source.next().await {
                Err(why) => {
                    tracing::info!(file = %name, %why, "a depositor's stream broke off");
                    return None;
                }
                Ok(Chunk::End) => return Some(hash.content()),
                Ok(Chunk::Data(bytes)) => {
                    hash.update(&bytes)?;
                    self.stores.bytes.inc_by(bytes.len() as u64);
                    if hash.size() > source.claim.size {
                        // Longer than announced: whatever follows, it will be refused.
                        return Some(hash.content());
                    }
                    let mut open = Vec::with_capacity(channels.len());
                    for (replica, sender) in channels {
                        match self
                            .calls
                            .clock
                            .run_with_timeout(self.calls.stall, sender.send(bytes.clone()))
                            .await
                        {
                            Ok(Ok(())) => open.push((replica, sender)),
                            // The upload has ended and said why.
                            Ok(Err(_closed)) => {}
                            Err(_late) => {
                                let reason = StoreFailure::Stalled(self.calls.stall.as_secs());
                                self.mail
                                    .send_event(
                                        name.clone(),
                                        StoringEvent::Failed { replica, reason },
                                    )
                                    .await;
                            }
                        }
                    }
                    channels = open;
                    if is_teeing && channels.is_empty() {
                        tracing::warn!(file = %name, "no replica takes the file any more");
                        return None;
                    }
                    source.note_taken(hash.size());
                }
            }
        }
    }

    /// Uploads the bytes of `feed` into one replica by `route`, then the admission, and reports the outcome to the
    /// coordinator.
    async fn upload_and_report(
        &self,
        replica: ReplicaId,
        item: StoringFile,
        mut feed: UploadFeed,
        route: Route,
    ) {
        let given_up = feed.sealed.clone();
        let uploaded = match self.upload_file(&replica, &item, &mut feed, route).await {
            Ok(None) => return,
            // Nobody waits for this upload any more, and a depositor that stores the file now must not take its failure
            // for their own.
            Err(error) if is_given_up(&given_up) => {
                tracing::debug!(file = %item.name, %replica, %error, "an upload that was given up");
                return;
            }
            Ok(Some(copy)) => Ok(copy),
            Err(error) => Err(error),
        };
        self.report_progress(replica, item.name, uploaded).await;
    }

    /// Reports the outcome of an upload into a replica to the coordinator.
    pub async fn report_progress(
        &self,
        replica: ReplicaId,
        name: FileName,
        uploaded: Result<UploadedCopy, CallError>,
    ) {
        let event = match uploaded {
            Ok(UploadedCopy { copy, read_back }) if let Some(root) = copy.root => {
                StoringEvent::Completed {
                    replica,
                    node: copy.place.node,
                    volume: copy.place.volume,
                    root,
                    at: copy.stored,
                    read_back,
                }
            }
            Ok(_) => {
                let why = "a node stored a file without a root".to_owned();
                let reason = StoreFailure::Unreachable(why);
                StoringEvent::Failed { replica, reason }
            }
            Err(error) => {
                let reason = store_failure(&error, "storing the file");
                tracing::warn!(file = %name, %replica, %reason, "a replica did not take a file");
                StoringEvent::Failed { replica, reason }
            }
        };
        self.mail.send_event(name, event).await;
    }
}
