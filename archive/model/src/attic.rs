//! What lies in an attic: copies, and parts of them, that were put aside.

use crate::closed_set::closed_set;

closed_set! {
    /// The kinds of what was put aside.
    AtticKind {
        /// A whole file with its sidecar and outboard.
        File = "file",
        /// Groups of a file that were replaced by a repair.
        Groups = "groups",
        /// What an interrupted store left.
        Leftover = "leftover",
        /// A row of a checksum replica, which lies in no attic: it cannot be brought back or destroyed.
        Row = "row",
    }
}
