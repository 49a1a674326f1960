//! Reading files of the archive, and listing what is in it.

pub mod feed;
mod listing;
mod reader;
mod receipt;
mod salvage;
mod segments;
mod slices;

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use archive_model::{
    CopyCondition, CopyPlace, FeedPosition, FileCopy, FileName, Gap, ReplicaId, Root,
};
use archive_proof::{Admission, Envelope};
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use tokio_stream::{Stream, StreamExt};

pub use feed::FeedStep;
pub use reader::ArchiveReader;
pub use receipt::HeldReceipt;
pub use salvage::{Hole, Salvage, SalvagedPart};
pub use slices::{Slice, Slices};

use crate::CallFuture;
use crate::archive_status::ArchiveStatus;
use crate::error::ClientError;
use crate::file_status::ReplicaStatus;
use crate::steps::ArchiveSteps;

/// An archive that hands out files.
pub trait Access: Send + Sync {
    /// Begins to read a file, or a range of it. Every byte that is handed out was proven.
    fn get<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, FileStream>;

    /// Begins to read a file, or a range of it, with the proof of its bytes for others, who do not trust this end.
    fn slices<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, Slices>;

    /// Begins to read what is left of a file, or of a range of it, whatever is damaged.
    fn salvage<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, Salvage>;

    /// Begins to list the files of the archive.
    fn list<'a>(&'a self, selection: &'a Selection) -> CallFuture<'a, Listing>;

    /// Asks for the custody receipt of a file, as it stands now. A trusted key signed it. A harvester gets those of its
    /// own files.
    fn receipt<'a>(&'a self, name: &'a FileName) -> CallFuture<'a, HeldReceipt>;

    /// Begins to follow the changes of which files the archive has, from the one after `after` on. The steps never end
    /// by themselves: they wait for the next change, and end with an error; come back then with the last position.
    /// Without a position, or with one that the archive does not know, a listing of every file comes first. For the
    /// part `index`.
    fn changes<'a>(
        &'a self,
        after: Option<&'a FeedPosition>,
    ) -> CallFuture<'a, ArchiveSteps<FeedStep>>;

    /// Asks for the status of the archive: its parts, replicas, nodes, volumes and space.
    fn status(&self) -> CallFuture<'_, ArchiveStatus>;
}

/// The bytes of a file to read.
///
/// ```
/// use archive_client::FileRange;
/// use archive_model::FileName;
///
/// let whole = FileRange::whole_file(FileName::new("a.warc.gz")?);
/// assert_eq!((whole.start, whole.end), (0, None));
/// let part = FileRange { start: 100, end: Some(200), ..whole };
/// assert_eq!(part.replica, None);
/// # Ok::<(), archive_model::InvalidFileName>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The name of the file.
    pub name: FileName,
    /// The offset of the first byte.
    pub start: u64,
    /// The offset behind the last byte; `None`: the end of the file. A range is cut at the end of the file.
    pub end: Option<u64>,
    /// The replica to read from; `None`: any.
    pub replica: Option<ReplicaId>,
}

impl FileRange {
    /// Returns the range that is a whole file, from any replica.
    pub const fn whole_file(name: FileName) -> Self {
        Self {
            name,
            start: 0,
            end: None,
            replica: None,
        }
    }

    /// Refuses an empty range.
    pub(crate) fn check_range(&self) -> Result<(), ClientError> {
        let name = &self.name;
        if self.end.is_some_and(|end| end <= self.start) {
            return Err(ClientError::Invalid(format!(
                "{name}: the range is empty; it must end after it begins"
            )));
        }
        Ok(())
    }

    /// Returns the part of the range that a file of `size` bytes has. Fails if the range begins behind the end of the
    /// file.
    pub(crate) fn range_within(&self, size: u64) -> Result<Range<u64>, ClientError> {
        let name = &self.name;
        let start = self.start;
        if start > 0 && start >= size {
            return Err(ClientError::Invalid(format!(
                "{name}: has {size} bytes; there is no byte {start}"
            )));
        }
        Ok(start..self.end.unwrap_or(size).min(size))
    }
}

/// A file that is being read: its admission, and its bytes as a stream that ends where the range ends, or with an
/// error.
///
/// After an error nothing comes any more; what came before is proven all the same.
pub struct FileStream {
    /// The admission of the file; a trusted key signed it.
    pub admission: Admission,
    /// The admission in its signed form, verbatim.
    pub envelope: Envelope,
    /// The bytes that are read: the part of the wanted range that the file has.
    pub range: Range<u64>,
    bytes: Proven,
}

