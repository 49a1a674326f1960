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
pub use replace::{ReplacedCopy, Replacement};
pub use request::Request;
pub use scrub::{ScrubSelection, Scrubs};
pub use trail::{AuditLine, AuditSelection};

use crate::Answer;
pub use crate::steps::Steps;

/// An archive that people look after.
///
/// Acts that destroy are only asked for ([`ask`](Self::ask)): they happen when a second person has approved.
pub trait Preservation: Send + Sync {
    /// Begins to compare replicas with the admin data. The anomalies that it finds are filed.
    fn check<'a>(&'a self, order: &'a CheckOrder) -> Answer<'a, Steps<CheckStep>>;

    /// Lists the anomalies that are open now, or that ever were.
    fn anomalies<'a>(&'a self, selection: &'a AnomalySelection) -> Answer<'a, Steps<FiledAnomaly>>;

    /// Begins to repair filed anomalies.
    fn repair<'a>(&'a self, order: &'a RepairOrder) -> Answer<'a, Steps<Repair>>;

    /// Gives an order to the scrubs of the selected nodes (tell, pause, resume, throttle), and returns their state.
    fn scrubs<'a>(&'a self, selection: &'a ScrubSelection, order: ScrubOrder)
    -> Answer<'a, Scrubs>;

    /// Moves a wrong copy into the attic and stores the right bytes in its place. `watch` is called with the number of
    /// bytes that are on their way.
    fn replace<'a>(
        &'a self,
        replacement: &'a Replacement,
        watch: &'a (dyn Fn(u64) + Send + Sync),
    ) -> Answer<'a, ReplacedCopy>;

    /// Takes a file that a replica has unexpectedly into the archive, if its bytes are those that were admitted.
    fn adopt<'a>(&'a self, name: &'a FileName, replica: &'a ReplicaId) -> Answer<'a, FileCopy>;

    /// Lists the items in the attics.
    fn attics<'a>(&'a self, selection: &'a AtticSelection) -> Answer<'a, Steps<AtticEntry>>;

    /// Restores a file from an attic.
    fn restore<'a>(&'a self, place: &'a AtticPlace, reason: &'a str) -> Answer<'a, FileCopy>;

    /// Asks for an act that destroys.
    fn ask<'a>(&'a self, act: &'a Act, reason: &'a str) -> Answer<'a, Request>;

    /// Lists the requests that are open, or all that ever were.
    fn requests(&self, all: bool) -> Answer<'_, Vec<Request>>;

    /// Approves another person's request: the act is done now.
    fn approve<'a>(&'a self, id: &'a str) -> Answer<'a, Request>;

    /// Takes a request back.
    fn withdraw<'a>(&'a self, id: &'a str) -> Answer<'a, Request>;

    /// Gives an order about a disk: label, take over, clear, open, close or drain. Returns the state of its node.
    fn volume<'a>(&'a self, order: &'a VolumeOrder) -> Answer<'a, NodeState>;

    /// Sets the mode of a node, which says whether it takes new files.
    fn node<'a>(&'a self, node: &'a NodeSelector, mode: Mode) -> Answer<'a, NodeState>;

    /// Begins to fill a replica from the others.
    fn bootstrap<'a>(&'a self, replica: &'a ReplicaId) -> Answer<'a, Bootstrap>;

    /// Reads the audit trail, oldest line first.
    fn audit<'a>(&'a self, selection: &'a AuditSelection) -> Answer<'a, Steps<AuditLine>>;

    /// Reads admin data and audit trail as lines of JSON, in pieces.
    fn export(&self) -> Answer<'_, Steps<Bytes>>;

    /// Sends a test notification through every configured channel.
    fn notify_test(&self) -> Answer<'_, NotifyOutcome>;
}
