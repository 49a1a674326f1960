//! Tests of all short sequences of events, and of the long ones that matter.

mod away;
mod early;
mod named;

use std::collections::BTreeSet;

use early::{check_counted, ends_early};

use super::nodes::MOST_BREAKS;
use super::*;

fn node(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn nodes(names: &[&str]) -> BTreeSet<NodeId> {
    names.iter().map(|name| node(name)).collect()
}

fn looked(alive: &[&str], silent: &[&str]) -> JobEvent {
    looked_also(alive, silent, &[])
}

/// Reports the state of the nodes, with those that were never heard of.
fn looked_also(alive: &[&str], silent: &[&str], unheard: &[&str]) -> JobEvent {
    JobEvent::Looked(NodeSets {
        alive: nodes(alive),
        silent: nodes(silent),
        unheard: nodes(unheard),
    })
}

fn broke(name: &str) -> JobEvent {
    JobEvent::NodeBroke(node(name), format!("node {name}: gone"))
}

fn compared(total: u64) -> JobEvent {
    JobEvent::Compared(UnreadFiles {
        total,
        by_node: BTreeMap::from([(node("b"), total)]),
    })
}

fn out(life: &JobLife) -> Vec<&str> {
    life.left_out().map(NodeId::as_str).collect()
}

/// Returns the reason of the gap of a whole node.
fn words<'a>(life: &'a JobLife, node: &str) -> &'a str {
    let mut gaps = life.gaps.iter();
    let gap = gaps.find(|gap| gap.node == node && gap.volume.is_empty());
    &gap.unwrap().reason
}

fn gap(node: &str) -> JobGap {
    JobGap {
        node: node.to_owned(),
        volume: String::new(),
        reason: "silent".to_owned(),
    }
}

const PATIENCE: Duration = Duration::from_mins(2);

/// A job and its time.
#[derive(Clone)]
struct JobHistory {
    life: JobLife,
    seconds: i64,
    is_by_name: bool,
}

impl JobHistory {
    fn new() -> Self {
        Self {
            life: JobLife::default(),
            seconds: 0,
            is_by_name: false,
        }
    }

    fn running() -> Self {
        let mut history = Self::new();
        assert_eq!(history.say(JobEvent::Turn), JobStep::Look);
        history
    }

    /// Returns a job over `a`, `b` and `c`; one more failure of `b`, and it is left out.
    fn at_the_brink() -> Self {
        let mut history = Self::running();
        for _ in 1..MOST_BREAKS {
            history.say(looked(&["a", "b", "c"], &[]));
            history.seconds += 61;
            assert!(matches!(history.say(broke("b")), JobStep::Pause(_)));
        }
        history.say(looked(&["a", "b", "c"], &[]));
        history
    }

    fn say(&mut self, event: JobEvent) -> JobStep {
        let after = FileName::new("b.warc").unwrap();
        let context = JobSurroundings {
            now: Timestamp::from_second(self.seconds).unwrap(),
            patience: PATIENCE,
            after: Some(&after),
            is_by_name: self.is_by_name,
        };
        self.life.apply_event(event, context)
    }
}

fn events() -> Vec<JobEvent> {
    vec![
        JobEvent::Turn,
        JobEvent::Restarted,
        looked(&["a", "b"], &[]),
        looked(&["a"], &["b"]),
        looked(&[], &["a", "b"]),
        looked_also(&["a"], &[], &["b"]),
        JobEvent::Silent("gone".to_owned()),
        JobEvent::Busy("full".to_owned()),
        JobEvent::Woke,
        JobEvent::Progress,
        JobEvent::Broke("cut".to_owned()),
        broke("a"),
        broke("b"),
        JobEvent::Finished(Vec::new()),
        JobEvent::Finished(vec![gap("b")]),
        compared(0),
        compared(3),
        JobEvent::Uncounted("list".to_owned()),
        JobEvent::Reduced,
        JobEvent::Failed("disk".to_owned()),
        JobEvent::TimeOver,
        JobEvent::Cancelled("researcher/anna".to_owned()),
    ]
}

