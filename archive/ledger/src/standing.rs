//! The standing of replicas, nodes and volumes: what is out of service for good, and what is being filled.
//!
//! Durable, because only an act of people takes something out of service, and it must stay so after a restart and when
//! node and disk are permanently dead. Everyone asks the copy in memory; it is changed after the tables are.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does.

mod draining;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use archive_db::{DbError, Table, TableValue, Text};
use archive_decisions::store::{FileRecord, ReplicaRecord, ReplicaSpec};
use archive_model::{
    NodeId, NodeKey, ReplicaId, ReplicaKind, ReplicaState, StoreFailure, VolumeKey,
};
use jiff::Timestamp;
use parking_lot::{Mutex, ReentrantMutex};
use serde::{Deserialize, Serialize};

use crate::admin::schema::{RETIRED_VOLUMES, VolumeTableKey, from_table, to_table};
use crate::admin::{Admin, AdminCounts, AuditLine, NodeRow, WalkScope};

pub use crate::rows::Retirement;
pub use draining::{DrainKey, DrainRow, DrainSource};

/// A replica that is not as it was set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaRow {
    /// The replica is being filled from the others.
    Filling {
        /// The time since when the replica is being filled.
        since: Timestamp,
        /// The person who asked to fill the replica.
        by: String,
    },
    /// The replica is neither asked nor required any more.
    Retired(Retirement),
}

impl TableValue for ReplicaRow {}

/// A change of the standing that has to be carried into the rows of files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// A replica is filled.
    Fill(ReplicaId),
    /// A volume was retired.
    Volume(VolumeKey),
    /// A node was retired.
    Node(NodeKey),
    /// A replica was retired.
    Replica(ReplicaId),
}

/// The standing of everything at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandingSnapshot {
    /// Replicas that are being filled or retired.
    pub replicas: BTreeMap<ReplicaId, ReplicaRow>,
    /// Retired nodes.
    pub nodes: BTreeMap<NodeKey, Retirement>,
    /// Retired volumes.
    pub volumes: BTreeMap<VolumeKey, Retirement>,
    /// The volumes and nodes that are drained.
    pub draining: BTreeMap<DrainSource, DrainRow>,
    /// The replicas of the settings that must have every file.
    pub required: BTreeMap<ReplicaId, ReplicaKind>,
}

/// The copy in memory; as long as nothing was read into it, everything is as it was set up.
#[derive(Clone, Debug, Default)]
pub struct StandingView(Arc<Mutex<Arc<StandingSnapshot>>>);

impl StandingView {
    /// Returns the standing of everything.
    pub fn current_snapshot(&self) -> Arc<StandingSnapshot> {
        Arc::clone(&self.0.lock())
    }

    fn set(&self, now: StandingSnapshot) {
        *self.0.lock() = Arc::new(now);
    }
}

/// The tables and their copy in memory.
#[derive(Debug)]
pub struct Standing {
    admin: Admin,
    replicas: Table<Text<ReplicaId>, ReplicaRow>,
    nodes: Table<(Text<ReplicaId>, Text<NodeId>), NodeRow>,
    volumes: Table<VolumeTableKey, Retirement>,
    drains: Table<DrainKey, DrainRow>,
    view: StandingView,
    required: BTreeMap<ReplicaId, ReplicaKind>,
    /// Locked from the reading on which a change depends until the copy in memory has it.
    writing: ReentrantMutex<()>,
}

impl StandingSnapshot {
    /// Whether the replica is out of service.
    pub fn is_retired(&self, replica: &ReplicaId) -> bool {
        matches!(self.replicas.get(replica), Some(ReplicaRow::Retired(_)))
    }

    /// Whether the replica is being filled.
    pub fn is_filling(&self, replica: &ReplicaId) -> bool {
        matches!(self.replicas.get(replica), Some(ReplicaRow::Filling { .. }))
    }

