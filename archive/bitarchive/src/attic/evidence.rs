//! The evidence of repairs, which is the groups that they replaced, kept for a time and then removed.
//!
//! Only items whose reason can be read and says *groups* are removed in this way. Whole files, leftovers, and odd or
//! damaged items are for people to purge.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Step, Worker, WorkerError};
use archive_model::VolumeId;
use jiff::{SignedDuration, Timestamp};
use tokio::task::spawn_blocking;

use super::item::{self, AtticId};
use super::{Kind, purge};
use crate::error::NodeError;
use crate::layout::Layout;
use crate::node::Node;

/// The time between two looks.
const EVERY: Duration = Duration::from_hours(1);

impl Node {
    /// Removes the groups that repairs have replaced longer ago than `attic.evidence` (and `attic.min_age`). Returns
    /// the number of items. A volume that fails keeps no other from its turn.
    pub fn end_evidence(&self, now: Timestamp) -> u64 {
        let mut ended = 0;
        for (volume, layout) in self.volume_set().online() {
            match self.end_evidence_on(&volume, &layout, now, &mut ended) {
                Ok(()) => {}
                Err(error) => tracing::warn!(%volume, %error, "old evidence was not removed"),
            }
        }
        ended
    }

    fn end_evidence_on(
        &self,
        volume: &VolumeId,
        layout: &Layout,
        now: Timestamp,
        ended: &mut u64,
    ) -> Result<(), NodeError> {
        let settings = self.attic_settings();
        let kept = settings.evidence.max(settings.min_age).duration();
        let kept = SignedDuration::try_from(kept).unwrap_or(SignedDuration::MAX);
        let blame = |error| self.blame(volume, error);
        for listed in item::list(layout, volume).map_err(blame)? {
            let Some(id) = listed.name.to_str().and_then(|id| AtticId::new(id).ok()) else {
                continue;
            };
            let place = layout.attic().join(id.as_str());
            let Ok(reason) = item::read_reason(&place) else {
                continue;
            };
            let until = item::latest(&place).checked_add(kept);
            let is_over = until.is_ok_and(|until| until <= now);
            if reason.kind != Kind::Groups || !is_over {
                continue;
            }
            let _moving = self.moving();
            self.still_there(volume, layout)?;
            if purge::destroy(&place).map_err(blame)? {
                *ended += 1;
                tracing::info!(%volume, item = %id, file = %reason.name, "old evidence was removed");
            }
        }
        Ok(())
    }
}

/// The worker that removes old evidence every hour.
pub(crate) struct EvidenceWorker {
    pub(crate) node: Arc<Node>,
    pub(crate) clock: Clock,
}

impl Worker for EvidenceWorker {
    const NAME: &'static str = "evidence";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        let node = Arc::clone(&self.node);
        let now = self.clock.now();
        spawn_blocking(move || node.end_evidence(now)).await?;
        Ok(Step::Idle(EVERY))
    }
}
