//! What a person sees of `up`: each step with a tick when it is done, and at the end one line with the state of the
//! archive, which is kept up to date.
//!
//! Where standard error is no terminal, steps are plain messages, and there is no line of state.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use tools_terminal::output::tell_user;

/// The most characters of the line of state: a line that wraps could not be taken back.
const WIDTH: usize = 79;

/// Goes to the begin of the line, and clears it.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// The person's view of `up`. Clones are one view.
#[derive(Clone, Debug)]
pub(super) struct Story {
    is_terminal: bool,
    state: Arc<Mutex<String>>,
}

impl Story {
    /// Begins a story on standard error.
    pub(super) fn new() -> Self {
        Self {
            is_terminal: io::stderr().is_terminal(),
            state: Arc::default(),
        }
    }

    /// Returns whether a person looks on.
    pub(super) fn is_on_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Tells that a step is done, and what it has shown.
    pub(super) fn tell_step(&self, step: &str) {
        self.print(&format!("  ✓ {step}"), step);
    }

    /// Tells what a person should know beside the steps.
    pub(super) fn tell_event(&self, event: &str) {
        self.print(&format!("  ! {event}"), event);
    }

    /// Shows the state of the archive in the last line, in place of what stood there.
    pub(super) fn show_state(&self, line: &str) {
        if !self.is_terminal {
            return;
        }
        let line: String = line.chars().take(WIDTH).collect();
        let mut state = self.state.lock();
        if *state != line {
            _ = write!(io::stderr(), "{CLEAR_LINE}{line}");
            *state = line;
        }
    }

    /// Ends the line of state, so that the next program begins on a line of its own.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        if !state.is_empty() {
            state.clear();
            _ = writeln!(io::stderr());
        }
    }

    /// Prints a line above the line of state.
    fn print(&self, on_terminal: &str, elsewhere: &str) {
        if !self.is_terminal {
            tell_user(elsewhere);
            return;
        }
        let state = self.state.lock();
        let clear = if state.is_empty() { "" } else { CLEAR_LINE };
        _ = write!(io::stderr(), "{clear}{on_terminal}\n{state}");
    }
}
