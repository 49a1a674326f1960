//! When a repair may begin by itself, and when it must not.
//!
//! Owns the rule of automatic repair: only findings of a scrub or a scheduled check, only after a delay and a second
//! uncached read, never more of a replica in a day than the brake allows, and nothing on a volume whose state has just
//! changed: a wave of damage is more likely a fault of ours than of the disks.

use archive_model::{AnomalyKind, Finder, time_after};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The repairs that are allowed without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Automatic {
    /// No repair.
    Off,
    /// Missing files only.
    Missing,
    /// Missing files, corrupt and unreadable groups, rotten sidecars.
    #[default]
    All,
}

/// The rule for automatic repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairPolicy {
    /// The repairs that are allowed without asking.
    pub automatic: Automatic,
    /// The time between the finding and its repair.
    pub delay: SignedDuration,
    /// The number of files of a replica whose repair in one day never trips the brake.
    pub brake_files: u64,
    /// The share of a replica's files, as one in this number, whose repair in one day does not trip the brake either.
    pub brake_fraction: u64,
    /// The time that a volume must have been in its state.
    pub settled: SignedDuration,
}

impl Default for RepairPolicy {
    fn default() -> Self {
        Self {
            automatic: Automatic::All,
            delay: SignedDuration::from_mins(15),
            brake_files: 20,
            brake_fraction: 1000,
            settled: SignedDuration::from_hours(1),
        }
    }
}

impl RepairPolicy {
    /// Returns the number of files of a replica that may need repair, or be repaired in one day, before a person must
    /// look.
    pub fn brake_limit(&self, files: u64) -> u64 {
        self.brake_files
            .max(files.checked_div(self.brake_fraction).unwrap_or(0))
    }
}

/// The finder of an anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// A node, reading its own disk.
    Scrub,
    /// A check that was due.
    ScheduledCheck,
    /// A check, or a read, that a person asked for.
    Person,
}

impl From<Finder> for FoundBy {
    fn from(finder: Finder) -> Self {
        match finder {
            Finder::Scrub => Self::Scrub,
            Finder::ScheduledCheck => Self::ScheduledCheck,
            Finder::Check | Finder::Read => Self::Person,
        }
    }
}

/// A finding, as far as the decision needs it. All times are of one clock, the repository's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The kind of the anomaly.
    pub kind: AnomalyKind,
    /// The finder of the anomaly.
    pub found_by: FoundBy,
    /// The time when the anomaly was first found.
    pub found: Timestamp,
    /// The time when a second read past the cache found the same, if one has.
    pub confirmed: Option<Timestamp>,
    /// Whether the archive wants the file in the replica; of an unexpected file, whether only its sidecar is at fault.
    pub is_wanted: bool,
}

/// The circumstances of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The number of files of the replica.
    pub files: u64,
    /// The number of files of the replica that are damaged or absent, this one included, however long ago that was
    /// found, or were so within the last 24 h.
    pub found_today: u64,
    /// The time when the volume of the copy (of a missing one, where it should be) last changed state: came back, went
    /// away, was adopted.
    pub volume_changed: Option<Timestamp>,
}

/// The decision about a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairDecision {
    /// The repair may begin now.
    RepairNow,
    /// At that time the copy is to be read again, past the cache; if the anomaly is still there, ask again with
    /// [`Case::confirmed`].
    ConfirmAt(Timestamp),
    /// The repair is held, and people are shown the reason.
    Hold(Hold),
    /// The repair may begin only if an officer says so.
    AskOfficer,
}

/// The reason why a repair is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hold {
    /// Too many files need repair at once.
    #[error(
        "{found} files of the replica need repair, or were repaired within a day, and that is more than {brake}; nothing is repaired automatically: look why, then `repair --all` says how many to confirm"
    )]
    Brake {
        /// The number of files that need repair, or did so within the last 24 h.
        found: u64,
        /// The number of repairs that is allowed.
        brake: u64,
    },
    /// The volume changed state lately: its disk may have come back half.
    #[error(
        "its volume changed state at {changed}; repair resumes at {until} if it stays as it is"
    )]
    VolumeChanged {
        /// The time when the volume changed state.
        changed: Timestamp,
        /// The time from which the volume counts as settled.
        until: Timestamp,
    },
}

/// Decides whether a repair may begin by itself. The caller asks again before each step, so that a brake stops a repair
/// that has begun.
pub fn decide_repair(
    case: &Case,
    around: Surroundings,
    policy: &RepairPolicy,
    now: Timestamp,
) -> RepairDecision {
    let allowed = match (policy.automatic, &case.kind) {
        (Automatic::Missing | Automatic::All, AnomalyKind::Missing)
        | (Automatic::All, AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_)) => true,
        (Automatic::All, AnomalyKind::Unexpected) => case.is_wanted,
        (Automatic::Off | Automatic::Missing | Automatic::All, _) => false,
    };
    if !allowed || case.found_by == FoundBy::Person {
        return RepairDecision::AskOfficer;
    }
    let brake = policy.brake_limit(around.files);
    if around.found_today > brake {
        return RepairDecision::Hold(Hold::Brake {
            found: around.found_today,
            brake,
        });
    }
    if let Some(changed) = around.volume_changed {
        let until = time_after(changed, policy.settled);
        if now < until {
            return RepairDecision::Hold(Hold::VolumeChanged { changed, until });
        }
    }
    let due = time_after(case.found, policy.delay);
    match case.confirmed {
        Some(confirmed) if confirmed >= due && now >= due => RepairDecision::RepairNow,
        Some(_) | None => RepairDecision::ConfirmAt(due.max(now)),
    }
}

