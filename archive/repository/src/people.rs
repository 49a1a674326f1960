//! Acts of people: requests are stored, approved acts are carried out, and their outcomes are reported.
//!
//! Owns the order: an act is carried out once its approval is stored; acts on one file are carried out one after
//! another, and those on a part of the archive alone, so that two of them cannot each rely on the copy that the other
//! takes away. A restart resumes interrupted acts.
//!
//! Not promised: that an act succeeds. A change since it was asked for makes it fail, with the reason.

mod accept;
mod acts;
mod copies;
mod last;
mod named;
mod purge;
pub(crate) mod refusal;
pub(crate) mod reinstate;
pub(crate) mod replace;
mod retire;
mod stranger;
mod wrong;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Worker, WorkerStep, WorkerStepError};
use archive_decisions::store::{ReplicaSpec, StoringEvent};
use archive_durable::{DiskError, directory};
use archive_model::{Act, FileName, NodeId, ReplicaId};
use archive_rpc::{CallError, CallErrorKind, run_blocking};
use futures_util::future::try_join_all;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::archive::Archive;
use crate::claims::NameAct;
use crate::tables::{admin_failed, with_tables};
use archive_ledger::requests::table::{PersonRequestError, Requests};
use archive_ledger::requests::{Person, PersonRequest, RequestStatus};
use archive_stores::mail::RecordChanges;
use archive_stores::transfer::Transfers;

/// The time for which a new act is tried again if a part does not answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time for which an act is tried again after a start, when the other parts may be starting too.
const PATIENCE_AT_START: Duration = Duration::from_mins(10);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest sleep until a request expires: a clock that was set forward is noticed then. A new request lives longer.
const LONGEST_SLEEP: Duration = Duration::from_hours(1);

/// The state of all acts of people.
#[derive(Debug)]
pub(crate) struct People {
    pub(crate) archive: Archive,
    pub(crate) requests: Requests,
    pub(crate) transfers: Transfers,
    pub(crate) specs: Vec<ReplicaSpec>,
    /// The directory for bytes that people send, until they are proven.
    pub(crate) spool: PathBuf,
    /// Held while an act is carried out: shared for an act on one file, which has claimed its name, and alone for one
    /// on a part of the archive.
    pub(crate) acting: tokio::sync::RwLock<()>,
}

