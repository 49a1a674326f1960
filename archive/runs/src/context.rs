//! The state that the threads of one job share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use archive_batch::{Plan, StopControl};
use archive_bitarchive::Node;
use archive_daemon::Clock;
use archive_model::{FileSelection, JobId};

use crate::instruments::JobInstruments;
use crate::node_jobs::JobSlot;

/// The state that the threads of a job share.
#[derive(Debug)]
pub(crate) struct JobContext {
    pub(crate) id: JobId,
    pub(crate) node: Arc<Node>,
    pub(crate) plan: Box<dyn Plan>,
    pub(crate) control: StopControl,
    pub(crate) clock: Clock,
    pub(crate) instruments: JobInstruments,
    /// The bytes of files that were read.
    pub(crate) bytes: AtomicU64,
    /// The number of files; 0 until they are counted.
    pub(crate) total: AtomicU64,
    pub(crate) selection: FileSelection,
    pub(crate) _slot: JobSlot,
}
