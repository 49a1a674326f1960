//! Every short life, and the long ones that matter.

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

fn looked(alive: &[&str], silent: &[&str]) -> Event {
    looked_also(alive, silent, &[])
}

/// The same, with those that were never heard of.
fn looked_also(alive: &[&str], silent: &[&str], unheard: &[&str]) -> Event {
    Event::Looked(NodeLiveness {
        alive: nodes(alive),
        silent: nodes(silent),
        unheard: nodes(unheard),
    })
}

fn broke(name: &str) -> Event {
    Event::NodeBroke(node(name), format!("node {name}: gone"))
}

fn compared(total: u64) -> Event {
    Event::Compared(UnreadFiles {
        total,
        by_node: BTreeMap::from([(node("b"), total)]),
    })
}

fn out(life: &Life) -> Vec<&str> {
    life.left_out().map(NodeId::as_str).collect()
}

/// The reason of the gap that a node is as a whole.
fn words<'a>(life: &'a Life, node: &str) -> &'a str {
    let mut gaps = life.gaps.iter();
    let gap = gaps.find(|gap| gap.node == node && gap.volume.is_empty());
    &gap.unwrap().reason
}

fn gap(node: &str) -> Gap {
    Gap {
        node: node.to_owned(),
        volume: String::new(),
        reason: "silent".to_owned(),
    }
}

const PATIENCE: Duration = Duration::from_mins(2);

/// A job and its time.
#[derive(Clone)]
struct JobHistory {
    life: Life,
    seconds: i64,
    is_by_name: bool,
}

impl JobHistory {
    fn new() -> Self {
        Self {
            life: Life::default(),
            seconds: 0,
            is_by_name: false,
        }
    }

    fn running() -> Self {
        let mut history = Self::new();
        assert_eq!(history.say(Event::Turn), Step::Look);
        history
    }

    /// A job over `a`, `b` and `c`, of which `b` has ended all runs but one that it may.
    fn at_the_brink() -> Self {
        let mut history = Self::running();
        for _ in 1..MOST_BREAKS {
            history.say(looked(&["a", "b", "c"], &[]));
            history.seconds += 61;
            assert!(matches!(history.say(broke("b")), Step::Pause(_)));
        }
        history.say(looked(&["a", "b", "c"], &[]));
        history
    }

    fn say(&mut self, event: Event) -> Step {
        let after = FileName::new("b.warc").unwrap();
        let context = Context {
            now: Timestamp::from_second(self.seconds).unwrap(),
            patience: PATIENCE,
            after: Some(&after),
            is_by_name: self.is_by_name,
        };
        self.life.apply(event, context)
    }
}

fn events() -> Vec<Event> {
    vec![
        Event::Turn,
        Event::Restarted,
        looked(&["a", "b"], &[]),
        looked(&["a"], &["b"]),
        looked(&[], &["a", "b"]),
        looked_also(&["a"], &[], &["b"]),
        Event::Silent("gone".to_owned()),
        Event::Busy("full".to_owned()),
        Event::Woke,
        Event::Progress,
        Event::Broke("cut".to_owned()),
        broke("a"),
        broke("b"),
        Event::Finished(Vec::new()),
        Event::Finished(vec![gap("b")]),
        compared(0),
        compared(3),
        Event::Uncounted("list".to_owned()),
        Event::Reduced,
        Event::Failed("disk".to_owned()),
        Event::TimeOver,
        Event::Cancelled("researcher/anna".to_owned()),
    ]
}

