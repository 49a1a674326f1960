//! Chooses the replica that reads for a job which names none: a pure function of the answers of their monitors.
//!
//! Owns the order of preference: a replica that has every file of the job, then the one that has the most, then the
//! first in the settings. Not promised: that the files are read there. A node may go away at any time.

use std::cmp::Reverse;

/// A replica that keeps bytes, as far as its monitor has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaCandidate {
    /// Whether the caller prefers any other replica.
    pub is_avoided: bool,
    /// The answer of its monitor.
    pub answer: MonitorAnswer,
}

/// The answer of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorAnswer {
    /// The answer has not come yet.
    Awaited,
    /// The monitor answered with an error, or not at all.
    Failed,
    /// The monitor has answered for its nodes.
    Nodes {
        /// The number of files named by the job that are on nodes that are alive; for an expression, the number of
        /// these nodes.
        found: u64,
        /// Whether nothing is missing: every named file is on a node that is alive, or every node is alive.
        is_whole: bool,
    },
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The replica at this index of the list is chosen.
    Taken(usize),
    /// An answer that has not come may change the choice.
    Wait,
    /// No monitor has answered.
    Nobody,
}

/// Chooses among replicas in the order of the settings. If `is_late`, no longer waits for those that have not answered,
/// provided that another one has.
pub fn choose_replica(candidates: &[ReplicaCandidate], is_late: bool) -> Choice {
    let mut may_change = false;
    for (place, candidate) in candidates.iter().enumerate() {
        match candidate.answer {
            MonitorAnswer::Awaited => {
                may_change = true;
                // This replica comes before all that follow, unless it is avoided.
                if !candidate.is_avoided {
                    break;
                }
            }
            MonitorAnswer::Nodes { is_whole: true, .. } if !candidate.is_avoided => {
                return Choice::Taken(place);
            }
            MonitorAnswer::Failed | MonitorAnswer::Nodes { .. } => {}
        }
    }
    let best = candidates
        .iter()
        .enumerate()
        .filter_map(|(place, candidate)| match candidate.answer {
            MonitorAnswer::Nodes { found, .. } => {
                let is_wanted = found > 0 && !candidate.is_avoided;
                Some((is_wanted, found, Reverse(place)))
            }
            MonitorAnswer::Awaited | MonitorAnswer::Failed => None,
        })
        .max();
    match best {
        Some((is_wanted, _, Reverse(place))) if !may_change || (is_late && is_wanted) => {
            Choice::Taken(place)
        }
        None if !may_change => Choice::Nobody,
        Some(_) | None => Choice::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AWAITED: MonitorAnswer = MonitorAnswer::Awaited;
    const FAILED: MonitorAnswer = MonitorAnswer::Failed;

    const fn whole(found: u64) -> MonitorAnswer {
        MonitorAnswer::Nodes {
            found,
            is_whole: true,
        }
    }

    const fn partial(found: u64) -> MonitorAnswer {
        MonitorAnswer::Nodes {
            found,
            is_whole: false,
        }
    }

    fn choice(answers: &[MonitorAnswer], avoided: &[usize], is_late: bool) -> Choice {
        let candidates = answers
            .iter()
            .enumerate()
            .map(|(place, answer)| ReplicaCandidate {
                is_avoided: avoided.contains(&place),
                answer: *answer,
            });
        choose_replica(&candidates.collect::<Vec<_>>(), is_late)
    }

    /// Fails if a job waits for a replica that is down while another one has its files, or is read where they are not.
    #[test]
    fn replica_with_the_files_is_chosen() {
        use Choice::{Nobody, Taken, Wait};
        for (answers, avoided, soon, late) in [
            // The first replica that has every file, as soon as no replica before it can change that.
            (&[whole(2), AWAITED][..], &[][..], Taken(0), Taken(0)),
            (&[AWAITED, whole(2)], &[], Wait, Taken(1)),
            (&[FAILED, whole(2)], &[], Taken(1), Taken(1)),
            (&[partial(1), whole(2)], &[], Taken(1), Taken(1)),
            // Otherwise the replica that has the most.
            (&[partial(1), partial(2)], &[], Taken(1), Taken(1)),
            (&[partial(1), partial(1)], &[], Taken(0), Taken(0)),
            (&[partial(1), AWAITED], &[], Wait, Taken(0)),
            (&[partial(0), AWAITED], &[], Wait, Wait),
            (&[partial(0), FAILED], &[], Taken(0), Taken(0)),
            // The replica to avoid, if no other has any of the files.
            (&[whole(2), whole(2)], &[0], Taken(1), Taken(1)),
            (&[AWAITED, whole(2)], &[0], Taken(1), Taken(1)),
            (&[whole(2), AWAITED], &[0], Wait, Wait),
            (&[whole(2), FAILED], &[0], Taken(0), Taken(0)),
            (&[whole(2), partial(0)], &[0], Taken(0), Taken(0)),
            (&[whole(2), partial(1)], &[0], Taken(1), Taken(1)),
            (&[whole(2)], &[0], Taken(0), Taken(0)),
            (&[FAILED, FAILED], &[], Nobody, Nobody),
            (&[FAILED, AWAITED], &[], Wait, Wait),
            (&[], &[], Nobody, Nobody),
        ] {
            for (is_late, expected) in [(false, soon), (true, late)] {
                let chosen = choice(answers, avoided, is_late);
                assert_eq!(
                    chosen, expected,
                    "{answers:?} but {avoided:?}, late {is_late}"
                );
            }
        }
    }

    /// Fails if a choice does not come once all monitors have answered, or falls on one that has not.
    #[test]
    fn every_complete_list_of_answers_is_decided() {
        let kinds = [AWAITED, FAILED, partial(0), partial(1), whole(1), whole(2)];
        for number in 0..6_usize.pow(3) * 8 {
            let answers: Vec<MonitorAnswer> =
                [1, 6, 36].map(|power| kinds[number / power % 6]).into();
            let avoided: Vec<usize> = (0..3)
                .filter(|bit| ((number / 216) >> bit) & 1 == 1)
                .collect();
            let is_open = answers.contains(&AWAITED);
            for is_late in [false, true] {
                match choice(&answers, &avoided, is_late) {
                    Choice::Taken(place) => {
                        assert!(
                            matches!(answers[place], MonitorAnswer::Nodes { .. }),
                            "{answers:?}"
                        );
                    }
                    Choice::Wait => assert!(is_open, "{answers:?}"),
                    Choice::Nobody => assert!(answers.iter().all(|answer| *answer == FAILED)),
                }
            }
        }
    }
}
