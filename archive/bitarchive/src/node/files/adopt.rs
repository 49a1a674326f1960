//! The adoption of files that have no readable sidecar, or that differ from their sidecar: such a file gets the
//! admission of its bytes.
//!
//! Nobody admitted files of the first kind, so a node never decides about them. It hashes them in the background, so
//! that the repository can decide: their rows know their roots. [`NodeFiles::adopt_file`] then makes such a file one like any
//! other. The second kind is damage, until people decide that its bytes are what the name means from then on; its old
//! sidecar goes to the attic.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::path::Path;
use std::sync::Arc;

use archive_daemon::{Period, Worker, WorkerStep, WorkerStepError};
use archive_durable::{DiskError, PublishError, Sidecar, SurveyedFile, UncachedFile, directory};
use archive_model::{FileName, Root, UploadId, VolumeId};
use archive_proof::{Admission, Envelope};
use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::NodeFiles;
use super::upload::sidecar_text;
use crate::admitted;
use crate::attic::{self, AtticReason};
use crate::catalog::{CatalogEntry, Condition, Row};
use crate::claims::claim_for_verb;
use crate::error::NodeError;
use crate::layout::Layout;
use crate::reconcile;

/// The number of rows that are looked at in one step.
const ROWS: usize = 10_000;

/// The number of bytes after which a step begins no further file.
const BYTES: u64 = 1024 * 1024 * 1024;

impl NodeFiles {
    /// Gives a file its admission, if its bytes on the medium are what the admission says. The file is unexpected, or
    /// has other bytes than its own sidecar admits.
    pub fn adopt_file(
        &self,
        name: &FileName,
        volume: &VolumeId,
        admission: &Envelope,
        now: Timestamp,
    ) -> Result<CatalogEntry, NodeError> {
        let admitted = admitted::verify_admission(admission, &self.trust, name)?;
        if admitted.name != *name {
            let admitted = admitted.name.to_string();
            return Err(mismatch(name, "name", admitted, name.to_string()));
        }
        let id = claim_for_verb("adopt", name)?;
        let claim = self.locks.claim_name(name, &id)?;
        let layout = self.disks.open_place(volume, name)?;
        self.disks.reconcile_file(volume, &layout, name, now)?;
        let row = self
            .catalog
            .row(name, volume)?
            .ok_or_else(|| NodeError::NotFound(name.clone()))?;
        let entry = CatalogEntry {
            name: name.clone(),
            volume: volume.clone(),
            row,
        };
        let had_another = match PriorAdmission::read(&entry, admitted.root)? {
            PriorAdmission::Same => return Ok(entry),
            PriorAdmission::Absent => false,
            PriorAdmission::Other => true,
        };
        let adoption = Adoption {
            files: self,
            entry,
            layout,
            admitted,
            had_another,
            now,
        };
        let survey = adoption.hash(&id)?;
        adoption.publish(survey, admission)?;
        let entry = adoption.enter()?;
        drop(claim);
        Ok(entry)
    }

    /// Returns the admission in the sidecar of a copy, or `None` if it cannot be read.
    pub fn read_admission(&self, entry: &CatalogEntry) -> Option<String> {
        let layout = self.disks.find_layout(&entry.volume).ok()?;
        admission_in(&layout.target_paths(&entry.name).sidecar, &entry.name)
    }

    fn put_row(
        &self,
        name: &FileName,
        volume: &VolumeId,
        row: Row,
    ) -> Result<CatalogEntry, NodeError> {
        let entry = CatalogEntry {
            name: name.clone(),
            volume: volume.clone(),
            row,
        };
        self.catalog.put_entries(std::slice::from_ref(&entry))?;
        Ok(entry)
    }

    /// Hashes some unexpected files without a root, from the first name after `after` on. Returns the name after which
    /// to go on, or `None` if all were hashed.
    pub fn hash_unexpected_files(
        &self,
        after: Option<&FileName>,
    ) -> Result<Option<FileName>, NodeError> {
        let mut last = None;
        let mut hashed = 0;
        for (count, entry) in self.catalog.list_entries(after)?.enumerate() {
            let entry = entry?;
            // All volumes of one name are hashed together: a listing continues after a name.
            if (count >= ROWS || hashed >= BYTES) && last.as_ref() != Some(&entry.name) {
                return Ok(last);
            }
            if is_unhashed(&entry.row) {
                hashed += self.hash_file(&entry)?;
            }
            last = Some(entry.name);
        }
        Ok(None)
    }

