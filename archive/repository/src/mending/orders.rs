//! Orders of people for repairs: which anomalies, and whether they are more than the brake allows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use archive_db::DbError;
use archive_ledger::anomalies::{AnomalyRow, needs_repair};
use archive_model::{AnomalyKind, FileName, ReplicaId};
use archive_rpc::answers::WorkProgress;
use archive_rpc::{CallError, CallErrorKind};
use tokio::sync::mpsc;

use crate::preserver::Preserver;
use crate::tables::{feed_rows, with_tables};

/// The files of an order.
#[derive(Clone, Debug)]
pub(crate) enum RepairSelection {
    /// All files that can be repaired.
    All,
    /// The named files, with all their anomalies.
    Names(BTreeSet<FileName>),
}

/// The amount of repairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RepairAmount {
    files: u64,
    by_replica: BTreeMap<ReplicaId, u64>,
}

impl Preserver {
    /// Refuses repairs that exceed the brake, unless the caller confirms their number, which must be right.
    pub(crate) async fn allow_repair(
        &self,
        which: &RepairSelection,
        confirm: u64,
    ) -> Result<(), CallError> {
        let own = self.clone();
        let which = which.clone();
        let of = which.clone();
        let amount = with_tables(move || own.amount(&of)).await?;
        let over = amount.by_replica.iter().find_map(|(replica, count)| {
            let brake = self.policy.brake_limit(self.files_of(replica));
            (*count > brake).then_some((replica, *count, brake))
        });
        let files = amount.files;
        let command = match which {
            RepairSelection::All => format!("holdfast repair --all --confirm {files}"),
            RepairSelection::Names(_) => format!("holdfast repair NAME... --confirm {files}"),
        };
        match over {
            _ if confirm == files && files > 0 => Ok(()),
            Some((replica, count, brake)) => Err(CallErrorKind::Mismatch.to_error(format!(
                "{count} files of replica {replica} would be repaired, more than {brake}; find the reason, then `{command}`"
            ))),
            None if confirm == 0 => Ok(()),
            None => Err(CallErrorKind::Mismatch.to_error(format!(
                "{files} files would be repaired, not {confirm}; look again, then `{command}`"
            ))),
        }
    }

    fn amount(&self, which: &RepairSelection) -> Result<RepairAmount, DbError> {
        let mut amount = RepairAmount::default();
        let mut last = None;
        let mut of = BTreeSet::new();
        self.each_after(which, None, |row| {
            if row.filed.kind == AnomalyKind::Incomplete {
                // No damage: incomplete stores do not indicate a bad disk.
                return true;
            }
            if last.as_ref() != Some(&row.file) {
                last = Some(row.file.clone());
                amount.files += 1;
                of.clear();
            }
            if of.insert(row.replica.clone()) {
                *amount.by_replica.entry(row.replica).or_default() += 1;
            }
            true
        })?;
        Ok(amount)
    }

    /// Sends every selected row, sorted by file, as long as the receiver is there.
    pub(crate) async fn send_rows(
        &self,
        which: RepairSelection,
        rows: mpsc::Sender<AnomalyRow>,
    ) -> Result<(), CallError> {
        let own = self.clone();
        let mut last = None;
        feed_rows(&rows, move |outlet| {
            let after = last.take();
            let mut progress = WorkProgress::Done;
            own.each_after(&which, after.as_ref(), |row| {
                let is_taken = outlet.send_message(row.clone());
                if !is_taken {
                    (last, progress) = (Some(row), WorkProgress::Paused);
                }
                is_taken
            })?;
            Ok(progress)
        })
        .await
    }

    /// Returns whether an anomaly is still open.
    pub(crate) async fn is_open(&self, row: &AnomalyRow) -> Result<bool, CallError> {
        let filed = self.filed_anomalies(&row.file).await?;
        let is_it =
            |other: &AnomalyRow| other.filed.id == row.filed.id && other.filed.accepted.is_none();
        Ok(filed.iter().any(is_it))
    }

