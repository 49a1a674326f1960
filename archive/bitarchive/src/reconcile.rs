//! The reconciliation of a disk with the catalog, at start and when a volume comes online. The disk is right about what
//! is there, the catalog about what should be.
//!
//! The pass compares names and sizes only: bytes are for the scrub. Nothing is deleted, and no row is removed because
//! its file is absent. A sidecar, an inode or a manifest that cannot be read is damage of one file, and keeps no other
//! from being served.

mod incoming;
mod mends;
mod sidecar;
mod stray;

use std::collections::BTreeMap;
use std::ffi::OsStr;

use archive_durable::directory::{self, EntryKind};
use archive_durable::{DiskError, replace};
use archive_model::{FileName, Groups, Root, VolumeId};
use archive_proof::TrustFile;
use jiff::Timestamp;

use incoming::{note_tidied, tidy_incoming};
pub(crate) use mends::note_applied;
pub(crate) use sidecar::{read_sidecar, sidecar_text};
pub(crate) use stray::move_one_home;

use crate::catalog::{Catalog, CatalogEntry, Condition, Row};
use crate::cores::on_all_cores;
use crate::error::NodeError;
use crate::layout::{FileDirectory, Layout};
use crate::manifest;
use crate::volumes::Volumes;

/// The number of rows that are written at a time.
const BATCH: usize = 1000;

/// The numbers of files that reconciling has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReconcileReport {
    /// Files that are as the catalog says.
    pub unchanged: u64,
    /// Files on disk with a sidecar that were not in the catalog.
    pub added: u64,
    /// Files in the catalog, or with a sidecar, that are not on disk.
    pub missing: u64,
    /// Files on disk with another size than admitted.
    pub damaged: u64,
    /// Files on disk without a readable sidecar.
    pub unexpected: u64,
    /// Things in the directories of files that are not archive files: they are left alone.
    pub foreign: u64,
    /// Manifests that were written again.
    pub manifests: u64,
}

impl ReconcileReport {
    /// Adds the numbers of another volume.
    pub const fn add(&mut self, other: Self) {
        self.unchanged += other.unchanged;
        self.added += other.added;
        self.missing += other.missing;
        self.damaged += other.damaged;
        self.unexpected += other.unexpected;
        self.foreign += other.foreign;
        self.manifests += other.manifests;
    }
}

/// A disk to be reconciled with the catalog.
pub(crate) struct Reconciler<'a> {
    /// The volumes of the node: a disk that fails is taken offline there.
    pub(crate) volumes: &'a Volumes,
    pub(crate) catalog: &'a Catalog,
    /// The keys whose admissions in sidecars count.
    pub(crate) trust: &'a TrustFile,
    pub(crate) volume: &'a VolumeId,
    pub(crate) layout: &'a Layout,
    pub(crate) now: Timestamp,
}

impl<'a> Reconciler<'a> {
    /// Reconciles the whole volume, its directories on all cores: the signatures cost the time.
    pub(crate) fn reconcile_volume(&self) -> Result<ReconcileReport, NodeError> {
        tidy_incoming(self.volume, self.layout)?;
        stray::move_home(self.volume, self.layout)?;
        let passes = on_all_cores(
            FileDirectory::all(),
            || self.pass(),
            |pass, dir| pass.directory(self.layout, dir),
        )?;
        let mut whole = self.pass();
        for mut pass in passes {
            pass.flush()?;
            whole.found.add(pass.found);
            whole.seen.append(&mut pass.seen);
        }
        whole.note_missing(self.layout)?;
        Ok(whole.found)
    }

    /// Reconciles one file that is on disk, and returns its root.
    pub(crate) fn reconcile_file(&self, name: &FileName) -> Result<Option<Root>, NodeError> {
        let size = match directory::entry_kind(&self.layout.target_paths(name).file) {
            Ok(Some(EntryKind::File { size, .. })) => Ok(size),
            Ok(Some(EntryKind::Directory | EntryKind::Other) | None) => return Ok(None),
            Err(error) => Err(unless_exhausted(error)?),
        };
        let mut pass = self.pass();
        let row = pass.file(self.layout, name, size)?;
        pass.sync_names(self.layout, FileDirectory::for_name(name))?;
        pass.flush()?;
        Ok(row.root)
    }

