//! The scrub of a node: it reads every copy again within a deadline.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::closed_set::closed_set;
use crate::replica::{NodeId, ReplicaId};

closed_set! {
    /// The activity of a node's scrub.
    ScrubActivity {
        /// The scrub reads copies.
        Running = "running",
        /// The scrub waits: no copy is due.
        Idle = "idle",
        /// A person has paused the scrub.
        Paused = "paused",
        /// The settings of the node switch it off.
        Off = "off",
    }
}

/// An order to the scrub of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubOrder {
    /// Tells the state and changes nothing.
    Tell,
    /// Pauses for the given time, or as long as is allowed if `None`. A pause ends by itself.
    Pause(Option<Duration>),
    /// Goes on with scrubbing.
    Resume,
    /// Limits the bytes that are read in a second; `None`: as many as the deadline asks for.
    Throttle(Option<u64>),
}

impl fmt::Display for ScrubOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tell => f.write_str("tell"),
            Self::Pause(None) => f.write_str("pause"),
            Self::Pause(Some(time)) => write!(f, "pause for {} s", time.as_secs()),
            Self::Resume => f.write_str("resume"),
            Self::Throttle(None) => f.write_str("no limit but the deadline"),
            Self::Throttle(Some(bytes)) => write!(f, "at most {bytes} bytes a second"),
        }
    }
}

/// The state of scrubbing on one node. The JSON is what `holdfast scrub --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeScrub {
    /// The replica of the node.
    pub replica: ReplicaId,
    /// The node that scrubs.
    pub node: NodeId,
    /// The state of the scrub.
    pub state: ScrubActivity,
    /// When the pause ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
    /// The most bytes that the scrub reads in a second now; absent: the node does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// Copies that are due now.
    pub due: u64,
    /// When the next copy is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// When the copy that has waited longest was last verified; absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// Copies that were not verified since the catalog was built.
    pub unknown: u64,
    /// Files that the scrub has read since the node started.
    pub files: u64,
    /// Bytes that the scrub has read since the node started.
    pub bytes: u64,
    /// Damaged copies that the scrub has found since the node started.
    pub found: u64,
    /// The time in which every copy is read once, in seconds.
    pub deadline_seconds: u64,
}
