//! The effect of a new look at one file in one replica on the anomalies that are filed of it. Pure.
//!
//! Owns the rule: what is found is filed, once for each kind; what was filed and is not found any more is closed, but
//! only by a look that could have seen it. Nothing that nobody looked for is ever closed, and what was accepted stays
//! accepted until it gets worse.
//!
//! Not promised: that a look is honest. Whether everybody was asked is for the caller to say, by the [`LookQuality`].

mod table;
#[cfg(test)]
mod tests;

use archive_model::{
    AnomalyKind, CopyPlace, FileName, Finder, Groups, NodeId, ReplicaId, VolumeId,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use table::{Anomalies, AnomalyRow, Filing, LookResult};

/// A finder on disk and in exports: by the name of its variant. Its order is part of the format.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Finder")]
enum FinderOnDisk {
    Scrub,
    ScheduledCheck,
    Check,
    Read,
}

/// An anomaly as it is kept on disk. What parts say of it to each other is an [`archive_model::FiledAnomaly`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnomalyRecord {
    /// The permanent number of the anomaly.
    pub id: u64,
    /// The kind of anomaly.
    pub kind: AnomalyKind,
    /// The size of the file in bytes; 0 where it is not known.
    pub size: u64,
    /// The node where the copy is, or should be.
    pub node: Option<NodeId>,
    /// The volume of that node.
    pub volume: Option<VolumeId>,
    /// The time when the anomaly was first found.
    pub since: Timestamp,
    /// The time when the anomaly was last found.
    pub seen: Timestamp,
    /// The time when a second look, past every cache, last found the same.
    pub confirmed: Option<Timestamp>,
    /// The finder.
    #[serde(with = "FinderOnDisk")]
    pub found_by: Finder,
    /// The time since when people live with the anomaly, and the reason; `None` if they do not.
    pub accepted: Option<DatedReason>,
    /// The result of the last attempt to repair the anomaly.
    pub note: Option<String>,
    /// Whether the anomaly counts as one more file that needs repair, because nothing else was filed of this copy.
    pub is_first: bool,
}

/// The time and the reason of an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedReason {
    /// The time of the end.
    pub at: Timestamp,
    /// The reason of the end.
    pub why: String,
}

/// An anomaly that was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedAnomaly {
    /// The file.
    pub file: FileName,
    /// The replica.
    pub replica: ReplicaId,
    /// The row as it was while it was open.
    pub filed: AnomalyRecord,
    /// The time and the reason of the closing.
    pub ended: DatedReason,
}

/// The quality of a look, and so what can be said not to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookQuality {
    /// The look asked every volume which copies it has, and all answered.
    Listing,
    /// A good copy was listed; somebody else could not be asked.
    Glimpse,
    /// The copy was read again, whole, past the cache.
    Bytes,
    /// The look asked every volume which copies it has, all answered, and this copy is not among them any more.
    Absent,
    /// The look had no answer.
    Nothing,
}

impl LookQuality {
    /// Whether an anomaly of this kind is over if a look of this quality did not find it.
    pub const fn can_judge(self, kind: &AnomalyKind) -> bool {
        use AnomalyKind as K;
        match self {
            Self::Listing => match kind {
                K::Missing
                | K::Incomplete
                | K::Unexpected
                | K::Duplicate(_)
                | K::Conflicting(_)
                | K::Disputed(_)
                | K::Unverified { .. }
                | K::Transient => true,
                // A catalog only remembers the bytes as they were when they were last read.
                K::Corrupt(_) | K::Unreadable(_) | K::Lost(_) => false,
            },
            Self::Glimpse => matches!(
                kind,
                K::Missing | K::Incomplete | K::Unexpected | K::Unverified { .. }
            ),
            Self::Bytes => matches!(
                kind,
                K::Missing
                    | K::Incomplete
                    | K::Unexpected
                    | K::Corrupt(_)
                    | K::Unreadable(_)
                    | K::Unverified { .. }
            ),
            Self::Absent => is_damage(kind),
            Self::Nothing => false,
        }
    }

