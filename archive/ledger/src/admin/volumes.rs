//! The volumes of the archive: every one that was given a completed copy, remembered in the batch of the copy's row.
//!
//! A node may forget a volume, with its data directory for instance; the archive does not. Also here: how the tables of
//! version 1, which knew retired volumes only, and these by their bare id, become those of version 2, and
//! those of version 2 of version 3.
//!
//! # Errors
//!
//! Every function fails when the tables cannot be read or written; no volume is left out then.

use std::collections::BTreeSet;

use archive_db::{Batch, Database, DbError, Options, Table, Text, Value};
use archive_decisions::store::FileRecord;
use archive_model::{FileName, NodeId, ReplicaId, VolumeId, VolumeKey};
use serde::{Deserialize, Serialize};

use super::{Admin, AdminRow, TABLES, VERSION};
use crate::standing::{RETIRED_VOLUMES, Retired};

/// The name of the table of the volumes that have, or had, copies.
pub(super) const VOLUMES: &str = "volumes-with-copies";

/// The table of version 1.
const RETIRED_BY_ID: &str = "volumes";

/// The key of volumes in tables: as [`VolumeKey`], so that those of a replica, or of a node, lie together.
pub type VolumeTableKey = (Text<ReplicaId>, Text<NodeId>, Text<VolumeId>);

/// The key of a volume in a table.
pub fn to_table(volume: &VolumeKey) -> VolumeTableKey {
    (
        Text(volume.replica.clone()),
        Text(volume.node.clone()),
        Text(volume.volume.clone()),
    )
}

/// The volume of a key in a table.
pub fn from_table((Text(replica), Text(node), Text(volume)): VolumeTableKey) -> VolumeKey {
    VolumeKey {
        replica,
        node,
        volume,
    }
}

/// A retired volume in version 1.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RetiredVersion1 {
    pub(super) replica: ReplicaId,
    pub(super) node: NodeId,
    pub(super) retired: Retired,
}

impl Value for RetiredVersion1 {}

/// Returns the options with which the admin data are opened.
pub(super) fn options() -> Options {
    Options::new("admin", VERSION, TABLES)
        // Nothing changes but who may write: a release that does not know the feed would change files and tell nobody.
        .migration(|_of_version_2| Ok(()))
        .migration(to_version_2)
}

/// Keys what is retired by replica, node and volume, and remembers the volumes of all copies.
fn to_version_2(database: &Database) -> Result<(), DbError> {
    let files: Table<Text<FileName>, AdminRow> = database.table("files")?;
    let volumes: Table<VolumeTableKey, ()> = database.table(VOLUMES)?;
    let retired: Table<VolumeTableKey, Retired> = database.table(RETIRED_VOLUMES)?;
    let mut with_copies = BTreeSet::new();
    for row in files.scan()? {
        with_copies.extend(of_copies(&row?.1.record));
    }
    let mut batch = database.batch();
    for volume in &with_copies {
        batch.put(&volumes, &to_table(volume), &())?;
    }
    match database.table::<Text<VolumeId>, RetiredVersion1>(RETIRED_BY_ID) {
        Ok(old) => {
            for row in old.scan()? {
                let (id, row) = row?;
                let key = (Text(row.replica), Text(row.node), id.clone());
                batch.put(&retired, &key, &row.retired)?;
                batch.delete(&old, &id)?;
            }
        }
        // A database from before there were retired volumes.
        Err(DbError::NoTable { .. }) => {}
        Err(error) => return Err(error),
    }
    batch.commit().map(|_| ())
}

/// The volumes that have a completed copy of a file.
pub(super) fn of_copies(record: &FileRecord) -> impl Iterator<Item = VolumeKey> + '_ {
    let copies = record.replicas.iter();
    let completed = copies.filter(|(_, copy)| copy.state.is_completed());
    completed.filter_map(|(replica, copy)| copy.volume_key(replica))
}

impl Admin {
    /// Every volume that has, or had, a completed copy; those that were retired as well.
    pub fn volumes(&self) -> Result<BTreeSet<VolumeKey>, DbError> {
        let rows = self.volumes.scan()?;
        rows.map(|row| row.map(|(key, ())| from_table(key)))
            .collect()
    }

    /// Forgets a volume that has no copy any more, if that is so: every one of them was moved, or given up.
    pub fn forget_if_empty(&self, volume: &VolumeKey) -> Result<bool, DbError> {
        for row in self.files(None)? {
            if of_copies(&row?.record).any(|key| key == *volume) {
                return Ok(false);
            }
        }
        let mut changes = self.change();
        changes.batch().delete(&self.volumes, &to_table(volume))?;
        self.commit(changes)?;
        Ok(true)
    }

    /// Remembers the volumes of a file's copies.
    pub(super) fn remember_volumes(
        &self,
        batch: &mut Batch,
        record: &FileRecord,
    ) -> Result<(), DbError> {
        for volume in of_copies(record) {
            let key = to_table(&volume);
            if self.volumes.get(&key)?.is_none() {
                batch.put(&self.volumes, &key, &())?;
            }
        }
        Ok(())
    }
}
