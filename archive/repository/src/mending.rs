//! Repair of one file: looks again, plans, moves the needed groups, and files the result.
//!
//! Owns the order: the damaged copy is looked at again before anything else; the plan is made from the present state of
//! every copy; donors prove each group while it is read; only a node that has read back its mended copy closes the anomaly.
//! One repair of a file at a time. Nothing of a file is touched if some needed group is good nowhere.
//!
//! Not promised: that a plan holds. A donor that turns out to be damaged is looked at, and the plan is made again.

mod groups;
mod known;
mod loss;
mod missing;
mod orders;
mod sidecar;
mod surplus;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use archive_decisions::repair::{Patient, Plan, plan};
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{AnomalyKind, CopyPlace, FileCopy, RepairOutcome, ReplicaId};
use archive_rpc::CallError;
use archive_stores::assemble::WantedFile;

use crate::preserver::{LookContext, Preserver};
use crate::tables::with_tables;

pub(crate) use orders::RepairSelection;

/// The most plans for one repair whose donors turn out to be damaged.
const PLANS: usize = 4;

/// The most files that are repaired at once.
pub(crate) const MOST_REPAIRS: usize = 64;

/// The context of a repair: the person or part that ordered it, and the reason.
#[derive(Clone, Debug)]
pub(crate) struct RepairContext {
    /// The person or part, as `role/name`.
    pub(crate) who: Arc<str>,
    pub(crate) why: String,
    /// Whether the repair is a dry run: only the plan is reported.
    pub(crate) is_dry: bool,
}

/// The result of a repair.
#[derive(Clone, Debug)]
pub(crate) struct RepairReport {
    pub(crate) outcome: RepairOutcome,
    /// A line for people.
    pub(crate) what: String,
    /// The bytes that donors gave, or would give, proofs included.
    pub(crate) moved: u64,
    /// The item with the replaced groups, in the attic of the volume.
    pub(crate) attic: String,
}

impl RepairReport {
    fn of(outcome: RepairOutcome, what: impl Into<String>) -> Self {
        Self {
            outcome,
            what: what.into(),
            moved: 0,
            attic: String::new(),
        }
    }
}

/// The copy to be mended, in its present state.
struct RepairCase {
    patient: Patient,
    wanted: WantedFile,
    /// The place of the damaged copy; `None` if it is missing.
    place: Option<CopyPlace>,
}

/// The result of the second look.
enum SecondLook {
    Case(Box<RepairCase>),
    /// The repair ends: nothing has to be mended, or the state is unknown.
    Done(RepairReport),
}

