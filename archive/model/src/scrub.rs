//! The scrub of a node: it reads every copy again within a deadline.

use crate::closed_set::closed_set;

closed_set! {
    /// The activity of a node's scrub.
    ScrubActivity {
        /// It reads.
        Running = "running",
        /// Nothing is due.
        Idle = "idle",
        /// Somebody has paused it.
        Paused = "paused",
        /// The settings of the node switch it off.
        Off = "off",
    }
}
