//! The tables of the admin data: their names, keys and versions, and the way from each version to the next.

use std::collections::BTreeSet;

use archive_db::{Database, DbError, Options, Table, Text, Value};
use archive_decisions::store::FileRecord;
use archive_model::{FileName, NodeId, ReplicaId, VolumeId, VolumeKey};
use serde::{Deserialize, Serialize};

use crate::rows::{AdminRow, Retirement};

/// The version of the tables.
pub(super) const VERSION: u32 = 4;

/// The first version whose admin data have a stamp beside them that is written before a change is acknowledged.
pub(super) const STAMPED: u32 = 2;

/// The table of numbers that do not follow from other rows.
pub(crate) const NUMBERS: &str = "numbers";

/// The key in the table of numbers for the last number of a request: no request outside the table of requests has this
/// number or a lower one.
pub(crate) const LAST_REQUEST: &str = "last-request";

/// The table of the retired volumes.
pub(crate) const RETIRED_VOLUMES: &str = "retired-volumes";

/// The table of the volumes that have, or had, copies.
pub(super) const VOLUMES: &str = "volumes-with-copies";

/// The table of the changes that are announced to followers.
pub(super) const FEED: &str = "feed";

/// The table of the index from places to the files there.
pub(super) const PLACES: &str = "places";

/// The table of the retired volumes in version 1.
const RETIRED_BY_ID: &str = "volumes";

/// Every table of the admin data.
pub(super) const TABLES: &[&str] = &[
    "files",
    "audit",
    "nodes",
    "anomalies",
    "anomaly-log",
    "checks",
    "requests",
    "replicas",
    RETIRED_VOLUMES,
    VOLUMES,
    "volume-states",
    "drains",
    "exports",
    "audit-log",
    "incidents",
    "similar",
    "batch",
    NUMBERS,
    FEED,
    PLACES,
];

/// The key of a node in a table.
pub(super) type NodeTableKey = (Text<ReplicaId>, Text<NodeId>);

/// The key of volumes in tables: as [`VolumeKey`], so that those of a replica, or of a node, lie together.
pub(crate) type VolumeTableKey = (Text<ReplicaId>, Text<NodeId>, Text<VolumeId>);

/// Returns the key of a volume in a table.
pub(crate) fn to_table(volume: &VolumeKey) -> VolumeTableKey {
    (
        Text(volume.replica.clone()),
        Text(volume.node.clone()),
        Text(volume.volume.clone()),
    )
}

/// Returns the volume of a key in a table.
pub(crate) fn from_table((Text(replica), Text(node), Text(volume)): VolumeTableKey) -> VolumeKey {
    VolumeKey {
        replica,
        node,
        volume,
    }
}

/// Returns the volumes that have a completed copy of a file.
pub(super) fn volumes_of(record: &FileRecord) -> impl Iterator<Item = VolumeKey> + '_ {
    let copies = record.replicas.iter();
    let completed = copies.filter(|(_, copy)| copy.state.is_completed());
    completed.filter_map(|(replica, copy)| copy.volume_key(replica))
}

/// A retired volume in version 1.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RetiredVersion1 {
    pub(super) replica: ReplicaId,
    pub(super) node: NodeId,
    pub(super) retired: Retirement,
}

impl Value for RetiredVersion1 {}

/// Returns the options with which the admin data are opened.
pub(super) fn options() -> Options {
    Options::new("admin", VERSION, TABLES)
        // Only the writers change: a release that does not know the index of places would change files and not the
        // index. It is made when all other tables are as they should be.
        .migration(|_of_version_3| Ok(()))
        // Again only the writers change: a release that does not know the feed would change files and announce nothing.
        .migration(|_of_version_2| Ok(()))
        .migration(to_version_2)
}

/// Keys what is retired by replica, node and volume, and stores the volumes of all copies.
fn to_version_2(database: &Database) -> Result<(), DbError> {
    let files: Table<Text<FileName>, AdminRow> = database.table("files")?;
    let volumes: Table<VolumeTableKey, ()> = database.table(VOLUMES)?;
    let retired: Table<VolumeTableKey, Retirement> = database.table(RETIRED_VOLUMES)?;
    let mut with_copies = BTreeSet::new();
    for row in files.scan()? {
        with_copies.extend(volumes_of(&row?.1.record));
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
