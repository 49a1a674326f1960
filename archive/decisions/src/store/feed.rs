//! The state of a file as followers of the feed know it, and the change between two states.
//!
//! Changes are a function of two records, before and after a decision. Not promised: that replicas can be read now; a
//! file that is damaged or silent everywhere still stands.

use archive_model::{ChangeKind, FeedFile, ReplicaKind};

use super::{FileRecord, NamePhase};

/// A file as its followers know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedState {
    /// The file was never acknowledged: no depositor may rely on it.
    Unknown,
    /// The file stands, with this content.
    Standing(FeedFile),
    /// People have taken it out of every replica that keeps bytes.
    Withdrawn,
}

impl FeedState {
    /// Returns the state of the file of this record, as followers see it.
    ///
    /// A file stands from the decision on that acknowledges it: every required replica had it once. Later losses are
    /// mended, and are no change.
    pub fn from_record(record: &FileRecord) -> Self {
        let was_acknowledged = match record.phase {
            NamePhase::Bound | NamePhase::Complete => true,
            NamePhase::Free | NamePhase::Intent { .. } | NamePhase::Incomplete => false,
        };
        let Some(content) = record.content.as_ref().filter(|_| was_acknowledged) else {
            return Self::Unknown;
        };
        let mut with_bytes = record
            .replicas
            .values()
            .filter(|copy| copy.kind == ReplicaKind::Bitarchive);
        if with_bytes.all(|copy| copy.state.is_withdrawn()) {
            return Self::Withdrawn;
        }
        Self::Standing(FeedFile {
            name: record.name.clone(),
            size: content.size,
            root: content.root,
        })
    }

    /// Derives the change that followers receive. Returns `None` where nothing has changed for them.
    pub fn feed_change(before: Self, after: Self) -> Option<(ChangeKind, FeedFile)> {
        match (before, after) {
            (Self::Unknown, Self::Standing(file)) => Some((ChangeKind::Stored, file)),
            (Self::Withdrawn, Self::Standing(file)) => Some((ChangeKind::Restored, file)),
            (Self::Standing(old), Self::Standing(new)) => {
                (old.root != new.root).then_some((ChangeKind::NewRoot, new))
            }
            // No record goes back to where it never stood; if one did, nobody could read the file any more.
            (Self::Standing(old), Self::Withdrawn | Self::Unknown) => {
                Some((ChangeKind::Withdrawn, old))
            }
            (Self::Unknown | Self::Withdrawn, Self::Unknown | Self::Withdrawn) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use archive_model::{Digests, FileName, ReplicaState, Root, StoreFailure};
    use jiff::Timestamp;

    use super::*;
    use crate::store::{Content, ReplicaRecord};

    /// Bitarchives `one` and `two` and the checksum replica `three`, in these states.
    fn record(phase: NamePhase, states: [&ReplicaState; 3]) -> FileRecord {
        let kinds = [
            ReplicaKind::Bitarchive,
            ReplicaKind::Bitarchive,
            ReplicaKind::Checksum,
        ];
        let copies = states.into_iter().zip(kinds).map(|(state, kind)| {
            let started = ReplicaRecord::started_record(kind, true, Timestamp::UNIX_EPOCH);
            ReplicaRecord {
                state: state.clone(),
                ..started
            }
        });
        let ids = ["one", "two", "three"].map(|id| id.parse().unwrap());
        FileRecord {
            name: FileName::new("a").unwrap(),
            phase,
            upload: None,
            content: Some(Content {
                root: Root::from_bytes([1; 32]),
                size: 7,
                digests: Digests::default(),
            }),
            replicas: ids.into_iter().zip(copies).collect::<BTreeMap<_, _>>(),
        }
    }

    fn file(root: u8) -> FeedFile {
        FeedFile {
            name: FileName::new("a").unwrap(),
            size: 7,
            root: Root::from_bytes([root; 32]),
        }
    }

    /// Fails if the feed has a file on which no depositor may rely, or withdraws one that only lost copies.
    #[test]
    fn file_stands_from_its_acknowledgement_on() {
        let done = &ReplicaState::UploadCompleted;
        let open = &ReplicaState::UploadStarted;
        let gone = &ReplicaState::UploadFailed(StoreFailure::Gone("lost".to_owned()));
        let out = &ReplicaState::Withdrawn("r-1".to_owned());
        let expires = Timestamp::MAX;
        for (phase, states, expected) in [
            (NamePhase::Free, [open, open, open], FeedState::Unknown),
            (
                NamePhase::Intent { expires },
                [open, open, open],
                FeedState::Unknown,
            ),
            (
                NamePhase::Incomplete,
                [done, open, open],
                FeedState::Unknown,
            ),
            (
                NamePhase::Bound,
                [done, done, open],
                FeedState::Standing(file(1)),
            ),
            (
                NamePhase::Complete,
                [done, done, done],
                FeedState::Standing(file(1)),
            ),
            (
                NamePhase::Bound,
                [gone, gone, gone],
                FeedState::Standing(file(1)),
            ),
            (
                NamePhase::Complete,
                [out, done, done],
                FeedState::Standing(file(1)),
            ),
            (
                NamePhase::Bound,
                [out, gone, done],
                FeedState::Standing(file(1)),
            ),
            // A checksum replica has no bytes that could be read.
            (NamePhase::Complete, [out, out, done], FeedState::Withdrawn),
            (NamePhase::Complete, [out, out, out], FeedState::Withdrawn),
            (NamePhase::Incomplete, [out, out, open], FeedState::Unknown),
        ] {
            let record = record(phase, states);
            assert_eq!(
                FeedState::from_record(&record),
                expected,
                "{phase:?} {states:?}"
            );
        }
    }

    /// Fails if a change is reported as another one, or if what is no change is reported at all.
    #[test]
    fn each_pair_of_states_has_its_change() {
        use FeedState::{Standing, Unknown, Withdrawn};
        let first = Standing(file(1));
        let second = Standing(file(2));
        for (before, after, expected) in [
            (&Unknown, &Unknown, None),
            (&Unknown, &first, Some((ChangeKind::Stored, file(1)))),
            (&Unknown, &Withdrawn, None),
            (&first, &first, None),
            (&first, &second, Some((ChangeKind::NewRoot, file(2)))),
            (&first, &Withdrawn, Some((ChangeKind::Withdrawn, file(1)))),
            (&first, &Unknown, Some((ChangeKind::Withdrawn, file(1)))),
            (&Withdrawn, &Withdrawn, None),
            (&Withdrawn, &second, Some((ChangeKind::Restored, file(2)))),
        ] {
            let change = FeedState::feed_change(before.clone(), after.clone());
            assert_eq!(change, expected, "{before:?} {after:?}");
        }
    }
}
