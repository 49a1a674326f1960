//! The items of an attic: copies, and parts of them, that were put aside.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::approval::Approval;
use crate::closed_set::closed_set;
use crate::file_name::FileName;
use crate::limits::LONGEST_ID;
use crate::replica::{InvalidId, NodeId, ReplicaId, VolumeId};

closed_set! {
    /// The kinds of what was put aside.
    AtticKind {
        /// A whole file with its sidecar and outboard.
        File = "file",
        /// Groups of a file that were replaced by a repair.
        Groups = "groups",
        /// The rest of an interrupted store.
        Leftover = "leftover",
        /// A row of a checksum replica, which lies in no attic: it cannot be restored or destroyed.
        Row = "row",
    }
}

/// The place of an item in an attic. As text it is `REPLICA/NODE/VOLUME/ID`.
///
/// ```
/// use archive_model::AtticPlace;
///
/// let place: AtticPlace = "two/two-1/disk-1/20260101T000000Z-file".parse()?;
/// assert_eq!(place.volume.as_str(), "disk-1");
/// assert_eq!(place.to_string(), "two/two-1/disk-1/20260101T000000Z-file");
/// # Ok::<(), archive_model::InvalidAtticPlace>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AtticPlace {
    /// The replica of the node.
    pub replica: ReplicaId,
    /// The node that has the volume.
    pub node: NodeId,
    /// The volume that has the attic.
    pub volume: VolumeId,
    /// The id of the item: its directory in the attic of the volume.
    pub id: String,
}

/// An item of an attic, as its node says. The JSON is what `holdfast attic list --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtticItem {
    /// The place of the item. Its id is empty for a row only, which lies in no attic.
    pub place: AtticPlace,
    /// The archived file that the item belongs to. Absent: the item has rotted, and its reason cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<FileName>,
    /// When the item was put aside. Absent: its reason cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The person or part that put the item aside. Empty: its reason cannot be read.
    pub who: String,
    /// The reason why the item was put aside, or what is wrong with an item that cannot be read.
    pub why: String,
    /// The kind of the item.
    pub kind: AtticKind,
    /// The bytes of the item.
    pub bytes: u64,
    /// The signed admission of a whole file or row, in a listing by its node and where it can be read.
    #[serde(skip)]
    pub admission: Option<String>,
    /// The two persons who had it put aside, if two had.
    #[serde(skip)]
    pub approval: Option<Approval>,
}

/// The reason why a text is not a place in an attic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAtticPlace {
    /// The text has not four parts.
    #[error("it is REPLICA/NODE/VOLUME/ID, as `holdfast attic list` prints it")]
    Form,
    /// A part of the text is no id.
    #[error(transparent)]
    Id(#[from] InvalidId),
}

/// Returns whether a text can be the id of an anomaly, a request or an item, and can be typed in a shell as it is.
pub fn is_typed_id(text: &str) -> bool {
    let safe =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '~' | '+');
    (1..=LONGEST_ID).contains(&text.len())
        && !text.starts_with(['-', '.'])
        && text.chars().all(safe)
}

impl AtticPlace {
    /// Returns the place in words, for a sentence.
    pub fn in_words(&self) -> impl fmt::Display {
        let Self {
            replica,
            node,
            volume,
            id,
        } = self;
        format!("{id} in the attic of volume {volume} of node {node}, replica {replica}")
    }
}

impl FromStr for AtticPlace {
    type Err = InvalidAtticPlace;

    fn from_str(text: &str) -> Result<Self, InvalidAtticPlace> {
        let mut parts = text.split('/');
        let mut part = || parts.next().ok_or(InvalidAtticPlace::Form);
        let replica = part()?;
        let node = part()?;
        let volume = part()?;
        let id = part()?;
        if parts.next().is_some() || !is_typed_id(id) {
            return Err(InvalidAtticPlace::Form);
        }
        Ok(Self {
            replica: replica.parse()?,
            node: node.parse()?,
            volume: volume.parse()?,
            id: id.to_owned(),
        })
    }
}

impl fmt::Display for AtticPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            replica,
            node,
            volume,
            id,
        } = self;
        write!(f, "{replica}/{node}/{volume}/{id}")
    }
}

impl Serialize for AtticPlace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a place that is printed cannot be typed again, or another text is taken for one.
    #[test]
    fn place_is_read_as_printed() {
        let text = "one/one-1/v0/20260101T000000Z-1a";
        let place: AtticPlace = text.parse().unwrap();
        assert_eq!(place.to_string(), text);
        assert_eq!(serde_json::to_value(&place).unwrap(), text);
        assert_eq!(
            place.in_words().to_string(),
            "20260101T000000Z-1a in the attic of volume v0 of node one-1, replica one"
        );
        for bad in [
            "",
            "one",
            "one/n/v",
            "one/n/v/",
            "one/n/v/x/y",
            "one/n/v/..",
            "One/n/v/x",
        ] {
            assert!(bad.parse::<AtticPlace>().is_err(), "{bad:?}");
        }
    }
}
