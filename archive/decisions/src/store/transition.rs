//! One transition of a file: what an event has for its handlers, and what they leave.

use archive_model::{ArchiveError, time_after};
use jiff::{SignedDuration, Timestamp};

use super::{Effect, Requester, StoreLimits};

/// A call of `FileState::apply_event`: its time, its limits, and the effects so far.
pub(super) struct Transition<'a> {
    pub(super) now: Timestamp,
    pub(super) limits: &'a StoreLimits,
    pub(super) effects: Vec<Effect>,
}

impl Transition<'_> {
    /// Returns the time that comes `pause` after this transition.
    pub(super) fn time_after(&self, pause: SignedDuration) -> Timestamp {
        time_after(self.now, pause)
    }

    /// Answers a depositor.
    pub(super) fn answer_requester(
        &mut self,
        requester: Requester,
        result: Result<(), ArchiveError>,
    ) {
        self.effects.push(Effect::Answer { requester, result });
    }
}
