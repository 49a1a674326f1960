//! Explores each short sequence of events with every small set of replicas, long random walks, and how each ends.

use std::collections::BTreeSet;

use archive_model::{FileName, ReplicaKind, StoreFailure};

use super::*;

mod abandoned;
mod endings;
mod promises;
mod world;

use world::{Step, TestArchive, steps};

/// Tries every sequence of at most `depth` of `steps`, and returns their number. A step without effect is not followed:
/// its successors were tried without it.
fn explore(world: &TestArchive, steps: &[Step], depth: usize) -> u64 {
    let mut tried = 0;
    for step in steps {
        let mut next = world.clone();
        let moved = next.step(*step);
        tried += 1;
        if moved && depth > 1 {
            tried += explore(&next, steps, depth - 1);
        }
    }
    tried
}

fn after(set: &str, steps: &[Step]) -> TestArchive {
    let mut world = TestArchive::new(set);
    for step in steps {
        world.step(*step);
    }
    world
}

const REPLIES: &[fn(usize) -> Step] = &[
    Step::DataUploaded,
    Step::Completed,
    Step::Absent,
    Step::Failed,
    Step::Gone,
];

/// Fails if some short order of events gives a name two contents, acknowledges a store too early, or leaves a depositor
/// waiting.
#[test]
fn every_short_sequence_keeps_the_promises() {
    let mut tried = 0;
    for (set, depth) in [
        ("B", 7),
        ("BB", 6),
        ("Bb", 5),
        ("BC", 5),
        ("Bc", 5),
        ("BBC", 5),
        ("BBb", 4),
        ("BBc", 4),
    ] {
        tried += explore(&TestArchive::new(set), &steps(set.len(), REPLIES), depth);
    }
    println!("{tried} sequences from a free name");
    assert!(tried > 1_000_000);
}

/// Fails if some short order of events, after all bytes were received, frees a name that a replica may still commit.
#[test]
fn every_short_sequence_after_the_bytes_have_passed() {
    use Step::{AskSame, Completed, Failed, ReceivedSame};
    let mut tried = 0;
    for (set, depth) in [
        ("B", 5),
        ("BB", 4),
        ("Bb", 4),
        ("Bc", 4),
        ("BbC", 3),
        ("BBC", 3),
    ] {
        for prefix in [
            &[AskSame, ReceivedSame][..],
            &[AskSame, ReceivedSame, Failed(0), Completed(set.len() - 1)],
        ] {
            tried += explore(&after(set, prefix), &steps(set.len(), REPLIES), depth);
        }
    }
    println!("{tried} sequences from received bytes");
    assert!(tried > 200_000);
}

const ORDERS: &[fn(usize) -> Step] = &[
    Step::Wanted,
    Step::WantedElsewhere,
    Step::Replacing,
    Step::Withdrawn,
    Step::Reinstated,
];

/// Fails if some short order of events changes a copy that no order of a person named, or copies to where one was
/// withdrawn.
#[test]
fn every_short_sequence_of_what_people_do() {
    use Step::{AskOther, AskSame, Completed, Joins, Minutes, Readmitted, ReceivedSame, Restart};
    let mut tried = 0;
    for (set, depth) in [("B", 5), ("BB", 4), ("Bb", 4), ("BC", 4), ("BBb", 3)] {
        let mut prefix = vec![AskSame, ReceivedSame];
        prefix.extend((0..set.len()).map(Completed));
        let other: fn(usize) -> Step = Step::CompletedOther;
        let replies: Vec<_> = [REPLIES, ORDERS, &[other]].concat();
        let each = |replicas| {
            let common = [AskSame, AskOther, Minutes(6), Restart, Readmitted];
            let of = (0..replicas).flat_map(|r| replies.iter().map(move |step| step(r)));
            common.into_iter().chain(of).collect::<Vec<_>>()
        };
        tried += explore(&after(set, &prefix), &each(set.len()), depth);
        prefix.push(Joins);
        tried += explore(&after(set, &prefix), &each(set.len() + 1), depth - 1);
        tried += explore(&after(set, &prefix[..3]), &each(set.len()), depth - 1);
    }
    println!("{tried} sequences of what people do");
    assert!(tried > 300_000);
}

