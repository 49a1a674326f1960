//! Incidents and the messages about them: one when it lasts, one when it is over, a reminder now and then.
//!
//! Pure: times are arguments. A problem that comes and goes within the delay is never announced, and one that comes
//! back within it was never over. Each incident has a row ([`IncidentRow`]) that survives a restart: it says that the
//! incident began, that it was announced once a channel has taken the message, that it is over. A restart therefore
//! changes nothing; a message that was lost with the process is announced again.
//!
//! Not promised: that the text and the count of a row are the newest; the next report updates them.

mod row;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use archive_model::time_after;
use jiff::Timestamp;

pub use row::IncidentRow;

/// The most incidents at once. Further ones are announced as one, under [`MORE`].
pub const MOST: usize = 1000;

/// The key under which all incidents beyond [`MOST`] are announced.
pub const MORE: &str = "more";

/// The longest text of an incident that is kept, in characters.
const LONGEST: usize = 2000;

/// The times at which incidents are announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncidentTiming {
    /// The time that a problem must last before it is announced, and be over before its end is announced.
    pub delay: Duration,
    /// The time between two reminders of an incident that lasts.
    pub remind: Duration,
}

/// The open incidents.
#[derive(Clone, Debug)]
pub struct Incidents {
    timing: IncidentTiming,
    open: BTreeMap<String, Incident>,
    /// The incidents that were announced to be over, in messages that no channel has taken yet.
    leaving: BTreeMap<String, Incident>,
    /// The keys whose rows have to be written.
    changed: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Incident {
    since: Timestamp,
    count: u64,
    text: String,
    /// When the incident was last announced; `None`: never.
    told: Option<Timestamp>,
    /// When a message about the incident was last taken; `None`: never.
    taken: Option<Timestamp>,
    /// The time at which the incident ended; `None`: it lasts. Only set for incidents that were announced.
    over: Option<Timestamp>,
}

/// A problem, in the words of the part that found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The problem, and what to do.
    pub text: String,
    /// The time since which the problem exists, where that is known.
    pub since: Option<Timestamp>,
}

impl Problem {
    /// Makes a problem that exists since it is reported.
    pub fn begun_now(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            since: None,
        }
    }
}

/// The stage of an incident that is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentStage {
    /// The problem exists, and has for the delay.
    Began,
    /// The problem still exists.
    Lasts,
    /// The problem is over, and has been for the delay.
    Over,
}

/// The news of an incident: a thing to announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncidentNews {
    /// The key of the incident.
    pub key: String,
    /// The stage that the incident has reached.
    pub what: IncidentStage,
    /// The time since which the problem exists, or existed.
    pub since: Timestamp,
    /// The number of times that the problem was reported.
    pub count: u64,
    /// The text that was reported last.
    pub text: String,
}

impl IncidentStage {
    /// Returns the stage in one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Began => "began",
            Self::Lasts => "lasts",
            Self::Over => "over",
        }
    }
}

impl Incident {
    fn due(&self, timing: IncidentTiming) -> Timestamp {
        match (self.told, self.over) {
            (None, _) => time_after(self.since, timing.delay),
            (Some(told), None) => time_after(told, timing.remind),
            (Some(_), Some(over)) => time_after(over, timing.delay),
        }
    }
}

impl Incidents {
    /// Returns the incidents that were open when the last process ended; `kept` is empty if there was no such process.
    pub fn new(
        timing: IncidentTiming,
        kept: impl IntoIterator<Item = (String, IncidentRow)>,
    ) -> Self {
        let mut incidents = Self {
            timing,
            open: BTreeMap::new(),
            leaving: BTreeMap::new(),
            changed: BTreeSet::new(),
        };
        for (key, kept) in kept {
            // The incident is over, and was never announced.
            if kept.told.is_none() && kept.over.is_some() {
                incidents.changed.insert(key);
            } else {
                incidents.open.insert(key, kept.into());
            }
        }
        incidents
    }

    /// Reports that a problem exists, or still exists.
    pub fn raise_incident(&mut self, key: &str, wrong: &Problem, now: Timestamp) {
        let is_one_more = !self.open.contains_key(key) && self.open.len() >= MOST;
        let (key, text) = if is_one_more {
            (MORE, "more is wrong at once than is told one by one")
        } else {
            (key, wrong.text.as_str())
        };
        let incident = self.open.entry(key.to_owned()).or_insert_with(|| {
            self.changed.insert(key.to_owned());
            Incident {
                since: wrong.since.map_or(now, |since| since.min(now)),
                count: 0,
                text: String::new(),
                told: None,
                taken: None,
                over: None,
            }
        });
        incident.count = incident.count.saturating_add(1);
        incident.text = text.chars().take(LONGEST).collect();
        if incident.over.take().is_some() {
            self.changed.insert(key.to_owned());
        }
    }

