//! Which copy the scrub reads next, and how fast. Pure: rows and the time in, a plan out.
//!
//! Every copy has a time from which on it may be read again and a time until which it must have been. Both follow from
//! when it was last verified (or, while that is not known, from when that was noticed) and from its name, which spreads
//! what was stored on one day. What must be read first comes first. The rate is what the tightest of these limits asks
//! for: the bytes up to it, over the time until then.
//!
//! Not promised: that a rate below that, ordered by people, keeps the deadline.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use archive_model::{FileName, VolumeId};
use jiff::Timestamp;

use crate::catalog::{Condition, Entry};
use crate::standing::Suspect;

/// How many copies one plan names.
pub(crate) const MOST_PLANNED: usize = 4096;

/// How many neighbours of a damaged copy are read next.
const NEIGHBOURS: usize = 16;

/// The least rate, in bytes a second: a copy is not held open for days to read it slowly.
const LEAST_RATE: u64 = 4 << 20;

/// How far ahead of now a clock may have been: a day.
const AHEAD: i128 = 24 * 3600 * 1_000_000_000;

/// Into how many parts of the deadline what is overdue is spread.
const OVERDUE_PARTS: i128 = 30;

/// How often each copy is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadPolicy {
    /// Every copy once within this.
    pub(crate) deadline: Duration,
    /// A new copy twice within this.
    pub(crate) young: Duration,
}

/// When a copy is to be read, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadWindow {
    /// By then.
    pub(crate) until: i128,
    /// Not before.
    pub(crate) from: i128,
}

/// One copy to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRead {
    /// When.
    pub(crate) window: ReadWindow,
    /// What.
    pub(crate) name: FileName,
    /// Where.
    pub(crate) volume: VolumeId,
    /// How long it is.
    pub(crate) size: u64,
    /// Its last verification when it was planned: if that has changed, somebody else has read it.
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
    /// When a copy is to be read; `None`: not by the scrub. Of a copy that was never verified, `unknown_since` is when
    /// that was noticed.
    pub(crate) fn window(
        &self,
        entry: &Entry,
        unknown_since: Timestamp,
        now: i128,
    ) -> Option<ReadWindow> {
        match &entry.row.condition {
            Condition::Present | Condition::Unexpected { .. } => {}
            // Somebody has to act on it first.
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
        let spread = Spread::of(entry, 0);
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
                from: verified + deadline * 3 / 4 + Spread::of(entry, verified).part(deadline / 5),
            }
        })
    }
}

/// A time that was noted, in nanoseconds since 1970; none for one that a wrong clock has noted, days ahead of now.
fn believed(noted: Option<Timestamp>, now: i128) -> Option<i128> {
    noted
        .map(Timestamp::as_nanosecond)
        .filter(|noted| *noted <= now + AHEAD)
}

fn nanoseconds(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::from(i64::MAX))
}

/// A number that belongs to one copy; with when it was verified, so that what met once does not meet every time.
struct Spread(u64);

impl Spread {
    fn of(entry: &Entry, verified: i128) -> Self {
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

    /// A part of `span` from nothing up to all of it.
    fn part(&self, span: i128) -> i128 {
        span / 10_000 * i128::from(self.0 % 10_000)
    }
}

/// What one look over all rows found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadPlan {
    /// What to read now, in this order.
    pub(crate) next: Vec<PlannedRead>,
    /// How many copies are due, those that are not in `next` included.
    pub(crate) due: u64,
    /// When the next one is due that is not due yet.
    pub(crate) next_due: Option<Timestamp>,
    /// The oldest verification; none while some copy has none.
    pub(crate) oldest: Option<Timestamp>,
    /// Copies that were not verified since the catalog was built.
    pub(crate) unknown: u64,
    /// The bytes a second that the deadlines ask for.
    pub(crate) rate: u64,
}

/// Takes rows one by one; remembers what is due first and what the whole asks for.
#[derive(Debug)]
pub(crate) struct Survey {
    policy: ReadPolicy,
    now: i128,
    unknown_since: Timestamp,
    /// The volumes that can be read now.
    online: Vec<VolumeId>,
    /// The volumes that are out of service.
    retired: Vec<VolumeId>,
    suspects: Vec<(Suspect, BinaryHeap<Neighbour>)>,
    /// The most urgent ones; the least urgent of them on top.
    urgent: BinaryHeap<PlannedRead>,
    most: usize,
    due: u64,
    due_bytes: u64,
    next_due: Option<i128>,
    oldest: Option<Timestamp>,
    unknown: u64,
}

/// A neighbour of a suspect, by how far in time it was stored from it.
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
        online: Vec<VolumeId>,
        retired: Vec<VolumeId>,
        suspects: Vec<Suspect>,
    ) -> Self {
        Self {
            policy,
            now: now.as_nanosecond(),
            unknown_since,
            online,
            retired,
            suspects: suspects
                .into_iter()
                .map(|suspect| (suspect, BinaryHeap::new()))
                .collect(),
            urgent: BinaryHeap::new(),
            most: MOST_PLANNED,
            due: 0,
            due_bytes: 0,
            next_due: None,
            oldest: None,
            unknown: 0,
        }
    }

    /// Looks at one row.
    pub(crate) fn see(&mut self, entry: &Entry) {
        if self.retired.contains(&entry.volume) {
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
        let Some(window) = self.policy.window(entry, self.unknown_since, self.now) else {
            return;
        };
        if !self.online.contains(&entry.volume) {
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

    fn widen(&mut self, entry: &Entry, planned: &PlannedRead) {
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

    /// The plan.
    pub(crate) fn finish(self) -> ReadPlan {
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

/// The bytes a second that keep every limit. `urgent` is sorted by its limits; what of `bytes` is not in it has later ones.
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
