//! Telling people: one message when something is wrong for a while, one when it is over, never one per file.
//!
//! Whoever finds something wrong calls [`Notifier::raise`], and [`Notifier::resolve`] when it is right again, as often
//! as it likes: neither waits, and neither is lost. One task tells, through every way that is set. A way that fails is
//! logged when it begins to fail; a message that no way took is tried again.
//!
//! Not promised: that anything is remembered over a restart. What is still wrong then is raised, and told, again.

mod hook;
pub mod incident;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::run::Daemon;
use crate::settings::Period;
use incident::{Incidents, News, Rhythm, What};

/// The version of a message.
const VERSION: &str = "holdfast-notification/1";

/// Messages that wait because no way takes them. The oldest go first.
const WAITING: usize = 64;

/// The pause after a message that no way took; doubled each time.
const PAUSE: Duration = Duration::from_mins(1);

/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// The section `[notify]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifySettings {
    /// A command that is told: its words, run without a shell; it reads the message, a JSON document, on its standard
    /// input. Empty: none.
    pub command: Vec<String>,
    /// How long something must be wrong before it is told, and right before it is told to be over.
    pub delay: Period,
    /// How often it is told again while it lasts.
    pub remind: Period,
    /// How long one way may take for one message. A command that takes longer is killed.
    pub limit: Period,
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            delay: Period::from_secs(5 * 60),
            remind: Period::from_secs(24 * 60 * 60),
            limit: Period::from_secs(30),
        }
    }
}

/// Tells people, cheap to clone. Does nothing where no way is set.
#[derive(Clone, Debug)]
pub struct Notifier(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    /// Who tells: `repository kb`.
    source: String,
    settings: NotifySettings,
    clock: Clock,
    incidents: Mutex<Incidents>,
    changed: Notify,
    /// By way: why it failed last; absent where it did not.
    failing: Mutex<BTreeMap<&'static str, String>>,
}

/// What came of a message in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The way: `command`.
    pub way: &'static str,
    /// Why it failed.
    pub failure: Option<String>,
}

/// A message as the ways get it.
#[derive(Clone, Debug, Serialize)]
struct Message {
    version: &'static str,
    /// `digest` or `test`.
    kind: &'static str,
    source: String,
    at: Timestamp,
    /// In one line.
    subject: String,
    items: Vec<Item>,
}

#[derive(Clone, Debug, Serialize)]
struct Item {
    key: String,
    /// `began`, `lasts` or `over`.
    what: &'static str,
    since: Timestamp,
    count: u64,
    text: String,
}

impl Notifier {
    /// One that tells nobody.
    pub const fn silent() -> Self {
        Self(None)
    }

    /// Starts the task that tells; `source` is who does: `repository kb`. Inside a runtime only.
    pub fn start(source: &str, settings: &NotifySettings, daemon: &Daemon) -> Self {
        if settings.command.is_empty() {
            return Self::silent();
        }
        let rhythm = Rhythm {
            delay: settings.delay.duration(),
            remind: settings.remind.duration().max(Duration::from_secs(1)),
        };
        let shared = Arc::new(Shared {
            source: source.to_owned(),
            settings: settings.clone(),
            clock: daemon.clock.clone(),
            incidents: Mutex::new(Incidents::new(rhythm)),
            changed: Notify::new(),
            failing: Mutex::default(),
        });
        let (telling, stop) = (Arc::clone(&shared), daemon.tasks.stop());
        daemon.tasks.spawn("notify", async move {
            telling.run(&stop).await;
            Ok::<(), Infallible>(())
        });
        Self(Some(shared))
    }

    /// Something is wrong. `key` names the incident for as long as it lasts, `text` says what it is and what to do.
    pub fn raise(&self, key: &str, text: impl AsRef<str>) {
        if let Some(shared) = &self.0 {
            let now = shared.clock.now();
            lock(&shared.incidents).raise(key, text.as_ref(), now);
            shared.changed.notify_one();
        }
    }

    /// It is right again. Where it was not wrong, nothing happens.
    pub fn resolve(&self, key: &str) {
        if let Some(shared) = &self.0 {
            let now = shared.clock.now();
            lock(&shared.incidents).resolve(key, now);
            shared.changed.notify_one();
        }
    }

