//! The order in which the scrub reads copies, and its rate. Pure: rows and the time in, a plan out.
//!
//! Every copy has a window: a time from which it may be read again, and a time by which it must have been read. Both
//! follow from its last verification (or, while that is unknown, from the time at which that was noticed) and from its
//! name, which spreads the copies that were stored on one day. The most urgent copy comes first. The rate is what the
//! tightest limit asks for: the bytes up to it, over the time until then.
//!
//! Not promised: that a rate below that, ordered by people, keeps the deadline.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use archive_model::{FileName, VolumeId};
use jiff::Timestamp;

use crate::catalog::{CatalogEntry, Condition};
use crate::scrub_age::Suspect;

/// The most copies that a plan names.
pub(crate) const MOST_PLANNED: usize = 4096;

/// The number of neighbours of a damaged copy that are read next.
const NEIGHBOURS: usize = 16;

/// The least rate, in bytes a second: a copy is not held open for days to read it slowly.
const LEAST_RATE: u64 = 4 << 20;

/// The time by which a clock may have been ahead: a day.
const AHEAD: i128 = 24 * 3600 * 1_000_000_000;

/// The number of parts of the deadline over one of which overdue copies are spread.
const OVERDUE_PARTS: i128 = 30;

/// The policy of how often each copy is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadPolicy {
    /// The time within which every copy is read once.
    pub(crate) deadline: Duration,
    /// The time within which a new copy is read twice.
    pub(crate) young: Duration,
}

/// The window in which a copy is to be read, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadWindow {
    /// The latest time.
    pub(crate) until: i128,
    /// The earliest time.
    pub(crate) from: i128,
}

/// The planned read of one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRead {
    /// The window.
    pub(crate) window: ReadWindow,
    /// The file.
    pub(crate) name: FileName,
    /// The volume.
    pub(crate) volume: VolumeId,
    /// The size in bytes.
    pub(crate) size: u64,
    /// The last verification of the copy when it was planned: if that has changed, the copy has been read since.
    pub(crate) verified: Option<Timestamp>,
}

impl Ord for PlannedRead {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.window, &self.name, &self.volume).cmp(&(other.window, &other.name, &other.volume))
    }
}

impl PartialOrd for PlannedRead {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ReadPolicy {
    /// Returns the window in which a copy is to be read, or `None` if the scrub does not read it. For a copy that was
    /// never verified, `unknown_since` is the time at which that was noticed.
    pub(crate) fn read_window(
        &self,
        entry: &CatalogEntry,
        unknown_since: Timestamp,
        now: i128,
    ) -> Option<ReadWindow> {
        match &entry.row.condition {
            Condition::Present | Condition::Unexpected { .. } => {}
            // People have to act on a missing copy first.
            Condition::Missing { .. } => return None,
            Condition::Damaged {
                since,
                corrupt,
                unreadable,
            } => {
                let is_located = !corrupt.is_empty() || !unreadable.is_empty();
                let at = since.as_nanosecond();
                return (!is_located).then_some(ReadWindow {
                    until: at,
                    from: at,
                });
            }
        }
        let deadline = nanoseconds(self.deadline);
        let young = nanoseconds(self.young);
        let spread = Spread::new(entry, 0);
        let Some(verified) = believed(entry.row.verified, now) else {
            let from = unknown_since.as_nanosecond() + spread.part(deadline * 95 / 100);
            return Some(ReadWindow {
                until: from + deadline / 20,
                from,
            });
        };
        let stored = believed(Some(entry.row.stored), now).unwrap_or_default();
        let first = stored + young / 4 + spread.part(young / 5);
        let second = stored + young * 7 / 10 + spread.part(young / 5);
        Some(if verified < first {
            ReadWindow {
                until: stored + young / 2,
                from: first,
            }
        } else if verified < second {
            ReadWindow {
                until: stored + young,
                from: second,
            }
        } else {
            ReadWindow {
                until: verified + deadline,
                from: verified + deadline * 3 / 4 + Spread::new(entry, verified).part(deadline / 5),
            }
        })
    }
}

/// Returns a noted time in nanoseconds since 1970, or `None` if a wrong clock has noted it, days ahead of now.
fn believed(noted: Option<Timestamp>, now: i128) -> Option<i128> {
    noted
        .map(Timestamp::as_nanosecond)
        .filter(|noted| *noted <= now + AHEAD)
}

fn nanoseconds(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::from(i64::MAX))
}

/// A number that belongs to one copy and its last verification, so that copies which met once do not meet every time.
struct Spread(u64);

impl Spread {
    fn new(entry: &CatalogEntry, verified: i128) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(entry.name.as_str().as_bytes());
        hasher.update(&[0]);
        hasher.update(entry.volume.as_str().as_bytes());
        hasher.update(&verified.to_le_bytes());
        let hash = hasher.finalize();
        Self(
            hash.as_bytes()
                .first_chunk()
                .map_or(0, |first| u64::from_be_bytes(*first)),
        )
    }

    /// Returns a part of `span`, between nothing and all of it.
    fn part(&self, span: i128) -> i128 {
        span / 10_000 * i128::from(self.0 % 10_000)
    }
}

/// The plan that one look over all rows has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadPlan {
    /// The reads to make now, in this order.
    pub(crate) next: Vec<PlannedRead>,
    /// The number of copies that are due, including those that are not in `next`.
    pub(crate) due: u64,
    /// The time at which the next copy becomes due.
    pub(crate) next_due: Option<Timestamp>,
    /// The oldest verification; `None` while some copy has none.
    pub(crate) oldest: Option<Timestamp>,
    /// The number of copies that were not verified since the catalog was built.
    pub(crate) unknown: u64,
    /// The bytes a second that the deadlines ask for.
    pub(crate) rate: u64,
}

