//! Every world of three replicas and three groups, and what becomes of it when the plan is carried out.

use archive_model::{GROUP_SIZE, NodeId};

use super::*;

const SIZE: u64 = 2 * GROUP_SIZE + 7;

/// Returns what is known of a replica's content, and which of its three groups are really good, as bits.
fn state(code: u8) -> (ContentState, u8) {
    match code {
        0 => (ContentState::Intact, 0b111),
        bits @ 1..=7 => {
            let bad = (0..3).filter(|group| bits & (1 << group) != 0).collect();
            (ContentState::Damaged(bad), 0b111 & !bits)
        }
        8 => (ContentState::Absent, 0),
        9 => (ContentState::Other(Root::from_bytes([9; 32])), 0),
        _ => (ContentState::Unreachable, 0),
    }
}

fn bits(groups: &Groups) -> u8 {
    groups.iter().map(|group| 1 << group).sum()
}

fn replica(index: usize) -> ReplicaId {
    ReplicaId::new(["one", "two", "three"][index]).unwrap()
}

fn patient(kind: AnomalyKind) -> Patient {
    Patient {
        file: FileName::new("a.warc").unwrap(),
        size: SIZE,
        replica: replica(0),
        kind,
    }
}

fn copies(codes: [u8; 3], third: ReplicaKind) -> Vec<ReplicaContent> {
    let kinds = [ReplicaKind::Bitarchive, ReplicaKind::Bitarchive, third];
    let copy = |(index, kind)| ReplicaContent {
        replica: replica(index),
        kind,
        state: state(codes[index]).0,
    };
    kinds.into_iter().enumerate().map(copy).collect()
}

/// Fails if a plan touches a good copy or a good group, has a donor that lacks what it gives, has a checksum replica or
/// the patient as donor, gives groups twice or not at all, says *lost* while a copy is only unreachable or not walked,
/// says *lost* of what some copy has, moves more than the damage, or repairs a part of what is lost.
#[test]
fn every_world_of_three_replicas_and_three_groups() {
    let mut worlds = 0;
    for code in 0..11_u16.pow(3) * 2 {
        let third = if code % 2 == 0 {
            ReplicaKind::Bitarchive
        } else {
            ReplicaKind::Checksum
        };
        let codes = [1, 11, 121].map(|place| u8::try_from(code / 2 / place % 11).unwrap());
        let copies = copies(codes, third);
        let kind = match state(codes[0]).0 {
            ContentState::Damaged(groups) => AnomalyKind::Corrupt(groups),
            ContentState::Intact
            | ContentState::Absent
            | ContentState::Other(_)
            | ContentState::Unreachable => AnomalyKind::Missing,
        };
        let patient = patient(kind);
        let plan = plan_repair(&patient, &copies);
        worlds += 1;
        let story = || format!("{plan:?} for {copies:#?}");

        let own = state(codes[0]).1;
        let givers = [1, 2]
            .into_iter()
            .filter(|index| *index == 1 || third == ReplicaKind::Bitarchive);
        let givers = givers.collect::<Vec<_>>();
        let good = |index: usize| state(codes[index]).1;
        let somewhere = givers
            .iter()
            .map(|index| good(*index))
            .fold(own, |a, b| a | b);
        let unknown = givers.iter().any(|index| codes[*index] >= 9);

        // The groups that the patient has after the plan: each comes from a donor that has it.
        let mut repaired = own;
        for (donor, groups) in plan.to_verify(SIZE) {
            let index = givers.iter().find(|index| replica(**index) == *donor);
            let index = *index.unwrap_or_else(|| panic!("{donor} cannot give: {}", story()));
            assert_eq!(bits(&groups) & !good(index), 0, "{}", story());
            assert_eq!(
                bits(&groups) & repaired,
                0,
                "moves what is there: {}",
                story()
            );
            repaired |= bits(&groups);
        }
        match &plan {
            RepairPlan::Copy { .. }
            | RepairPlan::FetchGroups { .. }
            | RepairPlan::Salvage { .. } => {
                assert_eq!(repaired, 0b111, "{}", story());
                assert!((1..=8).contains(&codes[0]), "{}", story());
                let intact = givers.iter().any(|index| codes[*index] == 0);
                assert_eq!(
                    matches!(plan, RepairPlan::Salvage { .. }),
                    !intact,
                    "{}",
                    story()
                );
                assert_eq!(
                    matches!(plan, RepairPlan::Copy { .. }),
                    intact && codes[0] == 8,
                    "{}",
                    story()
                );
            }
            RepairPlan::Lost { ranges } => {
                assert!(!unknown && (1..=8).contains(&codes[0]), "{}", story());
                let lost = Groups::groups_touching(ranges.iter().map(|(start, end)| *start..*end));
                assert_eq!(bits(&lost), 0b111 & !somewhere, "{}", story());
                let covered: u64 = ranges.iter().map(|(start, end)| end - start).sum();
                assert_eq!(
                    covered,
                    lost.byte_ranges(SIZE)
                        .map(|range| range.end - range.start)
                        .sum::<u64>()
                );
            }
            RepairPlan::Wait { .. } => assert!(
                codes[0] == 10 || (unknown && somewhere != 0b111),
                "{}",
                story()
            ),
            RepairPlan::Nothing(NoRepairReason::Intact) => assert_eq!(codes[0], 0, "{}", story()),
            RepairPlan::Officer(OfficerQuestion::Conflicting) => {
                assert_eq!(codes[0], 9, "{}", story());
            }
            RepairPlan::Nothing(_) | RepairPlan::Officer(_) => panic!("{}", story()),
        }
    }
    assert_eq!(worlds, 2 * 1331);
}

