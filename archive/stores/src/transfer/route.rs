//! The way of a file into a replica, and what came of it.

use archive_model::{FileCopy, NodeId};

use super::meeting::Seat;
use super::{UploadVerdict, VerdictReceiver};

/// The way of a file into a replica.
#[derive(Debug, Default)]
pub struct Route {
    /// Nodes that shall not have it.
    pub avoid: Vec<NodeId>,
    /// The coordinator is not told how far it is: to it, the replica has the file all the time.
    pub is_quiet: bool,
    /// Where the replicas agree on where the bytes begin; without it, at the first.
    pub(super) attends: Option<Seat>,
}

impl Route {
    /// One for what the coordinator did not order.
    pub fn quiet(avoid: Vec<NodeId>) -> Self {
        Self {
            avoid,
            is_quiet: true,
            attends: None,
        }
    }
}

/// A copy that a replica has now.
#[derive(Debug)]
pub struct UploadedCopy {
    /// The copy.
    pub copy: FileCopy,
    /// Whether it was brought now and read back; it was there before otherwise, and nobody looked.
    pub(super) read_back: bool,
}

/// Whether no admission will come.
pub(super) fn is_given_up(sealed: &VerdictReceiver) -> bool {
    match &*sealed.borrow() {
        None => sealed.has_changed().is_err(),
        Some(UploadVerdict::Admitted(_)) => false,
        Some(UploadVerdict::Forgotten) => true,
    }
}
