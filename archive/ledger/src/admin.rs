//! The decisions about every file, and the trail of who did what: one database, one synced batch for both.
//!
//! Written before it is acted on. Damage is never read as absence: a row that does not decode, or a database that ends
//! before the stamp that is kept beside it, stops the repository. Before a change is acknowledged the stamp is brought
//! up to date; so what is behind it at the end of a log, torn by a power cut, was never acknowledged, and is cut away.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does; those that open the admin data also with [`AdminError`] if
//! the data are not those of the stamp, or are of another version.

mod counts;
mod derived;
mod error;
mod feed;
mod job_ledger;
mod lagging;
mod places;
mod restoring;
pub(crate) mod schema;
mod similar;
pub mod stamp;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests damage files")]
mod tests;
mod trail;
#[cfg(test)]
mod versions;
mod volumes;
mod walk;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_db::{
    BrokenDatabase, ChangeBatch, Database, DbError, Key, Table, TableValue, Text, TornTail,
};
use archive_durable::{AppendFile, DiskError};
use archive_model::{FileName, NodeId, ReplicaId};
use parking_lot::{Mutex, MutexGuard};

pub use crate::rows::{AdminRow, AuditLine, NodeRow};
pub use counts::AdminCounts;
pub use error::AdminError;
pub use job_ledger::JobLedger;
pub use lagging::LateFiles;
pub use restoring::AdminRestore;
pub use trail::TrailSnapshot;
pub use walk::{FileWalk, PageLimits, WalkPage, WalkScope};

use derived::{ChangedFiles, DerivedValues};
use schema::{NodeTableKey, VolumeTableKey};
use stamp::STAMP;

/// The admin data.
#[derive(Clone, Debug)]
pub struct Admin {
    database: Database,
    files: Table<Text<FileName>, AdminRow>,
    audit: Table<u64, AuditLine>,
    nodes: Table<NodeTableKey, NodeRow>,
    volumes: Table<VolumeTableKey, ()>,
    log_end: trail::LogEnds,
    /// The number of changes of the nodes and volumes that are remembered.
    members: Arc<AtomicU64>,
    /// The number that the next line of the trail gets.
    next_line: Arc<AtomicU64>,
    similar: similar::Similar,
    places: places::Places,
    feed: feed::Feed,
    stamp: Arc<stamp::AdminStamp>,
    /// The lock that is held while lines of the trail get their numbers: several tasks change the admin data.
    numbering: Arc<Mutex<()>>,
    running: Arc<Mutex<counts::RunningCounts>>,
}

/// Changes that are written together.
#[derive(Debug)]
pub struct Changes {
    batch: ChangeBatch,
    lines: Vec<AuditLine>,
    /// Whether a node or a volume is remembered, or forgotten.
    has_members: bool,
    /// The values derived from the new row of each changed file.
    files: ChangedFiles,
}

impl Changes {
    /// Returns the batch itself, for rows of the other tables.
    pub const fn batch(&mut self) -> &mut ChangeBatch {
        &mut self.batch
    }

    /// Adds a line to the trail; it gets its number when the changes are written.
    pub fn note_line(&mut self, line: AuditLine) {
        self.lines.push(line);
    }
}

impl Admin {
    /// Opens the admin data in the directory `data`. Refuses a directory without any, which may be a disk that is not
    /// mounted, and a database that ends before the stamp beside it.
    pub fn open(data: &Path) -> Result<Self, AdminError> {
        if !AdminRestore::is_there(data)? {
            return Err(AdminError::Absent(data.to_owned()));
        }
        Self::open_at(data)
    }

    /// Opens the admin data as [`Admin::open`] does, for an archive that begins: makes them where there are none, and
    /// no stamp says that there were any.
    pub fn init(data: &Path) -> Result<Self, AdminError> {
        archive_durable::directory::make_directory(data)?;
        // A stamp alone that says 0 is what is left of a beginning that was cut off.
        if stamp::read_stamp(&data.join(STAMP))?.is_some_and(|reach| reach.sequence > 0) {
            return Self::open(data);
        }
        Self::open_at(data)
    }

