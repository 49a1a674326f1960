//! Which files that are on their way are in memory: all of them while they are few, else some at a time, in turn.
//!
//! A file that only waits for its next try gives up its place when there are too many. The admin data has all that
//! matters of it, and a walk over them loads it again; so a restart, or a replica that was away for long, begins with
//! some files and not with all.
//!
//! Not promised: that a file is tried again exactly when its pause is over, where there are too many.

use archive_ledger::admin::{AdminError, FileWalk, PageLimits};
use archive_model::{FileName, time_after};
use jiff::{SignedDuration, Timestamp};

use super::{Active, Coordinator, FileDecision, Step};

/// The most files in memory, but for those that depositors send just now.
pub(super) const MOST: usize = 1000;

/// The number of rows that are looked at before messages are read again.
const PAGE: usize = 1000;

/// The pause while there is no room.
const NO_ROOM: SignedDuration = SignedDuration::from_secs(2);

/// The pause before files that gave up their places are looked for again.
const AGAIN: SignedDuration = SignedDuration::from_mins(5);

/// The walk over the admin data that loads files on their way into memory.
#[derive(Debug, Default)]
pub(super) struct FilePager {
    /// The progress of this pass.
    walk: FileWalk,
    /// The time at which the walk continues; `None` if every file that is on its way is in memory.
    next: Option<Timestamp>,
    /// Whether a file gave up its place since this pass began.
    is_behind: bool,
    /// Files that this pass has loaded into memory.
    found: u64,
}

impl FilePager {
    /// Begins the first pass.
    pub(super) fn begin_paging(&mut self, now: Timestamp) {
        self.next = Some(now);
    }

    /// Returns the time at which the walk continues.
    pub(super) const fn next_due(&self) -> Option<Timestamp> {
        self.next
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.next.is_some_and(|next| next <= now)
    }

    /// Notes that a file that is not done was forgotten: this pass may be beyond it, so that another one follows.
    fn left_out(&mut self, now: Timestamp) {
        self.is_behind = true;
        self.next.get_or_insert(time_after(now, AGAIN));
    }

    fn ended(&mut self, now: Timestamp) {
        if self.found > 0 {
            tracing::info!(
                files = self.found,
                "files that were on their way are resumed"
            );
        }
        *self = Self {
            next: self.is_behind.then(|| time_after(now, AGAIN)),
            ..Self::default()
        };
    }
}

impl Coordinator {
    /// Loads into memory the next files that are on their way, as far as there is room.
    pub(super) fn page_in(&mut self, now: Timestamp, decided: &mut Vec<FileDecision>) -> Step<()> {
        if self.files.len() >= MOST {
            self.make_room(now);
        }
        let room = MOST.saturating_sub(self.files.len());
        if room == 0 {
            self.paging.next = Some(time_after(now, NO_ROOM));
            return Ok(());
        }
        let limits = PageLimits {
            rows: PAGE,
            picks: room,
        };
        let files = &self.files;
        let page = self
            .paging
            .walk
            .next_page(&self.parts.admin, limits, |row| {
                let is_news = !row.record.is_final() && !files.contains_key(&row.record.name);
                is_news.then_some(row)
            });
        let page = page.map_err(AdminError::from)?;
        let is_full = page.picked.len() >= room;
        for row in page.picked {
            let name = row.record.name.clone();
            self.paging.found += 1;
            let (active, effects) = Active::restore(row, now, &self.parts.limits);
            self.files.insert(name.clone(), active);
            decided.push(FileDecision::by_itself(name, effects));
        }
        if page.is_last {
            self.paging.ended(now);
        } else {
            let pause = if is_full {
                NO_ROOM
            } else {
                SignedDuration::ZERO
            };
            self.paging.next = Some(time_after(now, pause));
        }
        Ok(())
    }

    /// Forgets a file that only waits, where there are too many.
    pub(super) fn leave_out(&mut self, name: &FileName, now: Timestamp) {
        let is_parked = |active: &Active| active.source.is_none() && active.state.is_parked();
        if self.files.len() > MOST && self.files.get(name).is_some_and(is_parked) {
            self.forget_file(name);
            self.paging.left_out(now);
        }
    }

    /// Forgets the files that only wait, to make room for files that were not tried yet.
    fn make_room(&mut self, now: Timestamp) {
        let waits = |(name, active): (&FileName, &Active)| {
            let is_parked = active.source.is_none() && active.state.is_parked();
            is_parked.then(|| name.clone())
        };
        let waiting: Vec<FileName> = self.files.iter().filter_map(waits).collect();
        for name in waiting {
            self.forget_file(&name);
            self.paging.left_out(now);
        }
    }

    /// Forgets a file: the admin data has it.
    pub(super) fn forget_file(&mut self, name: &FileName) {
        self.parts.retries.forget_times(name);
        if let Some(active) = self.files.remove(name)
            && let Some(at) = active.timer
        {
            self.timers.remove(&(at, name.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
