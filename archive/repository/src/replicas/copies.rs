//! One copy at a time: where a file is, its proven bytes, and how its bytes are when they are read again.

use archive_model::{FileName, Groups, NodeId, ReplicaId, Root, VolumeId};
use archive_rpc::{InvalidMessage, Kind};
use bytes::Bytes;
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::{Status, Streaming};

use super::{Replicas, describe, is_given_up};

/// A copy as its node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) node: NodeId,
    pub(crate) volume: VolumeId,
    pub(crate) size: u64,
    /// As admitted; none where the node has no admission.
    pub(crate) root: Option<Root>,
    pub(crate) stored: Timestamp,
    pub(crate) condition: CopyCondition,
}

/// How a copy is, as far as its node has looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyCondition {
    /// There; its bytes were good when they were last read.
    Present,
    /// Known to the node, and not there.
    Missing,
    /// There, and these groups are not what was admitted, or cannot be read.
    Damaged { corrupt: Groups, unreadable: Groups },
    /// There, without a readable sidecar.
    Unexpected,
}

impl Copy {
    /// Whether it is there and nothing is known to be wrong with it.
    pub(crate) fn is_present(&self) -> bool {
        self.condition == CopyCondition::Present
    }

    /// Whether any of its bytes can be asked for.
    pub(crate) const fn is_readable(&self) -> bool {
        matches!(
            self.condition,
            CopyCondition::Present | CopyCondition::Damaged { .. }
        )
    }

    /// The groups that are known to be bad.
    pub(crate) fn bad(&self) -> Groups {
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
pub(crate) struct Located {
    pub(crate) copies: Vec<Copy>,
    /// Who did not answer, and why; none: nobody is missing.
    pub(crate) silent: Option<String>,
    /// The nodes, and volumes of them, that did not answer, where they can be named.
    pub(crate) gaps: Vec<(NodeId, Option<VolumeId>)>,
}

/// A part of a file with its proof, as a node sent it. Nobody has checked it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) encoded: Bytes,
}

/// Segments on their way from a node.
#[derive(Debug)]
pub(crate) struct ReadSegments(Streaming<wire::Segment>);

/// A copy that is being read again, whole.
#[derive(Debug)]
pub(crate) struct Verifying(Streaming<wire::VerifyResponse>);

/// What a node says while it reads a copy again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    /// So many bytes were read.
    Progress(u64),
    /// The copy as it was found just now.
    Done(Copy),
}

impl Replicas {
    /// Where the replica has the file, as its nodes know it.
    pub(crate) async fn locate(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Located, Status> {
        self.find(replica, name, false).await
    }

    /// Where the replica has the file, as its disks bear it out: what is nowhere by this is missing.
    pub(crate) async fn locate_on_disk(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Located, Status> {
        self.find(replica, name, true).await
    }

    async fn find(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        on_disk: bool,
    ) -> Result<Located, Status> {
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
    pub(crate) async fn read(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &FileName,
        root: &Root,
        (start, end): (u64, u64),
    ) -> Result<ReadSegments, Status> {
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
            .map_err(|status| self.failed(replica, node, status))
    }

    /// Has a copy read again, past the page cache; the only one of the name where no volume is given.
    pub(crate) async fn verify(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &FileName,
        volume: Option<&VolumeId>,
    ) -> Result<Verifying, Status> {
        let mut client = self.node_client(replica, node).await?;
        let request = wire::VerifyRequest {
            name: name.to_string(),
            volume: volume.map(ToString::to_string).unwrap_or_default(),
        };
        let answer = client.verify(request).await;
        answer
            .map(|answer| Verifying(answer.into_inner()))
            .map_err(|status| self.failed(replica, node, status))
    }
}

impl ReadSegments {
    /// The next segment; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Segment>, Status> {
        Ok(self.0.message().await?.map(|segment| Segment {
            offset: segment.offset,
            length: segment.length,
            encoded: segment.encoded,
        }))
    }
}

impl Verifying {
    /// What the node says next. After [`Verified::Done`] there is no more.
    pub(crate) async fn next(&mut self) -> Result<Verified, Status> {
        let ended = || Kind::Unavailable.status("the node ended the verification without a result");
        let message = self.0.message().await?.ok_or_else(ended)?;
        match message.entry {
            Some(entry) => copy(&entry).map(Verified::Done),
            None => Ok(Verified::Progress(message.bytes)),
        }
    }
}

/// Reads an entry.
pub(super) fn copy(entry: &wire::FileEntry) -> Result<Copy, Status> {
    let condition = match entry.condition() {
        wire::Condition::Present => CopyCondition::Present,
        wire::Condition::Missing => CopyCondition::Missing,
        wire::Condition::Damaged => CopyCondition::Damaged {
            corrupt: fields::groups("corrupt", &entry.corrupt)?,
            unreadable: fields::groups("unreadable", &entry.unreadable)?,
        },
        wire::Condition::Unexpected => CopyCondition::Unexpected,
        wire::Condition::Unspecified => return Err(InvalidMessage::missing("condition").into()),
    };
    Ok(Copy {
        node: fields::node_id(&entry.node)?,
        volume: fields::volume_id(&entry.volume)?,
        size: entry.size,
        root: fields::optional_root("root", &entry.root)?,
        stored: fields::time("stored", &entry.stored)?,
        condition,
    })
}

/// Who did not answer, where the gap names a node.
pub(super) fn named(gap: &wire::Gap) -> Option<(NodeId, Option<VolumeId>)> {
    let node = gap.node.parse().ok()?;
    // A volume that bears no id yet is a path: then the node is named.
    Some((node, gap.volume.parse().ok()))
}
