//! The orders of people to the scrub, and its answers. Orders are on disk before they are obeyed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_daemon::worker::MAX_PAUSE;
use archive_durable::DiskError;
use archive_model::{NodeKey, NodeScrub, ScrubActivity, ScrubOrder};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use super::order::{ReadPlan, ReadPolicy};
use super::orders::{StoredOrders, end_of};
use crate::settings::ScrubSettings;

/// The state that the scrub shares with the callers that give it orders.
#[derive(Debug)]
pub struct ScrubControl {
    data: PathBuf,
    settings: ScrubSettings,
    shared: Mutex<ScrubMemory>,
}

#[derive(Debug, Default)]
struct ScrubMemory {
    orders: StoredOrders,
    plan: ReadPlan,
    files: u64,
    bytes: u64,
    found: u64,
}

impl ScrubControl {
    /// Opens it with the orders from before the restart.
    pub fn open(data: &Path, settings: ScrubSettings, now: Timestamp) -> Self {
        let shared = ScrubMemory {
            orders: StoredOrders::read_orders(data, now),
            ..ScrubMemory::default()
        };
        Self {
            data: data.to_owned(),
            settings,
            shared: Mutex::new(shared),
        }
    }

    /// Carries out an order, durably.
    ///
    /// # Errors
    ///
    /// Returns a [`DiskError`] if the order cannot be written; it is not carried out then.
    pub fn give_order(&self, order: ScrubOrder, now: Timestamp) -> Result<(), DiskError> {
        self.remember_change(|orders| match order {
            ScrubOrder::Tell => {}
            ScrubOrder::Pause(pause) => {
                orders.paused_until = Some(end_of(pause.unwrap_or(MAX_PAUSE), now));
            }
            ScrubOrder::Resume => orders.paused_until = None,
            ScrubOrder::Throttle(rate) => orders.bytes_per_second = rate,
        })
    }

    /// Returns the state of the scrub, which is that of `node`.
    pub fn scrub_state(&self, node: NodeKey, now: Timestamp) -> NodeScrub {
        let shared = self.lock();
        let (state, paused_until) = match shared.orders.pause_end(now) {
            _ if !self.settings.enabled => (ScrubActivity::Off, None),
            Some(until) => (ScrubActivity::Paused, Some(until)),
            None if shared.plan.due > 0 => (ScrubActivity::Running, None),
            None => (ScrubActivity::Idle, None),
        };
        NodeScrub {
            replica: node.replica,
            node: node.node,
            state,
            paused_until,
            bytes_per_second: Some(self.rate_of(&shared)),
            due: shared.plan.due,
            next: shared.plan.next_due,
            oldest: shared.plan.oldest,
            unknown: shared.plan.unknown,
            files: shared.files,
            bytes: shared.bytes,
            found: shared.found,
            deadline_seconds: self.settings.deadline.duration().as_secs(),
        }
    }

    /// Returns the time of the next read that the plan knows of.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.lock().plan.next_due
    }

    pub(super) fn may_read(&self, now: Timestamp) -> bool {
        self.settings.enabled && self.lock().orders.pause_end(now).is_none()
    }

    pub(super) fn bytes_rate(&self) -> u64 {
        self.rate_of(&self.lock())
    }

    fn rate_of(&self, shared: &ScrubMemory) -> u64 {
        let ordered = shared.orders.bytes_per_second;
        let most = ordered.or(self.settings.rate.map(archive_daemon::ByteSize::bytes));
        shared.plan.rate.min(most.unwrap_or(u64::MAX)).max(1)
    }

    /// Changes the stored orders, on disk first.
    pub(super) fn remember_change(
        &self,
        change: impl FnOnce(&mut StoredOrders),
    ) -> Result<(), DiskError> {
        let mut shared = self.lock();
        let mut orders = shared.orders.clone();
        change(&mut orders);
        if orders != shared.orders {
            orders.write_orders(&self.data)?;
            shared.orders = orders;
        }
        Ok(())
    }

    pub(super) fn read_policy(&self) -> ReadPolicy {
        ReadPolicy {
            deadline: self
                .settings
                .deadline
                .duration()
                .max(Duration::from_secs(1)),
            young: self.settings.young.duration(),
        }
    }

    pub(super) fn unknown_since(&self) -> Option<Timestamp> {
        self.lock().orders.unknown_since
    }

    pub(super) fn set_plan(&self, plan: ReadPlan) {
        self.lock().plan = plan;
    }

    /// Counts a file that was due and was read.
    pub(super) fn count_file(&self, is_damaged: bool) {
        let mut shared = self.lock();
        shared.files += 1;
        shared.found += u64::from(is_damaged);
        shared.plan.due = shared.plan.due.saturating_sub(1);
    }

    pub(super) fn count_bytes(&self, bytes: u64) {
        let mut shared = self.lock();
        shared.bytes = shared.bytes.saturating_add(bytes);
    }

    fn lock(&self) -> MutexGuard<'_, ScrubMemory> {
        self.shared.lock()
    }
}
