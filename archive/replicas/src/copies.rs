//! Calls about one copy: where a file is, its bytes with their proofs, and the state of its bytes when they are read
//! again.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the monitor or node cannot be reached, refuses the call, or sends an
//! invalid answer.

use std::ops::Range;

use archive_model::{CopySelector, FileCopy, FileName, Gap, NodeId, ReplicaId, Root, SilentPart};
use archive_rpc::{CallError, CallErrorKind, ConnectError, InvalidMessage};
use bytes::Bytes;
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::Streaming;

use crate::dialer::LaneUse;

use super::{Replicas, gap_is_given_up, gaps_within, is_given_up};

/// The places of a file in a replica, and the parts that did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedCopies {
    /// The copies, in any condition.
    pub copies: Vec<FileCopy>,
    /// The parts that did not answer, with reasons; `None` if all answered.
    pub silent: Option<String>,
    /// The nodes, and volumes of them, that did not answer, as far as they can be named.
    pub gaps: Vec<SilentPart>,
}

/// A part of a file with its proof, as a node sent it; not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The offset of the first byte of the segment in the file.
    pub offset: u64,
    /// The number of bytes of the file in the segment.
    pub length: u64,
    /// The bytes of the segment with their proof.
    pub encoded: Bytes,
}

/// The segments of a read from a node.
#[derive(Debug)]
pub struct ReadSegments {
    segments: Streaming<wire::Segment>,
    _use: LaneUse,
}

/// A second read of a whole copy.
#[derive(Debug)]
pub struct Verification(Streaming<wire::VerifyResponse>);

/// A message of a node that reads a copy again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifyAnswer {
    /// The number of bytes that were read.
    Progress(u64),
    /// The copy as it was just found.
    Done(Box<VerifiedCopy>),
}

/// A copy as it was just read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedCopy {
    /// The copy, with its present damage.
    pub copy: FileCopy,
    /// The root of its bytes; `None` if they could not all be read.
    pub root: Option<Root>,
}

impl Replicas {
    /// Asks where the replica has the file, according to the catalogs of its nodes.
    pub async fn locate_copies(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<LocatedCopies, CallError> {
        self.find(replica, name, false).await
    }

    /// Asks where the replica has the file, according to its disks: a file that is on no disk is missing.
    pub async fn locate_on_disk(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<LocatedCopies, CallError> {
        self.find(replica, name, true).await
    }

    /// Returns the existing copies, in any condition, according to the disks of the replica.
    ///
    /// # Errors
    /// [`CallError`], also if a volume did not answer: a copy may be there.
    pub async fn existing_copies(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Vec<FileCopy>, CallError> {
        let mut located = self.locate_on_disk(replica, name).await?;
        if let Some(silent) = located.silent {
            let said = format!("not every volume of replica {replica} answered: {silent}");
            return Err(CallErrorKind::Unavailable.to_error(said));
        }
        located.copies.retain(|copy| !copy.is_missing());
        Ok(located.copies)
    }

    async fn find(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        on_disk: bool,
    ) -> Result<LocatedCopies, CallError> {
        let request = wire::FindRequest {
            name: name.to_string(),
            on_disk,
        };
        let found = self.monitor(replica)?.locate(request).await?.into_inner();
        let mut gaps = gaps_within(replica, &found.gaps)?;
        let copies = found.entries.iter().map(fields::file_copy);
        let mut copies: Vec<FileCopy> = copies.collect::<Result<_, _>>()?;
        // A copy on a volume that cannot be read now does not count, even if its node remembers it.
        let now = self.standing.current_snapshot();
        copies.retain(|copy| {
            let node = &copy.place.node;
            let volume = &copy.place.volume;
            let is_silent =
                |gap: &Gap| gap.node.as_ref() == Some(node) && gap.volume_id() == Some(volume);
            !is_given_up(&now, replica, node, volume) && !gaps.iter().any(is_silent)
        });
        gaps.retain(|gap| !gap_is_given_up(&now, gap));
        let silent = gaps.iter().map(Gap::to_string).collect::<Vec<_>>();
        let silent = (!silent.is_empty()).then(|| silent.join("; "));
        let gaps = gaps.iter().filter_map(Gap::silent_part).collect();
        Ok(LocatedCopies {
            copies,
            silent,
            gaps,
        })
    }

    /// Reads bytes of a file, in segments with their proofs.
    pub async fn read_copy(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &FileName,
        root: &Root,
        Range { start, end }: Range<u64>,
    ) -> Result<ReadSegments, CallError> {
        let lane = self.node_lane(replica, node).await?;
        let request = wire::ReadRequest {
            name: name.to_string(),
            root: fields::root_bytes(root),
            start,
            end,
        };
        let answer = lane.client.clone().read(request).await;
        answer
            .map(|answer| ReadSegments {
                segments: answer.into_inner(),
                _use: lane.note_use(),
            })
            .map_err(|error| self.call_failed(replica, node, error))
    }

    /// Has a node read a copy again, past the page cache.
    pub async fn verify_copy(
        &self,
        CopySelector {
            replica,
            node,
            volume,
        }: CopySelector<'_>,
        name: &FileName,
    ) -> Result<Verification, CallError> {
        let request = wire::VerifyRequest {
            name: name.to_string(),
            volume: volume.map(ToString::to_string).unwrap_or_default(),
        };
        let mut client = self.node_client(replica, node).await?;
        let mut answer = client.verify(request.clone()).await;
        if let Err(status) = &answer
            && ConnectError::within(status).is_some()
        {
            // There was no connection: perhaps since long, and the node is back.
            drop(self.call_failed(replica, node, status.clone()));
            client = self.node_client(replica, node).await?;
            answer = client.verify(request).await;
        }
        answer
            .map(|answer| Verification(answer.into_inner()))
            .map_err(|error| self.call_failed(replica, node, error))
    }
}

impl ReadSegments {
    /// Returns the next segment, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Segment>, CallError> {
        Ok(self.segments.message().await?.map(|segment| Segment {
            offset: segment.offset,
            length: segment.length,
            encoded: segment.encoded,
        }))
    }
}

impl Verification {
    /// Returns the next message. The last one is `Done`.
    pub async fn next(&mut self) -> Result<VerifyAnswer, CallError> {
        let ended = || {
            CallErrorKind::Unavailable.to_error("the node ended the verification without a result")
        };
        let message = self.0.message().await?.ok_or_else(ended)?;
        let Some(entry) = message.entry else {
            return Ok(VerifyAnswer::Progress(message.bytes));
        };
        let copy = fields::file_copy(&entry)?;
        let read = fields::optional_root("found", &message.found)?;
        let admitted = copy.root.filter(|_| copy.is_present());
        let root = read.or(admitted);
        Ok(VerifyAnswer::Done(Box::new(VerifiedCopy { copy, root })))
    }
}

/// Returns the root that the sidecar of a copy admits, and when it was stored.
///
/// # Errors
/// `Invalid` if the copy has no such sidecar.
pub fn admitted_content(copy: &FileCopy) -> Result<(Root, Timestamp), CallError> {
    let root = copy
        .root
        .ok_or_else(|| InvalidMessage::missing_field("root"))?;
    Ok((root, copy.stored))
}
