//! Repairs by itself what scrubs and scheduled checks have found, if the rule for it says so.
//!
//! Owns the watch: what nodes find is filed, what volumes do is remembered, and of every open anomaly the pure rule
//! ([`policy::decide`]) says whether it is confirmed, repaired or held. It is asked anew before each step, so a brake
//! stops what has begun. Work that takes long lives in tasks of its own, a few at a time; this only hands it out.
//!
//! Not promised: that nothing is done twice after a restart. Confirming and repairing twice harms nobody.

mod held;
mod turn;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archive_daemon::{Step, Worker, WorkerError};
use archive_db::DbError;
use archive_decisions::repair::policy::{Case, Decision, Surroundings, decide};
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{
    AnomalyKind, CopyCondition, Finder, NodeId, NodeState, RepairOutcome, ReplicaId,
};
use archive_rpc::CallError;
use jiff::{SignedDuration, Timestamp};

use crate::mending::Mandate;
use crate::preserver::{Errand, Preserver};
use crate::tables::with_tables;
pub(crate) use volumes::Volumes;

/// How often nodes and anomalies are looked at.
const PAUSE: Duration = Duration::from_secs(1);

/// Confirmations and repairs at once.
const AT_ONCE: usize = 4;

/// The pause after a repair that did not come to its end; doubled each time.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_mins(1);

/// The longest such pause.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(6);

/// The worker.
pub(crate) struct Automatic {
    own: Preserver,
    volumes: Arc<Volumes>,
    /// What each node's findings were when they were last filed.
    stamps: BTreeMap<(ReplicaId, NodeId), u64>,
    hands: Arc<Mutex<Hands>>,
    /// What was handed out last: the next round goes on after it.
    last: Option<AnomalyRow>,
}

/// What is being done, and what is not to be done again yet.
#[derive(Debug, Default)]
struct Hands {
    busy: BTreeSet<u64>,
    /// Until when, after how many failures.
    resting: BTreeMap<u64, (Timestamp, u32)>,
}

impl Automatic {
    pub(crate) fn new(own: Preserver, volumes: Arc<Volumes>) -> Self {
        Self {
            own,
            volumes,
            stamps: BTreeMap::new(),
            hands: Arc::default(),
            last: None,
        }
    }

    /// Looks at the nodes of every replica: what they find, how their volumes are.
    async fn watch(&mut self) -> Result<(), CallError> {
        for spec in self.own.in_service() {
            let replica = &spec.id;
            let reports = self.own.replicas.nodes_in_service(replica);
            // A monitor that does not answer is seen by everyone who asks it.
            let Ok(Ok(nodes)) = self.own.clock.timeout(self.own.stall, reports).await else {
                continue;
            };
            self.show_oldest(replica, &nodes);
            let (volumes, of, seen) = (Arc::clone(&self.volumes), replica.clone(), nodes.clone());
            let now = self.own.clock.now();
            with_tables(move || volumes.saw(&of, &seen, now)).await?;
            for node in nodes.into_iter().filter(|node| node.alive) {
                let key = (replica.clone(), node.node.clone());
                if self.stamps.get(&key) == Some(&node.findings_stamp) {
                    continue;
                }
                match self.file_findings(replica, &node.node).await {
                    Ok(()) => drop(self.stamps.insert(key, node.findings_stamp)),
                    Err(error) => {
                        tracing::warn!(%replica, node = %node.node, %error, "what a node has found cannot be read");
                    }
                }
            }
        }
        Ok(())
    }

    fn show_oldest(&self, replica: &ReplicaId, nodes: &[NodeState]) {
        let now = self.own.clock.now();
        let ages = nodes.iter().map(|node| node.oldest_verification);
        let ages = ages.map(|oldest| oldest.map(|oldest| now.duration_since(oldest).as_secs()));
        let ages: Option<Vec<i64>> = ages.collect();
        let oldest = ages.and_then(|ages| ages.into_iter().max());
        self.own.instruments.show_oldest(replica, oldest);
    }

