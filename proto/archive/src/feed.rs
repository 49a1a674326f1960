//! Conversions of the feed between the wire and the model.

use archive_model::{ChangeKind, FeedChange, FeedFile, FeedPosition};
use archive_rpc::InvalidMessage;

use crate::{convert, wire};

impl From<FeedPosition> for wire::FeedPosition {
    fn from(position: FeedPosition) -> Self {
        let FeedPosition { number, lineage } = position;
        Self { number, lineage }
    }
}

impl From<wire::FeedPosition> for FeedPosition {
    fn from(message: wire::FeedPosition) -> Self {
        let wire::FeedPosition { number, lineage } = message;
        Self { number, lineage }
    }
}

impl From<ChangeKind> for wire::ChangeKind {
    fn from(kind: ChangeKind) -> Self {
        match kind {
            ChangeKind::Stored => Self::Stored,
            ChangeKind::Withdrawn => Self::Withdrawn,
            ChangeKind::Restored => Self::Restored,
            ChangeKind::NewRoot => Self::NewRoot,
        }
    }
}

impl From<FeedFile> for wire::FeedFile {
    fn from(file: FeedFile) -> Self {
        Self {
            name: file.name.to_string(),
            size: file.size,
            root: convert::root_bytes(&file.root),
        }
    }
}

impl TryFrom<wire::FeedFile> for FeedFile {
    type Error = InvalidMessage;

    fn try_from(message: wire::FeedFile) -> Result<Self, InvalidMessage> {
        Ok(Self {
            name: convert::file_name("name", &message.name)?,
            size: message.size,
            root: convert::read_root("root", &message.root)?,
        })
    }
}

impl From<FeedChange> for wire::FeedChange {
    fn from(change: FeedChange) -> Self {
        Self {
            position: Some(change.position.into()),
            kind: wire::ChangeKind::from(change.kind).into(),
            file: Some(change.file.into()),
        }
    }
}

impl TryFrom<wire::FeedChange> for FeedChange {
    type Error = InvalidMessage;

    fn try_from(message: wire::FeedChange) -> Result<Self, InvalidMessage> {
        let kind = match message.kind() {
            wire::ChangeKind::Stored => ChangeKind::Stored,
            wire::ChangeKind::Withdrawn => ChangeKind::Withdrawn,
            wire::ChangeKind::Restored => ChangeKind::Restored,
            wire::ChangeKind::NewRoot => ChangeKind::NewRoot,
            wire::ChangeKind::Unspecified => {
                let said = format!("is {}, which this build does not know", message.kind);
                return Err(InvalidMessage::invalid_field("kind", said));
            }
        };
        let position = message.position;
        let position = position.ok_or_else(|| InvalidMessage::missing_field("position"))?;
        let file = message
            .file
            .ok_or_else(|| InvalidMessage::missing_field("file"))?;
        Ok(Self {
            position: position.into(),
            kind,
            file: file.try_into()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use archive_model::{FileName, Root};

    use super::*;

    fn change(kind: ChangeKind) -> FeedChange {
        FeedChange {
            position: FeedPosition {
                number: u64::MAX,
                lineage: u64::MAX - 1,
            },
            kind,
            file: FeedFile {
                name: FileName::new("a b~ø.warc.gz").unwrap(),
                size: 7,
                root: Root::from_bytes([9; 32]),
            },
        }
    }

    /// Fails if a kind is lost or becomes another on the wire.
    #[test]
    fn every_change_survives_the_wire() {
        for kind in [
            ChangeKind::Stored,
            ChangeKind::Withdrawn,
            ChangeKind::Restored,
            ChangeKind::NewRoot,
        ] {
            let message = wire::FeedChange::from(change(kind));
            assert_eq!(FeedChange::try_from(message), Ok(change(kind)));
        }
    }

    /// Fails if a change that lacks a field, or is of a later release, passes for another one.
    #[test]
    fn broken_change_names_its_field() {
        type Break = fn(&mut wire::FeedChange);
        let breaks: [(Break, &str); 5] = [
            (|change| change.position = None, "position"),
            (|change| change.file = None, "file"),
            (|change| change.kind = 0, "kind"),
            (|change| change.kind = 99, "kind"),
            (
                |change| change.file.get_or_insert_default().root = vec![1; 31].into(),
                "root",
            ),
        ];
        for (damage, field) in breaks {
            let mut message = wire::FeedChange::from(change(ChangeKind::Stored));
            damage(&mut message);
            assert_eq!(FeedChange::try_from(message).unwrap_err().field, field);
        }
    }
}
