//! Orders to a node about its disks.

use crate::replica::VolumeId;

/// An order to a node about one of its disks. Paths are absolute, on the machine of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskOrder {
    /// Label the empty directory at a path as a new volume.
    Init(String, VolumeId),
    /// Take over the disk at a path that another node has labelled; with an id, only if it bears that one.
    Adopt(String, Option<VolumeId>),
    /// Trust a volume again after people have looked at it.
    Clear(VolumeId),
    /// Let a volume take new files.
    ReadWrite(VolumeId),
    /// Let a volume take no new files.
    ReadOnly(VolumeId),
    /// Let a volume take no new files, and its copies go to other places.
    Drain(VolumeId),
    /// Take a volume out of service for good.
    Retire(VolumeId),
    /// Take a retired volume back into service.
    Reinstate(VolumeId),
}
