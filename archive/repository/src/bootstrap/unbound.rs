//! Files that a walk meets too early: their name is not bound yet, or a copy is still being stored at the part that was
//! given up. These files are looked at again until they can be updated, or need not be; the walk does not end before.
//!
//! Only stores that began before the walk can be such files: later ones know which replicas and nodes are in service.

use std::collections::BTreeSet;

use archive_daemon::WorkerError;
use archive_db::DbError;
use archive_decisions::store::{FileRecord, Phase};
use archive_model::{FileName, NodeId, ReplicaId};

use super::{FileUpdate, Pass, UpdateOutcome, WINDOW, tell, wanted};
use crate::people::People;
use archive_ledger::admin::Admin;
use archive_ledger::standing::Task;

/// The files that can be updated now, and the files that cannot yet.
#[derive(Debug, Default)]
pub(super) struct UnboundFiles {
    pub(super) wanted: Vec<FileUpdate>,
    pub(super) unbound: BTreeSet<FileName>,
}

impl Pass {
    /// Updates files, and notes the outcomes.
    pub(super) async fn told(
        &mut self,
        people: &People,
        task: &Task,
        all: Vec<FileUpdate>,
    ) -> Result<(), WorkerError> {
        for wanted in all {
            let name = wanted.name.clone();
            match tell(people, task, wanted).await? {
                UpdateOutcome::There => {}
                UpdateOutcome::Unknown => self.found += 1,
                UpdateOutcome::Updated => {
                    self.found += 1;
                    if !matches!(task, Task::Replica(_)) {
                        self.open.insert(name);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Looks at the files again.
pub(super) fn look(
    admin: &Admin,
    task: &Task,
    unbound: BTreeSet<FileName>,
) -> Result<UnboundFiles, DbError> {
    let mut looked = UnboundFiles::default();
    for name in unbound {
        // A name that was given up begins anew.
        let Some(row) = admin.file(&name)? else {
            continue;
        };
        if looked.wanted.len() >= WINDOW {
            looked.unbound.insert(name);
        } else if let Some(wanted) = wanted(task, &row.record, true) {
            looked.wanted.push(wanted);
        } else if may_still(task, &row.record) {
            looked.unbound.insert(name);
        }
    }
    Ok(looked)
}

/// Returns whether a file that needs no update now may still need one.
pub(super) fn may_still(task: &Task, record: &FileRecord) -> bool {
    let is_begun = matches!(record.phase, Phase::Intent { .. });
    let is_coming = |replica: &ReplicaId, node: &NodeId| {
        let copy = record.replicas.get(replica);
        copy.is_some_and(|copy| copy.state.is_open() && copy.node.as_ref() == Some(node))
    };
    match task {
        Task::Replica(replica) => is_begun && record.replicas.contains_key(replica),
        Task::Fill(replica) => is_begun && !record.replicas.contains_key(replica),
        Task::Node(replica, node) => is_coming(replica, node),
        Task::Volume(volume) => is_coming(&volume.replica, &volume.node),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use archive_decisions::store::ReplicaRecord;
    use archive_model::{ReplicaKind, ReplicaState, VolumeId, VolumeKey};
    use jiff::Timestamp;

    use super::*;
    use archive_ledger::admin::AdminRow;

    fn id(text: &str) -> ReplicaId {
        ReplicaId::new(text).unwrap()
    }

    /// Creates a file in the replica `two`, on the node `n-1`.
    fn record(phase: Phase, state: ReplicaState) -> FileRecord {
        let started = ReplicaRecord::started(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH);
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

    const INTENT: Phase = Phase::Intent {
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
        let elsewhere = Task::Node(id("two"), NodeId::new("n-2").unwrap());
        for (phase, is_begun) in [
            (INTENT, true),
            (Phase::Bound, false),
            (Phase::Complete, false),
        ] {
            let open = record(phase, ReplicaState::UploadStarted);
            let may = |task: &Task| may_still(task, &open);
            assert_eq!(may(&Task::Replica(id("two"))), is_begun);
            assert_eq!(may(&Task::Fill(id("three"))), is_begun);
            assert!(!may(&Task::Replica(id("three"))), "it began without it");
            assert!(!may(&Task::Fill(id("two"))), "it began with it");
            assert!(may(&Task::Node(id("two"), node.clone())));
            assert!(may(&Task::Volume(volume.clone())));
            assert!(!may(&elsewhere));
            let done = record(phase, ReplicaState::UploadCompleted);
            assert!(!may_still(&Task::Node(id("two"), node.clone()), &done));
            assert!(!may_still(&Task::Volume(volume.clone()), &done));
        }
    }

    /// Fails if a file that is being stored is forgotten or is updated before it is bound, or a free name is waited for.
    #[test]
    fn file_is_updated_once_it_is_bound() {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        let set = |record: Option<FileRecord>| {
            let mut changes = admin.change();
            match record {
                None => admin
                    .forget(&mut changes, &FileName::new("a").unwrap())
                    .unwrap(),
                Some(record) => {
                    let row = AdminRow {
                        record,
                        depositor: "harvester/h".to_owned(),
                        admission: None,
                    };
                    admin.put(&mut changes, &row).unwrap();
                }
            }
            admin.commit(changes).unwrap();
        };
        let names = || BTreeSet::from([FileName::new("a").unwrap()]);
        let task = Task::Replica(id("two"));
        let looked = || look(&admin, &task, names()).unwrap();
        set(Some(record(INTENT, ReplicaState::UploadStarted)));
        let begun = looked();
        assert!(begun.wanted.is_empty() && begun.unbound == names());
        set(Some(record(Phase::Bound, ReplicaState::UploadStarted)));
        let bound = looked();
        assert!(bound.wanted.len() == 1 && bound.unbound.is_empty());
        let out = ReplicaState::Withdrawn("r1".to_owned());
        set(Some(record(Phase::Complete, out)));
        let told = looked();
        assert!(told.wanted.is_empty() && told.unbound.is_empty());
        set(None);
        let free = looked();
        assert!(free.wanted.is_empty() && free.unbound.is_empty());
    }
}