fn check(before: &Life, event: &Event, after: &Life, step: Step) {
    let told = || format!("{before:?} {event:?} {after:?} {step:?}");
    if before.ending().is_some() {
        assert_eq!(before, after, "what has ended stays: {}", told());
        assert_eq!(step, Step::Stop);
    }
    // A step is one of the phase.
    let fits = match after.phase {
        Phase::Waiting => step == Step::Wait,
        Phase::Reading => matches!(step, Step::Look | Step::Run | Step::Pause(_)),
        Phase::Comparing => step == Step::Compare,
        Phase::Reducing => matches!(step, Step::Reduce | Step::Pause(_)),
        Phase::Closing(_) => step == Step::Close,
        Phase::Ended(_) => step == Step::Stop,
    };
    assert!(fits, "{}", told());
    if let Step::Pause(pause) = step {
        assert!((1..=15).contains(&pause.as_secs()), "{}", told());
        assert!(!after.reason.is_empty(), "{}", told());
    }
    if step == Step::Run {
        assert!(matches!(event, Event::Looked { .. } | Event::Progress));
    }
    // No phase is skipped, and none is taken twice.
    let at = |life: &Life| match life.phase {
        Phase::Waiting => 0,
        Phase::Reading => 1,
        Phase::Comparing => 2,
        Phase::Reducing | Phase::Closing(_) => 3,
        Phase::Ended(_) => 4,
    };
    let ends =
        ends_early(after) || matches!(after.ending(), Some(Ending::Failed | Ending::Cancelled));
    check_counted(before, event, after);
    assert!(
        at(after) == at(before) || at(after) == at(before) + 1 || ends,
        "{}",
        told()
    );
    if after.ending() == Some(Ending::Done) {
        assert!(after.gaps.is_empty() && after.unread == 0, "{}", told());
    }
    if matches!(after.ending(), Some(Ending::Failed | Ending::Cancelled)) {
        assert!(!after.reason.is_empty(), "{}", told());
    }
    // A gap is never forgotten, though more may be said of it.
    for gap in &before.gaps {
        let is_kept = |kept: &Gap| {
            (&kept.node, &kept.volume) == (&gap.node, &gap.volume)
                && kept.reason.starts_with(&gap.reason)
        };
        assert!(after.gaps.iter().any(is_kept), "{}", told());
    }
    check_left_out(before, event, after, step);
    match event {
        Event::Cancelled(_) | Event::Failed(_) => {
            assert!(ends_early(after) || after.ending().is_some());
        }
        Event::TimeOver => {
            let goes_on = before.phase == Phase::Waiting;
            assert!(ends_early(after) || after.ending().is_some() || goes_on);
        }
        Event::Turn
        | Event::Restarted
        | Event::Looked { .. }
        | Event::Silent(_)
        | Event::Busy(_)
        | Event::Woke
        | Event::Progress
        | Event::Broke(_)
        | Event::NodeBroke(..)
        | Event::Finished(_)
        | Event::Compared(_)
        | Event::Uncounted(_)
        | Event::Reduced => {}
    }
}

/// Who is left out has ended a run himself, just now, is named with his words, and is not asked for again; somebody is
/// left to be read.
fn check_left_out(before: &Life, event: &Event, after: &Life, step: Step) {
    let (were, are) = (out(before), out(after));
    assert!(were.iter().all(|node| are.contains(node)));
    for node in are.iter().filter(|node| !were.contains(node)) {
        assert_eq!(*event, broke(node), "nobody is left out for another one");
        assert_eq!(step, Step::Look);
        let words = words(after, node);
        assert!(words.contains(&format!("node {node}: gone")), "{words}");
    }
    if !are.is_empty() {
        assert!(are.len() < 3, "one of three stays: {are:?}");
        assert_ne!(after.ending(), Some(Ending::Done));
        assert!(
            are.iter()
                .all(|node| !after.reason.contains(&format!("waits for {node}")))
        );
    }
}

