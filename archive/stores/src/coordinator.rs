//! The owner of every file that is on its way: it takes what happened, decides, remembers once, then acts.
//!
//! One task. It takes what happened, lets the store core decide, writes all decisions of a round in one synced batch,
//! and only then starts what was decided. Decisions that start nothing and that nobody waits for, such as that one of three
//! replicas has the bytes, are written with those of the next rounds: a sync is what a round costs. Nothing here waits for
//! a replica or a depositor.

mod act;
mod admit;
mod doubt;
mod followers;
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
    Claim, Effect, Event, FileRecord, FileState, Limits, ReplicaSpec, Requester,
};
use archive_ledger::admin::{Admin, AdminError, AdminRow};
use archive_ledger::anomalies::Anomalies;
use archive_ledger::standing::Standing;
use archive_model::{FileName, InvalidId, UploadId};
use archive_proof::SigningKey;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::depositor::Depositor;
use crate::heal::Healer;
use crate::mail::CoordinatorMessage;
use crate::transfer::{Seal, Transfers, UploadVerdict};

use act::Decided;
use followers::Followers;
use paging::Paging;
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
    pub limits: Limits,
    /// The admin data.
    pub admin: Admin,
    /// The anomalies that are filed of copies.
    pub anomalies: Arc<Anomalies>,
    /// Bytes from depositors.
    pub transfers: Transfers,
    /// Bytes from other replicas.
    pub healer: Healer,
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
    depositors: HashMap<Requester, Depositor>,
    last_requester: u64,
    /// The callers that wait until all that was decided before is remembered.
    waiting: Vec<oneshot::Sender<()>>,
    /// The callers that are told what is remembered of a file.
    followers: Followers,
    /// Copies that count from this round on.
    back: Vec<doubt::Back>,
    /// The walk that brings files on their way into memory.
    paging: Paging,
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
        "cannot begin an upload of {0}: {1}; this is a bug: report it, and start the repository again, which goes on \
         with all that was decided"
    )]
    Upload(FileName, InvalidId),
    /// A decision about a file outlived the file's entry in memory: a bug, and what was decided is not remembered.
    #[error(
        "a decision about {0} cannot be remembered: the file is not in memory; this is a bug: report it, and start the \
         repository again, which asks the replicas how the file stands"
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
            paging: Paging::default(),
        }
    }

    fn decide(&mut self, wake: Wake, all: &mut Vec<Decided>) -> Step<()> {
        let now = self.parts.clock.now();
        let (name, mut event, by) = match wake {
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
            Wake::Message(CoordinatorMessage::Admit(file)) => return self.admit(file, now, all),
            Wake::Message(CoordinatorMessage::Follow { name, records }) => {
                self.followers.add(name, records);
                return Ok(());
            }
            Wake::Message(CoordinatorMessage::Settle(settle)) => {
                self.waiting.push(settle);
                return Ok(());
            }
            Wake::Timer(name) => (name, Event::Tick, None),
            // Every round looks whether the walk over the admin data goes on.
            Wake::Page => return Ok(()),
        };
        if let Event::Received { requester, content } = &event
            && let Some(depositor) = self.depositors.get_mut(requester)
        {
            depositor.received = Some(content.root);
        }
        if !self.files.contains_key(&name) {
            match self.load(&name, &event, now)? {
                Some((active, first)) => {
                    all.push(Decided::by_itself(name.clone(), first));
                    self.files.insert(name.clone(), active);
                }
                None => return Ok(()),
            }
        }
        if matches!(event, Event::Asked { .. }) {
            self.reopen(&name, now, all)?;
        }
        let Some(active) = self.files.get_mut(&name) else {
            return Ok(());
        };
        if event == Event::Tick && active.timer.is_none_or(|at| at > now) {
            // The timer rang already in this round, or too early because the clock was set back: it rings again.
            return Ok(());
        }
        if event == Event::Tick
            && let Some(at) = active.timer.take()
        {
            self.timers.remove(&(at, name.clone()));
        }
        if let Event::Asked {
            upload,
            requester,
            resumes,
            ..
        } = &mut event
            && let Some(who) = self
                .depositors
                .get(requester)
                .map(|depositor| depositor.who.clone())
        {
            let before = active
                .state
                .record()
                .upload
                .as_ref()
                .map(|upload| upload.id.clone());
            let asked = upload.clone();
            *resumes = active.depositor == who;
            let effects = active.state.apply(event, now, &self.parts.limits);
            let after = active
                .state
                .record()
                .upload
                .as_ref()
                .map(|upload| &upload.id);
            if after == Some(&asked) && before.as_ref() != after {
                active.depositor = who;
                active.admission = None;
                if let Some(abandoned) = before {
                    self.parts.transfers.resume_points.forget(&abandoned);
                }
            }
            all.push(Decided { name, by, effects });
            return Ok(());
        }
        let ended = event.ended_stream();
        let is_source_end = ended.is_some() && active.source == ended;
        let is_readmission = matches!(event, Event::Readmitted { .. });
        let back = doubt::Back::of(active.state.record(), &event);
        let was_fixed = active.state.record().content.is_some();
        let effects = active.state.apply(event, now, &self.parts.limits);
        if !was_fixed
            && active.state.record().content.is_some()
            && let Some(who) = &by
        {
            // The depositor is the one whose bytes are admitted, not the one that announced them first.
            active.depositor.clone_from(who);
        }
        self.back
            .extend(back.filter(|back| back.is_so(active.state.record())));
        let is_persisted = effects.first() == Some(&Effect::Persist);
        if let (true, Some(who)) = (is_readmission && is_persisted, &by) {
            // The admission is signed anew, in the name of the people who decided.
            active.depositor.clone_from(who);
            active.admission = None;
        }
        if is_source_end && !effects.contains(&Effect::Seal) {
            // No admission will come for this stream: its uploads give up, and the nodes their claims.
            let is_forgotten = |effect: &Effect| matches!(effect, Effect::Expire { .. });
            if let Some(seal) = active.seal.take_if(|_| effects.iter().any(is_forgotten)) {
                // The stream will not be sent again either: the nodes need not keep what they have of it.
                seal.send_replace(Some(UploadVerdict::Forgotten));
            }
            active.seal = None;
            active.source = None;
        }
        all.push(Decided { name, by, effects });
        Ok(())
    }

    /// Returns the sender of the bytes that an event tells of; `None` if it tells of no depositor.
    fn sender(&self, event: &Event) -> Option<String> {
        let Event::Received { requester, .. } = event else {
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
        event: &Event,
        now: Timestamp,
    ) -> Step<Option<(Active, Vec<Effect>)>> {
        let is_asked = matches!(event, Event::Asked { .. });
        match self.parts.admin.file(name).map_err(AdminError::from)? {
            Some(row) => Ok(Some(Active::restore(row, now, &self.parts.limits))),
            None if is_asked => {
                let specs = self.parts.standing.in_service(&self.parts.specs);
                let record = FileRecord::free(name.clone(), &specs)?;
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
        depositor: Depositor,
    ) -> Step<(FileName, Event)> {
        self.parts.transfers.stores.begun.inc();
        self.last_requester += 1;
        let requester = Requester(self.last_requester);
        let upload = upload_id(&name, &hex::encode(self.parts.chance.bytes::<16>()?))?;
        let (mail, gone, watched) = (
            self.parts.transfers.mail.clone(),
            depositor.replies.clone(),
            name.clone(),
        );
        let answered = depositor.answered.child_token();
        self.parts.transfers.tasks.spawn_once("depositor", async move {
            tokio::select! {
                () = answered.cancelled() => {}
                () = gone.closed() => mail.happened(watched, Event::SourceGone { requester }).await,
            }
        });
        self.depositors.insert(requester, depositor);
        Ok((
            name,
            Event::Asked {
                requester,
                upload,
                claim,
                // Set by `decide`, once the file is loaded.
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
    fn restore(row: AdminRow, now: Timestamp, limits: &Limits) -> (Self, Vec<Effect>) {
        let (state, effects) = FileState::restore(row.record, now, limits);
        let active = Self {
            state,
            depositor: row.depositor,
            admission: row.admission.map(Into::into),
            seal: None,
            source: None,
            timer: None,
        };
        (active, effects)
    }
}
