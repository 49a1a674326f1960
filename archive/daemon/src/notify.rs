//! Telling people: one message when something is wrong for a while, one when it is over, never one per file.
//!
//! A part that finds something wrong calls [`Notifier::raise`], and [`Notifier::resolve`] when it is right again; one
//! that sees all of something says so with [`Notifier::declare`]. As often as they like: none waits, and none is lost.
//! One task makes messages of it; every way that is set sends them for itself, and tries again what was not taken.
//!
//! A restart neither loses an incident nor repeats it: a row for each is kept in a [`Memory`], written before anything
//! is told, and again once the first way has taken the message. What is wrong now is not remembered but found again;
//! of what is not found again, those who declare say that it is over. Not promised: that a message which was taken in
//! the moment of a crash comes only once, or that every way gets what waited for it when the process ended.

mod hook;
pub mod incident;
mod memory;
mod message;
mod outbox;
mod settings;
mod smtp;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::clock::{Chance, Clock};
use crate::metrics::MetricError;
use crate::run::Daemon;
use incident::{Incidents, Rhythm, Wrong};
pub use memory::{Forgetful, Memory};
use message::Message;
pub use outbox::SendOutcome;
use outbox::{Outbox, Way};
pub use settings::{
    InvalidAddress, InvalidNotify, MailAddress, NotifySettings, SmtpSettings, SmtpTls,
};

/// The pause before rows that could not be written are tried again.
const AGAIN: Duration = Duration::from_mins(1);

/// Tells people, cheap to clone. Does nothing where no way is set.
#[derive(Clone, Debug)]
pub struct Notifier(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    /// The part that tells: `repository kb`.
    source: String,
    clock: Clock,
    chance: Chance,
    incidents: Mutex<Incidents>,
    memory: Arc<dyn Memory>,
    changed: Notify,
    command: Option<Arc<Outbox>>,
    smtp: Option<Arc<Outbox>>,
}

/// The reason why nobody can be told.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// An instrument of that name is taken.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// The rows of earlier messages cannot be read.
    #[error("the record of earlier notifications cannot be read: {0}")]
    Memory(#[source] crate::tasks::AnyError),
}

impl Notifier {
    /// One that tells nobody.
    pub const fn silent() -> Self {
        Self(None)
    }

    /// Whether nobody would hear of anything.
    pub const fn is_silent(&self) -> bool {
        self.0.is_none()
    }

    /// Starts the tasks that tell; `source` is who does: `repository kb`. Inside a runtime only.
    ///
    /// # Errors
    ///
    /// [`NotifyError`] if the rows of earlier incidents cannot be read, or a metric cannot be made.
    pub fn start(
        source: &str,
        settings: &NotifySettings,
        daemon: &Daemon,
        memory: Arc<dyn Memory>,
    ) -> Result<Self, NotifyError> {
        let limit = settings.limit.duration();
        let outbox = |way| Outbox::new(way, limit, &daemon.metrics).map(Arc::new);
        let command = Some(&settings.command).filter(|words| !words.is_empty());
        let command = command.map(|words| outbox(Way::Command(words.clone())));
        let smtp = settings.smtp.clone().map(Box::new);
        let smtp = smtp.map(|smtp| outbox(Way::Smtp(smtp)));
        let (command, smtp) = (command.transpose()?, smtp.transpose()?);
        if command.is_none() && smtp.is_none() {
            return Ok(Self::silent());
        }
        let rhythm = Rhythm {
            delay: settings.delay.duration(),
            remind: settings.remind.duration().max(Duration::from_secs(1)),
        };
        let kept = memory.load().map_err(NotifyError::Memory)?;
        let shared = Arc::new(Shared {
            source: source.to_owned(),
            clock: daemon.clock.clone(),
            chance: daemon.chance.clone(),
            incidents: Mutex::new(Incidents::new(rhythm, kept)),
            memory,
            changed: Notify::new(),
            command: command.clone(),
            smtp: smtp.clone(),
        });
        let (telling, stop) = (Arc::clone(&shared), daemon.tasks.stop());
        daemon.tasks.spawn("notify", async move {
            let send = async |outbox: Option<Arc<Outbox>>| {
                let taken = |message: &Message| telling.taken(message);
                if let Some(outbox) = outbox {
                    outbox.run(&telling.clock, &stop, taken).await;
                }
            };
            tokio::join!(telling.run(&stop), send(command), send(smtp));
            // What was taken last.
            telling.write().await;
        });
        Ok(Self(Some(shared)))
    }

