//! The messages to the coordinator.
//!
//! Owns the messages to it, and the wait of their senders. Everybody may send; only the coordinator receives, and
//! decides.

use archive_decisions::store::{Claim, FileRecord, StoringEvent};
use archive_ledger::admin::AdminRow;
use archive_model::FileName;
use tokio::sync::{mpsc, oneshot, watch};

use crate::depositor::DepositRequest;

/// The sender of messages to the coordinator; cheap to clone.
#[derive(Clone, Debug)]
pub struct Mail(mpsc::Sender<CoordinatorMessage>);

/// A message to the coordinator.
#[derive(Debug)]
pub enum CoordinatorMessage {
    /// A depositor asks to store a file.
    Ask {
        /// The name of the file.
        name: FileName,
        /// The claim about its bytes.
        claim: Claim,
        /// The depositor who asks.
        depositor: Box<DepositRequest>,
    },
    /// Something happened to a file.
    Happened {
        /// The name of the file that the event is about.
        name: FileName,
        /// The event.
        event: StoringEvent,
    },
    /// People have decided something about a file.
    Ordered {
        /// The name of the file that was decided about.
        name: FileName,
        /// The event.
        event: StoringEvent,
        /// The person or part that decided, as `role/name`.
        who: String,
        /// The caller, who is told once the decision is remembered.
        done: oneshot::Sender<()>,
    },
    /// People record a file that replicas have with a signed admission, and that the admin data do not know.
    Admit(Admittance),
    /// A caller follows a file: it receives the record of the file each time that a decision about it was remembered.
    Follow {
        /// The name of the file.
        name: FileName,
        /// The channel that receives the record of the file.
        records: watch::Sender<Option<FileRecord>>,
    },
    /// A caller waits until all that was reported before is remembered.
    Settle(oneshot::Sender<()>),
}

/// The record of a file, each time that a decision about the file was remembered. A name that was given up is reported
/// as free.
#[derive(Debug)]
pub struct RecordChanges(watch::Receiver<Option<FileRecord>>);

/// A file that replicas have, and that is to be recorded.
#[derive(Debug)]
pub struct Admittance {
    /// The row of the file in the admin data.
    pub row: Box<AdminRow>,
    /// The person who takes the file in, as `role/name`.
    pub who: String,
    /// The caller, who is told once the file is remembered; `false` if another file has that name.
    pub done: oneshot::Sender<bool>,
}

impl Mail {
    /// Creates the sender and the receiver of messages to the coordinator.
    pub fn new() -> (Self, mpsc::Receiver<CoordinatorMessage>) {
        let (sender, receiver) = mpsc::channel(1024);
        (Self(sender), receiver)
    }

    /// Reports an event. A coordinator that has stopped needs no reports.
    pub async fn send_event(&self, name: FileName, event: StoringEvent) {
        _ = self
            .0
            .send(CoordinatorMessage::Happened { name, event })
            .await;
    }

    /// Reports what people have decided about a file, and waits until it is remembered; `false`: the repository stops.
    pub async fn send_order(&self, name: FileName, event: StoringEvent, who: String) -> bool {
        let (done, is_done) = oneshot::channel();
        let message = CoordinatorMessage::Ordered {
            name,
            event,
            who,
            done,
        };
        self.0.send(message).await.is_ok() && is_done.await.is_ok()
    }

    /// Takes a file in, and waits until that is remembered. Returns `false` if another file has that name by now, and
    /// `None` if the repository is stopping.
    pub async fn admit_row(&self, row: AdminRow, who: String) -> Option<bool> {
        let (done, is_done) = oneshot::channel();
        let row = Box::new(row);
        let message = CoordinatorMessage::Admit(Admittance { row, who, done });
        self.0.send(message).await.ok()?;
        is_done.await.ok()
    }

    /// Follows a file: events that are reported after this reach the follower once they are remembered. Returns `None`
    /// if the repository is stopping.
    pub async fn follow_file(&self, name: FileName) -> Option<RecordChanges> {
        let (records, changes) = watch::channel(None);
        let message = CoordinatorMessage::Follow { name, records };
        self.0.send(message).await.ok()?;
        Some(RecordChanges(changes))
    }

    /// Waits until what was reported before is remembered; `false`: the repository is stopping.
    pub async fn wait_settled(&self) -> bool {
        let (settle, settled) = oneshot::channel();
        self.0
            .send(CoordinatorMessage::Settle(settle))
            .await
            .is_ok()
            && settled.await.is_ok()
    }

    /// Asks for a file to be stored; `false`: the repository is stopping.
    pub async fn ask_store(&self, name: FileName, claim: Claim, depositor: DepositRequest) -> bool {
        self.0
            .send(CoordinatorMessage::Ask {
                name,
                claim,
                depositor: Box::new(depositor),
            })
            .await
            .is_ok()
    }
}

impl RecordChanges {
    /// Waits for the next decision about the file, and returns the record as it is then. Decisions that were remembered
    /// meanwhile are not told one by one. Returns `None` if the repository is stopping.
    pub async fn next(&mut self) -> Option<FileRecord> {
        self.0.changed().await.ok()?;
        self.0.borrow_and_update().clone()
    }

    /// Returns the record as it is now, without waiting. Returns `None` if no decision was remembered since the last
    /// one that was told.
    pub fn latest_record(&mut self) -> Option<FileRecord> {
        let is_new = self.0.has_changed().unwrap_or(false);
        is_new.then(|| self.0.borrow_and_update().clone())?
    }
}
