//! The reason for an act, which the audit trail keeps permanently.

use std::str::FromStr;

use archive_model::limits::LONGEST_REASON;

/// A reason: not empty, not endless, one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonText(String);

/// The reason why a text is not accepted as a reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReason {
    /// The text is empty.
    #[error("say why: the audit trail keeps it")]
    Empty,
    /// The text is longer than [`LONGEST_REASON`] characters.
    #[error("say it in at most {LONGEST_REASON} characters")]
    Long,
    /// The text has a control character in it.
    #[error("say it in one line, without control characters")]
    Control,
}

impl ReasonText {
    /// Returns the text of the reason.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ReasonText {
    type Err = InvalidReason;

    fn from_str(text: &str) -> Result<Self, InvalidReason> {
        let text = text.trim();
        if text.is_empty() {
            Err(InvalidReason::Empty)
        } else if text.chars().count() > LONGEST_REASON {
            Err(InvalidReason::Long)
        } else if text.chars().any(char::is_control) {
            Err(InvalidReason::Control)
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the audit trail can be given a reason of spaces only, one with a line break, or one without a limit.
    #[test]
    fn a_reason_says_something() {
        assert_eq!(
            " the disk lied ".parse::<ReasonText>().unwrap().as_str(),
            "the disk lied"
        );
        for (bad, error) in [
            ("", InvalidReason::Empty),
            (" \t", InvalidReason::Empty),
            ("a\nb", InvalidReason::Control),
            (&"x".repeat(1001), InvalidReason::Long),
        ] {
            assert_eq!(bad.parse::<ReasonText>(), Err(error), "{bad:?}");
        }
    }
}
