//! The owner of every file that is on its way: drain, decide, remember once, then act.
//!
//! One task. It takes what happened, lets the store core decide, writes all decisions of a round in one synced batch,
//! and only then starts what was decided. Nothing here waits for a replica or a depositor.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Chance, Clock};
use archive_model::{ArchiveError, FileName, ReplicaId, UploadId};
use archive_proof::receipt::Custody as ReplicaCustody;
use archive_proof::{Admission, Envelope, Receipt, SigningKey};
use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::admin::{Admin, AdminError, AdminRow, AuditLine};
use crate::depositor::{Custody, Depositor, Reply};
use crate::heal::Healer;
use crate::store::{Claim, Effect, Event, FileRecord, FileState, Limits, ReplicaSpec, Requester};
use crate::transfer::{Item, Seal, Transfers};

/// The most that is decided in one round.
const ROUND: usize = 256;

/// How often the stamp beside the admin data is renewed while there is work.
const STAMP: Duration = Duration::from_secs(1);

/// Where the coordinator is told what happened.
#[derive(Clone, Debug)]
pub(crate) struct Mail(mpsc::Sender<Letter>);

/// What the coordinator is told.
pub(crate) enum Letter {
    /// A depositor wants to store a file.
    Ask {
        name: FileName,
        claim: Claim,
        depositor: Depositor,
    },
    /// Something happened to a file.
    Happened { name: FileName, event: Event },
}

impl Mail {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Letter>) {
        let (sender, receiver) = mpsc::channel(1024);
        (Self(sender), receiver)
    }

    /// Reports an event. A coordinator that has stopped needs no reports.
    pub(crate) async fn happened(&self, name: FileName, event: Event) {
        drop(self.0.send(Letter::Happened { name, event }).await);
    }

    /// Asks for a file to be stored; `false`: the repository is stopping.
    pub(crate) async fn ask(&self, name: FileName, claim: Claim, depositor: Depositor) -> bool {
        self.0
            .send(Letter::Ask {
                name,
                claim,
                depositor,
            })
            .await
            .is_ok()
    }
}

/// The coordinator.
pub(crate) struct Coordinator {
    pub(crate) archive: String,
    pub(crate) key: SigningKey,
    pub(crate) specs: Vec<ReplicaSpec>,
    pub(crate) limits: Limits,
    pub(crate) admin: Admin,
    pub(crate) transfers: Transfers,
    pub(crate) healer: Healer,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) letters: mpsc::Receiver<Letter>,
    pub(crate) files: HashMap<FileName, Active>,
    pub(crate) timers: BTreeSet<(Timestamp, FileName)>,
    pub(crate) depositors: HashMap<Requester, Depositor>,
    pub(crate) last_requester: u64,
}

/// A file that is on its way.
pub(crate) struct Active {
    state: FileState,
    depositor: String,
    admission: Option<Arc<str>>,
    seal: Option<Seal>,
    timer: Option<Timestamp>,
}

