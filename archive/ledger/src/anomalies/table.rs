//! Where anomalies are filed: the open ones by file, replica and slot (the kind, and of damage the copy), the closed
//! ones by id.
//!
//! Filing and closing are one synced batch with their line of the audit trail. The number of open ones, and of their
//! files in each replica, is kept in memory, so that nobody has to read the tables for it.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does, or a row cannot be decoded.

mod running;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use archive_daemon::Clock;
use archive_db::{DbError, Table, TableValue, Text};
use archive_decisions::store::FileRecord;
use archive_model::{AnomalyClass, AnomalyKind, FileName, Groups, ReplicaId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use self::running::{AnomalyFigures, waits_for_person};
use super::{
    AnomalyChange, AnomalyRecord, ClosedAnomaly, DatedReason, Look, compare_kinds, found_again,
    is_within,
};
use crate::admin::{Admin, AuditLine};

type Key = (Text<FileName>, Text<ReplicaId>, String);

impl TableValue for AnomalyRecord {}

impl TableValue for ClosedAnomaly {}

/// An anomaly of one file in one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnomalyRow {
    /// The file.
    pub file: FileName,
    /// The replica.
    pub replica: ReplicaId,
    /// The anomaly as it is filed.
    pub filed: AnomalyRecord,
    /// The time and the reason of the closing; `None` while the anomaly is open or accepted.
    pub closed: Option<DatedReason>,
}

/// The copy that is looked at, and the person or part that looks.
#[derive(Clone, Copy, Debug)]
pub struct Filing<'a> {
    /// The file.
    pub file: &'a FileName,
    /// The replica.
    pub replica: &'a ReplicaId,
    /// The person or part that looks, as `role/name`.
    pub who: &'a str,
}

/// The result of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookResult {
    /// The anomalies that were found, as they are filed now.
    pub open: Vec<AnomalyRow>,
    /// The number of anomalies in `open` that are new.
    pub new: u64,
    /// The number of anomalies that the look closed.
    pub closed: u64,
}

/// The anomalies of the archive.
#[derive(Debug)]
pub struct Anomalies {
    admin: Admin,
    clock: Clock,
    open: Table<Key, AnomalyRecord>,
    log: Table<u64, ClosedAnomaly>,
    /// Held over each reading, decision and commit.
    writing: Mutex<()>,
    /// Held for moments only, so that who asks for a number waits for no disk.
    figures: Mutex<AnomalyFigures>,
    changed: watch::Sender<u64>,
}

impl Anomalies {
    /// Opens the tables of anomalies and counts their rows.
    pub fn open(admin: &Admin, clock: Clock) -> Result<Self, DbError> {
        let open: Table<Key, AnomalyRecord> = admin.open_table("anomalies")?;
        let log: Table<u64, ClosedAnomaly> = admin.open_table("anomaly-log")?;
        let mut running = AnomalyFigures {
            next_id: log.last()?.map_or(1, |(id, _)| id.saturating_add(1)),
            ..AnomalyFigures::default()
        };
        let now = clock.now();
        let mut last = None;
        for row in open.scan()? {
            let ((Text(file), Text(replica), _), filed) = row?;
            running.next_id = running.next_id.max(filed.id.saturating_add(1));
            running.add(&filed);
            // The rows are sorted: those of one file in one replica come together.
            let of = Some((file, replica.clone()));
            if waits_for_person(&filed) && last != of {
                *running.waiting.entry(replica).or_default() += 1;
                last = of;
            }
        }
        for row in log.scan()? {
            let (_, closed) = row?;
            running.count_ended(&closed.replica, &closed.filed, closed.ended.at, now);
        }
        Ok(Self {
            admin: admin.clone(),
            clock,
            open,
            log,
            writing: Mutex::default(),
            figures: Mutex::new(running),
            changed: watch::Sender::new(0),
        })
    }

    /// Files the anomalies that a look found, and closes those that it could have found and did not.
    pub fn file_look(&self, filing: Filing<'_>, look: &Look) -> Result<LookResult, DbError> {
        let _alone = self.writing.lock();
        self.file(filing, look)
    }

    /// Files and closes as [`Anomalies::file_look`] does if `is_so` returns `true` for the file's record and the anomalies
    /// that are filed of the file in any replica. Otherwise the file has changed since the look: files nothing, and
    /// returns `None`. A copy that is recorded later closes what was filed before.
    pub fn look_while(
        &self,
        filing: Filing<'_>,
        look: &Look,
        is_so: impl FnOnce(Option<&FileRecord>, &[AnomalyRow]) -> bool,
    ) -> Result<Option<LookResult>, DbError> {
        let _alone = self.writing.lock();
        let row = self.admin.file(filing.file)?;
        let filed = self.rows_of(filing.file)?;
        if !is_so(row.as_ref().map(|row| &row.record), &filed) {
            return Ok(None);
        }
        self.file(filing, look).map(Some)
    }