    fn pass(&self) -> ReconcilePass<'a> {
        ReconcilePass::new(self.catalog, self.trust, self.volume, self.now)
    }
}

struct ReconcilePass<'a> {
    catalog: &'a Catalog,
    trust: &'a TrustFile,
    id: &'a VolumeId,
    now: Timestamp,
    found: ReconcileReport,
    batch: Vec<CatalogEntry>,
    /// A fingerprint of every name on disk: 8 bytes a file, because the names would not fit into memory.
    seen: Vec<u64>,
    /// Whether files were recorded whose names may not be durable yet.
    has_taken_over: bool,
}

impl<'a> ReconcilePass<'a> {
    fn new(catalog: &'a Catalog, trust: &'a TrustFile, id: &'a VolumeId, now: Timestamp) -> Self {
        Self {
            catalog,
            trust,
            id,
            now,
            found: ReconcileReport::default(),
            batch: Vec::new(),
            seen: Vec::new(),
            has_taken_over: false,
        }
    }

    fn directory(&mut self, layout: &Layout, on: FileDirectory) -> Result<(), NodeError> {
        let mut listed: BTreeMap<FileName, Root> = BTreeMap::new();
        let manifest_path = layout.manifest(on);
        let unfinished = replace::unfinished_path(&manifest_path);
        let is_list = |name: &OsStr| {
            [&manifest_path, &unfinished]
                .iter()
                .any(|path| path.file_name() == Some(name))
        };
        for (last, kind) in directory::look_up_names(&layout.files(on))? {
            let name = on.file_name(&last);
            let size = match kind {
                Ok(EntryKind::File { size, .. }) => Some(Ok(size)),
                Ok(EntryKind::Directory | EntryKind::Other) => None,
                Err(error) => Some(Err(unless_exhausted(error)?)),
            };
            let (Some(name), Some(size)) = (name, size) else {
                if !is_list(&last) {
                    self.found.foreign += 1;
                    tracing::warn!(volume = %self.id, name = ?last, "no archive file; left alone");
                }
                continue;
            };
            let row = self.file(layout, &name, size)?;
            self.seen.push(name_fingerprint(&name));
            // The root of an unexpected file is that of its bytes, not one that it should have.
            if let Some(root) = row.root.filter(|_| !is_unexpected(&row)) {
                listed.insert(name, root);
            }
        }
        self.sync_names(layout, on)?;
        self.leftover_sidecars(layout, on)?;
        let listed = listed.iter().map(|(name, root)| (name, *root));
        // A list is derived, and nothing waits for it.
        if note_tidied(self.id, manifest::set_lines(&manifest_path, listed))? == Some(true) {
            self.found.manifests += 1;
        }
        Ok(())
    }

    /// Makes the row of a file that is on disk, from its size or the error of looking at it.
    fn file(
        &mut self,
        layout: &Layout,
        name: &FileName,
        size: Result<u64, DiskError>,
    ) -> Result<Row, NodeError> {
        let size = match size {
            Ok(size) => size,
            Err(error) => return self.unreadable(layout, name, &error),
        };
        let known = self.catalog.row(name, self.id)?;
        let unexpected = known.as_ref().filter(|row| is_unexpected(row));
        let settled = known.as_ref().filter(|row| !is_unexpected(row));
        if let Some(row) = settled
            && (row.size == size && !matches!(row.condition, Condition::Missing { .. }))
        {
            self.found.unchanged += 1;
            return Ok(row.clone());
        }
        let admitted = match settled.and_then(|row| Some((row.size, row.root?, row.stored))) {
            Some(admitted) => Ok(admitted),
            None => read_sidecar(&layout.target_paths(name).sidecar, name, self.trust)?,
        };
        if let Some(row) = unexpected.filter(|row| row.size == size && admitted.is_err()) {
            self.found.unchanged += 1;
            return Ok(row.clone());
        }
        let row = match admitted {
            Ok((admitted, root, stored)) => {
                let is_whole = admitted == size;
                *(if is_whole {
                    &mut self.found.added
                } else {
                    &mut self.found.damaged
                }) += 1;
                let condition = if is_whole {
                    Condition::Present
                } else {
                    self.damaged()
                };
                Row {
                    size: admitted,
                    root: Some(root),
                    stored,
                    verified: None,
                    condition,
                }
            }
            Err(why) => {
                self.found.unexpected += 1;
                let condition = Condition::Unexpected { why };
                Row {
                    size,
                    root: None,
                    stored: self.now,
                    verified: None,
                    condition,
                }
            }
        };
        self.has_taken_over = true;
        self.put(name, row.clone())?;
        Ok(row)
    }

