//! The owner of every file that is on its way: it takes what happened, decides, remembers once, then acts.
//!
//! One task. It takes what happened, lets the store core decide, writes all decisions of a round in one synced batch,
//! and only then starts what was decided. Decisions that start nothing and that nobody waits for, such as that one of
//! three replicas has the bytes, are written with those of the next rounds: a sync is what a round costs. Nothing here
//! waits for a replica or a depositor.

mod act;
mod admit;
mod apply;
mod doubt;
mod followers;
mod full;
mod paging;
mod refusal;
mod retries;
mod rounds;
#[cfg(any(test, feature = "testing"))]
mod undriven;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use archive_daemon::{Chance, Clock};
use archive_decisions::store::{
    Claim, Effect, FileRecord, FileState, NamePhase, ReplicaSpec, Requester, StoreLimits,
    StoringEvent,
};
use archive_ledger::admin::{Admin, AdminError, AdminRow};
use archive_ledger::anomalies::Anomalies;
use archive_ledger::standing::Standing;
use archive_model::{FileName, InvalidId, UploadId};
use archive_proof::SigningKey;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::copier::Copier;
use crate::depositor::DepositRequest;
use crate::mail::CoordinatorMessage;
use crate::transfer::{Seal, Transfers};

use act::FileDecision;
use apply::FileEvent;
use followers::Followers;
use paging::FilePager;
pub use retries::{Retries, Times};
#[cfg(any(test, feature = "testing"))]
pub use undriven::parts as undriven;

/// The things that a coordinator works with.
#[derive(Debug)]
pub struct Parts {
    /// The name of the archive.
    pub archive: String,
    /// The key that signs admissions and receipts.
    pub key: SigningKey,
    /// The replicas of the settings.
    pub specs: Vec<ReplicaSpec>,
    /// The list of what is out of service.
    pub standing: Arc<Standing>,
    /// The limits of waiting.
    pub limits: StoreLimits,
    /// The admin data.
    pub admin: Admin,
    /// The anomalies that are filed of copies.
    pub anomalies: Arc<Anomalies>,
    /// Bytes from depositors.
    pub transfers: Transfers,
    /// Bytes from other replicas.
    pub copier: Copier,
    /// The clock.
    pub clock: Clock,
    /// Randomness for the ids of uploads.
    pub chance: Chance,
    /// The messages to the coordinator.
    pub messages: mpsc::Receiver<CoordinatorMessage>,
    /// The times at which failed copies are tried again, for callers who ask.
    pub retries: Retries,
}

/// The coordinator.
#[derive(Debug)]
pub struct Coordinator {
    parts: Parts,
    files: HashMap<FileName, Active>,
    timers: BTreeSet<(Timestamp, FileName)>,
    depositors: HashMap<Requester, DepositRequest>,
    last_requester: u64,
    /// The callers that wait until all that was decided before is remembered.
    waiting: Vec<oneshot::Sender<()>>,
    /// The callers that follow what is remembered of a file.
    followers: Followers,
    /// Copies that count from this round on.
    back: Vec<doubt::ReturnedCopy>,
    /// The walk that loads files on their way into memory.
    paging: FilePager,
}

/// A file that is on its way.
#[derive(Debug)]
struct Active {
    state: FileState,
    depositor: String,
    admission: Option<Arc<str>>,
    seal: Option<Seal>,
    source: Option<Requester>,
    timer: Option<Timestamp>,
    /// The states in the replicas that the audit trail has; `None` if it has no line of the file.
    told: Option<String>,
}

