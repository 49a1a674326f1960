//! A snapshot of everything that is exported, taken at one moment.

use archive_db::DbError;

use super::{ExportNode, TableRows, Tables};
use crate::admin::{Admin, AdminRow, NodeRow, TrailSnapshot};

/// Rows of a table, as they were when the reading began.
type SnapshotRows<'a, T> = Box<dyn Iterator<Item = Result<T, DbError>> + 'a>;

/// The admin data as they stood at one moment.
pub(super) struct Snapshot<'a> {
    /// Every file, sorted by name.
    pub(super) files: SnapshotRows<'a, AdminRow>,
    /// Every node.
    pub(super) nodes: SnapshotRows<'a, ExportNode>,
    /// The rows of the other tables.
    pub(super) rows: TableRows<'a>,
    /// The table of the trail.
    pub(super) trail: TrailSnapshot<'a>,
}

impl<'a> Snapshot<'a> {
    /// Begins to read everything while nobody changes anything.
    pub(super) fn take_snapshot(admin: &'a Admin, tables: &'a Tables) -> Result<Self, DbError> {
        let node = |(replica, id, row): (_, _, NodeRow)| ExportNode {
            replica,
            id,
            retired: row.retired,
        };
        admin.at_one_moment(|| {
            Ok(Self {
                files: Box::new(admin.list_files(None)?),
                nodes: Box::new(admin.all_nodes()?.map(move |row| row.map(node))),
                rows: tables.read_tables()?,
                trail: admin.trail_snapshot()?,
            })
        })
    }
}