    fn open_at(data: &Path) -> Result<Self, AdminError> {
        let path = data.join(STAMP);
        let found = stamp::find_stamp(&path)?;
        let mut options = schema::admin_options();
        if let Some(found) = &found {
            options = options.torn_tail(cut);
            if let Some(reach) = found.content.reach() {
                options = options.with_reach(reach);
            }
        }
        let is_absent = found.is_none();
        let stamp = stamp::AdminStamp::new(path.clone(), found);
        if is_absent && !AdminRestore::is_there(data)? {
            stamp.begin_stamp()?;
        }
        let database = data.join("admin");
        let opened = Database::open(&database, &options);
        let database = opened.map_err(|error| AdminError::from_open(database, error))?;
        if is_absent && !database.is_new() {
            return Err(AdminError::Unstamped(path));
        }
        let admin = Self::new(database, stamp)?;
        admin.index_names()?;
        admin.index_places()?;
        if let Some(position) = admin.log_end()? {
            admin.stamp.log_ends(&position);
        }
        admin.write_stamp()?;
        Ok(admin)
    }

    fn new(database: Database, stamp: stamp::AdminStamp) -> Result<Self, AdminError> {
        let audit: Table<u64, AuditLine> = database.table("audit")?;
        let next_line = audit.last()?.map_or(0, |(last, _)| last.saturating_add(1));
        Ok(Self {
            files: database.table("files")?,
            audit,
            members: Arc::default(),
            next_line: Arc::new(AtomicU64::new(next_line)),
            nodes: database.table("nodes")?,
            volumes: database.table(schema::VOLUMES)?,
            log_end: database.table("audit-log")?,
            similar: similar::Similar::open(&database)?,
            places: places::Places::open(&database)?,
            feed: feed::Feed::open(&database)?,
            database,
            stamp: Arc::new(stamp),
            numbering: Arc::default(),
            running: Arc::default(),
        })
    }

    /// Returns the write that was cut away when the data were opened, if any: a power cut had torn it, and it was
    /// not acknowledged.
    pub fn torn(&self) -> Option<&TornTail> {
        self.database.torn()
    }

    /// Returns the row of one file.
    pub fn file(&self, name: &FileName) -> Result<Option<AdminRow>, DbError> {
        self.files.get(&Text(name.clone()))
    }

    /// Returns the rows of all files, sorted by name, from the first name after `after` on. Damage ends the rows with
    /// an error.
    pub fn list_files<'a>(
        &'a self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<AdminRow, DbError>> + use<'a>, DbError> {
        use std::ops::Bound::{Excluded, Unbounded};
        let rows = match after {
            None => self.files.scan()?,
            Some(after) => self
                .files
                .range((Excluded(Text(after.clone())), Unbounded))?,
        };
        Ok(rows.map(|row| row.map(|(_, row)| row)))
    }

    /// Returns the reason why nothing can be written into the admin data any more, if a write failed so.
    pub fn broken(&self) -> Option<BrokenDatabase> {
        self.database.broken()
    }

    /// Returns the nodes that belong to a replica, heard of or not, without the retired ones.
    pub fn list_nodes(&self, replica: &ReplicaId) -> Result<Vec<NodeId>, DbError> {
        let mut nodes = Vec::new();
        for row in self.nodes.prefix(&Text(replica.clone()))? {
            let ((_, Text(node)), row) = row?;
            if row.retired.is_none() {
                nodes.push(node);
            }
        }
        Ok(nodes)
    }

    /// Returns every node, the retired ones included, sorted by replica and node.
    pub fn all_nodes(
        &self,
    ) -> Result<impl Iterator<Item = Result<(ReplicaId, NodeId, NodeRow), DbError>> + '_, DbError>
    {
        let rows = self.nodes.scan()?;
        Ok(rows.map(|row| row.map(|((Text(replica), Text(node)), row)| (replica, node, row))))
    }

    /// Remembers nodes of a replica; the row of a node that is known stays.
    pub fn add_nodes(&self, replica: &ReplicaId, nodes: &[NodeId]) -> Result<(), DbError> {
        let mut changes = self.begin_changes();
        for node in nodes {
            self.remember(&mut changes, replica, node)?;
        }
        self.commit_unstamped(changes)
    }

    fn remember(
        &self,
        changes: &mut Changes,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<(), DbError> {
        let key = (Text(replica.clone()), Text(node.clone()));
        if self.nodes.get(&key)?.is_some() {
            return Ok(());
        }
        changes.has_members = true;
        changes.batch.put(&self.nodes, &key, &NodeRow::default())
    }

    /// Returns a number that changes each time that a node or a volume is remembered, or a volume forgotten: at the
    /// same number they need not be read again.
    pub fn members_version(&self) -> u64 {
        self.members.load(Ordering::Acquire)
    }

    /// Begins a set of changes.
    pub fn begin_changes(&self) -> Changes {
        Changes {
            batch: self.database.batch(),
            lines: Vec::new(),
            has_members: false,
            files: ChangedFiles::new(),
        }
    }

    fn running(&self) -> MutexGuard<'_, counts::RunningCounts> {
        self.running.lock()
    }