    /// Files what a look found; the caller writes alone.
    fn file(&self, filing: Filing<'_>, look: &Look) -> Result<LookResult, DbError> {
        let filed = self.filed(filing.file, filing.replica)?;
        let changes = compare_kinds(&filed, look, self.clock.now(), self.figures().next_id);
        self.write(filing, &changes)?;
        let mut found = LookResult::default();
        for change in changes {
            let row = |filed: AnomalyRecord| AnomalyRow {
                file: filing.file.clone(),
                replica: filing.replica.clone(),
                filed,
                closed: None,
            };
            match change {
                AnomalyChange::File(filed) => {
                    found.new += 1;
                    found.open.push(row(filed));
                }
                AnomalyChange::Update(filed) | AnomalyChange::Reopen(filed) => {
                    found.open.push(row(filed));
                }
                AnomalyChange::Close(..) => found.closed += 1,
            }
        }
        Ok(found)
    }

    /// Notes that these groups of a file were found good in some copy: they are not lost any more.
    pub fn found_again(&self, file: &FileName, good: &Groups, who: &str) -> Result<(), DbError> {
        let _alone = self.writing.lock();
        for row in self.rows_of(file)? {
            let change = found_again(&row.filed, good);
            let filing = Filing {
                file,
                replica: &row.replica,
                who,
            };
            self.write(filing, change.as_slice())?;
        }
        Ok(())
    }

    /// Accepts an anomaly. Returns `false` if it is not open any more, or has become more than `most`.
    pub fn accept_anomaly(
        &self,
        row: &AnomalyRow,
        most: &AnomalyKind,
        (why, who): (&str, &str),
    ) -> Result<bool, DbError> {
        let _alone = self.writing.lock();
        let still = self.open.get(&key(row))?;
        let is_it =
            |still: &AnomalyRecord| still.id == row.filed.id && is_within(&still.kind, most);
        let Some(old) = still.filter(is_it) else {
            return Ok(false);
        };
        let ended = DatedReason {
            at: self.clock.now(),
            why: why.to_owned(),
        };
        let new = AnomalyRecord {
            accepted: Some(ended),
            ..old.clone()
        };
        let mut changes = self.admin.begin_changes();
        changes.batch().put(&self.open, &key(row), &new)?;
        let what = format!("a{}: {} accepted: {why}", new.id, new.kind);
        changes.note_line(self.line(filing(row, who), what));
        let before = self.filed(&row.file, &row.replica)?;
        self.admin.commit_changes(changes)?;
        let after = self.filed(&row.file, &row.replica)?;
        let mut figures = self.figures();
        figures.subtract(&old);
        figures.add(&new);
        figures.count_open(&row.replica, &before, &after);
        drop(figures);
        self.notify_change();
        Ok(true)
    }

    /// Remembers what came of an attempt to repair one.
    pub fn note_anomaly(&self, row: &AnomalyRow, note: &str) -> Result<(), DbError> {
        let _alone = self.writing.lock();
        let Some(old) = self
            .open
            .get(&key(row))?
            .filter(|old| old.id == row.filed.id)
        else {
            return Ok(());
        };
        if old.note.as_deref() == Some(note) {
            return Ok(());
        }
        let new = AnomalyRecord {
            note: Some(note.to_owned()),
            ..old
        };
        let mut changes = self.admin.begin_changes();
        changes.batch().put(&self.open, &key(row), &new)?;
        self.admin.commit_changes(changes)
    }

    /// Returns the open and accepted anomalies of one file.
    pub fn rows_of(&self, file: &FileName) -> Result<Vec<AnomalyRow>, DbError> {
        let rows = self.open.prefix(&Text(file.clone()))?;
        rows.map(|row| Ok(open_row(row?))).collect()
    }

