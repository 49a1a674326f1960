//! The mending of a damaged copy with groups from elsewhere, each proven while it arrives.
//!
//! Good groups stay from the old copy, and the new ones replace the others; together they must hash to the root, or
//! nothing is touched. The repaired copy is made beside the old one and exchanged with it; if there is no room for two,
//! the groups are replaced in place under a journal. The replaced groups go to the attic before.
//!
//! Not promised: that a copy with more damage than these groups can be mended. The mend then says so, and the copy
//! stays as it was: verify it again, and send those groups too.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

mod evidence;
mod method;

use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;

use archive_durable::{
    DiskError, FinalPaths, Journal, RepairedCopy, UncachedFile, directory, exchange,
};
use archive_model::{FileContent, GROUP_SIZE, Groups, MendOrder, groups};
use archive_proof::{CopyBytes, DecodeError, OutboardState, ReadAt, decode_ranges, walk_tree};
use jiff::Timestamp;

use super::NodeFiles;
use super::verify::VerifyProgress;
use crate::catalog::{CatalogEntry, Condition};
use crate::claims::Hold;
use crate::error::NodeError;
use crate::layout::{Layout, MendPaths, is_file};
use crate::reconcile;
use crate::work::Work;

use self::evidence::Evidence;
use self::method::{BlockSource, MendMethod, MendedCopy};

/// The number of bytes of the old copy that are read at a time.
const BLOCK: u64 = 1024 * 1024;

/// The outcome of a mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MendReport {
    /// The copy as it is now.
    pub entry: CatalogEntry,
    /// The directory in the attic of the volume with the replaced groups; `None` if no group differs.
    pub attic: Option<String>,
    /// The number of groups that differ from before.
    pub groups: u64,
}

/// A mend under way. Dropping it leaves the copy as it was.
#[derive(Debug)]
pub struct Mend<'a> {
    files: &'a NodeFiles,
    order: MendOrder,
    entry: CatalogEntry,
    layout: Layout,
    target: FinalPaths,
    /// The old copy, if it can be opened.
    old: Option<UncachedFile>,
    way: MendMethod,
    evidence: Evidence,
    /// The byte ranges that have still to come.
    wanted: VecDeque<Range<u64>>,
    /// The number of bytes of the new copy that are done.
    done: u64,
    // The order of these two matters: the leftovers are removed while nobody else may take the file.
    sweep: MendCleanup,
    _hold: Hold,
}

impl NodeFiles {
    /// Begins to mend a copy.
    pub fn begin_mend(&self, order: MendOrder, now: Timestamp) -> Result<Mend<'_>, NodeError> {
        let found = self.pick_copy(&order.name, order.volume.as_ref(), now)?;
        let hold = self.locks.hold_file(&order.name, Work::Mend)?;
        let layout = self.disks.open_place(&found.volume, &order.name)?;
        self.disks
            .reconciler(&found.volume, &layout, now)
            .finish_cut_mend(&order.name)?;
        let row = self
            .catalog
            .row(&found.name, &found.volume)?
            .ok_or_else(|| NodeError::NotFound(found.name.clone()))?;
        let entry = CatalogEntry { row, ..found };
        let refuse = |why: &str| NodeError::NotMended {
            name: entry.name.clone(),
            why: why.to_owned(),
        };
        let target = layout.target_paths(&entry.name);
        match &entry.row.condition {
            Condition::Present | Condition::Damaged { .. } => {}
            Condition::Missing { .. } => {
                return Err(refuse("it is missing; store it again"));
            }
            Condition::Unexpected { .. } => {
                return Err(refuse("it has no readable sidecar; adopt it first"));
            }
        }
        if !is_file(&target.file)? {
            return Err(refuse(
                "there is no such file; verify it, then store it again",
            ));
        }
        if entry.row.root != Some(order.root) {
            return Err(NodeError::Mismatch {
                name: entry.name.clone(),
                what: "root",
                admitted: entry
                    .row
                    .root
                    .map_or_else(|| "nothing".to_owned(), |root| root.to_string()),
                received: order.root.to_string(),
            });
        }
        let size = entry.row.size;
        let beyond = order.groups.difference(&Groups::all(size));
        if order.groups.is_empty() || !beyond.is_empty() {
            let count = groups::group_count(size);
            return Err(refuse(&format!(
                "send at least one of its groups, 0 to {}",
                count - 1
            )));
        }
        let beside = MendPaths::new(&layout, &entry.name);
        let sweep = MendCleanup::new(&beside);
        let way = MendMethod::choose_method(&self.disks, &entry, &layout, &order)?;
        Ok(Mend {
            files: self,
            old: UncachedFile::open(&target.file).ok(),
            evidence: Evidence::new(&beside),
            wanted: order
                .groups
                .byte_ranges(size)
                .filter(|range| !range.is_empty())
                .collect(),
            done: 0,
            order,
            entry,
            layout,
            target,
            way,
            sweep,
            _hold: hold,
        })
    }
}