    /// Makes durable the names of files that were recorded: a crash may have come between a name and its sync, and from
    /// now on the file counts as stored.
    fn sync_names(&mut self, layout: &Layout, on: FileDirectory) -> Result<(), DiskError> {
        if std::mem::take(&mut self.has_taken_over) {
            // Their sidecars were made durable before they got their names.
            directory::sync_directory(&layout.files(on))?;
        }
        Ok(())
    }

    /// Makes the row of a file whose inode cannot be read: all of it is unreadable until the disk or its file system is
    /// repaired.
    fn unreadable(
        &mut self,
        layout: &Layout,
        name: &FileName,
        error: &DiskError,
    ) -> Result<Row, NodeError> {
        tracing::warn!(volume = %self.id, file = %name, %error, "cannot be looked at");
        let known = self.catalog.row(name, self.id)?;
        let settled = known.as_ref().filter(|row| !is_unexpected(row));
        let admitted = match settled.and_then(|row| Some((row.size, row.root?, row.stored))) {
            Some(admitted) => Ok(admitted),
            None => read_sidecar(&layout.target_paths(name).sidecar, name, self.trust)?,
        };
        let row = match (admitted, &known) {
            (Ok((size, root, stored)), _) => {
                let since = match known.as_ref().map(|row| &row.condition) {
                    Some(Condition::Damaged { since, .. }) => *since,
                    _ => self.now,
                };
                Row {
                    size,
                    root: Some(root),
                    stored,
                    verified: known.as_ref().and_then(|row| row.verified),
                    condition: Condition::Damaged {
                        since,
                        corrupt: Groups::none(),
                        unreadable: Groups::all(size),
                    },
                }
            }
            (Err(_), Some(known)) => known.clone(),
            (Err(why), None) => Row {
                size: 0,
                root: None,
                stored: self.now,
                verified: None,
                condition: Condition::Unexpected {
                    why: format!("{error}; {why}"),
                },
            },
        };
        if known.as_ref() == Some(&row) {
            self.found.unchanged += 1;
            return Ok(row);
        }
        *(if is_unexpected(&row) {
            &mut self.found.unexpected
        } else {
            &mut self.found.damaged
        }) += 1;
        self.put(name, row.clone())?;
        Ok(row)
    }

    fn damaged(&self) -> Condition {
        Condition::Damaged {
            since: self.now,
            corrupt: Groups::none(),
            unreadable: Groups::none(),
        }
    }

    /// Notes sidecars without a file or a row: they are leftovers, or of missing files. The repository knows which;
    /// until it says, the files are missing.
    fn leftover_sidecars(&mut self, layout: &Layout, on: FileDirectory) -> Result<(), NodeError> {
        for last in directory::list_names(&layout.meta(on))? {
            let name = last.to_str().and_then(|name| name.strip_suffix(".json"));
            let Some(name) = name.and_then(|name| on.file_name(name.as_ref())) else {
                continue;
            };
            let target = layout.target_paths(&name);
            let is_there = match directory::entry_kind(&target.file) {
                Ok(Some(EntryKind::File { .. })) => true,
                Ok(Some(EntryKind::Directory | EntryKind::Other) | None) => false,
                // The file is there, and was noted with the others.
                Err(error) => unless_exhausted(error).map(|_| true)?,
            };
            if is_there || self.catalog.row(&name, self.id)?.is_some() {
                continue;
            }
            if let Ok((size, root, stored)) = read_sidecar(&target.sidecar, &name, self.trust)? {
                self.found.missing += 1;
                self.seen.push(name_fingerprint(&name));
                let condition = Condition::Missing { since: self.now };
                self.put(
                    &name,
                    Row {
                        size,
                        root: Some(root),
                        stored,
                        verified: None,
                        condition,
                    },
                )?;
            }
        }
        Ok(())
    }

