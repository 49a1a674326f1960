//! Nodes that are not heard of yet, and nodes that break off each time.

use super::*;

#[test]
fn who_was_not_heard_of_is_waited_for_and_then_the_job_goes_on_without_it() {
    let mut world = World::running();
    // The cluster was started again, and nobody has said that he lives yet.
    world.seconds = 1000;
    assert!(matches!(
        world.say(looked_also(&[], &[], &["a", "b"])),
        Step::Pause(_)
    ));
    let reason = &world.life.reason;
    assert!(reason.contains("waits for a, b"), "{reason}");
    world.seconds = 1119;
    assert!(matches!(
        world.say(looked_also(&["a"], &["c"], &["b"])),
        Step::Pause(_)
    ));
    let reason = &world.life.reason;
    assert!(reason.contains("waits for b,"), "{reason}");
    world.seconds = 1120;
    let without = looked_also(&["a"], &["c"], &["b"]);
    assert_eq!(world.say(without.clone()), Step::Run);
    world.say(Event::Progress);
    // Not a second time, as long as it is not heard of.
    world.say(Event::Broke("cut".to_owned()));
    assert_eq!(world.say(without.clone()), Step::Run);
    world.say(Event::Progress);
    let names: Vec<_> = world.life.gaps.iter().map(|gap| &gap.node).collect();
    assert_eq!(names, ["b", "c"]);
    // It was there, and the monitor has forgotten it again.
    world.say(Event::Broke("cut".to_owned()));
    assert_eq!(world.say(looked(&["a", "b"], &["c"])), Step::Run);
    world.say(Event::Broke("cut".to_owned()));
    assert!(matches!(world.say(without), Step::Pause(_)));
}

#[test]
fn who_is_heard_of_in_time_leaves_no_gap() {
    let mut world = World::running();
    assert!(matches!(
        world.say(looked_also(&[], &[], &["a", "b"])),
        Step::Pause(_)
    ));
    world.seconds += 119;
    assert_eq!(world.say(looked(&["a", "b"], &[])), Step::Run);
    world.say(Event::Progress);
    world.say(Event::Finished(Vec::new()));
    world.say(compared(0));
    world.say(Event::Reduced);
    assert_eq!(world.life.ending(), Some(Ending::Done));
}

#[test]
fn who_breaks_off_each_time_is_left_out_and_named_with_its_last_words() {
    let mut world = World::at_the_brink();
    assert!(out(&world.life).is_empty());
    assert_eq!(world.say(broke("b")), Step::Look);
    assert_eq!(out(&world.life), ["b"]);
    let said = words(&world.life, "b");
    assert!(
        said.contains("5 times") && said.contains("after b.warc") && said.contains("node b: gone"),
        "{said}"
    );
    // Whatever becomes of it: it is neither waited for nor asked.
    assert_eq!(world.say(looked(&["a", "c"], &["b"])), Step::Run);
    assert_eq!(world.say(looked_also(&["a", "c"], &[], &["b"])), Step::Run);
    assert_eq!(world.say(looked(&["a", "b", "c"], &[])), Step::Run);
    world.say(Event::Progress);
    world.say(Event::Restarted);
    assert_eq!(out(&world.life), ["b"]);
    world.say(looked(&["a", "b", "c"], &[]));
    world.say(Event::Finished(vec![gap("b")]));
    world.say(compared(0));
    world.say(Event::Reduced);
    assert_eq!(world.life.ending(), Some(Ending::Partial));
    assert_eq!(world.life.gaps.len(), 1, "{:?}", world.life.gaps);
}

#[test]
fn words_of_a_liar_do_not_grow_and_come_to_those_of_a_known_gap() {
    let mut world = World::at_the_brink();
    world.life.add(gap("b"));
    let long = "ä".repeat(100_000);
    assert_eq!(world.say(Event::NodeBroke(node("b"), long)), Step::Look);
    let said = words(&world.life, "b");
    assert!(said.starts_with("silent; later it broke off"), "{said}");
    assert!(said.chars().count() < 1000);
}

#[test]
fn who_breaks_off_is_given_time_and_a_file_is_an_amnesty() {
    // A machine that is started again breaks off quickly and often.
    let mut world = World::running();
    for _ in 0..100 {
        world.say(looked(&["a", "b"], &[]));
        world.seconds += 1;
        assert!(matches!(world.say(broke("b")), Step::Pause(_)));
    }
    assert_eq!(world.life.attempts, 0, "the job is not to blame");
    // What ends its patience is a file, a restart of the repository, or that nobody knows how it is.
    for event in [
        Event::Progress,
        Event::Restarted,
        Event::Silent("no monitor".to_owned()),
    ] {
        let mut world = World::at_the_brink();
        world.say(event);
        for _ in 1..MOST_BREAKS {
            world.say(looked(&["a", "b", "c"], &[]));
            world.seconds += 61;
            assert!(matches!(world.say(broke("b")), Step::Pause(_)));
        }
        assert!(out(&world.life).is_empty());
        assert_eq!(world.say(broke("b")), Step::Look);
    }
}

#[test]
fn a_node_that_is_well_is_not_left_out_for_one_that_is_not() {
    let mut world = World::at_the_brink();
    // The healthy ones break off now and then too, as often as they may.
    for _ in 1..MOST_BREAKS {
        assert!(matches!(world.say(broke("a")), Step::Pause(_)));
        world.say(looked(&["a", "b", "c"], &[]));
    }
    world.seconds += 1000;
    assert_eq!(world.say(broke("b")), Step::Look);
    assert_eq!(out(&world.life), ["b"]);
    world.say(looked(&["a", "b", "c"], &[]));
    world.say(Event::Progress);
    assert!(matches!(world.say(broke("a")), Step::Pause(_)));
    assert_eq!(out(&world.life), ["b"]);
}

#[test]
fn the_last_node_is_not_left_out_but_fails_the_job() {
    let mut world = World::at_the_brink();
    world.say(broke("b"));
    for _ in 0..MOST_BREAKS {
        world.say(looked(&["a", "b", "c"], &[]));
        world.seconds += 61;
        world.say(broke("a"));
    }
    assert_eq!(out(&world.life), ["a", "b"]);
    // One that is left out already, one that is not there, and the last one.
    for (at, name) in (1..=MOST_ATTEMPTS).zip(["a", "x", "c"].into_iter().cycle()) {
        world.say(looked(&["a", "b", "c"], &["d"]));
        world.seconds += 61;
        assert_eq!(world.say(broke(name)) == Step::Close, at == MOST_ATTEMPTS);
    }
    world.say(Event::Compared(UnreadFiles::default()));
    assert_eq!(world.life.ending(), Some(Ending::Failed));
    let reason = &world.life.reason;
    assert!(
        reason.contains("20 times in a row after b.warc") && reason.contains(": gone"),
        "{reason}"
    );
    assert_eq!(world.life.gaps.len(), 2, "what is known stays");
}
