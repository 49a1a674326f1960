//! What is wrong, and what was said about it: one word when it lasts, one when it is over, a reminder now and then.
//!
//! Pure: times are arguments. What comes and goes within the delay is never told, and what comes back within it was
//! never over. Not promised: that anything is remembered over a restart.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// The most incidents at once. More are told as one, under [`MORE`].
pub const MOST: usize = 1000;

/// The key under which everything beyond [`MOST`] is told.
pub const MORE: &str = "more";

/// The longest text of an incident that is kept, in characters.
const LONGEST: usize = 2000;

/// When something is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// How long something must be wrong before it is told, and right before it is told to be over.
    pub delay: Duration,
    /// How often it is told again while it lasts.
    pub remind: Duration,
}

/// Everything that is wrong now.
#[derive(Clone, Debug)]
pub struct Incidents {
    rhythm: Rhythm,
    open: BTreeMap<String, Incident>,
}

#[derive(Clone, Debug)]
struct Incident {
    since: Timestamp,
    count: u64,
    text: String,
    /// When it was last told; none: never.
    told: Option<Timestamp>,
    /// Since when it is over; none: it lasts. Only of what was told.
    over: Option<Timestamp>,
}

/// What is told of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is wrong, and has been for the delay.
    Began,
    /// It is still wrong.
    Lasts,
    /// It is over, and has been for the delay.
    Over,
}

/// One thing to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Which incident.
    pub key: String,
    /// What of it.
    pub what: What,
    /// Since when it is, or was, wrong.
    pub since: Timestamp,
    /// How often it was said to be wrong.
    pub count: u64,
    /// What was said last.
    pub text: String,
}

impl What {
    /// In one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Began => "began",
            Self::Lasts => "lasts",
            Self::Over => "over",
        }
    }
}

impl Incident {
    fn due(&self, rhythm: Rhythm) -> Timestamp {
        match (self.told, self.over) {
            (None, _) => later(self.since, rhythm.delay),
            (Some(told), None) => later(told, rhythm.remind),
            (Some(_), Some(over)) => later(over, rhythm.delay),
        }
    }
}

impl Incidents {
    /// Nothing is wrong yet.
    pub const fn new(rhythm: Rhythm) -> Self {
        let open = BTreeMap::new();
        Self { rhythm, open }
    }

    /// Something is wrong, or still is.
    pub fn raise(&mut self, key: &str, text: &str, now: Timestamp) {
        let is_one_more = !self.open.contains_key(key) && self.open.len() >= MOST;
        let (key, text) = if is_one_more {
            (MORE, "more is wrong at once than is told one by one")
        } else {
            (key, text)
        };
        let incident = self.open.entry(key.to_owned()).or_insert(Incident {
            since: now,
            count: 0,
            text: String::new(),
            told: None,
            over: None,
        });
        incident.count = incident.count.saturating_add(1);
        incident.text = text.chars().take(LONGEST).collect();
        incident.over = None;
    }

    /// It is right again. What nobody was told of is forgotten.
    pub fn resolve(&mut self, key: &str, now: Timestamp) {
        if let Some(incident) = self.open.get_mut(key) {
            if incident.told.is_none() {
                self.open.remove(key);
            } else {
                incident.over.get_or_insert(now);
            }
        }
        if key != MORE && self.open.contains_key(MORE) && self.lasting() <= MOST / 2 {
            self.resolve(MORE, now);
        }
    }

    fn lasting(&self) -> usize {
        let lasts = |incident: &&Incident| incident.over.is_none();
        self.open.values().filter(lasts).count()
    }

    /// When there is something to tell next.
    pub fn due(&self) -> Option<Timestamp> {
        self.open
            .values()
            .map(|incident| incident.due(self.rhythm))
            .min()
    }

    /// What there is to tell now; told with that.
    pub fn take(&mut self, now: Timestamp) -> Vec<News> {
        let mut news = Vec::new();
        let rhythm = self.rhythm;
        self.open.retain(|key, incident| {
            if incident.due(rhythm) > now {
                return true;
            }
            let what = match (incident.told, incident.over) {
                (None, _) => What::Began,
                (Some(_), None) => What::Lasts,
                (Some(_), Some(_)) => What::Over,
            };
            incident.told = Some(now);
            news.push(News {
                key: key.clone(),
                what,
                since: incident.since,
                count: incident.count,
                text: incident.text.clone(),
            });
            what != What::Over
        });
        news
    }
}

