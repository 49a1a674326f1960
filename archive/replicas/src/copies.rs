//! One copy at a time: where a file is, its proven bytes, and how its bytes are when they are read again.

use archive_model::{FileCopy, FileName, Gap, NodeId, ReplicaId, Root, VolumeId};
use archive_rpc::{CallError, InvalidMessage, Kind};
use bytes::Bytes;
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::Streaming;

use super::{Replicas, gap_is_given_up, gaps_within, is_given_up};

/// Where a replica has a file, and whether everybody was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The copies, in whichever condition.
    pub copies: Vec<FileCopy>,
    /// Who did not answer, and why; none: nobody is missing.
    pub silent: Option<String>,
    /// The nodes, and volumes of them, that did not answer, where they can be named.
    pub gaps: Vec<(NodeId, Option<VolumeId>)>,
}

/// A part of a file with its proof, as a node sent it. Nobody has checked it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first byte in the file.
    pub offset: u64,
    /// Bytes of file data in it.
    pub length: u64,
    /// These bytes with their proof.
    pub encoded: Bytes,
}

/// Segments on their way from a node.
#[derive(Debug)]
pub struct ReadSegments(Streaming<wire::Segment>);

/// A copy that is being read again, whole.
#[derive(Debug)]
pub struct Verifying(Streaming<wire::VerifyResponse>);

/// What a node says while it reads a copy again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// So many bytes were read.
    Progress(u64),
    /// The copy as it was found just now.
    Done(VerifiedCopy),
}

/// A copy as it was read just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedCopy {
    /// The copy, and what is known to be wrong with it now.
    pub copy: FileCopy,
    /// The root of its bytes; none where they could not all be read.
    pub root: Option<Root>,
}

impl Replicas {
    /// Where the replica has the file, as its nodes know it.
    pub async fn locate(&self, replica: &ReplicaId, name: &FileName) -> Result<Located, CallError> {
        self.find(replica, name, false).await
    }

    /// Where the replica has the file, as its disks bear it out: what is nowhere by this is missing.
    pub async fn locate_on_disk(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Located, CallError> {
        self.find(replica, name, true).await
    }

    /// The copies that are there, in whichever condition, as the disks of the replica bear them out.
    ///
    /// # Errors
    /// A volume did not answer: a copy may be there.
    pub async fn existing_copies(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Vec<FileCopy>, CallError> {
        let mut located = self.locate_on_disk(replica, name).await?;
        if let Some(silent) = located.silent {
            let said = format!("not every volume of replica {replica} answered: {silent}");
            return Err(Kind::Unavailable.error(said));
        }
        located.copies.retain(|copy| !copy.is_missing());
        Ok(located.copies)
    }

    async fn find(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        on_disk: bool,
    ) -> Result<Located, CallError> {
        let request = wire::FindRequest {
            name: name.to_string(),
            on_disk,
        };
        let found = self.monitor(replica)?.locate(request).await?.into_inner();
        let mut gaps = gaps_within(replica, &found.gaps)?;
        let copies = found.entries.iter().map(fields::file_copy);
        let mut copies: Vec<FileCopy> = copies.collect::<Result<_, _>>()?;
        // What a volume holds that nobody can look at now is no copy, whatever its node remembers of it.
        let now = self.standing.now();
        copies.retain(|copy| {
            let (node, volume) = (&copy.place.node, &copy.place.volume);
            let is_silent =
                |gap: &Gap| gap.node.as_ref() == Some(node) && gap.volume_id() == Some(volume);
            !is_given_up(&now, replica, node, volume) && !gaps.iter().any(is_silent)
        });
        gaps.retain(|gap| !gap_is_given_up(&now, gap));
        let silent = gaps.iter().map(Gap::to_string).collect::<Vec<_>>();
        let silent = (!silent.is_empty()).then(|| silent.join("; "));
        let gaps = gaps.into_iter().filter_map(named).collect();
        Ok(Located {
            copies,
            silent,
            gaps,
        })
    }

    /// The bytes of a file, in segments that prove themselves.
    pub async fn read(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &FileName,
        root: &Root,
        (start, end): (u64, u64),
    ) -> Result<ReadSegments, CallError> {
        let mut client = self.node_client(replica, node).await?;
        let request = wire::ReadRequest {
            name: name.to_string(),
            root: fields::root_bytes(root),
            start,
            end,
        };
        let answer = client.read(request).await;
        answer
            .map(|answer| ReadSegments(answer.into_inner()))
            .map_err(|error| self.failed(replica, node, error))
    }

    /// Has a copy read again, past the page cache; the only one of the name where no volume is given.
    pub async fn verify(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &FileName,
        volume: Option<&VolumeId>,
    ) -> Result<Verifying, CallError> {
        let mut client = self.node_client(replica, node).await?;
        let request = wire::VerifyRequest {
            name: name.to_string(),
            volume: volume.map(ToString::to_string).unwrap_or_default(),
        };
        let answer = client.verify(request).await;
        answer
            .map(|answer| Verifying(answer.into_inner()))
            .map_err(|error| self.failed(replica, node, error))
    }
}

impl ReadSegments {
    /// The next segment; none at the end.
    pub async fn next(&mut self) -> Result<Option<Segment>, CallError> {
        Ok(self.0.message().await?.map(|segment| Segment {
            offset: segment.offset,
            length: segment.length,
            encoded: segment.encoded,
        }))
    }
}

impl Verifying {
    /// What the node says next. After [`Verified::Done`] there is no more.
    pub async fn next(&mut self) -> Result<Verified, CallError> {
        let ended = || Kind::Unavailable.error("the node ended the verification without a result");
        let message = self.0.message().await?.ok_or_else(ended)?;
        let Some(entry) = message.entry else {
            return Ok(Verified::Progress(message.bytes));
        };
        let copy = fields::file_copy(&entry)?;
        let read = fields::optional_root("found", &message.found)?;
        let admitted = copy.root.filter(|_| copy.is_present());
        Ok(Verified::Done(VerifiedCopy {
            root: read.or(admitted),
            copy,
        }))
    }
}

/// Returns the root that the sidecar of a copy admits, and when it was stored.
///
/// # Errors
/// `Invalid` where there is no such sidecar.
pub fn admitted(copy: &FileCopy) -> Result<(Root, Timestamp), CallError> {
    let root = copy.root.ok_or_else(|| InvalidMessage::missing("root"))?;
    Ok((root, copy.stored))
}

/// Who did not answer, where the gap names a node. For a disk that bears no id, the node is named.
fn named(gap: Gap) -> Option<(NodeId, Option<VolumeId>)> {
    let volume = gap.volume_id().cloned();
    Some((gap.node?, volume))
}