/// Fails if a withdrawn copy is made again, serves as donor, keeps a file from being complete, or frees its name.
#[test]
fn removed_copy_is_neither_missing_nor_restored() {
    use Step::{AskSame, Completed, Joins, ReceivedSame, Reinstated, Restart, Wanted, Withdrawn};
    let mut world = after(
        "BB",
        &[
            AskSame,
            ReceivedSame,
            Completed(0),
            Completed(1),
            Withdrawn(0),
        ],
    );
    let one = world.ids[0].clone();
    let state = |world: &TestArchive| world.state.record.replicas[&one].state.clone();
    for step in [
        Wanted(0),
        Restart,
        Joins,
        Step::Minutes(1500),
        Step::Absent(0),
        Completed(0),
    ] {
        world.step(step);
        assert!(state(&world).is_withdrawn(), "{step:?}");
    }
    world.step(Step::Absent(2));
    assert_eq!(
        world.state.choose_donor(&world.ids[2]),
        Some(world.ids[1].clone()),
        "never from there"
    );
    world.step(Completed(2));
    assert!(
        world.state.record.is_acknowledged() && world.state.is_idle(),
        "not below required"
    );
    world.step(AskSame);
    assert!(world.unanswered.is_empty() && world.state.is_idle());
    for step in [Withdrawn(1), Withdrawn(2), AskSame, Step::AskBare] {
        world.step(step);
        assert!(
            world.unanswered.is_empty() && world.state.is_idle(),
            "{step:?}"
        );
        assert_eq!(
            world.state.record.phase,
            NamePhase::Complete,
            "the name stays taken"
        );
    }
    world.step(Completed(0));
    assert!(
        state(&world).is_withdrawn(),
        "what is put there does not count by itself"
    );
    world.step(Reinstated(0));
    assert!(
        world.unanswered.is_empty() && !world.state.is_idle(),
        "it is asked for"
    );
    world.step(Completed(0));
    assert!(world.state.record.is_acknowledged() && world.state.is_idle());
}

/// Fails if a new replica, or one whose disk was given up, is not filled from another one, or one that has the file is
/// asked again.
#[test]
fn wanted_replica_gets_the_file_from_another() {
    use Step::{Absent, AskSame, Completed, Joins, ReceivedSame, Wanted, WantedElsewhere};
    let whole = [AskSame, ReceivedSame, Completed(0), Completed(1)];
    let mut world = after("BB", &whole);
    world.step(WantedElsewhere(0));
    assert!(world.state.is_idle(), "it is recorded on another volume");
    for (wanted, id) in [(Wanted(0), 0), (Joins, 2)] {
        assert!(world.step(wanted));
        world.step(Absent(id));
        assert!(
            matches!(world.activity(id), ReplicaActivity::Copying(_)),
            "{wanted:?}"
        );
        world.step(Completed(id));
        assert!(world.state.is_idle() && world.state.record.is_acknowledged());
    }
    assert_eq!(world.state.record.replicas.len(), 3);
}

/// Fails if nobody asks again for a lost reply, a retry never comes, an intent never ends, or a copy, a probe or a
/// verification is begun again and again while a depositor waits.
#[test]
fn random_walks_end_well_once_the_network_works() {
    let all: Vec<fn(usize) -> Step> = [
        REPLIES,
        &[
            Step::Placed,
            Step::Progress,
            Step::CompletedOther,
            Step::Moved,
        ],
        ORDERS,
    ]
    .concat();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % u64::try_from(bound).unwrap()).unwrap()
    };
    let sets = ["B", "BB", "Bb", "BC", "Bc", "BBC", "BBb", "BbC", "BBBc"];
    for _ in 0..20_000 {
        let set = sets[below(sets.len())];
        let steps = steps(set.len(), &all);
        let mut world = TestArchive::new(set);
        for _ in 0..below(40) {
            world.step(steps[below(steps.len())]);
        }
        for says in [
            None,
            Some(Step::Absent as fn(usize) -> Step),
            Some(Step::Progress),
            Some(Step::DataUploaded),
        ] {
            world.clone().answers_everybody(says);
        }
        world.ends_well();
    }
}

/// Fails if the depositor has to wait for a replica that is down, or to store again so that this replica gets the file.
#[test]
fn archive_finishes_alone_while_one_replica_is_down() {
    use Step::{Absent, AskSame, Completed, Failed, Minutes, ReceivedSame};
    let mut world = after("BB", &[AskSame, Failed(1), ReceivedSame]);
    assert!(
        world.unanswered.contains_key(&Requester(1)),
        "the other replica is still verifying"
    );
    world.step(Completed(0));
    assert!(
        world.unanswered.is_empty(),
        "told which replica lacks it, and why"
    );
    assert_eq!(world.state.record.phase, NamePhase::Incomplete);
    world.step(Minutes(2));
    world.step(Absent(1));
    let donor = world.ids[0].clone();
    assert!(
        matches!(world.activity(1), ReplicaActivity::Copying(_)),
        "from {donor}, without the depositor"
    );
    world.step(Completed(1));
    assert!(world.state.is_idle() && world.state.record.phase == NamePhase::Complete);
    world.step(AskSame);
    assert!(
        world.unanswered.is_empty() && world.state.is_idle(),
        "repeating the upload is a success at once"
    );
}

/// Fails if a lost copy still counts, is not copied again, or is copied without asking once more, or if a
/// restart on the way forgets the file.
#[test]
fn lost_copy_is_made_again_from_another() {
    use Step::{Absent, AskSame, Completed, Gone, Moved, ReceivedSame, Restart};
    let mut world = after("BB", &[AskSame, ReceivedSame, Completed(0), Completed(1)]);
    assert!(world.state.is_idle());
    world.step(Moved(1));
    let elsewhere = world.disk.replicas[&world.ids[1]].volume.clone();
    assert_eq!(elsewhere.unwrap().as_str(), "elsewhere");
    assert!(world.state.is_idle());
    world.step(Gone(1));
    assert_eq!(world.disk.phase, NamePhase::Bound);
    assert!(matches!(world.activity(1), ReplicaActivity::Probing(_)));
    world.step(Restart);
    world.step(Absent(1));
    assert!(matches!(world.activity(1), ReplicaActivity::Copying(_)));
    world.step(Completed(1));
    assert!(world.state.is_idle() && world.state.record.phase == NamePhase::Complete);
    world.step(Gone(0));
    world.step(Completed(0));
    assert!(world.state.is_idle(), "it was there after all");
    for replica in [0, 1] {
        world.step(Gone(replica));
    }
    assert_eq!(
        world.state.record.phase,
        NamePhase::Bound,
        "nobody has it: still the same content"
    );
    world.ends_well();
}

