//! What the threads of one job share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use archive_batch::{Control, Plan};
use archive_daemon::Clock;
use archive_model::{FileSelection, JobId};

use super::Slot;
use super::instruments::BatchInstruments;
use crate::node::Node;

/// What the threads of a job share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: JobId,
    pub(super) node: Arc<Node>,
    pub(super) plan: Box<dyn Plan>,
    pub(super) control: Control,
    pub(super) clock: Clock,
    pub(super) instruments: BatchInstruments,
    /// Bytes of files that were read.
    pub(super) bytes: AtomicU64,
    /// How many files there are; 0: not counted yet.
    pub(super) total: AtomicU64,
    pub(super) selection: FileSelection,
    pub(super) _slot: Slot,
}
