//! Nodes that are not heard of yet, and nodes that break off each time.

use super::*;

#[test]
fn who_was_not_heard_of_is_waited_for_and_then_the_job_goes_on_without_it() {
    let mut history = JobHistory::running();
    // The cluster was started again, and nobody has said that he lives yet.
    history.seconds = 1000;
    assert!(matches!(
        history.say(looked_also(&[], &[], &["a", "b"])),
        Step::Pause(_)
    ));
    let reason = &history.life.reason;
    assert!(reason.contains("waits for a, b"), "{reason}");
    history.seconds = 1119;
    assert!(matches!(
        history.say(looked_also(&["a"], &["c"], &["b"])),
        Step::Pause(_)
    ));
    let reason = &history.life.reason;
    assert!(reason.contains("waits for b,"), "{reason}");
    history.seconds = 1120;
    let without = looked_also(&["a"], &["c"], &["b"]);
    assert_eq!(history.say(without.clone()), Step::Run);
    history.say(Event::Progress);
    // Not a second time, as long as it is not heard of.
    history.say(Event::Broke("cut".to_owned()));
    assert_eq!(history.say(without.clone()), Step::Run);
    history.say(Event::Progress);
    let names: Vec<_> = history.life.gaps.iter().map(|gap| &gap.node).collect();
    assert_eq!(names, ["b", "c"]);
    // It was there, and the monitor has forgotten it again.
    history.say(Event::Broke("cut".to_owned()));
    assert_eq!(history.say(looked(&["a", "b"], &["c"])), Step::Run);
    history.say(Event::Broke("cut".to_owned()));
    assert!(matches!(history.say(without), Step::Pause(_)));
}

#[test]
fn who_is_heard_of_in_time_leaves_no_gap() {
    let mut history = JobHistory::running();
    assert!(matches!(
        history.say(looked_also(&[], &[], &["a", "b"])),
        Step::Pause(_)
    ));
    history.seconds += 119;
    assert_eq!(history.say(looked(&["a", "b"], &[])), Step::Run);
    history.say(Event::Progress);
    history.say(Event::Finished(Vec::new()));
    history.say(compared(0));
    history.say(Event::Reduced);
    assert_eq!(history.life.ending(), Some(Ending::Done));
}

#[test]
fn who_breaks_off_each_time_is_left_out_and_named_with_its_last_words() {
    let mut history = JobHistory::at_the_brink();
    assert!(out(&history.life).is_empty());
    assert_eq!(history.say(broke("b")), Step::Look);
    assert_eq!(out(&history.life), ["b"]);
    let said = words(&history.life, "b");
    assert!(
        said.contains("5 times") && said.contains("after b.warc") && said.contains("node b: gone"),
        "{said}"
    );
    // Whatever becomes of it: it is neither waited for nor asked.
    assert_eq!(history.say(looked(&["a", "c"], &["b"])), Step::Run);
    assert_eq!(
        history.say(looked_also(&["a", "c"], &[], &["b"])),
        Step::Run
    );
    assert_eq!(history.say(looked(&["a", "b", "c"], &[])), Step::Run);
    history.say(Event::Progress);
    history.say(Event::Restarted);
    assert_eq!(out(&history.life), ["b"]);
    history.say(looked(&["a", "b", "c"], &[]));
    history.say(Event::Finished(vec![gap("b")]));
    history.say(compared(0));
    history.say(Event::Reduced);
    assert_eq!(history.life.ending(), Some(Ending::Partial));
    assert_eq!(history.life.gaps.len(), 1, "{:?}", history.life.gaps);
}

#[test]
fn words_of_a_liar_do_not_grow_and_come_to_those_of_a_known_gap() {
    let mut history = JobHistory::at_the_brink();
    history.life.add(gap("b"));
    let long = "ä".repeat(100_000);
    assert_eq!(history.say(Event::NodeBroke(node("b"), long)), Step::Look);
    let said = words(&history.life, "b");
    assert!(said.starts_with("silent; later it broke off"), "{said}");
    assert!(said.chars().count() < 1000);
}

#[test]
fn who_breaks_off_is_given_time_and_a_file_is_an_amnesty() {
    // A machine that is started again breaks off quickly and often.
    let mut history = JobHistory::running();
    for _ in 0..100 {
        history.say(looked(&["a", "b"], &[]));
        history.seconds += 1;
        assert!(matches!(history.say(broke("b")), Step::Pause(_)));
    }
    assert_eq!(history.life.attempts, 0, "the job is not to blame");
    // What ends its patience is a file, a restart of the repository, or that nobody knows how it is.
    for event in [
        Event::Progress,
        Event::Restarted,
        Event::Silent("no monitor".to_owned()),
    ] {
        let mut history = JobHistory::at_the_brink();
        history.say(event);
        for _ in 1..MOST_BREAKS {
            history.say(looked(&["a", "b", "c"], &[]));
            history.seconds += 61;
            assert!(matches!(history.say(broke("b")), Step::Pause(_)));
        }
        assert!(out(&history.life).is_empty());
        assert_eq!(history.say(broke("b")), Step::Look);
    }
}

#[test]
fn a_node_that_is_well_is_not_left_out_for_one_that_is_not() {
    let mut history = JobHistory::at_the_brink();
    // The healthy ones break off now and then too, as often as they may.
    for _ in 1..MOST_BREAKS {
        assert!(matches!(history.say(broke("a")), Step::Pause(_)));
        history.say(looked(&["a", "b", "c"], &[]));
    }
    history.seconds += 1000;
    assert_eq!(history.say(broke("b")), Step::Look);
    assert_eq!(out(&history.life), ["b"]);
    history.say(looked(&["a", "b", "c"], &[]));
    history.say(Event::Progress);
    assert!(matches!(history.say(broke("a")), Step::Pause(_)));
    assert_eq!(out(&history.life), ["b"]);
}

#[test]
fn the_last_node_is_not_left_out_but_fails_the_job() {
    let mut history = JobHistory::at_the_brink();
    history.say(broke("b"));
    for _ in 0..MOST_BREAKS {
        history.say(looked(&["a", "b", "c"], &[]));
        history.seconds += 61;
        history.say(broke("a"));
    }
    assert_eq!(out(&history.life), ["a", "b"]);
    // One that is left out already, one that is not there, and the last one.
    for (at, name) in (1..=MOST_ATTEMPTS).zip(["a", "x", "c"].into_iter().cycle()) {
        history.say(looked(&["a", "b", "c"], &["d"]));
        history.seconds += 61;
        assert_eq!(history.say(broke(name)) == Step::Close, at == MOST_ATTEMPTS);
    }
    history.say(Event::Compared(UnreadFiles::default()));
    assert_eq!(history.life.ending(), Some(Ending::Failed));
    let reason = &history.life.reason;
    assert!(
        reason.contains("20 times in a row after b.warc") && reason.contains(": gone"),
        "{reason}"
    );
    assert_eq!(history.life.gaps.len(), 2, "what is known stays");
}
