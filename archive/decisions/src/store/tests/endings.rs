//! The end of stores: when the network works again, and when nothing ever does.

use archive_model::time_after;
use jiff::SignedDuration;

use super::super::*;
use super::after;
use super::world::{ADMITTED, Step, TestArchive, content};

impl TestArchive {
    /// Lets the network work and every replica tell the truth from here on: the file must arrive everywhere, or the
    /// name become free again. Earlier losses must be found out by the timers alone.
    pub(super) fn ends_well(mut self) {
        for round in 0.. {
            assert!(
                round < 300,
                "it does not end: {:?}\n{:#?}",
                self.trail,
                self.state
            );
            if self.state.is_idle() {
                return;
            }
            let only_checksums =
                self.state.record.phase.is_bound() && self.state.record.donors().next().is_none();
            if only_checksums && self.state.source.is_none() && round > 20 {
                // No replica can give the bytes: the depositor, who was told to keep them, sends them again.
                let claim = Claim::from(self.state.record.content.as_ref().unwrap());
                let event = self.ask(claim);
                self.apply(event);
            }
            if let Some(requester) =
                self.state
                    .source
                    .or(self.state.comparing.keys().next().copied())
            {
                let byte = self
                    .state
                    .record
                    .content
                    .as_ref()
                    .map_or(ADMITTED, |content| content.root.as_bytes()[0]);
                self.apply(StoringEvent::Received {
                    requester,
                    content: content(byte),
                });
            }
            for id in self.ids.clone() {
                let root = self
                    .state
                    .record
                    .content
                    .as_ref()
                    .map(|content| content.root.as_bytes()[0]);
                if matches!(
                    self.state.current_activity(&id),
                    ReplicaActivity::Probing(_)
                ) {
                    self.apply(StoringEvent::Absent {
                        replica: id.clone(),
                    });
                }
                if let (ReplicaActivity::Verifying(_) | ReplicaActivity::Copying(_), Some(byte)) =
                    (self.state.current_activity(&id), root)
                {
                    self.apply(self.completion(id, byte));
                }
            }
            self.ring();
        }
    }

    /// Lets nothing get done from here on: every replica only ever says the same thing, or nothing, and the depositors'
    /// streams are silent. Each depositor must be answered within 25 hours, by the timers alone.
    pub(super) fn answers_everybody(mut self, says: Option<fn(usize) -> Step>) {
        let end = time_after(self.now, SignedDuration::from_hours(25));
        while self.now < end && !self.unanswered.is_empty() {
            for replica in 0..self.ids.len() {
                if let Some(says) = says.filter(|_| self.state.source.is_none()) {
                    self.step(says(replica));
                }
            }
            self.ring();
        }
        assert!(
            self.unanswered.is_empty(),
            "{:?} waits without end: {:?}\n{:#?}",
            self.unanswered,
            self.trail,
            self.state
        );
    }

    fn ring(&mut self) {
        if let Some(deadline) = self.state.next_deadline() {
            self.now = self.now.max(deadline);
            self.apply(StoringEvent::Tick);
        }
    }
}

/// Fails if a file that every replica has lost is not taken again from a depositor who still has it, or if a depositor
/// is told before that the archive has it.
#[test]
fn file_lost_everywhere_is_accepted_from_depositor_again() {
    use Step::{Absent, AskOther, AskSame, Completed, DataUploaded, Gone, ReceivedSame, Restart};
    let all = [
        AskSame,
        ReceivedSame,
        Completed(0),
        Completed(1),
        Completed(2),
    ];
    for (gone, restart) in [(2, false), (2, true), (3, false)] {
        let mut world = after("BBC", &all);
        assert!(world.state.record.is_acknowledged() && world.state.is_idle());
        for replica in 0..gone {
            // The replicas of the set, by their ids: one, three (checksums), two.
            let replica = [0, 2, 1][replica];
            world.step(Gone(replica));
        }
        if restart {
            world.step(Restart);
        }
        assert!(!world.state.record.is_acknowledged());
        let root = world.state.record.content.clone();
        world.step(AskOther);
        assert!(world.unanswered.is_empty(), "other content stays refused");
        world.step(AskSame);
        assert_eq!(world.unanswered.len(), 1);
        for replica in 0..gone {
            world.step(Absent([0, 2, 1][replica]));
        }
        assert!(
            world.state.source.is_some(),
            "it may send: {:?}",
            world.state
        );
        world.step(ReceivedSame);
        for replica in 0..gone {
            let replica = [0, 2, 1][replica];
            assert_eq!(world.unanswered.len(), 1);
            world.step(DataUploaded(replica));
            world.step(Completed(replica));
        }
        assert!(world.unanswered.is_empty());
        assert!(world.state.record.is_acknowledged() && world.state.is_idle());
        assert_eq!(world.state.record.content, root, "the same admission");
    }
}