    /// Something is wrong. `key` names the incident for as long as it lasts, `text` says what it is and what to do.
    pub fn raise(&self, key: &str, text: impl AsRef<str>) {
        self.change(|incidents, now| incidents.raise(key, &Wrong::now(text.as_ref()), now));
    }

    /// It is right again. Where it was not wrong, nothing happens.
    pub fn resolve(&self, key: &str) {
        self.change(|incidents, now| incidents.resolve(key, now));
    }

    /// All that is wrong within `scope`, by key: the keys that are the scope, or begin with it and `/`. Everything else
    /// in it is right again, but for what is within one of `unclear`, of which nothing is known now.
    pub fn declare(
        &self,
        scope: &str,
        wrong: &BTreeMap<String, Wrong>,
        unclear: &BTreeSet<String>,
    ) {
        self.change(|incidents, now| incidents.declare(scope, wrong, unclear, now));
    }

    fn change(&self, change: impl FnOnce(&mut Incidents, Timestamp)) {
        if let Some(shared) = &self.0 {
            let now = shared.clock.now();
            change(&mut lock(&shared.incidents), now);
            shared.changed.notify_one();
        }
    }

    /// Sends a test message through every way that is set, now; empty: none is.
    pub async fn test(&self) -> Vec<SendOutcome> {
        let Some(shared) = &self.0 else {
            return Vec::new();
        };
        let message = Message::test(&shared.source, shared.name(), shared.clock.now());
        let send = async |outbox: &Option<Arc<Outbox>>| match outbox {
            Some(outbox) => Some(outbox.send(&message).await),
            None => None,
        };
        let (command, smtp) = tokio::join!(send(&shared.command), send(&shared.smtp));
        command.into_iter().chain(smtp).collect()
    }
}

impl Shared {
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

    /// Until the next thing is due, or `again`.
    async fn pause(&self, again: Option<Duration>) {
        let due = lock(&self.incidents).due();
        let now = self.clock.now();
        let due = due.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
        match due.into_iter().chain(again).min() {
            // A moment is always waited for: a clock that is set back must not make this spin.
            Some(pause) => self.clock.sleep(pause.max(Duration::from_millis(1))).await,
            None => std::future::pending().await,
        }
    }

    /// Writes the rows that have changed. People are told also where that fails.
    async fn write(&self) -> bool {
        let rows = lock(&self.incidents).changes();
        if rows.is_empty() {
            return true;
        }
        let (memory, keys) = (
            Arc::clone(&self.memory),
            rows.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(),
        );
        let kept = spawn_blocking(move || memory.keep(&rows)).await;
        let kept = kept.unwrap_or_else(|bug| Err(bug.into()));
        if let Err(error) = &kept {
            tracing::warn!(%error, "what people are told is not remembered over a restart");
            lock(&self.incidents).not_written(keys);
        }
        kept.is_ok()
    }

    fn due(&self) -> Option<Message> {
        let now = self.clock.now();
        let news = lock(&self.incidents).take(now);
        (!news.is_empty()).then(|| Message::digest(&self.source, self.name(), now, news))
    }

    fn post(&self, message: &Arc<Message>) {
        let ways = self.command.iter().chain(&self.smtp);
        for message in ways.flat_map(|way| way.put(message)) {
            tracing::warn!("a notification is given up: one way has not taken it for long");
            self.taken(&message);
        }
    }

    fn taken(&self, message: &Message) {
        lock(&self.incidents).taken(&message.news, message.at);
        self.changed.notify_one();
    }

    /// A name for a message that no other has.
    fn name(&self) -> String {
        let random = self.chance.bytes().map(u128::from_be_bytes);
        let number = random.unwrap_or_else(|error| {
            tracing::warn!(%error, "a notification is named after the time");
            self.clock.now().as_nanosecond().unsigned_abs()
        });
        format!("{number:032x}")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds the lock, so what it guards is whole even then.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