impl People {
    /// Resumes approved acts after a start, and removes bytes that were sent and not proven.
    pub(crate) async fn begin_work(self: &Arc<Self>) -> Result<(), DiskError> {
        let spool = self.spool.clone();
        let emptied = spawn_blocking(move || {
            directory::make_directory(&spool)?;
            for entry in directory::list_directory(&spool)? {
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
            let due = with_tables(move || requests.due_requests()).await?;
            // One that waits for a silent part keeps no other one waiting.
            let finishing = due.into_iter().map(|request| {
                tracing::info!(request = request.id(), act = %request.act, "resuming an approved act");
                people.finish(request, PATIENCE_AT_START)
            });
            try_join_all(finishing).await.map(drop)
        });
        Ok(())
    }

    /// Stores the request of a person for an act.
    pub(crate) async fn ask_request(
        &self,
        act: Act,
        reason: String,
        person: Person,
    ) -> Result<PersonRequest, CallError> {
        // A person who may not ask does not learn what exists.
        let now = self.archive.now();
        PersonRequest::ask_request(0, act.clone().into(), &reason, &person, now)
            .map_err(not_allowed)?;
        let act = self.bind_act(act).await?;
        if let Err(error) = self.check_possible(&act).await {
            if error.kind == CallErrorKind::Mismatch {
                tracing::warn!(%act, %error, "an act was refused");
                let who = person.acting_name(act.askers()).unwrap_or_default();
                self.archive
                    .note_line(
                        who,
                        act.file().cloned(),
                        format!("refused: {act}: {}", error.reason),
                    )
                    .await?;
            }
            return Err(error);
        }
        self.with_requests(move |requests| requests.ask_request(act, &reason, &person, now))
            .await
    }

    /// Approves a request for a second person. The act is carried out even if the caller goes away.
    pub(crate) async fn approve_request(
        self: &Arc<Self>,
        id: String,
        person: Person,
    ) -> Result<PersonRequest, CallError> {
        let now = self.archive.now();
        let approved =
            self.with_requests(move |requests| requests.approve_request(&id, &person, now));
        let request = approved.await?;
        let (people, (tell, told)) = (Arc::clone(self), oneshot::channel());
        self.spawn("act", async move {
            let ended = people.finish(request, PATIENCE).await?;
            // A caller that has gone away finds the outcome among the requests.
            _ = tell.send(ended);
            Ok(())
        });
        told.await.map_err(|_stopped| {
            CallErrorKind::Unavailable
                .to_error("the repository is stopping; the act is resumed at its next start")
        })
    }

    /// Withdraws a request for the person who asked.
    pub(crate) async fn withdraw_request(
        &self,
        id: String,
        person: Person,
    ) -> Result<PersonRequest, CallError> {
        let now = self.archive.now();
        self.with_requests(move |requests| requests.withdraw_request(&id, &person, now))
            .await
    }

    /// Returns every request.
    pub(crate) async fn all_requests(&self) -> Result<Vec<PersonRequest>, CallError> {
        let now = self.archive.now();
        self.with_requests(move |requests| requests.all_requests(now))
            .await
    }

    /// Carries out an approved act and stores its outcome.
    async fn finish(
        &self,
        request: PersonRequest,
        patience: Duration,
    ) -> Result<PersonRequest, CallError> {
        // A silent part is noticed late: the time begins then.
        let mut until = None;
        let result = loop {
            match self.perform_in_turn(&request).await {
                Ok(done) => break Ok(done),
                Err(error) => {
                    let now = self.archive.calls.clock.instant();
                    if !error.kind.is_passing() || now >= *until.get_or_insert(now + patience) {
                        tracing::warn!(request = request.id(), act = %request.act, %error, "an approved act failed");
                        break Err(error.reason);
                    }
                    self.archive.calls.clock.sleep(PAUSE).await;
                }
            }
        };
        let now = self.archive.now();
        self.with_requests(move |requests| requests.end_request(request.number, result, now))
            .await
    }

    /// Carries out an approved act when no other one is under way that it could contradict.
    async fn perform_in_turn(&self, request: &PersonRequest) -> Result<String, CallError> {
        if let Some(name) = request.act.file() {
            let _acting = self.acting.read().await;
            let _claim = self.archive.claim_in_turn(name, NameAct::Decision).await?;
            self.perform_act(request).await
        } else {
            let _acting = self.acting.write().await;
            self.perform_act(request).await
        }
    }

    /// Runs work with the requests on a blocking thread.
    async fn with_requests<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Requests) -> Result<T, PersonRequestError> + Send + 'static,
    ) -> Result<T, CallError> {
        let requests = self.requests.clone();
        let done = run_blocking(move || work(&requests)).await?;
        done.map_err(|error| failed(&error))
    }

    /// Runs work in a task until it is finished or the repository stops.
    fn spawn(
        &self,
        name: &str,
        work: impl Future<Output = Result<(), CallError>> + Send + 'static,
    ) {
        let stop = self.archive.tasks.stop_token();
        self.archive.tasks.spawn_once(name, async move {
            tokio::select! {
                () = stop.cancelled() => Ok(()),
                done = work => done,
            }
        });
    }

    /// Follows a file: what is decided about it from then on is heard.
    pub(crate) async fn follow_record(&self, name: &FileName) -> Result<RecordChanges, CallError> {
        let changes = self.archive.mail.follow_file(name.clone()).await;
        changes.ok_or_else(stopping)
    }

    /// Waits until the coordinator has remembered all that was sent to it before.
    pub(crate) async fn wait_settled(&self) -> Result<(), CallError> {
        let is_settled = self.archive.mail.wait_settled().await;
        is_settled.then_some(()).ok_or_else(stopping)
    }

    /// Sends the coordinator a decision of people, and waits until it is stored.
    pub(crate) async fn order_event(
        &self,
        name: &FileName,
        event: StoringEvent,
        who: &str,
    ) -> Result<(), CallError> {
        let mail = &self.archive.mail;
        let is_stored = mail.send_order(name.clone(), event, who.to_owned()).await;
        is_stored.then_some(()).ok_or_else(stopping)
    }

    /// Returns the nodes of a replica: the stored ones, and those that its monitor hears and that are not stored yet.
    pub(crate) async fn nodes_of(&self, replica: &ReplicaId) -> Result<Vec<NodeId>, CallError> {
        let admin = self.archive.admin.clone();
        let id = replica.clone();
        let mut nodes = with_tables(move || admin.list_nodes(&id)).await?;
        let calls = &self.archive.calls;
        // The nodes of a monitor that does not answer are stored, except new ones.
        if let Ok(heard) = calls
            .answered_call(calls.replicas.reported_nodes(replica))
            .await
        {
            let now = self.archive.standing.current_snapshot();
            let is_new =
                |node: &NodeId| !nodes.contains(node) && !now.is_retired_node(replica, node);
            let own = calls.replicas.own_nodes(replica, &heard).into_iter();
            let new: Vec<NodeId> = own.filter(is_new).collect();
            nodes.extend(new);
        }
        Ok(nodes)
    }
}

