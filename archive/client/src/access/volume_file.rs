//! A file as it is on a volume, after something was done with it.

use archive_model::{FileName, Root};
use archive_rpc::InvalidMessage;
use proto_archive::{convert, wire};
use serde::Serialize;

use super::VolumeCopy;

/// A file on a volume of a node, with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeFile {
    /// The file.
    pub name: FileName,
    /// Its size in bytes.
    pub size: u64,
    /// Its root as admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Root>,
    /// Where and how it is.
    #[serde(flatten)]
    pub found: VolumeCopy,
}

impl TryFrom<wire::FileEntry> for VolumeFile {
    type Error = InvalidMessage;

    fn try_from(message: wire::FileEntry) -> Result<Self, InvalidMessage> {
        Ok(Self {
            name: convert::file_name("name", &message.name)?,
            size: message.size,
            root: convert::optional_root("root", &message.root)?,
            found: VolumeCopy::try_from(message)?,
        })
    }
}
