//! A copy of a file, in both directions.

use archive_model::{CopyCondition, CopyPlace, FileCopy};
use archive_rpc::InvalidMessage;

use super::{
    file_name, group_ranges, node_id, optional_root, optional_timestamp, read_groups, root_bytes,
    timestamp, timestamp_message, unknown_value, volume_id,
};
use crate::wire;

/// Reads a copy.
///
/// # Errors
/// The first field that is missing or invalid.
pub fn file_copy(entry: &wire::FileEntry) -> Result<FileCopy, InvalidMessage> {
    Ok(FileCopy {
        name: file_name("name", &entry.name)?,
        size: entry.size,
        root: optional_root("root", &entry.root)?,
        place: CopyPlace {
            node: node_id(&entry.node)?,
            volume: volume_id(&entry.volume)?,
        },
        condition: condition(entry)?,
        stored: timestamp("stored", entry.stored)?,
        verified: optional_timestamp("verified", entry.verified)?,
    })
}

fn condition(entry: &wire::FileEntry) -> Result<CopyCondition, InvalidMessage> {
    match wire::CopyCondition::try_from(entry.condition) {
        Ok(wire::CopyCondition::Present) => Ok(CopyCondition::Present),
        Ok(wire::CopyCondition::Missing) => Ok(CopyCondition::Missing),
        Ok(wire::CopyCondition::Damaged) => Ok(CopyCondition::Damaged {
            corrupt: read_groups("corrupt", &entry.corrupt)?,
            unreadable: read_groups("unreadable", &entry.unreadable)?,
        }),
        Ok(wire::CopyCondition::Unexpected) => Ok(CopyCondition::Unexpected),
        Ok(wire::CopyCondition::Unspecified) => Err(InvalidMessage::missing_field("condition")),
        Err(_) => Err(unknown_value("condition", entry.condition)),
    }
}

/// Writes a copy.
pub fn file_entry(copy: FileCopy) -> wire::FileEntry {
    let (condition, corrupt, unreadable) = match &copy.condition {
        CopyCondition::Present => (wire::CopyCondition::Present, Vec::new(), Vec::new()),
        CopyCondition::Missing => (wire::CopyCondition::Missing, Vec::new(), Vec::new()),
        CopyCondition::Damaged {
            corrupt,
            unreadable,
        } => (
            wire::CopyCondition::Damaged,
            group_ranges(corrupt),
            group_ranges(unreadable),
        ),
        CopyCondition::Unexpected => (wire::CopyCondition::Unexpected, Vec::new(), Vec::new()),
    };
    wire::FileEntry {
        name: copy.name.into(),
        node: copy.place.node.into(),
        volume: copy.place.volume.into(),
        size: copy.size,
        root: copy.root.as_ref().map(root_bytes).unwrap_or_default(),
        condition: condition.into(),
        corrupt,
        unreadable,
        stored: Some(timestamp_message(copy.stored)),
        verified: copy.verified.map(timestamp_message),
    }
}

#[cfg(test)]
mod tests {
    use archive_model::{Groups, Root};
    use jiff::Timestamp;

    use super::*;

    fn copy(condition: CopyCondition) -> FileCopy {
        FileCopy {
            name: "a".parse().unwrap(),
            size: 7,
            root: Some(Root::from_bytes([3; 32])),
            place: CopyPlace {
                node: "n".parse().unwrap(),
                volume: "v".parse().unwrap(),
            },
            condition,
            stored: Timestamp::UNIX_EPOCH,
            verified: Some(Timestamp::UNIX_EPOCH),
        }
    }

    /// Fails if a field of a copy is lost on its way, or two are exchanged.
    #[test]
    fn copy_is_read_as_written() {
        let groups = |of: u64| Groups::try_from(vec![(of, of + 1)]).unwrap();
        let damaged = CopyCondition::Damaged {
            corrupt: groups(3),
            unreadable: groups(5),
        };
        for condition in [
            CopyCondition::Present,
            CopyCondition::Missing,
            damaged,
            CopyCondition::Unexpected,
        ] {
            let mut copy = copy(condition);
            assert_eq!(file_copy(&file_entry(copy.clone())), Ok(copy.clone()));
            (copy.root, copy.verified) = (None, None);
            assert_eq!(file_copy(&file_entry(copy.clone())), Ok(copy));
        }
    }

    /// Fails if a time changes on its way, or if one before 1970 has nanoseconds that another client refuses.
    #[test]
    fn every_time_is_read_as_written() {
        let near = [-1_000_000_001, -1_000_000_000, -999_999_999, -1, 0, 1];
        let near = near.map(|nanos| Timestamp::from_nanosecond(nanos).unwrap());
        let ends = [Timestamp::MIN, Timestamp::MAX];
        for time in near.into_iter().chain(ends) {
            let mut copy = copy(CopyCondition::Present);
            (copy.stored, copy.verified) = (time, Some(time));
            let entry = file_entry(copy.clone());
            let nanos = entry.stored.unwrap().nanos;
            assert!((0..1_000_000_000).contains(&nanos), "{time}: {nanos}");
            assert_eq!(file_copy(&entry), Ok(copy));
        }
    }

    /// Fails if a condition of a newer archive is guessed, or a field that breaks a rule is not named.
    #[test]
    fn field_that_breaks_rule_is_named() {
        let wrong = |change: fn(&mut wire::FileEntry)| {
            let mut entry = file_entry(copy(CopyCondition::Present));
            change(&mut entry);
            file_copy(&entry).unwrap_err().to_string()
        };
        assert!(wrong(|entry| entry.condition = 0).contains("`condition`"));
        assert!(wrong(|entry| entry.condition = 99).contains("99"));
        assert!(wrong(|entry| entry.volume.clear()).contains("`volume`"));
        assert!(wrong(|entry| entry.stored = None).contains("`stored`"));
        for (seconds, nanos) in [(i64::MAX, 0), (i64::MIN, 0), (0, -1), (0, 1_000_000_000)] {
            let mut entry = file_entry(copy(CopyCondition::Present));
            entry.verified = Some(prost_types::Timestamp { seconds, nanos });
            let error = file_copy(&entry).unwrap_err().to_string();
            assert!(error.contains("`verified`"), "{error}");
        }
        assert!(wrong(|entry| entry.name = "../a".to_owned()).contains("`name`"));
    }
}