    const fn saw(self) -> &'static str {
        match self {
            Self::Listing | Self::Glimpse => "the replica lists the file as it should be",
            Self::Bytes => "the copy was read again, whole, and is good there",
            Self::Absent => "the copy is not there any more",
            Self::Nothing => "",
        }
    }
}

/// A look at one file in one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The kinds that were found; at most one of each.
    pub found: Vec<AnomalyKind>,
    /// The quality of the look.
    pub quality: LookQuality,
    /// The finder.
    pub by: Finder,
    /// Whether the look was a second one, past every cache: it confirms anomalies that were filed before.
    pub is_second: bool,
    /// The size of the file, if it is known.
    pub size: u64,
    /// The place where the copy is, or should be.
    pub place: Option<CopyPlace>,
}

impl Look {
    /// Whether the filed anomaly is over, if this look did not find it. A look at one copy says nothing of another copy
    /// in the same replica.
    fn judges(&self, old: &AnomalyRecord) -> bool {
        let is_of_all = self.quality == LookQuality::Listing || !is_of_one_copy(&old.kind);
        let is_there = |place: &CopyPlace| old.is_at(place);
        self.quality.can_judge(&old.kind) && (is_of_all || self.place.as_ref().is_none_or(is_there))
    }

    /// Whether what is filed is what was found now: damage is of one copy, all else of the replica.
    fn finds(&self, old: &AnomalyRecord, kind: &AnomalyKind) -> bool {
        let is_there = |place: &CopyPlace| old.is_at(place);
        old.kind.class() == kind.class()
            && (!is_damage(kind) || self.place.as_ref().is_none_or(is_there))
    }
}

impl AnomalyRecord {
    /// Whether the anomaly may be of the copy in this place; an anomaly that names no place may be of any copy.
    pub fn is_at(&self, place: &CopyPlace) -> bool {
        let is_node = self.node.as_ref().is_none_or(|of| *of == place.node);
        is_node && self.volume.as_ref().is_none_or(|of| *of == place.volume)
    }

    /// Returns the place of the copy, if the anomaly names it.
    pub fn place(&self) -> Option<CopyPlace> {
        Some(CopyPlace {
            node: self.node.clone()?,
            volume: self.volume.clone()?,
        })
    }

    /// Returns the key under which the anomaly is filed, for one file in one replica: its kind and, if it is damage,
    /// the copy.
    pub fn slot_key(&self) -> String {
        let word = self.kind.class();
        match (&self.node, &self.volume) {
            (Some(node), Some(volume)) if is_damage(&self.kind) => {
                format!("{word} {node} {volume}")
            }
            (_, _) => word.to_string(),
        }
    }
}

/// A consequence of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnomalyChange {
    /// The anomaly is new, and is filed.
    File(AnomalyRecord),
    /// The anomaly was filed before, and is now as given here.
    Update(AnomalyRecord),
    /// The anomaly was accepted, and is now worse than what was accepted.
    Reopen(AnomalyRecord),
    /// The anomaly is over: it is closed, for this reason.
    Close(AnomalyRecord, String),
}

/// Returns the consequences of `look`, given what is filed of the same file and replica. New ones get ids from
/// `next_id` on.
pub fn compare_kinds(
    filed: &[AnomalyRecord],
    look: &Look,
    now: Timestamp,
    next_id: u64,
) -> Vec<AnomalyChange> {
    let mut changes = Vec::new();
    let mut ids = next_id..;
    let mut is_first = !filed.iter().any(|old| needs_repair(&old.kind));
    for kind in &look.found {
        let old = filed.iter().find(|old| look.finds(old, kind));
        let Some(old) = old else {
            let counts = is_first && needs_repair(kind);
            is_first &= !counts;
            let place = look.place.as_ref();
            changes.push(AnomalyChange::File(AnomalyRecord {
                id: ids.next().unwrap_or(u64::MAX),
                kind: kind.clone(),
                size: look.size,
                node: place.map(|place| place.node.clone()),
                volume: place.map(|place| place.volume.clone()),
                since: now,
                seen: now,
                confirmed: None,
                found_by: look.by,
                accepted: None,
                note: None,
                is_first: counts,
            }));
            continue;
        };
        let mut new = AnomalyRecord {
            kind: kind.clone(),
            seen: now,
            ..old.clone()
        };
        if let Some(CopyPlace { node, volume }) = &look.place {
            new.node = Some(node.clone());
            new.volume = Some(volume.clone());
        }
        if look.is_second {
            new.confirmed = Some(now);
        }
        if look.by.is_automatic() && !old.found_by.is_automatic() {
            new.found_by = look.by;
        }
        if new.accepted.is_some() && is_worse(kind, &old.kind) {
            new.accepted = None;
            new.confirmed = None;
            changes.push(AnomalyChange::Reopen(new));
        } else {
            if new.accepted.is_some() {
                // The accepted kind stays: it is the worst that people have accepted.
                new.kind = old.kind.clone();
            }
            changes.push(AnomalyChange::Update(new));
        }
    }
    for old in filed {
        let is_found = look.found.iter().any(|kind| look.finds(old, kind));
        if !is_found && look.judges(old) {
            changes.push(AnomalyChange::Close(
                old.clone(),
                look.quality.saw().to_owned(),
            ));
        }
    }
    changes
}

