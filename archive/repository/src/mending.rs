//! Carries out the repair of one file: look again, plan, move what is needed, and file what came of it.
//!
//! Owns the order: the patient is looked at once more before anything else; the plan is made from what is known of every
//! copy just now; donors prove each group while it is read; only a node that has read back what it mended closes the
//! anomaly. One repair of a file at a time. Nothing is touched of a file of which some needed group is good nowhere.
//!
//! Not promised: that a plan holds. A donor that turns out to be damaged is looked at, and the plan is made again.

mod carry;
mod known;
mod loss;
mod orders;
mod sidecar;
mod surplus;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use archive_decisions::repair::{Patient, Plan, plan};
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{AnomalyKind, FileCopy, NodeId, RepairOutcome, ReplicaId, VolumeId};
use archive_rpc::CallError;
use archive_stores::assemble::WantedFile;

use crate::preserver::{Errand, Preserver};
use crate::tables::with_tables;

pub(crate) use orders::Which;

/// How often a plan is made for one repair, when donors turn out to be damaged.
const PLANS: usize = 4;

/// So many files are repaired at once, whoever asks.
const MOST_REPAIRS: usize = 64;

/// Who wants a repair, and why.
#[derive(Clone, Debug)]
pub(crate) struct Mandate {
    /// As `role/name`.
    pub(crate) who: Arc<str>,
    pub(crate) why: String,
    /// Only to say what would be done.
    pub(crate) is_dry: bool,
}

/// What was done.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) outcome: RepairOutcome,
    /// In one line, for people.
    pub(crate) what: String,
    /// Bytes that came from donors, or would, proofs included.
    pub(crate) moved: u64,
    /// Where the replaced groups lie, in the attic of the volume.
    pub(crate) attic: String,
}

impl Done {
    fn of(outcome: RepairOutcome, what: impl Into<String>) -> Self {
        Self {
            outcome,
            what: what.into(),
            moved: 0,
            attic: String::new(),
        }
    }
}

/// The copy that is to be mended, as it is now.
struct Case {
    patient: Patient,
    wanted: WantedFile,
    /// Where the damaged copy is; none of one that is missing.
    place: Option<(NodeId, VolumeId)>,
}

/// What looking once more came to.
enum Again {
    Case(Box<Case>),
    /// There is nothing to be mended, or nobody can say.
    Done(Done),
}