#[cfg(test)]
mod tests {
    use archive_model::{Groups, NodeId, Root};

    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_000_000_000 + 60 * minutes).unwrap()
    }

    fn kinds() -> Vec<AnomalyKind> {
        let root = Root::from_bytes([1; 32]);
        let unverified = AnomalyKind::Unverified {
            node: NodeId::new("n").unwrap(),
            volume: None,
        };
        vec![
            AnomalyKind::Missing,
            AnomalyKind::Corrupt(Groups::all(1)),
            AnomalyKind::Unreadable(Groups::all(1)),
            AnomalyKind::Unexpected,
            AnomalyKind::Duplicate(vec![]),
            AnomalyKind::Conflicting(root),
            AnomalyKind::Disputed(root),
            AnomalyKind::Lost(vec![(0, 1)]),
            unverified,
            AnomalyKind::Transient,
            AnomalyKind::Incomplete,
        ]
    }

    /// Every combination of setting, kind, finder, confirmation, count, volume and time around each limit.
    ///
    /// Fails if the brake has `>=` for `>`, or if something is repaired that a person's check found, before the delay,
    /// unconfirmed, confirmed too early, on a fresh volume, disputed or conflicting, or with the setting off.
    #[test]
    fn every_combination_around_every_limit() {
        let mut tried = 0;
        let mut repaired = 0;
        for automatic in [Automatic::Off, Automatic::Missing, Automatic::All] {
            let policy = RepairPolicy {
                automatic,
                ..RepairPolicy::default()
            };
            for (index, kind) in kinds().into_iter().enumerate() {
                for found_by in [FoundBy::Scrub, FoundBy::ScheduledCheck, FoundBy::Person] {
                    for confirmed in [None, Some(0), Some(14), Some(15), Some(16)] {
                        for (files, found_today, braked) in [
                            (0, 1, false),
                            (0, 20, false),
                            (0, 21, true),
                            (30_000, 30, false),
                            (30_999, 31, true),
                        ] {
                            for (changed, fresh_until) in
                                [(None, None), (Some(-45), Some(15)), (Some(-30), Some(30))]
                            {
                                for now in [0, 14, 15, 29, 30] {
                                    let is_wanted = files != 0;
                                    let case = Case {
                                        kind: kind.clone(),
                                        found_by,
                                        found: at(0),
                                        confirmed: confirmed.map(at),
                                        is_wanted,
                                    };
                                    let around = Surroundings {
                                        files,
                                        found_today,
                                        volume_changed: changed.map(at),
                                    };
                                    let decision = decide_repair(&case, around, &policy, at(now));
                                    let may = match automatic {
                                        Automatic::Off => false,
                                        Automatic::Missing => index == 0,
                                        Automatic::All => index < 3 || (index == 3 && is_wanted),
                                    } && found_by != FoundBy::Person;
                                    let fresh = fresh_until.is_some_and(|until| now < until);
                                    let ripe = now >= 15
                                        && confirmed.is_some_and(|confirmed| confirmed >= 15);
                                    let right = match decision {
                                        RepairDecision::AskOfficer => !may,
                                        RepairDecision::Hold(Hold::Brake { .. }) => may && braked,
                                        RepairDecision::Hold(Hold::VolumeChanged { .. }) => {
                                            may && !braked && fresh
                                        }
                                        RepairDecision::ConfirmAt(time) => {
                                            may && !braked
                                                && !fresh
                                                && !ripe
                                                && time == at(now.max(15))
                                        }
                                        RepairDecision::RepairNow => {
                                            may && !braked && !fresh && ripe
                                        }
                                    };
                                    assert!(
                                        right,
                                        "{decision:?} {case:?} {around:?} {automatic:?} at {now}"
                                    );
                                    tried += 1;
                                    repaired += u32::from(decision == RepairDecision::RepairNow);
                                }
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(tried, 3 * 11 * 3 * 5 * 5 * 3 * 5);
        assert!(repaired > 100, "something is repaired: {repaired}");
    }

    /// Fails if the text of a braked repair lacks the number of files, or the command that releases it.
    #[test]
    fn braked_repair_says_how_to_release_it() {
        let text = Hold::Brake {
            found: 5000,
            brake: 1000,
        }
        .to_string();
        assert!(
            text.contains("5000 files") && text.contains("`repair --all`"),
            "{text}"
        );
    }

    /// Fails if adding the delay to the last time of the calendar panics, or wraps round to a time in the past.
    #[test]
    fn the_end_of_time_is_no_panic() {
        let case = Case {
            kind: AnomalyKind::Missing,
            found_by: FoundBy::Scrub,
            found: Timestamp::MAX,
            confirmed: None,
            is_wanted: true,
        };
        let around = Surroundings {
            files: u64::MAX,
            found_today: 1,
            volume_changed: None,
        };
        let policy = RepairPolicy {
            brake_fraction: 0,
            ..RepairPolicy::default()
        };
        assert_eq!(
            decide_repair(&case, around, &policy, at(0)),
            RepairDecision::ConfirmAt(Timestamp::MAX)
        );
    }
}
