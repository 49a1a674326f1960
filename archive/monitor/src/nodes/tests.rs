//! Nodes that live, fall silent, move and are contested.

use archive_model::{Mode, VolumeState};

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

struct NodeScene {
    start: Instant,
    nodes: Nodes,
}

impl NodeScene {
    fn new() -> Self {
        let mut nodes = Nodes::new(LIMIT);
        nodes.expect_nodes(BTreeSet::new());
        Self {
            start: Instant::now(),
            nodes,
        }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.start + Duration::from_secs(seconds)
    }

    fn beat(&mut self, name: &str, endpoint: &str, seconds: u64) -> HeartbeatNews {
        let time = Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap();
        let now = HeartbeatTime {
            instant: self.at(seconds),
            time,
        };
        self.nodes
            .note_heartbeat(&id(name), report(endpoint, 100), now)
    }

    fn life(&self, name: &str, seconds: u64) -> NodeLife {
        let all = self.nodes.list_nodes(self.at(seconds));
        all.iter()
            .find(|liveness| liveness.node.as_str() == name)
            .unwrap()
            .life
    }

    fn asked(&self, seconds: u64) -> (Vec<String>, Vec<String>) {
        let survey = self.nodes.survey_nodes(self.at(seconds));
        (
            survey
                .ask
                .iter()
                .map(|address| format!("{}@{}", address.node, address.endpoint))
                .collect(),
            survey.gaps.iter().map(ReplicaGap::to_string).collect(),
        )
    }
}

/// Returns the report of a node with one good volume.
fn report(endpoint: &str, usable: u64) -> NodeState {
    let volume = VolumeState {
        volume: Some(VolumeId::new("v1").unwrap()),
        path: "/volumes/1".to_owned(),
        mode: Mode::ReadWrite,
        total: 100,
        free: 50,
        ..VolumeState::default()
    };
    NodeState {
        endpoint: endpoint.to_owned(),
        volumes: vec![volume],
        usable,
        mode: Some(Mode::ReadWrite),
        ..NodeState::unheard_node(id("a"))
    }
}

fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

/// Fails if a node is silent before its limit or is asked after it, if a silent node is dropped, or if its return goes
/// unnoticed.
#[test]
fn node_is_alive_until_limit_and_again_later() {
    let mut world = NodeScene::new();
    assert_eq!(world.beat("a", "h:1", 0), HeartbeatNews::New);
    assert_eq!(world.beat("a", "h:1", 1), HeartbeatNews::Usual);
    assert_eq!(world.life("a", 11), NodeLife::Alive);
    assert_eq!(world.life("a", 12), NodeLife::Silent);
    assert_eq!(
        world.asked(12),
        (
            vec![],
            vec!["node a: silent since 1970-01-01T00:00:01Z".to_owned()]
        )
    );
    assert!(world.nodes.list_candidates(world.at(12)).is_empty());
    assert_eq!(
        world.life("a", 1_000_000),
        NodeLife::Silent,
        "never dropped"
    );
    let last = Timestamp::from_second(1).unwrap();
    assert_eq!(world.beat("a", "h:2", 30), HeartbeatNews::Back { last });
    assert_eq!(world.asked(30), (vec!["a@h:2".to_owned()], vec![]));
}

/// Fails if a permanently dead node keeps every answer partial, or one that lives on is still asked or filled.
#[test]
fn retired_node_is_neither_asked_nor_missed() {
    let mut world = NodeScene::new();
    world.nodes.expect_nodes([id("b")].into());
    for node in ["a", "b"] {
        world.beat(node, "h:1", 0);
    }
    world.nodes.retire_nodes([id("a"), id("c")].into());
    for second in [0, 1000] {
        let (asked, gaps) = world.asked(second);
        assert!(!format!("{asked:?} {gaps:?}").contains("a@"), "{second}");
        assert!(!gaps.iter().any(|gap| gap.contains("node a")), "{gaps:?}");
    }
    assert_eq!(world.life("a", 0), NodeLife::Retired, "still shown");
    let candidates = world.nodes.list_candidates(world.at(0));
    let candidates: Vec<_> = candidates.iter().map(|one| one.node.as_str()).collect();
    assert_eq!(candidates, ["b"]);
    let listed: Vec<_> = world
        .nodes
        .list_nodes(world.at(0))
        .iter()
        .map(|one| one.node.to_string())
        .collect();
    assert_eq!(
        listed,
        ["a", "b"],
        "one that was never heard of is forgotten"
    );
}

/// Fails if a monitor that has just started answers as if it knew all nodes, or a node that the repository knows and
/// that sent no heartbeat is no gap.
#[test]
fn unheard_node_of_repository_is_a_gap() {
    let mut world = NodeScene::new();
    world.nodes = Nodes::new(LIMIT);
    world.beat("a", "h:1", 0);
    assert_eq!(
        world.asked(0),
        (
            vec!["a@h:1".to_owned()],
            vec![ReplicaGap::unknown_nodes().to_string()]
        )
    );
    world.nodes.expect_nodes([id("b"), id("a")].into());
    assert_eq!(
        world.asked(0).1,
        ["node b: not heard of since the monitor started"]
    );
    assert_eq!(world.life("b", 0), NodeLife::Unheard);
    world.beat("b", "h:2", 0);
    assert_eq!(
        world.asked(0),
        (vec!["a@h:1".to_owned(), "b@h:2".to_owned()], vec![])
    );
    world.nodes.expect_nodes([id("c")].into());
    let names: Vec<String> = world
        .nodes
        .list_nodes(world.start)
        .iter()
        .map(|s| s.node.to_string())
        .collect();
    assert_eq!(names, ["a", "b", "c"], "what was heard of stays");
    world.nodes.expect_nodes([].into());
    assert_eq!(world.asked(0).1, [""; 0]);
}

