//! The settings of batch jobs.

use archive_model::{ByteSize, Period};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The section `[batch]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct BatchSettings {
    /// The most jobs that run at once over one replica; at least 1.
    pub running: u32,
    /// The most jobs that may wait for their turn; of one person at most half as many.
    pub waiting: u32,
    /// The time for which the results of a job are kept after its end.
    pub keep: Period,
    /// The time to wait for a node that goes away during a job, was not heard of since its monitor started, or ends
    /// each run; then the job continues without it, and reports that.
    pub patience: Period,
    /// The longest time that a job may take once it has begun, and the default.
    pub time: Period,
    /// The longest time that a component may compute for one file, and the default.
    pub file_time: Period,
    /// The most memory that a component may use, and the default.
    pub memory: ByteSize,
    /// The largest output of a job, before it is reduced and after, and the default.
    pub output: ByteSize,
    /// The most bytes that all jobs together may keep on disk, beside the admin data. If it is not set, the disk is the
    /// limit.
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
