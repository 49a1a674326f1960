//! The archive as officers, custodians and operators see it: whether everything is in it and intact, and the acts that
//! mend it.

mod anomaly;
mod attic;
mod check;
mod keeper;
mod machines;
mod repair;
mod replace;
mod request;
mod scrub;
mod trail;

use archive_model::{
    Act, AtticPlace, CheckStep, FileCopy, FileName, FiledAnomaly, Mode, NodeSelector, NodeState,
    ReplicaId, ScrubOrder,
};
use bytes::Bytes;

pub use anomaly::AnomalySelection;
pub use archive_model::CheckKind;
pub use attic::{AtticEntry, AtticSelection};
pub use check::CheckOrder;
pub use keeper::Keeper;
pub use machines::{Bootstrap, NotifyOutcome, VolumeOrder};
pub use repair::{Repair, RepairOrder};
pub use replace::{CopyReplacement, ReplacedCopy};
pub use request::RequestRecord;
pub use scrub::{ScrubSelection, Scrubs};
pub use trail::{AuditSelection, HeldAuditLine};

use crate::CallFuture;
pub use crate::steps::ArchiveSteps;

/// An archive that people look after.
///
/// Acts that destroy are only asked for ([`ask`](Self::ask)): they happen when a second person has approved.
pub trait Preservation: Send + Sync {
    /// Begins to compare replicas with the admin data. The anomalies that it finds are filed.
    fn check<'a>(&'a self, order: &'a CheckOrder) -> CallFuture<'a, ArchiveSteps<CheckStep>>;

    /// Lists the anomalies that are open now, or that ever were.
    fn anomalies<'a>(
        &'a self,
        selection: &'a AnomalySelection,
    ) -> CallFuture<'a, ArchiveSteps<FiledAnomaly>>;

    /// Begins to repair filed anomalies.
    fn repair<'a>(&'a self, order: &'a RepairOrder) -> CallFuture<'a, ArchiveSteps<Repair>>;

    /// Gives an order to the scrubs of the selected nodes (tell, pause, resume, throttle), and returns their state.
    fn scrubs<'a>(
        &'a self,
        selection: &'a ScrubSelection,
        order: ScrubOrder,
    ) -> CallFuture<'a, Scrubs>;

    /// Moves a wrong copy into the attic and stores the right bytes in its place. `watch` is called with the number of
    /// bytes that are on their way.
    fn replace<'a>(
        &'a self,
        replacement: &'a CopyReplacement,
        watch: &'a (dyn Fn(u64) + Send + Sync),
    ) -> CallFuture<'a, ReplacedCopy>;

    /// Takes a file that a replica has unexpectedly into the archive, if its bytes are those that were admitted.
    fn adopt<'a>(&'a self, name: &'a FileName, replica: &'a ReplicaId) -> CallFuture<'a, FileCopy>;

    /// Lists the items in the attics.
    fn attics<'a>(
        &'a self,
        selection: &'a AtticSelection,
    ) -> CallFuture<'a, ArchiveSteps<AtticEntry>>;

    /// Restores a file from an attic.
    fn restore<'a>(&'a self, place: &'a AtticPlace, reason: &'a str) -> CallFuture<'a, FileCopy>;

    /// Asks for an act that destroys.
    fn ask<'a>(&'a self, act: &'a Act, reason: &'a str) -> CallFuture<'a, RequestRecord>;

    /// Lists the requests that are open, or all that ever were.
    fn requests(&self, all: bool) -> CallFuture<'_, Vec<RequestRecord>>;

    /// Approves another person's request: the act is done now.
    fn approve<'a>(&'a self, id: &'a str) -> CallFuture<'a, RequestRecord>;

    /// Takes a request back.
    fn withdraw<'a>(&'a self, id: &'a str) -> CallFuture<'a, RequestRecord>;

    /// Gives an order about a disk: label, take over, clear, open, close or drain. Returns the state of its node.
    fn volume<'a>(&'a self, order: &'a VolumeOrder) -> CallFuture<'a, NodeState>;

    /// Sets the mode of a node, which says whether it takes new files.
    fn node<'a>(&'a self, node: &'a NodeSelector, mode: Mode) -> CallFuture<'a, NodeState>;

    /// Begins to fill a replica from the others.
    fn bootstrap<'a>(&'a self, replica: &'a ReplicaId) -> CallFuture<'a, Bootstrap>;

    /// Reads the audit trail, oldest line first.
    fn audit<'a>(
        &'a self,
        selection: &'a AuditSelection,
    ) -> CallFuture<'a, ArchiveSteps<HeldAuditLine>>;

    /// Reads admin data and audit trail as lines of JSON, in pieces.
    fn export(&self) -> CallFuture<'_, ArchiveSteps<Bytes>>;

    /// Sends a test notification through every configured channel.
    fn notify_test(&self) -> CallFuture<'_, NotifyOutcome>;
}