impl Preserver {
    /// Repairs one anomaly, as far as it can be. `told` hears how many bytes were verified so far.
    pub(crate) async fn repair(
        &self,
        row: &AnomalyRow,
        mandate: &Mandate,
        told: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Done, CallError> {
        let Some(_claim) = self.repairing.claim(&row.file, MOST_REPAIRS) else {
            let what = "it is being repaired, or too many others are; ask again later";
            return Ok(Done::of(RepairOutcome::Waiting, what));
        };
        let done = self.repair_claimed(row, mandate, told).await?;
        if !mandate.is_dry {
            let (anomalies, row) = (Arc::clone(&self.anomalies), row.clone());
            let note = format!("{}: {}", done.outcome, done.what);
            with_tables(move || anomalies.note(&row, &note)).await?;
        }
        Ok(done)
    }

    async fn repair_claimed(
        &self,
        row: &AnomalyRow,
        mandate: &Mandate,
        told: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Done, CallError> {
        let mut left = PLANS;
        loop {
            left -= 1;
            let before = self.record(&row.file).await?;
            let case = match self.look_again(row, mandate, told).await? {
                Again::Case(case) => case,
                Again::Done(done) => return Ok(done),
            };
            let copies = self.known(&case.wanted, &case.patient.replica).await?;
            let known = copies
                .iter()
                .map(|(known, _)| known.clone())
                .collect::<Vec<_>>();
            let plan = plan(&case.patient, &known);
            if mandate.is_dry {
                let done = Done::of(RepairOutcome::Planned, plan.dry_run(&case.patient));
                return Ok(Done {
                    moved: plan.bytes(case.patient.size),
                    ..done
                });
            }
            let done = match &plan {
                Plan::Nothing(why) => Some(Done::of(RepairOutcome::Nothing, why.to_string())),
                Plan::Officer(question) => {
                    Some(Done::of(RepairOutcome::Officer, question.to_string()))
                }
                Plan::Wait { unknown } => {
                    let names: Vec<&str> = unknown.iter().map(ReplicaId::as_str).collect();
                    let names = names.join(", ");
                    let what = format!("{names} cannot be read group by group now");
                    Some(Done::of(RepairOutcome::Waiting, what))
                }
                Plan::Lost { ranges } => {
                    self.lost(&case, ranges, (&known, before.as_ref()), mandate)
                        .await?
                }
                Plan::Copy { .. } => Some(self.bring_back(&case, &plan, mandate).await?),
                Plan::FetchGroups { .. } | Plan::Salvage { .. } if case.place.is_none() => {
                    Some(self.bring_back(&case, &plan, mandate).await?)
                }
                Plan::FetchGroups { .. } | Plan::Salvage { .. } => {
                    self.fetch(&case, &plan, &copies, mandate, told).await?
                }
            };
            match done {
                Some(done) => return Ok(done),
                None if left == 0 => {
                    let what = "donors turn out to be damaged again and again; check them";
                    return Ok(Done::of(RepairOutcome::Failed, what));
                }
                None => {}
            }
        }
    }

    /// Looks at the patient: is it still so, and in which groups?
    async fn look_again(
        &self,
        row: &AnomalyRow,
        mandate: &Mandate,
        told: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Again, CallError> {
        let done = |outcome, what: &str| Ok(Again::Done(Done::of(outcome, what)));
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
            Ok(Again::Case(Box::new(Case {
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
                let admitted = self.give_admission(row, &content, mandate).await?;
                return Ok(Again::Done(admitted));
            }
            AnomalyKind::Duplicate(_) => {
                let tidying = Box::pin(self.put_surplus_aside(row, &content, mandate));
                return Ok(Again::Done(tidying.await?));
            }
            other @ (AnomalyKind::Conflicting(_)
            | AnomalyKind::Disputed(_)
            | AnomalyKind::Unverified { .. }
            | AnomalyKind::Transient) => return case(other.clone(), None),
        }
        let errand = Errand {
            who: Arc::clone(&mandate.who),
            finder: row.filed.found_by,
            is_second: false,
        };
        let (seen, _) = self.look_and_file(&row.replica, &row.file, &errand).await?;
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
                    done(RepairOutcome::Waiting, "it is on its way into the replica")
                }
                (None, None) => done(
                    RepairOutcome::Officer,
                    "the replica holds something else under this name",
                ),
            };
        }
        // The copy that was filed, else the first: what is damaged of it is found out by reading it.
        let is_filed = |copy: &&&FileCopy| {
            Some(&copy.place.node) == row.filed.node.as_ref()
                && Some(&copy.place.volume) == row.filed.volume.as_ref()
        };
        let Some(copy) = copies.iter().find(is_filed).or_else(|| copies.first()) else {
            return done(RepairOutcome::Waiting, "no copy can be read now");
        };
        let place = (&row.replica, &copy.place.node, Some(&copy.place.volume));
        let verified = self.verify(place, &row.file, content.size, told).await;
        let copy = match verified {
            Ok(copy) => copy,
            Err(error) => {
                let what = format!("the copy cannot be read again: {}", error.reason);
                return done(RepairOutcome::Waiting, &what);
            }
        };
        self.file_verified(&row.replica, &row.file, &copy, &errand)
            .await?;
        let bad = copy.damaged_groups(content.size);
        if bad.is_empty() {
            return done(
                RepairOutcome::Nothing,
                "the copy was read again, and is good",
            );
        }
        let place = Some((copy.place.node, copy.place.volume));
        case(AnomalyKind::Corrupt(bad), place)
    }
}

/// Whether every volume looked, and none has the file.
const fn is_absence(kind: &AnomalyKind) -> bool {
    matches!(kind, AnomalyKind::Missing | AnomalyKind::Incomplete)
}
