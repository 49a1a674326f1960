//! Membership of nodes and volumes in replicas: learnt from the monitors and from the copies, and stored permanently.
//!
//! A monitor remembers nothing. After each of its starts it is told the nodes and volumes to miss; until then each of
//! its answers has a gap. So a restarted monitor never makes a node, or its files, disappear, nor does a node that has
//! forgotten a volume. Only people make a node or volume disappear, by an act: the monitors are informed, and the
//! nodes once they can be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_daemon::{OwnThread, Worker, WorkerStep, WorkerStepError};
use archive_db::DbError;
use archive_decisions::store::ReplicaSpec;
use archive_ledger::standing::StandingSnapshot;
use archive_model::{NodeId, NodeState, ReplicaId, VolumeKey};
use archive_replicas::{unreported_volumes, volumes_in_service};

use crate::archive::Archive;

/// The time between two looks at the answers of the monitors.
const PAUSE: Duration = Duration::from_secs(1);

/// The time between two searches for copies on a volume that its node does not report: they read all rows.
const LOOK: Duration = Duration::from_mins(10);

/// The worker that tells every monitor its nodes, and learns of new ones.
pub(crate) struct Membership {
    archive: Archive,
    ids: Vec<ReplicaId>,
    thread: OwnThread,
    /// The remembered nodes of each replica, as of the last reading.
    known: BTreeMap<ReplicaId, Vec<NodeId>>,
    /// The versions of the members and of the standing at the last reading.
    read: Option<(u64, Arc<StandingSnapshot>)>,
    /// The volumes that their nodes do not report, each with the time of the next search for its copies.
    unreported: BTreeMap<VolumeKey, Instant>,
}

/// Returns a replica that has copies, is not retired, and is not in the settings.
pub(crate) fn left_out(
    volumes: &BTreeSet<VolumeKey>,
    specs: &[ReplicaSpec],
    now: &StandingSnapshot,
) -> Option<ReplicaId> {
    let is_missed = |replica: &ReplicaId| {
        !now.is_retired(replica) && specs.iter().all(|spec| spec.id != *replica)
    };
    let in_service = |key: &&VolumeKey| !now.volumes.contains_key(*key);
    let mut replicas = volumes.iter().filter(in_service).map(|key| &key.replica);
    replicas.find(|replica| is_missed(replica)).cloned()
}

impl Membership {
    pub(crate) fn new(archive: Archive) -> Self {
        Self {
            ids: archive.specs.iter().map(|spec| spec.id.clone()).collect(),
            archive,
            thread: OwnThread::new("membership"),
            known: BTreeMap::new(),
            read: None,
            unreported: BTreeMap::new(),
        }
    }

    /// Reads the remembered nodes and volumes, if one has come or gone since the last reading, or people have changed
    /// what is in service.
    async fn read_members(&mut self) -> Result<(), WorkerStepError> {
        let version = self.archive.admin.members_version();
        let now = self.archive.standing.current_snapshot();
        if let Some((known, then)) = &self.read
            && *known == version
            && Arc::ptr_eq(then, &now)
        {
            return Ok(());
        }
        let admin = self.archive.admin.clone();
        let ids = self.ids.clone();
        let read = self.thread.run_on_thread(move || {
            let nodes = ids
                .into_iter()
                .map(|id| Ok((id.clone(), admin.list_nodes(&id)?)));
            let nodes = nodes.collect::<Result<BTreeMap<_, _>, DbError>>()?;
            Ok::<_, DbError>((nodes, admin.known_volumes()?))
        });
        let (nodes, volumes) = read.await??;
        self.archive.calls.replicas.set_volumes(volumes);
        self.known = nodes;
        self.read = Some((version, now));
        Ok(())
    }