/// The reason why the coordinator ends.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// The admin data cannot be read or written: nothing may be decided any more.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The settings make no archive.
    #[error(transparent)]
    Replicas(#[from] archive_decisions::store::UnusableReplicas),
    /// An admission or receipt cannot be written.
    #[error("signing for {0}: {1}")]
    Sign(FileName, String),
    /// An id that was made for an upload cannot be used: a bug.
    #[error(
        "cannot begin an upload of {0}: {1}; this is a bug: report it, and start the repository again, which resumes \
         all that was decided"
    )]
    Upload(FileName, InvalidId),
    /// A decision about a file outlived the file's entry in memory, or its upload: a bug.
    #[error(
        "a decision about {0} cannot be carried out: the file is not in memory, or not its upload; this is a bug: \
         report it, and start the repository again, which asks the replicas how the file stands"
    )]
    Absent(FileName),
    /// The system gives no randomness for an upload's id.
    #[error(transparent)]
    Chance(#[from] archive_daemon::clock::NoChance),
}

type Step<T> = Result<T, CoordinatorError>;

impl Coordinator {
    /// Creates a coordinator that knows of no file yet.
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            files: HashMap::new(),
            timers: BTreeSet::new(),
            depositors: HashMap::new(),
            last_requester: 0,
            waiting: Vec::new(),
            followers: Followers::default(),
            back: Vec::new(),
            paging: FilePager::default(),
        }
    }

    /// Decides what follows from one event, and adds each decision to `all`.
    fn decide(&mut self, wake: Wake, all: &mut Vec<FileDecision>) -> Step<()> {
        let now = self.parts.clock.now();
        let Some(file_event) = self.take(wake, now, all)? else {
            return Ok(());
        };
        let FileEvent { name, event, .. } = &file_event;
        self.note_received(event);
        self.bring_in(name, event, now, all)?;
        if matches!(event, StoringEvent::Asked { .. }) {
            self.reopen_file(name, now, all)?;
        }
        if *event == StoringEvent::Tick && !self.take_timer(name, now) {
            return Ok(());
        }
        all.extend(self.apply_event(file_event, now));
        Ok(())
    }

    /// Takes what woke the coordinator. Returns the event of a file that is to be decided about, if there is one.
    fn take(
        &mut self,
        wake: Wake,
        now: Timestamp,
        all: &mut Vec<FileDecision>,
    ) -> Step<Option<FileEvent>> {
        let (name, event, by) = match wake {
            Wake::Message(CoordinatorMessage::Ask {
                name,
                claim,
                depositor,
            }) => {
                let by = depositor.who.clone();
                let (name, event) = self.welcome(name, claim, *depositor)?;
                (name, event, Some(by))
            }
            Wake::Message(CoordinatorMessage::Happened { name, event }) => {
                let by = self.sender(&event);
                (name, event, by)
            }
            Wake::Message(CoordinatorMessage::Ordered {
                name,
                event,
                who,
                done,
            }) => {
                self.waiting.push(done);
                (name, event, Some(who))
            }
            Wake::Message(CoordinatorMessage::Admit(file)) => {
                self.admit_file(file, now, all)?;
                return Ok(None);
            }
            Wake::Message(CoordinatorMessage::Follow { name, records }) => {
                self.followers.add_follower(name, records);
                return Ok(None);
            }
            Wake::Message(CoordinatorMessage::Settle(settle)) => {
                self.waiting.push(settle);
                return Ok(None);
            }
            Wake::Timer(name) => (name, StoringEvent::Tick, None),
            // Every round looks whether the walk over the admin data goes on.
            Wake::Page => return Ok(None),
        };
        Ok(Some(FileEvent { name, event, by }))
    }

    /// Notes at the depositor which bytes came from it.
    fn note_received(&mut self, event: &StoringEvent) {
        if let StoringEvent::Received { requester, content } = event
            && let Some(depositor) = self.depositors.get_mut(requester)
        {
            depositor.received = Some(content.root);
        }
    }

    /// Loads a file into memory, if it is not there and can be loaded.
    fn bring_in(
        &mut self,
        name: &FileName,
        event: &StoringEvent,
        now: Timestamp,
        all: &mut Vec<FileDecision>,
    ) -> Step<()> {
        if self.files.contains_key(name) {
            return Ok(());
        }
        if let Some((active, first)) = self.load(name, event, now)? {
            all.push(FileDecision::by_itself(name.clone(), first));
            self.files.insert(name.clone(), active);
        }
        Ok(())
    }

    /// Takes the timer of a file that is due. Returns whether there is one: a timer that rang already in this round is
    /// gone, and one that rang too early, because the clock was set back, rings again.
    fn take_timer(&mut self, name: &FileName, now: Timestamp) -> bool {
        let active = self.files.get_mut(name);
        let due = active.and_then(|active| active.timer.take_if(|at| *at <= now));
        let Some(at) = due else {
            return false;
        };
        self.timers.remove(&(at, name.clone()));
        true
    }

    /// Returns the sender of the bytes that an event tells of; `None` if it tells of no depositor.
    fn sender(&self, event: &StoringEvent) -> Option<String> {
        let StoringEvent::Received { requester, .. } = event else {
            return None;
        };
        let depositor = self.depositors.get(requester)?;
        Some(depositor.who.clone())
    }

    /// Loads a file that is not in memory: from the admin data, or as a new one if `event` asks to store it. Returns
    /// `None` for any other event of an unknown file.
    fn load(
        &self,
        name: &FileName,
        event: &StoringEvent,
        now: Timestamp,
    ) -> Step<Option<(Active, Vec<Effect>)>> {
        let is_asked = matches!(event, StoringEvent::Asked { .. });
        match self.parts.admin.file(name).map_err(AdminError::from)? {
            Some(row) => Ok(Some(Active::restore(row, now, &self.parts.limits))),
            None if is_asked => {
                let specs = self.parts.standing.in_service(&self.parts.specs);
                let record = FileRecord::free_name(name.clone(), &specs)?;
                let row = AdminRow {
                    record,
                    depositor: String::new(),
                    admission: None,
                };
                Ok(Some(Active::restore(row, now, &self.parts.limits)))
            }
            None => Ok(None),
        }
    }

    fn welcome(
        &mut self,
        name: FileName,
        claim: Claim,
        depositor: DepositRequest,
    ) -> Step<(FileName, StoringEvent)> {
        self.parts.transfers.stores.begun.inc();
        self.last_requester += 1;
        let requester = Requester(self.last_requester);
        let upload = upload_id(&name, &hex::encode(self.parts.chance.random_bytes::<16>()?))?;
        let mail = self.parts.transfers.mail.clone();
        let gone = depositor.replies.clone();
        let watched = name.clone();
        let answered = depositor.answered.child_token();
        self.parts.transfers.tasks.spawn_once("depositor", async move {
            tokio::select! {
                () = answered.cancelled() => {}
                () = gone.closed() => mail.send_event(watched, StoringEvent::SourceGone { requester }).await,
            }
        });
        self.depositors.insert(requester, depositor);
        Ok((
            name,
            StoringEvent::Asked {
                requester,
                upload,
                claim,
                // Set by `apply`, once the file is loaded.
                resumes: false,
            },
        ))
    }
}

fn upload_id(name: &FileName, id: &str) -> Step<UploadId> {
    UploadId::new(id).map_err(|error| CoordinatorError::Upload(name.clone(), error))
}

#[cfg(test)]
mod tests;

/// The event that woke the coordinator.
enum Wake {
    Message(CoordinatorMessage),
    Timer(FileName),
    Page,
}

impl Active {
    fn restore(row: AdminRow, now: Timestamp, limits: &StoreLimits) -> (Self, Vec<Effect>) {
        let is_new = row.record.phase == NamePhase::Free;
        let told = (!is_new).then(|| act::told_states(&row.record));
        let (state, effects) = FileState::restore_state(row.record, now, limits);
        let active = Self {
            state,
            depositor: row.depositor,
            admission: row.admission.map(Into::into),
            seal: None,
            source: None,
            timer: None,
            told,
        };
        (active, effects)
    }
}