/// Proven bytes.
type Proven = Pin<Box<dyn Stream<Item = Result<Bytes, ClientError>> + Send>>;

impl FileStream {
    /// Makes the stream of `bytes` that are proven, in order, and end with the range or with an error.
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

    /// Returns the next bytes; `None` once the range is complete.
    ///
    /// # Errors
    ///
    /// Fails if the call fails, or if the archive sends what does not prove itself or not all of the range.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        self.bytes.next().await.transpose()
    }
}

impl Stream for FileStream {
    type Item = Result<Bytes, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.bytes.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for FileStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStream")
            .field("admission", &self.admission)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

/// The files to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The replica to list, as it is now; `None`: lists what was decided about every file.
    pub replica: Option<ReplicaId>,
    /// Lists only names that match this regular expression as a whole.
    pub matching: Option<String>,
    /// Lists only names behind this one.
    pub after: Option<FileName>,
}

/// A listing: entries sorted by name, and last how complete they are.
///
/// ```
/// use archive_client::{Access, ClientError, ListItem, Selection};
///
/// /// Counts the files of the archive; fails if the listing was cut.
/// async fn count(archive: &dyn Access) -> Result<u64, ClientError> {
///     let mut listing = archive.list(&Selection::default()).await?;
///     let mut count = 0;
///     while let Some(listed) = listing.next().await? {
///         count += u64::from(matches!(listed, ListItem::Entry(_)));
///     }
///     Ok(count)
/// }
/// ```
pub struct Listing(Pin<Box<dyn Stream<Item = Result<ListItem, ClientError>> + Send>>);

/// An item of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListItem {
    /// An entry: a file.
    Entry(Box<ListEntry>),
    /// The end: nothing comes after it, and a listing without an end is not complete.
    End(Completeness),
}

/// The end of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// The number of entries.
    pub count: u64,
    /// The replicas and nodes whose answers the listing lacks; empty if it lacks none.
    pub gaps: Vec<Gap>,
}

/// A file in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntry {
    /// The name of the file.
    pub name: FileName,
    /// The size of the file in bytes.
    pub size: u64,
    /// The root of the file; absent where a node has a file without an admission.
    pub root: Option<Root>,
    /// The copy of the file, in a listing of one replica.
    pub found: Option<FileCopy>,
    /// The status of the file in each replica, in a listing of the admin data.
    pub replicas: Vec<ReplicaStatus>,
}

/// Serializes an entry: the name, size and root of the copy stand beside the copy, once.
impl Serialize for ListEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct CopyJson<'a> {
            #[serde(flatten)]
            place: &'a CopyPlace,
            #[serde(flatten)]
            condition: &'a CopyCondition,
            stored: Timestamp,
            #[serde(skip_serializing_if = "Option::is_none")]
            verified: Option<Timestamp>,
        }
        #[derive(Serialize)]
        struct EntryJson<'a> {
            name: &'a FileName,
            size: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            root: Option<Root>,
            #[serde(skip_serializing_if = "Option::is_none")]
            found: Option<CopyJson<'a>>,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            replicas: &'a [ReplicaStatus],
        }
        let found = self.found.as_ref().map(|copy| CopyJson {
            place: &copy.place,
            condition: &copy.condition,
            stored: copy.stored,
            verified: copy.verified,
        });
        let entry = EntryJson {
            name: &self.name,
            size: self.size,
            root: self.root,
            found,
            replicas: &self.replicas,
        };
        entry.serialize(serializer)
    }
}

impl Listing {
    /// Makes a listing of `items`: entries sorted by name, then one end; or an error, and nothing after it.
    pub fn new(items: impl Stream<Item = Result<ListItem, ClientError>> + Send + 'static) -> Self {
        Self(Box::pin(items))
    }

    /// Returns the next item; `None` behind the end.
    ///
    /// # Errors
    ///
    /// Fails if the call fails, or if the listing is cut, out of order or miscounted.
    pub async fn next(&mut self) -> Result<Option<ListItem>, ClientError> {
        self.0.next().await.transpose()
    }
}

impl Stream for Listing {
    type Item = Result<ListItem, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").finish_non_exhaustive()
    }
}