impl Mend<'_> {
    /// Returns the copy as it was when the mend began.
    pub const fn entry(&self) -> &CatalogEntry {
        &self.entry
    }

    /// Returns whether the groups are replaced in place, because there is no room for a second copy.
    pub const fn is_in_place(&self) -> bool {
        self.way.is_in_place()
    }

    /// Writes the next segment: `length` bytes from `offset` on, encoded with their proof.
    pub fn write_segment(
        &mut self,
        offset: u64,
        length: u64,
        encoded: &[u8],
        progress: VerifyProgress<'_>,
    ) -> Result<(), NodeError> {
        let size = self.entry.row.size;
        let end = offset.saturating_add(length);
        let expected = match self.wanted.front() {
            // An empty file has one group, of no bytes.
            None if size == 0 && length == 0 => 0..0,
            None => {
                return Err(self.wrong(
                    offset,
                    "no further groups were announced; send only those that `open` names",
                ));
            }
            Some(range) => range.clone(),
        };
        if offset != expected.start {
            let why = format!("byte {} comes next, in ascending order", expected.start);
            return Err(self.wrong(offset, &why));
        }
        let is_whole = end == expected.end || end.is_multiple_of(GROUP_SIZE);
        if end > expected.end || !is_whole || (length == 0 && size > 0) {
            let why = format!("{length} bytes are not whole groups up to {}", expected.end);
            return Err(self.wrong(offset, &why));
        }
        let capacity = match usize::try_from(length) {
            Ok(capacity) if capacity <= encoded.len() => capacity,
            _ => return Err(self.wrong(offset, "the segment ends too early; send it again")),
        };
        let mut bytes = Vec::with_capacity(capacity);
        let range = std::iter::once(offset..end).collect::<Vec<_>>();
        let content = FileContent {
            root: self.order.root,
            size,
        };
        let decoded = decode_ranges(encoded, content, &range, |_, proven| {
            bytes.extend_from_slice(proven);
            Ok(())
        });
        decoded.map_err(|error| {
            let at = match &error {
                DecodeError::WrongGroup { group } => group.saturating_mul(GROUP_SIZE),
                _ => offset,
            };
            self.wrong(at, &error.to_string())
        })?;
        self.keep_up_to(offset, progress)?;
        for (at, group) in (offset..).step_by(GROUP).zip(bytes.chunks(GROUP)) {
            self.evidence
                .compare_groups(self.old.as_ref(), at, group)
                .map_err(|error| self.files.disks.blame_disk(&self.entry.volume, error))?;
        }
        self.put(&bytes, BlockSource::Sent)?;
        if let Some(range) = self.wanted.front_mut() {
            range.start = end;
            if range.is_empty() {
                self.wanted.pop_front();
            }
        }
        Ok(())
    }

    /// Ends the mend when all groups have come: proves the new copy, puts the replaced groups into the attic, and
    /// exchanges the copies.
    pub fn close_mend(
        mut self,
        now: Timestamp,
        progress: VerifyProgress<'_>,
    ) -> Result<MendReport, NodeError> {
        if let Some(missing) = self.wanted.front() {
            return Err(self.wrong(missing.start, "these groups were announced and not sent"));
        }
        let size = self.entry.row.size;
        self.keep_up_to(size, progress)?;
        self.evidence
            .surplus_groups(self.old.as_ref(), size)
            .map_err(|error| self.files.disks.blame_disk(&self.entry.volume, error))?;
        // The order matters: the hold is given back last.
        let Self {
            _hold,
            sweep,
            files,
            order,
            entry,
            layout,
            target,
            old,
            way,
            evidence,
            ..
        } = self;
        drop(old);
        let made = way
            .finish_copy(size, order.root)
            .map_err(|error| files.disks.blame_disk(&entry.volume, error))?;
        let Some(made) = made else {
            let why = "with these groups it would still be damaged; verify it again, and send all damaged groups".to_owned();
            let name = entry.name;
            return Err(NodeError::NotMended { name, why });
        };
        let count = evidence.groups();
        let mut replacing = CopyExchange {
            files,
            order,
            entry,
            layout,
            target,
            sweep,
            now,
        };
        let attic = match made {
            MendedCopy::Beside(copy) => replacing.exchange(copy, evidence, progress)?,
            MendedCopy::InPlace(journal) => replacing.apply(journal, evidence, progress)?,
        };
        let mut entry = replacing.entry.clone();
        entry.row.verified = Some(now);
        // The bytes are right; whether their sidecar admits them is another question.
        let sidecar = replacing.layout.target_paths(&entry.name).sidecar;
        entry.row.condition = match reconcile::read_sidecar(&sidecar, &entry.name, &files.trust)? {
            Ok(_) => Condition::Present,
            Err(why) => Condition::Unexpected { why },
        };
        files.catalog.put_entries(std::slice::from_ref(&entry))?;
        tracing::info!(file = %entry.name, volume = %entry.volume, groups = count, attic = attic.as_deref(), "mended");
        Ok(MendReport {
            entry,
            attic,
            groups: count,
        })
    }

    /// Copies the good groups of the old copy, up to `offset`.
    fn keep_up_to(&mut self, offset: u64, progress: VerifyProgress<'_>) -> Result<(), NodeError> {
        let mut block = Vec::new();
        while self.done < offset {
            let length = BLOCK.min(offset - self.done);
            let block_length = usize::try_from(length).expect("a block fits in memory");
            block.resize(block_length, 0);
            let read = match &self.old {
                Some(old) => old.read_exact_at(self.done, &mut block),
                None => Err(std::io::ErrorKind::PermissionDenied.into()),
            };
            read.map_err(|error| {
                let why = format!(
                    "the old copy cannot be read there ({error}), and it is not among the groups that were sent; verify it again"
                );
                self.wrong(self.done, &why)
            })?;
            self.put(&block, BlockSource::Kept)?;
            if progress(length).is_break() {
                return Err(NodeError::Stopped(self.entry.name.clone()));
            }
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8], source: BlockSource) -> Result<(), NodeError> {
        self.way
            .put_block(bytes, source)
            .map_err(|error| self.files.disks.blame_disk(&self.entry.volume, error))?;
        self.done += bytes.len() as u64;
        Ok(())
    }

    fn wrong(&self, offset: u64, why: &str) -> NodeError {
        NodeError::Segment {
            name: self.entry.name.clone(),
            offset,
            why: why.to_owned(),
        }
    }
}

