//! The events of a file that is being stored, and their effects.

use archive_model::limits::{NODE_PATIENCE, READING_RATE};
use archive_model::{
    ArchiveError, CopyPlace, NodeId, ReplicaId, ReplicaKind, Root, StoreFailure, UploadId,
    VolumeId, time_after,
};
use jiff::{SignedDuration, Timestamp};

use super::{Claim, Content};

/// A call of a depositor: a number that the shell never uses twice while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requester(pub u64);

/// An event. An event about a replica is a statement of that replica (or of its monitor).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoringEvent {
    /// A depositor wants to store bytes under this name.
    Asked {
        /// The depositor who waits for the answer; not seen before.
        requester: Requester,
        /// The upload id to use if this begins a new upload.
        upload: UploadId,
        /// The depositor's statement about the bytes.
        claim: Claim,
        /// Whether the depositor is the one that began the upload on its way: no other one resumes an upload that
        /// was left.
        resumes: bool,
    },
    /// The depositor's stream ended whole, and its content was computed while it passed.
    Received {
        /// The owner of the stream.
        requester: Requester,
        /// The bytes that arrived.
        content: Content,
    },
    /// The depositor's stream broke, or the depositor has gone away.
    SourceGone {
        /// The owner of the stream.
        requester: Requester,
    },
    /// The monitor chose a node.
    Placed {
        /// The replica.
        replica: ReplicaId,
        /// The node that the monitor chose.
        node: NodeId,
    },
    /// Bytes flow to the replica, or (answering a probe) its node is still at work on them.
    Progress {
        /// The replica.
        replica: ReplicaId,
    },
    /// The node has every byte and the admission, and has not read the bytes back yet.
    DataUploaded {
        /// The replica.
        replica: ReplicaId,
    },
    /// The node has the file under its final name, and has read it back, just now or long ago.
    Completed {
        /// The replica.
        replica: ReplicaId,
        /// The node.
        node: NodeId,
        /// The volume of that node.
        volume: VolumeId,
        /// The root that the node read back.
        root: Root,
        /// The time when the node completed the copy.
        at: Timestamp,
        /// Whether the node has read the copy back just now, rather than remembers it.
        read_back: bool,
    },
    /// Answer to a probe: every non-retired volume looked, none holds the file, and none will commit it by itself.
    Absent {
        /// The replica.
        replica: ReplicaId,
    },
    /// Answer to a probe: no volume that answered holds the file, and not every one answered.
    Silent {
        /// The replica.
        replica: ReplicaId,
        /// The nodes that did not answer, and why.
        reason: String,
    },
    /// A copy that was completed is lost: every non-retired volume has looked. The file is to be copied again.
    Gone {
        /// The replica.
        replica: ReplicaId,
    },
    /// A copy that was completed is elsewhere in its replica.
    Moved {
        /// The replica.
        replica: ReplicaId,
        /// The node that has the copy.
        node: NodeId,
        /// The volume of that node.
        volume: VolumeId,
    },
    /// An attempt failed; also if no node was found, or none could say whether the file is there.
    Failed {
        /// The replica.
        replica: ReplicaId,
        /// The reason of the failure.
        reason: StoreFailure,
    },
    /// The replica shall have the file, and may lack it: the replica is new, or its copy is lost. It is asked, and then
    /// given the file. No effect on a copy that was withdrawn, or before the name is bound.
    Wanted {
        /// The replica.
        replica: ReplicaId,
        /// Bytes, or names and checksums only.
        kind: ReplicaKind,
        /// Whether the answer to a depositor waits for it.
        required: bool,
        /// The place that does not count any more, and why; a copy that is recorded elsewhere stays.
        gone: Option<(CopyPlace, String)>,
    },
    /// The copy of this replica was put aside, and people replace it by other bytes.
    Replacing {
        /// The replica.
        replica: ReplicaId,
        /// The reason of the replacement.
        why: String,
    },
    /// People have taken the copy out of this replica. No effect before the name is bound.
    Withdrawn {
        /// The replica.
        replica: ReplicaId,
        /// The decision of the people, and the reason.
        why: String,
    },
    /// Two persons have taken a withdrawal back: the replica is asked, and then given the file. No effect on a copy that
    /// was not withdrawn.
    Reinstated {
        /// The replica.
        replica: ReplicaId,
    },
    /// Two persons have decided that the name means other content from now on: no copy of the old content is left.
    Readmitted {
        /// The upload id of the new admission.
        upload: UploadId,
        /// The content that the name means now.
        content: Content,
    },
    /// The timer rang.
    Tick,
}