    /// Adds the remembered nodes of a replica to its members, and remembers the new ones that its monitor reports.
    async fn learn(&mut self, replica: &ReplicaId) -> Result<(), WorkerStepError> {
        if let Some(known) = self.known.get(replica) {
            self.archive.calls.replicas.add_members(replica, known);
        }
        let Some(Ok(heard)) = self.archive.calls.replicas.last_reported_nodes(replica) else {
            return Ok(());
        };
        self.tell_retired(replica, &heard).await;
        self.forget_empty(replica, &heard).await?;
        let now = self.archive.standing.current_snapshot();
        let known = self.known.get(replica);
        let is_new = |node: &NodeId| {
            let is_known = known.is_some_and(|known| known.contains(node));
            !is_known && !now.is_retired_node(replica, node)
        };
        let own = self
            .archive
            .calls
            .replicas
            .own_nodes(replica, &heard)
            .into_iter();
        let new: Vec<NodeId> = own.filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = new.iter().map(NodeId::as_str).collect();
        tracing::info!(%replica, nodes = names.join(", "), "new nodes");
        let admin = self.archive.admin.clone();
        let id = replica.clone();
        self.thread
            .run_on_thread(move || admin.add_nodes(&id, &new))
            .await??;
        Ok(())
    }
}

impl Membership {
    /// Retires a volume on its node that was retired while the node could not be reached.
    async fn tell_retired(&self, replica: &ReplicaId, heard: &[NodeState]) {
        let now = self.archive.standing.current_snapshot();
        for volume in volumes_in_service(replica, heard) {
            if now.volumes.contains_key(&volume) {
                let calls = &self.archive.calls;
                let telling = calls.replicas.tell_retired(&volume);
                match calls.answered_call(telling).await {
                    Ok(()) => tracing::info!(%volume, "a node retires a volume"),
                    Err(error) => {
                        tracing::debug!(%volume, %error, "cannot retire a volume on its node yet");
                    }
                }
            }
        }
    }
}

impl Membership {
    /// Forgets a volume that its node does not report, and from which every copy was moved: its disk was emptied and
    /// removed, or another node has adopted it.
    async fn forget_empty(
        &mut self,
        replica: &ReplicaId,
        heard: &[NodeState],
    ) -> Result<(), WorkerStepError> {
        let unreported = unreported_volumes(replica, heard);
        self.unreported
            .retain(|key, _| key.replica != *replica || unreported.contains(key));
        let now = self.archive.calls.clock.instant();
        for volume in unreported {
            if self.unreported.get(&volume).is_some_and(|next| now < *next) {
                continue;
            }
            let admin = self.archive.admin.clone();
            let key = volume.clone();
            if self
                .thread
                .run_on_thread(move || admin.forget_if_empty(&key))
                .await??
            {
                tracing::info!(%volume, "its node does not report this volume, which has no copies; it is not missed any more");
            } else {
                tracing::warn!(%volume, "its node does not report this volume, which has copies; they are unknown, not missing");
            }
            self.unreported.insert(volume, now + LOOK);
        }
        Ok(())
    }
}

impl Worker for Membership {
    const NAME: &'static str = "membership";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        self.read_members().await?;
        for replica in self.ids.clone() {
            self.learn(&replica).await?;
        }
        Ok(WorkerStep::Idle(PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use archive_ledger::standing::{ReplicaRow, Retirement};
    use archive_model::ReplicaKind;

    use super::*;

    /// Fails if a replica with copies can be left out of the settings, or one that people have retired cannot.
    #[test]
    fn replica_with_copies_cannot_be_left_out() {
        let id = |text: &str| ReplicaId::new(text).unwrap();
        let key = |replica: &str| VolumeKey {
            replica: id(replica),
            node: "n".parse().unwrap(),
            volume: "v".parse().unwrap(),
        };
        let volumes = BTreeSet::from([key("one"), key("two")]);
        let specs = |ids: &[&str]| -> Vec<ReplicaSpec> {
            let spec = |one: &&str| ReplicaSpec {
                id: id(one),
                kind: ReplicaKind::Bitarchive,
                required: true,
            };
            ids.iter().map(spec).collect()
        };
        let retired = || Retirement {
            at: jiff::Timestamp::UNIX_EPOCH,
            by: "operator/otto".to_owned(),
            why: "r1".to_owned(),
            emptied: false,
        };
        let mut now = StandingSnapshot::default();
        assert_eq!(
            left_out(&volumes, &specs(&["one", "two", "new"]), &now),
            None
        );
        assert_eq!(left_out(&volumes, &specs(&["one"]), &now), Some(id("two")));
        drop(now.volumes.insert(key("two"), retired()));
        assert_eq!(left_out(&volumes, &specs(&["one"]), &now), None);
        now.volumes.clear();
        let row = ReplicaRow::Retired(retired());
        drop(now.replicas.insert(id("two"), row));
        assert_eq!(left_out(&volumes, &specs(&["one"]), &now), None);
    }
}
