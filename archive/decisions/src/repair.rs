//! One damaged or missing copy: what to move, from whom – and, in [`policy`], when.
//!
//! Owns the plan. It moves the damaged groups, not the file; it needs no intact copy, only every group intact
//! somewhere; and it writes into nothing but the copy that is damaged or absent, so that no good copy is ever planned
//! over.
//!
//! Not promised: that a donor is what it was last known to be. Every group of [`RepairPlan::to_verify`] is read and
//! proven first; where that fails, the copy is entered as damaged and the plan is made again.

pub mod policy;
#[cfg(test)]
mod tests;

use archive_model::{AnomalyKind, FileName, Groups, ReplicaId, ReplicaKind, Root};

/// The file, and which of its copies is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patient {
    /// The file.
    pub file: FileName,
    /// The admitted size of the file in bytes.
    pub size: u64,
    /// The replica whose copy is wrong.
    pub replica: ReplicaId,
    /// The damage that was found.
    pub kind: AnomalyKind,
}

/// The part of the admitted content in a replica as a whole, as far as is known: judged against the root, whatever the
/// conditions of its copies are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaContent {
    /// The replica.
    pub replica: ReplicaId,
    /// The kind of the replica: only bitarchives can give bytes.
    pub kind: ReplicaKind,
    /// The part of the content that the replica has.
    pub state: ContentState,
}

/// The part of the admitted content that a replica has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentState {
    /// Nothing is wrong with the content, as far as is known.
    Intact,
    /// The copy is damaged: these groups contradict the root or cannot be read.
    Damaged(Groups),
    /// The replica has no copy; also after a removal on purpose.
    Absent,
    /// The copy has another root, and has not been compared group by group yet: its good groups are not known.
    Other(Root),
    /// The replica cannot be asked at this time.
    Unreachable,
}

/// The plan for one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepairPlan {
    /// Copy the whole file into the replica that lacks it.
    Copy {
        /// The replica that gives the file.
        from: ReplicaId,
    },
    /// Replace these groups of the damaged copy by those of another copy.
    FetchGroups {
        /// The groups.
        groups: Groups,
        /// The replica that gives the groups.
        from: ReplicaId,
    },
    /// No copy is intact: put the groups together from several replicas.
    Salvage {
        /// The donors and the groups that each of them gives. Disjoint; together all that the patient needs.
        pieces: Vec<(ReplicaId, Groups)>,
    },
    /// Byte ranges of the file are good nowhere. Nothing is touched.
    Lost {
        /// The lost ranges as (start, end), ascending and half-open.
        ranges: Vec<(u64, u64)>,
    },
    /// A donor may be out of reach, or its copy was never compared group by group: plan again once it is known.
    Wait {
        /// The replicas whose copies are not known group by group.
        unknown: Vec<ReplicaId>,
    },
    /// Nothing is to be done.
    Nothing(NoRepairReason),
    /// People must decide.
    Officer(OfficerQuestion),
}

/// The reason why nothing is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRepairReason {
    /// The copy is intact by what is known now.
    #[error("the copy is intact")]
    Intact,
    /// The file is being stored, repaired or moved.
    #[error("it is on its way")]
    Transient,
    /// No node could look at the copy.
    #[error("nobody could look; check again when the volume is back")]
    Unverified,
    /// The store of the file was never complete.
    #[error(
        "its store was never complete: the archive completes it as far as some replica has the bytes; else store the file again"
    )]
    Incomplete,
    /// The replica has two good copies, which harm nobody.
    #[error("the replica has more than one good copy")]
    Duplicate,
}

/// The question that people must decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfficerQuestion {
    /// The replica has a file that nobody stored.
    #[error(
        "nothing vouches for this file; `repair` it if the archive knows it, else `adopt` it, or `remove` it by its own checksum"
    )]
    Unexpected,
    /// The replica has other content under the name.
    #[error("the replica holds other content; look at it, then `replace` it")]
    Conflicting,
    /// All copies contradict the record.
    #[error("all copies agree on another root than the recorded one; find out which is right")]
    Disputed,
}

