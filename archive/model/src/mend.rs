//! The mend of a copy: the part of a repair that a node does.

use crate::checksum::Root;
use crate::file_name::FileName;
use crate::groups::Groups;
use crate::replica::VolumeId;

/// An order to a node to mend one of its copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MendOrder {
    /// The file.
    pub name: FileName,
    /// The volume of the copy; absent: the node has only one copy.
    pub volume: Option<VolumeId>,
    /// The root that the copy must have.
    pub root: Root,
    /// The groups that are sent.
    pub groups: Groups,
    /// The person or part that asked for the mend, as `role/name`.
    pub who: String,
    /// The reason that the person or part gave; may be empty.
    pub why: String,
}