/// The volumes of a node, as a survey has to know them.
#[derive(Debug)]
pub(crate) struct SurveyedVolumes {
    /// The volumes that can be read now.
    pub(crate) online: Vec<VolumeId>,
    /// The volumes that are out of service.
    pub(crate) retired: Vec<VolumeId>,
}

/// A survey of the rows, one by one, which keeps the most urgent copies and sums up the rest.
#[derive(Debug)]
pub(crate) struct Survey {
    policy: ReadPolicy,
    now: i128,
    unknown_since: Timestamp,
    volumes: SurveyedVolumes,
    suspects: Vec<(Suspect, BinaryHeap<Neighbour>)>,
    /// The most urgent copies, with the least urgent of them on top.
    urgent: BinaryHeap<PlannedRead>,
    most: usize,
    due: u64,
    due_bytes: u64,
    next_due: Option<i128>,
    oldest: Option<Timestamp>,
    unknown: u64,
}

/// A neighbour of a suspect, sorted by the time between their stores.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Neighbour {
    distance: i128,
    planned: PlannedRead,
}

impl Survey {
    pub(crate) fn new(
        policy: ReadPolicy,
        now: Timestamp,
        unknown_since: Timestamp,
        volumes: SurveyedVolumes,
    ) -> Self {
        Self {
            policy,
            now: now.as_nanosecond(),
            unknown_since,
            volumes,
            suspects: Vec::new(),
            urgent: BinaryHeap::new(),
            most: MOST_PLANNED,
            due: 0,
            due_bytes: 0,
            next_due: None,
            oldest: None,
            unknown: 0,
        }
    }

    /// Adds the neighbours of suspects to what is read.
    pub(crate) fn with_suspects(mut self, suspects: Vec<Suspect>) -> Self {
        self.suspects = suspects
            .into_iter()
            .map(|suspect| (suspect, BinaryHeap::new()))
            .collect();
        self
    }

    /// Takes one row into the survey.
    pub(crate) fn see_entry(&mut self, entry: &CatalogEntry) {
        if self.volumes.retired.contains(&entry.volume) {
            return;
        }
        let row = &entry.row;
        if row.condition == Condition::Present {
            let verified = row
                .verified
                .filter(|_| believed(row.verified, self.now).is_some());
            match verified {
                None => self.unknown += 1,
                Some(verified) => {
                    self.oldest = Some(self.oldest.map_or(verified, |oldest| oldest.min(verified)));
                }
            }
        }
        let Some(window) = self.policy.read_window(entry, self.unknown_since, self.now) else {
            return;
        };
        if !self.volumes.online.contains(&entry.volume) {
            return;
        }
        let planned = PlannedRead {
            window,
            name: entry.name.clone(),
            volume: entry.volume.clone(),
            size: row.size,
            verified: row.verified,
        };
        self.widen(entry, &planned);
        if window.from > self.now {
            self.next_due = Some(
                self.next_due
                    .map_or(window.from, |next| next.min(window.from)),
            );
            return;
        }
        self.due += 1;
        self.due_bytes = self.due_bytes.saturating_add(row.size);
        self.urgent.push(planned);
        if self.urgent.len() > self.most {
            self.urgent.pop();
        }
    }

    fn widen(&mut self, entry: &CatalogEntry, planned: &PlannedRead) {
        for (suspect, near) in &mut self.suspects {
            let was_read_since = entry
                .row
                .verified
                .is_some_and(|verified| verified >= suspect.found);
            if entry.volume != suspect.volume || was_read_since {
                continue;
            }
            let distance = entry.row.stored.as_nanosecond() - suspect.stored.as_nanosecond();
            near.push(Neighbour {
                distance: distance.abs(),
                planned: planned.clone(),
            });
            if near.len() > NEIGHBOURS {
                near.pop();
            }
        }
    }

    /// Makes the plan.
    pub(crate) fn finish_plan(self) -> ReadPlan {
        let urgent = self.urgent.into_sorted_vec();
        let rate = rate(self.policy, &urgent, self.due_bytes, self.now);
        let mut next: Vec<PlannedRead> = Vec::new();
        let neighbours = self
            .suspects
            .into_iter()
            .flat_map(|(_, near)| near.into_sorted_vec())
            .map(|near| near.planned);
        let mut seen = std::collections::BTreeSet::new();
        for planned in neighbours.chain(urgent) {
            if seen.insert((planned.name.clone(), planned.volume.clone())) {
                next.push(planned);
            }
        }
        ReadPlan {
            next,
            due: self.due,
            next_due: self
                .next_due
                .and_then(|next| Timestamp::from_nanosecond(next).ok()),
            oldest: self.oldest.filter(|_| self.unknown == 0),
            unknown: self.unknown,
            rate,
        }
    }
}

/// Returns the bytes a second that keep every limit. `urgent` is sorted by its limits; the rest of `bytes` has later
/// ones.
fn rate(policy: ReadPolicy, urgent: &[PlannedRead], bytes: u64, now: i128) -> u64 {
    let least_time = (nanoseconds(policy.deadline) / OVERDUE_PARTS).max(1_000_000_000);
    let mut sum: u64 = 0;
    let mut rate = LEAST_RATE;
    for (index, planned) in urgent.iter().enumerate() {
        sum = sum.saturating_add(planned.size);
        let upto = if index + 1 == urgent.len() {
            sum.max(bytes)
        } else {
            sum
        };
        let time = (planned.window.until - now).max(least_time);
        let asked = i128::from(upto).saturating_mul(1_000_000_000) / time;
        rate = rate.max(u64::try_from(asked).unwrap_or(u64::MAX));
    }
    rate
}

#[cfg(test)]
mod tests;