fn check(before: &JobLife, event: &JobEvent, after: &JobLife, step: JobStep) {
    let told = || format!("{before:?} {event:?} {after:?} {step:?}");
    if before.ending().is_some() {
        assert_eq!(before, after, "what has ended stays: {}", told());
        assert_eq!(step, JobStep::Stop);
    }
    // A step is one of the phase.
    let fits = match after.phase {
        JobPhase::Waiting => step == JobStep::Wait,
        JobPhase::Reading => matches!(step, JobStep::Look | JobStep::Run | JobStep::Pause(_)),
        JobPhase::Comparing => step == JobStep::Compare,
        JobPhase::Reducing => matches!(step, JobStep::Reduce | JobStep::Pause(_)),
        JobPhase::Closing(_) => step == JobStep::Close,
        JobPhase::Ended(_) => step == JobStep::Stop,
    };
    assert!(fits, "{}", told());
    if let JobStep::Pause(pause) = step {
        assert!((1..=15).contains(&pause.as_secs()), "{}", told());
        assert!(!after.reason.is_empty(), "{}", told());
    }
    if step == JobStep::Run {
        assert!(matches!(
            event,
            JobEvent::Looked { .. } | JobEvent::Progress
        ));
    }
    // No phase is skipped, and none is taken twice.
    let at = |life: &JobLife| match life.phase {
        JobPhase::Waiting => 0,
        JobPhase::Reading => 1,
        JobPhase::Comparing => 2,
        JobPhase::Reducing | JobPhase::Closing(_) => 3,
        JobPhase::Ended(_) => 4,
    };
    let ends = ends_early(after)
        || matches!(
            after.ending(),
            Some(JobEnding::Failed | JobEnding::Cancelled)
        );
    check_counted(before, event, after);
    assert!(
        at(after) == at(before) || at(after) == at(before) + 1 || ends,
        "{}",
        told()
    );
    if after.ending() == Some(JobEnding::Done) {
        assert!(after.gaps.is_empty() && after.unread == 0, "{}", told());
    }
    if matches!(
        after.ending(),
        Some(JobEnding::Failed | JobEnding::Cancelled)
    ) {
        assert!(!after.reason.is_empty(), "{}", told());
    }
    // A gap is never forgotten, though more may be said of it.
    for gap in &before.gaps {
        let is_kept = |kept: &JobGap| {
            (&kept.node, &kept.volume) == (&gap.node, &gap.volume)
                && kept.reason.starts_with(&gap.reason)
        };
        assert!(after.gaps.iter().any(is_kept), "{}", told());
    }
    check_left_out(before, event, after, step);
    match event {
        JobEvent::Cancelled(_) | JobEvent::Failed(_) => {
            assert!(ends_early(after) || after.ending().is_some());
        }
        JobEvent::TimeOver => {
            let goes_on = before.phase == JobPhase::Waiting;
            assert!(ends_early(after) || after.ending().is_some() || goes_on);
        }
        JobEvent::Turn
        | JobEvent::Restarted
        | JobEvent::Looked { .. }
        | JobEvent::Silent(_)
        | JobEvent::Busy(_)
        | JobEvent::Woke
        | JobEvent::Progress
        | JobEvent::Broke(_)
        | JobEvent::NodeBroke(..)
        | JobEvent::Finished(_)
        | JobEvent::Compared(_)
        | JobEvent::Uncounted(_)
        | JobEvent::Reduced => {}
    }
}

/// Checks that a node that is left out has just ended a run itself, is named with its last error, and is not waited for
/// again; and that a node is left to be read.
fn check_left_out(before: &JobLife, event: &JobEvent, after: &JobLife, step: JobStep) {
    let were = out(before);
    let are = out(after);
    assert!(were.iter().all(|node| are.contains(node)));
    for node in are.iter().filter(|node| !were.contains(node)) {
        assert_eq!(
            *event,
            broke(node),
            "no node is left out because of another one"
        );
        assert_eq!(step, JobStep::Look);
        let words = words(after, node);
        assert!(words.contains(&format!("node {node}: gone")), "{words}");
    }
    if !are.is_empty() {
        assert!(are.len() < 3, "one of three stays: {are:?}");
        assert_ne!(after.ending(), Some(JobEnding::Done));
        assert!(
            are.iter()
                .all(|node| !after.reason.contains(&format!("waiting for {node}")))
        );
    }
}

