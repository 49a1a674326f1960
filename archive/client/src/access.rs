//! Getting files out of the archive, and knowing what is in it.

pub mod feed;
mod listing;
mod reader;
mod receipt;
mod salvage;
mod segments;
mod slices;
mod volume_file;

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use archive_model::{FeedPosition, FileName, Groups, NodeId, ReplicaId, Root, VolumeId};
use archive_proof::{Admission, Envelope};
use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use tokio_stream::{Stream, StreamExt};

pub use feed::FeedStep;
pub use reader::Reader;
pub use receipt::HeldReceipt;
pub use salvage::{Hole, Salvage, Salvaged};
pub use slices::{Slice, Slices};
pub use volume_file::VolumeFile;

use crate::Answer;
use crate::archive_status::{ArchiveStatus, Gap};
use crate::error::ClientError;
use crate::file_status::ReplicaStatus;
use crate::steps::Steps;

/// An archive that hands out files.
pub trait Access: Send + Sync {
    /// Begins to read a file, or a range of it. Every byte that comes was proven.
    fn get<'a>(&'a self, wanted: &'a FileRange) -> Answer<'a, Reading>;

    /// Begins to read the same with its proof: what proves the bytes to others, who do not trust this end.
    fn slices<'a>(&'a self, wanted: &'a FileRange) -> Answer<'a, Slices>;

    /// Begins to read what is left of a file, or of a range of it, whatever is damaged.
    fn salvage<'a>(&'a self, wanted: &'a FileRange) -> Answer<'a, Salvage>;

    /// Begins to list.
    fn list<'a>(&'a self, selection: &'a Selection) -> Answer<'a, Listing>;

    /// The custody receipt of a file, as it stands now. A trusted key signed it. A harvester gets those of its own files.
    fn receipt<'a>(&'a self, name: &'a FileName) -> Answer<'a, HeldReceipt>;

    /// Begins to follow the changes of which files the archive has, from the one after `after` on. The steps never end by
    /// themselves: they wait for the next change, and end with an error; come back then with the last position. Without a
    /// position, or with one that the archive does not know, a listing of every file comes first. For the part `index`.
    fn changes<'a>(&'a self, after: Option<&'a FeedPosition>) -> Answer<'a, Steps<FeedStep>>;

    /// Parts, replicas, nodes, volumes, space.
    fn status(&self) -> Answer<'_, ArchiveStatus>;
}

/// The bytes of a file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The file.
    pub name: FileName,
    /// The first byte.
    pub start: u64,
    /// One past the last byte; none: to the end of the file. What lies past the end of the file is left out.
    pub end: Option<u64>,
    /// From this replica only; none: from any.
    pub replica: Option<ReplicaId>,
}

impl FileRange {
    /// A whole file, from any replica.
    pub const fn whole(name: FileName) -> Self {
        Self {
            name,
            start: 0,
            end: None,
            replica: None,
        }
    }

    /// Refuses a range that no file can have.
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        let name = &self.name;
        if self.end.is_some_and(|end| end <= self.start) {
            return Err(ClientError::Invalid(format!(
                "{name}: the range is empty; it must end after it begins"
            )));
        }
        Ok(())
    }

    /// The bytes that are wanted and that a file of `size` bytes has.
    pub(crate) fn range(&self, size: u64) -> Result<Range<u64>, ClientError> {
        let (name, start) = (&self.name, self.start);
        if start > 0 && start >= size {
            return Err(ClientError::Invalid(format!(
                "{name}: has {size} bytes; there is no byte {start}"
            )));
        }
        Ok(start..self.end.unwrap_or(size).min(size))
    }
}

/// A file that is being read: its admission, and its bytes as a stream that ends where the range ends, or with an error.
///
/// After an error nothing comes any more; what came before is proven all the same.
pub struct Reading {
    /// The admission of the file; a trusted key signed it.
    pub admission: Admission,
    /// The same, verbatim.
    pub envelope: Envelope,
    /// The bytes that come: those that were wanted and that the file has.
    pub range: Range<u64>,
    bytes: Proven,
}

