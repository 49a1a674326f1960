//! Files that a walk meets too early: their name is not bound yet, or a copy is still being stored at the part that was
//! given up. These files are looked at again until they can be updated, or need not be; the walk does not end before.
//!
//! Only stores that began before the walk can be such files: later ones know which replicas and nodes are in service.

use archive_daemon::WorkerStepError;
use archive_db::DbError;
use archive_decisions::store::{FileRecord, NamePhase};
use archive_ledger::standing::Task;
use archive_model::{FileName, NodeId, ReplicaId};

use super::followed::FollowedFiles;
use super::{FileUpdate, MOST_WAITING, Pass, UpdateOutcome, WINDOW, tell, wanted};
use crate::people::People;
use crate::tables::with_tables;

impl Pass {
    /// Updates files, and notes the outcomes.
    pub(super) async fn update_pass(
        &mut self,
        people: &People,
        task: &Task,
        all: Vec<FileUpdate>,
    ) -> Result<(), WorkerStepError> {
        for wanted in all {
            let name = wanted.name.clone();
            let outcome = tell(people, task, wanted).await?;
            self.unbound.remove(&name);
            match outcome {
                UpdateOutcome::There => {}
                UpdateOutcome::Unknown | UpdateOutcome::Updated(None) => self.found += 1,
                UpdateOutcome::Updated(Some(changes)) => {
                    self.found += 1;
                    if let Some(row) = people.archive.admin_row(&name).await? {
                        self.open.add(row.record, changes);
                    }
                }
            }
        }
        Ok(())
    }

    /// Follows files that cannot be updated yet.
    pub(super) async fn follow_unbound(
        &mut self,
        people: &People,
        names: Vec<FileName>,
    ) -> Result<(), WorkerStepError> {
        let mut followed = Vec::new();
        for name in names {
            if self.unbound.contains(&name) {
                continue;
            }
            if self.unbound.len() + followed.len() >= MOST_WAITING {
                // A later pass finds it again.
                self.found += 1;
                continue;
            }
            let changes = people.follow_record(&name).await?;
            followed.push((name, changes));
        }
        if followed.is_empty() {
            return Ok(());
        }
        // What was decided before they are followed is in the rows then.
        people.wait_settled().await?;
        let admin = people.archive.admin.clone();
        let rows = with_tables(move || {
            let followed = followed.into_iter();
            let rows =
                followed.map(|(name, changes)| Ok::<_, DbError>((admin.file(&name)?, changes)));
            rows.collect::<Result<Vec<_>, _>>()
        });
        for (row, changes) in rows.await? {
            // A name that was given up begins anew.
            if let Some(row) = row {
                self.unbound.add(row.record, changes);
            }
        }
        Ok(())
    }
}

/// Returns updates for files that can be updated now, and forgets those that need none any more.
pub(super) fn file_updates(task: &Task, unbound: &mut FollowedFiles) -> Vec<FileUpdate> {
    let mut updates = Vec::new();
    unbound.retain(|record| {
        if updates.len() >= WINDOW {
            return true;
        }
        match wanted(task, record, true) {
            Some(update) => {
                updates.push(update);
                true
            }
            None => may_still(task, record),
        }
    });
    updates
}

/// Returns whether a file that needs no update now may still need one.
pub(super) fn may_still(task: &Task, record: &FileRecord) -> bool {
    let is_begun = matches!(record.phase, NamePhase::Intent { .. });
    let is_coming = |replica: &ReplicaId, node: &NodeId| {
        let copy = record.replicas.get(replica);
        copy.is_some_and(|copy| copy.state.is_open() && copy.node.as_ref() == Some(node))
    };
    match task {
        Task::Replica(replica) => is_begun && record.replicas.contains_key(replica),
        Task::Fill(replica) => is_begun && !record.replicas.contains_key(replica),
        Task::Node(key) => is_coming(&key.replica, &key.node),
        Task::Volume(volume) => is_coming(&volume.replica, &volume.node),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use archive_decisions::store::ReplicaRecord;
    use archive_model::{NodeKey, ReplicaKind, ReplicaState, VolumeId, VolumeKey};
    use jiff::Timestamp;

    use super::super::followed::testing::follow;
    use super::*;

    fn id(text: &str) -> ReplicaId {
        ReplicaId::new(text).unwrap()
    }

    /// Creates a file in the replica `two`, on the node `n-1`.
    fn record(phase: NamePhase, state: ReplicaState) -> FileRecord {
        let started =
            ReplicaRecord::started_record(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH);
        let copy = ReplicaRecord {
            state,
            node: Some(NodeId::new("n-1").unwrap()),
            volume: Some(VolumeId::new("v-1").unwrap()),
            ..started
        };
        FileRecord {
            name: FileName::new("a").unwrap(),
            phase,
            upload: None,
            content: None,
            replicas: BTreeMap::from([(id("two"), copy)]),
        }
    }

    const INTENT: NamePhase = NamePhase::Intent {
        expires: Timestamp::MAX,
    };

    /// Fails if the walk ends before a file that began earlier is bound, or waits without end for later ones.
    #[test]
    fn only_earlier_stores_are_waited_for() {
        let node = NodeId::new("n-1").unwrap();
        let volume = VolumeKey {
            replica: id("two"),
            node: node.clone(),
            volume: VolumeId::new("v-1").unwrap(),
        };
        let at_node = |node: &NodeId| {
            let replica = id("two");
            let node = node.clone();
            Task::Node(NodeKey { replica, node })
        };
        let elsewhere = at_node(&NodeId::new("n-2").unwrap());
        for (phase, is_begun) in [
            (INTENT, true),
            (NamePhase::Bound, false),
            (NamePhase::Complete, false),
        ] {
            let open = record(phase, ReplicaState::UploadStarted);
            let may = |task: &Task| may_still(task, &open);
            assert_eq!(may(&Task::Replica(id("two"))), is_begun);
            assert_eq!(may(&Task::Fill(id("three"))), is_begun);
            assert!(!may(&Task::Replica(id("three"))), "it began without it");
            assert!(!may(&Task::Fill(id("two"))), "it began with it");
            assert!(may(&at_node(&node)));
            assert!(may(&Task::Volume(volume.clone())));
            assert!(!may(&elsewhere));
            let done = record(phase, ReplicaState::UploadCompleted);
            assert!(!may_still(&at_node(&node), &done));
            assert!(!may_still(&Task::Volume(volume.clone()), &done));
        }
    }

    /// Fails if a file that is being stored is forgotten or is updated before it is bound, or a free name is waited
    /// for.
    #[tokio::test]
    async fn file_is_updated_once_it_is_bound() {
        let begun = || record(INTENT, ReplicaState::UploadStarted);
        let (mut files, told) = follow(begun()).await;
        let task = Task::Replica(id("two"));
        let mut looked = || (file_updates(&task, &mut files).len(), files.len());
        assert_eq!(looked(), (0, 1));
        told.tell(record(NamePhase::Bound, ReplicaState::UploadStarted));
        for _until_updated in 0..2 {
            assert_eq!(looked(), (1, 1));
        }
        let out = ReplicaState::Withdrawn("r1".to_owned());
        told.tell(record(NamePhase::Complete, out));
        assert_eq!(looked(), (0, 0));
        let (mut files, told) = follow(begun()).await;
        told.tell(record(NamePhase::Free, ReplicaState::UploadStarted));
        assert!(file_updates(&task, &mut files).is_empty() && files.is_empty());
    }
}
