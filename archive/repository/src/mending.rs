//! Repair of one file: looks again, plans, moves the needed groups, and files the result.
//!
//! Owns the order: the damaged copy is looked at again before anything else; the plan is made from the present state of
//! every copy; donors prove each group while it is read; only a node that has read back its mended copy closes the
//! anomaly. One repair of a file at a time. Nothing of a file is touched if some needed group is good nowhere.
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

use archive_decisions::repair::{Patient, RepairPlan, plan_repair};
use archive_decisions::store::Content;
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{AnomalyKind, CopyPlace, FileContent, FileCopy, RepairOutcome, ReplicaId};
use archive_rpc::CallError;
use archive_stores::assemble::WantedFile;

use crate::claims::NameAct;
use crate::preserver::{LookContext, Preserver};
use crate::tables::with_tables;

pub(crate) use orders::RepairSelection;

/// The most plans for one repair whose donors turn out to be damaged.
const PLANS: usize = 4;

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
    fn new(outcome: RepairOutcome, what: impl Into<String>) -> Self {
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
    /// Repairs one anomaly, as far as possible. `progress` receives the number of bytes that were verified so far.
    pub(crate) async fn repair_file(
        &self,
        row: &AnomalyRow,
        repair_context: &RepairContext,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<RepairReport, CallError> {
        let claimed = self.archive.claims.claim_name(&row.file, NameAct::Repair);
        let _claim = match claimed {
            Ok(claim) => claim,
            Err(busy) => return Ok(RepairReport::new(RepairOutcome::Waiting, busy.reason)),
        };
        self.repair_claimed(row, repair_context, None, progress)
            .await
    }

    /// Repairs as [`Preserver::repair_file`] does, for a caller that has claimed the file. `read` is the damaged copy, if it
    /// was read whole since.
    pub(crate) async fn repair_claimed(
        &self,
        row: &AnomalyRow,
        repair_context: &RepairContext,
        read: Option<FileCopy>,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<RepairReport, CallError> {
        let done = self
            .plan_and_move(row, repair_context, read, progress)
            .await?;
        if !repair_context.is_dry {
            let anomalies = Arc::clone(&self.archive.anomalies);
            let row = row.clone();
            let note = format!("{}: {}", done.outcome, done.what);
            with_tables(move || anomalies.note_anomaly(&row, &note)).await?;
        }
        Ok(done)
    }

    async fn plan_and_move(
        &self,
        row: &AnomalyRow,
        repair_context: &RepairContext,
        mut read: Option<FileCopy>,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<RepairReport, CallError> {
        let mut left = PLANS;
        loop {
            left -= 1;
            let before = self.file_record(&row.file).await?;
            let case = match self
                .look_again(row, repair_context, read.take(), progress)
                .await?
            {
                SecondLook::Case(case) => case,
                SecondLook::Done(done) => return Ok(done),
            };
            let copies = self
                .known_anomalies(&case.wanted, &case.patient.replica)
                .await?;
            let known = copies
                .iter()
                .map(|(known, _)| known.clone())
                .collect::<Vec<_>>();
            let plan = plan_repair(&case.patient, &known);
            if repair_context.is_dry {
                let done = RepairReport::new(RepairOutcome::Planned, plan.dry_run(&case.patient));
                return Ok(RepairReport {
                    moved: plan.bytes_to_copy(case.patient.size),
                    ..done
                });
            }
            let done = match &plan {
                RepairPlan::Nothing(why) => {
                    Some(RepairReport::new(RepairOutcome::Nothing, why.to_string()))
                }
                RepairPlan::Officer(question) => Some(RepairReport::new(
                    RepairOutcome::Officer,
                    question.to_string(),
                )),
                RepairPlan::Wait { unknown } => {
                    let names: Vec<&str> = unknown.iter().map(ReplicaId::as_str).collect();
                    let names = names.join(", ");
                    let what = format!("{names} cannot be read group by group now");
                    Some(RepairReport::new(RepairOutcome::Waiting, what))
                }
                RepairPlan::Lost { ranges } => {
                    self.note_loss(&case, ranges, &known, before.as_ref(), repair_context)
                        .await?
                }
                RepairPlan::Copy { .. } => {
                    Some(self.request_copy(&case, &plan, repair_context).await?)
                }
                RepairPlan::FetchGroups { .. } | RepairPlan::Salvage { .. }
                    if case.place.is_none() =>
                {
                    Some(self.request_copy(&case, &plan, repair_context).await?)
                }
                RepairPlan::FetchGroups { .. } | RepairPlan::Salvage { .. } => {
                    self.copy_groups(&case, &plan, &copies, repair_context, progress)
                        .await?
                }
            };
            match done {
                Some(done) => return Ok(done),
                None if left == 0 => {
                    let what = "donors turned out to be damaged again and again; check them";
                    return Ok(RepairReport::new(RepairOutcome::Failed, what));
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
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<SecondLook, CallError> {
        let record = self.file_record(&row.file).await?;
        let Some(content) = record.and_then(|record| record.content) else {
            return Ok(SecondLook::done(
                RepairOutcome::Officer,
                "the archive does not know this file; `adopt` or `remove` it",
            ));
        };
        match &row.filed.kind {
            AnomalyKind::Missing
            | AnomalyKind::Incomplete
            | AnomalyKind::Corrupt(_)
            | AnomalyKind::Unreadable(_)
            | AnomalyKind::Lost(_) => {
                self.look_at_copy(row, &content, repair_context, read, progress)
                    .await
            }
            AnomalyKind::Unexpected => {
                let content = FileContent::from(&content);
                let giving = self.give_admission(&row.file, &row.replica, content, repair_context);
                Ok(SecondLook::Done(Box::pin(giving).await?))
            }
            AnomalyKind::Duplicate(_) => {
                let tidying = Box::pin(self.put_surplus_aside(row, &content, repair_context));
                Ok(SecondLook::Done(tidying.await?))
            }
            other @ (AnomalyKind::Conflicting(_)
            | AnomalyKind::Disputed(_)
            | AnomalyKind::Unverified { .. }
            | AnomalyKind::Transient) => Ok(SecondLook::case(row, &content, other.clone(), None)),
        }
    }

    /// Looks where the replica has the content now, and which groups of that copy are damaged.
    async fn look_at_copy(
        &self,
        row: &AnomalyRow,
        content: &Content,
        repair_context: &RepairContext,
        read: Option<FileCopy>,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<SecondLook, CallError> {
        let look_context = LookContext {
            who: Arc::clone(&repair_context.who),
            finder: row.filed.found_by,
            is_second: false,
        };
        let (seen, _) = self
            .look_and_file(&row.replica, &row.file, &look_context)
            .await?;
        let Some(place) = place_to_read(row, content, &seen.located.copies) else {
            let silent = seen.located.silent.as_deref();
            return Ok(SecondLook::without_copy(row, content, silent, &seen.found));
        };
        let copy = if let Some(read) = read.filter(|read| read.place == *place) {
            read
        } else {
            let selector = place.copy_selector(&row.replica);
            let file = &row.file;
            let size = content.size;
            let reading = self.verify_and_file(selector, file, size, &look_context, progress);
            match reading.await? {
                Ok((copy, _filed)) => copy,
                Err(error) => {
                    let what = format!("cannot read the copy again: {}", error.reason);
                    return Ok(SecondLook::done(RepairOutcome::Waiting, what));
                }
            }
        };
        let bad = copy.damaged_groups(content.size);
        if bad.is_empty() {
            let what = "the copy was read again, and is good";
            return Ok(SecondLook::done(RepairOutcome::Nothing, what));
        }
        let kind = AnomalyKind::Corrupt(bad);
        Ok(SecondLook::case(row, content, kind, Some(copy.place)))
    }
}

impl SecondLook {
    fn done(outcome: RepairOutcome, what: impl Into<String>) -> Self {
        Self::Done(RepairReport::new(outcome, what))
    }

    fn case(
        row: &AnomalyRow,
        content: &Content,
        kind: AnomalyKind,
        place: Option<CopyPlace>,
    ) -> Self {
        Self::Case(Box::new(RepairCase {
            patient: Patient {
                file: row.file.clone(),
                size: content.size,
                replica: row.replica.clone(),
                kind,
            },
            wanted: WantedFile {
                name: row.file.clone(),
                root: content.root,
                size: content.size,
            },
            place,
        }))
    }

    /// Returns what follows if no copy of the content was seen in the replica: `silent` are the parts of it that did
    /// not answer, `found` is what the look found.
    fn without_copy(
        row: &AnomalyRow,
        content: &Content,
        silent: Option<&str>,
        found: &[AnomalyKind],
    ) -> Self {
        match (silent, found.iter().find(|kind| is_absence(kind))) {
            (_, Some(absence)) => Self::case(row, content, absence.clone(), None),
            (Some(silent), None) => Self::done(RepairOutcome::Waiting, silent),
            (None, None) if found.contains(&AnomalyKind::Transient) => {
                Self::done(RepairOutcome::Waiting, "it is being stored in the replica")
            }
            (None, None) => Self::done(
                RepairOutcome::Officer,
                "the replica has another file under this name",
            ),
        }
    }
}

/// Returns the place of the copy to read: the one that the anomaly names, or else the first, as a read finds its
/// damage. Returns `None` if no copy of the content can be read.
fn place_to_read<'a>(
    row: &AnomalyRow,
    content: &Content,
    copies: &'a [FileCopy],
) -> Option<&'a CopyPlace> {
    let is_right = |copy: &&FileCopy| copy.is_readable() && copy.root == Some(content.root);
    let is_filed = |copy: &&FileCopy| {
        Some(&copy.place.node) == row.filed.node.as_ref()
            && Some(&copy.place.volume) == row.filed.volume.as_ref()
    };
    let mut right = copies.iter().filter(is_right);
    let first = right.next()?;
    let filed = std::iter::once(first).chain(right).find(is_filed);
    Some(&filed.unwrap_or(first).place)
}

/// Returns whether every volume was searched, and none has the file.
const fn is_absence(kind: &AnomalyKind) -> bool {
    matches!(kind, AnomalyKind::Missing | AnomalyKind::Incomplete)
}