    /// Returns the replicas that must have a file of the archive and were never given it: they came into the settings
    /// later, and nobody has them filled.
    pub fn unfilled_replicas<'a>(
        &'a self,
        record: &FileRecord,
    ) -> impl Iterator<Item = (&'a ReplicaId, ReplicaKind)> {
        let is_kept = record.phase.is_bound() && !record.is_withdrawn();
        let is_unfilled = move |id: &&ReplicaId| {
            is_kept && !record.replicas.contains_key(*id) && !self.is_excused(id)
        };
        let unfilled: Vec<_> = self.required.keys().filter(is_unfilled).collect();
        let kinds = unfilled.into_iter();
        kinds.filter_map(|id| Some((id, *self.required.get(id)?)))
    }

    /// Returns the number of files that are not in every replica that must have them, but for those that are excused.
    pub fn below_required(&self, counts: &AdminCounts) -> u64 {
        let below = counts
            .lacking
            .iter()
            .filter(|(of, _)| of.are_below(self.required.keys(), |id| self.is_excused(id)));
        below.map(|(_, count)| count).sum()
    }

    /// Returns the record of a file with every replica that must have it: those that were never given it lack it.
    pub fn complete_record<'a>(&self, record: &'a FileRecord) -> Cow<'a, FileRecord> {
        let mut unfilled = self.unfilled_replicas(record).peekable();
        if unfilled.peek().is_none() {
            return Cow::Borrowed(record);
        }
        let mut whole = record.clone();
        whole.replicas.extend(unfilled.map(|(id, kind)| {
            let why = format!("the replica was never filled; `holdfast replica bootstrap {id}`");
            let lacking = ReplicaRecord {
                state: ReplicaState::UploadFailed(StoreFailure::Gone(why)),
                ..ReplicaRecord::started_record(kind, true, Timestamp::UNIX_EPOCH)
            };
            (id.clone(), lacking)
        }));
        Cow::Owned(whole)
    }

    /// Whether the node is out of service.
    pub fn is_retired_node(&self, replica: &ReplicaId, node: &NodeId) -> bool {
        let key = NodeKey {
            replica: replica.clone(),
            node: node.clone(),
        };
        self.nodes.contains_key(&key)
    }

    /// Whether what the replica lacks is no alarm.
    pub fn is_excused(&self, replica: &ReplicaId) -> bool {
        self.is_retired(replica) || self.is_filling(replica)
    }

    /// Returns the retired nodes of a replica.
    pub fn retired_nodes(&self, replica: &ReplicaId) -> Vec<NodeId> {
        let nodes = self.nodes.keys().filter(|key| key.replica == *replica);
        nodes.map(|key| key.node.clone()).collect()
    }

    /// Whether a recorded copy is one: completed, and nothing that holds it was retired.
    pub fn copy_counts(&self, id: &ReplicaId, copy: &ReplicaRecord) -> bool {
        let is_retired_node = || copy.node.iter().any(|node| self.is_retired_node(id, node));
        let is_retired_volume = || {
            let volume = copy.volume_key(id).filter(|_| !self.volumes.is_empty());
            volume.is_some_and(|volume| self.volumes.contains_key(&volume))
        };
        copy.state.is_completed()
            && !self.is_retired(id)
            && !is_retired_node()
            && !is_retired_volume()
    }

    /// Returns the tasks that still have to be carried into the rows of files.
    pub fn list_tasks(&self) -> Vec<Task> {
        let replicas = self.replicas.iter().filter_map(|(id, row)| match row {
            ReplicaRow::Filling { .. } => Some(Task::Fill(id.clone())),
            ReplicaRow::Retired(retired) => (!retired.emptied).then(|| Task::Replica(id.clone())),
        });
        let nodes = self.nodes.iter().filter(|(_, retired)| !retired.emptied);
        let nodes = nodes.map(|(node, _)| Task::Node(node.clone()));
        let volumes = self.volumes.iter().filter(|(_, retired)| !retired.emptied);
        let volumes = volumes.map(|(volume, _)| Task::Volume(volume.clone()));
        replicas.chain(nodes).chain(volumes).collect()
    }
}

impl Task {
    /// Returns the files whose rows may have to change.
    pub fn walk_scope(&self) -> WalkScope {
        match self {
            Self::Volume(volume) => WalkScope::Volume(volume.clone()),
            Self::Node(node) => WalkScope::Node(node.clone()),
            // The rows of files without a copy there change as well.
            Self::Fill(_) | Self::Replica(_) => WalkScope::Archive,
        }
    }
}

impl Standing {
    /// Reads the tables.
    pub fn open(admin: Admin) -> Result<Self, DbError> {
        let standing = Self {
            replicas: admin.open_table("replicas")?,
            nodes: admin.open_table("nodes")?,
            volumes: admin.open_table(RETIRED_VOLUMES)?,
            drains: admin.open_table("drains")?,
            admin,
            view: StandingView::default(),
            required: BTreeMap::new(),
            writing: ReentrantMutex::default(),
        };
        standing.read()?;
        Ok(standing)
    }

    /// Takes the replicas of the settings.
    pub fn with_settings(mut self, specs: &[ReplicaSpec]) -> Result<Self, DbError> {
        let required = specs.iter().filter(|spec| spec.required);
        self.required = required.map(|spec| (spec.id.clone(), spec.kind)).collect();
        self.read()?;
        Ok(self)
    }

    /// Returns the standing of everything.
    pub fn current_snapshot(&self) -> Arc<StandingSnapshot> {
        self.view.current_snapshot()
    }

    /// Returns the copy in memory, for callers that only ask.
    pub fn standing_view(&self) -> StandingView {
        self.view.clone()
    }

    /// Returns the replicas of `specs` that are in service.
    pub fn in_service(&self, specs: &[ReplicaSpec]) -> Vec<ReplicaSpec> {
        let now = self.current_snapshot();
        let in_service = specs.iter().filter(|spec| !now.is_retired(&spec.id));
        in_service.cloned().collect()
    }