/// Fails if bytes are copied for an anomaly that only a person can decide, for example a disputed content.
#[test]
fn anomaly_left_to_people_copies_no_bytes() {
    let root = Root::from_bytes([2; 32]);
    let unverified = AnomalyKind::Unverified {
        node: NodeId::new("n").unwrap(),
        volume: None,
    };
    for kind in [
        AnomalyKind::Unexpected,
        AnomalyKind::Conflicting(root),
        AnomalyKind::Disputed(root),
        AnomalyKind::Duplicate(vec![]),
        AnomalyKind::Transient,
        unverified,
    ] {
        let plan = plan_repair(&patient(kind), &copies([1, 0, 0], ReplicaKind::Bitarchive));
        assert!(
            matches!(plan, RepairPlan::Officer(_) | RepairPlan::Nothing(_)),
            "{plan:?}"
        );
        assert_eq!(plan.bytes_to_copy(SIZE), 0);
    }
}

/// Fails if damaged groups beyond the end of a file count as bytes to copy.
#[test]
fn groups_past_the_file_end_are_not_fetched() {
    let mut groups = Groups::none();
    groups.insert_range(2..1_000_000);
    let plan = plan_repair(
        &patient(AnomalyKind::Corrupt(groups)),
        &copies([4, 0, 0], ReplicaKind::Bitarchive),
    );
    assert_eq!(plan.bytes_to_copy(SIZE), 7, "{plan:?}");
}

/// Fails if a dry run names another donor or number of bytes than the repair, or does not say what is lost or waited
/// for.
#[test]
fn a_dry_run_says_how_much_would_move() {
    let text = |kind: AnomalyKind, codes| {
        let patient = patient(kind);
        plan_repair(&patient, &copies(codes, ReplicaKind::Bitarchive)).dry_run(&patient)
    };
    let ContentState::Damaged(first) = state(1).0 else {
        panic!()
    };
    assert_eq!(
        text(AnomalyKind::Corrupt(first.clone()), [1, 0, 0]),
        "a.warc: one: corrupt: would verify, then fetch 1 group(s) from two: 16384 bytes of 32775"
    );
    assert!(
        text(AnomalyKind::Missing, [8, 10, 0])
            .ends_with("copy the whole file from it: 32775 bytes")
    );
    assert!(
        text(AnomalyKind::Missing, [8, 1, 6])
            .contains("salvage 2 group(s) from two, 1 group(s) from three")
    );
    assert!(
        text(AnomalyKind::Corrupt(first), [1, 1, 3])
            .ends_with("lost in every replica: bytes 0-16383")
    );
    assert!(text(AnomalyKind::Missing, [8, 10, 8]).contains("wait until two"));
}

/// Fails if a missing file without bytes is never copied, because no group of it is missing.
#[test]
fn an_empty_file_is_copied_and_moves_nothing() {
    let patient = Patient {
        size: 0,
        ..patient(AnomalyKind::Missing)
    };
    let plan = plan_repair(&patient, &copies([8, 0, 0], ReplicaKind::Bitarchive));
    assert_eq!(plan, RepairPlan::Copy { from: replica(1) });
    assert_eq!(plan.bytes_to_copy(0), 0);
}
