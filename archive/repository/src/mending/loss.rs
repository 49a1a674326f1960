//! Loss: bytes that are good in no replica are filed as lost as soon as that is known, by the check that found the last
//! copy bad or by a repair. Nothing is touched.
//!
//! Owns that no file counts as lost whose store was never complete: it was acknowledged to no depositor.

use std::sync::Arc;

use archive_decisions::repair::{
    ContentState, NoRepairReason, Patient, RepairPlan, ReplicaContent, plan_repair,
};
use archive_decisions::store::{FileRecord, NamePhase, StoringEvent};
use archive_ledger::anomalies::{AnomalyRow, Look, LookQuality, needs_repair};
use archive_model::{AnomalyKind, FileName, Finder, Groups, ReplicaId, ReplicaKind};
use archive_rpc::CallError;
use archive_stores::assemble::WantedFile;
use jiff::Timestamp;

use super::{RepairCase, RepairContext, RepairOutcome, RepairReport, is_absence};
use crate::preserver::{LookContext, Preserver};

impl Preserver {
    /// Files groups that a repair found good nowhere. Returns `None` if a copy was stored in the meantime: plan again.
    pub(super) async fn note_loss(
        &self,
        case: &RepairCase,
        ranges: &[(u64, u64)],
        known: &[ReplicaContent],
        before: Option<&FileRecord>,
        repair_context: &RepairContext,
    ) -> Result<Option<RepairReport>, CallError> {
        let replica = &case.patient.replica;
        let file = &case.patient.file;
        let done = if before.is_some_and(|record| record.phase == NamePhase::Incomplete) {
            RepairReport::new(
                RepairOutcome::Nothing,
                NoRepairReason::Incomplete.to_string(),
            )
        } else {
            let look_context = LookContext {
                who: Arc::clone(&repair_context.who),
                finder: Finder::Check,
                is_second: false,
            };
            let filing = self.file_lost(&case.patient, ranges, before, &look_context);
            let Some(rows) = filing.await? else {
                return Ok(None);
            };
            let kind = rows.into_iter().map(|row| row.filed.kind.to_string());
            let kind = kind.collect::<Vec<_>>().join(", ");
            let what = format!("{kind}: good in no replica; nothing was touched");
            RepairReport::new(RepairOutcome::Lost, what)
        };
        if is_absence(&case.patient.kind) {
            // Absent copies do not count any more, so that a depositor who still has the bytes can store them again.
            let absent = known
                .iter()
                .filter(|copy| copy.state == ContentState::Absent);
            let absent = absent.map(|copy| &copy.replica);
            for replica in absent.chain([replica]) {
                let replica = replica.clone();
                let event = StoringEvent::Gone { replica };
                self.archive.mail.send_event(file.clone(), event).await;
            }
        }
        Ok(Some(done))
    }

    /// Files bytes of a file as lost that are good in no replica, after a new finding. Returns what was filed.
    pub(crate) async fn file_losses(
        &self,
        name: &FileName,
        look_context: &LookContext,
    ) -> Result<Vec<AnomalyRow>, CallError> {
        let Some(before) = self.file_record(name).await? else {
            return Ok(Vec::new());
        };
        let Some(content) = before.content.clone() else {
            return Ok(Vec::new());
        };
        let bytes = self.byte_replicas();
        let filed = self.filed_anomalies(name).await?;
        let wanted = WantedFile {
            name: name.clone(),
            root: content.root,
            size: content.size,
        };
        let mut lost = Vec::new();
        for (replica, kind) in all_bad(&before, &bytes, &filed) {
            let copies = self.known_anomalies(&wanted, &replica).await?;
            let known: Vec<ReplicaContent> = copies.into_iter().map(|(known, _)| known).collect();
            let patient = Patient {
                file: name.clone(),
                size: content.size,
                replica,
                kind,
            };
            if let RepairPlan::Lost { ranges } = plan_repair(&patient, &known) {
                let filing = self.file_lost(&patient, &ranges, Some(&before), look_context);
                lost.extend(filing.await?.unwrap_or_default());
            }
        }
        Ok(lost)
    }

    /// Returns the replicas that keep bytes.
    fn byte_replicas(&self) -> Vec<ReplicaId> {
        let specs = self.archive.in_service().into_iter();
        let specs = specs.filter(|spec| spec.kind == ReplicaKind::Bitarchive);
        specs.map(|spec| spec.id).collect()
    }

