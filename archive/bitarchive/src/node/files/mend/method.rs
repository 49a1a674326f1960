//! The two methods of a mend: a second copy beside the old one, or a journal if there is no room for two.

use archive_durable::{
    DiskError, DiskSeverity, Journal, JournalWriter, JournaledGroups, RepairedCopy, Stage,
};
use archive_model::{MendOrder, Root};
use archive_proof::TreeBuilder;

use crate::catalog::CatalogEntry;
use crate::error::NodeError;
use crate::layout::{Layout, MendPaths};
use crate::node::disks::NodeDisks;

/// The source of bytes of the new copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockSource {
    /// The old copy.
    Kept,
    /// The segments that were sent, which are proven.
    Sent,
}

/// The method of a mend that is under way.
#[derive(Debug)]
pub(super) enum MendMethod {
    /// All bytes are written again, beside the old copy.
    Beside(Box<Stage>),
    /// New groups are written to a journal; groups that stay are only hashed.
    InPlace(Box<InPlace>),
}

#[derive(Debug)]
pub(super) struct InPlace {
    journal: JournalWriter,
    tree: TreeBuilder<std::io::Sink>,
}

/// A mend that has all its bytes, and whose bytes hash to the root.
#[derive(Debug)]
pub(super) enum MendedCopy {
    /// A durable copy, to be read back.
    Beside(RepairedCopy),
    /// A whole journal, to be applied.
    InPlace(Journal),
}

impl MendMethod {
    /// Chooses a second copy if the volume has room for it above the reserve, and a journal otherwise.
    pub(super) fn choose_method(
        disks: &NodeDisks,
        entry: &CatalogEntry,
        layout: &Layout,
        order: &MendOrder,
    ) -> Result<Self, NodeError> {
        let beside = MendPaths::new(layout, &entry.name);
        let blame = |error| disks.blame_disk(&entry.volume, error);
        let size = entry.row.size;
        if disks.volumes.room_on(layout)? >= size {
            let stage = Stage::create(&beside.incoming, &beside.copy).map_err(blame)?;
            match stage.reserve_space(size) {
                Ok(_) => return Ok(Self::Beside(Box::new(stage))),
                Err(error) if error.severity() == DiskSeverity::NoSpace => {
                    stage.discard().map_err(blame)?;
                }
                Err(error) => return Err(blame(error)),
            }
        }
        tracing::info!(file = %entry.name, volume = %entry.volume, size, "no room for a second copy; it is mended in place");
        let change = JournaledGroups {
            name: entry.name.clone(),
            size,
            root: order.root,
            groups: order.groups.clone(),
        };
        let in_place = InPlace {
            journal: JournalWriter::create(&beside.journal, &change).map_err(blame)?,
            tree: TreeBuilder::new(std::io::sink()),
        };
        Ok(Self::InPlace(Box::new(in_place)))
    }

    pub(super) const fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace(_))
    }

    pub(super) fn put_block(&mut self, bytes: &[u8], source: BlockSource) -> Result<(), DiskError> {
        match self {
            Self::Beside(stage) => stage.write_all(bytes),
            Self::InPlace(in_place) => {
                in_place
                    .tree
                    .update(bytes)
                    .map_err(|error| DiskError::new("hash", std::path::Path::new(""), error))?;
                match source {
                    BlockSource::Kept => Ok(()),
                    BlockSource::Sent => in_place.journal.append(bytes),
                }
            }
        }
    }

    /// Ends the bytes. Returns `None` if they do not have the root; nothing was touched then.
    pub(super) fn finish_copy(
        self,
        size: u64,
        root: Root,
    ) -> Result<Option<MendedCopy>, DiskError> {
        match self {
            Self::Beside(stage) => {
                let received = stage.finish()?;
                if received.size() != size || received.root() != root {
                    return Ok(None);
                }
                RepairedCopy::settle_repair(received).map(|copy| Some(MendedCopy::Beside(copy)))
            }
            Self::InPlace(in_place) => {
                let InPlace { journal, tree } = *in_place;
                if tree.size() != size || tree.root_so_far() != root {
                    return Ok(None);
                }
                Ok(journal.finish()?.map(MendedCopy::InPlace))
            }
        }
    }
}