    /// Sets the row of a replica; `None` for one that stands as it was set up.
    pub fn set_replica(
        &self,
        replica: &ReplicaId,
        row: Option<&ReplicaRow>,
        line: Option<AuditLine>,
    ) -> Result<(), DbError> {
        let mut changes = self.admin.begin_changes();
        let key = Text(replica.clone());
        match row {
            Some(row) => changes.batch().put(&self.replicas, &key, row)?,
            None => changes.batch().delete(&self.replicas, &key)?,
        }
        self.commit(changes, line)
    }

    /// Begins to fill a replica from the others, in the name of the one who has the `line`; nothing changes if that is
    /// under way. Returns `false` if the replica is retired.
    pub fn begin_filling(&self, replica: &ReplicaId, line: AuditLine) -> Result<bool, DbError> {
        let _writing = self.writing.lock();
        let now = self.current_snapshot();
        if now.is_retired(replica) {
            return Ok(false);
        }
        if !now.is_filling(replica) {
            let row = ReplicaRow::Filling {
                since: line.at,
                by: line.who.clone(),
            };
            self.set_replica(replica, Some(&row), Some(line))?;
        }
        Ok(true)
    }

    /// Takes a node out of service, or says that the rows of all files have changed.
    pub fn retire_node(
        &self,
        node: &NodeKey,
        retired: Retirement,
        line: Option<AuditLine>,
    ) -> Result<(), DbError> {
        let mut changes = self.admin.begin_changes();
        let row = NodeRow {
            retired: Some(retired),
        };
        let key = (Text(node.replica.clone()), Text(node.node.clone()));
        changes.batch().put(&self.nodes, &key, &row)?;
        self.commit(changes, line)
    }

    /// Takes a volume out of service, or says that the rows of all files have changed.
    pub fn retire_volume(
        &self,
        volume: &VolumeKey,
        retired: &Retirement,
        line: Option<AuditLine>,
    ) -> Result<(), DbError> {
        let mut changes = self.admin.begin_changes();
        let key = to_table(volume);
        changes.batch().put(&self.volumes, &key, retired)?;
        self.commit(changes, line)
    }

    /// Takes a volume back into service.
    pub fn reinstate_volume(&self, volume: &VolumeKey, line: AuditLine) -> Result<(), DbError> {
        let mut changes = self.admin.begin_changes();
        let key = to_table(volume);
        changes.batch().delete(&self.volumes, &key)?;
        self.commit(changes, Some(line))
    }

    /// Takes a node back into service.
    pub fn reinstate_node(&self, node: &NodeKey, line: AuditLine) -> Result<(), DbError> {
        let mut changes = self.admin.begin_changes();
        let key = (Text(node.replica.clone()), Text(node.node.clone()));
        changes
            .batch()
            .put(&self.nodes, &key, &NodeRow::default())?;
        self.commit(changes, Some(line))
    }

    /// Ends a task once the rows of all files have changed: a filled replica stands as it was set up, and a retired
    /// part is marked as emptied.
    pub fn end_task(&self, task: &Task, line: AuditLine) -> Result<(), DbError> {
        let _writing = self.writing.lock();
        let now = self.current_snapshot();
        let line = Some(line);
        let emptied = |retired: &Retirement| Retirement {
            emptied: true,
            ..retired.clone()
        };
        match task {
            Task::Fill(replica) if now.is_filling(replica) => self.set_replica(replica, None, line),
            Task::Fill(_) => Ok(()),
            Task::Replica(replica) => match now.replicas.get(replica) {
                Some(ReplicaRow::Retired(retired)) => {
                    let row = ReplicaRow::Retired(emptied(retired));
                    self.set_replica(replica, Some(&row), line)
                }
                Some(ReplicaRow::Filling { .. }) | None => Ok(()),
            },
            Task::Node(node) => match now.nodes.get(node) {
                Some(retired) => self.retire_node(node, emptied(retired), line),
                None => Ok(()),
            },
            Task::Volume(volume) => match now.volumes.get(volume) {
                Some(retired) => self.retire_volume(volume, &emptied(retired), line),
                None => Ok(()),
            },
        }
    }

    fn commit(
        &self,
        mut changes: crate::admin::Changes,
        line: Option<AuditLine>,
    ) -> Result<(), DbError> {
        let _writing = self.writing.lock();
        if let Some(line) = line {
            changes.note_line(line);
        }
        self.admin.commit_changes(changes)?;
        self.read()
    }

    fn read(&self) -> Result<(), DbError> {
        let mut now = StandingSnapshot {
            required: self.required.clone(),
            ..StandingSnapshot::default()
        };
        for row in self.replicas.scan()? {
            let (Text(id), row) = row?;
            now.replicas.insert(id, row);
        }
        for row in self.nodes.scan()? {
            let ((Text(replica), Text(node)), row) = row?;
            if let Some(retired) = row.retired {
                now.nodes.insert(NodeKey { replica, node }, retired);
            }
        }
        for row in self.volumes.scan()? {
            let (key, retired) = row?;
            now.volumes.insert(from_table(key), retired);
        }
        self.read_draining(&mut now)?;
        self.view.set(now);
        Ok(())
    }
}