    /// Notes rows of this volume whose files are absent. The row stays, as the alarm. What an upload of before this pass
    /// has stored since its directory was read is there when it is looked for.
    fn note_missing(&mut self, layout: &Layout) -> Result<(), NodeError> {
        self.seen.sort_unstable();
        let catalog = self.catalog;
        for entry in catalog.list_entries(None)? {
            let entry = entry?;
            let is_gone = entry.volume == *self.id
                && self
                    .seen
                    .binary_search(&name_fingerprint(&entry.name))
                    .is_err();
            if !is_gone || matches!(entry.row.condition, Condition::Missing { .. }) {
                continue;
            }
            let now = directory::entry_kind(&layout.target_paths(&entry.name).file);
            let is_there = match now {
                Ok(kind) => matches!(kind, Some(EntryKind::File { .. })),
                Err(error) => unless_exhausted(error).map(|_| true)?,
            };
            let row = catalog.row(&entry.name, self.id)?;
            if !is_there && row.as_ref() == Some(&entry.row) {
                self.found.missing += 1;
                let condition = Condition::Missing { since: self.now };
                self.put(
                    &entry.name,
                    Row {
                        condition,
                        ..entry.row
                    },
                )?;
            }
        }
        self.flush()
    }

    fn put(&mut self, name: &FileName, row: Row) -> Result<(), NodeError> {
        self.batch.push(CatalogEntry {
            name: name.clone(),
            volume: self.id.clone(),
            row,
        });
        if self.batch.len() >= BATCH {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), NodeError> {
        self.catalog.put_entries(&self.batch)?;
        self.batch.clear();
        Ok(())
    }
}

fn is_unexpected(row: &Row) -> bool {
    matches!(row.condition, Condition::Unexpected { .. })
}

/// Returns eight bytes that stand for a name.
pub(crate) fn name_fingerprint(name: &FileName) -> u64 {
    let hash = blake3::hash(name.as_str().as_bytes());
    hash.as_bytes()
        .first_chunk()
        .map_or(0, |first| u64::from_be_bytes(*first))
}

/// Returns the error if it is about the file; fails with it if the node has run out of open files or memory.
fn unless_exhausted(error: DiskError) -> Result<DiskError, DiskError> {
    if error.is_exhausted() {
        Err(error)
    } else {
        Ok(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::NodeMachine;

    /// Fails if a file that was stored after its directory was read is noted as missing, or one that is gone is not.
    #[test]
    fn file_stored_meanwhile_is_not_missing() {
        let machine = NodeMachine::new();
        let (node, _) = machine.start();
        for file in ["stored", "gone"] {
            machine.store(&node, file, b"bytes").unwrap();
        }
        let name = |file: &str| file.parse::<FileName>().unwrap();
        std::fs::remove_file(machine.target("gone").file).unwrap();
        let (volume, layout) = node.disks.volumes.online_layouts().remove(0);
        let now = Timestamp::UNIX_EPOCH;
        let reconciler = node.disks.reconciler(&volume, &layout, now);
        let mut pass = reconciler.pass();
        pass.note_missing(&layout).unwrap();
        assert_eq!(pass.found.missing, 1);
        let condition = |file: &str| {
            let row = node.catalog.row(&name(file), &volume).unwrap();
            row.unwrap().condition
        };
        assert_eq!(condition("stored"), Condition::Present);
        assert!(matches!(condition("gone"), Condition::Missing { .. }));
    }
}
