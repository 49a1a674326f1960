//! What is done with a file of a node, one thing at a time.

use std::fmt;

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It is read because somebody asked.
    Verify,
    /// It is read because it is its turn.
    Scrub,
    /// Groups are brought into it.
    Mend,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Verify => "verified",
            Self::Scrub => "scrubbed",
            Self::Mend => "mended",
        })
    }
}