/// Proven bytes.
type Proven = Pin<Box<dyn Stream<Item = Result<Bytes, ClientError>> + Send>>;

impl Reading {
    /// A reading whose `bytes` are proven, in order, and end with the range or with an error.
    pub fn new(
        admission: Admission,
        envelope: Envelope,
        range: Range<u64>,
        bytes: impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static,
    ) -> Self {
        Self {
            admission,
            envelope,
            range,
            bytes: Box::pin(bytes),
        }
    }

    /// The next bytes; none: the range is complete.
    ///
    /// # Errors
    ///
    /// Fails if the call fails, or if the archive sends what does not prove itself or not all of the range.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        self.bytes.next().await.transpose()
    }
}

impl Stream for Reading {
    type Item = Result<Bytes, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.bytes.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("admission", &self.admission)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

/// The files to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Lists what this replica has now; if absent, what was decided about every file.
    pub replica: Option<ReplicaId>,
    /// Only names that match this regular expression as a whole.
    pub matching: Option<String>,
    /// Only names after this one.
    pub after: Option<FileName>,
}

/// A listing: entries sorted by name, and last how complete they are.
///
/// ```
/// use archive_client::{Access, ClientError, Listed, Selection};
///
/// /// Counts the files of the archive; fails if the listing was cut.
/// async fn count(archive: &dyn Access) -> Result<u64, ClientError> {
///     let mut listing = archive.list(&Selection::default()).await?;
///     let mut count = 0;
///     while let Some(listed) = listing.next().await? {
///         count += u64::from(matches!(listed, Listed::Entry(_)));
///     }
///     Ok(count)
/// }
/// ```
pub struct Listing(Pin<Box<dyn Stream<Item = Result<Listed, ClientError>> + Send>>);

/// An item of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// A file.
    Entry(Box<ListEntry>),
    /// The end: nothing comes after it, and a listing without it is not complete.
    End(Completeness),
}

/// The end of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// The number of entries.
    pub count: u64,
    /// The replicas and nodes whose answers it lacks; empty if it lacks none.
    pub gaps: Vec<Gap>,
}

/// One file in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListEntry {
    /// The file.
    pub name: FileName,
    /// Its size in bytes.
    pub size: u64,
    /// Its root; absent where a node has a file without an admission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Root>,
    /// In a listing of one replica: where and how it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<VolumeCopy>,
    /// In a listing of the admin data: how it stands in each replica.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaStatus>,
}

/// A file on a volume of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeCopy {
    /// The node.
    pub node: NodeId,
    /// The volume; a checksum replica has one, its `table`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeId>,
    /// The condition of the file, as far as the node has looked.
    pub condition: Condition,
    /// Groups that are not what was admitted.
    #[serde(skip_serializing_if = "Groups::is_empty")]
    pub corrupt: Groups,
    /// Groups that cannot be read.
    #[serde(skip_serializing_if = "Groups::is_empty")]
    pub unreadable: Groups,
    /// When it was stored there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<Timestamp>,
    /// When it was last read whole and found good; absent: not since the node's catalog was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Timestamp>,
}

/// The condition of a file on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Good when it was last read.
    Present,
    /// Known and not there.
    Missing,
    /// Not what was admitted.
    Damaged,
    /// There without a readable sidecar.
    Unexpected,
}

impl Condition {
    /// In one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Missing => "missing",
            Self::Damaged => "damaged",
            Self::Unexpected => "unexpected",
        }
    }
}

impl Listing {
    /// A listing of `items`: entries sorted by name, then one end; or an error, and nothing after it.
    pub fn new(items: impl Stream<Item = Result<Listed, ClientError>> + Send + 'static) -> Self {
        Self(Box::pin(items))
    }

    /// The next item; none: the end has come before.
    ///
    /// # Errors
    ///
    /// Fails if the call fails, or if the listing is cut, out of order or miscounted.
    pub async fn next(&mut self) -> Result<Option<Listed>, ClientError> {
        self.0.next().await.transpose()
    }
}

impl Stream for Listing {
    type Item = Result<Listed, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").finish_non_exhaustive()
    }
}
