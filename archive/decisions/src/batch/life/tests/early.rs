//! Tests of jobs that end early: unread files are counted and named.

use archive_model::limits::MOST_GAPS;

use super::*;

pub(super) fn ends_early(life: &JobLife) -> bool {
    matches!(life.phase, JobPhase::Closing(_))
}

/// Checks that a job that had begun ends early only after its unread files were counted, or with a gap that says that
/// they were not.
pub(super) fn check_counted(before: &JobLife, event: &JobEvent, after: &JobLife) {
    let ended = matches!(
        after.ending(),
        Some(JobEnding::Failed | JobEnding::Cancelled)
    );
    if !ended
        || before.ending().is_some()
        || matches!(before.phase, JobPhase::Waiting | JobPhase::Reducing)
    {
        return;
    }
    assert!(ends_early(before), "{before:?} {event:?} {after:?}");
    let is_gap = |node: &str| after.gaps.iter().any(|gap| gap.node == node);
    if let JobEvent::Compared(unread) = event {
        assert_eq!(after.unread, unread.total);
        let mut nodes = unread.by_node.keys();
        assert!(nodes.all(|node| is_gap(node.as_str())), "{after:?}");
    } else {
        assert!(
            matches!(event, JobEvent::Uncounted(_)),
            "{event:?}: {after:?}"
        );
        assert!(is_gap(""), "{after:?}");
    }
}

/// Returns a job that has read up to `b.warc`.
fn reading() -> JobHistory {
    let mut history = JobHistory::running();
    history.say(looked(&["a", "b"], &[]));
    history.say(JobEvent::Progress);
    history
}

/// Fails if a job out of time ends before its unread files were counted, or its nodes are not named.
#[test]
fn job_out_of_time_names_unread_nodes() {
    let mut history = reading();
    assert_eq!(history.say(JobEvent::TimeOver), JobStep::Close);
    assert_eq!(history.life.ending(), None);
    assert_eq!(history.say(compared(7)), JobStep::Stop);
    assert_eq!(history.life.ending(), Some(JobEnding::Failed));
    assert_eq!(history.life.unread, 7);
    let said = words(&history.life, "b");
    assert!(
        said.contains("7 of its files") && said.contains("after b.warc"),
        "{said}"
    );
    assert_eq!(history.life.reason, "the time limit of the job has passed");
}

/// Fails if a late event changes why or how a closing job ends, or if a restart forgets it.
#[test]
fn closing_job_keeps_its_reason() {
    let mut history = reading();
    let cancelled = |who: &str| JobEvent::Cancelled(who.to_owned());
    assert_eq!(history.say(cancelled("researcher/anna")), JobStep::Close);
    for late in [
        cancelled("operator/olga"),
        JobEvent::Failed("late".to_owned()),
        JobEvent::TimeOver,
        JobEvent::Progress,
        JobEvent::Finished(Vec::new()),
        JobEvent::Restarted,
        JobEvent::Turn,
    ] {
        assert_eq!(history.say(late.clone()), JobStep::Close, "{late:?}");
    }
    assert_eq!(history.say(compared(1)), JobStep::Stop);
    assert_eq!(history.life.ending(), Some(JobEnding::Cancelled));
    assert_eq!(history.life.reason, "cancelled by researcher/anna");
}

/// Fails if files that could not be counted look like no unread files.
#[test]
fn uncounted_files_make_the_replica_a_gap() {
    let mut history = reading();
    history.say(JobEvent::Failed("the disk is full".to_owned()));
    let uncounted = JobEvent::Uncounted("no room".to_owned());
    assert_eq!(history.say(uncounted), JobStep::Stop);
    assert_eq!(history.life.reason, "the disk is full");
    let said = words(&history.life, "");
    assert!(said.contains("cannot be counted: no room"), "{said}");
}

/// Fails if a job that waits is compared with an archive that it never asked for, or says nothing of it.
#[test]
fn waiting_job_is_cancelled_at_once() {
    let mut history = JobHistory::new();
    let cancelled = JobEvent::Cancelled("researcher/anna".to_owned());
    assert_eq!(history.say(cancelled), JobStep::Stop);
    let reason = &history.life.reason;
    assert!(
        reason.ends_with("the job had not begun and read no file"),
        "{reason}"
    );
}

/// Fails if gaps beyond the limit are dropped without a word.
#[test]
fn too_many_gaps_say_so() {
    let mut history = reading();
    let gaps = (0..2000).map(|at| gap(&format!("n-{at}")));
    history.say(JobEvent::Finished(gaps.collect()));
    let gaps = &history.life.gaps;
    assert_eq!(gaps.len(), MOST_GAPS);
    assert!(
        gaps[MOST_GAPS - 1].reason.starts_with("256 or more"),
        "{:?}",
        gaps[MOST_GAPS - 1]
    );
}

/// Fails if a run that always breaks at one place is repeated without end, or its job does not say where.
#[test]
fn run_breaking_at_one_place_fails_job() {
    let mut history = JobHistory::running();
    history.say(looked(&["a"], &[]));
    for _ in 0..100 {
        // With progress in between, a run may break any number of times.
        assert!(matches!(
            history.say(JobEvent::Broke("cut".to_owned())),
            JobStep::Pause(_)
        ));
        history.say(looked(&["a"], &[]));
        history.say(JobEvent::Progress);
    }
    for at in 1..=MOST_ATTEMPTS {
        let step = history.say(JobEvent::Broke("node a: gone".to_owned()));
        assert_eq!(step == JobStep::Close, at == MOST_ATTEMPTS, "{at}");
        history.say(looked(&["a"], &[]));
    }
    history.say(compared(2));
    assert_eq!(history.life.ending(), Some(JobEnding::Failed));
    let reason = &history.life.reason;
    assert!(
        reason.contains("after b.warc") && reason.contains("node a: gone"),
        "{reason}"
    );
    let mut busy = JobHistory::running();
    for _ in 0..1000 {
        assert!(matches!(
            busy.say(JobEvent::Busy("full".to_owned())),
            JobStep::Pause(_)
        ));
    }
}
