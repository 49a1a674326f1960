//! Notifications for people: one message when something is wrong for a while, one when it is over, never one per file.
//!
//! A part that finds something wrong calls [`Notifier::raise_incident`], and [`Notifier::resolve_incident`] when it is right again; a
//! part that sees a whole scope calls [`Notifier::declare_incidents`] with everything in it. They may be called as often as
//! needed: no call waits, and none is lost. One task makes messages of them; every configured channel sends its
//! messages independently, and retries those that were not taken.
//!
//! A restart neither loses an incident nor repeats it: a [`IncidentMemory`] keeps a row for each, written before people are
//! told anything, and again once the first channel has taken the message. Open problems are not remembered but found
//! again; those that are not found again are resolved by the parts that declare. Not promised: that a message which was
//! taken in the moment of a crash comes only once, or that every channel gets its waiting messages when the process
//! ends.

mod hook;
pub mod incident;
mod memory;
mod message;
mod outbox;
mod settings;
mod smtp;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::clock::{Chance, Clock};
use crate::run::Daemon;
use crate::start::StartError;
use incident::{IncidentTiming, Incidents, Problem};
pub use memory::{IncidentMemory, NoMemory};
use message::Message;
pub use outbox::SendOutcome;
use outbox::{Channel, Outbox};
pub use settings::{InvalidAddress, MailAddress, NotifySettings, SmtpSettings, SmtpTls};

/// The pause before rows that could not be written are tried again.
const AGAIN: Duration = Duration::from_mins(1);

/// A notifier of people, cheap to clone. Does nothing where no channel is configured.
#[derive(Clone, Debug)]
pub struct Notifier(Option<Arc<NotifierState>>);

#[derive(Debug)]
struct NotifierState {
    /// The part that notifies: `repository kb`.
    source: String,
    clock: Clock,
    chance: Chance,
    incidents: Mutex<Incidents>,
    memory: Arc<dyn IncidentMemory>,
    changed: Notify,
    command: Option<Arc<Outbox>>,
    smtp: Option<Arc<Outbox>>,
}

impl Notifier {
    /// Returns a notifier that sends nothing.
    pub const fn silent_notifier() -> Self {
        Self(None)
    }

    /// Returns whether no channel is configured.
    pub const fn is_silent(&self) -> bool {
        self.0.is_none()
    }

    /// Starts the tasks that notify; `source` is the name of the part: `repository kb`. Inside a runtime only.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the rows of earlier incidents cannot be read, or a metric cannot be made.
    pub fn start_notifier(
        source: &str,
        settings: &NotifySettings,
        daemon: &Daemon,
        memory: Arc<dyn IncidentMemory>,
    ) -> Result<Self, StartError> {
        let limit = settings.limit.duration();
        let outbox = |channel| Outbox::new(channel, limit, &daemon.metrics).map(Arc::new);
        let command = Some(&settings.command).filter(|words| !words.is_empty());
        let command = command.map(|words| outbox(Channel::Command(words.clone())));
        let smtp = settings.smtp.clone().map(Box::new);
        let smtp = smtp.map(|smtp| outbox(Channel::Smtp(smtp)));
        let command = command.transpose()?;
        let smtp = smtp.transpose()?;
        if command.is_none() && smtp.is_none() {
            return Ok(Self::silent_notifier());
        }
        let timing = IncidentTiming {
            delay: settings.delay.duration(),
            remind: settings.remind.duration().max(Duration::from_secs(1)),
        };
        let unread = |error| StartError::failed("read the record of earlier notifications", error);
        let kept = memory.load().map_err(unread)?;
        let shared = Arc::new(NotifierState {
            source: source.to_owned(),
            clock: daemon.clock.clone(),
            chance: daemon.chance.clone(),
            incidents: Mutex::new(Incidents::new(timing, kept)),
            memory,
            changed: Notify::new(),
            command: command.clone(),
            smtp: smtp.clone(),
        });
        let telling = Arc::clone(&shared);
        let stop = daemon.tasks.stop_token();
        daemon.tasks.spawn("notify", async move {
            let send = async |outbox: Option<Arc<Outbox>>| {
                let taken = |message: &Message| telling.note_taken(message);
                if let Some(outbox) = outbox {
                    outbox.run_outbox(&telling.clock, &stop, taken).await;
                }
            };
            tokio::join!(telling.run(&stop), send(command), send(smtp));
            // Writes the rows of messages that were taken last.
            telling.write().await;
        });
        Ok(Self(Some(shared)))
    }

