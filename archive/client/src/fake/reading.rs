//! Reading files from the archive in memory: proven as they are over the wire.

use std::ops::{Bound, Range};
use std::sync::Arc;

use archive_model::{FeedPosition, FileName, GROUP_SIZE, NamePattern, ReplicaKind};
use archive_proof::{CopyBytes, encode_ranges};
use archive_rpc::InvalidMessage;
use bytes::Bytes;

use super::replica::Replica;
use super::{FakeArchive, KeptFile, bug, unknown};
use crate::CallFuture;
use crate::access::{
    Access, Completeness, FeedStep, FileRange, FileStream, HeldReceipt, ListEntry, ListItem,
    Listing, Salvage, SalvagedPart, Selection, Slice, Slices,
};
use crate::archive_status::ArchiveStatus;
use crate::error::ClientError;
use crate::ingest::CHUNK;
use crate::steps::ArchiveSteps;

impl FakeArchive {
    /// Returns the wanted file, and the range of its bytes.
    fn open(&self, wanted: &FileRange) -> Result<(Arc<KeptFile>, Range<u64>), ClientError> {
        wanted.check_range()?;
        let name = &wanted.name;
        let kept = self.find(name).ok_or_else(|| unknown(name))?;
        if let Some(id) = &wanted.replica {
            let mut replicas = self.shared.replicas.iter();
            match replicas.find(|replica| replica.id == *id) {
                Some(replica) if replica.kind == ReplicaKind::Bitarchive => {}
                Some(_) => {
                    return Err(ClientError::Invalid(format!(
                        "{id} keeps checksums only; name another replica"
                    )));
                }
                None => {
                    return Err(ClientError::Unavailable(format!(
                        "{name} is in no replica that was asked for"
                    )));
                }
            }
        }
        if self.state().is_withdrawn(name) {
            return Err(ClientError::Unavailable(format!(
                "{name} is in no replica that was asked for"
            )));
        }
        let range = wanted.range_within(kept.admission.size)?;
        Ok((kept, range))
    }

    fn begin_reading(&self, wanted: &FileRange) -> Result<FileStream, ClientError> {
        let (kept, range) = self.open(wanted)?;
        let of = Arc::clone(&kept);
        let bytes = pieces(range.clone(), CHUNK).map(move |piece| of.part(&piece));
        Ok(FileStream::new(
            kept.admission.clone(),
            kept.envelope.clone(),
            range,
            tokio_stream::iter(bytes),
        ))
    }

    fn begin_slices(&self, wanted: &FileRange) -> Result<Slices, ClientError> {
        let (kept, range) = self.open(wanted)?;
        let start = range.start - range.start % GROUP_SIZE;
        let end = range.end.next_multiple_of(GROUP_SIZE);
        let groups = start..end.min(kept.admission.size);
        let of = Arc::clone(&kept);
        let slices = pieces(groups, CHUNK).map(move |piece| of.prove(piece));
        Ok(Slices::new(
            kept.admission.clone(),
            kept.envelope.clone(),
            tokio_stream::iter(slices),
        ))
    }

    fn begin_salvage(&self, wanted: &FileRange) -> Result<Salvage, ClientError> {
        let (kept, range) = self.open(wanted)?;
        let of = Arc::clone(&kept);
        let parts = pieces(range.clone(), CHUNK);
        let parts = parts.map(move |piece| of.part(&piece).map(SalvagedPart::Bytes));
        Ok(Salvage::new(
            kept.admission.clone(),
            kept.envelope.clone(),
            range,
            tokio_stream::iter(parts),
        ))
    }

