//! What is to be mended, and where the bytes of the new copy come from.

use archive_model::{FileName, Groups, Root, VolumeId};

/// What is to be mended, with what, for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MendOrder {
    /// The file.
    pub name: FileName,
    /// The volume of the copy; none: the only one.
    pub volume: Option<VolumeId>,
    /// What the copy shall be.
    pub root: Root,
    /// The groups that are brought.
    pub groups: Groups,
    /// Who asked for it.
    pub who: String,
    /// Why.
    pub why: String,
}

/// Where bytes of the new copy come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockSource {
    /// The old copy.
    Kept,
    /// They were brought, and are proven.
    Brought,
}
