//! One node: what it has, what it is receiving, and the order of things.
//!
//! Everything here blocks; the door (`rpc`) calls it from threads that may. Time is an argument.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use archive_durable::{DiskError, UncachedFile, directory};
use archive_model::{FileName, NodeId, ReplicaId, Root, UploadId, VolumeId};
use archive_proof::TrustFile;
use jiff::Timestamp;

use crate::attic::settle_all;
use crate::catalog::{Catalog, Entry, Tally};
use crate::error::NodeError;
use crate::layout::Layout;
use crate::reconcile::{self, Reconciled};
use crate::settings::AtticSettings;
use crate::standing::Standing;
use crate::volumes::{Volume, Volumes, VolumesError};
use crate::work::{Hold, Work, Works};

mod answered;
mod claims;
mod disks;
mod leftovers;
mod receive;
mod upkeep;
mod walk;

pub(crate) use claims::{Claim, Claims};
pub(crate) use disks::Second;
pub(crate) use leftovers::put_leftovers_aside;
use upkeep::Upkeep;
pub(crate) use upkeep::verb;

/// What a node is told when it starts.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Who it is.
    pub node: NodeId,
    /// Whose it is.
    pub replica: ReplicaId,
    /// Where its catalog and its memory of volumes lie; not on a volume.
    pub data: PathBuf,
    /// Where its volumes are mounted.
    pub volumes: Vec<PathBuf>,
    /// What stays free on each volume, in bytes.
    pub reserve: u64,
    /// The keys whose admissions it believes.
    pub trust: TrustFile,
    /// What may leave it, and how fast.
    pub attic: AtticSettings,
}

/// A node. Shared by all who serve it.
#[derive(Debug)]
pub struct Node {
    options: NodeOptions,
    volumes: Volumes,
    catalog: Catalog,
    receiving: Claims,
    upkeep: Upkeep,
    works: Works,
    standing: Standing,
}

impl Node {
    /// Opens the volumes and the catalog and holds each against the other. Returns what that found.
    pub fn open(options: NodeOptions, now: Timestamp) -> Result<(Self, Reconciled), NodeError> {
        let volumes = Volumes::open(
            &options.node,
            &options.replica,
            &options.data,
            &options.volumes,
            options.reserve,
        )?;
        let opened = Catalog::open(&options.data.join("catalog"), stamp(now))?;
        if let Some(why) = &opened.rebuild {
            tracing::warn!(why, "the catalog is built again from the volumes");
        }
        let node = Self {
            upkeep: Upkeep::new(&options),
            options,
            volumes,
            catalog: opened.catalog,
            receiving: Arc::default(),
            works: Works::default(),
            standing: Standing::default(),
        };
        let found = node.refresh(now)?;
        node.note_retired(now)?;
        Ok((node, found))
    }

    /// Who it is.
    pub const fn id(&self) -> &NodeId {
        &self.options.node
    }

    /// Whose it is.
    pub const fn replica(&self) -> &ReplicaId {
        &self.options.replica
    }

    /// Its volumes, online or not.
    pub fn volumes(&self) -> Vec<Volume> {
        self.volumes.all()
    }

    /// The volumes themselves, for the verbs of operators.
    pub const fn volume_set(&self) -> &Volumes {
        &self.volumes
    }

    /// Takes the poison from a volume that people have looked at; it is held against the catalog before it serves.
    pub fn clear(&self, volume: &VolumeId, now: Timestamp) -> Result<Reconciled, NodeError> {
        self.volumes.clear(volume)?;
        self.refresh(now)
    }

    /// Looks at the disks again. A volume that is there again is held against the catalog before anybody may use it.
    pub fn refresh(&self, now: Timestamp) -> Result<Reconciled, NodeError> {
        let _alone = self
            .upkeep
            .refreshing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut found = Reconciled::default();
        let mut is_any_new = false;
        for (id, layout) in self.volumes.refresh()? {
            if let Some(one) = self.reconcile(&id, &layout, now)? {
                self.volumes.note_foreign(&id, one.foreign);
                for warning in self.volumes.warnings(&id) {
                    tracing::warn!(volume = %id, warning);
                }
                found.add(one);
                self.volumes.accept(&id);
                self.note_looked();
                is_any_new = true;
            }
        }
        if is_any_new {
            self.forget_all_answered(now)?;
        }
        self.settle_again();
        Ok(found)
    }

