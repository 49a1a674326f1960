//! The steps of an automatic repair: a second look, and the repair.

use std::sync::Arc;

use archive_decisions::repair::policy::RepairDecision;
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{AnomalyKind, RepairOutcome};
use archive_rpc::CallError;

use super::{Volumes, turn};
use crate::claims::NameAct;
use crate::mending::{RepairContext, RepairReport};
use crate::preserver::{LookContext, Preserver};
use crate::tables::with_tables;

impl Preserver {
    /// Looks a second time, past every cache. Returns `false` if that showed nothing, because a part was silent. Damage
    /// that may be repaired then is repaired at once: the same read has found its groups.
    pub(super) async fn confirm_anomaly(
        &self,
        row: &AnomalyRow,
        look_context: &LookContext,
        volumes: Arc<Volumes>,
    ) -> Result<bool, CallError> {
        let place = row.filed.place();
        let is_damage = matches!(
            row.filed.kind,
            AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_)
        );
        let (true, Some(place)) = (is_damage, place) else {
            self.look_and_file(&row.replica, &row.file, look_context)
                .await?;
            let now = self.filed_anomalies(&row.file).await?;
            return Ok(turn::is_decided(row, &now));
        };
        let selector = place.copy_selector(&row.replica);
        let size = row.filed.size;
        let reading = self.verify_and_file(selector, &row.file, size, look_context, |_| {});
        let (copy, _filed) = reading.await??;
        let claim = self.archive.claims.claim_name(&row.file, NameAct::Repair);
        // The anomaly is looked up under the claim: a repair since the read may have closed it.
        let now = self.filed_anomalies(&row.file).await?;
        let is_decided = turn::is_decided(row, &now);
        let confirmed = now.into_iter().find(|now| now.filed.id == row.filed.id);
        let (true, Some(row), Ok(_claim)) = (is_decided, confirmed, claim) else {
            return Ok(is_decided);
        };
        let own = self.clone();
        let of = row.clone();
        let decided =
            with_tables(move || own.decide_repair(&of, &volumes, own.archive.calls.clock.now()))
                .await?;
        if decided != RepairDecision::RepairNow || row.filed.accepted.is_some() {
            return Ok(true);
        }
        let repair_context = self.own_context(&row);
        let done = self
            .repair_claimed(&row, &repair_context, Some(copy), &|_| {})
            .await?;
        Ok(is_at_its_end(&row, &done))
    }

    /// Repairs an anomaly automatically. Returns `false` if the repair was not completed.
    pub(super) async fn repair_by_itself(&self, row: &AnomalyRow) -> Result<bool, CallError> {
        let done = self
            .repair_file(row, &self.own_context(row), &|_| {})
            .await?;
        Ok(is_at_its_end(row, &done))
    }

    /// Returns the context of an automatic repair of an anomaly.
    fn own_context(&self, row: &AnomalyRow) -> RepairContext {
        RepairContext {
            who: Arc::clone(&self.who),
            why: format!("a{} was found by {}", row.filed.id, row.filed.found_by),
            is_dry: false,
        }
    }
}

/// Returns whether a repair was completed; logs its outcome.
fn is_at_its_end(row: &AnomalyRow, done: &RepairReport) -> bool {
    let file = &row.file;
    let replica = &row.replica;
    let what = &done.what;
    tracing::info!(%file, %replica, outcome = %done.outcome, what, "automatic repair");
    matches!(
        done.outcome,
        RepairOutcome::Repaired | RepairOutcome::Nothing
    )
}

#[cfg(test)]
mod tests {
    use archive_decisions::repair::policy::RepairPolicy;
    use archive_ledger::anomalies::{Look, LookQuality};
    use archive_model::{CopyPlace, FileName, Finder, Groups};
    use archive_stores::scripted::{damaged, good, id};
    use jiff::SignedDuration;

    use super::*;
    use crate::preserver::tests::PreserverFixture;

    /// Fails if a damaged copy is read whole once to confirm the damage and once more to repair it.
    #[tokio::test]
    async fn one_reading_confirms_and_begins_a_repair() {
        let mut fixture = PreserverFixture::start(&["a"]).await;
        let policy = RepairPolicy {
            delay: SignedDuration::ZERO,
            ..RepairPolicy::default()
        };
        fixture.own.policy = Arc::new(policy);
        let copy = damaged("one", "volume-one", 7);
        fixture.scripted.lists("one", vec![copy]);
        let copy = good("two", "volume-two", 7);
        fixture.scripted.lists("two", vec![copy]);
        let own = &fixture.own;
        let file = FileName::new("a").unwrap();
        let look_context = |is_second| LookContext {
            who: "repository/kb".into(),
            finder: Finder::Scrub,
            is_second,
        };
        let look = Look {
            found: vec![AnomalyKind::Corrupt(Groups::all(7))],
            quality: LookQuality::Bytes,
            by: Finder::Scrub,
            is_second: false,
            size: 7,
            place: Some(CopyPlace {
                node: "one-1".parse().unwrap(),
                volume: "volume-one".parse().unwrap(),
            }),
        };
        let replica = id("one");
        let first = look_context(false);
        let found = own.file_look(&replica, &file, look, &first).await.unwrap();
        let volumes = Arc::new(Volumes::open(&own.archive.admin).unwrap());
        let row = &found.open[0];
        let ended = own
            .confirm_anomaly(row, &look_context(true), volumes)
            .await
            .unwrap();
        assert!(!ended, "its node mends nothing");
        assert_eq!(fixture.scripted.script().read, ["one"]);
        let now = own.filed_anomalies(&file).await.unwrap();
        let note = now[0].filed.note.clone().unwrap_or_default();
        assert!(!note.is_empty(), "a repair was tried");
    }
}
