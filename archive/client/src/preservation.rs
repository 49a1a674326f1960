//! Is everything there, is it intact, and what is done about what is not: the archive as officers, custodians and
//! operators see it.

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
pub use attic::{AtticEntry, AtticSelection};
pub use check::{CheckKind, CheckOrder};
pub use keeper::Keeper;
pub use machines::{Bootstrap, NotifyOutcome, VolumeOrder};
pub use repair::{Repair, RepairOrder};
pub use replace::{Replaced, Replacement};
pub use request::Request;
pub use scrub::{ScrubSelection, Scrubs};
pub use trail::{AuditLine, AuditSelection};

use crate::Answer;
pub use crate::steps::Steps;

/// An archive that is looked after.
///
/// Acts that destroy are only asked for ([`ask`](Self::ask)): they happen when a second person has approved.
pub trait Preservation: Send + Sync {
    /// Begins to compare replicas with the admin data. What is found is filed.
    fn check<'a>(&'a self, order: &'a CheckOrder) -> Answer<'a, Steps<CheckStep>>;

    /// Lists the anomalies that are open now, or that ever were.
    fn anomalies<'a>(&'a self, selection: &'a AnomalySelection) -> Answer<'a, Steps<FiledAnomaly>>;

    /// Begins to repair what is filed.
    fn repair<'a>(&'a self, order: &'a RepairOrder) -> Answer<'a, Steps<Repair>>;

    /// Lists what scrubbing does on every node; pauses, resumes, slows it.
    fn scrubs<'a>(&'a self, selection: &'a ScrubSelection, order: ScrubOrder)
    -> Answer<'a, Scrubs>;

    /// Moves a wrong copy into the attic and stores the right bytes in its place. `watch` is told how many bytes of
    /// them are on their way.
    fn replace<'a>(
        &'a self,
        replacement: &'a Replacement,
        watch: &'a (dyn Fn(u64) + Send + Sync),
    ) -> Answer<'a, Replaced>;

    /// Takes a file that a replica has unexpectedly into the archive, if its bytes are what was admitted.
    fn adopt<'a>(&'a self, name: &'a FileName, replica: &'a ReplicaId) -> Answer<'a, FileCopy>;

    /// Lists what lies in the attics.
    fn attics<'a>(&'a self, selection: &'a AtticSelection) -> Answer<'a, Steps<AtticEntry>>;

    /// Brings a file back from an attic.
    fn restore<'a>(&'a self, place: &'a AtticPlace, reason: &'a str) -> Answer<'a, FileCopy>;

    /// Asks for an act that destroys.
    fn ask<'a>(&'a self, act: &'a Act, reason: &'a str) -> Answer<'a, Request>;

    /// The requests that are open, or all that ever were.
    fn requests(&self, all: bool) -> Answer<'_, Vec<Request>>;

    /// Approves somebody else's request: the act is done now.
    fn approve<'a>(&'a self, id: &'a str) -> Answer<'a, Request>;

    /// Takes a request back.
    fn withdraw<'a>(&'a self, id: &'a str) -> Answer<'a, Request>;

    /// Labels, takes over, clears, opens or closes a disk. Answers with its node.
    fn volume<'a>(&'a self, order: &'a VolumeOrder) -> Answer<'a, NodeState>;

    /// Says whether a node takes new files.
    fn node<'a>(&'a self, node: &'a NodeSelector, mode: Mode) -> Answer<'a, NodeState>;

    /// Begins to fill a replica from the others.
    fn bootstrap<'a>(&'a self, replica: &'a ReplicaId) -> Answer<'a, Bootstrap>;

    /// The audit trail, oldest first.
    fn audit<'a>(&'a self, selection: &'a AuditSelection) -> Answer<'a, Steps<AuditLine>>;

    /// Admin data and audit trail as lines of JSON, in pieces.
    fn export(&self) -> Answer<'_, Steps<Bytes>>;

    /// Sends a test notification through every way that is set.
    fn notify_test(&self) -> Answer<'_, NotifyOutcome>;
}
