//! Progress on stderr, for who watches: nothing when stderr is no terminal.

use std::io::{self, Read};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::tell_user;

/// The progress of a transfer, in bytes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TransferProgress {
    bar: ProgressBar,
}

impl TransferProgress {
    /// Returns a bar for a known number of bytes.
    pub fn of_bytes(total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = "{wide_bar} {bytes}/{total_bytes}  {bytes_per_sec}  {eta}  {msg}";
        // A template of ours that does not parse is seen at once; the plain bar does as well.
        bar.set_style(
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar }
    }

    /// Returns a line for work whose end is not known.
    pub fn counting() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar }
    }

    /// Returns a progress that shows no bar.
    pub fn hidden() -> Self {
        Self {
            bar: ProgressBar::hidden(),
        }
    }

    /// Shows what is being done, beside the bar.
    pub fn set_message(&self, message: String) {
        self.bar.set_message(message);
    }

    /// Goes from `before` to `now` bytes of one file; a new attempt may go back.
    pub fn step_bytes(&self, before: u64, now: u64) {
        match now.checked_sub(before) {
            Some(more) => self.bar.inc(more),
            None => self.bar.dec(before - now),
        }
    }

    /// Counts what is read.
    pub fn watch_reader<R: Read>(&self, source: R) -> WatchedReader<R> {
        let progress = self.clone();
        WatchedReader { source, progress }
    }

    /// Prints a message on stderr without tearing the bar.
    pub fn tell_user(&self, message: &str) {
        self.suspend(|| tell_user(message));
    }

    /// Runs work that writes on the terminal without tearing the bar.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A reader whose bytes are counted by a bar.
#[derive(Debug)]
pub struct WatchedReader<R> {
    source: R,
    progress: TransferProgress,
}

impl<R: Read> Read for WatchedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.progress.bar.inc(count as u64);
        Ok(count)
    }
}
