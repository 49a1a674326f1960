//! Switches of a request.
//!
//! `allowFuzzy` and `gzip`, which clients of other servers send, are passed over like unknown parameters: look-ups here
//! are never fuzzy, and answers are never compressed.

/// Something that a request asks for beside captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// Redirects to the same key are left out.
    OmitSelfRedirects,
    /// Revisits have the place of the record that they refer to.
    ResolveRevisits,
    /// A column counts the captures with the same digest before this one.
    DupeCount,
    /// A column counts the captures that were left out for this one.
    SkipCount,
    /// A column has the time of the last capture that was left out.
    LastSkipTimestamp,
    /// A key to resume with follows an answer that a limit has cut.
    ResumeKey,
}

/// A set of [`Extra`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras(u16);

impl Extras {
    /// Returns whether the set has an extra.
    pub fn contains(self, extra: Extra) -> bool {
        self.0 & Self::bit(extra) != 0
    }

    pub(super) fn set(&mut self, extra: Extra, is_wanted: bool) {
        if is_wanted {
            self.0 |= Self::bit(extra);
        }
    }

    fn bit(extra: Extra) -> u16 {
        1 << extra as u16
    }
}