    /// Hashes one unexpected file and returns its number of bytes. A file that cannot be read, or is in use, stays as
    /// it is.
    fn hash_file(&self, entry: &CatalogEntry) -> Result<u64, NodeError> {
        let name = &entry.name;
        let volume = &entry.volume;
        let id = claim_for_verb("hash", name)?;
        let Ok(layout) = self.disks.find_layout(volume) else {
            return Ok(0);
        };
        let Ok(_claim) = self.locks.claim_name(name, &id) else {
            return Ok(0);
        };
        let read = UncachedFile::open(&layout.target_paths(name).file)
            .and_then(|file| Ok((file.size()?, file.root()?)));
        let (size, root) = match read {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(file = %name, %volume, %error, "an unexpected file cannot be read");
                return Ok(0);
            }
        };
        if let Some(row) = self.catalog.row(name, volume)?.filter(is_unhashed) {
            let root = Some(root);
            self.put_row(name, volume, Row { size, root, ..row })?;
        }
        Ok(size)
    }
}

/// The admission that a file has before it is adopted.
enum PriorAdmission {
    /// The file has no admission that can be read.
    Absent,
    /// The file has an admission of other content.
    Other,
    /// The file has an admission of the root that it should get: the caller asks for the second time.
    Same,
}

impl PriorAdmission {
    /// Reads from the catalog which admission the copy has, where it should get one of `root`.
    fn read(entry: &CatalogEntry, root: Root) -> Result<Self, NodeError> {
        match entry.row.condition {
            Condition::Unexpected { .. } => Ok(Self::Absent),
            Condition::Missing { .. } => Err(NodeError::NotFound(entry.name.clone())),
            Condition::Present if entry.row.root == Some(root) => Ok(Self::Same),
            // A copy that is damaged in the content it should have is mended, not adopted.
            Condition::Damaged { .. } if entry.row.root == Some(root) => {
                Err(already_admitted(entry))
            }
            // The bytes decide: if they are those of its own admission, no other one fits.
            Condition::Present | Condition::Damaged { .. } => Ok(Self::Other),
        }
    }
}

/// An adoption under way. Its caller has claimed the file.
struct Adoption<'a> {
    files: &'a NodeFiles,
    /// The copy as the catalog has it.
    entry: CatalogEntry,
    layout: Layout,
    admitted: Admission,
    /// Whether the file has an admission of other content.
    had_another: bool,
    now: Timestamp,
}

