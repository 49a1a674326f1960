//! The kinds of work on a file of a node, of which one is done at a time.

use std::fmt;

/// A kind of work on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The file is read because somebody asked.
    Verify,
    /// The file is read because its turn has come.
    Scrub,
    /// Groups of the file are replaced.
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
