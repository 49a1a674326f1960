//! What a plan moves: groups into a damaged copy, or a whole file into a replica that lacks it.

use std::sync::Arc;
use std::time::Duration;

use archive_decisions::repair::{ContentState, Plan, ReplicaContent};
use archive_decisions::store::Event;
use archive_ledger::admin::AuditLine;
use archive_model::{
    AnomalyKind, FileCopy, FileName, Finder, Groups, NodeId, ReplicaState, StoreFailure,
};
use archive_replicas::{MendOrder, Mended, Mending};
use archive_rpc::{CallError, Kind};
use archive_stores::assemble::{Assembly, Donor, Part};
use archive_stores::limits;

use super::{Case, Done, Mandate, RepairOutcome};
use crate::preserver::{Errand, Preserver};
use crate::tables::with_tables;

/// How often it is looked whether the coordinator has brought a file.
const LOOK: Duration = Duration::from_millis(500);

/// What came of sending groups.
enum Sent {
    /// The node has read the mended copy back.
    Mended { copy: FileCopy, attic: String },
    /// No donor gives these bytes. The copy is as it was.
    Hole { is_unknown: bool, said: String },
}

impl Preserver {
    /// Moves groups into the damaged copy; none: donors were not what they seemed, plan again.
    pub(super) async fn fetch(
        &self,
        case: &Case,
        plan: &Plan,
        copies: &[(ReplicaContent, Option<NodeId>)],
        mandate: &Mandate,
        told: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Option<Done>, CallError> {
        let Some((node, volume)) = case.place.clone() else {
            return Ok(None);
        };
        let size = case.wanted.size;
        let pieces = plan.to_verify(size);
        let groups = pieces
            .iter()
            .fold(Groups::none(), |all, (_, groups)| all.union(groups));
        let order = MendOrder {
            replica: case.patient.replica.clone(),
            node,
            volume,
            name: case.patient.file.clone(),
            root: case.wanted.root,
            groups: groups.clone(),
            who: mandate.who.to_string(),
            why: mandate.why.clone(),
        };
        let ranges: Vec<_> = groups.byte_ranges(size).collect();
        let donors = donors(plan, copies, size);
        let mut reading = self.assembler.read(case.wanted.clone(), donors, ranges);
        let sent = self.send(&order, &mut reading, size, told).await;
        let moved = reading.sent().values().sum();
        for (donor, bytes) in reading.sent() {
            self.instruments.count_moved(donor, *bytes);
        }
        let is_damaged = !reading.damaged().is_empty();
        for (donor, node) in reading.damaged() {
            self.look_at_donor(case, &donor, node.as_ref(), mandate)
                .await?;
        }
        let done = |outcome, what: String| {
            Ok(Some(Done {
                outcome,
                what,
                moved,
                attic: String::new(),
            }))
        };
        let (copy, attic) = match sent {
            Err(error) => {
                let what = format!("the node did not take the groups: {}", error.reason);
                let outcome = if error.kind == Kind::Busy {
                    RepairOutcome::Waiting
                } else {
                    RepairOutcome::Failed
                };
                return done(outcome, what);
            }
            Ok(Sent::Hole {
                is_unknown: true,
                said,
            }) => {
                return done(
                    RepairOutcome::Waiting,
                    format!("no donor gives what is needed: {said}"),
                );
            }
            Ok(Sent::Hole { .. }) if is_damaged => return Ok(None),
            Ok(Sent::Hole { said, .. }) => {
                return done(
                    RepairOutcome::Failed,
                    format!("no donor gives what is needed: {said}"),
                );
            }
            Ok(Sent::Mended { copy, attic }) => (copy, attic),
        };
        let given: Vec<String> = reading
            .sent()
            .iter()
            .map(|(donor, bytes)| format!("{bytes} bytes from {donor}"))
            .collect();
        let given = given.join(", ");
        let what = format!(
            "{} of {}: {given}; the replaced ones lie in the attic as {attic}",
            AnomalyKind::Corrupt(groups.clone())
                .to_string()
                .replacen("corrupt ", "", 1),
            case.patient.replica,
        );
        self.note(&case.patient.file, mandate, format!("repaired {what}"))
            .await?;
        self.instruments.repaired_groups.inc_by(groups.len());
        let errand = self.errand(mandate);
        self.file_verified(&case.patient.replica, &case.patient.file, &copy, &errand)
            .await?;
        let outcome = if copy.is_present() {
            RepairOutcome::Repaired
        } else {
            RepairOutcome::Failed
        };
        Ok(Some(Done {
            outcome,
            what,
            moved,
            attic,
        }))
    }

    /// Reads groups and sends them on, then waits for the node to have read them back.
    async fn send(
        &self,
        order: &MendOrder,
        reading: &mut Assembly,
        size: u64,
        told: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Sent, CallError> {
        let opening = self
            .clock
            .timeout(self.stall, self.replicas.mend(order))
            .await;
        let (mut mending, call) =
            opening.map_err(|late| Kind::TimedOut.error(late.to_string()))??;
        let exchange = async {
            match self.pour(reading, &mending).await {
                Ok(None) => {}
                Ok(Some(hole)) => return Ok(hole),
                // The node ended it: what it said waits on the other side.
                Err(broken) => {
                    let said = self.clock.timeout(self.stall, mending.next()).await;
                    return Err(said.ok().and_then(Result::err).unwrap_or(broken));
                }
            }
            self.timely(mending.close()).await?;
            let limit = limits::writing(size);
            loop {
                let said = self.clock.timeout(limit, mending.next()).await;
                match said.map_err(|late| Kind::TimedOut.error(late.to_string()))?? {
                    Mended::Progress(bytes) => told(bytes),
                    Mended::Done { copy, attic } => return Ok(Sent::Mended { copy, attic }),
                }
            }
        };
        tokio::pin!(call);
        let mut exchange = Box::pin(exchange);
        tokio::select! {
            biased;
            ended = &mut exchange => return ended,
            () = &mut call => {}
        }
        // The call has ended; what it said is there.
        exchange.await
    }

    /// Sends every group; what nobody gives ends it before anything was changed.
    async fn pour(
        &self,
        reading: &mut Assembly,
        mending: &Mending,
    ) -> Result<Option<Sent>, CallError> {
        while let Some(part) = reading.next().await {
            match part {
                Part::Proven(proven) => {
                    let sending = mending.segment(proven.offset, proven.length, proven.encoded);
                    self.timely(sending).await?;
                }
                Part::Hole(hole) => {
                    return Ok(Some(Sent::Hole {
                        is_unknown: !hole.unknown.is_empty(),
                        said: hole.said,
                    }));
                }
            }
        }
        Ok(None)
    }

    async fn timely(
        &self,
        sending: impl Future<Output = Result<(), CallError>>,
    ) -> Result<(), CallError> {
        let sent = self.clock.timeout(self.stall, sending).await;
        sent.map_err(|late| Kind::TimedOut.error(format!("the node takes no bytes: {late}")))?
    }

    /// A donor showed damage: it is read whole, and what is found is filed before the next plan.
    async fn look_at_donor(
        &self,
        case: &Case,
        donor: &archive_model::ReplicaId,
        node: Option<&NodeId>,
        mandate: &Mandate,
    ) -> Result<(), CallError> {
        let Some(node) = node else {
            return Ok(());
        };
        let place = (donor, node, None);
        let verified = self
            .verify(place, &case.wanted.name, case.wanted.size, |_| {})
            .await;
        match verified {
            Ok(copy) => {
                let errand = self.errand(mandate);
                self.file_verified(donor, &case.wanted.name, &copy, &errand)
                    .await
                    .map(|_| ())
            }
            Err(error) => {
                let file = &case.wanted.name;
                tracing::warn!(%file, %donor, %node, %error, "a damaged donor cannot be looked at");
                Ok(())
            }
        }
    }

    /// Has the coordinator bring the file into the replica that lacks it, and waits until it is there.
    pub(super) async fn bring_back(
        &self,
        case: &Case,
        plan: &Plan,
        mandate: &Mandate,
    ) -> Result<Done, CallError> {
        let (file, replica) = (&case.patient.file, &case.patient.replica);
        let donors: Vec<String> = plan
            .to_verify(case.wanted.size)
            .iter()
            .map(|(donor, _)| donor.to_string())
            .collect();
        let donors = donors.join(", ");
        self.note(
            &case.patient.file,
            mandate,
            format!("missing in {replica}: to be brought from {donors}"),
        )
        .await?;
        let before = self.record(file).await?;
        let Some(before) = before.and_then(|record| record.replicas.get(replica).cloned()) else {
            let what =
                format!("{replica} came after the file; `replica bootstrap {replica}` fills it");
            return Ok(Done::of(RepairOutcome::Officer, what));
        };
        let event = Event::Gone {
            replica: replica.clone(),
        };
        self.mail.happened(file.clone(), event).await;
        if !self.mail.settled().await {
            return Err(Kind::Unavailable.error("the repository is stopping"));
        }
        // From here on a copy that counts is one that was brought, or found, after all.
        let until = self.clock.instant() + limits::writing(case.wanted.size);
        loop {
            let record = self.record(file).await?;
            let copy = record.and_then(|record| record.replicas.get(replica).cloned());
            // Being asked for is a state of its own, so the same failure come again is a later one.
            let is_new = copy.as_ref().is_some_and(|copy| copy.since != before.since);
            match copy.map(|copy| copy.state) {
                Some(ReplicaState::UploadCompleted) => break,
                Some(ReplicaState::UploadFailed(reason))
                    if !matches!(reason, StoreFailure::Gone(_)) && is_new =>
                {
                    let what = format!("{reason}; the archive goes on trying");
                    return Ok(Done::of(RepairOutcome::Waiting, what));
                }
                Some(ReplicaState::Withdrawn(why)) => {
                    let what = format!("people have taken the copy out meanwhile: {why}");
                    return Ok(Done::of(RepairOutcome::Nothing, what));
                }
                Some(
                    ReplicaState::UploadFailed(_)
                    | ReplicaState::UploadStarted
                    | ReplicaState::DataUploaded,
                )
                | None => {}
            }
            if self.clock.instant() >= until {
                let what = "the file is still on its way; the archive goes on with it";
                return Ok(Done::of(RepairOutcome::Waiting, what));
            }
            self.clock.sleep(LOOK).await;
        }
        let (_, found) = self
            .look_and_file(replica, file, &self.errand(mandate))
            .await?;
        let what = format!(
            "brought {} bytes into {replica}, from {donors}",
            case.wanted.size
        );
        self.note(&case.patient.file, mandate, what.clone()).await?;
        let outcome = if found.open.is_empty() {
            RepairOutcome::Repaired
        } else {
            RepairOutcome::Failed
        };
        Ok(Done {
            outcome,
            what,
            moved: case.wanted.size,
            attic: String::new(),
        })
    }

    pub(super) fn errand(&self, mandate: &Mandate) -> Errand {
        let is_own = mandate.who == self.own;
        Errand {
            who: Arc::clone(&mandate.who),
            finder: if is_own {
                Finder::ScheduledCheck
            } else {
                Finder::Check
            },
            is_second: false,
        }
    }

    /// Writes a line of the trail.
    pub(super) async fn note(
        &self,
        file: &FileName,
        mandate: &Mandate,
        what: String,
    ) -> Result<(), CallError> {
        let line = AuditLine {
            at: self.clock.now(),
            who: mandate.who.to_string(),
            file: Some(file.clone()),
            what: format!("{what}; {}", mandate.why),
        };
        let admin = self.admin.clone();
        with_tables(move || admin.note(line)).await
    }
}

/// Who is asked for the groups, in the order of the plan; then whoever else has the file, for what these do not give.
fn donors(plan: &Plan, copies: &[(ReplicaContent, Option<NodeId>)], size: u64) -> Vec<Donor> {
    let planned: Vec<_> = plan
        .to_verify(size)
        .into_iter()
        .map(|(id, _)| id.clone())
        .collect();
    let place = |id| planned.iter().position(|planned| planned == id);
    let mut known: Vec<_> = copies
        .iter()
        .filter_map(|(copy, node)| {
            let bad = match &copy.state {
                ContentState::Intact => Groups::none(),
                ContentState::Damaged(bad) => bad.clone(),
                ContentState::Absent | ContentState::Other(_) | ContentState::Unreachable => {
                    return None;
                }
            };
            let rank = place(&copy.replica).unwrap_or(usize::MAX);
            Some((rank, copy.replica.clone(), node.clone(), bad))
        })
        .collect();
    known.sort_by_key(|(rank, ..)| *rank);
    known
        .into_iter()
        .map(|(_, replica, node, bad)| Donor { replica, node, bad })
        .collect()
}