/// The exchange of the old copy for a mended one that has all its bytes.
struct CopyExchange<'a> {
    files: &'a NodeFiles,
    order: MendOrder,
    /// The copy as it was when the mend began.
    entry: CatalogEntry,
    layout: Layout,
    target: FinalPaths,
    sweep: MendCleanup,
    now: Timestamp,
}

impl CopyExchange<'_> {
    /// Proves the second copy and puts it in the place of the old one. Returns the directory in the attic.
    fn exchange(
        &mut self,
        copy: RepairedCopy,
        evidence: Evidence,
        progress: VerifyProgress<'_>,
    ) -> Result<Option<String>, NodeError> {
        let mut has_stopped = false;
        let mut report = |bytes| {
            let flow = progress(bytes);
            has_stopped |= flow.is_break();
            flow
        };
        let proven = match copy.prove_copy(self.order.root, &mut report) {
            Ok(proven) => proven,
            Err(Some(error)) => return Err(self.blame(error)),
            Err(None) if has_stopped => return Err(NodeError::Stopped(self.entry.name.clone())),
            Err(None) => return Err(self.wrong_bytes()),
        };
        let attic = self.put_aside(evidence)?;
        if let Err(error) = proven.exchange_copy(&self.target) {
            // The next start finds out which copy stands, once people have looked at the disk.
            self.sweep.leave();
            return Err(self.blame(error));
        }
        Ok(attic)
    }

    /// Replaces the groups in the old copy and reads it back. Returns the directory in the attic.
    fn apply(
        &mut self,
        journal: Journal,
        evidence: Evidence,
        progress: VerifyProgress<'_>,
    ) -> Result<Option<String>, NodeError> {
        let attic = self.put_aside(evidence)?;
        // From here on the journal makes the copy whole again, even after a crash.
        self.sweep.leave();
        journal
            .apply_to(&self.target.file)
            .map_err(|error| self.blame(error))?;
        let failed = self.read_back(progress)?;
        if failed.is_some() {
            // The groups are in. The next verification judges the whole file.
            reconcile::note_applied(&self.files.catalog, &self.entry, self.now)?;
        }
        journal.remove().map_err(|error| self.blame(error))?;
        failed.map_or(Ok(attic), Err)
    }

    /// Reads the copy whose groups were replaced in place, and computes its outboard again if that is wrong. Returns
    /// why the copy cannot be called mended, or `None` if it is.
    fn read_back(&self, progress: VerifyProgress<'_>) -> Result<Option<NodeError>, NodeError> {
        let blame = |error| self.blame(error);
        let data = UncachedFile::open(&self.target.file).map_err(blame)?;
        let outboard = UncachedFile::open(&self.target.outboard).ok();
        let copy = CopyBytes {
            data: &data,
            outboard: outboard.as_ref().map(|outboard| outboard as &dyn ReadAt),
        };
        let content = FileContent {
            root: self.order.root,
            size: self.entry.row.size,
        };
        let found = walk_tree(copy, content, progress);
        if found.stopped {
            return Ok(Some(NodeError::Stopped(self.entry.name.clone())));
        }
        if !found.is_intact() || data.size().map_err(blame)? != content.size {
            return Ok(Some(self.wrong_bytes()));
        }
        if found.outboard != OutboardState::Good {
            let beside = MendPaths::new(&self.layout, &self.entry.name).outboard;
            let outboard = &self.target.outboard;
            exchange::rebuild_outboard(&data, content, &beside, outboard).map_err(blame)?;
        }
        Ok(None)
    }

    /// Puts the replaced groups into the attic. Returns the directory there, or `None` if no group differs.
    fn put_aside(&self, evidence: Evidence) -> Result<Option<String>, NodeError> {
        self.files
            .disks
            .confirm_volume(&self.entry.volume, &self.layout)?;
        evidence
            .put_aside(&self.layout, &self.order, &self.entry, self.now)
            .map_err(|error| self.blame(error))
    }

    fn blame(&self, error: DiskError) -> NodeError {
        self.files.disks.blame_disk(&self.entry.volume, error)
    }

    /// Returns the error that the bytes read back are not those of the root.
    fn wrong_bytes(&self) -> NodeError {
        NodeError::ReadBack {
            name: self.entry.name.clone(),
            volume: self.entry.volume.clone(),
        }
    }
}

/// Removes the leftovers of a mend when it is dropped.
#[derive(Debug)]
struct MendCleanup {
    paths: Vec<PathBuf>,
}

impl MendCleanup {
    fn new(beside: &MendPaths) -> Self {
        let mut paths = beside.leftovers().to_vec();
        paths.push(beside.journal.clone());
        Self { paths }
    }

    /// Leaves everything for the next start.
    fn leave(&mut self) {
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

/// Returns a group as an index.
const GROUP: usize = 16 * 1024;
