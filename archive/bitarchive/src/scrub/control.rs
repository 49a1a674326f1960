//! The orders of people to the scrub, and its answers. Orders are on disk before they are obeyed.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archive_daemon::worker::MAX_PAUSE;
use archive_durable::DiskError;
use jiff::Timestamp;

use super::order::{ReadPlan, ReadPolicy};
use super::orders::{StoredOrders, end_of};
use crate::settings::ScrubSettings;

/// An order to the scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubOrder {
    /// Pause for this time, at most a day; zero means a day.
    Pause(Duration),
    /// Resume.
    Resume,
    /// Read at most these bytes a second; zero means what the deadline asks for.
    Throttle(u64),
}

/// The activity of the scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A copy is due and is being read.
    Running,
    /// No copy is due.
    Idle,
    /// People have paused the scrub until this time.
    Paused(Timestamp),
    /// The settings switch it off.
    Off,
}

/// The state of the scrub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubState {
    /// The activity of the scrub.
    pub activity: Activity,
    /// The rate of the scrub, in bytes a second.
    pub rate: u64,
    /// The number of copies that are due now.
    pub due: u64,
    /// The time at which the next copy is due.
    pub next: Option<Timestamp>,
    /// The oldest verification; `None` while some copy has none.
    pub oldest: Option<Timestamp>,
    /// The number of copies that were not verified since the catalog was built.
    pub unknown: u64,
    /// The number of files read since the start.
    pub files: u64,
    /// The number of bytes read since the start.
    pub bytes: u64,
    /// The number of damaged copies found since the start.
    pub found: u64,
    /// The time within which every copy is read once.
    pub deadline: Duration,
}

/// The state that the scrub shares with the callers that give it orders.
#[derive(Debug)]
pub struct Control {
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

impl Control {
    /// Opens it with the orders from before the restart.
    pub fn open(data: &Path, settings: ScrubSettings, now: Timestamp) -> Self {
        let shared = ScrubMemory {
            orders: StoredOrders::read(data, now),
            ..ScrubMemory::default()
        };
        Self {
            data: data.to_owned(),
            settings,
            shared: Mutex::new(shared),
        }
    }

    /// Obeys an order, durably.
    ///
    /// # Errors
    ///
    /// Returns a [`DiskError`] if the order cannot be written; it is not obeyed then.
    pub fn order(&self, order: ScrubOrder, now: Timestamp) -> Result<(), DiskError> {
        self.remember(|orders| match order {
            ScrubOrder::Pause(pause) => {
                let pause = if pause.is_zero() { MAX_PAUSE } else { pause };
                orders.paused_until = Some(end_of(pause, now));
            }
            ScrubOrder::Resume => orders.paused_until = None,
            ScrubOrder::Throttle(rate) => orders.bytes_per_second = (rate > 0).then_some(rate),
        })
    }

    /// Returns the state of the scrub.
    pub fn state(&self, now: Timestamp) -> ScrubState {
        let shared = self.lock();
        let activity = match shared.orders.pause(now) {
            _ if !self.settings.enabled => Activity::Off,
            Some(until) => Activity::Paused(until),
            None if shared.plan.due > 0 => Activity::Running,
            None => Activity::Idle,
        };
        ScrubState {
            activity,
            rate: self.rate_of(&shared),
            due: shared.plan.due,
            next: shared.plan.next_due,
            oldest: shared.plan.oldest,
            unknown: shared.plan.unknown,
            files: shared.files,
            bytes: shared.bytes,
            found: shared.found,
            deadline: self.settings.deadline.duration(),
        }
    }

    pub(super) fn may_read(&self, now: Timestamp) -> bool {
        self.settings.enabled && self.lock().orders.pause(now).is_none()
    }

    pub(super) fn rate(&self) -> u64 {
        self.rate_of(&self.lock())
    }

    fn rate_of(&self, shared: &ScrubMemory) -> u64 {
        let ordered = shared.orders.bytes_per_second;
        let most = ordered.or(self.settings.rate.map(archive_daemon::ByteSize::bytes));
        shared.plan.rate.min(most.unwrap_or(u64::MAX)).max(1)
    }

    /// Changes the stored orders, on disk first.
    pub(super) fn remember(&self, change: impl FnOnce(&mut StoredOrders)) -> Result<(), DiskError> {
        let mut shared = self.lock();
        let mut orders = shared.orders.clone();
        change(&mut orders);
        if orders != shared.orders {
            orders.write(&self.data)?;
            shared.orders = orders;
        }
        Ok(())
    }

    pub(super) fn policy(&self) -> ReadPolicy {
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
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
