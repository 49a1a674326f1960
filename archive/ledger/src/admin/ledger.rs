//! The admin data as the audit log, the exports and their restoring need them.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does, and [`Load`] also with [`AdminError`] if the stamp cannot
//! be written.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::Path;
use std::sync::PoisonError;

use archive_db::{Database, DbError, Load, Table, Text};
use archive_model::{FileName, NodeId, ReplicaId, VolumeKey};
use jiff::Timestamp;

use super::stamp::{STAMP, Stamp};
use super::{Admin, AdminError, AdminRow, AuditLine, LAST_REQUEST, NUMBERS, NodeRow, volumes};
use crate::audit_log::{Position, Rows as TrailRows};
use crate::export::{Node, Row, Rows};

/// The key of the table of the nodes.
type Key = (Text<ReplicaId>, Text<NodeId>);

/// Rows of a table, as they were when the reading began.
type Reading<'a, T> = Box<dyn Iterator<Item = Result<T, DbError>> + 'a>;

/// The admin data as they stood at one moment.
pub struct Snapshot<'a> {
    /// Every file, sorted by name.
    pub files: Reading<'a, AdminRow>,
    /// Every node.
    pub nodes: Reading<'a, Node>,
    /// The rows of the other tables.
    pub rows: Rows<'a>,
    /// The table of the trail: its newest line at least, if there is any.
    pub trail: Reading<'a, (u64, AuditLine)>,
    /// The number of the newest line of the trail.
    pub last: Option<u64>,
}

impl fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

impl Admin {
    /// The lines of the trail that the table still has, from this number on.
    pub fn audit_rows(
        &self,
        from: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, AuditLine), DbError>> + '_, DbError> {
        self.audit.range((Included(from), Unbounded))
    }

    /// Returns the position up to which the log has surely come; `None` if it was never begun.
    pub fn log_end(&self) -> Result<Option<Position>, DbError> {
        self.log_end.get(&0)
    }

    /// Remembers how far the log has come, and takes away the rows that are in it, but for the one of number `last`.
    pub fn set_log_end(&self, position: Position, last: u64) -> Result<(), DbError> {
        let mut batch = self.database.batch();
        // What is before that was taken away the last time; to look there again would read its gravestones.
        let from = self
            .log_end()?
            .map_or(0, |before| before.chain.next().saturating_sub(1));
        for row in self.audit.range((Included(from), Excluded(last)))? {
            batch.delete(&self.audit, &row?.0)?;
        }
        batch.put(&self.log_end, &0, &position)?;
        batch.commit()?;
        self.stamp.log_ends(&position);
        Ok(())
    }

    /// Everything, as it stands now: nobody changes files and trail while the reading begins.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, DbError> {
        let _unchanged = self
            .numbering
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let node = |((Text(replica), Text(id)), row): (Key, NodeRow)| Node {
            replica,
            id,
            retired: row.retired,
        };
        let nodes = self.nodes.scan()?.map(move |row| row.map(node));
        Ok(Snapshot {
            files: Box::new(self.files.scan()?.map(|row| row.map(|(_, row)| row))),
            nodes: Box::new(nodes),
            rows: self.rows.read()?,
            trail: Box::new(self.audit.scan()?),
            last: self.audit.last()?.map(|(number, _)| number),
        })
    }
}

impl TrailRows for Admin {
    fn row(&self, number: u64) -> Result<Option<AuditLine>, DbError> {
        self.audit.get(&number)
    }
}

/// Admin data that are put together again. Cut off before the end they cannot be opened, and are removed.
#[derive(Debug)]
pub struct Restoring {
    admin: Admin,
    load: Load,
    /// The volumes of the copies that were taken.
    volumes: BTreeSet<VolumeKey>,
}

impl Restoring {
    /// Whether a directory has admin data already. A stamp alone is what is left where they were lost.
    pub fn is_there(data: &Path) -> Result<bool, AdminError> {
        match archive_durable::directory::list(&data.join("admin")) {
            Err(error) if error.is_absent() => Ok(false),
            Err(error) => Err(error.into()),
            Ok(entries) => Ok(!entries.is_empty()),
        }
    }

    /// Begins in a directory that has none.
    pub fn begin(data: &Path) -> Result<Self, AdminError> {
        archive_durable::directory::make(data)?;
        let database = Database::open(&data.join("admin"), &volumes::options())?;
        // The stamp of what was lost stays until the end: it says that there was something.
        let stamp = Stamp::new(data.join(STAMP), None);
        let admin = Admin::new(database, stamp)?;
        let load = admin.database.load()?;
        Ok(Self {
            admin,
            load,
            volumes: BTreeSet::new(),
        })
    }

    /// Takes a file, and remembers the volumes of its copies.
    pub fn file(&mut self, row: &AdminRow) -> Result<(), DbError> {
        for volume in volumes::of_copies(&row.record) {
            let key = volumes::to_table(&volume);
            if self.volumes.insert(volume) {
                self.load.put(&self.admin.volumes, &key, &())?;
            }
        }
        let key = Text(row.record.name.clone());
        self.load.put(&self.admin.files, &key, row)
    }

    /// Takes a node.
    pub fn node(&mut self, node: Node) -> Result<(), DbError> {
        let key = (Text(node.replica), Text(node.id));
        let row = NodeRow {
            retired: node.retired,
        };
        self.load.put(&self.admin.nodes, &key, &row)
    }

    /// Takes a row of another table.
    pub fn row(&mut self, row: Row) -> Result<(), DbError> {
        self.admin.rows.load(&mut self.load, row)
    }

    /// Lets what was taken so far be asked for.
    pub fn settle(&mut self) -> Result<(), DbError> {
        self.load.settle()
    }

    /// A file that was taken before the last [`Restoring::settle`].
    pub fn known(&self, name: &FileName) -> Result<Option<AdminRow>, DbError> {
        self.admin.file(name)
    }

    /// Whether a node was taken before the last [`Restoring::settle`].
    pub fn has_node(&self, replica: &ReplicaId, node: &NodeId) -> Result<bool, DbError> {
        let key = (Text(replica.clone()), Text(node.clone()));
        Ok(self.admin.nodes.get(&key)?.is_some())
    }

    /// Takes a line of the trail.
    pub fn line(&mut self, number: u64, line: &AuditLine) -> Result<(), DbError> {
        self.load.put(&self.admin.audit, &number, line)
    }

    /// Takes how far the log that is there has come.
    pub fn set_log_end(&mut self, position: Position) -> Result<(), DbError> {
        self.admin.stamp.log_ends(&position);
        self.load.put(&self.admin.log_end, &0, &position)
    }

    /// Makes them durable, with a fresh stamp.
    ///
    /// Requests that were made since the export, or all of them, are not known any more, and their ids stand in attics and
    /// in the trail. So the next request has a number that the archive cannot have come to before: that of the minutes
    /// since 1970, of which each had one request at most.
    pub fn finish(self, now: Timestamp) -> Result<(), AdminError> {
        let Self {
            admin, mut load, ..
        } = self;
        let minutes = u64::try_from(now.as_second() / 60).unwrap_or_default();
        let numbers = admin.table(NUMBERS)?;
        load.put(&numbers, &LAST_REQUEST.to_owned(), &minutes)?;
        load.finish()?;
        Ok(admin.stamp()?)
    }

    /// Removes what was begun.
    pub fn abandon(self, data: &Path) -> Result<(), DbError> {
        drop(self);
        Database::destroy(&data.join("admin"))
    }
}

/// Where it is kept how far the log has come: one row.
pub(super) type LogEnds = Table<u64, Position>;
