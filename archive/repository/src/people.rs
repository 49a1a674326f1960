//! What people have the archive do: requests are remembered, approved acts are done, and what came of them is told.
//!
//! Owns the order of things. An act is done once it is approved and remembered; acts are done one after another, so that
//! two of them cannot each believe that the other leaves a copy. What a restart interrupts goes on.
//!
//! Not promised: that an act succeeds. What has changed since it was asked for makes it fail, and it says why.

mod accept;
mod acts;
mod copies;
mod last;
mod named;
mod purge;
mod refusal;
mod reinstate;
pub(crate) mod replace;
mod retire;
mod stranger;
mod wrong;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Chance, Step, Worker, WorkerError};
use archive_decisions::store::{Event, ReplicaSpec};
use archive_durable::{DiskError, directory};
use archive_model::{Act, FileName, NodeId, ReplicaId};
use archive_rpc::{CallError, Kind};
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::tables::{admin_failed, blocking, file_row, note, with_tables};
use archive_ledger::admin::{Admin, AdminRow, AuditLine};
use archive_ledger::anomalies::Anomalies;
use archive_ledger::requests::table::{RequestError, Requests};
use archive_ledger::requests::{Person, Request};
use archive_ledger::standing::Standing;
use archive_stores::transfer::Transfers;

/// How long an act that was just approved is tried again after a part did not answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The same after a start, when the other parts may be starting too.
const PATIENCE_AT_START: Duration = Duration::from_mins(10);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// How often requests that nobody approved are looked for.
const LOOK: Duration = Duration::from_mins(1);

/// What people need of the repository.
#[derive(Debug)]
pub(crate) struct People {
    pub(crate) requests: Requests,
    pub(crate) admin: Admin,
    pub(crate) standing: Arc<Standing>,
    /// Replicas, mail, tasks and the clock are those of the transfers.
    pub(crate) transfers: Transfers,
    pub(crate) chance: Chance,
    pub(crate) specs: Vec<ReplicaSpec>,
    /// Where bytes lie that people bring, until they are proven.
    pub(crate) spool: PathBuf,
    pub(crate) anomalies: Arc<Anomalies>,
    /// Held while an act is done.
    pub(crate) acting: tokio::sync::Mutex<()>,
}

impl People {
    /// After a start: what was approved is done, and what was brought and not proven is forgotten.
    pub(crate) async fn begin(self: &Arc<Self>) -> Result<(), DiskError> {
        let spool = self.spool.clone();
        let emptied = spawn_blocking(move || {
            directory::make(&spool)?;
            for entry in directory::list(&spool)? {
                directory::remove_name(&spool.join(&entry.name))?;
            }
            Ok(())
        });
        if let Ok(emptied) = emptied.await {
            emptied?;
        }
        let people = Arc::clone(self);
        self.spawn("acts", async move {
            let requests = people.requests.clone();
            let due = with_tables(move || requests.due()).await?;
            for request in due {
                tracing::info!(request = request.id(), act = %request.act, "an approved act goes on");
                people.finish(request, PATIENCE_AT_START).await?;
            }
            Ok(())
        });
        Ok(())
    }

    /// Somebody asks for an act.
    pub(crate) async fn ask(
        &self,
        act: Act,
        reason: String,
        person: Person,
    ) -> Result<Request, CallError> {
        // Who may not ask is not told what there is.
        let now = self.now();
        Request::ask(0, act.clone().into(), &reason, &person, now).map_err(not_allowed)?;
        let act = self.bound(act).await?;
        if let Err(error) = self.possible(&act).await {
            if error.kind == Kind::Mismatch {
                tracing::warn!(%act, %error, "an act was refused");
                let who = person.acting(act.askers()).unwrap_or_default();
                self.note(
                    who,
                    act.file().cloned(),
                    format!("refused: {act}: {}", error.reason),
                )
                .await?;
            }
            return Err(error);
        }
        self.with_requests(move |requests| requests.ask(act, &reason, &person, now))
            .await
    }

    /// A second person approves: the act is done, also when the caller does not wait for it.
    pub(crate) async fn approve(
        self: &Arc<Self>,
        id: String,
        person: Person,
    ) -> Result<Request, CallError> {
        let now = self.now();
        let approved = self.with_requests(move |requests| requests.approve(&id, &person, now));
        let request = approved.await?;
        let (people, (tell, told)) = (Arc::clone(self), oneshot::channel());
        self.spawn("act", async move {
            let ended = people.finish(request, PATIENCE).await?;
            // A caller that is gone finds it among the requests.
            drop(tell.send(ended));
            Ok(())
        });
        told.await.map_err(|_stopped| {
            Kind::Unavailable.error("the repository is stopping; the act goes on when it starts")
        })
    }

    /// Who asked takes the request back.
    pub(crate) async fn withdraw(&self, id: String, person: Person) -> Result<Request, CallError> {
        let now = self.now();
        self.with_requests(move |requests| requests.withdraw(&id, &person, now))
            .await
    }

