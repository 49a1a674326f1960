//! The two persons who decided an act.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The words between the two persons where an approval is written as text.
const APPROVED: &str = ", approved by ";

/// The approval of an act: the person who asked for it, and the one who approved it.
///
/// Only the repository knows whether an approval is true: beside what a node has put aside, it is an unsigned claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The id of the request, such as `r12`.
    pub request: String,
    /// The person who asked, as `role/name`.
    pub asked_by: String,
    /// The person who approved, as `role/name`.
    pub approved_by: String,
}

impl Approval {
    /// Reads what nodes wrote as text before approvals had fields of their own: `ASKED, approved by APPROVED` and
    /// `REQUEST: REASON`.
    pub fn from_old_text(who: &str, why: &str) -> Option<Self> {
        let (asked_by, approved_by) = who.split_once(APPROVED)?;
        let (request, _) = why.split_once(": ")?;
        let number = request.strip_prefix('r')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Self {
            request: request.to_owned(),
            asked_by: asked_by.to_owned(),
            approved_by: approved_by.to_owned(),
        })
    }
}

/// Shows both persons, as people read them.
impl fmt::Display for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{APPROVED}{}", self.asked_by, self.approved_by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if what older nodes wrote is not read, or what one person did is read as an act of two.
    #[test]
    fn old_text_names_both_persons_and_request() {
        let approval = Approval {
            request: "r12".to_owned(),
            asked_by: "custodian/anna".to_owned(),
            approved_by: "custodian/bert".to_owned(),
        };
        let who = approval.to_string();
        let read = Approval::from_old_text(&who, "r12: court order: 7");
        assert_eq!(read, Some(approval));
        for (who, why) in [
            ("officer/olga", "r12: law"),
            (who.as_str(), "law"),
            (who.as_str(), "r: law"),
            (who.as_str(), "rx: law"),
        ] {
            assert_eq!(Approval::from_old_text(who, why), None, "{who} {why}");
        }
    }
}
