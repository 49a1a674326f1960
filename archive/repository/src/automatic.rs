//! Automatic repair of what scrubs and scheduled checks have found, if the policy allows it.
//!
//! Owns the watch: findings of nodes are filed, states of volumes are stored, and for every open anomaly the pure
//! policy ([`policy::decide`]) decides whether it is confirmed, repaired or held. The policy is asked again before each
//! step, so that a brake stops a repair that has begun. Long work runs in tasks of its own, a few at a time; the watch
//! only starts it.
//!
//! Not promised: that nothing is done twice after a restart. Confirming and repairing twice does no harm.

mod findings;
mod held;
mod steps;
mod turn;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::worker::rest_after;
use archive_daemon::{Worker, WorkerStep, WorkerStepError};
use archive_db::DbError;
use archive_decisions::repair::policy::{Case, RepairDecision, Surroundings, decide_repair};
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{AnomalyKind, Backoff, Finder, NodeKey, NodeState, ReplicaId, time_after};
use archive_rpc::CallError;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use findings::NodeFindings;

use crate::preserver::{LookContext, Preserver};
use crate::tables::with_tables;
pub(crate) use volumes::Volumes;

/// The time between two looks at nodes and anomalies.
const PAUSE: Duration = Duration::from_secs(1);

/// The rest after a round, as a multiple of the time that the round took.
const REST_SHARE: u32 = 4;

/// The most confirmations and repairs at once.
const AT_ONCE: usize = 4;

/// The pause after a failed repair; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_mins(1);

/// The longest pause after failed repairs.
const LONGEST_PAUSE: Duration = Duration::from_hours(6);

/// The worker that repairs automatically.
pub(crate) struct Automatic {
    own: Preserver,
    volumes: Arc<Volumes>,
    findings: Arc<NodeFindings>,
    hands: Arc<Mutex<RepairsUnderWay>>,
    /// The anomaly that was started last: the next round continues after it.
    last: Option<AnomalyRow>,
}

/// The repairs under way, and those that wait after a failure.
#[derive(Debug, Default)]
struct RepairsUnderWay {
    busy: BTreeSet<u64>,
    /// The end of the pause, and the pauses that follow.
    resting: BTreeMap<u64, (Timestamp, Backoff)>,
}

impl Automatic {
    pub(crate) fn new(own: Preserver, volumes: Arc<Volumes>) -> Self {
        Self {
            own,
            volumes,
            findings: Arc::default(),
            hands: Arc::default(),
            last: None,
        }
    }

    /// Looks at the nodes of every replica: their findings, and the states of their volumes.
    async fn watch(&mut self) -> Result<(), CallError> {
        for spec in self.own.archive.in_service() {
            let replica = &spec.id;
            let Some(Ok(nodes)) = self.own.archive.calls.replicas.last_in_service(replica) else {
                continue;
            };
            self.show_oldest(replica, &nodes);
            let volumes = Arc::clone(&self.volumes);
            let of = replica.clone();
            let seen = nodes.clone();
            let now = self.own.archive.calls.clock.now();
            with_tables(move || volumes.note_seen(&of, &seen, now)).await?;
            for node in nodes.into_iter().filter(|node| node.alive) {
                let key = NodeKey {
                    replica: replica.clone(),
                    node: node.node.clone(),
                };
                self.file_findings(key, node.findings_stamp);
            }
        }
        Ok(())
    }

    fn show_oldest(&self, replica: &ReplicaId, nodes: &[NodeState]) {
        let now = self.own.archive.calls.clock.now();
        let ages = nodes.iter().map(|node| node.oldest_verification);
        let ages = ages.map(|oldest| oldest.map(|oldest| now.duration_since(oldest).as_secs()));
        let ages: Option<Vec<i64>> = ages.collect();
        let oldest = ages.and_then(|ages| ages.into_iter().max());
        self.own.instruments.show_oldest(replica, oldest);
    }

    /// Files what is new among the findings of a node, in a task of its own: however many there are, the others are
    /// repaired meanwhile.
    fn file_findings(&self, key: NodeKey, stamp: u64) {
        let now = self.own.archive.now();
        let Some(filed) = self.findings.take_turn(&key, stamp, now) else {
            return;
        };
        let own = self.own.clone();
        let findings = Arc::clone(&self.findings);
        let look_context = self.look_context(Finder::Scrub, false);
        let stop = self.own.archive.tasks.stop_token();
        self.own.archive.tasks.spawn_once("findings", async move {
            let begin = own.archive.calls.clock.instant();
            let filing = own.file_findings(&key, filed, &look_context);
            let (filed, ended) = tokio::select! {
                () = stop.cancelled() => return,
                ended = Box::pin(filing) => ended,
            };
            if let Err(error) = &ended {
                let NodeKey { replica, node } = &key;
                tracing::warn!(%replica, %node, %error, "cannot read the findings of a node");
            }
            let took = own.archive.calls.clock.elapsed_since(begin);
            let rest = rest_after(took, REST_SHARE, PAUSE);
            let stamp = ended.is_ok().then_some(stamp);
            findings.end_turn(key, filed, stamp, time_after(own.archive.now(), rest));
        });
    }