impl Preserver {
    /// Repairs one anomaly, as far as possible. `told` has the number of bytes that were verified so far.
    pub(crate) async fn repair(
        &self,
        row: &AnomalyRow,
        repair_context: &RepairContext,
        told: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<RepairReport, CallError> {
        let Some(_claim) = self.repairing.claim(&row.file, MOST_REPAIRS) else {
            let what = "it is being repaired already, or too many others are; try again later";
            return Ok(RepairReport::of(RepairOutcome::Waiting, what));
        };
        self.repair_claimed(row, repair_context, None, told).await
    }

    /// Repairs as [`Preserver::repair`] does, for a caller that has claimed the file. `read` is the damaged copy, if it
    /// was read whole since.
    pub(crate) async fn repair_claimed(
        &self,
        row: &AnomalyRow,
        repair_context: &RepairContext,
        read: Option<FileCopy>,
        told: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<RepairReport, CallError> {
        let done = self.plan_and_move(row, repair_context, read, told).await?;
        if !repair_context.is_dry {
            let (anomalies, row) = (Arc::clone(&self.archive.anomalies), row.clone());
            let note = format!("{}: {}", done.outcome, done.what);
            with_tables(move || anomalies.note(&row, &note)).await?;
        }
        Ok(done)
    }

    async fn plan_and_move(
        &self,
        row: &AnomalyRow,
        repair_context: &RepairContext,
        mut read: Option<FileCopy>,
        told: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<RepairReport, CallError> {
        let mut left = PLANS;
        loop {
            left -= 1;
            let before = self.record(&row.file).await?;
            let case = match self
                .look_again(row, repair_context, read.take(), told)
                .await?
            {
                SecondLook::Case(case) => case,
                SecondLook::Done(done) => return Ok(done),
            };
            let copies = self.known(&case.wanted, &case.patient.replica).await?;
            let known = copies
                .iter()
                .map(|(known, _)| known.clone())
                .collect::<Vec<_>>();
            let plan = plan(&case.patient, &known);
            if repair_context.is_dry {
                let done = RepairReport::of(RepairOutcome::Planned, plan.dry_run(&case.patient));
                return Ok(RepairReport {
                    moved: plan.bytes(case.patient.size),
                    ..done
                });
            }
            let done = match &plan {
                Plan::Nothing(why) => {
                    Some(RepairReport::of(RepairOutcome::Nothing, why.to_string()))
                }
                Plan::Officer(question) => Some(RepairReport::of(
                    RepairOutcome::Officer,
                    question.to_string(),
                )),
                Plan::Wait { unknown } => {
                    let names: Vec<&str> = unknown.iter().map(ReplicaId::as_str).collect();
                    let names = names.join(", ");
                    let what = format!("{names} cannot be read group by group now");
                    Some(RepairReport::of(RepairOutcome::Waiting, what))
                }
                Plan::Lost { ranges } => {
                    self.lost(&case, ranges, (&known, before.as_ref()), repair_context)
                        .await?
                }
                Plan::Copy { .. } => Some(self.request_copy(&case, &plan, repair_context).await?),
                Plan::FetchGroups { .. } | Plan::Salvage { .. } if case.place.is_none() => {
                    Some(self.request_copy(&case, &plan, repair_context).await?)
                }
                Plan::FetchGroups { .. } | Plan::Salvage { .. } => {
                    self.copy_groups(&case, &plan, &copies, repair_context, told)
                        .await?
                }
            };
            match done {
                Some(done) => return Ok(done),
                None if left == 0 => {
                    let what = "donors turned out to be damaged again and again; check them";
                    return Ok(RepairReport::of(RepairOutcome::Failed, what));
                }
                None => {}
            }
        }
    }

    /// Looks at the damaged copy again: whether it is still damaged, and in which groups.
    async fn look_again(
        &self,
        row: &AnomalyRow,
        repair_context: &RepairContext,
        read: Option<FileCopy>,
        told: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<SecondLook, CallError> {
        let done = |outcome, what: &str| Ok(SecondLook::Done(RepairReport::of(outcome, what)));
        let Some(content) = self
            .record(&row.file)
            .await?
            .and_then(|record| record.content)
        else {
            return done(
                RepairOutcome::Officer,
                "the archive does not know this file; `adopt` or `remove` it",
            );
        };
        let wanted = WantedFile {
            name: row.file.clone(),
            root: content.root,
            size: content.size,
        };
        let patient = |kind| Patient {
            file: row.file.clone(),
            size: content.size,
            replica: row.replica.clone(),
            kind,
        };
        let case = |kind, place| {
            Ok(SecondLook::Case(Box::new(RepairCase {
                patient: patient(kind),
                wanted: wanted.clone(),
                place,
            })))
        };
        match &row.filed.kind {
            AnomalyKind::Missing
            | AnomalyKind::Incomplete
            | AnomalyKind::Corrupt(_)
            | AnomalyKind::Unreadable(_)
            | AnomalyKind::Lost(_) => {}
            AnomalyKind::Unexpected => {
                let admitted = self.give_admission(row, &content, repair_context).await?;
                return Ok(SecondLook::Done(admitted));
            }
            AnomalyKind::Duplicate(_) => {
                let tidying = Box::pin(self.put_surplus_aside(row, &content, repair_context));
                return Ok(SecondLook::Done(tidying.await?));
            }
            other @ (AnomalyKind::Conflicting(_)
            | AnomalyKind::Disputed(_)
            | AnomalyKind::Unverified { .. }
            | AnomalyKind::Transient) => return case(other.clone(), None),
        }
        let look_context = LookContext {
            who: Arc::clone(&repair_context.who),
            finder: row.filed.found_by,
            is_second: false,
        };
        let (seen, _) = self
            .look_and_file(&row.replica, &row.file, &look_context)
            .await?;
        let is_right = |copy: &&FileCopy| copy.is_readable() && copy.root == Some(content.root);
        let copies: Vec<_> = seen.located.copies.iter().filter(is_right).collect();
        if copies.is_empty() {
            return match (
                &seen.located.silent,
                seen.found.iter().find(|kind| is_absence(kind)),
            ) {
                (_, Some(absence)) => case(absence.clone(), None),
                (Some(silent), None) => done(RepairOutcome::Waiting, silent),
                (None, None) if seen.found.contains(&AnomalyKind::Transient) => {
                    done(RepairOutcome::Waiting, "it is being stored in the replica")
                }
                (None, None) => done(
                    RepairOutcome::Officer,
                    "the replica has another file under this name",
                ),
            };
        }
        // The copy that the anomaly names, or else the first: a read finds its damage.
        let is_filed = |copy: &&&FileCopy| {
            Some(&copy.place.node) == row.filed.node.as_ref()
                && Some(&copy.place.volume) == row.filed.volume.as_ref()
        };
        let Some(copy) = copies.iter().find(is_filed).or_else(|| copies.first()) else {
            return done(RepairOutcome::Waiting, "no copy can be read now");
        };
        let is_same = |read: &FileCopy| read.place == copy.place;
        let copy = if let Some(read) = read.filter(is_same) {
            read
        } else {
            let place = (&row.replica, &copy.place.node, Some(&copy.place.volume));
            let (file, size) = (&row.file, content.size);
            let reading = self.verify_and_file(place, file, size, &look_context, told);
            match reading.await? {
                Ok((copy, _filed)) => copy,
                Err(error) => {
                    let what = format!("cannot read the copy again: {}", error.reason);
                    return done(RepairOutcome::Waiting, &what);
                }
            }
        };
        let bad = copy.damaged_groups(content.size);
        if bad.is_empty() {
            return done(
                RepairOutcome::Nothing,
                "the copy was read again, and is good",
            );
        }
        case(AnomalyKind::Corrupt(bad), Some(copy.place))
    }
}

/// Returns whether every volume was searched, and none has the file.
const fn is_absence(kind: &AnomalyKind) -> bool {
    matches!(kind, AnomalyKind::Missing | AnomalyKind::Incomplete)
}