/// Fails if some short order of events, after one replica has committed, lets the silence of another pass for absence
/// of its copy.
#[test]
fn every_short_sequence_with_silence_keeps_promises() {
    use Step::{AskSame, Completed, Failed, Gone, Minutes, ReceivedSame, Restart};
    let mut tried = 0;
    for set in ["BB", "Bb", "BC"] {
        for prefix in [
            &[AskSame, Failed(1), ReceivedSame, Completed(0)][..],
            &[AskSame, ReceivedSame, Completed(0), Completed(1), Gone(1)],
        ] {
            let replies = [
                Step::Silent,
                Step::Absent,
                Step::DataUploaded,
                Completed,
                Failed,
                Gone,
            ];
            let of = (0..2).flat_map(|r| replies.iter().map(move |step| step(r)));
            let steps: Vec<_> = [AskSame, Minutes(6), Restart]
                .into_iter()
                .chain(of)
                .collect();
            tried += super::explore(&after(set, prefix), &steps, 4);
        }
    }
    println!("{tried} sequences with silence");
    assert!(tried > 10_000);
}

/// Fails if one offline volume keeps a file out of a replica that was never given it; or if silence passes for absence
/// where the replica may hold a copy, because it was given the admission or held one before.
#[test]
fn silent_volume_blocks_only_what_it_may_hold() {
    use Step::{Absent, AskSame, Completed, Failed, Gone, Minutes, ReceivedSame, Restart, Silent};
    let copies = |steps: &[Step]| {
        let mut world = after("BB", &[AskSame, Failed(1), ReceivedSame, Completed(0)]);
        for step in steps {
            world.step(*step);
        }
        matches!(world.activity(1), ReplicaActivity::Copying(_))
    };
    assert!(copies(&[Restart, Silent(1)]), "it was never given the file");
    let given = [Restart, Absent(1), Step::DataUploaded(1), Failed(1)];
    let then = |last: &[Step]| copies(&[&given[..], &[Minutes(6)], last].concat());
    assert!(!then(&[Silent(1)]), "it has had every byte");
    assert!(then(&[Absent(1)]), "every volume has said no");
    let held = [Restart, Absent(1), Completed(1), Gone(1)];
    let then = |last: &[Step]| copies(&[&held[..], last].concat());
    assert!(!then(&[Silent(1)]), "it has held a copy");
    assert!(!then(&[Silent(1), Minutes(6), Silent(1)]), "nor later");
    assert!(then(&[Silent(1), Minutes(6), Absent(1)]));
}

/// Fails if a depositor is told to store again what every replica already holds and the admin data do not know, or if
/// one is sent to an officer because a single replica holds the name.
#[test]
fn name_held_by_unknown_files_names_adopt() {
    use Step::{AskSame, Completed, Failed};
    for (first, is_for_officer) in [(Failed(0), false), (Completed(0), true)] {
        let mut world = after("BB", &[AskSame, first]);
        let event = world.completion(world.ids[1].clone(), ADMITTED);
        let effects = world
            .state
            .apply_event(event, world.now, &StoreLimits::default());
        let error = effects.into_iter().find_map(|effect| {
            if let Effect::Answer { result, .. } = effect {
                result.err()
            } else {
                None
            }
        });
        let text = error.unwrap().to_string();
        assert_eq!(text.contains("holdfast adopt"), is_for_officer, "{text}");
        assert_eq!(text.contains("no node has room"), !is_for_officer, "{text}");
    }
}

/// Fails if a depositor who still has a file is not let send it where the only copy gives no bytes, or is let send it
/// where the other replica is only away.
#[test]
fn file_that_no_copy_gives_is_accepted_from_depositor_again() {
    use Step::{Absent, AskSame, Completed, DataUploaded, Failed, ReceivedSame};
    let all = [AskSame, ReceivedSame, Completed(0), Failed(1)];
    let mut world = after("BB", &all);
    assert!(world.unanswered.is_empty() && world.state.source.is_none());
    world.step(AskSame);
    world.step(Failed(1));
    assert!(world.unanswered.is_empty(), "it is away");
    for _ in 0..2 {
        world.step(AskSame);
        world.step(Absent(1));
        let activity = world.state.current_activity(&world.ids[1]);
        assert!(
            matches!(activity, ReplicaActivity::Copying(_)),
            "{activity:?}"
        );
        assert!(world.state.source.is_none(), "a copy is tried first");
        world.step(Failed(1));
        assert!(
            world.state.source.is_some(),
            "it may send: {:?}",
            world.state
        );
        world.step(Failed(1));
        assert!(world.unanswered.is_empty(), "once");
    }
    world.step(AskSame);
    world.step(Absent(1));
    world.step(Failed(1));
    world.step(ReceivedSame);
    world.step(DataUploaded(1));
    world.step(Completed(1));
    assert!(world.unanswered.is_empty() && world.state.record.is_acknowledged());
}

/// Fails if a depositor that stores again and again puts off what the archive does by itself.
#[test]
fn storing_again_does_not_prolong_the_pause() {
    use Step::{AskSame, Completed, Failed, ReceivedSame};
    let mut world = after("BB", &[AskSame, ReceivedSame, Completed(0), Failed(1)]);
    let pause = |world: &TestArchive| {
        let retries = world.state.retry_times();
        let (_, until) = retries.first_key_value().unwrap();
        until.duration_since(world.now)
    };
    let minute = SignedDuration::from_mins(1);
    for _ in 0..10 {
        assert_eq!(pause(&world), minute);
        world.step(AskSame);
        assert!(world.state.retry_times().is_empty(), "it is asked at once");
        world.step(Failed(1));
    }
    for pauses in 1..=3 {
        world.ring();
        world.step(Failed(1));
        assert_eq!(pause(&world), minute * (1 << pauses));
    }
}
