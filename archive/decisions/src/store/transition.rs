//! One transition of a file: what an event has for its handlers, and what they leave.

use archive_model::{ArchiveError, later};
use jiff::{SignedDuration, Timestamp};

use super::{Effect, Limits, Requester};

/// A call of `FileState::apply`: its time, its limits, and the effects so far.
pub(super) struct Transition<'a> {
    pub(super) now: Timestamp,
    pub(super) limits: &'a Limits,
    pub(super) effects: Vec<Effect>,
}

impl Transition<'_> {
    /// Returns the time that comes `pause` after this transition.
    pub(super) fn later(&self, pause: SignedDuration) -> Timestamp {
        later(self.now, pause)
    }

    /// Answers a depositor.
    pub(super) fn answer(&mut self, requester: Requester, result: Result<(), ArchiveError>) {
        self.effects.push(Effect::Answer { requester, result });
    }
}