    /// Files what a node's scrub has found. What seems missing or unexpected is looked at once more.
    async fn file_findings(&self, replica: &ReplicaId, node: &NodeId) -> Result<(), CallError> {
        let late = |late: archive_daemon::clock::TimedOut| {
            archive_rpc::Kind::TimedOut.error(late.to_string())
        };
        let (clock, stall) = (&self.own.clock, self.own.stall);
        let opening = self.own.replicas.findings(replica, node);
        let mut pages = clock.timeout(stall, opening).await.map_err(late)??;
        let errand = self.errand(Finder::Scrub, false);
        loop {
            let page = clock.timeout(stall, pages.next()).await.map_err(late)??;
            for found in page.copies {
                match found.condition {
                    CopyCondition::Present => {}
                    CopyCondition::Damaged { .. } => {
                        let filing = self
                            .own
                            .file_verified(replica, &found.name, &found, &errand);
                        Box::pin(filing).await?;
                    }
                    CopyCondition::Missing | CopyCondition::Unexpected => {
                        let looking = self.own.look_and_file(replica, &found.name, &errand);
                        Box::pin(looking).await?;
                    }
                }
            }
            if page.end.is_some() {
                return Ok(());
            }
        }
    }

    /// Asks the rule about every open anomaly, and hands out what it says.
    async fn hand_out(&mut self) -> Result<(), CallError> {
        let (own, hands, volumes) = (
            self.own.clone(),
            Arc::clone(&self.hands),
            Arc::clone(&self.volumes),
        );
        let last = self.last.clone();
        let work = with_tables(move || {
            let now = own.clock.now();
            let free = AT_ONCE.saturating_sub(locked(&hands).busy.len());
            turn::next(&own.anomalies, last.as_ref(), free, |row| {
                if row.filed.accepted.is_some() || !locked(&hands).is_free(row.filed.id, now) {
                    return Ok(None);
                }
                Ok(match own.decide(row, &volumes, now)? {
                    Decision::RepairNow => Some(turn::Step::Repair),
                    Decision::ConfirmAt(at) if at <= now => Some(turn::Step::Confirm),
                    Decision::ConfirmAt(_) | Decision::Hold(_) | Decision::AskOfficer => {
                        // Nothing repairs it by itself; but it may be brought back by the coordinator.
                        let is_absence = matches!(
                            row.filed.kind,
                            AnomalyKind::Missing | AnomalyKind::Incomplete
                        );
                        let is_back = is_absence && own.is_back(row)?;
                        is_back.then_some(turn::Step::Confirm)
                    }
                })
            })
        })
        .await?;
        for (row, step) in work {
            self.last = Some(row.clone());
            self.start(row, step);
        }
        Ok(())
    }

    /// Confirms, or repairs, in a task of its own.
    fn start(&self, row: AnomalyRow, what: turn::Step) {
        let id = row.filed.id;
        locked(&self.hands).busy.insert(id);
        let (own, hands) = (self.own.clone(), Arc::clone(&self.hands));
        let errand = self.errand(row.filed.found_by, true);
        let stop = self.own.tasks.stop();
        self.own.tasks.spawn_once("automatic-repair", async move {
            let work = async {
                match what {
                    turn::Step::Repair => own.repair_by_itself(&row).await,
                    turn::Step::Confirm => own.confirm(&row, &errand).await,
                }
            };
            let done = tokio::select! {
                () = stop.cancelled() => Ok(true),
                done = Box::pin(work) => done,
            };
            let is_done = done.unwrap_or_else(|error| {
                tracing::warn!(file = %row.file, replica = %row.replica, %error, "automatic repair failed");
                false
            });
            locked(&hands).ended(id, is_done, own.clock.now());
        });
    }

    fn errand(&self, finder: Finder, is_second: bool) -> Errand {
        Errand {
            who: Arc::clone(&self.own.own),
            finder,
            is_second,
        }
    }
}

impl Preserver {
    /// What the rule for automatic repair says of one anomaly at this time.
    pub(crate) fn decide(
        &self,
        row: &AnomalyRow,
        volumes: &Volumes,
        now: Timestamp,
    ) -> Result<Decision, DbError> {
        let filed = &row.filed;
        let place = filed.node.as_ref().zip(filed.volume.as_ref());
        let changed = match place {
            Some((node, volume)) => volumes.changed(&row.replica, node, volume.as_str())?,
            None => None,
        };
        let case = Case {
            kind: filed.kind.clone(),
            found_by: filed.found_by.into(),
            found: filed.since,
            confirmed: filed.confirmed,
            is_wanted: filed.kind != AnomalyKind::Unexpected
                || self.is_wanted(&row.file, &row.replica)?,
        };
        let around = Surroundings {
            files: self.files_of(&row.replica),
            found_today: self.anomalies.found_today(&row.replica),
            volume_changed: changed,
        };
        Ok(decide(&case, around, &self.policy, now))
    }

    /// How many files a replica has.
    pub(crate) fn files_of(&self, replica: &ReplicaId) -> u64 {
        let counts = self.admin.counts();
        counts
            .and_then(|counts| counts.in_replica.get(replica).copied())
            .unwrap_or_default()
    }