    fn begin_listing(&self, selection: &Selection) -> Result<Listing, ClientError> {
        let pattern = NamePattern::parse(selection.matching.as_deref().unwrap_or_default());
        let pattern = pattern.map_err(|error| {
            let refused = InvalidMessage::invalid_field("match", error.to_string());
            ClientError::Invalid(refused.to_string())
        })?;
        let replica = match &selection.replica {
            None => None,
            Some(id) => {
                let mut replicas = self.shared.replicas.iter();
                let found = replicas.find(|replica| replica.id == *id);
                Some(found.ok_or_else(|| {
                    ClientError::NotFound(format!("replica {id} is not in the settings"))
                })?)
            }
        };
        let after = selection.after.as_ref();
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.state();
        let files = state.files.range::<FileName, _>((after, Bound::Unbounded));
        let is_wanted = |name: &FileName| pattern.matches(name.as_str());
        let mut items: Vec<_> = files
            .filter(|(name, _)| is_wanted(name))
            .map(|(_, kept)| Ok(ListItem::Entry(Box::new(self.entry(kept, replica)))))
            .collect();
        items.push(Ok(ListItem::End(Completeness {
            count: items.len() as u64,
            gaps: Vec::new(),
        })));
        Ok(Listing::new(tokio_stream::iter(items)))
    }

    fn entry(&self, kept: &KeptFile, replica: Option<&Replica>) -> ListEntry {
        let name = &kept.admission.name;
        let size = kept.admission.size;
        let root = kept.admission.root;
        match replica {
            Some(replica) => replica.file_copy(name, size, root, kept.completed).into(),
            None => ListEntry {
                name: name.clone(),
                size,
                root: Some(root),
                found: None,
                replicas: self.statuses(kept),
            },
        }
    }

    fn overview(&self) -> ArchiveStatus {
        let mut state = self.state();
        let now = state.now();
        let bytes = state.files.values().map(|kept| kept.admission.size).sum();
        let replicas = self.shared.replicas.iter();
        ArchiveStatus {
            replicas: replicas
                .map(|replica| replica.replica_overview(bytes, now))
                .collect(),
            files: state.files.len() as u64,
            bytes,
            below_required: 0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            anomalies: std::collections::BTreeMap::new(),
            held: None,
            drains: Vec::new(),
            problems: Vec::new(),
        }
    }
}

impl KeptFile {
    fn part(&self, range: &Range<u64>) -> Result<Bytes, ClientError> {
        let at = |offset| usize::try_from(offset).map_err(|error| bug(&error));
        Ok(self.bytes.slice(at(range.start)?..at(range.end)?))
    }

    fn prove(&self, range: Range<u64>) -> Result<Slice, ClientError> {
        let mut encoded = Vec::new();
        let copy = CopyBytes {
            data: &self.bytes.as_ref(),
            outboard: Some(&self.outboard),
        };
        let ranges = std::slice::from_ref(&range);
        let proven = encode_ranges(copy, self.admission.content(), ranges, &mut encoded);
        proven.map_err(|error| bug(&error))?;
        Ok(Slice {
            range,
            encoded: encoded.into(),
        })
    }
}

impl Access for FakeArchive {
    fn get<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, FileStream> {
        Box::pin(async move { self.begin_reading(wanted) })
    }

    fn slices<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, Slices> {
        Box::pin(async move { self.begin_slices(wanted) })
    }

    fn salvage<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, Salvage> {
        Box::pin(async move { self.begin_salvage(wanted) })
    }

    fn list<'a>(&'a self, selection: &'a Selection) -> CallFuture<'a, Listing> {
        Box::pin(async move { self.begin_listing(selection) })
    }

    fn receipt<'a>(&'a self, name: &'a FileName) -> CallFuture<'a, HeldReceipt> {
        Box::pin(async move {
            let kept = self.find(name).ok_or_else(|| unknown(name))?;
            self.vouch(&kept)
        })
    }

    fn changes<'a>(
        &'a self,
        after: Option<&'a FeedPosition>,
    ) -> CallFuture<'a, ArchiveSteps<FeedStep>> {
        Box::pin(async move { Ok(self.begin_changes(after)) })
    }

    fn status(&self) -> CallFuture<'_, ArchiveStatus> {
        Box::pin(async move { Ok(self.overview()) })
    }
}

/// Cuts a range into pieces of at most `most` bytes.
fn pieces(range: Range<u64>, most: u64) -> impl Iterator<Item = Range<u64>> {
    let Range { mut start, end } = range;
    std::iter::from_fn(move || {
        let piece = start..end.min(start.saturating_add(most));
        start = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}