/// Fails if any sequence of five events skips a phase, forgets a gap, or leaves an ended job open.
#[test]
fn every_sequence_of_five_events_is_valid() {
    fn go(history: &JobHistory, events: &[JobEvent], depth: usize, count: &mut u64) {
        for event in events {
            let mut next = history.clone();
            next.seconds += 61;
            let step = next.say(event.clone());
            check(&history.life, event, &next.life, step);
            *count += 1;
            if depth > 1 && next.life.ending().is_none() {
                go(&next, events, depth - 1, count);
            }
        }
    }
    let mut count = 0;
    go(&JobHistory::new(), &events(), 5, &mut count);
    go(&JobHistory::running(), &events(), 5, &mut count);
    go(&JobHistory::at_the_brink(), &events(), 5, &mut count);
    assert!(count > 500_000, "{count}");
}

/// Fails if a job without failures is not done, or gets a reason.
#[test]
fn undisturbed_job_is_done() {
    let mut history = JobHistory::running();
    assert_eq!(history.say(looked(&["a", "b"], &[])), JobStep::Run);
    assert_eq!(history.say(JobEvent::Progress), JobStep::Run);
    assert_eq!(
        history.say(JobEvent::Finished(Vec::new())),
        JobStep::Compare
    );
    assert_eq!(history.say(compared(0)), JobStep::Reduce);
    assert_eq!(history.say(JobEvent::Reduced), JobStep::Stop);
    assert_eq!(history.life.ending(), Some(JobEnding::Done));
    assert_eq!(
        (history.life.reason.as_str(), history.life.restarts),
        ("", 0)
    );
}

/// Fails if a failing job is retried without growing pauses, or one that reads on keeps the long ones.
#[test]
fn pauses_grow_until_progress() {
    let mut history = JobHistory::running();
    history.say(looked(&["a"], &[]));
    let mut pauses = Vec::new();
    for _ in 0..6 {
        let JobStep::Pause(pause) = history.say(JobEvent::Broke("cut".to_owned())) else {
            panic!("no pause")
        };
        pauses.push(pause.as_secs());
        assert_eq!(history.say(JobEvent::Woke), JobStep::Look);
        assert_eq!(history.say(looked(&["a"], &[])), JobStep::Run);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 15, 15]);
    history.say(JobEvent::Progress);
    let again = history.say(JobEvent::Broke("cut".to_owned()));
    assert_eq!(again, JobStep::Pause(Duration::from_secs(1)));
    assert_eq!(history.life.restarts, 7);
}

/// Fails if a job does not wait for a node that goes away, waits without limit, or hides the files it lacks.
#[test]
fn absent_node_is_waited_for_then_skipped() {
    let mut history = JobHistory::running();
    history.say(looked(&["a", "b"], &["c"]));
    history.say(JobEvent::Progress);
    history.say(JobEvent::Broke("cut".to_owned()));
    history.seconds = 1000;
    assert!(matches!(
        history.say(looked(&["a"], &["b", "c"])),
        JobStep::Pause(_)
    ));
    assert!(
        history.life.reason.contains("waiting for b"),
        "{}",
        history.life.reason
    );
    history.seconds = 1119;
    assert!(matches!(
        history.say(looked(&["a"], &["b", "c"])),
        JobStep::Pause(_)
    ));
    history.seconds = 1120;
    assert_eq!(history.say(looked(&["a"], &["b", "c"])), JobStep::Run);
    history.say(JobEvent::Progress);
    history.say(JobEvent::Broke("cut".to_owned()));
    // The node comes back, and its files from here on are read; the gap of its earlier files stays.
    assert_eq!(history.say(looked(&["a", "b"], &["c"])), JobStep::Run);
    history.say(JobEvent::Progress);
    history.say(JobEvent::Finished(vec![gap("c")]));
    let names: Vec<_> = history
        .life
        .gaps
        .iter()
        .map(|gap| gap.node.as_str())
        .collect();
    assert_eq!(names, ["c", "b"]);
    history.say(compared(0));
    history.say(JobEvent::Reduced);
    assert_eq!(history.life.ending(), Some(JobEnding::Partial));
}