fn later(time: Timestamp, pause: Duration) -> Timestamp {
    time.checked_add(pause).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);
    const RHYTHM: Rhythm = Rhythm {
        delay: Duration::from_mins(5),
        remind: Duration::from_hours(24),
    };

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Raise,
        Resolve,
        Wait(u32),
    }

    const ACTS: [Act; 5] = [
        Act::Raise,
        Act::Resolve,
        Act::Wait(3),
        Act::Wait(5),
        Act::Wait(24 * 60),
    ];

    /// What was told, and what was so.
    type Told = Vec<(Timestamp, What)>;
    type Truth = Vec<(Timestamp, bool)>;

    /// Plays `acts` as the task does: whatever is due while time passes is taken when it is due.
    fn play(acts: &[Act]) -> (Told, Truth) {
        let (mut incidents, mut now) = (Incidents::new(RHYTHM), Timestamp::UNIX_EPOCH);
        let (mut told, mut truth) = (Vec::new(), vec![(now, false)]);
        for act in acts {
            match act {
                Act::Raise => {
                    incidents.raise("k", "t", now);
                    truth.push((now, true));
                }
                Act::Resolve => {
                    incidents.resolve("k", now);
                    truth.push((now, false));
                }
                Act::Wait(minutes) => {
                    let end = now + MINUTE * *minutes;
                    while let Some(due) = incidents.due().filter(|due| *due <= end) {
                        now = now.max(due);
                        let news = incidents.take(now);
                        assert_eq!(news.len(), 1, "what is due can be taken, once");
                        told.extend(news.iter().map(|news| (now, news.what)));
                        assert!(incidents.due().is_none_or(|due| due > now));
                    }
                    now = end;
                }
            }
        }
        truth.push((now, truth.last().unwrap().1));
        (told, truth)
    }

    /// Whether it was `wrong` during all of the time from `from` to `to`.
    fn was(truth: &[(Timestamp, bool)], wrong: bool, from: Timestamp, to: Timestamp) -> bool {
        truth.windows(2).all(|pair| {
            let ((start, state), (end, _)) = (pair[0], pair[1]);
            end <= from || start >= to || state == wrong || start == end
        })
    }

    fn check(acts: &[Act]) {
        let (told, truth) = play(acts);
        let mut before: Option<(Timestamp, What)> = None;
        for (at, what) in &told {
            match what {
                What::Began => {
                    assert!(!matches!(before, Some((_, What::Began | What::Lasts))));
                    assert!(was(&truth, true, *at - RHYTHM.delay, *at), "{acts:?}");
                }
                What::Lasts => {
                    let (last, _) = before.expect("told before");
                    assert!(*at - RHYTHM.remind >= last, "{acts:?}");
                }
                What::Over => {
                    assert!(matches!(before, Some((_, What::Began | What::Lasts))));
                    assert!(was(&truth, false, *at - RHYTHM.delay, *at), "{acts:?}");
                }
            }
            before = Some((*at, *what));
        }
        // Where nothing has changed for the delay, what was told last is what is.
        let (end, wrong) = *truth.last().unwrap();
        let begin = end - RHYTHM.delay;
        let then = truth.iter().rfind(|(at, _)| *at <= begin);
        let is_calm = truth
            .iter()
            .all(|(at, state)| *at <= begin || *state == wrong);
        if is_calm && then.is_some_and(|(_, state)| *state == wrong) {
            let told = matches!(before, Some((_, What::Began | What::Lasts)));
            assert_eq!(told, wrong, "{acts:?}");
        }
    }

    #[test]
    fn every_short_life_is_told_as_it_was() {
        for length in 0..=7_u32 {
            for number in 0..5_usize.pow(length) {
                let mut rest = number;
                let acts: Vec<Act> = (0..length)
                    .map(|_| {
                        let act = ACTS[rest % 5];
                        rest /= 5;
                        act
                    })
                    .collect();
                check(&acts);
            }
        }
    }

    #[test]
    fn many_reports_of_one_incident_are_one_message() {
        let mut incidents = Incidents::new(RHYTHM);
        let mut now = Timestamp::UNIX_EPOCH;
        for number in 0..10_000 {
            incidents.raise("damaged", &format!("{number} files"), now);
        }
        incidents.raise("other", &"x".repeat(1_000_000), now);
        now += RHYTHM.delay;
        let news = incidents.take(now);
        assert_eq!(news.len(), 2);
        assert_eq!(
            (news[0].count, news[0].text.as_str()),
            (10_000, "9999 files")
        );
        assert_eq!(news[1].text.len(), LONGEST);
        assert_eq!(incidents.take(now), []);
    }

    #[test]
    fn however_much_is_wrong_memory_is_bounded_and_the_rest_is_told_as_one() {
        let mut incidents = Incidents::new(RHYTHM);
        let mut now = Timestamp::UNIX_EPOCH;
        for number in 0..10 * MOST {
            incidents.raise(&number.to_string(), "t", now);
        }
        assert_eq!(incidents.open.len(), MOST + 1);
        now += RHYTHM.delay;
        assert_eq!(incidents.take(now).len(), MOST + 1);
        for number in 0..10 * MOST {
            incidents.resolve(&number.to_string(), now);
        }
        now += RHYTHM.delay;
        assert_eq!(incidents.take(now).len(), MOST + 1);
        assert_eq!((incidents.open.len(), incidents.due()), (0, None));
    }
}