    /// Every request.
    pub(crate) async fn all(&self) -> Result<Vec<Request>, CallError> {
        let now = self.now();
        self.with_requests(move |requests| requests.all(now)).await
    }

    /// Does an approved act and remembers what came of it.
    async fn finish(&self, request: Request, patience: Duration) -> Result<Request, CallError> {
        let _acting = self.acting.lock().await;
        // A part that has gone silent is noticed late: its time begins then.
        let mut until = None;
        let result = loop {
            match self.perform(&request).await {
                Ok(done) => break Ok(done),
                Err(error) => {
                    let now = self.transfers.calls.clock.instant();
                    if !error.kind.is_passing() || now >= *until.get_or_insert(now + patience) {
                        tracing::warn!(request = request.id(), act = %request.act, %error, "an approved act failed");
                        break Err(error.reason);
                    }
                    self.transfers.calls.clock.sleep(PAUSE).await;
                }
            }
        };
        let now = self.now();
        self.with_requests(move |requests| requests.end(request.number, result, now))
            .await
    }

    /// Runs what reads or writes the requests on a thread that may block.
    async fn with_requests<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Requests) -> Result<T, RequestError> + Send + 'static,
    ) -> Result<T, CallError> {
        let requests = self.requests.clone();
        let done = blocking(move || work(&requests)).await?;
        done.map_err(|error| failed(&error))
    }

    /// Runs until it is done or the repository stops.
    fn spawn(
        &self,
        name: &str,
        work: impl Future<Output = Result<(), CallError>> + Send + 'static,
    ) {
        let stop = self.transfers.tasks.stop();
        self.transfers.tasks.spawn_once(name, async move {
            tokio::select! {
                () = stop.cancelled() => Ok(()),
                done = work => done,
            }
        });
    }

    /// Adds a line to the audit trail.
    pub(crate) async fn note(
        &self,
        who: String,
        file: Option<FileName>,
        what: String,
    ) -> Result<(), CallError> {
        note(&self.admin, self.line(who, file, what)).await
    }

    /// Returns a line for the audit trail, to be written together with what it tells of.
    pub(crate) fn line(&self, who: String, file: Option<FileName>, what: String) -> AuditLine {
        AuditLine {
            at: self.now(),
            who,
            file,
            what,
        }
    }

    pub(crate) async fn row(&self, name: &FileName) -> Result<Option<AdminRow>, CallError> {
        file_row(&self.admin, name).await
    }

    /// Tells the coordinator what people have decided, and waits until it is remembered.
    pub(crate) async fn order(
        &self,
        name: &FileName,
        event: Event,
        who: &str,
    ) -> Result<(), CallError> {
        let mail = &self.transfers.mail;
        if mail.order(name.clone(), event, who.to_owned()).await {
            Ok(())
        } else {
            Err(Kind::Unavailable.error("the repository is stopping"))
        }
    }

    /// The nodes of a replica: those that are remembered, and those that its monitor hears and nobody has remembered yet.
    pub(crate) async fn nodes_of(&self, replica: &ReplicaId) -> Result<Vec<NodeId>, CallError> {
        let (admin, id) = (self.admin.clone(), replica.clone());
        let mut nodes = with_tables(move || admin.nodes(&id)).await?;
        let calls = &self.transfers.calls;
        // Those of a monitor that does not answer are remembered, but for new ones.
        if let Ok(heard) = calls.answered(calls.replicas.heard(replica)).await {
            let now = self.standing.now();
            let is_new =
                |node: &NodeId| !nodes.contains(node) && !now.is_retired_node(replica, node);
            let own = calls.replicas.own_nodes(replica, &heard).into_iter();
            let new: Vec<NodeId> = own.filter(is_new).collect();
            nodes.extend(new);
        }
        Ok(nodes)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.transfers.calls.clock.now()
    }
}

/// Requests that nobody has approved in time expire, whether anybody looks or not.
pub(crate) struct Expire(pub(crate) Arc<People>);

impl Worker for Expire {
    const NAME: &'static str = "requests";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        self.0.all().await?;
        Ok(Step::Idle(LOOK))
    }
}

pub(crate) fn not_allowed(error: archive_ledger::requests::NotAllowed) -> CallError {
    failed(&RequestError::NotAllowed(error))
}

fn failed(error: &RequestError) -> CallError {
    use archive_ledger::requests::NotAllowed;
    match error {
        RequestError::NotAllowed(NotAllowed::Reason) => Kind::Invalid,
        RequestError::NotAllowed(NotAllowed::NotOpen(_)) => Kind::Mismatch,
        RequestError::NotAllowed(
            NotAllowed::Nobody
            | NotAllowed::Role { .. }
            | NotAllowed::SamePerson(_)
            | NotAllowed::NotTheirs(_),
        ) => Kind::Refused,
        RequestError::Unknown(_) => Kind::NotFound,
        RequestError::Admin(error) => return admin_failed(error),
    }
    .error(error.to_string())
}