/// Fails if a node that was away for less than the patience becomes a gap.
#[test]
fn node_back_in_time_leaves_no_gap() {
    let mut history = JobHistory::running();
    history.say(looked(&["a", "b"], &[]));
    history.say(JobEvent::Progress);
    history.say(JobEvent::Broke("cut".to_owned()));
    for _ in 0..10 {
        history.seconds += 11;
        assert!(matches!(
            history.say(looked(&["a"], &["b"])),
            JobStep::Pause(_)
        ));
        history.say(JobEvent::Woke);
    }
    assert_eq!(history.say(looked(&["a", "b"], &[])), JobStep::Run);
    history.say(JobEvent::Progress);
    // A second time, its patience begins anew.
    history.say(JobEvent::Broke("cut".to_owned()));
    history.seconds += 100;
    assert!(matches!(
        history.say(looked(&["a"], &["b"])),
        JobStep::Pause(_)
    ));
    history.say(looked(&["a", "b"], &[]));
    history.say(JobEvent::Finished(Vec::new()));
    assert!(history.life.gaps.is_empty());
}

/// Fails if a job waits for a node that was silent before it began, or names it a gap before a file was read without
/// it.
#[test]
fn silent_node_is_gap_only_after_file() {
    let mut history = JobHistory::running();
    assert_eq!(history.say(looked(&["a"], &["b"])), JobStep::Run);
    history.say(JobEvent::Broke("cut".to_owned()));
    assert_eq!(history.say(looked(&["a", "b"], &[])), JobStep::Run);
    history.say(JobEvent::Progress);
    history.say(JobEvent::Restarted);
    assert!(history.life.gaps.is_empty());
    // The last run reports its gaps itself: the report of the monitor was too early.
    assert_eq!(history.say(looked(&["a", "b"], &["c"])), JobStep::Run);
    history.say(JobEvent::Progress);
    history.say(JobEvent::Finished(Vec::new()));
    assert!(history.life.gaps.is_empty());
}

/// Fails if a silent monitor fails a job before its time limit, or its silence counts against the nodes.
#[test]
fn silent_monitor_is_waited_for_to_the_limit() {
    let mut history = JobHistory::running();
    history.say(looked(&["a", "b"], &[]));
    history.say(JobEvent::Progress);
    history.say(JobEvent::Broke("cut".to_owned()));
    assert!(matches!(
        history.say(looked(&["a"], &["b"])),
        JobStep::Pause(_)
    ));
    for _ in 0..1000 {
        history.seconds += 15;
        assert!(matches!(
            history.say(JobEvent::Silent("no monitor".to_owned())),
            JobStep::Pause(_)
        ));
        assert!(history.life.silent);
        assert_eq!(history.say(JobEvent::Woke), JobStep::Look);
    }
    // The monitor is back, and has not heard of b yet.
    assert!(matches!(
        history.say(looked(&["a"], &["b"])),
        JobStep::Pause(_)
    ));
    assert!(!history.life.silent);
    history.say(JobEvent::Silent("no monitor".to_owned()));
    assert_eq!(history.say(JobEvent::TimeOver), JobStep::Close);
    assert_eq!(history.say(compared(2)), JobStep::Stop);
    assert_eq!(history.life.ending(), Some(JobEnding::Failed));
    assert!(
        history.life.reason.contains("no monitor"),
        "{}",
        history.life.reason
    );
}

/// Fails if a restart of the repository changes the phase of a job.
#[test]
fn restart_continues_in_every_phase() {
    let mut history = JobHistory::new();
    for (event, step) in [
        (JobEvent::Woke, JobStep::Wait),
        (JobEvent::Turn, JobStep::Look),
        (JobEvent::Finished(Vec::new()), JobStep::Compare),
        (compared(1), JobStep::Reduce),
    ] {
        assert_eq!(history.say(event), step);
        let restarts = history.life.restarts;
        assert_eq!(history.say(JobEvent::Restarted), step);
        let expected = restarts + u64::from(step != JobStep::Wait);
        assert_eq!(history.life.restarts, expected);
        if step != JobStep::Wait {
            assert_eq!(history.say(JobEvent::Turn), step);
        }
    }
}
