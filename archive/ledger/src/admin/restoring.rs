//! Admin data that are put together again, row by row, and cannot be opened before all of them are there.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does, and those that begin and end also with [`AdminError`] if
//! the directory or the stamp cannot be read or written.

use std::collections::BTreeSet;
use std::path::Path;

use archive_db::{Database, DbError, Load, Text};
use archive_model::{FileName, NodeId, ReplicaId, VolumeKey};
use jiff::Timestamp;

use super::schema::{LAST_REQUEST, NUMBERS, admin_options, to_table, volumes_of};
use super::stamp::{AdminStamp, STAMP};
use super::{Admin, AdminError, AdminRow, AuditLine, NodeRow};
use crate::audit_log::LogPosition;

/// Admin data that are put together again. Cut off before the end they cannot be opened, and are removed.
#[derive(Debug)]
pub struct AdminRestore {
    admin: Admin,
    load: Load,
    /// The volumes of the copies that were taken.
    volumes: BTreeSet<VolumeKey>,
}

impl AdminRestore {
    /// Whether a directory has admin data already. A stamp alone is what is left where they were lost.
    pub fn is_there(data: &Path) -> Result<bool, AdminError> {
        match archive_durable::directory::list_directory(&data.join("admin")) {
            Err(error) if error.is_absent() => Ok(false),
            Err(error) => Err(error.into()),
            Ok(entries) => Ok(!entries.is_empty()),
        }
    }

    /// Begins in a directory that has no admin data.
    pub fn begin_restore(data: &Path) -> Result<Self, AdminError> {
        archive_durable::directory::make_directory(data)?;
        let database = Database::open(&data.join("admin"), &admin_options())?;
        // The stamp of what was lost stays until the end: it says that there was something.
        let stamp = AdminStamp::new(data.join(STAMP), None);
        let admin = Admin::new(database, stamp)?;
        let load = admin.database.load()?;
        Ok(Self {
            admin,
            load,
            volumes: BTreeSet::new(),
        })
    }

    /// Takes a file, and remembers the volumes of its copies.
    pub fn restore_file(&mut self, row: &AdminRow) -> Result<(), DbError> {
        for volume in volumes_of(&row.record) {
            let key = to_table(&volume);
            if self.volumes.insert(volume) {
                self.load.put(&self.admin.volumes, &key, &())?;
            }
        }
        let key = Text(row.record.name.clone());
        self.load.put(&self.admin.files, &key, row)
    }

    /// Takes a node.
    pub fn restore_node(
        &mut self,
        replica: ReplicaId,
        node: NodeId,
        row: &NodeRow,
    ) -> Result<(), DbError> {
        let key = (Text(replica), Text(node));
        self.load.put(&self.admin.nodes, &key, row)
    }

    /// Returns the admin data, for tables that have a room of their own, and the load that takes their rows.
    pub(crate) const fn split_parts(&mut self) -> (&Admin, &mut Load) {
        (&self.admin, &mut self.load)
    }

    /// Makes the rows that were taken so far readable.
    pub fn settle_load(&mut self) -> Result<(), DbError> {
        self.load.settle()
    }

    /// Returns the row of a file, if it was taken before the last [`AdminRestore::settle_load`].
    pub fn restored_row(&self, name: &FileName) -> Result<Option<AdminRow>, DbError> {
        self.admin.file(name)
    }

    /// Whether a node was taken before the last [`AdminRestore::settle_load`].
    pub fn has_node(&self, replica: &ReplicaId, node: &NodeId) -> Result<bool, DbError> {
        let key = (Text(replica.clone()), Text(node.clone()));
        Ok(self.admin.nodes.get(&key)?.is_some())
    }

    /// Takes a line of the trail.
    pub fn restore_line(&mut self, number: u64, line: &AuditLine) -> Result<(), DbError> {
        self.load.put(&self.admin.audit, &number, line)
    }

    /// Takes the position that the existing log has reached.
    pub fn set_log_end(&mut self, position: LogPosition) -> Result<(), DbError> {
        self.admin.stamp.log_ends(&position);
        self.load.put(&self.admin.log_end, &0, &position)
    }

    /// Makes the restored data durable, with a fresh stamp.
    ///
    /// Requests that were made since the export, or all of them, are not known any more, and their ids stand in attics
    /// and in the trail. So the next request has a number that the archive cannot have come to before: that of the
    /// minutes since 1970, of which each had one request at most.
    pub fn finish_restore(self, now: Timestamp) -> Result<(), AdminError> {
        let Self {
            admin, mut load, ..
        } = self;
        let minutes = u64::try_from(now.as_second() / 60).unwrap_or_default();
        let numbers = admin.open_table(NUMBERS)?;
        load.put(&numbers, &LAST_REQUEST.to_owned(), &minutes)?;
        load.finish()?;
        Ok(admin.write_stamp()?)
    }

    /// Removes the database that was begun.
    pub fn abandon_restore(self, data: &Path) -> Result<(), DbError> {
        drop(self);
        Database::destroy(&data.join("admin"))
    }
}
