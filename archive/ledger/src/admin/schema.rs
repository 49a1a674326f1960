//! The tables of the admin data: their names, keys and version.

use archive_db::{DatabaseOptions, Text};
use archive_decisions::store::FileRecord;
use archive_model::{NodeId, ReplicaId, VolumeId, VolumeKey};

/// The version of the tables.
pub(super) const VERSION: u32 = 4;

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

/// Returns the options with which the admin data are opened.
pub(super) fn admin_options() -> DatabaseOptions {
    DatabaseOptions::new("admin", VERSION, TABLES)
}
