//! The progress of files on their way into the index: what a row says of it, one change of it, and the numbers of all.

use crate::rows::{FileRow, ProgressRow};

/// The progress of a file of the archive on its way into the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileProgress {
    /// The captures of the file have to be extracted, for the first time or again.
    Pending {
        /// The number of attempts that have failed.
        attempts: u32,
        /// The reason of the last failure.
        reason: Option<String>,
    },
    /// The captures of the file are in the index.
    Indexed,
    /// The file was read and has no capture, or is no file with captures.
    NothingToIndex,
    /// The file failed too often, and waits for a person.
    Parked {
        /// The number of attempts that have failed.
        attempts: u32,
        /// The reason of the last failure.
        reason: String,
    },
}

impl FileProgress {
    /// A file that was not tried yet.
    pub const PENDING: Self = Self::Pending {
        attempts: 0,
        reason: None,
    };
}

/// A change of what the index keeps of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    Progress(FileProgress),
    Note(Option<String>),
    Withdrawn(bool),
    Delete,
    /// The number under which the captures of the file were written, and how many they are; 0 is a file without
    /// captures.
    Captures(u32, u64),
}

/// The position up to which the archive was followed: kept in the same batch as the changes that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowPosition {
    /// The feed: another one numbers its changes anew.
    pub feed: String,
    /// The number of the last change that the index has heard of.
    pub position: u64,
}

/// Numbers of files and captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexCounts {
    /// Files that are pending, and not withdrawn.
    pub pending: u64,
    /// Files that are indexed, and not withdrawn.
    pub indexed: u64,
    /// Files without captures, and not withdrawn.
    pub nothing_to_index: u64,
    /// Files that are parked, and not withdrawn.
    pub parked: u64,
    /// Files that are withdrawn.
    pub withdrawn: u64,
    /// Captures of files that are shown.
    pub captures: u64,
    /// Imported sets.
    pub sets: u64,
    /// Captures that were imported with these sets.
    pub set_captures: u64,
}

impl IndexCounts {
    /// Counts a file, or counts it no more.
    pub(crate) fn count_file(&mut self, row: &FileRow, is_there: bool) {
        let add = |count: &mut u64, number: u64| {
            *count = if is_there {
                count.saturating_add(number)
            } else {
                count.saturating_sub(number)
            };
        };
        if row.is_withdrawn {
            add(&mut self.withdrawn, 1);
            return;
        }
        add(&mut self.captures, row.captures.map_or(0, |(_, n)| n));
        add(
            match row.progress {
                ProgressRow::Pending { .. } => &mut self.pending,
                ProgressRow::Indexed => &mut self.indexed,
                ProgressRow::Empty => &mut self.nothing_to_index,
                ProgressRow::Parked { .. } => &mut self.parked,
            },
            1,
        );
    }
}

impl From<ProgressRow> for FileProgress {
    fn from(row: ProgressRow) -> Self {
        match row {
            ProgressRow::Pending { attempts, reason } => Self::Pending { attempts, reason },
            ProgressRow::Indexed => Self::Indexed,
            ProgressRow::Empty => Self::NothingToIndex,
            ProgressRow::Parked { attempts, reason } => Self::Parked { attempts, reason },
        }
    }
}

impl From<FileProgress> for ProgressRow {
    fn from(progress: FileProgress) -> Self {
        match progress {
            FileProgress::Pending { attempts, reason } => Self::Pending { attempts, reason },
            FileProgress::Indexed => Self::Indexed,
            FileProgress::NothingToIndex => Self::Empty,
            FileProgress::Parked { attempts, reason } => Self::Parked { attempts, reason },
        }
    }
}
