//! Signals: the first SIGTERM or SIGINT asks all tasks to stop, the second ends the process at once.
//!
//! The exit code after the second signal is 128 plus its number, as shells show it: 130 for SIGINT, 143 for SIGTERM. It
//! is not 70, because a person who is in a hurry is no bug. Nothing is lost by it that a power cut would not lose.

use std::convert::Infallible;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::tasks::Tasks;

/// The signals that end the process. Once they are taken over, they no longer kill it by themselves.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes the signals over. Inside a runtime only.
    ///
    /// # Errors
    ///
    /// The error of the system if a signal cannot be watched.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Turns the first signal into a stop of `tasks`. Never returns: the second signal ends the process.
    pub async fn watch_signals(mut self, tasks: &Tasks) -> Infallible {
        let first = self.next().await;
        tracing::info!(
            signal = first.as_raw_value(),
            "stopping; a second signal ends the process at once"
        );
        tasks.stop_all();
        let second = self.next().await;
        tracing::warn!(
            signal = second.as_raw_value(),
            "ended at once by a second signal"
        );
        std::process::exit(128 + second.as_raw_value())
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            Some(()) = self.terminate.recv() => SignalKind::terminate(),
            Some(()) = self.interrupt.recv() => SignalKind::interrupt(),
            else => std::future::pending().await,
        }
    }
}
