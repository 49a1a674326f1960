//! The rows that say *missing*: those of retired volumes, until they are answered.
//!
//! A row is answered when the same bytes are on another volume of this node. It has done its duty as an alarm then, and
//! is removed. The remains of the file on its volume (its sidecar) go to the attic, or the next start would find it
//! missing again. A volume that cannot be looked at now has its turn when it is back.

use archive_durable::VolumeProblem;
use archive_model::FileName;
use jiff::Timestamp;

use super::NodeDisks;
use crate::attic::put_leftovers_aside;
use crate::catalog::{CatalogEntry, Condition, Row};
use crate::claims::claim_for_verb;
use crate::error::NodeError;
use crate::layout::is_file;

/// The number of names that are looked at before any of them is acted on, and of rows that are written at a time.
const BATCH: usize = 1000;

impl NodeDisks {
    /// Makes the rows of retired volumes say *missing*. A start does this too: the catalog is a cache, and may be
    /// older.
    pub(crate) fn note_retired(&self, now: Timestamp) -> Result<u64, NodeError> {
        let retired = self.volumes.retired_volumes();
        if retired.is_empty() {
            return Ok(0);
        }
        let mut missing = 0;
        let mut batch = Vec::new();
        for entry in self.catalog.list_entries(None)? {
            let entry = entry?;
            if !retired.contains(&entry.volume) || is_missing(&entry) {
                continue;
            }
            missing += 1;
            batch.push(as_missing(entry, now));
            if batch.len() == BATCH {
                self.catalog.put_entries(&batch)?;
                batch.clear();
            }
        }
        self.catalog.put_entries(&batch)?;
        self.forget_all_answered(now)?;
        Ok(missing)
    }

    /// Ends the store of a file whose row was written: removes rows of other volumes that say it is missing, and makes
    /// its own row say so if its volume was retired in that moment.
    pub(crate) fn note_stored(
        &self,
        stored: &CatalogEntry,
        now: Timestamp,
    ) -> Result<(), NodeError> {
        self.volumes.note_change(&stored.volume);
        let retired = self.volumes.retired_volumes();
        if retired.contains(&stored.volume) {
            self.catalog
                .put_entries(&[as_missing(stored.clone(), now)])?;
            return Err(NodeError::Offline {
                volume: stored.volume.clone(),
                problem: VolumeProblem::Retired,
            });
        }
        self.forget_answered(&stored.name, now)
    }

    /// Removes every row that is answered.
    pub(crate) fn forget_all_answered(&self, now: Timestamp) -> Result<(), NodeError> {
        let mut after = None;
        loop {
            let mut missing = Vec::new();
            for entry in self.catalog.list_findings(after.as_ref())? {
                let entry = entry?;
                if missing.len() >= BATCH && missing.last() != Some(&entry.name) {
                    break;
                }
                if is_missing(&entry) && missing.last() != Some(&entry.name) {
                    missing.push(entry.name);
                }
            }
            let Some(last) = missing.last().cloned() else {
                return Ok(());
            };
            for name in missing {
                if self.find_answered(&name)?.is_empty() {
                    continue;
                }
                // Its holder looks for answered rows at the end.
                if let Ok(_claim) = self
                    .locks
                    .claim_name(&name, &claim_for_verb("answered", &name)?)
                {
                    self.forget_answered(&name, now)?;
                }
            }
            after = Some(last);
        }
    }

    /// Removes the answered rows of one file, whose name the caller holds.
    fn forget_answered(&self, name: &FileName, now: Timestamp) -> Result<(), NodeError> {
        for entry in self.find_answered(name)? {
            match self.forget_row(&entry, now) {
                Err(NodeError::Disk(error)) => {
                    let error = self.blame_disk(&entry.volume, error);
                    tracing::warn!(file = %name, volume = %entry.volume, %error, "it stays missing there, though it is here");
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Returns the rows that say *missing* of a file that is whole on another volume that is online.
    fn find_answered(&self, name: &FileName) -> Result<Vec<CatalogEntry>, NodeError> {
        let (mut missing, others): (Vec<_>, Vec<_>) = self
            .catalog
            .find_entries(name)?
            .into_iter()
            .partition(is_missing);
        missing.retain(|entry| {
            entry.row.root.is_some()
                && others.iter().any(|other| {
                    other.row.condition == Condition::Present
                        && other.row.root == entry.row.root
                        && self.is_online(&other.volume)
                })
        });
        Ok(missing)
    }

    fn forget_row(&self, entry: &CatalogEntry, now: Timestamp) -> Result<(), NodeError> {
        let name = &entry.name;
        let volume = &entry.volume;
        let problem = self.volumes.find_volume(volume).map(|known| known.problem);
        match problem {
            // The volume is retired or unknown: nobody looks at it again.
            Some(Some(VolumeProblem::Retired)) | None => {}
            Some(None) => {
                let layout = self.find_layout(volume)?;
                if is_file(&layout.target_paths(name).file)? {
                    // The file is back, and a verification will say so.
                    return Ok(());
                }
                put_leftovers_aside(&layout, "answered", name, &self.node, now)?;
            }
            Some(Some(_away)) => return Ok(()),
        }
        self.catalog.remove_entry(name, volume)?;
        tracing::info!(file = %name, %volume, "no longer missing: the same is on another volume");
        Ok(())
    }
}

pub(super) fn is_missing(entry: &CatalogEntry) -> bool {
    matches!(entry.row.condition, Condition::Missing { .. })
}

pub(super) fn as_missing(entry: CatalogEntry, now: Timestamp) -> CatalogEntry {
    let condition = Condition::Missing { since: now };
    CatalogEntry {
        row: Row {
            condition,
            ..entry.row
        },
        ..entry
    }
}