/// Returns the consequence for a loss that is filed, now that these groups of the file were found good in some copy.
pub fn found_again(lost: &AnomalyRecord, good: &Groups) -> Option<AnomalyChange> {
    let AnomalyKind::Lost(ranges) = &lost.kind else {
        return None;
    };
    let groups = Groups::groups_touching(ranges.iter().map(|(start, end)| *start..*end));
    let left = groups.difference(good);
    if left == groups {
        return None;
    }
    if left.is_empty() {
        let why = "every lost group was found good in some copy".to_owned();
        return Some(AnomalyChange::Close(lost.clone(), why));
    }
    let ranges = left.byte_ranges(lost.size);
    Some(AnomalyChange::Update(AnomalyRecord {
        kind: AnomalyKind::Lost(ranges.map(|range| (range.start, range.end)).collect()),
        ..lost.clone()
    }))
}

/// Whether the kind is about one copy, rather than about all that a replica has of the file.
pub const fn is_of_one_copy(kind: &AnomalyKind) -> bool {
    is_damage(kind) || matches!(kind, AnomalyKind::Unexpected)
}

/// Whether some bytes of a copy are not good.
pub const fn is_damage(kind: &AnomalyKind) -> bool {
    matches!(kind, AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_))
}

/// Whether the kind is damage or absence, which the brake counts.
pub const fn needs_repair(kind: &AnomalyKind) -> bool {
    matches!(
        kind,
        AnomalyKind::Missing | AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_)
    )
}

/// Whether `now` is no more than `then`: of the same kind, and no worse.
pub fn is_within(now: &AnomalyKind, then: &AnomalyKind) -> bool {
    now.class() == then.class() && !is_worse(now, then)
}

/// Whether `new` is more than what was accepted as `old`, which is of the same kind.
fn is_worse(new: &AnomalyKind, old: &AnomalyKind) -> bool {
    use AnomalyKind as K;
    match (new, old) {
        (K::Corrupt(new) | K::Unreadable(new), K::Corrupt(old) | K::Unreadable(old)) => {
            !new.difference(old).is_empty()
        }
        (K::Lost(new), K::Lost(old)) => {
            let groups = |ranges: &[(u64, u64)]| {
                Groups::groups_touching(ranges.iter().map(|(start, end)| *start..*end))
            };
            !groups(new).difference(&groups(old)).is_empty()
        }
        (K::Duplicate(new), K::Duplicate(old)) => new.iter().any(|node| !old.contains(node)),
        (K::Conflicting(new) | K::Disputed(new), K::Conflicting(old) | K::Disputed(old)) => {
            new != old
        }
        (
            K::Unverified { node, volume },
            K::Unverified {
                node: old_node,
                volume: old_volume,
            },
        ) => node != old_node || (old_volume.is_some() && volume != old_volume),
        (
            K::Missing
            | K::Incomplete
            | K::Unexpected
            | K::Unverified { .. }
            | K::Transient
            | K::Corrupt(_)
            | K::Unreadable(_)
            | K::Lost(_)
            | K::Duplicate(_)
            | K::Conflicting(_)
            | K::Disputed(_),
            _,
        ) => false,
    }
}
