//! A channel with its waiting messages: sent in order, retried ever more slowly, never more than a few.
//!
//! Channels do not wait for each other. A channel that fails is logged when it begins to fail and when it works again,
//! and has a metric all the time. Not promised: that a message which was cut off came only once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use archive_model::Backoff;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::message::Message;
use super::settings::SmtpSettings;
use super::{hook, lock, smtp};
use crate::clock::Clock;
use crate::metrics::{Counter, Gauge, MetricError, Metrics};

/// The most messages that wait for one channel. The oldest are dropped first.
const WAITING: usize = 64;

/// The pause after a message that was not taken; doubled each time.
const PAUSE: Duration = Duration::from_mins(1);

/// The longest such pause.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// The time that a message under way may still be taken after the stop.
const LAST: Duration = Duration::from_secs(2);

/// The kind of channel.
#[derive(Debug)]
pub(super) enum Channel {
    /// A command.
    Command(Vec<String>),
    /// A mail server.
    Smtp(Box<SmtpSettings>),
}

/// The result of sending a message through one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendOutcome {
    /// The channel: `command` or `smtp`.
    pub way: &'static str,
    /// The target of the channel: the command, or the server and the recipients.
    pub target: String,
    /// Whether the channel has taken the message.
    pub is_taken: bool,
    /// The reason why the channel has not taken the message, or why some recipients did not get it.
    pub failure: Option<String>,
}

/// A channel and its messages.
#[derive(Debug)]
pub(super) struct Outbox {
    way: Channel,
    limit: Duration,
    waiting: Mutex<VecDeque<Arc<Message>>>,
    filled: Notify,
    sent: Counter,
    failed: Counter,
    is_failing: Gauge,
}

impl Channel {
    const fn word(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::Smtp(_) => "smtp",
        }
    }

    fn target(&self) -> String {
        match self {
            Self::Command(words) => words.first().cloned().unwrap_or_default(),
            Self::Smtp(settings) => {
                let to: Vec<String> = settings.to.iter().map(ToString::to_string).collect();
                format!(
                    "{}:{} to {}",
                    settings.server,
                    settings.port(),
                    to.join(", ")
                )
            }
        }
    }
}

impl Outbox {
    pub(super) fn new(
        way: Channel,
        limit: Duration,
        metrics: &Metrics,
    ) -> Result<Self, MetricError> {
        let labels = [("way", way.word())];
        let messages = |outcome| {
            let labels = [("way", way.word()), ("outcome", outcome)];
            let help = "Notifications that were sent, or tried in vain";
            metrics.counter("notify_messages_total", help, &labels)
        };
        let sent = messages("sent")?;
        let failed = messages("failed")?;
        let help = "Whether the last notification did not get to everybody";
        let is_failing = metrics.gauge("notify_failing", help, &labels)?;
        Ok(Self {
            way,
            limit,
            waiting: Mutex::default(),
            filled: Notify::new(),
            sent,
            failed,
            is_failing,
        })
    }

    /// Adds a message, and returns those that are given up for it.
    pub(super) fn put_message(&self, message: &Arc<Message>) -> Vec<Arc<Message>> {
        let mut waiting = self.waiting();
        waiting.push_back(Arc::clone(message));
        let excess = waiting.len().saturating_sub(WAITING);
        let given_up = waiting.drain(..excess).collect();
        self.filled.notify_one();
        given_up
    }

    /// Sends waiting messages until the stop, and then ends the one that it has begun; `taken` is called for each
    /// message that the channel takes.
    pub(super) async fn run_outbox(
        &self,
        clock: &Clock,
        stop: &CancellationToken,
        taken: impl Fn(&Message),
    ) {
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE);
        loop {
            let first = self.waiting().front().cloned();
            let Some(message) = first else {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.filled.notified() => continue,
                }
            };
            // A recipient may have got the message under way already. Processes and servers do not know our clock.
            let stopped = async {
                stop.cancelled().await;
                tokio::time::sleep(LAST.min(self.limit)).await;
            };
            let outcome = tokio::select! {
                outcome = self.send_message(&message) => outcome,
                () = stopped => return,
            };
            if outcome.is_taken {
                backoff.reset();
                // The message may have been given up meanwhile.
                self.waiting().retain(|waiting| waiting.id != message.id);
                taken(&message);
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(backoff.next_pause()) => {}
            }
        }
    }

    /// Sends one message now, and records the outcome.
    pub(super) async fn send_message(&self, message: &Message) -> SendOutcome {
        let (is_taken, failure) = match &self.way {
            Channel::Command(words) => match serde_json::to_vec(message) {
                Err(error) => (false, Some(error.to_string())),
                Ok(mut text) => {
                    text.push(b'\n');
                    let ran = hook::run_hook(words, &text, self.limit).await;
                    (ran.is_ok(), ran.err())
                }
            },
            Channel::Smtp(settings) => smtp::send_mail(settings, message, self.limit).await,
        };
        let outcome = SendOutcome {
            way: self.way.word(),
            target: self.way.target(),
            is_taken,
            failure,
        };
        self.remember(&outcome);
        outcome
    }

    fn remember(&self, outcome: &SendOutcome) {
        let way = outcome.way;
        let target = &outcome.target;
        if outcome.is_taken {
            self.sent.inc();
        }
        match &outcome.failure {
            None => {
                if self.is_failing.set(0) != 0 {
                    tracing::info!(way, target, "notifications get through again");
                }
            }
            Some(why) => {
                self.failed.inc();
                if self.is_failing.set(1) == 0 {
                    tracing::warn!(way, target, why, "a notification did not get through");
                }
            }
        }
    }

    /// Returns whether the last message did not reach all recipients.
    #[cfg(test)]
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.get() != 0
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<Message>>> {
        lock(&self.waiting)
    }
}