    /// Reports that something is wrong. `key` names the incident for as long as it lasts, `text` says what it is and
    /// what to do.
    pub fn raise_incident(&self, key: &str, text: impl AsRef<str>) {
        self.change(|incidents, now| {
            incidents.raise_incident(key, &Problem::begun_now(text.as_ref()), now);
        });
    }

    /// Reports that an incident is over. Does nothing if there is no such incident.
    pub fn resolve_incident(&self, key: &str) {
        self.change(|incidents, now| incidents.resolve_incident(key, now));
    }

    /// Reports all incidents within `scope`, by key: keys that are the scope, or begin with it and `/`. All other
    /// incidents in it are over, except those within one of `unclear`, of which nothing is known now.
    pub fn declare_incidents(
        &self,
        scope: &str,
        wrong: &BTreeMap<String, Problem>,
        unclear: &BTreeSet<String>,
    ) {
        self.change(|incidents, now| incidents.declare_incidents(scope, wrong, unclear, now));
    }

    fn change(&self, change: impl FnOnce(&mut Incidents, Timestamp)) {
        if let Some(shared) = &self.0 {
            let now = shared.clock.now();
            change(&mut lock(&shared.incidents), now);
            shared.changed.notify_one();
        }
    }

    /// Sends a test message through every configured channel, now. Returns an empty list without channels.
    pub async fn send_test(&self) -> Vec<SendOutcome> {
        let Some(shared) = &self.0 else {
            return Vec::new();
        };
        let message = Message::test_message(&shared.source, shared.name(), shared.clock.now());
        let send = async |outbox: &Option<Arc<Outbox>>| match outbox {
            Some(outbox) => Some(outbox.send_message(&message).await),
            None => None,
        };
        let (command, smtp) = tokio::join!(send(&shared.command), send(&shared.smtp));
        command.into_iter().chain(smtp).collect()
    }
}

impl NotifierState {
    async fn run(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let is_written = self.write().await;
            if let Some(message) = self.due() {
                self.post(&Arc::new(message));
                continue;
            }
            let again = (!is_written).then_some(AGAIN);
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.notified() => {}
                () = self.pause(again) => {}
            }
        }
    }

    /// Waits until the next message is due, or for `again`.
    async fn pause(&self, again: Option<Duration>) {
        let due = lock(&self.incidents).next_due();
        let now = self.clock.now();
        let due = due.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
        match due.into_iter().chain(again).min() {
            // The shortest pause is a millisecond: a clock that is set back must not make the loop spin.
            Some(pause) => self.clock.sleep(pause.max(Duration::from_millis(1))).await,
            None => std::future::pending().await,
        }
    }

    /// Writes the changed rows; returns whether that worked. Messages are sent also where it fails.
    async fn write(&self) -> bool {
        let rows = lock(&self.incidents).take_changes();
        if rows.is_empty() {
            return true;
        }
        let memory = Arc::clone(&self.memory);
        let keys = rows.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        let kept = spawn_blocking(move || memory.keep(&rows)).await;
        let kept = kept.unwrap_or_else(|bug| Err(bug.into()));
        if let Err(error) = &kept {
            tracing::warn!(%error, "sent notifications are not remembered over a restart");
            lock(&self.incidents).note_unwritten(keys);
        }
        kept.is_ok()
    }

    fn due(&self) -> Option<Message> {
        let now = self.clock.now();
        let news = lock(&self.incidents).take_news(now);
        (!news.is_empty()).then(|| Message::digest_message(&self.source, self.name(), now, news))
    }

    fn post(&self, message: &Arc<Message>) {
        let channels = self.command.iter().chain(&self.smtp);
        for message in channels.flat_map(|channel| channel.put_message(message)) {
            tracing::warn!("a notification is given up: one channel has not taken it for long");
            self.note_taken(&message);
        }
    }

    fn note_taken(&self, message: &Message) {
        lock(&self.incidents).note_taken(&message.news, message.at);
        self.changed.notify_one();
    }

    /// Makes a unique name for a message.
    fn name(&self) -> String {
        let random = self.chance.random_bytes().map(u128::from_be_bytes);
        let number = random.unwrap_or_else(|error| {
            tracing::warn!(%error, "a notification is named after the time");
            self.clock.now().as_nanosecond().unsigned_abs()
        });
        format!("{number:032x}")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The holder of the lock never panics, so that its content is valid even when poisoned.
    mutex.lock()
}

#[cfg(test)]
mod tests;
