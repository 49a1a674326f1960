//! The settings of batch jobs.

use archive_model::{ByteSize, Period};
use serde::{Deserialize, Serialize};

/// The section `[batch]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BatchSettings {
    /// How many jobs run at once over one replica; at least 1.
    pub running: u32,
    /// How many jobs may wait for their turn, in all; of one person at most half as many.
    pub waiting: u32,
    /// How long what a job left is kept after its end.
    pub keep: Period,
    /// How long a node that goes away during a job, was not heard of since its monitor started, or ends each run is waited
    /// for; then the job goes on without it, and says so.
    pub patience: Period,
    /// The longest that a job may take once it has begun, and what it may take when it asks for nothing else.
    pub time: Period,
    /// The same for what a component computes for one file.
    pub file_time: Period,
    /// The same for the memory of a component.
    pub memory: ByteSize,
    /// The same for the output of a job, before it is reduced and after.
    pub output: ByteSize,
    /// How much all jobs together may keep on disk, beside the admin data; not set: as much as there is room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<ByteSize>,
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self {
            running: 2,
            waiting: 1000,
            keep: Period::from_secs(30 * 24 * 60 * 60),
            patience: Period::from_secs(2 * 60),
            time: Period::from_secs(7 * 24 * 60 * 60),
            file_time: Period::from_secs(10 * 60),
            memory: ByteSize::from_bytes(512 << 20),
            output: ByteSize::from_bytes(64 << 30),
            space: None,
        }
    }
}
