//! The repairs that a person asked for, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use archive_ledger::anomalies::AnomalyRow;
use archive_model::{FileName, Finder};
use archive_rpc::{CallError, CallErrorKind, InvalidMessage};
use futures_util::{StreamExt, TryStreamExt, stream};
use proto_archive::wire::anomaly_state::State;
use proto_archive::wire::repair_response::Outcome;
use proto_archive::{convert as fields, wire};
use tokio::sync::mpsc;
use tonic::Status;

use super::super::{admin_failed, send_answer};
use super::anomalies::wire_state;
use super::{Answers, Door};
use crate::mending::{RepairContext, RepairSelection};
use crate::preserver::LookContext;

/// The time between two reports of progress.
const PROGRESS: Duration = Duration::from_secs(1);

/// The most looks at a time.
const LOOKS: usize = 8;

/// A request for repairs.
pub(super) struct RepairJob {
    which: RepairSelection,
    repair_context: RepairContext,
    confirm: u64,
    /// Of the named files those that nobody could look for everywhere, with the reason.
    unseen: BTreeMap<FileName, String>,
}

impl RepairJob {
    /// Reads the request.
    pub(super) fn new(request: &wire::RepairRequest, who: Arc<str>) -> Result<Self, Status> {
        let names = request
            .names
            .iter()
            .map(|name| fields::file_name("names", name));
        let names = names.collect::<Result<BTreeSet<FileName>, _>>()?;
        let which = match (request.all, names.is_empty()) {
            (true, true) => RepairSelection::All,
            (false, false) => RepairSelection::Names(names),
            (true, false) => {
                let both = "must be empty if `all` is set";
                return Err(InvalidMessage::invalid_field("names", both).into());
            }
            (false, true) => return Err(InvalidMessage::missing_field("names").into()),
        };
        let why = match request.reason.as_str() {
            "" => "repair was asked for".to_owned(),
            reason => reason.to_owned(),
        };
        Ok(Self {
            which,
            repair_context: RepairContext {
                who,
                why,
                is_dry: request.dry_run,
            },
            confirm: request.confirm,
            unseen: BTreeMap::new(),
        })
    }

    /// Looks where the named files are now: a copy that has gone since the last check is repaired, too.
    pub(super) async fn look_first(&mut self, door: &Door) -> Result<(), Status> {
        let RepairSelection::Names(names) = &self.which else {
            return Ok(());
        };
        let look_context = LookContext {
            who: Arc::clone(&self.repair_context.who),
            finder: Finder::Check,
            is_second: false,
        };
        let replicas = door.archive.in_service();
        let places = names.iter().flat_map(|name| {
            let replicas = replicas.iter();
            replicas.map(move |replica| (name.clone(), replica.id.clone()))
        });
        let looks = places
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(name, replica)| {
                let look_context = &look_context;
                async move {
                    let looking = door.preserver.look_and_file(&replica, &name, look_context);
                    let (seen, _) = looking.await?;
                    let silent = seen.located.silent;
                    let unseen = silent.map(|why| (name, format!("replica {replica}: {why}")));
                    Ok::<_, CallError>(unseen)
                }
            });
        let unseen = stream::iter(looks).buffer_unordered(LOOKS);
        self.unseen = unseen
            .try_filter_map(|unseen| ready(Ok(unseen)))
            .try_collect()
            .await?;
        Ok(())
    }

    /// Checks that the brake allows the repairs. A dry run is always allowed.
    pub(super) async fn allow_repair(&self, door: &Door) -> Result<(), Status> {
        if self.repair_context.is_dry {
            return Ok(());
        }
        door.preserver
            .allow_repair(&self.which, self.confirm)
            .await?;
        Ok(())
    }

    /// Repairs the anomalies of the order, one after the other.
    pub(super) async fn run_repair(
        self,
        door: &Door,
        answers: &Answers<wire::RepairResponse>,
    ) -> Result<(), Status> {
        let mut unrepaired = match &self.which {
            RepairSelection::All => BTreeSet::new(),
            RepairSelection::Names(names) => names.clone(),
        };
        let (rows, mut next) = mpsc::channel(16);
        let sending = door.preserver.send_rows(self.which.clone(), rows);
        let repairing = async {
            while let Some(row) = next.recv().await {
                unrepaired.remove(&row.file);
                // An earlier repair may have closed this anomaly.
                if door.preserver.is_open(&row).await? {
                    self.one(door, &row, answers).await?;
                }
            }
            drop(next);
            Ok(())
        };
        tokio::try_join!(sending, repairing)?;
        let mut unknown = Vec::new();
        for name in unrepaired {
            if door.preserver.file_record(&name).await?.is_none() {
                unknown.push(name.to_string());
                continue;
            }
            let (outcome, what) = match self.unseen.get(&name) {
                Some(why) => (
                    Outcome::Waiting,
                    format!(
                        "{name} has no open anomaly, and could not be looked for everywhere: {why}"
                    ),
                ),
                None => (
                    Outcome::Nothing,
                    format!(
                        "{name} has no open anomaly; `holdfast check checksums {name}` reads its copies again"
                    ),
                ),
            };
            let nothing = wire::RepairResponse {
                outcome: outcome.into(),
                what,
                anomaly: Some(wire::AnomalyState {
                    file: name.to_string(),
                    ..wire::AnomalyState::default()
                }),
                ..wire::RepairResponse::default()
            };
            send_answer(answers, nothing).await?;
        }
        if unknown.is_empty() {
            return Ok(());
        }
        Err(CallErrorKind::NotFound
            .to_status(format!("not in the archive: {}", unknown.join(", "))))
    }

    async fn one(
        &self,
        door: &Door,
        row: &AnomalyRow,
        answers: &Answers<wire::RepairResponse>,
    ) -> Result<(), Status> {
        let verified = AtomicU64::new(0);
        let progress = |bytes: u64| {
            verified.store(bytes, Ordering::Relaxed);
        };
        let state = |row: &AnomalyRow| wire_state(door, row).map_err(|error| admin_failed(&error));
        let mut work = Box::pin(
            door.preserver
                .repair_file(row, &self.repair_context, &progress),
        );
        let done = loop {
            match door
                .archive
                .calls
                .clock
                .run_with_timeout(PROGRESS, &mut work)
                .await
            {
                Ok(done) => break done?,
                Err(_not_yet) => {
                    let progress = wire::RepairResponse {
                        outcome: Outcome::Progress.into(),
                        anomaly: Some(state(row)?),
                        bytes_verified: verified.load(Ordering::Relaxed),
                        ..wire::RepairResponse::default()
                    };
                    send_answer(answers, progress).await?;
                }
            }
        };
        let filed = door.preserver.filed_anomalies(&row.file).await?;
        let now = filed.into_iter().find(|now| now.filed.id == row.filed.id);
        let mut anomaly = state(now.as_ref().unwrap_or(row))?;
        if now.is_none() {
            anomaly.set_state(State::Closed);
            anomaly.held.clear();
        }
        let step = wire::RepairResponse {
            outcome: Outcome::from(done.outcome).into(),
            anomaly: Some(anomaly),
            what: done.what,
            bytes_moved: done.moved,
            bytes_verified: verified.load(Ordering::Relaxed),
            attic: done.attic,
        };
        send_answer(answers, step).await
    }
}