    /// Passes every selected row after `last`, sorted by file, to `take` until that returns `false`.
    fn each_after(
        &self,
        which: &RepairSelection,
        last: Option<&AnomalyRow>,
        mut take: impl FnMut(AnomalyRow) -> bool,
    ) -> Result<(), DbError> {
        let anomalies = Arc::clone(&self.archive.anomalies);
        match which {
            RepairSelection::All => {
                for row in anomalies.rows_after(last)? {
                    let row = row?;
                    let kind = &row.filed.kind;
                    // An anomaly of unknown extent cannot be repaired.
                    let can = needs_repair(kind)
                        || matches!(kind, AnomalyKind::Lost(_) | AnomalyKind::Duplicate(_))
                        || (*kind == AnomalyKind::Unexpected
                            && self.is_wanted(&row.file, &row.replica)?);
                    if can && row.filed.accepted.is_none() && !take(row) {
                        break;
                    }
                }
            }
            RepairSelection::Names(names) => {
                let is_next = |name: &&FileName| last.is_none_or(|last| **name >= last.file);
                for name in names.iter().filter(is_next) {
                    for row in anomalies.rows_of(name)? {
                        let is_after = last.is_none_or(|last| place(&row) > place(last));
                        if is_after && row.filed.accepted.is_none() && !take(row) {
                            return Ok(());
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the place of a row in the order of the table.
fn place(row: &AnomalyRow) -> (&FileName, &ReplicaId, String) {
    (&row.file, &row.replica, row.filed.slot_key())
}

#[cfg(test)]
mod tests {
    use archive_daemon::clock::ManualClock;
    use archive_ledger::admin::Admin;
    use archive_ledger::anomalies::{Filing, Look, LookQuality};
    use archive_model::{CopyPlace, Finder, Groups};
    use jiff::Timestamp;
    use tokio::task::spawn_blocking;
    use tools_testing::in_time;

    use super::*;
    use crate::preserver::testing::preserver;

    /// Returns the ids for a reader who takes nothing before the walk has paused, which is after one row more than
    /// there is `room` for.
    async fn read(own: &Preserver, which: RepairSelection, room: usize) -> Vec<u64> {
        let (rows, mut received) = mpsc::channel::<AnomalyRow>(room);
        let reading = async {
            let mut ids = Vec::new();
            loop {
                // The runtime has one blocking thread, which is free once the walk has paused, or is finished.
                spawn_blocking(|| ()).await.unwrap();
                match received.recv().await {
                    Some(row) => ids.push(row.filed.id),
                    None => return ids,
                }
                assert!(ids.len() < 20, "it never ends: {ids:?}");
            }
        };
        let (walked, ids) = tokio::join!(own.send_rows(which, rows), reading);
        walked.unwrap();
        ids
    }

    /// Fails if a row is left out, or comes twice, because the repair paused.
    #[test]
    fn rows_continue_after_each_pause() {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
        let name = |text: &str| FileName::new(text).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(in_time(async {
            let own = preserver(&admin, &hand);
            let damage = vec![
                AnomalyKind::Corrupt(Groups::all(1)),
                AnomalyKind::Unreadable(Groups::all(1)),
            ];
            for (file, replica, found) in [
                ("a", "one", damage.clone()),
                ("a", "two", vec![AnomalyKind::Missing]),
                ("b", "two", damage.clone()),
                ("c", "one", vec![AnomalyKind::Missing]),
                ("c", "two", damage),
            ] {
                let filing = Filing {
                    file: &name(file),
                    replica: &replica.parse().unwrap(),
                    who: "repository/kb",
                };
                let look = Look {
                    found,
                    quality: LookQuality::Bytes,
                    by: Finder::Scrub,
                    is_second: true,
                    size: 65536,
                    place: Some(CopyPlace {
                        node: "n".parse().unwrap(),
                        volume: "v".parse().unwrap(),
                    }),
                };
                own.archive.anomalies.file_look(filing, &look).unwrap();
            }
            let rows: Vec<_> = own
                .archive
                .anomalies
                .list_rows()
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert_eq!(rows.len(), 8, "{rows:?}");
            let named = BTreeSet::from([name("a"), name("c")]);
            for (which, is_wanted) in [
                (RepairSelection::All, [true; 3]),
                (RepairSelection::Names(named), [true, false, true]),
            ] {
                let is_wanted = |row: &&AnomalyRow| {
                    let at = ["a", "b", "c"]
                        .iter()
                        .position(|file| row.file == name(file));
                    is_wanted[at.unwrap()]
                };
                let expected: Vec<_> = rows
                    .iter()
                    .filter(is_wanted)
                    .map(|row| row.filed.id)
                    .collect();
                for room in 1..expected.len() {
                    assert_eq!(
                        read(&own, which.clone(), room).await,
                        expected,
                        "{which:?}, {room}"
                    );
                }
            }
        }));
    }
}
