//! What the archive does by itself to bring a file into every replica: ask whether it is there, and bring it from a
//! replica that has it. Bytes are verified while they pass.

use std::sync::Arc;
use std::time::Duration;

use archive_model::{FileName, NodeId, ReplicaId, Root, StoreFailure};
use archive_proof::decode;
use archive_rpc::Kind;
use bytes::Bytes;
use jiff::SignedDuration;
use tokio::sync::{mpsc, watch};
use tonic::Status;

use crate::replicas::failure;
use crate::store::Event;
use crate::transfer::{Item, Transfers};

/// The longest segment that is believed, in bytes.
const LONGEST_SEGMENT: u64 = 16 << 20;

/// Probes and heals.
#[derive(Clone, Debug)]
pub(crate) struct Healer {
    pub(crate) transfers: Transfers,
}

impl Healer {
    /// Asks a replica whether it has the file.
    pub(crate) fn probe(&self, name: FileName, replica: ReplicaId, limit: SignedDuration) {
        let transfers = self.transfers.clone();
        let limit = Duration::try_from(limit).unwrap_or_default();
        self.transfers.tasks.spawn_once("probe", async move {
            let located = transfers
                .clock
                .timeout(limit, transfers.replicas.locate(&replica, &name))
                .await;
            let event = match located {
                Err(_late) => Event::Failed {
                    replica,
                    reason: StoreFailure::TimedOut("asking for the file".to_owned()),
                },
                Ok(Err(status)) => Event::Failed {
                    replica,
                    reason: failure(&status, "asking for the file"),
                },
                Ok(Ok(located)) => {
                    let copy = located
                        .copies
                        .into_iter()
                        .find(|copy| copy.is_present && copy.root.is_some());
                    match (copy, located.silent) {
                        (Some(copy), _) => Event::Completed {
                            replica,
                            node: copy.node,
                            volume: copy.volume,
                            root: copy.root.unwrap_or(Root::from_bytes([0; 32])),
                            at: copy.stored,
                        },
                        (None, Some(silent)) => Event::Failed {
                            replica,
                            reason: StoreFailure::Unreachable(silent),
                        },
                        (None, None) => Event::Absent { replica },
                    }
                }
            };
            transfers.mail.happened(name, event).await;
            Ok::<(), std::convert::Infallible>(())
        });
    }

    /// Brings a file from a replica that has it.
    pub(crate) fn heal(
        &self,
        item: Item,
        root: Root,
        replica: ReplicaId,
        donor: (ReplicaId, NodeId),
        admission: Arc<str>,
    ) {
        let transfers = self.transfers.clone();
        let (lane, chunks) = mpsc::channel(4);
        let (seal, sealed) = watch::channel(None);
        let reader = (transfers.clone(), item.clone(), replica.clone());
        self.transfers.tasks.spawn_once("heal", async move {
            transfers.fill(replica, item, chunks, sealed).await;
            Ok::<(), std::convert::Infallible>(())
        });
        self.transfers.tasks.spawn_once("donor", async move {
            let (transfers, item, replica) = reader;
            match read(&transfers, &item, &root, &donor, &lane).await {
                Ok(()) => {
                    drop(lane);
                    seal.send_replace(Some(admission));
                    // Held until the target is done with it.
                    seal.closed().await;
                }
                Err(status) => {
                    let (donor, node) = donor;
                    tracing::warn!(file = %item.name, %donor, %node, %status, "a donor cannot give a file");
                    let reason = failure(&status, "reading from a donor");
                    transfers.mail.happened(item.name, Event::Failed { replica, reason }).await;
                }
            }
            Ok::<(), std::convert::Infallible>(())
        });
    }
}

async fn read(
    transfers: &Transfers,
    item: &Item,
    root: &Root,
    (donor, node): &(ReplicaId, NodeId),
    lane: &mpsc::Sender<Bytes>,
) -> Result<(), Status> {
    let mut segments = transfers
        .replicas
        .read(donor, node, &item.name, root, (0, 0))
        .await?;
    let mut offset = 0;
    while offset < item.size || (item.size == 0 && offset == 0) {
        let message = transfers
            .clock
            .timeout(transfers.stall, segments.message())
            .await;
        let message = message.map_err(|late| Kind::TimedOut.status(late.to_string()))??;
        let segment = message
            .ok_or_else(|| Kind::Unavailable.status("the donor ended before the file did"))?;
        let is_asked_for = segment.offset == offset
            && segment.length <= item.size.saturating_sub(offset).min(LONGEST_SEGMENT)
            && (segment.length > 0 || item.size == 0);
        if !is_asked_for {
            return Err(Kind::Damaged.status("the donor sent another range than asked for"));
        }
        let range = offset..offset + segment.length;
        let mut bytes = Vec::with_capacity(usize::try_from(segment.length).unwrap_or_default());
        let taken = decode(
            &segment.encoded[..],
            *root,
            item.size,
            std::slice::from_ref(&range),
            |_, part| {
                bytes.extend_from_slice(part);
                Ok(())
            },
        );
        taken.map_err(|error| Kind::Damaged.status(format!("what the donor sent: {error}")))?;
        if lane.send(bytes.into()).await.is_err() {
            // The target has ended and said why.
            return Ok(());
        }
        offset = range.end;
        if item.size == 0 {
            break;
        }
    }
    Ok(())
}
