//! The two persons who decided an act.

use std::fmt;

use serde::{Deserialize, Serialize};

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

/// Shows both persons, as people read them.
impl fmt::Display for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, approved by {}", self.asked_by, self.approved_by)
    }
}