    /// Asks the policy about every open anomaly, and starts what it decides. No table is read while no anomaly is open.
    ///
    /// While one is, each round reads all that are open. The answer depends on the time, on the states of volumes, on
    /// the record of the file, on how many anomalies were found that day, and on the end of other repairs: a wake-up
    /// for each of these could be missed, and a missed one would leave damage unrepaired. [`rest_after`] bounds the
    /// share of time.
    async fn hand_out(&mut self) -> Result<(), CallError> {
        let kinds = self.own.archive.anomalies.count_kinds();
        if kinds.values().all(|count| *count == 0) {
            return Ok(());
        }
        let own = self.own.clone();
        let hands = Arc::clone(&self.hands);
        let volumes = Arc::clone(&self.volumes);
        let last = self.last.clone();
        let work = with_tables(move || {
            let now = own.archive.calls.clock.now();
            let free = AT_ONCE.saturating_sub(locked(&hands).busy.len());
            turn::next(&own.archive.anomalies, last.as_ref(), free, |row| {
                if row.filed.accepted.is_some() || !locked(&hands).is_free(row.filed.id, now) {
                    return Ok(None);
                }
                Ok(match own.decide_repair(row, &volumes, now)? {
                    RepairDecision::RepairNow => Some(turn::RepairStep::Repair),
                    RepairDecision::ConfirmAt(at) if at <= now => Some(turn::RepairStep::Confirm),
                    RepairDecision::ConfirmAt(_)
                    | RepairDecision::Hold(_)
                    | RepairDecision::AskOfficer => {
                        // The anomaly is not repaired here; but the coordinator may have copied the file again.
                        let is_absence = matches!(
                            row.filed.kind,
                            AnomalyKind::Missing | AnomalyKind::Incomplete
                        );
                        let is_back = is_absence && own.is_back(row)?;
                        is_back.then_some(turn::RepairStep::Confirm)
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

    /// Confirms an anomaly, or repairs it, in a task of its own.
    fn start(&self, row: AnomalyRow, what: turn::RepairStep) {
        let id = row.filed.id;
        locked(&self.hands).busy.insert(id);
        let own = self.own.clone();
        let hands = Arc::clone(&self.hands);
        let volumes = Arc::clone(&self.volumes);
        let look_context = self.look_context(row.filed.found_by, true);
        let stop = self.own.archive.tasks.stop_token();
        self.own.archive.tasks.spawn_once("automatic-repair", async move {
            let work = async {
                match what {
                    turn::RepairStep::Repair => own.repair_by_itself(&row).await,
                    turn::RepairStep::Confirm => own.confirm_anomaly(&row, &look_context, volumes).await,
                }
            };
            let done = tokio::select! {
                () = stop.cancelled() => Ok(true),
                done = Box::pin(work) => done,
            };
            let is_done = done.unwrap_or_else(|error| {
                tracing::warn!(file = %row.file, replica = %row.replica, %error, "an automatic repair failed");
                false
            });
            locked(&hands).ended(id, is_done, own.archive.calls.clock.now());
        });
    }

    fn look_context(&self, finder: Finder, is_second: bool) -> LookContext {
        LookContext {
            who: Arc::clone(&self.own.who),
            finder,
            is_second,
        }
    }
}

impl Preserver {
    /// Returns the decision of the policy for one anomaly at this time.
    pub(crate) fn decide_repair(
        &self,
        row: &AnomalyRow,
        volumes: &Volumes,
        now: Timestamp,
    ) -> Result<RepairDecision, DbError> {
        let filed = &row.filed;
        let place = filed.node.as_ref().zip(filed.volume.as_ref());
        let changed = place
            .and_then(|(node, volume)| volumes.note_changed(&row.replica, node, volume.as_str()));
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
            found_today: self.archive.anomalies.found_today(&row.replica),
            volume_changed: changed,
        };
        Ok(decide_repair(&case, around, &self.policy, now))
    }

    /// Returns the number of files of a replica.
    pub(crate) fn files_of(&self, replica: &ReplicaId) -> u64 {
        let counts = self.archive.admin.counts();
        counts
            .and_then(|counts| counts.in_replica.get(replica).copied())
            .unwrap_or_default()
    }

    /// Returns whether a file that is filed as missing is back.
    fn is_back(&self, row: &AnomalyRow) -> Result<bool, DbError> {
        let record = self.archive.admin.file(&row.file)?.map(|row| row.record);
        let copy = record.and_then(|record| record.replicas.get(&row.replica).cloned());
        Ok(copy.is_some_and(|copy| copy.state.is_completed() && copy.since > row.filed.seen))
    }
}

impl RepairsUnderWay {
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
        let rest = self.resting.entry(id);
        let (until, backoff) =
            rest.or_insert_with(|| (now, Backoff::new(FIRST_PAUSE, LONGEST_PAUSE)));
        *until = time_after(now, backoff.next_pause());
        // Anomalies that were closed in the meantime are not asked for again.
        self.resting
            .retain(|_, (until, _)| now < time_after(*until, LONGEST_PAUSE));
    }
}

impl Worker for Automatic {
    const NAME: &'static str = "automatic-repair";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let begin = self.own.archive.calls.clock.instant();
        Box::pin(self.watch()).await?;
        self.hand_out().await?;
        if let Some(counts) = self.own.archive.admin.counts() {
            let standing = self.own.archive.standing.current_snapshot();
            self.own.instruments.show_counts(&counts, &standing);
        }
        self.own
            .instruments
            .show_anomalies(&self.own.archive.anomalies.count_kinds());
        // With very many anomalies a round takes long.
        let took = self.own.archive.calls.clock.elapsed_since(begin);
        Ok(WorkerStep::Idle(rest_after(took, REST_SHARE, PAUSE)))
    }
}

fn locked(hands: &Mutex<RepairsUnderWay>) -> MutexGuard<'_, RepairsUnderWay> {
    hands.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a failing repair is repeated at once, or never again.
    #[test]
    fn failed_repair_rests_longer_each_time() {
        let mut hands = RepairsUnderWay::default();
        let mut now = Timestamp::from_second(1_000_000_000).unwrap();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            hands.busy.insert(7);
            assert!(!hands.is_free(7, now), "under way");
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