impl StoringEvent {
    /// Returns the depositor whose stream this event ends, whole or broken.
    pub const fn ended_stream(&self) -> Option<Requester> {
        if let Self::Received { requester, .. } | Self::SourceGone { requester } = self {
            Some(*requester)
        } else {
            None
        }
    }

    /// Returns the copy that a replica says it has, and whether its node has read it back just now.
    pub const fn stored_copy(&self) -> Option<(&ReplicaId, &NodeId, &VolumeId, bool)> {
        if let Self::Completed {
            replica,
            node,
            volume,
            read_back,
            ..
        } = self
        {
            Some((replica, node, volume, *read_back))
        } else {
            None
        }
    }
}

/// An effect that the caller carries out; a list of them is carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write the record, synced, before anything that follows.
    Persist,
    /// Delete the row, synced: the name is free again. The nodes may discard what they have of the upload.
    Expire {
        /// The upload that came to nothing.
        upload: UploadId,
    },
    /// Read this depositor's stream and tee it into the replicas of the `BeginUpload`s that follow.
    Source {
        /// The owner of the stream.
        requester: Requester,
    },
    /// Read this depositor's stream, only hash it, and report [`StoringEvent::Received`].
    Compare {
        /// The owner of the stream.
        requester: Requester,
    },
    /// Open a stream into this replica; a node that already holds the admitted root says [`StoringEvent::Completed`].
    BeginUpload {
        /// The replica.
        replica: ReplicaId,
        /// The node to use again; `None` if the monitor is to choose one.
        node: Option<NodeId>,
    },
    /// Close the open streams with the signed admission of the record's content. Only this lets a node commit.
    Seal,
    /// Ask the replica whether it holds the file. An answer after [`StoreLimits::probe`] must be dropped.
    Probe {
        /// The replica.
        replica: ReplicaId,
    },
    /// Copy the bytes from another replica, with the admission.
    CopyFrom {
        /// The replica that lacks the bytes.
        replica: ReplicaId,
        /// A replica that has the bytes; they are verified while they arrive.
        donor: ReplicaId,
    },
    /// Answer the depositor, once; `Ok` means custody. If its stream is still being read, stop, without sealing.
    Answer {
        /// The depositor.
        requester: Requester,
        /// The answer.
        result: Result<(), ArchiveError>,
    },
    /// Send [`StoringEvent::Tick`] at this time, in place of any timer set for this file before.
    SetTimer(Timestamp),
}

/// The limits of waiting. All must be longer than zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// The time that an intent lives after its last sign of life.
    pub intent: SignedDuration,
    /// The time that a byte stream may be silent; longer than the transfer's own stall limit, whose backstop it is.
    pub idle: SignedDuration,
    /// The time that an answer to a probe is waited for.
    pub probe: SignedDuration,
    /// The time that verification may take beside the size-dependent part.
    pub verify: SignedDuration,
    /// The slowest reading back that is waited for, in bytes per second.
    pub verify_rate: u64,
    /// The pause before the first retry; doubled each time.
    pub rest: SignedDuration,
    /// The longest pause between retries.
    pub rest_longest: SignedDuration,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            intent: SignedDuration::from_hours(24),
            idle: SignedDuration::from_mins(5),
            probe: SignedDuration::from_mins(1),
            verify: SignedDuration::try_from(NODE_PATIENCE).expect("the patience is minutes"),
            verify_rate: READING_RATE,
            rest: SignedDuration::from_mins(1),
            rest_longest: SignedDuration::from_hours(1),
        }
    }
}

impl StoreLimits {
    /// Returns the time at which the verification of `size` bytes, begun at `now`, is given up.
    pub(super) fn verified_by(&self, now: Timestamp, size: u64) -> Timestamp {
        let seconds = size.checked_div(self.verify_rate).unwrap_or(size);
        let reading = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        time_after(now, self.verify.saturating_add(reading))
    }

    /// Returns the time of the next try after that number of pauses in a row.
    pub(super) fn rested_by(&self, now: Timestamp, pauses: u32) -> Timestamp {
        let doubled = self.rest.saturating_mul(1 << pauses.min(20));
        time_after(now, doubled.min(self.rest_longest))
    }
}