#[test]
fn every_sequence_of_five_events_is_a_life() {
    fn go(history: &JobHistory, events: &[Event], depth: usize, count: &mut u64) {
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

#[test]
fn an_undisturbed_job_is_done() {
    let mut history = JobHistory::running();
    assert_eq!(history.say(looked(&["a", "b"], &[])), Step::Run);
    assert_eq!(history.say(Event::Progress), Step::Run);
    assert_eq!(history.say(Event::Finished(Vec::new())), Step::Compare);
    assert_eq!(history.say(compared(0)), Step::Reduce);
    assert_eq!(history.say(Event::Reduced), Step::Stop);
    assert_eq!(history.life.ending(), Some(Ending::Done));
    assert_eq!(
        (history.life.reason.as_str(), history.life.restarts),
        ("", 0)
    );
}

#[test]
fn pauses_grow_and_progress_makes_them_short_again() {
    let mut history = JobHistory::running();
    history.say(looked(&["a"], &[]));
    let mut pauses = Vec::new();
    for _ in 0..6 {
        let Step::Pause(pause) = history.say(Event::Broke("cut".to_owned())) else {
            panic!("no pause")
        };
        pauses.push(pause.as_secs());
        assert_eq!(history.say(Event::Woke), Step::Look);
        assert_eq!(history.say(looked(&["a"], &[])), Step::Run);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 15, 15]);
    history.say(Event::Progress);
    let again = history.say(Event::Broke("cut".to_owned()));
    assert_eq!(again, Step::Pause(Duration::from_secs(1)));
    assert_eq!(history.life.restarts, 7);
}

#[test]
fn a_node_that_goes_away_is_waited_for_and_then_the_job_goes_on_without_it() {
    let mut history = JobHistory::running();
    history.say(looked(&["a", "b"], &["c"]));
    history.say(Event::Progress);
    history.say(Event::Broke("cut".to_owned()));
    history.seconds = 1000;
    assert!(matches!(
        history.say(looked(&["a"], &["b", "c"])),
        Step::Pause(_)
    ));
    assert!(
        history.life.reason.contains("waits for b"),
        "{}",
        history.life.reason
    );
    history.seconds = 1119;
    assert!(matches!(
        history.say(looked(&["a"], &["b", "c"])),
        Step::Pause(_)
    ));
    history.seconds = 1120;
    assert_eq!(history.say(looked(&["a"], &["b", "c"])), Step::Run);
    history.say(Event::Progress);
    history.say(Event::Broke("cut".to_owned()));
    // It comes back, and its files from here on are read; those before are a gap that stays.
    assert_eq!(history.say(looked(&["a", "b"], &["c"])), Step::Run);
    history.say(Event::Progress);
    history.say(Event::Finished(vec![gap("c")]));
    let names: Vec<_> = history
        .life
        .gaps
        .iter()
        .map(|gap| gap.node.as_str())
        .collect();
    assert_eq!(names, ["c", "b"]);
    history.say(compared(0));
    history.say(Event::Reduced);
    assert_eq!(history.life.ending(), Some(Ending::Partial));
}

#[test]
fn a_node_that_comes_back_in_time_leaves_no_gap() {
    let mut history = JobHistory::running();
    history.say(looked(&["a", "b"], &[]));
    history.say(Event::Progress);
    history.say(Event::Broke("cut".to_owned()));
    for _ in 0..10 {
        history.seconds += 11;
        assert!(matches!(
            history.say(looked(&["a"], &["b"])),
            Step::Pause(_)
        ));
        history.say(Event::Woke);
    }
    assert_eq!(history.say(looked(&["a", "b"], &[])), Step::Run);
    history.say(Event::Progress);
    // A second time, its patience begins anew.
    history.say(Event::Broke("cut".to_owned()));
    history.seconds += 100;
    assert!(matches!(
        history.say(looked(&["a"], &["b"])),
        Step::Pause(_)
    ));
    history.say(looked(&["a", "b"], &[]));
    history.say(Event::Finished(Vec::new()));
    assert!(history.life.gaps.is_empty());
}

#[test]
fn a_node_that_was_silent_at_first_is_not_waited_for_and_only_a_file_makes_it_a_gap() {
    let mut history = JobHistory::running();
    assert_eq!(history.say(looked(&["a"], &["b"])), Step::Run);
    history.say(Event::Broke("cut".to_owned()));
    assert_eq!(history.say(looked(&["a", "b"], &[])), Step::Run);
    history.say(Event::Progress);
    history.say(Event::Restarted);
    assert!(history.life.gaps.is_empty());
    // The last run says itself what it lacks: the look was too early.
    assert_eq!(history.say(looked(&["a", "b"], &["c"])), Step::Run);
    history.say(Event::Progress);
    history.say(Event::Finished(Vec::new()));
    assert!(history.life.gaps.is_empty());
}

#[test]
fn a_silent_monitor_is_waited_for_until_the_time_is_over_and_costs_no_node_its_patience() {
    let mut history = JobHistory::running();
    history.say(looked(&["a", "b"], &[]));
    history.say(Event::Progress);
    history.say(Event::Broke("cut".to_owned()));
    assert!(matches!(
        history.say(looked(&["a"], &["b"])),
        Step::Pause(_)
    ));
    for _ in 0..1000 {
        history.seconds += 15;
        assert!(matches!(
            history.say(Event::Silent("no monitor".to_owned())),
            Step::Pause(_)
        ));
        assert!(history.life.silent);
        assert_eq!(history.say(Event::Woke), Step::Look);
    }
    // It is back, and has not heard of b yet.
    assert!(matches!(
        history.say(looked(&["a"], &["b"])),
        Step::Pause(_)
    ));
    assert!(!history.life.silent);
    history.say(Event::Silent("no monitor".to_owned()));
    assert_eq!(history.say(Event::TimeOver), Step::Close);
    assert_eq!(history.say(compared(2)), Step::Stop);
    assert_eq!(history.life.ending(), Some(Ending::Failed));
    assert!(
        history.life.reason.contains("no monitor"),
        "{}",
        history.life.reason
    );
}

#[test]
fn a_restart_goes_on_in_every_phase() {
    let mut history = JobHistory::new();
    for (event, step) in [
        (Event::Woke, Step::Wait),
        (Event::Turn, Step::Look),
        (Event::Finished(Vec::new()), Step::Compare),
        (compared(1), Step::Reduce),
    ] {
        assert_eq!(history.say(event), step);
        let restarts = history.life.restarts;
        assert_eq!(history.say(Event::Restarted), step);
        let expected = restarts + u64::from(step != Step::Wait);
        assert_eq!(history.life.restarts, expected);
        if step != Step::Wait {
            assert_eq!(history.say(Event::Turn), step);
        }
    }
}
