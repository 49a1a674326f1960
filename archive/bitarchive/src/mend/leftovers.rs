//! What a mend leaves in `incoming/` when it ends, is refused, or is cut by a crash.
//!
//! A copy beside is not needed in any case: before the exchange the old copy stands, after it the new one does, and what
//! was replaced is in the attic. A whole journal is finished; a journal that is not whole has replaced nothing.

use std::path::PathBuf;

use archive_durable::{DiskError, Journal, directory};
use archive_model::{FileName, Groups, VolumeId};
use jiff::Timestamp;

use super::beside::{is_of_a_mend, of_journal};
use super::{Beside, way};
use crate::catalog::{Condition, Entry};
use crate::error::NodeError;
use crate::layout::Layout;
use crate::node::Node;
use crate::reconcile::unless_full;
use crate::verify::is_file;

/// Removes what a mend leaves when it is dropped.
#[derive(Debug)]
pub(super) struct Sweep {
    paths: Vec<PathBuf>,
}

impl Sweep {
    pub(super) fn new(beside: &Beside) -> Self {
        let mut paths = beside.leftovers().to_vec();
        paths.push(beside.journal.clone());
        Self { paths }
    }

    /// Leaves everything to the next start.
    pub(super) fn leave(&mut self) {
        self.paths.clear();
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        for path in &self.paths {
            if let Err(error) = directory::remove_name(path) {
                tracing::warn!(%error, "left over from a mend; removed at the next start");
            }
        }
    }
}

/// Finishes or removes what mends have left on a volume.
pub(crate) fn finish_cut(
    node: &Node,
    volume: &VolumeId,
    layout: &Layout,
    now: Timestamp,
) -> Result<(), NodeError> {
    let incoming = layout.incoming();
    for entry in directory::list(&incoming)? {
        let Some(last) = entry.name.to_str().filter(|name| is_of_a_mend(name)) else {
            continue;
        };
        match of_journal(last) {
            Some(name) => match finish_one(node, volume, layout, &name, now) {
                Err(NodeError::Disk(error)) => unless_full(volume, Err(error))?.unwrap_or_default(),
                other => other?,
            },
            None => {
                unless_full(volume, directory::remove_name(&incoming.join(last)))?;
            }
        }
    }
    Ok(())
}

/// The same for one file.
pub(super) fn finish_one(
    node: &Node,
    volume: &VolumeId,
    layout: &Layout,
    name: &FileName,
    now: Timestamp,
) -> Result<(), NodeError> {
    let beside = Beside::new(layout, name);
    let blame = |error: DiskError| node.blame(volume, error);
    way::clear(&beside).map_err(blame)?;
    let journal = match Journal::open(&beside.journal) {
        Err(error) if error.is_absent() => return Ok(()),
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
    if let Some(row) = node.catalog().row(name, volume)? {
        let entry = Entry {
            name: name.clone(),
            volume: volume.clone(),
            row,
        };
        note_applied(node, &entry, now)?;
    }
    journal.remove().map_err(blame)
}

/// Groups were brought in, and the whole was not read since: it counts as damaged until it is.
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