/// Plans the repair of one copy. Donors are preferred in the order of `copies`; the patient's own entry may be among
/// them.
pub fn plan_repair(patient: &Patient, copies: &[ReplicaContent]) -> RepairPlan {
    let all = Groups::all(patient.size);
    let needed = match &patient.kind {
        AnomalyKind::Missing | AnomalyKind::Incomplete => all.clone(),
        // No honest node finds damage in groups past the end of the file.
        AnomalyKind::Corrupt(groups) | AnomalyKind::Unreadable(groups) => groups.intersection(&all),
        AnomalyKind::Lost(ranges) => {
            Groups::groups_touching(ranges.iter().map(|(start, end)| *start..*end))
                .intersection(&all)
        }
        AnomalyKind::Unexpected => return RepairPlan::Officer(OfficerQuestion::Unexpected),
        AnomalyKind::Conflicting(_) => return RepairPlan::Officer(OfficerQuestion::Conflicting),
        AnomalyKind::Disputed(_) => return RepairPlan::Officer(OfficerQuestion::Disputed),
        AnomalyKind::Duplicate(_) => return RepairPlan::Nothing(NoRepairReason::Duplicate),
        AnomalyKind::Unverified { .. } => return RepairPlan::Nothing(NoRepairReason::Unverified),
        AnomalyKind::Transient => return RepairPlan::Nothing(NoRepairReason::Transient),
    };
    let own = copies
        .iter()
        .find(|copy| copy.replica == patient.replica)
        .map(|copy| &copy.state);
    let is_absent = matches!(patient.kind, AnomalyKind::Missing | AnomalyKind::Incomplete);
    let (needed, whole) = match own {
        Some(ContentState::Intact) => return RepairPlan::Nothing(NoRepairReason::Intact),
        Some(ContentState::Unreachable) => {
            return RepairPlan::Wait {
                unknown: vec![patient.replica.clone()],
            };
        }
        Some(ContentState::Other(_)) => return RepairPlan::Officer(OfficerQuestion::Conflicting),
        Some(ContentState::Absent) => (all.clone(), true),
        // The copy is there after all, with damage: its good groups stay.
        Some(ContentState::Damaged(groups)) if is_absent => (groups.intersection(&all), false),
        Some(ContentState::Damaged(groups)) => (needed.union(groups).intersection(&all), false),
        None => (needed, is_absent),
    };
    if needed.is_empty() {
        return RepairPlan::Nothing(NoRepairReason::Intact);
    }
    let donors = || {
        copies
            .iter()
            .filter(|copy| copy.replica != patient.replica && copy.kind == ReplicaKind::Bitarchive)
    };
    if let Some(donor) = donors().find(|copy| copy.state == ContentState::Intact) {
        let from = donor.replica.clone();
        return if whole {
            RepairPlan::Copy { from }
        } else {
            RepairPlan::FetchGroups {
                groups: needed,
                from,
            }
        };
    }
    let mut left = needed;
    let mut pieces = Vec::new();
    for copy in donors() {
        let ContentState::Damaged(bad) = &copy.state else {
            continue;
        };
        let piece = left.difference(bad);
        if !piece.is_empty() {
            left = left.difference(&piece);
            pieces.push((copy.replica.clone(), piece));
        }
    }
    if left.is_empty() {
        return RepairPlan::Salvage { pieces };
    }
    // Lost is said only when every copy is known group by group: silence and an unlocated difference prove nothing.
    let is_unknown = |copy: &&ReplicaContent| {
        matches!(
            copy.state,
            ContentState::Unreachable | ContentState::Other(_)
        )
    };
    let unknown = donors()
        .filter(is_unknown)
        .map(|copy| copy.replica.clone())
        .collect::<Vec<_>>();
    if unknown.is_empty() {
        RepairPlan::Lost {
            ranges: left
                .byte_ranges(patient.size)
                .map(|range| (range.start, range.end))
                .collect(),
        }
    } else {
        RepairPlan::Wait { unknown }
    }
}

impl RepairPlan {
    /// Returns the groups that each donor must prove, read from its disk, before a byte of them is used.
    pub fn to_verify(&self, size: u64) -> Vec<(&ReplicaId, Groups)> {
        match self {
            Self::Copy { from } => vec![(from, Groups::all(size))],
            Self::FetchGroups { groups, from } => vec![(from, groups.clone())],
            Self::Salvage { pieces } => pieces
                .iter()
                .map(|(from, groups)| (from, groups.clone()))
                .collect(),
            Self::Lost { .. } | Self::Wait { .. } | Self::Nothing(_) | Self::Officer(_) => {
                Vec::new()
            }
        }
    }

    /// Returns the number of bytes of the file that would move (proofs not counted: at most 1/128 more, see
    /// `archive-proof`).
    pub fn bytes_to_copy(&self, size: u64) -> u64 {
        let groups = self.to_verify(size).into_iter().map(|(_, groups)| groups);
        groups
            .map(|groups| {
                groups
                    .byte_ranges(size)
                    .map(|range| range.end - range.start)
                    .sum::<u64>()
            })
            .sum()
    }

    /// Returns the plan in one line, for `repair --dry-run`.
    pub fn dry_run(&self, patient: &Patient) -> String {
        let Patient {
            file,
            size,
            replica,
            kind,
        } = patient;
        let donors = self
            .to_verify(*size)
            .into_iter()
            .map(|(donor, groups)| format!("{} group(s) from {donor}", groups.len()));
        let donors = donors.collect::<Vec<_>>().join(", ");
        let bytes = self.bytes_to_copy(*size);
        let what = match self {
            Self::Copy { from } => {
                format!("would verify {from}, then copy the whole file from it: {bytes} bytes")
            }
            Self::FetchGroups { .. } => {
                format!("would verify, then fetch {donors}: {bytes} bytes of {size}")
            }
            Self::Salvage { .. } => {
                format!(
                    "no copy is intact; would verify, then salvage {donors}: {bytes} bytes of {size}"
                )
            }
            Self::Lost { ranges } => {
                let ranges = ranges
                    .iter()
                    .map(|(start, end)| format!("{start}-{}", end.saturating_sub(1)));
                format!(
                    "would touch nothing; lost in every replica: bytes {}",
                    ranges.collect::<Vec<_>>().join(", ")
                )
            }
            Self::Wait { unknown } => {
                let names = unknown
                    .iter()
                    .map(ReplicaId::as_str)
                    .collect::<Vec<_>>()
                    .join(", ");
                format!("would wait until {names} can be read group by group")
            }
            Self::Nothing(why) => format!("would do nothing: {why}"),
            Self::Officer(question) => format!("would do nothing: {question}"),
        };
        format!("{file}: {replica}: {}: {what}", kind.class())
    }
}
