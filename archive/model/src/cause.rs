//! The cause of an act on copies: who asked for it, and why.

use crate::approval::Approval;
use crate::limits::LONGEST_REASON;

/// The longest `who`, in bytes.
const LONGEST_WHO: usize = 200;

/// The longest `why`, in bytes: a reason, and the words that the archive puts before it.
const LONGEST_WHY: usize = 4 * LONGEST_REASON + 100;

/// The cause of an act: the person or part that asked, and the reason. A node keeps it beside what it puts aside, and
/// refuses one that [`Cause::new`] refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The person or part that asked, as `role/name`.
    pub who: String,
    /// The reason.
    pub why: String,
    /// The approval, if two persons decided the act.
    pub approval: Option<Approval>,
}

/// The error about a cause, which names the half that is wrong, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {reason}")]
pub struct InvalidCause {
    /// The half that is wrong: `who` or `why`.
    pub field: &'static str,
    /// The problem.
    pub reason: &'static str,
}

impl Cause {
    /// Accepts a `who` of one line of at most 200 bytes and a `why` of at most 4100; neither may be empty.
    ///
    /// # Errors
    /// Returns an [`InvalidCause`] that names the half that breaks this rule.
    pub fn new(who: &str, why: &str) -> Result<Self, InvalidCause> {
        let check = |field, text: &str, most, may_break: bool| {
            let is_bad = |c: char| c.is_control() && !(may_break && c == '\n');
            let reason = if text.trim().is_empty() {
                "missing"
            } else if text.len() > most {
                "is too long"
            } else if text.contains(is_bad) {
                "contains control characters"
            } else {
                return Ok(text.to_owned());
            };
            Err(InvalidCause { field, reason })
        };
        Ok(Self {
            who: check("who", who, LONGEST_WHO, false)?,
            why: check("why", why, LONGEST_WHY, true)?,
            approval: None,
        })
    }

    /// Adds the approval of two persons.
    #[must_use]
    pub fn with_approval(self, approval: Option<Approval>) -> Self {
        Self { approval, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a cause is accepted that is empty, endless, or would steer a terminal.
    #[test]
    fn hostile_causes_are_refused() {
        let long = "x".repeat(10_000);
        for (who, why) in [
            ("", "x"),
            ("x", ""),
            (" ", "x"),
            ("a\nb", "x"),
            ("x", "\u{7}"),
            (&long, "x"),
            ("x", &long),
        ] {
            assert!(Cause::new(who, why).is_err(), "{who:?} {why:?}");
        }
        assert!(Cause::new("officer/o-1", "line one\nline two").is_ok());
    }
}