/// Fails if a second depositor is not asked for the bytes when the first is cut off, or has to begin a new upload.
#[test]
fn second_depositor_takes_over_from_a_cut_first() {
    let mut world = after("BB", &[Step::AskSame, Step::AskSame]);
    assert_eq!(world.state.source, Some(Requester(1)));
    world.step(Step::SourceGone);
    assert_eq!(world.state.source, Some(Requester(2)));
    assert_eq!(
        world.state.record.upload.as_ref().unwrap().id.as_str(),
        "up-1",
        "the nodes go on where they were"
    );
    for step in [Step::ReceivedSame, Step::Completed(0), Step::Completed(1)] {
        world.step(step);
    }
    assert!(world.unanswered.is_empty() && world.state.is_idle());
}

/// Fails if a name is given away while a silent replica may still commit what was admitted under it.
#[test]
fn admission_under_way_keeps_name_until_replica_denies() {
    let mut world = after("B", &[Step::AskSame, Step::ReceivedSame]);
    for _ in 0..100 {
        world.step(Step::Minutes(1500));
    }
    assert!(
        matches!(world.state.record.phase, NamePhase::Intent { .. }),
        "a month of silence proves nothing"
    );
    world.step(Step::Completed(0));
    assert_eq!(
        world.state.record.phase,
        NamePhase::Complete,
        "late success counts"
    );
}

/// Fails if a set of replicas is accepted in which no required one keeps the bytes, or in which one counts twice.
#[test]
fn replica_sets_that_risk_loss_are_refused() {
    let spec = |id: &str, kind, required| ReplicaSpec {
        id: ReplicaId::new(id).unwrap(),
        kind,
        required,
    };
    let name = FileName::new("a.warc").unwrap();
    let checksum = spec("one", ReplicaKind::Checksum, true);
    let optional = spec("two", ReplicaKind::Bitarchive, false);
    assert_eq!(
        FileRecord::free_name(name.clone(), &[checksum, optional]),
        Err(UnusableReplicas::NoneRequired)
    );
    let one = spec("one", ReplicaKind::Bitarchive, true);
    assert_eq!(
        FileRecord::free_name(name, &[one.clone(), one.clone()]),
        Err(UnusableReplicas::Twice(one.id))
    );
}

/// Fails if a liar is believed, or keeps a depositor waiting by repeating itself.
#[test]
fn lying_stalling_or_repeating_node_is_found_out() {
    let mut world = after("B", &[Step::AskSame, Step::Completed(0)]);
    let one = world.ids[0].clone();
    let state = |world: &TestArchive| world.state.record.replicas[&one].state.clone();
    assert_eq!(
        state(&world),
        ReplicaState::UploadFailed(StoreFailure::Conflict),
        "done before it had the admission"
    );
    assert!(world.unanswered.is_empty());

    world = after(
        "B",
        &[Step::AskSame, Step::ReceivedSame, Step::CompletedOther(0)],
    );
    assert_eq!(
        state(&world),
        ReplicaState::UploadFailed(StoreFailure::Conflict),
        "another root"
    );

    world = after("B", &[Step::AskSame, Step::ReceivedSame]);
    for _ in 0..10 {
        world.step(Step::DataUploaded(0));
        world.step(Step::Minutes(2));
    }
    assert!(world.unanswered.is_empty(), "always just about done");

    world = after(
        "BB",
        &[
            Step::AskSame,
            Step::ReceivedSame,
            Step::Completed(0),
            Step::Failed(1),
        ],
    );
    for _ in 0..90 {
        world.step(Step::Failed(1));
        world.step(Step::Minutes(1));
        if matches!(world.activity(1), ReplicaActivity::Probing(_)) {
            return;
        }
    }
    panic!("failing again and again puts off the next probe permanently");
}

/// Fails if one donor that cannot give is asked again and again.
#[test]
fn failed_copy_is_tried_from_another_donor() {
    use Step::{Absent, AskSame, Completed, Failed, Minutes, ReceivedSame};
    let mut world = after(
        "BBB",
        &[AskSame, ReceivedSame, Completed(0), Completed(1), Failed(2)],
    );
    let mut donors = BTreeSet::new();
    for _ in 0..2 {
        world.step(Minutes(10));
        world.step(Absent(2));
        assert!(matches!(world.activity(2), ReplicaActivity::Copying(_)));
        donors.insert(world.state.choose_donor(&world.ids[2]).unwrap());
        world.step(Failed(2));
    }
    assert_eq!(donors.len(), 2);
}
