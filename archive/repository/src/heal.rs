//! What the archive does by itself to bring a file into every replica: ask whether it is there, and bring it from a
//! replica that has it. Bytes are verified while they pass.

use std::sync::Arc;
use std::time::Duration;

use archive_model::{FileName, ReplicaId, Root, StoreFailure};
use bytes::Bytes;
use jiff::SignedDuration;
use tokio::sync::{mpsc, watch};

use crate::assemble::{Assembler, Assembly, Donor, Part, Wanted};
use crate::drain::Pace;
use crate::replicas::failure;
use crate::store::Event;
use crate::transfer::{Item, Transfers};

/// Probes and heals.
#[derive(Clone, Debug)]
pub(crate) struct Healer {
    pub(crate) transfers: Transfers,
    pub(crate) assembler: Assembler,
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
                        .find(|copy| copy.is_present() && copy.root.is_some());
                    match (copy, located.silent) {
                        (Some(copy), _) => Event::Completed {
                            replica,
                            node: copy.node,
                            volume: copy.volume,
                            root: copy.root.unwrap_or(Root::from_bytes([0; 32])),
                            at: copy.stored,
                            read_back: false,
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

    /// Brings a file from the replicas that have it, the first of `donors` preferred; each part from one that has it
    /// intact.
    pub(crate) fn heal(
        &self,
        item: Item,
        root: Root,
        replica: ReplicaId,
        donors: Vec<Donor>,
        admission: Arc<str>,
    ) {
        let transfers = self.transfers.clone();
        let (lane, chunks) = mpsc::channel(4);
        let (seal, sealed) = watch::channel(None);
        let wanted = Wanted {
            name: item.name.clone(),
            root,
            size: item.size,
        };
        let reading = self
            .assembler
            .read(wanted, donors, std::iter::once(0..item.size))
            .with_bytes();
        let (mail, name, patient) = (transfers.mail.clone(), item.name.clone(), replica.clone());
        self.transfers.tasks.spawn_once("heal", async move {
            transfers.fill(replica, item, chunks, sealed).await;
            Ok::<(), std::convert::Infallible>(())
        });
        self.transfers.tasks.spawn_once("donor", async move {
            let mut reading = reading;
            match pour(&mut reading, &lane, None).await {
                Ok(()) => {
                    drop(lane);
                    seal.send_replace(Some(admission));
                    // Held until the target is done with it.
                    seal.closed().await;
                }
                Err(reason) => {
                    tracing::warn!(file = %name, replica = %patient, %reason, "no replica can give a file");
                    mail.happened(name, Event::Failed { replica: patient, reason }).await;
                }
            }
            Ok::<(), std::convert::Infallible>(())
        });
    }
}

/// Hands on every byte, or says why not; no faster than the pace, if there is one.
pub(crate) async fn pour(
    reading: &mut Assembly,
    lane: &mpsc::Sender<Bytes>,
    pace: Option<&Pace>,
) -> Result<(), StoreFailure> {
    while let Some(part) = reading.next().await {
        match part {
            Part::Proven(proven) => {
                if let Some(pace) = pace {
                    pace.take(proven.length).await;
                }
                if lane.send(proven.bytes).await.is_err() {
                    // The target has ended and said why.
                    return Ok(());
                }
            }
            Part::Hole(hole) => {
                let (start, end) = (hole.range.start, hole.range.end.saturating_sub(1));
                let reason = format!("no replica gives bytes {start}-{end}: {}", hole.said);
                return Err(StoreFailure::Unreachable(reason));
            }
        }
    }
    Ok(())
}
