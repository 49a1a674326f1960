//! Copies that the archive makes by itself until a file is in every replica: ask a replica whether it has the file, and
//! copy it from a replica that has it. Bytes are verified while they pass.
//!
//! The number of probes and of copies at once is bounded for each replica. A file that waits to be copied reports
//! progress now and then, so that it does not count as stalled.

mod slots;

use std::sync::Arc;
use std::time::Duration;

use archive_decisions::store::StoringEvent;
use archive_model::{FileName, ReplicaId, Root, StoreFailure};
use archive_replicas::store_failure;
use jiff::SignedDuration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::assemble::{Assembler, Donor, WantedFile};
use crate::delivery::ReplicaDelivery;
use crate::transfer::{Route, StoringFile, Transfers};

use slots::Slots;

/// The number of files of a replica that are asked for at once.
const PROBES: usize = 32;

/// The number of files that are copied into a replica at once.
const COPIES: usize = 16;

/// The time between two signs of life of a file that waits for its turn.
const PROGRESS: Duration = Duration::from_mins(1);

/// An order to copy a file into a replica that lacks it.
#[derive(Debug)]
pub struct CopyOrder {
    /// The upload into the replica.
    pub item: StoringFile,
    /// The root of the file.
    pub root: Root,
    /// The replica that lacks it.
    pub replica: ReplicaId,
    /// The replicas that have it, the preferred one first.
    pub donors: Vec<Donor>,
    /// The signed admission, which follows the bytes.
    pub admission: Arc<str>,
}

/// Probes replicas for files, and copies files into them.
#[derive(Clone, Debug)]
pub struct Copier {
    transfers: Transfers,
    assembler: Assembler,
    probes: Slots,
    copies: Slots,
}

impl Copier {
    /// Creates a copier with nothing to do.
    pub fn new(transfers: Transfers, assembler: Assembler) -> Self {
        Self {
            transfers,
            assembler,
            probes: Slots::new(PROBES),
            copies: Slots::new(COPIES),
        }
    }

    /// Asks a replica whether it has the file.
    pub fn probe_replica(&self, name: FileName, replica: ReplicaId, limit: SignedDuration) {
        let transfers = self.transfers.clone();
        let limit = Duration::try_from(limit).unwrap_or_default();
        let turns = self.probes.for_replica(&replica);
        let stop = self.transfers.tasks.stop_token();
        self.transfers.tasks.spawn_once("probe", async move {
            // The limit covers the wait for a turn as well: an answer that comes later is not waited for.
            let asking = async {
                let _turn = turns.acquire().await;
                transfers
                    .calls
                    .replicas
                    .locate_copies(&replica, &name)
                    .await
            };
            let located = tokio::select! {
                () = stop.cancelled() => return,
                located = transfers.calls.clock.run_with_timeout(limit, asking) => located,
            };
            let event = match located {
                Err(_late) => StoringEvent::Failed {
                    replica,
                    reason: StoreFailure::TimedOut("asking for the file".to_owned()),
                },
                Ok(Err(error)) => StoringEvent::Failed {
                    replica,
                    reason: store_failure(&error, "asking for the file"),
                },
                Ok(Ok(located)) => {
                    let copy = located.copies.into_iter().find_map(|copy| {
                        let root = copy.root.filter(|_| copy.is_present())?;
                        Some((copy, root))
                    });
                    match (copy, located.silent) {
                        (Some((copy, root)), _) => StoringEvent::Completed {
                            replica,
                            node: copy.place.node,
                            volume: copy.place.volume,
                            root,
                            at: copy.stored,
                            read_back: false,
                        },
                        (None, Some(reason)) => StoringEvent::Silent { replica, reason },
                        (None, None) => StoringEvent::Absent { replica },
                    }
                }
            };
            transfers.mail.send_event(name, event).await;
        });
    }

    /// Copies a file into a replica from the replicas that have it. Each part comes from a donor that has it intact.
    pub fn copy_file(&self, order: CopyOrder) {
        let CopyOrder {
            item,
            root,
            replica,
            donors,
            admission,
        } = order;
        let transfers = self.transfers.clone();
        let wanted = WantedFile {
            name: item.name.clone(),
            root,
            size: item.size,
        };
        let mut reading = self
            .assembler
            .read_range(wanted, donors, std::iter::once(0..item.size))
            .with_bytes();
        let turns = self.copies.for_replica(&replica);
        let stop = self.transfers.tasks.stop_token();
        self.transfers.tasks.spawn_once("copy", async move {
            let waiting = turn(&transfers, turns, &item.name, &replica);
            let _turn = tokio::select! {
                () = stop.cancelled() => return,
                turn = waiting => turn,
            };
            let delivery = ReplicaDelivery {
                transfers: &transfers,
                replica: &replica,
                item: &item,
                route: Route::default(),
                admission,
            };
            match delivery.send_assembly(&mut reading, None).await {
                Ok(uploaded) => {
                    transfers
                        .report_progress(replica, item.name, uploaded)
                        .await;
                }
                Err(reason) => {
                    let file = &item.name;
                    tracing::warn!(%file, %replica, %reason, "no replica can give a file");
                    let event = StoringEvent::Failed { replica, reason };
                    transfers.mail.send_event(item.name, event).await;
                }
            }
        });
    }
}

/// Waits for a turn, and reports progress meanwhile, so that the file does not pass for stuck.
async fn turn(
    transfers: &Transfers,
    turns: Arc<Semaphore>,
    name: &FileName,
    replica: &ReplicaId,
) -> Option<OwnedSemaphorePermit> {
    let mut waiting = Box::pin(turns.acquire_owned());
    loop {
        match transfers
            .calls
            .clock
            .run_with_timeout(PROGRESS, &mut waiting)
            .await
        {
            Ok(turn) => return turn.ok(),
            Err(_not_yet) => {
                let replica = replica.clone();
                let lives = StoringEvent::Progress { replica };
                transfers.mail.send_event(name.clone(), lives).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
