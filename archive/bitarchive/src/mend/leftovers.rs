//! The leftovers of a mend in `incoming/`, after it has ended, was refused, or was cut by a crash.
//!
//! A second copy is never needed: before the exchange the old copy stands, after it the new one does, and the replaced
//! groups are in the attic. A whole journal is finished; a journal that is not whole has replaced nothing.

use std::path::PathBuf;

use archive_durable::{DiskError, Journal, directory};
use archive_model::{FileName, Groups, Root, VolumeId};
use jiff::Timestamp;

use super::method;
use crate::catalog::{Condition, Entry};
use crate::error::NodeError;
use crate::layout::{Layout, MendPaths, is_file, is_mend_name, journal_file};
use crate::node::Node;
use crate::reconcile::{read_sidecar, tidied};

/// Removes the leftovers of a mend when it is dropped.
#[derive(Debug)]
pub(super) struct MendCleanup {
    paths: Vec<PathBuf>,
}

impl MendCleanup {
    pub(super) fn new(beside: &MendPaths) -> Self {
        let mut paths = beside.leftovers().to_vec();
        paths.push(beside.journal.clone());
        Self { paths }
    }

    /// Leaves everything for the next start.
    pub(super) fn leave(&mut self) {
        self.paths.clear();
    }
}

impl Drop for MendCleanup {
    fn drop(&mut self) {
        for path in &self.paths {
            if let Err(error) = directory::remove_name(path) {
                tracing::warn!(%error, "leftovers of a mend were not removed; the next start does it");
            }
        }
    }
}

/// Finishes or removes the leftovers of mends on a volume.
pub(crate) fn finish_cut(
    node: &Node,
    volume: &VolumeId,
    layout: &Layout,
    now: Timestamp,
) -> Result<(), NodeError> {
    let incoming = layout.incoming();
    for name in directory::names(&incoming)? {
        let Some(last) = name.to_str().filter(|name| is_mend_name(name)) else {
            continue;
        };
        match journal_file(last) {
            Some(name) => match node.finish_cut_mend(volume, layout, &name, now) {
                Err(NodeError::Disk(error)) => tidied(volume, Err(error))?.unwrap_or_default(),
                other => other?,
            },
            None => {
                tidied(volume, directory::remove_name(&incoming.join(last)))?;
            }
        }
    }
    Ok(())
}

impl Node {
    /// Finishes or removes the leftovers of mends of one file.
    pub(super) fn finish_cut_mend(
        &self,
        volume: &VolumeId,
        layout: &Layout,
        name: &FileName,
        now: Timestamp,
    ) -> Result<(), NodeError> {
        let beside = MendPaths::new(layout, name);
        let blame = |error: DiskError| self.blame(volume, error);
        method::clear(&beside).map_err(blame)?;
        let journal = match Journal::open(&beside.journal) {
            Err(error) if error.is_absent() => return Ok(()),
            Err(error) if !error.is_exhausted() => {
                tracing::warn!(file = %name, %volume, %error, "the journal of a mend cannot be read; verify the file, then mend it again");
                note_replaced(self, volume, name, now)?;
                return directory::remove_name(&beside.journal).map_err(blame);
            }
            other => other.map_err(blame)?,
        };
        let Some(journal) = journal else {
            tracing::info!(file = %name, %volume, "a mend in place was cut before it began");
            return directory::remove_name(&beside.journal).map_err(blame);
        };
        let target = layout.target(name);
        if !is_file(&target.file)? {
            tracing::warn!(file = %name, %volume, "a mend in place was cut, and its file is gone");
            return journal.remove().map_err(blame);
        }
        let change = journal.change();
        match admitted(self, volume, layout, name)? {
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
        match journal.apply(&target.file) {
            Err(error) if error.is_taken() => {
                tracing::warn!(file = %name, %volume, %error, "a mend in place cannot be finished");
                return Ok(());
            }
            other => other.map_err(blame)?,
        }
        if !journal.is_in(&target.file).map_err(blame)? {
            tracing::warn!(file = %name, %volume, "read back, the groups of a mend in place are not what was written");
        }
        tracing::info!(file = %name, %volume, groups = journal.change().groups.len(), "a mend in place was finished");
        note_replaced(self, volume, name, now)?;
        journal.remove().map_err(blame)
    }
}

/// Returns the size and root that a file should have, by its row or else by its sidecar.
fn admitted(
    node: &Node,
    volume: &VolumeId,
    layout: &Layout,
    name: &FileName,
) -> Result<Result<(u64, Root), String>, NodeError> {
    let row = node.catalog().row(name, volume)?;
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
    let read = read_sidecar(&layout.target(name).sidecar, name, node.trust())?;
    Ok(read.map(|(size, root, _)| (size, root)))
}

/// Notes the same as [`note_applied`], for a file that may have no row yet.
fn note_replaced(
    node: &Node,
    volume: &VolumeId,
    name: &FileName,
    now: Timestamp,
) -> Result<(), NodeError> {
    match node.catalog().row(name, volume)? {
        None => Ok(()),
        Some(row) => {
            let name = name.clone();
            let volume = volume.clone();
            note_applied(node, &Entry { name, volume, row }, now)
        }
    }
}

/// Notes that groups were replaced and the file was not read since: it counts as damaged until it is verified.
pub(super) fn note_applied(node: &Node, entry: &Entry, now: Timestamp) -> Result<(), NodeError> {
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
    Ok(node.catalog().put(&[entry])?)
}
