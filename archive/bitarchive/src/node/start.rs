//! The start of a node, and its later looks at the disks: unfinished moves, mends and uploads are ended before a volume
//! is reconciled with the catalog.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use archive_durable::directory;
use archive_model::VolumeId;
use jiff::Timestamp;

use super::upkeep::Upkeep;
use super::{Node, NodeOptions};
use crate::attic::AtticMoves;
use crate::catalog::Catalog;
use crate::claims::FileLocks;
use crate::error::NodeError;
use crate::layout::{Layout, is_mend_name};
use crate::reconcile::ReconcileReport;
use crate::scrub_age::ScrubAge;
use crate::volumes::{Volumes, VolumesError};

impl Node {
    /// Opens the volumes and the catalog and reconciles them. Returns the node, and a report.
    pub fn open(
        options: NodeOptions,
        now: Timestamp,
    ) -> Result<(Self, ReconcileReport), NodeError> {
        let volumes = Volumes::open(
            &options.node,
            &options.replica,
            &options.data,
            &options.volumes,
        )?
        .with_reserve(options.reserve);
        let opened = Catalog::open(&options.data.join("catalog"), stamp(now))?;
        if let Some(why) = &opened.rebuild {
            tracing::warn!(why, "the catalog is built again from the volumes");
        }
        let node = Self {
            upkeep: Upkeep::new(&options.data, options.attic),
            options,
            volumes,
            catalog: opened.catalog,
            locks: FileLocks::default(),
            moves: AtticMoves::default(),
            scrub_age: ScrubAge::default(),
        };
        let found = node.refresh(now)?;
        node.note_retired(now)?;
        Ok((node, found))
    }

    /// Clears a poisoned volume that people have looked at; it is reconciled with the catalog before it serves.
    pub fn clear(&self, volume: &VolumeId, now: Timestamp) -> Result<ReconcileReport, NodeError> {
        self.volumes.clear(volume)?;
        self.refresh(now)
    }

    /// Looks at the disks again. A volume that has come back is reconciled with the catalog before anybody may use it.
    pub fn refresh(&self, now: Timestamp) -> Result<ReconcileReport, NodeError> {
        let _alone = self.upkeep.refreshing.lock();
        let mut found = ReconcileReport::default();
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
        self.moves.settle_again(&self.catalog, &self.volumes);
        Ok(found)
    }

    /// Reconciles a volume with the catalog. Returns `None` if that cannot be done now; the volume then stays offline.
    fn reconcile(
        &self,
        id: &VolumeId,
        layout: &Layout,
        now: Timestamp,
    ) -> Result<Option<ReconcileReport>, NodeError> {
        let reconciler = self.reconciler(id, layout, now);
        let settled = self.moves.settle_volume(&self.catalog, id, layout);
        let found = settled
            .and_then(|()| reconciler.finish_cut_mends())
            .and_then(|()| reconciler.volume())
            .and_then(|found| match self.volumes.raise(id, layout) {
                Err(VolumesError::Disk(error)) => Err(NodeError::Disk(error)),
                raised => Ok(raised.map(|()| found)?),
            });
        match found {
            Ok(found) => Ok(Some(found)),
            Err(NodeError::Disk(error)) => {
                tracing::warn!(volume = %id, %error, "the volume cannot be reconciled with the catalog");
                self.volumes.blame(id, &error)?;
                self.volumes.cannot_accept(id, &error);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// Removes the bytes of uploads that nobody has touched since `before` (seconds since 1970). Returns their number.
    pub fn reap(&self, before: i64) -> Result<u64, NodeError> {
        let mut reaped = 0;
        let receiving = self.locks.list_uploads();
        for (_, layout) in self.volumes.online() {
            for (last, kind) in directory::look(&layout.incoming())? {
                let is_old = matches!(kind, Ok(directory::EntryKind::File { changed, .. }) if changed < before);
                let name = last.to_string_lossy();
                let upload = name.split('.').next().unwrap_or_default();
                let is_old = is_old && !is_mend_name(&name);
                if is_old && !receiving.iter().any(|active| active.as_str() == upload) {
                    directory::remove_name(&layout.incoming().join(&last))?;
                    reaped += 1;
                }
            }
        }
        Ok(reaped)
    }
}

/// Returns the number from which the stamps of findings count: a new one at each start.
fn stamp(now: Timestamp) -> u64 {
    u64::try_from(now.as_microsecond()).unwrap_or_default()
}