    /// Holds a volume against the catalog; `None`: it cannot be done now, and the volume stays offline.
    fn reconcile(
        &self,
        id: &VolumeId,
        layout: &Layout,
        now: Timestamp,
    ) -> Result<Option<Reconciled>, NodeError> {
        let settled = {
            let _moving = self.moving();
            settle_all(&self.catalog, id, layout)
        };
        let found = settled
            .and_then(|()| crate::mend::finish_cut(self, id, layout, now))
            .and_then(|()| reconcile::volume(&self.catalog, &self.options.trust, id, layout, now))
            .and_then(|found| match self.volumes.raise(id, layout) {
                Err(VolumesError::Disk(error)) => Err(NodeError::Disk(error)),
                raised => Ok(raised.map(|()| found)?),
            });
        match found {
            Ok(found) => Ok(Some(found)),
            Err(NodeError::Disk(error)) => {
                tracing::warn!(volume = %id, %error, "the volume cannot be held against the catalog");
                self.volumes.blame(id, &error)?;
                self.volumes.cannot_accept(id, &error);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// Holds one file against the catalog, as a start would, and gives its root. A disk that fails meanwhile is taken offline:
    /// a second sync of a name whose first one failed would pass, and say nothing.
    pub(crate) fn look_at(
        &self,
        id: &VolumeId,
        layout: &Layout,
        name: &FileName,
        now: Timestamp,
    ) -> Result<Option<Root>, NodeError> {
        self.note_looked();
        let looked = reconcile::file(&self.catalog, &self.options.trust, id, layout, name, now);
        looked.map_err(|error| {
            if let NodeError::Disk(error) = error {
                self.blame(id, error)
            } else {
                error
            }
        })
    }

    /// Where a file is on this node, the best copy first. Several are for people to look at, unless a volume is being
    /// drained.
    pub fn find(&self, name: &FileName) -> Result<Vec<Entry>, NodeError> {
        let mut entries = self.catalog.find(name)?;
        self.sort_by_use(&mut entries);
        Ok(entries)
    }

    /// Every entry after the name `after`, sorted by name. Entries of offline volumes are among them.
    pub fn list(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<Entry, NodeError>> + '_, NodeError> {
        Ok(self.catalog.list(after)?.map(|entry| Ok(entry?)))
    }

    /// The findings among them.
    pub fn list_findings(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<Entry, NodeError>> + '_, NodeError> {
        Ok(self.catalog.list_findings(after)?.map(|entry| Ok(entry?)))
    }

    /// How many findings there are, and the stamp of their last change.
    pub fn tally(&self) -> Tally {
        self.catalog.tally()
    }

    /// Opens the bytes of a file that is here, for reading past the page cache, with its outboard where it has one.
    pub fn open_file(&self, name: &FileName) -> Result<Reading, NodeError> {
        let entries = self.find(name)?;
        let mut problem = NodeError::NotFound(name.clone());
        for entry in entries.into_iter().filter(|entry| entry.row.is_readable()) {
            match self
                .layout(&entry.volume)
                .and_then(|layout| open(&layout, entry))
            {
                Ok(reading) => return Ok(reading),
                Err(why) => problem = why,
            }
        }
        Err(problem)
    }

    /// Removes what was received of uploads that nobody has touched since `before` (seconds since 1970).
    pub fn reap(&self, before: i64) -> Result<u64, NodeError> {
        let mut reaped = 0;
        let receiving: Vec<String> = self
            .receiving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .map(|upload| upload.as_str().to_owned())
            .collect();
        for (_, layout) in self.volumes.online() {
            for (last, kind) in directory::look(&layout.incoming())? {
                let is_old = matches!(kind, Ok(directory::EntryKind::File { changed, .. }) if changed < before);
                let name = last.to_string_lossy();
                let upload = name.split('.').next().unwrap_or_default();
                let is_old = is_old && !crate::mend::is_of_a_mend(&name);
                if is_old && !receiving.iter().any(|active| active == upload) {
                    directory::remove_name(&layout.incoming().join(&last))?;
                    reaped += 1;
                }
            }
        }
        Ok(reaped)
    }

    /// The upload that receives a file of this name now.
    pub fn receiving(&self, name: &FileName) -> Option<UploadId> {
        self.receiving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned()
    }

    /// Takes a name, to receive or to move it: nobody else does, and nobody works on the file.
    pub(crate) fn claim(&self, name: &FileName, id: &UploadId) -> Result<Claim, NodeError> {
        let claim = Claim::take(&self.receiving, name, id)?;
        self.works.refuse_busy(name)?;
        Ok(claim)
    }

    /// Takes a file to work on: nobody else works on it or receives it until the hold is dropped.
    pub(crate) fn hold(&self, name: &FileName, work: Work) -> Result<Hold, NodeError> {
        let hold = self.works.take(name, work)?;
        match self.receiving(name) {
            None => Ok(hold),
            Some(upload) => Err(NodeError::Busy {
                name: name.clone(),
                upload,
            }),
        }
    }

    /// Whether somebody waits for a file that is worked on.
    pub(crate) fn is_wanted(&self, name: &FileName) -> bool {
        self.works.is_wanted(name)
    }

    pub(crate) const fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(crate) const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(crate) const fn trust(&self) -> &TrustFile {
        &self.options.trust
    }

    /// Takes the volume offline if the error says that its disk fails, and hands the error on.
    pub(crate) fn blame(&self, volume: &VolumeId, error: DiskError) -> NodeError {
        match self.volumes.blame(volume, &error) {
            Ok(()) => NodeError::Disk(error),
            Err(worse) => NodeError::Disk(worse),
        }
    }

    pub(crate) fn is_online(&self, volume: &VolumeId) -> bool {
        self.volumes
            .find(volume)
            .is_some_and(|volume| volume.problem.is_none())
    }

    pub(crate) fn layout(&self, id: &VolumeId) -> Result<Layout, NodeError> {
        let volume = self
            .volumes
            .find(id)
            .ok_or_else(|| VolumesError::Unknown(id.clone()))?;
        match volume.problem {
            None => Ok(Layout::new(&volume.path)),
            Some(problem) => Err(NodeError::Offline {
                volume: id.clone(),
                problem,
            }),
        }
    }
}

/// Where the stamps of findings begin: another number at each start.
fn stamp(now: Timestamp) -> u64 {
    u64::try_from(now.as_microsecond()).unwrap_or_default()
}

/// A file of this node, open.
#[derive(Debug)]
pub struct Reading {
    /// Its bytes.
    pub data: UncachedFile,
    /// Its outboard.
    pub outboard: Option<UncachedFile>,
    /// What the catalog says of it.
    pub entry: Entry,
}

fn open(layout: &Layout, entry: Entry) -> Result<Reading, NodeError> {
    let target = layout.target(&entry.name);
    let outboard = match UncachedFile::open(&target.outboard) {
        Err(error) if error.is_absent() => None,
        other => Some(other?),
    };
    Ok(Reading {
        data: UncachedFile::open(&target.file)?,
        outboard,
        entry,
    })
}

#[cfg(test)]
mod tests;
