//! The scrub of a node: it reads every copy again within a deadline.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::closed_set::closed_set;
use crate::replica::{NodeId, ReplicaId};

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

/// An order to scrubbing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubOrder {
    /// Nothing: only tell.
    Tell,
    /// Pause for so long; none: as long as is allowed. A pause ends itself.
    Pause(Option<Duration>),
    /// Go on.
    Resume,
    /// Read at most this number of bytes a second; if absent, as many as the deadline asks for.
    Throttle(Option<u64>),
}

/// The state of scrubbing on one node. The JSON is what `holdfast scrub --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeScrub {
    /// The replica.
    pub replica: ReplicaId,
    /// The node.
    pub node: NodeId,
    /// The state of the scrub.
    pub state: ScrubActivity,
    /// When the pause ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
    /// The most that is read a second now, in bytes; absent: the node does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// Files that are due now.
    pub due: u64,
    /// When the next is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// When the copy that has waited longest was last verified; absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// Copies that were not verified since the catalog was built.
    pub unknown: u64,
    /// Files read since the node started.
    pub files: u64,
    /// Bytes read since the node started.
    pub bytes: u64,
    /// Damaged copies found since the node started.
    pub found: u64,
    /// Within how many seconds every copy is read once.
    pub deadline_seconds: u64,
}