    /// Lets `read` begin its readings while nobody changes anything: all of them show one moment.
    pub(crate) fn at_one_moment<T>(&self, read: impl FnOnce() -> T) -> T {
        let _unchanged = self.numbering();
        read()
    }

    fn numbering(&self) -> MutexGuard<'_, ()> {
        self.numbering.lock()
    }

    /// Returns one of the other tables, for the source file that owns it.
    pub fn open_table<K: Key, V: TableValue>(&self, name: &str) -> Result<Table<K, V>, DbError> {
        self.database.table(name)
    }

    /// Sets the row of a file. A node that the row names as the place of a copy is a node of that replica from then on,
    /// and the volume of a completed copy a volume of that node: a listing of the replica without node or volume has a
    /// gap, even if nobody has heard of either since.
    pub fn put_row(&self, changes: &mut Changes, row: &AdminRow) -> Result<(), DbError> {
        let name = &row.record.name;
        let derived = DerivedValues::from_record(&row.record);
        changes.files.insert(name.clone(), derived);
        self.similar.put_name(changes, name)?;
        for (replica, copy) in &row.record.replicas {
            if let Some(node) = &copy.node {
                self.remember(changes, replica, node)?;
            }
        }
        self.remember_volumes(changes, &row.record)?;
        changes.batch.put(&self.files, &Text(name.clone()), row)
    }

    /// Deletes the row of a name that no file has taken after all.
    pub fn forget_file(&self, changes: &mut Changes, name: &FileName) -> Result<(), DbError> {
        changes.files.insert(name.clone(), DerivedValues::default());
        self.similar.forget_name(changes, name)?;
        changes.batch.delete(&self.files, &Text(name.clone()))
    }

    /// Writes a line of the trail that belongs to no change in the tables.
    pub fn note_line(&self, line: AuditLine) -> Result<(), DbError> {
        let mut changes = self.begin_changes();
        changes.note_line(line);
        self.commit_changes(changes)
    }

    /// Writes the changes and their lines of the trail, all or none, synced. From then on their loss would be noticed:
    /// the stamp says how far the database has come.
    pub fn commit_changes(&self, changes: Changes) -> Result<(), DbError> {
        self.commit_unstamped(changes)?;
        self.write_stamp().map_err(|error| DbError::Io {
            path: error.path.clone(),
            what: error.to_string(),
        })
    }

    /// Writes the changes as [`Admin::commit_changes`] does, without the stamp: a power cut may take them away unnoticed, so
    /// that they are not acknowledged before [`Admin::write_stamp`].
    pub fn commit_unstamped(&self, changes: Changes) -> Result<(), DbError> {
        let Changes {
            mut batch,
            lines,
            has_members,
            files,
        } = changes;
        let _numbering = self.numbering();
        let mut before = AdminCounts::default();
        let mut transitions = feed::Transitions::new();
        for (name, after) in &files {
            let row = self.file(name)?;
            let known = row.map_or_else(DerivedValues::default, |row| {
                DerivedValues::from_record(&row.record)
            });
            self.places
                .change_places(&mut batch, name, &known.places, &after.places)?;
            before.add(&known.counted.counts);
            transitions.insert(name.clone(), (known.state, after.state.clone()));
        }
        let fed = self.feed.write_change(&mut batch, transitions)?;
        let mut next_line = self.next_line();
        for line in &lines {
            batch.put(&self.audit, &next_line, line)?;
            next_line = next_line.saturating_add(1);
        }
        batch.commit()?;
        self.next_line.store(next_line, Ordering::Release);
        self.members
            .fetch_add(u64::from(has_members), Ordering::AcqRel);
        self.feed.set_committed(fed);
        let counted = files.iter().map(|(name, after)| (name, &after.counted));
        self.running().change_counts(&before, counted);
        Ok(())
    }

    /// Writes into the stamp, durably, how far the database has come. Costs nothing if it has not come further.
    /// Changes that were committed before may then be announced to followers of the feed.
    pub fn write_stamp(&self) -> Result<(), DiskError> {
        let fed = self.feed.committed_position();
        self.stamp.write_stamp(|| self.database.reach())?;
        self.feed.announce_position(fed);
        Ok(())
    }
}

/// Cuts away what a power cut left of a log.
fn cut(log: &Path, length: u64) -> Result<(), String> {
    let cut = AppendFile::open(log).and_then(|mut log| log.cut(length));
    cut.map_err(|error| error.to_string())
}