impl Adoption<'_> {
    /// Hashes the file. Fails if its bytes are not what the admission says; the catalog then knows what they are.
    fn hash(&self, id: &UploadId) -> Result<SurveyedFile, NodeError> {
        let CatalogEntry { name, volume, row } = &self.entry;
        let file = self.layout.target_paths(name).file;
        let survey = SurveyedFile::hash_file(&self.layout.incoming(), id.as_str(), &file)
            .map_err(|error| self.blame(error))?;
        let size = survey.size();
        let root = survey.root();
        if (size, root) == (self.admitted.size, self.admitted.root) {
            return Ok(survey);
        }
        survey.discard().map_err(|error| self.blame(error))?;
        if self.had_another {
            return Err(already_admitted(&self.entry));
        }
        let known = Row {
            size,
            root: Some(root),
            ..row.clone()
        };
        self.files.put_row(name, volume, known)?;
        Err(if size == self.admitted.size {
            let expected = self.admitted.root.to_string();
            mismatch(name, "root", expected, root.to_string())
        } else {
            let expected = self.admitted.size.to_string();
            mismatch(name, "size", expected, size.to_string())
        })
    }

    /// Puts the sidecar with the admission beside the file, and one that does not count into the attic.
    fn publish(&self, survey: SurveyedFile, admission: &Envelope) -> Result<(), NodeError> {
        let CatalogEntry { name, volume, .. } = &self.entry;
        let text = sidecar_text(name, volume, admission, survey.outboard(), self.now)?;
        let _moving = self.files.moves.lock_moves();
        // Hashing may have taken long: is the volume still online?
        self.files.disks.find_layout(volume)?;
        let why = if self.had_another {
            "a sidecar of other content than the file has, for which people had it admitted anew"
        } else {
            "a sidecar that could not be believed, of a file that was then adopted"
        };
        self.put_sidecar_aside(why)
            .map_err(|error| self.blame(error))?;
        survey
            .publish_file(&text, &self.layout.target_paths(name))
            .map_err(|error| match error {
                PublishError::Disk(error) => self.blame(error),
                PublishError::Taken(_) => already_admitted(&self.entry),
            })
    }

    /// Puts what lies in the place of the sidecar, and cannot be believed, into the attic.
    fn put_sidecar_aside(&self, why: &str) -> Result<(), DiskError> {
        let name = &self.entry.name;
        let target = self.layout.target_paths(name);
        let beside = [target.sidecar.as_path(), target.outboard.as_path()];
        let is_absent = |path: &&Path| matches!(directory::entry_kind(path), Ok(None));
        if beside.iter().all(is_absent) {
            return Ok(());
        }
        let reason = AtticReason::of_leftover(name, self.now, &self.files.node, why);
        attic::put_aside(&self.layout, "adopt", &reason, &beside).map(|_| ())
    }

    /// Enters the file into the catalog and the lists as one like any other.
    fn enter(self) -> Result<CatalogEntry, NodeError> {
        let Self {
            files,
            entry: CatalogEntry { name, volume, .. },
            layout,
            admitted,
            had_another,
            now,
        } = self;
        let row = Row::intact_row(admitted.size, admitted.root, now, now);
        let entry = files.put_row(&name, &volume, row)?;
        files.disks.note_stored(&entry, now)?;
        if had_another {
            files.disks.remove_from_manifest(&volume, &layout, &name);
        }
        files
            .disks
            .add_to_manifest(&volume, &layout, &name, admitted.root);
        tracing::info!(file = %name, %volume, had_another, "a file was given its admission");
        Ok(entry)
    }

    fn blame(&self, error: DiskError) -> NodeError {
        self.files.disks.blame_disk(&self.entry.volume, error)
    }
}

/// Returns the error that a file has an admission of its own.
fn already_admitted(entry: &CatalogEntry) -> NodeError {
    NodeError::Admitted {
        name: entry.name.clone(),
        volume: entry.volume.clone(),
    }
}

/// Returns the error that a file is not what its admission says.
fn mismatch(name: &FileName, what: &'static str, admitted: String, received: String) -> NodeError {
    NodeError::Mismatch {
        name: name.clone(),
        what,
        admitted,
        received,
    }
}

/// Returns the admission in a sidecar of `name`, or `None` if it cannot be read.
pub(crate) fn admission_in(sidecar: &Path, name: &FileName) -> Option<String> {
    let text = reconcile::sidecar_text(sidecar)
        .inspect_err(|error| tracing::warn!(file = %name, %error, "a sidecar cannot be read"))
        .ok()??;
    let sidecar = Sidecar::from_json(&text).ok()?;
    let envelope = Envelope::parse(sidecar.admission.get().as_bytes()).ok()?;
    Some(envelope.as_str().to_owned())
}

fn is_unhashed(row: &Row) -> bool {
    row.root.is_none() && matches!(row.condition, Condition::Unexpected { .. })
}

/// The worker that hashes unexpected files, each time that disks were reconciled with the catalog.
pub(crate) struct StrangerWorker {
    files: Arc<NodeFiles>,
    every: Period,
    after: Option<FileName>,
    seen: u64,
}

impl StrangerWorker {
    pub(crate) const fn new(files: Arc<NodeFiles>, every: Period) -> Self {
        Self {
            files,
            every,
            after: None,
            seen: 0,
        }
    }
}

impl Worker for StrangerWorker {
    const NAME: &'static str = "strangers";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        if self.after.is_none() {
            let looked = self.files.disks.count_looks();
            if looked == self.seen {
                return Ok(WorkerStep::Idle(self.every.duration()));
            }
            self.seen = looked;
        }
        let files = Arc::clone(&self.files);
        let after = self.after.take();
        self.after = spawn_blocking(move || files.hash_unexpected_files(after.as_ref())).await??;
        Ok(WorkerStep::Again)
    }
}