    /// Returns the open and accepted anomalies, sorted by file, then replica, then kind. Damage of the table ends the
    /// rows with an error.
    pub fn list_rows(
        &self,
    ) -> Result<impl Iterator<Item = Result<AnomalyRow, DbError>> + '_, DbError> {
        Ok(self.open.scan()?.map(|row| row.map(open_row)))
    }

    /// Returns the open and accepted anomalies as [`Anomalies::list_rows`] does, from the first after `last` on.
    pub fn rows_after(
        &self,
        last: Option<&AnomalyRow>,
    ) -> Result<impl Iterator<Item = Result<AnomalyRow, DbError>> + use<'_>, DbError> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = last.map_or(Unbounded, |last| Excluded(key(last)));
        let rows = self.open.range((from, Unbounded))?;
        Ok(rows.map(|row| row.map(open_row)))
    }

    /// Lists the closed anomalies, in the order of their ids, from the first after `last` on.
    pub fn closed_after(
        &self,
        last: Option<&AnomalyRow>,
    ) -> Result<impl Iterator<Item = Result<AnomalyRow, DbError>> + use<'_>, DbError> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = last.map_or(Unbounded, |last| Excluded(last.filed.id));
        Ok(self.log.range((from, Unbounded))?.map(|row| {
            row.map(|(_, closed)| AnomalyRow {
                file: closed.file,
                replica: closed.replica,
                filed: closed.filed,
                closed: Some(closed.ended),
            })
        }))
    }

    /// Returns the anomaly with that id, if it is open or accepted.
    pub fn by_id(&self, id: u64) -> Result<Option<AnomalyRow>, DbError> {
        for row in self.list_rows()? {
            let row = row?;
            if row.filed.id == id {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Returns the number of open anomalies by kind, without the accepted ones.
    pub fn count_kinds(&self) -> BTreeMap<AnomalyClass, u64> {
        self.figures().kinds.clone()
    }

    /// Returns the number of files of a replica that are damaged or absent, however long ago that was found, or were so
    /// within the last day. Anomalies that people live with do not count.
    pub fn found_today(&self, replica: &ReplicaId) -> u64 {
        self.figures().found_today(replica, self.clock.now())
    }

    /// Changes whenever something is filed or closed.
    pub fn watch_changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn filed(&self, file: &FileName, replica: &ReplicaId) -> Result<Vec<AnomalyRecord>, DbError> {
        let prefix = (Text(file.clone()), Text(replica.clone()));
        let rows = self.open.prefix(&prefix)?;
        rows.map(|row| row.map(|(_, filed)| filed)).collect()
    }

    /// Writes changes and counts them; the caller writes alone.
    fn write(&self, filing: Filing<'_>, changes: &[AnomalyChange]) -> Result<(), DbError> {
        if changes.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let key = |filed: &AnomalyRecord| {
            let file = Text(filing.file.clone());
            let replica = Text(filing.replica.clone());
            (file, replica, filed.slot_key())
        };
        let before = self.filed(filing.file, filing.replica)?;
        let mut batch = self.admin.begin_changes();
        for change in changes {
            if let AnomalyChange::Update(new) | AnomalyChange::Reopen(new) = change
                && let Some(old) = before.iter().find(|old| old.id == new.id)
                && old.slot_key() != new.slot_key()
            {
                batch.batch().delete(&self.open, &key(old))?;
            }
            let what = match change {
                AnomalyChange::File(new) => {
                    batch.batch().put(&self.open, &key(new), new)?;
                    let by = new.found_by;
                    Some(format!(
                        "a{}: {}: {}, found by {by}",
                        new.id, filing.replica, new.kind
                    ))
                }
                AnomalyChange::Update(new) => {
                    batch.batch().put(&self.open, &key(new), new)?;
                    None
                }
                AnomalyChange::Reopen(new) => {
                    batch.batch().put(&self.open, &key(new), new)?;
                    let id = new.id;
                    Some(format!(
                        "a{id}: {}: {}, worse than accepted",
                        filing.replica, new.kind
                    ))
                }
                AnomalyChange::Close(old, why) => {
                    batch.batch().delete(&self.open, &key(old))?;
                    let closed = ClosedAnomaly {
                        file: filing.file.clone(),
                        replica: filing.replica.clone(),
                        filed: old.clone(),
                        ended: DatedReason {
                            at: now,
                            why: why.clone(),
                        },
                    };
                    batch.batch().put(&self.log, &old.id, &closed)?;
                    let kind = old.kind.class();
                    Some(format!(
                        "a{}: {}: {kind} closed: {why}",
                        old.id, filing.replica
                    ))
                }
            };
            if let Some(what) = what {
                batch.note_line(self.line(filing, what));
            }
        }
        self.admin.commit_changes(batch)?;
        let after = self.filed(filing.file, filing.replica)?;
        let mut figures = self.figures();
        for change in changes {
            match change {
                AnomalyChange::File(new) => {
                    figures.next_id = figures.next_id.max(new.id.saturating_add(1));
                    figures.add(new);
                }
                AnomalyChange::Update(new) | AnomalyChange::Reopen(new) => {
                    if let Some(old) = before.iter().find(|old| old.id == new.id) {
                        figures.subtract(old);
                    }
                    figures.add(new);
                }
                AnomalyChange::Close(old, _) => {
                    figures.subtract(old);
                    figures.count_ended(filing.replica, old, now, now);
                }
            }
        }
        figures.count_open(filing.replica, &before, &after);
        drop(figures);
        self.notify_change();
        Ok(())
    }

    fn line(&self, filing: Filing<'_>, what: String) -> AuditLine {
        AuditLine {
            at: self.clock.now(),
            who: filing.who.to_owned(),
            file: Some(filing.file.clone()),
            what,
        }
    }

    fn notify_change(&self) {
        self.changed
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    fn figures(&self) -> MutexGuard<'_, AnomalyFigures> {
        self.figures.lock()
    }
}

fn key(row: &AnomalyRow) -> Key {
    let slot = row.filed.slot_key();
    (Text(row.file.clone()), Text(row.replica.clone()), slot)
}

fn filing<'a>(row: &'a AnomalyRow, who: &'a str) -> Filing<'a> {
    Filing {
        file: &row.file,
        replica: &row.replica,
        who,
    }
}

fn open_row(((Text(file), Text(replica), _), filed): (Key, AnomalyRecord)) -> AnomalyRow {
    AnomalyRow {
        file,
        replica,
        filed,
        closed: None,
    }
}
