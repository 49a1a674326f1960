//! The choice of the copy of a file that a job reads.

use archive_bitarchive::{CatalogEntry, Condition, Layout, Node, NodeError};
use archive_durable::VolumeProblem;
use archive_model::{FileName, Root, VolumeId};

use crate::names::is_admitted;

/// The copies of a file on this node now, and the one that is read.
#[derive(Debug)]
pub(crate) enum Pick {
    /// The best copy that is online is read.
    Read(PickedCopy),
    /// The node knows the file, and it is on no disk.
    Missing { entry: CatalogEntry, root: Root },
    /// The file may be on volumes that are offline.
    Offline(Vec<(VolumeId, String)>),
    /// The file was never here as a file of the archive, or was removed since its name was read.
    Gone,
}

/// The copy of a file that a job reads.
#[derive(Debug)]
pub(crate) struct PickedCopy {
    pub(crate) entry: CatalogEntry,
    /// The root that its bytes are proven against.
    pub(crate) root: Root,
    pub(crate) layout: Layout,
}

/// Looks the file up again: its name may have been read hours ago.
pub(crate) fn pick_copy(node: &Node, name: &FileName) -> Result<Pick, NodeError> {
    let mut missing = None;
    let mut offline = Vec::new();
    for entry in node.files.find_copies(name)? {
        let (true, Some(root)) = (is_admitted(&entry.row), entry.row.root) else {
            continue;
        };
        match node.disks.find_layout(&entry.volume) {
            Ok(layout) if !matches!(entry.row.condition, Condition::Missing { .. }) => {
                return Ok(Pick::Read(PickedCopy {
                    entry,
                    root,
                    layout,
                }));
            }
            Ok(_)
            | Err(NodeError::Offline {
                problem: VolumeProblem::Retired,
                ..
            }) => {
                missing.get_or_insert((entry, root));
            }
            Err(other) => offline.push((entry.volume, other.to_string())),
        }
    }
    Ok(match missing {
        _ if !offline.is_empty() => Pick::Offline(offline),
        Some((entry, root)) => Pick::Missing { entry, root },
        None => Pick::Gone,
    })
}