/// The worker that expires requests which were not approved in time. It reads all requests when the
/// next one expires, and at least once in [`LONGEST_SLEEP`].
pub(crate) struct ExpiryWorker(pub(crate) Arc<People>);

impl Worker for ExpiryWorker {
    const NAME: &'static str = "requests";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let now = self.0.archive.now();
        let requests = self.0.all_requests().await?;
        Ok(WorkerStep::Idle(sleep_until_expiry(&requests, now)))
    }
}

/// Returns the time until the first open request expires, at most [`LONGEST_SLEEP`]. A request that is made in the
/// meantime expires later than that.
fn sleep_until_expiry(requests: &[PersonRequest], now: Timestamp) -> Duration {
    let open = requests
        .iter()
        .filter(|request| request.state == RequestStatus::Open);
    let next = open
        .map(|request| request.expires.duration_since(now))
        .min();
    let pause = next.map(|pause| Duration::try_from(pause).unwrap_or_default());
    pause.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
}

fn stopping() -> CallError {
    CallErrorKind::Unavailable.to_error("the repository is stopping")
}

pub(crate) fn not_allowed(error: archive_ledger::requests::RequestRefusal) -> CallError {
    failed(&PersonRequestError::NotAllowed(error))
}

fn failed(error: &PersonRequestError) -> CallError {
    use archive_ledger::requests::RequestRefusal;
    match error {
        PersonRequestError::NotAllowed(RequestRefusal::Reason) => CallErrorKind::Invalid,
        PersonRequestError::NotAllowed(RequestRefusal::NotOpen(_)) => CallErrorKind::Mismatch,
        PersonRequestError::NotAllowed(_) => CallErrorKind::Refused,
        PersonRequestError::Unknown(_) => CallErrorKind::NotFound,
        PersonRequestError::Admin(error) => return admin_failed(error),
    }
    .to_error(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(expires: &str, state: RequestStatus) -> PersonRequest {
        PersonRequest {
            number: 1,
            act: Act::RetireReplica(ReplicaId::new("one").unwrap()).into(),
            reason: "the house was sold".to_owned(),
            asked_by: "operator/otto".to_owned(),
            asked: Timestamp::UNIX_EPOCH,
            expires: expires.parse().unwrap(),
            state,
        }
    }

    /// Fails if an open request outlives its time, one that has ended wakes the worker, or a new request could expire
    /// while the worker sleeps.
    #[test]
    fn expiry_worker_sleeps_until_next_expiry() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let withdrawn = RequestStatus::Withdrawn {
            by: "operator/otto".to_owned(),
            at: now,
        };
        let ended = request("2026-01-01T00:01:00Z", withdrawn);
        let soon = request("2026-01-01T00:20:00Z", RequestStatus::Open);
        let late = request("2026-01-07T00:00:00Z", RequestStatus::Open);
        for (requests, minutes) in [
            (vec![], 60),
            (vec![ended.clone()], 60),
            (vec![late.clone()], 60),
            (vec![late, ended, soon], 20),
        ] {
            let pause = sleep_until_expiry(&requests, now);
            assert_eq!(pause, Duration::from_mins(minutes), "{requests:?}");
        }
        assert!(LONGEST_SLEEP < archive_ledger::requests::LIFE.unsigned_abs());
    }
}