    /// Sends a test message through every way that is set, now; empty: none is.
    pub async fn test(&self) -> Vec<Outcome> {
        match &self.0 {
            None => Vec::new(),
            Some(shared) => {
                let message = shared.message("test", "a test; nothing is wrong", vec![]);
                shared.send(&message).await
            }
        }
    }
}

impl Shared {
    async fn run(&self, stop: &CancellationToken) {
        let mut waiting: VecDeque<Message> = VecDeque::new();
        let (mut again, mut failed) = (None::<Instant>, 0_u32);
        while !stop.is_cancelled() {
            if let Some(message) = self.due() {
                waiting.push_back(message);
            }
            while waiting.len() > WAITING {
                tracing::warn!("a notification is given up: no way has taken it for long");
                waiting.pop_front();
            }
            let is_time = again.is_none_or(|again| again <= self.clock.instant());
            if let Some(message) = waiting.front().filter(|_| is_time) {
                let outcomes = tokio::select! {
                    () = stop.cancelled() => return,
                    outcomes = self.send(message) => outcomes,
                };
                if outcomes.iter().any(|outcome| outcome.failure.is_none()) {
                    waiting.pop_front();
                    (again, failed) = (None, 0);
                } else {
                    let pause = PAUSE.saturating_mul(2_u32.saturating_pow(failed));
                    failed = failed.saturating_add(1);
                    again = self.clock.instant().checked_add(pause.min(LONGEST_PAUSE));
                }
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.notified() => {}
                () = self.pause(again.filter(|_| !waiting.is_empty())) => {}
            }
        }
    }

    /// Until the next thing is due, or the waiting message is tried again.
    async fn pause(&self, again: Option<Instant>) {
        let due = lock(&self.incidents).due();
        let now = self.clock.now();
        let due = due.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
        let again = again.map(|again| again.saturating_duration_since(self.clock.instant()));
        match due.into_iter().chain(again).min() {
            // A moment is always waited for: a clock that is set back must not make this spin.
            Some(pause) => self.clock.sleep(pause.max(Duration::from_millis(1))).await,
            None => std::future::pending().await,
        }
    }

    fn due(&self) -> Option<Message> {
        let news = lock(&self.incidents).take(self.clock.now());
        (!news.is_empty()).then(|| {
            let subject = subject(&news);
            self.message("digest", &subject, news)
        })
    }

    fn message(&self, kind: &'static str, subject: &str, news: Vec<News>) -> Message {
        let items = news.into_iter().map(|news| Item {
            key: news.key,
            what: news.what.word(),
            since: news.since,
            count: news.count,
            text: news.text,
        });
        Message {
            version: VERSION,
            kind,
            source: self.source.clone(),
            at: self.clock.now(),
            subject: format!("{}: {subject}", self.source),
            items: items.collect(),
        }
    }

    /// Sends a message through every way, and remembers which failed.
    async fn send(&self, message: &Message) -> Vec<Outcome> {
        let failure = match serde_json::to_vec(message) {
            Err(error) => Some(error.to_string()),
            Ok(mut text) => {
                text.push(b'\n');
                let limit = self.settings.limit.duration();
                let ran = hook::run(&self.settings.command, &text, limit).await;
                ran.err()
            }
        };
        let outcome = Outcome {
            way: "command",
            failure,
        };
        self.remember(&outcome);
        vec![outcome]
    }

    fn remember(&self, outcome: &Outcome) {
        let mut failing = lock(&self.failing);
        match &outcome.failure {
            None => {
                if failing.remove(outcome.way).is_some() {
                    tracing::info!(way = outcome.way, "notifications get through again");
                }
            }
            Some(why) => {
                if failing.insert(outcome.way, why.clone()).is_none() {
                    tracing::warn!(way = outcome.way, why, "a notification did not get through");
                }
            }
        }
    }
}

