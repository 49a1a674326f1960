//! The states of volumes, and since when: a volume that has just come back is not trusted at once.

use std::collections::BTreeMap;

use archive_db::{DbError, Table, TableValue, Text};
use archive_ledger::admin::Admin;
use archive_model::{NodeId, NodeState, ReplicaId, VolumeState};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Replica, node and volume. A volume without an id is stored under its path.
type VolumeRowKey = (Text<ReplicaId>, Text<NodeId>, String);

/// The state of a volume, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct VolumeRow {
    state: String,
    since: Timestamp,
}

impl TableValue for VolumeRow {}

/// The states of all volumes: a table, read once.
#[derive(Debug)]
pub(crate) struct Volumes {
    admin: Admin,
    table: Table<VolumeRowKey, VolumeRow>,
    /// The rows of the table. Locked while one is written.
    known: Mutex<BTreeMap<VolumeRowKey, VolumeRow>>,
}

impl Volumes {
    pub(crate) fn open(admin: &Admin) -> Result<Self, DbError> {
        let table: Table<VolumeRowKey, VolumeRow> = admin.open_table("volume-states")?;
        let known = table.scan()?.collect::<Result<_, _>>()?;
        Ok(Self {
            admin: admin.clone(),
            table,
            known: Mutex::new(known),
        })
    }

    /// Stores the states of the volumes of a replica. Nothing is known of a node that the monitor has not heard of
    /// since it started.
    pub(crate) fn note_seen(
        &self,
        replica: &ReplicaId,
        nodes: &[NodeState],
        now: Timestamp,
    ) -> Result<(), DbError> {
        let mut known = self.known.lock();
        let mut new = Vec::new();
        for node in nodes.iter().filter(|node| node.seen.is_some()) {
            for volume in &node.volumes {
                let state = if node.alive {
                    words(volume)
                } else {
                    "silent".to_owned()
                };
                let key = (
                    Text(replica.clone()),
                    Text(node.node.clone()),
                    volume.name().to_owned(),
                );
                if known.get(&key).is_none_or(|known| known.state != state) {
                    new.push((key, VolumeRow { state, since: now }));
                }
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let mut changes = self.admin.begin_changes();
        for (key, row) in &new {
            changes.batch().put(&self.table, key, row)?;
        }
        self.admin.commit_changes(changes)?;
        known.extend(new);
        Ok(())
    }

    /// Returns when a volume last changed its state, or `None` if it was never seen.
    pub(crate) fn note_changed(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        volume: &str,
    ) -> Option<Timestamp> {
        let key = (Text(replica.clone()), Text(node.clone()), volume.to_owned());
        let known = self.known.lock();
        known.get(&key).map(|known| known.since)
    }
}

/// Returns the state of a volume in one line, as it is stored in the table: equal lines are equal states.
fn words(volume: &VolumeState) -> String {
    match (volume.retired, &volume.problem) {
        (true, _) => "retired".to_owned(),
        (false, None) => "online".to_owned(),
        (false, Some(problem)) => format!("offline: {problem}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a volume seems settled because the repository was restarted, or a monitor's restart is taken for a
    /// change.
    #[test]
    fn state_of_volume_keeps_its_age() {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        let replica = ReplicaId::new("one").unwrap();
        let node = NodeId::new("n").unwrap();
        let at = |minute: i64| Timestamp::from_second(1_000_000_000 + 60 * minute).unwrap();
        let report = |problem: Option<&str>, alive, heard: bool| NodeState {
            alive,
            seen: heard.then_some(Timestamp::UNIX_EPOCH),
            volumes: vec![VolumeState {
                volume: Some("v".parse().unwrap()),
                problem: problem.map(str::to_owned),
                ..VolumeState::default()
            }],
            ..NodeState::unheard_node(node.clone())
        };
        for (minute, report, changed) in [
            (0, report(None, true, true), 0),
            (1, report(None, true, true), 0),
            (2, report(None, false, false), 0),
            (3, report(None, false, true), 3),
            (4, report(None, true, true), 4),
            (5, report(Some("not mounted"), true, true), 5),
            (6, report(Some("not mounted"), true, true), 5),
            (7, report(None, true, true), 7),
        ] {
            let volumes = Volumes::open(&admin).unwrap();
            volumes.note_seen(&replica, &[report], at(minute)).unwrap();
            let known = volumes.note_changed(&replica, &node, "v");
            assert_eq!(known, Some(at(changed)), "in minute {minute}");
        }
        let volumes = Volumes::open(&admin).unwrap();
        assert_eq!(volumes.note_changed(&replica, &node, "w"), None);
    }
}
