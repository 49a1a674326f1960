//! Nodes that are not heard of yet, and nodes that end each run.

use super::*;

/// Fails if a job does not wait for nodes after a restart of the cluster, waits without limit, or waits twice.
#[test]
fn silent_node_is_waited_for_once() {
    let mut history = JobHistory::running();
    // The cluster was started again, and no node has reported yet.
    history.seconds = 1000;
    assert!(matches!(
        history.say(looked_also(&[], &[], &["a", "b"])),
        JobStep::Pause(_)
    ));
    let reason = &history.life.reason;
    assert!(reason.contains("waiting for a, b"), "{reason}");
    history.seconds = 1119;
    assert!(matches!(
        history.say(looked_also(&["a"], &["c"], &["b"])),
        JobStep::Pause(_)
    ));
    let reason = &history.life.reason;
    assert!(reason.contains("waiting for b,"), "{reason}");
    history.seconds = 1120;
    let without = looked_also(&["a"], &["c"], &["b"]);
    assert_eq!(history.say(without.clone()), JobStep::Run);
    history.say(JobEvent::Progress);
    // The job does not wait a second time, as long as the node is not heard of.
    history.say(JobEvent::Broke("cut".to_owned()));
    assert_eq!(history.say(without.clone()), JobStep::Run);
    history.say(JobEvent::Progress);
    let names: Vec<_> = history.life.gaps.iter().map(|gap| &gap.node).collect();
    assert_eq!(names, ["b", "c"]);
    // The node was there, and the monitor has forgotten it.
    history.say(JobEvent::Broke("cut".to_owned()));
    assert_eq!(history.say(looked(&["a", "b"], &["c"])), JobStep::Run);
    history.say(JobEvent::Broke("cut".to_owned()));
    assert!(matches!(history.say(without), JobStep::Pause(_)));
}

/// Fails if a node that reports within the patience becomes a gap.
#[test]
fn node_that_answers_in_time_leaves_no_gap() {
    let mut history = JobHistory::running();
    assert!(matches!(
        history.say(looked_also(&[], &[], &["a", "b"])),
        JobStep::Pause(_)
    ));
    history.seconds += 119;
    assert_eq!(history.say(looked(&["a", "b"], &[])), JobStep::Run);
    history.say(JobEvent::Progress);
    history.say(JobEvent::Finished(Vec::new()));
    history.say(compared(0));
    history.say(JobEvent::Reduced);
    assert_eq!(history.life.ending(), Some(JobEnding::Done));
}

/// Fails if a node that ends each run holds up the job, is asked again, or is not named with its last error.
#[test]
fn node_failing_each_run_is_left_out() {
    let mut history = JobHistory::at_the_brink();
    assert!(out(&history.life).is_empty());
    assert_eq!(history.say(broke("b")), JobStep::Look);
    assert_eq!(out(&history.life), ["b"]);
    let said = words(&history.life, "b");
    assert!(
        said.contains("5 times") && said.contains("after b.warc") && said.contains("node b: gone"),
        "{said}"
    );
    // The node is neither waited for nor asked, in any state.
    assert_eq!(history.say(looked(&["a", "c"], &["b"])), JobStep::Run);
    assert_eq!(
        history.say(looked_also(&["a", "c"], &[], &["b"])),
        JobStep::Run
    );
    assert_eq!(history.say(looked(&["a", "b", "c"], &[])), JobStep::Run);
    history.say(JobEvent::Progress);
    history.say(JobEvent::Restarted);
    assert_eq!(out(&history.life), ["b"]);
    history.say(looked(&["a", "b", "c"], &[]));
    history.say(JobEvent::Finished(vec![gap("b")]));
    history.say(compared(0));
    history.say(JobEvent::Reduced);
    assert_eq!(history.life.ending(), Some(JobEnding::Partial));
    assert_eq!(history.life.gaps.len(), 1, "{:?}", history.life.gaps);
}

/// Fails if a long error of a node fills the row, or replaces the reason of its earlier gap.
#[test]
fn error_of_left_out_node_is_shortened() {
    let mut history = JobHistory::at_the_brink();
    history.life.add_gap(gap("b"));
    let long = "ä".repeat(100_000);
    assert_eq!(
        history.say(JobEvent::NodeBroke(node("b"), long)),
        JobStep::Look
    );
    let said = words(&history.life, "b");
    assert!(said.starts_with("silent; later the node failed"), "{said}");
    assert!(said.chars().count() < 1000);
}

/// Fails if a restarting node is left out at once, or its failures count on after a new file.
#[test]
fn new_file_resets_blame_counter() {
    // A machine that restarts fails quickly and often.
    let mut history = JobHistory::running();
    for _ in 0..100 {
        history.say(looked(&["a", "b"], &[]));
        history.seconds += 1;
        assert!(matches!(history.say(broke("b")), JobStep::Pause(_)));
    }
    assert_eq!(history.life.attempts, 0, "the job is not to blame");
    // A new file, a restart of the repository and a silent monitor reset the counters.
    for event in [
        JobEvent::Progress,
        JobEvent::Restarted,
        JobEvent::Silent("no monitor".to_owned()),
    ] {
        let mut history = JobHistory::at_the_brink();
        history.say(event);
        for _ in 1..MOST_BREAKS {
            history.say(looked(&["a", "b", "c"], &[]));
            history.seconds += 61;
            assert!(matches!(history.say(broke("b")), JobStep::Pause(_)));
        }
        assert!(out(&history.life).is_empty());
        assert_eq!(history.say(broke("b")), JobStep::Look);
    }
}

/// Fails if a node is left out because another one ends the runs.
#[test]
fn healthy_node_is_not_left_out() {
    let mut history = JobHistory::at_the_brink();
    // Healthy nodes fail now and then too, as often as they may.
    for _ in 1..MOST_BREAKS {
        assert!(matches!(history.say(broke("a")), JobStep::Pause(_)));
        history.say(looked(&["a", "b", "c"], &[]));
    }
    history.seconds += 1000;
    assert_eq!(history.say(broke("b")), JobStep::Look);
    assert_eq!(out(&history.life), ["b"]);
    history.say(looked(&["a", "b", "c"], &[]));
    history.say(JobEvent::Progress);
    assert!(matches!(history.say(broke("a")), JobStep::Pause(_)));
    assert_eq!(out(&history.life), ["b"]);
}

/// Fails if a job leaves out its last node and ends as if it had read something.
#[test]
fn last_node_fails_job_instead() {
    let mut history = JobHistory::at_the_brink();
    history.say(broke("b"));
    for _ in 0..MOST_BREAKS {
        history.say(looked(&["a", "b", "c"], &[]));
        history.seconds += 61;
        history.say(broke("a"));
    }
    assert_eq!(out(&history.life), ["a", "b"]);
    // A node that is left out already, one that is not there, and the last one.
    for (at, name) in (1..=MOST_ATTEMPTS).zip(["a", "x", "c"].into_iter().cycle()) {
        history.say(looked(&["a", "b", "c"], &["d"]));
        history.seconds += 61;
        assert_eq!(
            history.say(broke(name)) == JobStep::Close,
            at == MOST_ATTEMPTS
        );
    }
    history.say(JobEvent::Compared(UnreadFiles::default()));
    assert_eq!(history.life.ending(), Some(JobEnding::Failed));
    let reason = &history.life.reason;
    assert!(
        reason.contains("20 times in a row after b.warc") && reason.contains(": gone"),
        "{reason}"
    );
    assert_eq!(history.life.gaps.len(), 2, "what is known stays");
}