fn subject(news: &[News]) -> String {
    let count = |what| news.iter().filter(|news| news.what == what).count();
    if let [one] = news {
        return format!("{} {}", one.key, one.what.word());
    }
    let parts = [What::Began, What::Lasts, What::Over]
        .into_iter()
        .map(|what| (what, count(what)))
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{count} {}", what.word()));
    parts.collect::<Vec<_>>().join(", ")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds the lock, so what it guards is whole even then.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::clock::{Chance, ManualClock};

    const SOON: Duration = Duration::from_secs(20);

    fn settings(script: &str) -> NotifySettings {
        NotifySettings {
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            ..NotifySettings::default()
        }
    }

    fn started(settings: &NotifySettings) -> (Notifier, ManualClock, Daemon) {
        let hand = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let daemon = Daemon::new(hand.clock(), Chance::seeded(1));
        (
            Notifier::start("repository kb", settings, &daemon),
            hand,
            daemon,
        )
    }

    async fn lines(path: &Path, count: usize) -> Vec<serde_json::Value> {
        let reading = async {
            loop {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                if text.lines().count() >= count && text.ends_with('\n') {
                    return text
                        .lines()
                        .map(|line| serde_json::from_str(line).unwrap())
                        .collect();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON, reading)
            .await
            .expect("a message")
    }

    #[tokio::test]
    async fn an_incident_is_told_when_it_lasts_and_when_it_is_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("said");
        let (notifier, hand, daemon) = started(&settings(&format!("cat >> {}", path.display())));
        for number in 0..1000 {
            notifier.raise("node/one-1", format!("silent {number}\n\"quoted\""));
            notifier.raise("volume/v", "offline");
        }
        notifier.resolve("volume/v");
        hand.sleepers(1).await;
        hand.advance(Duration::from_mins(5));
        let said = lines(&path, 1).await;
        assert_eq!(said.len(), 1);
        assert_eq!(said[0]["version"], VERSION);
        assert_eq!(said[0]["subject"], "repository kb: node/one-1 began");
        assert_eq!(said[0]["items"].as_array().unwrap().len(), 1);
        assert_eq!(said[0]["items"][0]["count"], 1000);
        assert_eq!(said[0]["items"][0]["text"], "silent 999\n\"quoted\"");
        notifier.resolve("node/one-1");
        hand.sleepers(1).await;
        hand.advance(Duration::from_mins(5));
        let said = lines(&path, 2).await;
        assert_eq!(said[1]["items"][0]["what"], "over");
        daemon.tasks.stop_all();
        daemon.tasks.join(SOON).await.unwrap();
    }

    #[tokio::test]
    async fn a_message_that_did_not_get_through_is_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let (path, open) = (directory.path().join("said"), directory.path().join("open"));
        let script = format!("test -e {} && cat >> {}", open.display(), path.display());
        let (notifier, hand, daemon) = started(&settings(&script));
        notifier.raise("k", "t");
        hand.sleepers(1).await;
        hand.advance(Duration::from_mins(5));
        let failing = async {
            while lock(&notifier.0.as_ref().unwrap().failing).is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON, failing)
            .await
            .expect("a failure");
        #[expect(clippy::disallowed_methods, reason = "only a mark")]
        std::fs::write(&open, "").unwrap();
        hand.sleepers(1).await;
        hand.advance(LONGEST_PAUSE);
        let said = lines(&path, 1).await;
        assert_eq!(said[0]["items"][0]["what"], "began");
        daemon.tasks.stop_all();
        daemon.tasks.join(SOON).await.unwrap();
    }

    #[tokio::test]
    async fn a_stop_does_not_wait_for_a_hook_that_hangs() {
        let (notifier, hand, daemon) = started(&settings("sleep 1000"));
        notifier.raise("k", "t");
        hand.sleepers(1).await;
        hand.advance(Duration::from_mins(5));
        tokio::time::sleep(Duration::from_millis(300)).await;
        daemon.tasks.stop_all();
        daemon.tasks.join(SOON).await.unwrap();
    }

    #[tokio::test]
    async fn a_test_says_what_came_of_it() {
        let (notifier, _hand, daemon) = started(&settings("echo closed >&2; exit 9"));
        let outcomes = notifier.test().await;
        assert!(outcomes[0].failure.as_ref().unwrap().contains("closed"));
        assert_eq!(Notifier::silent().test().await, []);
        Notifier::silent().raise("k", "t");
        daemon.tasks.stop_all();
        daemon.tasks.join(SOON).await.unwrap();
    }
}