    /// Reports that a problem is over. An incident that was never announced is forgotten.
    pub fn resolve_incident(&mut self, key: &str, now: Timestamp) {
        if let Some(incident) = self.open.get_mut(key)
            && incident.over.is_none()
        {
            self.changed.insert(key.to_owned());
            if incident.told.is_none() {
                self.open.remove(key);
            } else {
                incident.over = Some(now);
            }
        }
        if key != MORE && self.open.contains_key(MORE) && self.lasting() <= MOST / 2 {
            self.resolve_incident(MORE, now);
        }
    }

    /// Reports all problems within a scope. All other incidents in it are over, except those within one of `unclear`,
    /// of which nothing is known now.
    pub fn declare_incidents(
        &mut self,
        scope: &str,
        wrong: &BTreeMap<String, Problem>,
        unclear: &BTreeSet<String>,
        now: Timestamp,
    ) {
        for (key, wrong) in wrong {
            self.raise_incident(key, wrong, now);
        }
        let is_right = |key: &&String| {
            is_within(key, scope)
                && !wrong.contains_key(*key)
                && !unclear.iter().any(|unclear| is_within(key, unclear))
        };
        let right: Vec<String> = self.open.keys().filter(is_right).cloned().collect();
        for key in right {
            self.resolve_incident(&key, now);
        }
    }

    fn lasting(&self) -> usize {
        let lasts = |incident: &&Incident| incident.over.is_none();
        self.open.values().filter(lasts).count()
    }

    /// Returns when the next news is due; `None` if there is no incident.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.open
            .values()
            .map(|incident| incident.due(self.timing))
            .min()
    }

    /// Returns the news to announce now, and notes that they were announced. Once a channel has taken them, call
    /// [`Incidents::note_taken`].
    pub fn take_news(&mut self, now: Timestamp) -> Vec<IncidentNews> {
        let mut news = Vec::new();
        let timing = self.timing;
        let mut leaving = BTreeMap::new();
        self.open.retain(|key, incident| {
            if incident.due(timing) > now {
                return true;
            }
            let what = match (incident.told, incident.over) {
                (None, _) => IncidentStage::Began,
                (Some(_), None) => IncidentStage::Lasts,
                (Some(_), Some(_)) => IncidentStage::Over,
            };
            incident.told = Some(now);
            news.push(IncidentNews {
                key: key.clone(),
                what,
                since: incident.since,
                count: incident.count,
                text: incident.text.clone(),
            });
            if what == IncidentStage::Over {
                leaving.insert(key.clone(), incident.clone());
            }
            what != IncidentStage::Over
        });
        self.leaving.extend(leaving);
        news
    }

    /// Notes that a channel has taken the message that was made of `news` at that time, or that it was given up.
    pub fn note_taken(&mut self, news: &[IncidentNews], at: Timestamp) {
        for news in news {
            let is_it = |incident: &&mut Incident| incident.since == news.since;
            let open = self.open.get_mut(&news.key).filter(is_it);
            let it = open.or_else(|| self.leaving.get_mut(&news.key).filter(is_it));
            let Some(incident) = it else { continue };
            incident.taken = Some(at);
            self.changed.insert(news.key.clone());
            if news.what == IncidentStage::Over {
                self.leaving.remove(&news.key);
            }
        }
    }

    /// Returns the rows to write before anything else is done; `None` in place of a row to delete.
    pub fn take_changes(&mut self) -> Vec<(String, Option<IncidentRow>)> {
        let changed = std::mem::take(&mut self.changed);
        let row = |key: String| {
            let incident = self.open.get(&key).or_else(|| self.leaving.get(&key));
            let kept = incident.map(IncidentRow::from);
            (key, kept)
        };
        changed.into_iter().map(row).collect()
    }

    /// Notes that the rows of these keys could not be written.
    pub fn note_unwritten(&mut self, keys: impl IntoIterator<Item = String>) {
        self.changed.extend(keys);
    }
}

/// Returns whether a key is the scope, or within it.
fn is_within(key: &str, scope: &str) -> bool {
    key.strip_prefix(scope)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
