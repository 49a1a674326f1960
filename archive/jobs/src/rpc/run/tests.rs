//! Tests of the choice of nodes, and of the gaps that a node names.

use archive_model::{JobClass, JobId, JobLimits, JobSpec, Program, VolumeState};
use jiff::Timestamp;

use super::*;

fn node(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn nodes(names: &[&str]) -> BTreeSet<NodeId> {
    names.iter().map(|name| node(name)).collect()
}

fn order(present: &[&str], left_out: &[&str]) -> RunOrder {
    let spec = JobSpec {
        program: Program::BuiltIn("file-list".to_owned()),
        arguments: Vec::new(),
        files: String::new(),
        names: None,
        replica: ReplicaId::new("one").unwrap(),
        limits: JobLimits {
            time: Duration::from_mins(1),
            file_time: Duration::from_mins(1),
            memory: 1,
            output: 1,
        },
        keep: None,
    };
    RunOrder {
        run: JobRun {
            id: JobId::new("j").unwrap(),
            spec,
            component_size: 0,
            after: None,
            left: Duration::from_mins(1),
            class: JobClass::Research,
        },
        selection: FileSelection::default(),
        component: None,
        left_out: nodes(left_out),
        present: nodes(present),
    }
}

fn state(name: &str, alive: bool) -> NodeState {
    NodeState {
        alive,
        seen: Some(Timestamp::UNIX_EPOCH),
        ..NodeState::unheard_node(node(name))
    }
}

/// Fails if a node or volume is passed over silently, or one that is retired is named.
#[test]
fn nodes_that_are_not_asked_are_gaps() {
    let unreported = VolumeState {
        volume: Some(VolumeId::new("v9").unwrap()),
        problem: Some("nobody knows it".to_owned()),
        unreported: true,
        ..VolumeState::default()
    };
    let retired = VolumeState {
        retired: true,
        ..unreported.clone()
    };
    let first = NodeState {
        volumes: vec![VolumeState::default(), unreported, retired],
        ..state("a", true)
    };
    let all = [
        state("e", true),
        first,
        state("b", true),
        state("c", false),
        NodeState::unheard_node(node("d")),
    ];
    let order = order(&["a"], &["b"]);
    let (asked, gaps) = asked(&order, &all).unwrap();
    let asked: Vec<&str> = asked.iter().map(|state| state.node.as_str()).collect();
    assert_eq!(asked, ["a", "e"]);
    let reasons = gaps
        .iter()
        .map(|gap| (&*gap.node, &*gap.volume, &*gap.reason));
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        [
            ("a", "v9", "nobody knows it"),
            ("b", "", "left out: it failed again and again"),
            ("c", "", "silent since 1970-01-01T00:00:00Z"),
            ("d", "", "not heard of since the monitor started"),
        ]
    );
}

/// Fails if files are passed over silently because a node went away between the look and the run.
#[test]
fn run_begins_with_every_node_present() {
    let order = order(&["a", "b"], &[]);
    let all = [state("a", true), state("b", false)];
    let refused = asked(&order, &all).unwrap_err();
    let JobEvent::Broke(said) = &refused else {
        panic!("{refused:?}")
    };
    assert!(said.contains("node b was alive"), "{said}");
    assert!(asked(&order, &[state("b", true), state("a", true)]).is_ok());
}

/// Fails if a node names gaps of another node, or a reason grows without limit.
#[test]
fn gap_of_node_is_in_itself() {
    let read = |volume: &str, reason: &str| {
        let gap = wire::Gap {
            node: "other".to_owned(),
            volume: volume.to_owned(),
            reason: reason.to_owned(),
            ..wire::Gap::default()
        };
        read_gap(&node("a"), &gap)
    };
    assert_eq!(read("v1", "not mounted").volume, "v1");
    assert_eq!(read("", "busy").node, "a");
    let path = read("/mnt/../x", "not mounted");
    assert_eq!((&*path.node, &*path.volume), ("a", ""));
    assert!(path.reason.starts_with("not mounted ("), "{path:?}");
    assert_eq!(read("v1", &"ä".repeat(10_000)).reason.chars().count(), 300);
}
