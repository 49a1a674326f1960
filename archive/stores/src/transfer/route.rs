//! The way of a file into a replica, and what came of it.

use archive_model::{FileCopy, NodeId};

use super::offset_agreement::OffsetBid;
use super::{UploadVerdict, VerdictReceiver};

/// The way of a file into a replica.
#[derive(Debug, Default)]
pub struct Route {
    /// The nodes that shall not have the file.
    pub avoid: Vec<NodeId>,
    /// Whether nothing is reported to the coordinator: to it, the replica has the file all the time.
    pub is_quiet: bool,
    /// The bid of the replica on the first byte to send; without one, the upload begins with the first byte of the
    /// file.
    pub(super) offset_bid: Option<OffsetBid>,
}

impl Route {
    /// Returns the route of an upload that the coordinator did not order.
    pub fn avoid_nodes(avoid: Vec<NodeId>) -> Self {
        Self {
            avoid,
            is_quiet: true,
            offset_bid: None,
        }
    }
}

/// A copy that a replica has now.
#[derive(Debug)]
pub struct UploadedCopy {
    /// The copy.
    pub copy: FileCopy,
    /// Whether the copy was uploaded now and read back; otherwise it was there before, and was not read.
    pub read_back: bool,
}

/// Whether no admission will come.
pub(super) fn is_given_up(sealed: &VerdictReceiver) -> bool {
    match &*sealed.borrow() {
        None => sealed.has_changed().is_err(),
        Some(UploadVerdict::Admitted(_)) => false,
        Some(UploadVerdict::Forgotten) => true,
    }
}
