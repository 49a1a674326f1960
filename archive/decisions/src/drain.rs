//! One file of a volume or node that is drained: what to do next, given where its replica has it.
//!
//! Owns the order: a whole copy in a place that stays comes first, then the record names it, and only then the copy
//! that has to leave is put aside. A caller that asks again after each step, or after a crash at any point, gets the
//! next one.
//!
//! Not promised: that a copy is what its node last knew of it. A copy that was not read just now is read before a step
//! that relies on it.

use std::fmt;

use archive_model::CopyPlace;

/// The relation of a place to the drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainSide {
    /// The place is on the volume or node that is drained here.
    Source,
    /// The place is on another volume or node that is drained as well.
    Leaving,
    /// A copy may stay in the place.
    Stays,
}

/// The part of the admitted content in a copy: its condition, as its node knows it, judged against the recorded root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyContent {
    /// The bytes that were admitted.
    Whole,
    /// The bytes that were admitted, except in some groups.
    Damaged,
    /// The copy is known, and not there.
    Missing,
    /// Other content than the admitted one, or unknown content.
    Foreign,
}

/// A copy in the replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyState {
    /// The place of the copy.
    pub place: CopyPlace,
    /// Whether the place is drained.
    pub side: DrainSide,
    /// The part of the admitted content in the copy.
    pub content: CopyContent,
}

/// The entry of the admin data for the file in this replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedCopy {
    /// The copy is recorded at this place.
    At(CopyPlace, DrainSide),
    /// The copy is on its way into the replica.
    OnItsWay,
    /// The admin data want no copy in the replica, or do not know the name.
    Nothing,
}

/// The next step of the drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainStep {
    /// Nothing: no copy is left at the source of the drain, nor recorded there.
    Nothing,
    /// The file is copied to a place where it may stay.
    Copy,
    /// The record is to name this copy.
    Record(CopyPlace),
    /// The copy that has to leave is put aside; another one is whole and recorded.
    PutAside {
        /// The copy that has to leave.
        old: CopyPlace,
        /// The copy that is recorded.
        kept: CopyPlace,
    },
    /// A damaged copy that has to leave is put aside; another one is whole and recorded.
    PutDamagedAside {
        /// The copy that has to leave.
        old: CopyPlace,
        /// The copy that is recorded.
        kept: CopyPlace,
    },
    /// Nothing for now: the drain waits, for this reason.
    Wait(DrainReason),
    /// The copy stays in its place, and nothing is lost by that: the archive does not count on it.
    Leave(DrainReason),
}

/// The reason why nothing is done, as people are shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainReason {
    /// The file is on its way into the replica.
    OnItsWay,
    /// A volume that may have a copy does not answer.
    Silent,
    /// The recorded copy is not whole.
    Hurt,
    /// Other content lies at the source under the name of the file.
    Foreign,
    /// The archive wants no copy of the file in the replica.
    Unknown,
}

impl fmt::Display for DrainReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OnItsWay => "it is on its way into the replica",
            Self::Silent => "not every volume of the replica answers; a copy may be there",
            Self::Hurt => "the copy that is recorded elsewhere is not whole; repair it first",
            Self::Foreign => "other content lies there under its name; see `holdfast check files`",
            Self::Unknown => {
                "the archive wants no copy of it there; see `holdfast check files`, then `adopt` or `remove` it"
            }
        })
    }
}

