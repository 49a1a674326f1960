//! One copy at a time: where a file is, its proven bytes, and how its bytes are when they are read again.

use archive_model::{FileName, Groups, NodeId, ReplicaId, Root, VolumeId};
use archive_rpc::{CallError, InvalidMessage, Kind};
use bytes::Bytes;
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::Streaming;

use super::{Replicas, describe, is_given_up};

/// A copy as its node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Its node.
    pub node: NodeId,
    /// Its volume there.
    pub volume: VolumeId,
    /// Its size in bytes.
    pub size: u64,
    /// As admitted; none where the node has no admission.
    pub root: Option<Root>,
    /// When it was stored there.
    pub stored: Timestamp,
    /// When it was last read whole and found good; none: not since the catalog of its node was built.
    pub verified: Option<Timestamp>,
    /// What is known to be wrong with it.
    pub condition: CopyCondition,
}

/// How a copy is, as far as its node has looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyCondition {
    /// There; its bytes were good when they were last read.
    Present,
    /// Known to the node, and not there.
    Missing,
    /// There, and these groups are not what was admitted, or cannot be read.
    Damaged {
        /// Groups that are not what was admitted.
        corrupt: Groups,
        /// Groups that cannot be read.
        unreadable: Groups,
    },
    /// There, without a readable sidecar.
    Unexpected,
}

impl Copy {
    /// Whether it is there and nothing is known to be wrong with it.
    pub fn is_present(&self) -> bool {
        self.condition == CopyCondition::Present
    }

    /// Whether its node knows it, and its file is gone.
    pub fn is_missing(&self) -> bool {
        self.condition == CopyCondition::Missing
    }

    /// Whether it is there without a readable sidecar.
    pub fn is_unexpected(&self) -> bool {
        self.condition == CopyCondition::Unexpected
    }

    /// The root that its sidecar admits, and when it was stored.
    pub fn admitted(&self) -> Result<(Root, Timestamp), CallError> {
        let root = self.root.ok_or_else(|| InvalidMessage::missing("root"))?;
        Ok((root, self.stored))
    }

    /// Writes it as the entry of `name`.
    pub fn to_entry(&self, name: &FileName) -> wire::FileEntry {
        let (condition, corrupt, unreadable) = match &self.condition {
            CopyCondition::Present => (wire::CopyCondition::Present, Vec::new(), Vec::new()),
            CopyCondition::Missing => (wire::CopyCondition::Missing, Vec::new(), Vec::new()),
            CopyCondition::Damaged {
                corrupt,
                unreadable,
            } => (
                wire::CopyCondition::Damaged,
                fields::group_ranges(corrupt),
                fields::group_ranges(unreadable),
            ),
            CopyCondition::Unexpected => (wire::CopyCondition::Unexpected, Vec::new(), Vec::new()),
        };
        wire::FileEntry {
            name: name.to_string(),
            node: self.node.to_string(),
            volume: self.volume.to_string(),
            size: self.size,
            root: self
                .root
                .as_ref()
                .map(fields::root_bytes)
                .unwrap_or_default(),
            condition: condition.into(),
            corrupt,
            unreadable,
            stored: self.stored.to_string(),
            verified: self
                .verified
                .map(|time| time.to_string())
                .unwrap_or_default(),
        }
    }

    /// Whether any of its bytes can be asked for.
    pub const fn is_readable(&self) -> bool {
        matches!(
            self.condition,
            CopyCondition::Present | CopyCondition::Damaged { .. }
        )
    }

    /// The groups that are known to be bad.
    pub fn bad(&self) -> Groups {
        match &self.condition {
            CopyCondition::Damaged {
                corrupt,
                unreadable,
            } => corrupt.union(unreadable),
            CopyCondition::Present | CopyCondition::Missing | CopyCondition::Unexpected => {
                Groups::none()
            }
        }
    }
}

/// Where a replica has a file, and whether everybody was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The copies, in whichever condition.
    pub copies: Vec<Copy>,
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
    pub copy: Copy,
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
    ) -> Result<Vec<Copy>, CallError> {
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
        // What a volume holds that nobody can look at now is no copy, whatever its node remembers of it.
        let now = self.standing.now();
        let is_seen = |entry: &&wire::FileEntry| {
            let is_silent = |gap: &wire::Gap| gap.node == entry.node && gap.volume == entry.volume;
            !is_given_up(&now, replica, &entry.node, &entry.volume)
                && !found.gaps.iter().any(is_silent)
        };
        let seen = found.entries.iter().filter(is_seen);
        let copies = seen.map(copy).collect::<Result<_, _>>()?;
        let gaps = || {
            found
                .gaps
                .iter()
                .filter(|gap| !is_given_up(&now, replica, &gap.node, &gap.volume))
        };
        let silent = gaps().map(describe).collect::<Vec<_>>().join("; ");
        let gaps = gaps().filter_map(named).collect();
        Ok(Located {
            copies,
            silent: (!silent.is_empty()).then_some(silent),
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
        let copy = copy(&entry)?;
        let read = fields::optional_root("found", &message.found)?;
        let admitted = copy.root.filter(|_| copy.is_present());
        Ok(Verified::Done(VerifiedCopy {
            root: read.or(admitted),
            copy,
        }))
    }
}

/// Reads an entry.
pub(super) fn copy(entry: &wire::FileEntry) -> Result<Copy, CallError> {
    let condition = match entry.condition() {
        wire::CopyCondition::Present => CopyCondition::Present,
        wire::CopyCondition::Missing => CopyCondition::Missing,
        wire::CopyCondition::Damaged => CopyCondition::Damaged {
            corrupt: fields::groups("corrupt", &entry.corrupt)?,
            unreadable: fields::groups("unreadable", &entry.unreadable)?,
        },
        wire::CopyCondition::Unexpected => CopyCondition::Unexpected,
        wire::CopyCondition::Unspecified => return Err(InvalidMessage::missing("condition").into()),
    };
    Ok(Copy {
        node: fields::node_id(&entry.node)?,
        volume: fields::volume_id(&entry.volume)?,
        size: entry.size,
        root: fields::optional_root("root", &entry.root)?,
        stored: fields::time("stored", &entry.stored)?,
        verified: fields::optional_time("verified", &entry.verified)?,
        condition,
    })
}

/// Who did not answer, where the gap names a node.
pub(super) fn named(gap: &wire::Gap) -> Option<(NodeId, Option<VolumeId>)> {
    let node = gap.node.parse().ok()?;
    // A volume that bears no id yet is a path: then the node is named.
    Some((node, gap.volume.parse().ok()))
}