/// Fails if a node that has moved is asked at its old address, or one that moves again later is taken for two
/// processes.
#[test]
fn moved_node_is_asked_at_its_new_address() {
    let mut world = NodeScene::new();
    world.beat("a", "h:1", 0);
    assert_eq!(
        world.beat("a", "h:2", 1),
        HeartbeatNews::Moved {
            from: "h:1".to_owned()
        }
    );
    assert_eq!(world.beat("a", "h:2", 2), HeartbeatNews::Usual);
    assert_eq!(world.asked(2), (vec!["a@h:2".to_owned()], vec![]));
    // The node may move back later, and on.
    assert_eq!(world.beat("a", "h:2", 11), HeartbeatNews::Usual);
    assert_eq!(
        world.beat("a", "h:1", 12),
        HeartbeatNews::Moved {
            from: "h:2".to_owned()
        }
    );
    assert_eq!(
        world.beat("a", "h:3", 13),
        HeartbeatNews::Moved {
            from: "h:1".to_owned()
        }
    );
    assert_eq!(world.life("a", 13), NodeLife::Alive);
}

/// Fails if a node with two processes is asked or filled, the conflict is reported at each heartbeat, or ends while
/// both may still run.
#[test]
fn two_processes_of_one_node_are_not_asked() {
    let mut world = NodeScene::new();
    world.beat("a", "h:1", 0);
    world.beat("a", "h:2", 1);
    assert_eq!(
        world.beat("a", "h:1", 2),
        HeartbeatNews::Contested {
            other: "h:2".to_owned()
        }
    );
    assert_eq!(world.beat("a", "h:2", 3), HeartbeatNews::Usual, "said once");
    assert_eq!(world.life("a", 3), NodeLife::Contested);
    let (ask, gaps) = world.asked(3);
    assert!(
        ask.is_empty() && gaps[0].contains("h:2") && gaps[0].contains("stop one"),
        "{gaps:?}"
    );
    assert!(world.nodes.list_candidates(world.at(3)).is_empty());
    for second in 4..=13 {
        assert_eq!(world.beat("a", "h:2", second), HeartbeatNews::Usual);
        assert_eq!(world.life("a", second), NodeLife::Contested, "{second}");
    }
    world.beat("a", "h:2", 14);
    assert_eq!(world.asked(14), (vec!["a@h:2".to_owned()], vec![]));
    // A silence ends it too: what comes after is one process.
    assert_eq!(world.life("a", 30), NodeLife::Silent);
    world.beat("a", "h:1", 30);
    assert_eq!(world.life("a", 30), NodeLife::Alive);
}

/// Fails if two uploads are promised the same room before the next heartbeat, or a promise outlives the node's own
/// report.
#[test]
fn room_that_was_promised_is_not_promised_again() {
    let mut world = NodeScene::new();
    world.beat("a", "h:1", 0);
    let room = |world: &NodeScene| world.nodes.list_candidates(world.start)[0].room;
    assert_eq!(room(&world), 100);
    world.nodes.promise_bytes(&id("a"), 60);
    assert_eq!(room(&world), 40);
    world.nodes.promise_bytes(&id("a"), u64::MAX);
    world.nodes.promise_bytes(&id("nobody"), 5);
    assert_eq!(room(&world), 0);
    world.beat("a", "h:1", 0);
    assert_eq!(room(&world), 100, "its own report counts again");
}

/// Fails if what was sent to one volume counts as taken from all volumes of its node.
#[test]
fn promise_takes_room_of_one_volume_only() {
    let mut world = NodeScene::new();
    let report = NodeState {
        usable_elsewhere: vec![90, 20],
        ..report("h:1", 100)
    };
    let now = HeartbeatTime {
        instant: world.start,
        time: Timestamp::UNIX_EPOCH,
    };
    world.nodes.note_heartbeat(&id("a"), report, now);
    let mut rooms = Vec::new();
    for bytes in [60, 60, 10] {
        world.nodes.promise_bytes(&id("a"), bytes);
        rooms.push(world.nodes.list_candidates(world.start)[0].room);
    }
    assert_eq!(rooms, [90, 40, 30]);
}

/// Fails if files on a volume that its node has forgotten can be taken for missing: nobody asks it, and nothing says
/// so.
#[test]
fn unreported_volume_with_copies_is_a_gap() {
    let mut world = NodeScene::new();
    let volumes = |ids: &[&str]| {
        let ids = ids.iter().map(|id| VolumeId::new(id).unwrap());
        BTreeMap::from([(id("a"), ids.collect()), (id("dead"), BTreeSet::new())])
    };
    world.beat("a", "h:1", 0);
    world.nodes.expect_volumes(volumes(&["v1"]));
    assert_eq!(world.asked(0), (vec!["a@h:1".to_owned()], vec![]));
    world.nodes.expect_volumes(volumes(&["v1", "v3"]));
    let gap = format!("node a, volume v3: {UNREPORTED}");
    assert_eq!(world.asked(1), (vec!["a@h:1".to_owned()], vec![gap]));
    let listed = world.nodes.list_nodes(world.at(1));
    assert_eq!(listed[0].unreported, [&VolumeId::new("v3").unwrap()]);
    world.nodes.expect_volumes(volumes(&["v1"]));
    assert_eq!(world.asked(2).1, Vec::<String>::new(), "it was retired");
}