/// Decides the next step.
pub fn decide_leave(recorded: &RecordedCopy, copies: &[CopyState], is_silent: bool) -> DrainStep {
    let there = copies
        .iter()
        .find(|copy| copy.side == DrainSide::Source && copy.content != CopyContent::Missing);
    let stays =
        |copy: &&CopyState| copy.side == DrainSide::Stays && copy.content == CopyContent::Whole;
    let (place, side) = match recorded {
        RecordedCopy::At(place, side) => (place, *side),
        RecordedCopy::OnItsWay if there.is_some() => return DrainStep::Wait(DrainReason::OnItsWay),
        RecordedCopy::Nothing if there.is_some() => return DrainStep::Leave(DrainReason::Unknown),
        RecordedCopy::OnItsWay | RecordedCopy::Nothing => return DrainStep::Nothing,
    };
    let whole = copies.iter().find(stays);
    if side == DrainSide::Source {
        return whole.map_or(DrainStep::Copy, |whole| {
            DrainStep::Record(whole.place.clone())
        });
    }
    let Some(old) = there else {
        return DrainStep::Nothing;
    };
    if old.content == CopyContent::Foreign {
        return DrainStep::Leave(DrainReason::Foreign);
    }
    let Some(kept) = copies
        .iter()
        .filter(stays)
        .find(|copy| copy.place == *place)
    else {
        return match (is_silent, whole, side) {
            (true, ..) => DrainStep::Wait(DrainReason::Silent),
            (false, Some(whole), _) => DrainStep::Record(whole.place.clone()),
            (false, None, DrainSide::Leaving) => DrainStep::Copy,
            (false, None, DrainSide::Stays | DrainSide::Source) => {
                DrainStep::Wait(DrainReason::Hurt)
            }
        };
    };
    if old.content == CopyContent::Damaged {
        DrainStep::PutDamagedAside {
            old: old.place.clone(),
            kept: kept.place.clone(),
        }
    } else {
        DrainStep::PutAside {
            old: old.place.clone(),
            kept: kept.place.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDES: [(DrainSide, &str); 3] = [
        (DrainSide::Source, "s"),
        (DrainSide::Leaving, "l"),
        (DrainSide::Stays, "t"),
    ];

    fn place(at: usize) -> CopyPlace {
        CopyPlace {
            node: SIDES[at].1.parse().unwrap(),
            volume: "v".parse().unwrap(),
        }
    }

    /// A replica of three places: the copy of one file in each, and the recorded entry.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct ReplicaScene {
        has: [Option<CopyContent>; 3],
        recorded: RecordedCopy,
    }

    impl ReplicaScene {
        fn decide(&self, is_silent: bool) -> DrainStep {
            let copies = self.has.iter().enumerate().filter_map(|(at, content)| {
                Some(CopyState {
                    place: place(at),
                    side: SIDES[at].0,
                    content: (*content)?,
                })
            });
            decide_leave(&self.recorded, &copies.collect::<Vec<_>>(), is_silent)
        }

        fn whole(&self) -> usize {
            let whole = self
                .has
                .iter()
                .filter(|content| **content == Some(CopyContent::Whole));
            whole.count()
        }

        fn at(which: &CopyPlace) -> usize {
            (0..3).find(|at| place(*at) == *which).unwrap()
        }

        /// Does a step; `false`: the world refuses it.
        fn done(&mut self, step: &DrainStep) -> bool {
            match step {
                DrainStep::Nothing | DrainStep::Wait(_) | DrainStep::Leave(_) => return false,
                // One name, one content: a node takes no second copy beside one that stays.
                DrainStep::Copy
                    if matches!(
                        self.has[2],
                        Some(CopyContent::Damaged | CopyContent::Foreign)
                    ) =>
                {
                    return false;
                }
                DrainStep::Copy => self.has[2] = Some(CopyContent::Whole),
                DrainStep::Record(at) => {
                    let at = Self::at(at);
                    self.recorded = RecordedCopy::At(place(at), SIDES[at].0);
                }
                DrainStep::PutAside { old, .. } | DrainStep::PutDamagedAside { old, .. } => {
                    let at = Self::at(old);
                    self.has[at] = None;
                }
            }
            true
        }
    }

    fn worlds() -> Vec<ReplicaScene> {
        let contents = [
            None,
            Some(CopyContent::Whole),
            Some(CopyContent::Damaged),
            Some(CopyContent::Missing),
            Some(CopyContent::Foreign),
        ];
        let mut recorded: Vec<RecordedCopy> = (0..3)
            .map(|at| RecordedCopy::At(place(at), SIDES[at].0))
            .collect();
        recorded.extend([RecordedCopy::OnItsWay, RecordedCopy::Nothing]);
        let mut worlds = Vec::new();
        for number in 0..125 {
            let has = [number % 5, number / 5 % 5, number / 25].map(|code| contents[code]);
            for recorded in recorded.clone() {
                worlds.push(ReplicaScene { has, recorded });
            }
        }
        worlds
    }

    /// Every replica of three places, with and without silence, to its end.
    ///
    /// Fails if the old copy is put aside before the new one is whole or before the record names it, a copy elsewhere
    /// is touched, or a drain never ends or calls itself done while the file is still recorded there.
    #[test]
    fn copy_leaves_once_another_is_whole_and_recorded() {
        let mut ended = 0;
        for (first, is_silent) in worlds()
            .into_iter()
            .flat_map(|world| [(world.clone(), false), (world, true)])
        {
            let mut world = first.clone();
            let mut steps = 0;
            loop {
                let before = world.clone();
                let step = world.decide(is_silent);
                if let DrainStep::PutAside { old, kept }
                | DrainStep::PutDamagedAside { old, kept } = &step
                {
                    assert_eq!(
                        SIDES[ReplicaScene::at(old)].0,
                        DrainSide::Source,
                        "{first:?}"
                    );
                    assert_eq!(ReplicaScene::at(kept), 2, "{first:?}");
                    assert_eq!(world.has[2], Some(CopyContent::Whole), "{first:?}");
                    assert_eq!(world.recorded, RecordedCopy::At(place(2), DrainSide::Stays));
                }
                if let DrainStep::Record(at) = &step {
                    assert_eq!(
                        world.has[ReplicaScene::at(at)],
                        Some(CopyContent::Whole),
                        "{first:?}"
                    );
                }
                if !world.done(&step) {
                    let is_there = |content: &Option<CopyContent>| {
                        !matches!(content, None | Some(CopyContent::Missing))
                    };
                    if step == DrainStep::Nothing {
                        assert!(
                            !is_there(&world.has[0]),
                            "{first:?} is said to be done as {world:?}"
                        );
                        assert_ne!(
                            world.recorded,
                            RecordedCopy::At(place(0), DrainSide::Source),
                            "{first:?}"
                        );
                        ended += 1;
                    }
                    break;
                }
                assert!(
                    world.whole() >= before.whole().min(1),
                    "{first:?}: {step:?}"
                );
                assert_eq!(world.has[1], before.has[1], "{first:?}: {step:?}");
                steps += 1;
                assert!(steps <= 4, "{first:?} never ends");
            }
            assert!(
                world.whole() >= first.whole().min(1),
                "{first:?} ends as {world:?}"
            );
        }
        assert!(ended > 300, "{ended}");
    }

    /// Fails if a drain waits although everything is as it should be.
    #[test]
    fn the_usual_way_is_three_steps() {
        let mut world = ReplicaScene {
            has: [Some(CopyContent::Whole), None, None],
            recorded: RecordedCopy::At(place(0), DrainSide::Source),
        };
        let mut steps = Vec::new();
        loop {
            let step = world.decide(false);
            steps.push(step.clone());
            if !world.done(&step) {
                break;
            }
        }
        let old = place(0);
        let kept = place(2);
        assert_eq!(
            steps,
            [
                DrainStep::Copy,
                DrainStep::Record(kept.clone()),
                DrainStep::PutAside { old, kept },
                DrainStep::Nothing
            ]
        );
    }

    /// Fails if silence is taken for absence where the record names the silent place.
    #[test]
    fn silence_or_unwanted_copy_keeps_the_old_one() {
        let world = |recorded, has| ReplicaScene { has, recorded };
        let stays = RecordedCopy::At(place(2), DrainSide::Stays);
        let old = Some(CopyContent::Whole);
        for (world, is_silent, expected) in [
            (
                world(stays.clone(), [old, None, None]),
                true,
                DrainStep::Wait(DrainReason::Silent),
            ),
            (
                world(stays.clone(), [old, None, None]),
                false,
                DrainStep::Wait(DrainReason::Hurt),
            ),
            (
                world(stays.clone(), [old, None, Some(CopyContent::Damaged)]),
                false,
                DrainStep::Wait(DrainReason::Hurt),
            ),
            (
                world(stays, [Some(CopyContent::Foreign), None, old]),
                false,
                DrainStep::Leave(DrainReason::Foreign),
            ),
            (
                world(RecordedCopy::Nothing, [old, None, None]),
                false,
                DrainStep::Leave(DrainReason::Unknown),
            ),
            (
                world(RecordedCopy::OnItsWay, [old, None, None]),
                false,
                DrainStep::Wait(DrainReason::OnItsWay),
            ),
        ] {
            assert_eq!(world.decide(is_silent), expected, "{world:?}");
        }
    }
}