    /// Files the loss. Returns `None` if a copy was stored since `before`, or found good, which may have what the
    /// others lost.
    async fn file_lost(
        &self,
        patient: &Patient,
        ranges: &[(u64, u64)],
        before: Option<&FileRecord>,
        look_context: &LookContext,
    ) -> Result<Option<Vec<AnomalyRow>>, CallError> {
        let look = Look {
            found: vec![AnomalyKind::Lost(ranges.to_vec())],
            quality: LookQuality::Nothing,
            by: look_context.finder,
            is_second: false,
            size: patient.size,
            place: None,
        };
        let stored = completions(before);
        let bytes = self.byte_replicas();
        // Another copy may have been read again in the meantime, and be good.
        let is_so = move |now: Option<&FileRecord>, filed: &[AnomalyRow]| {
            let is_bad = |now| !all_bad(now, &bytes, filed).is_empty();
            completions(now) == stored && now.is_none_or(is_bad)
        };
        let filing = self.file_while(&patient.replica, &patient.file, look, look_context, is_so);
        Ok(filing.await?.map(|found| found.open))
    }
}

/// Returns the replicas with bytes and the anomalies of their copies; nothing while a recorded copy is good as far as
/// is known, or if the store was never complete. Pure.
fn all_bad(
    record: &FileRecord,
    bytes: &[ReplicaId],
    filed: &[AnomalyRow],
) -> Vec<(ReplicaId, AnomalyKind)> {
    if record.phase == NamePhase::Incomplete {
        return Vec::new();
    }
    let mut bad = Vec::new();
    for replica in bytes {
        let of = filed.iter().filter(|row| row.replica == *replica);
        let mut of = of.filter(|row| needs_repair(&row.filed.kind)).peekable();
        let copy = record.replicas.get(replica);
        let is_recorded = copy.is_some_and(|copy| copy.state.is_completed());
        if of.peek().is_none() {
            if is_recorded {
                return Vec::new();
            }
            continue;
        }
        let damage = of.try_fold(Groups::none(), |all, row| {
            if let AnomalyKind::Corrupt(groups) | AnomalyKind::Unreadable(groups) = &row.filed.kind
            {
                Some(all.union(groups))
            } else {
                None
            }
        });
        let kind = damage.map_or(AnomalyKind::Missing, AnomalyKind::Corrupt);
        bad.push((replica.clone(), kind));
    }
    bad
}

/// Returns the recorded copies with their times: each that is stored again may have what the others lost.
fn completions(record: Option<&FileRecord>) -> Vec<(ReplicaId, Timestamp)> {
    let copies = record.into_iter().flat_map(|record| &record.replicas);
    copies
        .filter(|(_, copy)| copy.state.is_completed())
        .map(|(id, copy)| (id.clone(), copy.since))
        .collect()
}

#[cfg(test)]
mod tests {
    use archive_ledger::anomalies::AnomalyRecord;
    use archive_ledger::restore::testing::row;
    use archive_model::ReplicaState;

    use super::*;

    fn id(text: &str) -> ReplicaId {
        ReplicaId::new(text).unwrap()
    }

    fn filed(replica: &str, kind: AnomalyKind) -> AnomalyRow {
        AnomalyRow {
            file: FileName::new("a").unwrap(),
            replica: id(replica),
            filed: AnomalyRecord {
                id: 1,
                kind,
                size: 65536,
                node: None,
                volume: None,
                since: Timestamp::UNIX_EPOCH,
                seen: Timestamp::UNIX_EPOCH,
                confirmed: None,
                found_by: Finder::Check,
                accepted: None,
                note: None,
                is_first: true,
            },
            closed: None,
        }
    }

    /// Fails if a loss is looked for while a copy is good as far as is known, is not looked for once the last copy was
    /// found bad, or is looked for in a file that was acknowledged to no depositor.
    #[test]
    fn loss_is_sought_once_every_copy_is_bad() {
        let bytes = [id("one"), id("two")];
        let mut record = row("a", 7).record;
        let corrupt = |replica, of: &[u64]| {
            filed(replica, AnomalyKind::Corrupt(of.iter().copied().collect()))
        };
        let one = corrupt("one", &[1]);
        assert_eq!(all_bad(&record, &bytes, &[]), []);
        assert_eq!(all_bad(&record, &bytes, std::slice::from_ref(&one)), []);
        let two = filed("two", AnomalyKind::Unreadable(Groups::from_iter([2])));
        let more = corrupt("two", &[3]);
        let both = [
            (id("one"), AnomalyKind::Corrupt(Groups::from_iter([1]))),
            (id("two"), AnomalyKind::Corrupt(Groups::from_iter([2, 3]))),
        ];
        let rows = [one.clone(), more, two];
        assert_eq!(all_bad(&record, &bytes, &rows), both);
        let rows = [one.clone(), filed("two", AnomalyKind::Missing)];
        assert_eq!(
            all_bad(&record, &bytes, &rows)[1].1,
            AnomalyKind::Missing,
            "absent is more than damaged"
        );
        record.replicas.get_mut(&id("two")).unwrap().state =
            ReplicaState::Withdrawn("r1".to_owned());
        let rows = [one];
        assert_eq!(all_bad(&record, &bytes, &rows).len(), 1, "the only copy");
        record.phase = NamePhase::Incomplete;
        assert_eq!(all_bad(&record, &bytes, &rows), []);
    }
}