/// Why the coordinator ends.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// The admin data cannot be read or written: nothing may be decided any more.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The settings make no archive.
    #[error(transparent)]
    Replicas(#[from] crate::store::UnusableReplicas),
    /// An admission or receipt cannot be written.
    #[error("signing for {0}: {1}")]
    Sign(FileName, String),
    /// There is no randomness for an upload's id.
    #[error(transparent)]
    Chance(#[from] archive_daemon::clock::NoChance),
}

type Step<T> = Result<T, CoordinatorError>;

impl Coordinator {
    /// Runs until every sender of letters is gone or `stopped` says so. Blocks: for a thread of its own.
    pub(crate) fn run(
        mut self,
        runtime: &Handle,
        stop: &tokio_util::sync::CancellationToken,
    ) -> Step<()> {
        self.resume()?;
        let mut stamped = self.clock.instant();
        while let Some(first) = runtime.block_on(self.wait(stop)) {
            let mut round = vec![first];
            while round.len() < ROUND
                && let Ok(letter) = self.letters.try_recv()
            {
                round.push(Wake::Letter(letter));
            }
            let mut effects = Vec::new();
            for wake in round {
                self.decide(wake, &mut effects)?;
            }
            self.act(effects)?;
            if self.clock.instant().saturating_duration_since(stamped) >= STAMP {
                self.admin.stamp().map_err(AdminError::from)?;
                stamped = self.clock.instant();
            }
        }
        Ok(self.admin.stamp().map_err(AdminError::from)?)
    }

    /// After a start: every file that was on its way goes on.
    fn resume(&mut self) -> Step<()> {
        let now = self.clock.now();
        let admin = self.admin.clone();
        let mut effects = Vec::new();
        for row in admin.files(None).map_err(AdminError::from)? {
            let row = row.map_err(AdminError::from)?;
            if !row.record.is_final() {
                let name = row.record.name.clone();
                let (active, first) = Active::restore(row, now, &self.limits);
                self.files.insert(name.clone(), active);
                effects.push((name, first));
            }
        }
        tracing::info!(files = effects.len(), "files that were on their way go on");
        self.act(effects)
    }

    async fn wait(&mut self, stop: &tokio_util::sync::CancellationToken) -> Option<Wake> {
        let timer = self.timers.first().cloned();
        let due = async {
            match timer {
                None => std::future::pending().await,
                Some((at, name)) => {
                    let pause = at.duration_since(self.clock.now());
                    self.clock
                        .sleep(Duration::try_from(pause).unwrap_or_default())
                        .await;
                    name
                }
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            letter = self.letters.recv() => letter.map(Wake::Letter),
            name = due => Some(Wake::Timer(name)),
        }
    }

    fn decide(&mut self, wake: Wake, effects: &mut Vec<(FileName, Vec<Effect>)>) -> Step<()> {
        let now = self.clock.now();
        let (name, event) = match wake {
            Wake::Letter(Letter::Ask {
                name,
                claim,
                depositor,
            }) => self.welcome(name, claim, depositor)?,
            Wake::Letter(Letter::Happened { name, event }) => (name, event),
            Wake::Timer(name) => (name, Event::Tick),
        };
        if !self.files.contains_key(&name) {
            match self.load(&name, &event, now)? {
                Some((active, first)) => {
                    effects.push((name.clone(), first));
                    self.files.insert(name.clone(), active);
                }
                None => return Ok(()),
            }
        }
        let Some(active) = self.files.get_mut(&name) else {
            return Ok(());
        };
        if event == Event::Tick
            && let Some(at) = active.timer.take()
        {
            self.timers.remove(&(at, name.clone()));
        }
        if let Event::Asked {
            upload, requester, ..
        } = &event
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
            let decided = active.state.apply(event, now, &self.limits);
            let after = active
                .state
                .record()
                .upload
                .as_ref()
                .map(|upload| &upload.id);
            if after == Some(&asked) && before.as_ref() != after {
                active.depositor = who;
                active.admission = None;
            }
            effects.push((name, decided));
            return Ok(());
        }
        let decided = active.state.apply(event, now, &self.limits);
        effects.push((name, decided));
        Ok(())
    }

    /// A file that is not on its way: from the admin data, or new where somebody asks to store it.
    fn load(
        &self,
        name: &FileName,
        event: &Event,
        now: Timestamp,
    ) -> Step<Option<(Active, Vec<Effect>)>> {
        let is_asked = matches!(event, Event::Asked { .. });
        match self.admin.file(name).map_err(AdminError::from)? {
            Some(row) => Ok(Some(Active::restore(row, now, &self.limits))),
            None if is_asked => {
                let record = FileRecord::free(name.clone(), &self.specs)?;
                let row = AdminRow {
                    record,
                    depositor: String::new(),
                    admission: None,
                };
                Ok(Some(Active::restore(row, now, &self.limits)))
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
        self.last_requester += 1;
        let requester = Requester(self.last_requester);
        let upload = hex::encode(self.chance.bytes::<16>()?);
        let upload = UploadId::new(&upload)
            .map_err(|error| CoordinatorError::Sign(name.clone(), error.to_string()))?;
        let (mail, gone, watched) = (
            self.transfers.mail.clone(),
            depositor.replies.clone(),
            name.clone(),
        );
        self.transfers.tasks.spawn_once("depositor", async move {
            gone.closed().await;
            mail.happened(watched, Event::SourceGone { requester })
                .await;
            Ok::<(), std::convert::Infallible>(())
        });
        self.depositors.insert(requester, depositor);
        Ok((
            name,
            Event::Asked {
                requester,
                upload,
                claim,
            },
        ))
    }

    /// Remembers every decision of the round, in one synced batch; then does what was decided.
    fn act(&mut self, effects: Vec<(FileName, Vec<Effect>)>) -> Step<()> {
        let now = self.clock.now();
        let mut changes = self.admin.change().map_err(AdminError::from)?;
        let mut is_changed = false;
        for (name, decided) in &effects {
            for effect in decided {
                match effect {
                    Effect::Persist => {
                        if let Some((row, line)) = self.row(name, now)? {
                            self.admin
                                .put(&mut changes, &row)
                                .map_err(AdminError::from)?;
                            self.admin
                                .note(&mut changes, &line)
                                .map_err(AdminError::from)?;
                            is_changed = true;
                        }
                    }
                    Effect::Expire { .. } => {
                        self.admin
                            .forget(&mut changes, name)
                            .map_err(AdminError::from)?;
                        is_changed = true;
                    }
                    Effect::Source { .. }
                    | Effect::Compare { .. }
                    | Effect::BeginUpload { .. }
                    | Effect::Seal
                    | Effect::Probe { .. }
                    | Effect::HealFrom { .. }
                    | Effect::Answer { .. }
                    | Effect::SetTimer(_) => {}
                }
            }
        }
        if is_changed {
            self.admin.commit(changes).map_err(AdminError::from)?;
        }
        for (name, decided) in effects {
            self.perform(&name, decided, now)?;
            if self
                .files
                .get(&name)
                .is_some_and(|active| active.state.is_idle())
                && let Some(active) = self.files.remove(&name)
                && let Some(at) = active.timer
            {
                self.timers.remove(&(at, name));
            }
        }
        Ok(())
    }

    /// The row as it is now, with the admission signed as soon as the content is known.
    fn row(&mut self, name: &FileName, now: Timestamp) -> Step<Option<(AdminRow, AuditLine)>> {
        let Some(active) = self.files.get_mut(name) else {
            return Ok(None);
        };
        let record = active.state.record().clone();
        if active.admission.is_none()
            && let (Some(content), Some(upload)) = (&record.content, &record.upload)
        {
            let admission = Admission {
                archive: self.archive.clone(),
                name: name.clone(),
                size: content.size,
                root: content.root,
                digests: content.digests.clone(),
                depositor: active.depositor.clone(),
                admitted: now,
                upload: upload.id.clone(),
            };
            let envelope = admission
                .sign(&self.key)
                .map_err(|error| sign_error(name, &error))?;
            active.admission = Some(envelope.as_str().into());
        }
        let what = record
            .replicas
            .iter()
            .map(|(id, replica)| format!("{id}: {}", replica.state));
        let what = what.collect::<Vec<_>>().join("; ");
        let line = AuditLine {
            at: now,
            who: active.depositor.clone(),
            file: name.clone(),
            what,
        };
        let admission = active.admission.as_deref().map(str::to_owned);
        Ok(Some((
            AdminRow {
                record,
                depositor: active.depositor.clone(),
                admission,
            },
            line,
        )))
    }

    fn perform(&mut self, name: &FileName, effects: Vec<Effect>, now: Timestamp) -> Step<()> {
        let mut source: Option<(Requester, Vec<ReplicaId>)> = None;
        for effect in effects {
            match effect {
                Effect::Persist | Effect::Expire { .. } => {}
                Effect::Source { requester } => source = Some((requester, Vec::new())),
                Effect::BeginUpload { replica, .. } => {
                    if let Some((_, targets)) = &mut source {
                        targets.push(replica);
                    }
                }
                Effect::Compare { requester } => {
                    if let Some(source) = self.tell_ready(name, requester) {
                        self.transfers.compare(name.clone(), requester, source);
                    }
                }
                Effect::Seal => {
                    if let Some(active) = self.files.get(name)
                        && let Some(seal) = &active.seal
                    {
                        seal.send_replace(active.admission.clone());
                    }
                }
                Effect::Probe { replica } => {
                    self.healer.probe(name.clone(), replica, self.limits.probe);
                }
                Effect::HealFrom { replica, donor } => self.heal(name, replica, &donor),
                Effect::Answer { requester, result } => {
                    self.answer(name, requester, result, now)?;
                }
                Effect::SetTimer(at) => {
                    if let Some(active) = self.files.get_mut(name) {
                        if let Some(old) = active.timer.replace(at) {
                            self.timers.remove(&(old, name.clone()));
                        }
                        self.timers.insert((at, name.clone()));
                    }
                }
            }
        }
        let Some((requester, targets)) = source else {
            return Ok(());
        };
        let Some(source) = self.tell_ready(name, requester) else {
            return Ok(());
        };
        let Some(active) = self.files.get_mut(name) else {
            return Ok(());
        };
        let Some(upload) = active.state.record().upload.clone() else {
            return Ok(());
        };
        let item = Item {
            name: name.clone(),
            upload: upload.id,
            size: upload.claim.size,
        };
        active.seal = Some(self.transfers.start(item, requester, source, targets));
        Ok(())
    }

    /// Tells a depositor to send and takes its stream.
    fn tell_ready(
        &mut self,
        name: &FileName,
        requester: Requester,
    ) -> Option<crate::depositor::Source> {
        let depositor = self.depositors.get_mut(&requester)?;
        let upload = self
            .files
            .get(name)?
            .state
            .record()
            .upload
            .as_ref()?
            .id
            .clone();
        depositor.sent = true;
        // One that is gone says so through its stream.
        drop(
            depositor
                .replies
                .try_send(Reply::Ready { upload, offset: 0 }),
        );
        depositor.source.take()
    }

    fn heal(&self, name: &FileName, replica: ReplicaId, donor: &ReplicaId) {
        let Some(active) = self.files.get(name) else {
            return;
        };
        let record = active.state.record();
        let node = record
            .replicas
            .get(donor)
            .and_then(|copy| copy.node.clone());
        if let (Some(content), Some(upload), Some(node), Some(admission)) =
            (&record.content, &record.upload, node, &active.admission)
        {
            let item = Item {
                name: name.clone(),
                upload: upload.id.clone(),
                size: content.size,
            };
            let donor = (donor.clone(), node);
            self.healer
                .heal(item, content.root, replica, donor, Arc::clone(admission));
        }
    }

    fn answer(
        &mut self,
        name: &FileName,
        requester: Requester,
        result: Result<(), ArchiveError>,
        now: Timestamp,
    ) -> Step<()> {
        let Some(depositor) = self.depositors.remove(&requester) else {
            return Ok(());
        };
        let reply = if let Err(error) = result {
            Reply::Failed(error)
        } else {
            let Some(active) = self.files.get(name) else {
                return Ok(());
            };
            let record = active.state.record().clone();
            let admission = active.admission.as_deref().unwrap_or_default();
            let receipt = receipt(&record, admission, now, &self.key)
                .map_err(|why| CoordinatorError::Sign(name.clone(), why))?;
            let already = !depositor.sent;
            Reply::Stored(Box::new(Custody {
                receipt,
                already,
                record,
            }))
        };
        // A depositor that does not read is waited for there, not here.
        self.transfers.tasks.spawn_once("answer", async move {
            drop(depositor.replies.send(reply).await);
            Ok::<(), std::convert::Infallible>(())
        });
        Ok(())
    }
}

/// What woke the coordinator.
enum Wake {
    Letter(Letter),
    Timer(FileName),
}

impl Active {
    fn restore(row: AdminRow, now: Timestamp, limits: &Limits) -> (Self, Vec<Effect>) {
        let (state, effects) = FileState::restore(row.record, now, limits);
        let active = Self {
            state,
            depositor: row.depositor,
            admission: row.admission.map(Into::into),
            seal: None,
            timer: None,
        };
        (active, effects)
    }
}

/// The custody receipt of a file: its admission and every replica that has it.
pub(crate) fn receipt(
    record: &FileRecord,
    admission: &str,
    now: Timestamp,
    key: &SigningKey,
) -> Result<String, String> {
    let admission = Envelope::parse(admission.as_bytes()).map_err(|error| error.to_string())?;
    let completed = record
        .replicas
        .iter()
        .filter(|(_, copy)| copy.state.is_completed());
    let replicas = completed
        .filter_map(|(id, copy)| {
            Some(ReplicaCustody {
                replica: id.clone(),
                kind: copy.kind,
                completed: copy.since,
                node: copy.node.clone()?,
                volume: copy.volume.clone(),
            })
        })
        .collect();
    let receipt = Receipt {
        admission,
        replicas,
        issued: now,
    };
    receipt
        .sign(key)
        .map(|envelope| envelope.as_str().to_owned())
        .map_err(|error| error.to_string())
}

fn sign_error(name: &FileName, error: &dyn std::error::Error) -> CoordinatorError {
    CoordinatorError::Sign(name.clone(), error.to_string())
}
