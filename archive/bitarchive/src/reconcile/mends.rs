//! The leftovers of mends in `incoming/` that were cut by a crash, finished or removed before a volume is reconciled.
//!
//! A second copy is never needed: before the exchange the old copy stands, after it the new one does, and the replaced
//! groups are in the attic. A whole journal is finished; a journal that is not whole has replaced nothing.

use archive_durable::{DiskError, Journal, directory};
use archive_model::{FileName, Groups, Root};
use jiff::Timestamp;

use super::{Reconciler, note_tidied, read_sidecar};
use crate::catalog::{Catalog, CatalogEntry, Condition};
use crate::error::NodeError;
use crate::layout::{MendPaths, is_file, is_mend_name, journal_file};

impl Reconciler<'_> {
    /// Finishes or removes the leftovers of mends on the volume.
    pub(crate) fn finish_cut_mends(&self) -> Result<(), NodeError> {
        let incoming = self.layout.incoming();
        for name in directory::list_names(&incoming)? {
            let Some(last) = name.to_str().filter(|name| is_mend_name(name)) else {
                continue;
            };
            match journal_file(last) {
                Some(name) => match self.finish_cut_mend(&name) {
                    Err(NodeError::Disk(error)) => {
                        note_tidied(self.volume, Err::<(), _>(error))?;
                    }
                    other => other?,
                },
                None => {
                    note_tidied(self.volume, directory::remove_name(&incoming.join(last)))?;
                }
            }
        }
        Ok(())
    }

    /// Finishes or removes the leftovers of mends of one file.
    pub(crate) fn finish_cut_mend(&self, name: &FileName) -> Result<(), NodeError> {
        let Self { volume, layout, .. } = *self;
        let blame = |error: DiskError| self.blame(error);
        let beside = MendPaths::new(layout, name);
        for leftover in beside.leftovers() {
            directory::remove_name(&leftover).map_err(blame)?;
        }
        let journal = match Journal::open(&beside.journal) {
            Err(error) if error.is_absent() => return Ok(()),
            Err(error) if !error.is_exhausted() => {
                tracing::warn!(file = %name, %volume, %error, "the journal of a mend cannot be read; verify the file, then mend it again");
                self.note_replaced(name)?;
                return directory::remove_name(&beside.journal).map_err(blame);
            }
            other => other.map_err(blame)?,
        };
        let Some(journal) = journal else {
            tracing::info!(file = %name, %volume, "a mend in place was cut before it began");
            return directory::remove_name(&beside.journal).map_err(blame);
        };
        let target = layout.target_paths(name);
        if !is_file(&target.file)? {
            tracing::warn!(file = %name, %volume, "a mend in place was cut, and its file is gone");
            return journal.remove().map_err(blame);
        }
        let change = journal.journaled_groups();
        match self.admitted(name)? {
            Ok(admitted) if change.name == *name && admitted == (change.size, change.root) => {}
            Ok(_) => {
                tracing::error!(file = %name, %volume, other = %change.name, "the journal of a mend is not that of this file; it is removed");
                return journal.remove().map_err(blame);
            }
            Err(why) => {
                tracing::error!(file = %name, %volume, why, "a mend in place waits until it is known what the file is");
                return Ok(());
            }
        }
        match journal.apply_to(&target.file) {
            Err(error) if error.is_taken() => {
                tracing::warn!(file = %name, %volume, %error, "a mend in place cannot be finished");
                return Ok(());
            }
            other => other.map_err(blame)?,
        }
        if !journal.is_in(&target.file).map_err(blame)? {
            tracing::warn!(file = %name, %volume, "read back, the groups of a mend in place are not what was written");
        }
        tracing::info!(file = %name, %volume, groups = journal.journaled_groups().groups.len(), "a mend in place was finished");
        self.note_replaced(name)?;
        journal.remove().map_err(blame)
    }

    /// Returns the size and root that a file should have, by its row or else by its sidecar.
    fn admitted(&self, name: &FileName) -> Result<Result<(u64, Root), String>, NodeError> {
        let row = self.catalog.row(name, self.volume)?;
        let known = row.and_then(|row| match row.condition {
            // The root of an unexpected file is the one it has, not the one it should have.
            Condition::Unexpected { .. } => None,
            Condition::Present | Condition::Missing { .. } | Condition::Damaged { .. } => {
                Some((row.size, row.root?))
            }
        });
        if let Some(known) = known {
            return Ok(Ok(known));
        }
        let read = read_sidecar(&self.layout.target_paths(name).sidecar, name, self.trust)?;
        Ok(read.map(|(size, root, _)| (size, root)))
    }

    /// Notes the same as [`note_applied`], for a file that may have no row yet.
    fn note_replaced(&self, name: &FileName) -> Result<(), NodeError> {
        match self.catalog.row(name, self.volume)? {
            None => Ok(()),
            Some(row) => {
                let entry = CatalogEntry {
                    name: name.clone(),
                    volume: self.volume.clone(),
                    row,
                };
                note_applied(self.catalog, &entry, self.now)
            }
        }
    }

    /// Takes the volume offline if the error says that its disk fails, and returns the error.
    fn blame(&self, error: DiskError) -> NodeError {
        let worse = self.volumes.blame_volume(self.volume, &error).err();
        NodeError::Disk(worse.unwrap_or(error))
    }
}

/// Notes that groups were replaced and the file was not read since: it counts as damaged until it is verified.
pub(crate) fn note_applied(
    catalog: &Catalog,
    entry: &CatalogEntry,
    now: Timestamp,
) -> Result<(), NodeError> {
    let since = match entry.row.condition {
        Condition::Damaged { since, .. } => since,
        Condition::Present | Condition::Missing { .. } | Condition::Unexpected { .. } => now,
    };
    let mut entry = entry.clone();
    entry.row.condition = Condition::Damaged {
        since,
        corrupt: Groups::none(),
        unreadable: Groups::none(),
    };
    Ok(catalog.put_entries(&[entry])?)
}