    /// Whether a file that is filed as missing was brought back since.
    fn is_back(&self, row: &AnomalyRow) -> Result<bool, DbError> {
        let record = self.admin.file(&row.file)?.map(|row| row.record);
        let copy = record.and_then(|record| record.replicas.get(&row.replica).cloned());
        Ok(copy.is_some_and(|copy| copy.state.is_completed() && copy.since > row.filed.seen))
    }

    /// Looks a second time, past every cache; `false`: that told nothing, because nobody could look.
    async fn confirm(&self, row: &AnomalyRow, errand: &Errand) -> Result<bool, CallError> {
        let place = row.filed.node.as_ref().zip(row.filed.volume.as_ref());
        let is_damage = matches!(
            row.filed.kind,
            AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_)
        );
        if let (true, Some((node, volume))) = (is_damage, place) {
            let place = (&row.replica, node, Some(volume));
            let copy = self
                .verify(place, &row.file, row.filed.size, |_| {})
                .await?;
            self.file_verified(&row.replica, &row.file, &copy, errand)
                .await?;
        } else {
            self.look_and_file(&row.replica, &row.file, errand).await?;
        }
        let now = self.filed(&row.file).await?;
        Ok(turn::has_told(row, &now))
    }

    async fn repair_by_itself(&self, row: &AnomalyRow) -> Result<bool, CallError> {
        let mandate = Mandate {
            who: Arc::clone(&self.own),
            why: format!("a{} was found by {}", row.filed.id, row.filed.found_by),
            is_dry: false,
        };
        let done = self.repair(row, &mandate, &|_| {}).await?;
        let (file, replica, what) = (&row.file, &row.replica, &done.what);
        tracing::info!(%file, %replica, outcome = %done.outcome, what, "automatic repair");
        Ok(match done.outcome {
            RepairOutcome::Repaired | RepairOutcome::Nothing => true,
            RepairOutcome::Planned
            | RepairOutcome::Progress
            | RepairOutcome::Lost
            | RepairOutcome::Waiting
            | RepairOutcome::Officer
            | RepairOutcome::Failed => false,
        })
    }
}

impl Hands {
    fn is_free(&self, id: u64, now: Timestamp) -> bool {
        let is_resting = self.resting.get(&id).is_some_and(|(until, _)| *until > now);
        !is_resting && !self.busy.contains(&id)
    }

    fn ended(&mut self, id: u64, is_done: bool, now: Timestamp) {
        self.busy.remove(&id);
        if is_done {
            self.resting.remove(&id);
            return;
        }
        let failures = self.resting.get(&id).map_or(0, |(_, failures)| *failures);
        let pause = FIRST_PAUSE
            .saturating_mul(1 << failures.min(20))
            .min(LONGEST_PAUSE);
        let until = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        self.resting.insert(id, (until, failures.saturating_add(1)));
        // Those that were closed meanwhile are not asked for again.
        self.resting
            .retain(|_, (until, _)| now.duration_since(*until) < LONGEST_PAUSE);
    }
}

impl Worker for Automatic {
    const NAME: &'static str = "automatic-repair";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        let begin = self.own.clock.instant();
        Box::pin(self.watch()).await?;
        self.hand_out().await?;
        if let Some(counts) = self.own.admin.counts() {
            let standing = self.own.standing.now();
            self.own.instruments.show_counts(&counts, &standing);
        }
        self.own
            .instruments
            .show_anomalies(&self.own.anomalies.kinds());
        // With very many anomalies a round takes long: most of the time is for others.
        let took = self.own.clock.instant().saturating_duration_since(begin);
        Ok(Step::Idle(PAUSE.max(took.saturating_mul(4))))
    }
}

fn locked(hands: &Mutex<Hands>) -> MutexGuard<'_, Hands> {
    hands.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_rests_longer_each_time_and_never_for_ever() {
        let mut hands = Hands::default();
        let mut now = Timestamp::from_second(1_000_000_000).unwrap();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            hands.busy.insert(7);
            assert!(!hands.is_free(7, now), "at it");
            hands.ended(7, false, now);
            let (until, _) = hands.resting[&7];
            assert!(!hands.is_free(7, now) && hands.is_free(7, until));
            pauses.push(until.duration_since(now).as_mins());
            now = until;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360]);
        hands.ended(7, true, now);
        assert!(hands.is_free(7, now) && hands.resting.is_empty());
    }
}
