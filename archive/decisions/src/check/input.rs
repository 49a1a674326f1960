//! The two sides of a check, held to what an honest peer sends.

use std::cmp::Ordering;
use std::iter::Fuse;

use archive_model::{CopyPlace, FileCopy, FileName, Root, SilentPart};

use super::error::{CheckError, MOST_COPIES};
use super::report::{CheckReport, CheckSide};

/// The entry of the admin data for one file in the checked replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminEntry {
    /// The name.
    pub name: FileName,
    /// The expected content of the replica.
    pub expected: ExpectedCopy,
}

/// The expectation of a file in a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedCopy {
    /// A copy, by now: also in a replica that is new, or into which it could not be stored so far.
    Present {
        /// The admitted root.
        root: Root,
        /// The admitted size in bytes.
        size: u64,
        /// The place of the copy; `None` if the copy has not been seen in the replica yet.
        place: Option<CopyPlace>,
    },
    /// A copy whose store was never complete: its absence is no loss.
    Incomplete {
        /// The admitted root.
        root: Root,
        /// The admitted size in bytes.
        size: u64,
    },
    /// A copy that is being stored, repaired or moved at this time.
    InFlight {
        /// The admitted root; `None` while the bytes are still on their way.
        root: Option<Root>,
    },
    /// No copy: it was removed on purpose.
    Withdrawn,
}

/// An item of a replica's listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListingItem {
    /// A copy that can be read and has a root, ascending by name, then node, then volume.
    Entry(FileCopy),
    /// No further copy of this node, or of this volume of the node, will come. The copies before came whole.
    Silent(SilentPart),
    /// Every volume that is not silent has been listed to its end. A listing without this mark was cut.
    End,
}

/// The admin side: strictly ascending.
#[derive(Debug)]
pub(super) struct OrderedEntries<A> {
    source: Fuse<A>,
    last: Option<FileName>,
    head: Option<AdminEntry>,
}

impl<A: Iterator> OrderedEntries<A> {
    pub(super) fn new(source: A) -> Self {
        Self {
            source: source.fuse(),
            last: None,
            head: None,
        }
    }

    /// Returns the next entry without taking it. After an error the caller stops.
    pub(super) fn peek_entry<E>(&mut self) -> Result<Option<&AdminEntry>, CheckError>
    where
        A: Iterator<Item = Result<AdminEntry, E>>,
        E: std::fmt::Display,
    {
        if self.head.is_none() {
            self.head = self
                .source
                .next()
                .transpose()
                .map_err(|error| CheckError::Source(error.to_string()))?;
            let name = self.head.as_ref().map(|entry| entry.name.clone());
            if let Some(name) = name.clone().filter(|_| self.last >= name) {
                return Err(CheckError::OutOfOrder(name));
            }
            self.last = name;
        }
        Ok(self.head.as_ref())
    }

    /// Takes the entry that [`OrderedEntries::peek_entry`] shows.
    pub(super) fn take_entry(&mut self) -> Option<AdminEntry> {
        self.head.take()
    }
}

/// The replica's side: all copies of one name at a time.
#[derive(Debug)]
pub(super) struct Listing<L> {
    source: L,
    copies: Vec<FileCopy>,
    /// The first entry of the name after `copies`.
    next: Option<FileCopy>,
    finished: bool,
}

impl<L> Listing<L> {
    pub(super) const fn new(source: L) -> Self {
        Self {
            source,
            copies: Vec::new(),
            next: None,
            finished: false,
        }
    }

    /// Takes the copies that [`Listing::read_copies`] shows; those of the next name are read after that.
    pub(super) fn take_copies(&mut self) -> Vec<FileCopy> {
        std::mem::take(&mut self.copies)
    }

    /// Returns all copies of the next name; at the end there are none. Silence, the end and errors go to the report.
    pub(super) fn read_copies<F>(&mut self, report: &mut CheckReport) -> &[FileCopy]
    where
        L: Iterator<Item = Result<ListingItem, F>>,
        F: std::fmt::Display,
    {
        if self.copies.is_empty() {
            self.copies.extend(self.next.take());
            while !self.finished && self.next.is_none() {
                if let Err(error) = self.read(report) {
                    self.finished = true;
                    report.cut_side(CheckSide::Replica, error.to_string());
                }
            }
        }
        &self.copies
    }

    fn read<F>(&mut self, report: &mut CheckReport) -> Result<(), CheckError>
    where
        L: Iterator<Item = Result<ListingItem, F>>,
        F: std::fmt::Display,
    {
        match self.source.next() {
            None => Err(CheckError::Unended),
            Some(Err(error)) => Err(CheckError::Source(error.to_string())),
            Some(Ok(ListingItem::Silent(part))) => report.note_silence(part),
            Some(Ok(ListingItem::End)) if self.source.next().is_some() => Err(CheckError::AfterEnd),
            Some(Ok(ListingItem::End)) => {
                self.finished = true;
                report.listing_ended = true;
                Ok(())
            }
            Some(Ok(ListingItem::Entry(entry))) => {
                let order = self
                    .copies
                    .last()
                    .map(|last| (&last.name, &last.place).cmp(&(&entry.name, &entry.place)));
                if !matches!(order, None | Some(Ordering::Less))
                    || report.last > Some(entry.name.clone())
                {
                    return Err(CheckError::OutOfOrder(entry.name));
                }
                if self.copies.len() >= MOST_COPIES {
                    return Err(CheckError::TooManyCopies(entry.name));
                }
                report.listed += 1;
                report.last = Some(entry.name.clone());
                if self
                    .copies
                    .first()
                    .is_some_and(|first| first.name != entry.name)
                {
                    self.next = Some(entry);
                } else {
                    self.copies.push(entry);
                }
                Ok(())
            }
        }
    }
}
