//! `node`, `volume`, `replica bootstrap`, and what `status` says of nodes.

use proto_archive::wire::set_volume_request::Order;
use proto_archive::wire::status_response::{Drain, ReplicaState};
use proto_archive::wire::{
    AnomalyCount, AnomalyKind, BootstrapResponse, Mode, NodeStatus, ReplicaKind, StatusResponse,
    VolumeStatus,
};

use crate::holdfast::Place;

fn missing(count: u64) -> Vec<AnomalyCount> {
    let kind = AnomalyKind::Missing.into();
    vec![AnomalyCount { kind, count }]
}

/// Returns a node that says that it is in this mode, or in none.
fn node(alive: bool, mode: Mode, problem: &str) -> NodeStatus {
    let of_volume = match mode {
        Mode::Unspecified => Mode::ReadWrite,
        said => said,
    };
    NodeStatus {
        node: "two-1".into(),
        endpoint: "127.0.0.1:1".into(),
        volumes: vec![VolumeStatus {
            volume: "v".into(),
            path: "/disk".into(),
            problem: problem.into(),
            mode: of_volume.into(),
            total: 2_000_000_000_000,
            free: 1_500_000_000_000,
            retired: false,
            warnings: Vec::new(),
            unreported: false,
        }],
        usable: 1_000_000,
        alive,
        mode: mode.into(),
        findings: 2,
        oldest_verification: "2026-01-02T03:04:05Z".into(),
        ..NodeStatus::default()
    }
}

/// Fails if `node`, `volume` or `replica list` exits with 0 although one of them is silent or broken, or if a drain
/// does not say what it waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_come_from_the_status() {
    let place = Place::new().await;
    let status = |alive: bool, problem: &str, monitor: &str| StatusResponse {
        replicas: vec![ReplicaState {
            replica: "two".into(),
            kind: ReplicaKind::Bitarchive.into(),
            required: true,
            problem: monitor.into(),
            nodes: vec![node(alive, Mode::ReadWrite, problem)],
            ..ReplicaState::default()
        }],
        anomalies: missing(0),
        held: "the brake".into(),
        ..StatusResponse::default()
    };
    let list = |what: &str, status: StatusResponse, words: &[&str]| {
        place.world.archive.state().status = status;
        place.holdfast(&[&[what, "list", "--as", "operator"], words].concat())
    };
    let ran = list("node", status(true, "", ""), &[]).expect(0);
    assert!(
        ran.out
            .contains("alive  read-write        1  1.0 MB         2  2026-01-02T03:04:05Z"),
        "{ran:?}"
    );
    let ran = list("volume", status(true, "", ""), &[]).expect(0);
    assert!(
        ran.out
            .contains("two-1  v       read-write  1.5 TB  2.0 TB  /disk"),
        "{ran:?}"
    );
    let drain = |volume: &str, drained: &str, held: &str| Drain {
        replica: "two".into(),
        node: "two-1".into(),
        volume: volume.into(),
        since: "2026-01-02T03:04:05Z".into(),
        counted: true,
        files: 7,
        bytes: 5_000_000,
        drained: drained.into(),
        held: held.into(),
    };
    let with = |drain: Drain| StatusResponse {
        drains: vec![drain],
        held: String::new(),
        ..status(true, "", "")
    };
    for (what, drain, said) in [
        (
            "volume",
            drain("v", "", ""),
            "volume v of node two-1 of replica two: draining; 7 file(s), 5.0 MB, are to leave\n",
        ),
        (
            "volume",
            drain("v", "", "no room"),
            "are to leave; no room\n",
        ),
        (
            "node",
            drain("", "2026-01-02T03:04:05Z", ""),
            "node two-1 of replica two: drained; it may be retired: `holdfast node retire two-1 --reason TEXT`\n",
        ),
    ] {
        let ran = list(what, with(drain), &[]).expect(0);
        assert!(ran.out.contains(said), "{ran:?}");
    }
    place.world.archive.state().status = with(drain("v", "", "no room"));
    let ran = place.holdfast(&["status", "--as", "operator"]).expect(1);
    assert!(ran.err.contains("no room"), "a drain that waits: {ran:?}");
    let said = list("volume", with(drain("v", "", "")), &["--json"])
        .expect(0)
        .json();
    assert_eq!(said["drains"][0]["left"]["files"], 7);
    let ran = list("replica", status(true, "", ""), &[]).expect(0);
    assert!(
        ran.out
            .contains("two      bitarchive  yes         1/1        1  1.5 TB  answers"),
        "{ran:?}"
    );
    for (what, bad) in [
        ("node", status(false, "", "")),
        ("volume", status(true, "EIO", "")),
        ("volume", status(false, "", "")),
        ("replica", status(true, "", "refused")),
    ] {
        list(what, bad, &[]).expect(1);
    }
    let said = list("volume", status(true, "EIO", ""), &["--json"])
        .expect(1)
        .json();
    assert_eq!(said["volumes"][0]["status"]["problem"], "EIO");
    let said = list("node", status(true, "", ""), &["--json"])
        .expect(0)
        .json();
    assert_eq!(said["nodes"][0]["status"]["usable"], 1_000_000);
    let ran = place.holdfast(&["status", "--as", "operator"]).expect(0);
    assert!(
        ran.out
            .contains("nothing is repaired automatically: the brake"),
        "{ran:?}"
    );
    place.world.archive.state().status.anomalies = missing(3);
    let ran = place.holdfast(&["status", "--as", "operator"]).expect(1);
    assert!(
        ran.err.contains("3 missing; see `holdfast anomalies`"),
        "{ran:?}"
    );
}

/// Fails if an order to a node counts as done although the node reports another mode, or if a verb for a volume sends
/// another order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_says_itself_that_it_obeyed() {
    let place = Place::new().await;
    for (verb, mode) in [
        ("read-only", Mode::ReadOnly),
        ("read-write", Mode::ReadWrite),
        ("drain", Mode::Draining),
    ] {
        for (answer, code) in [(mode, 0), (Mode::Unspecified, 1)] {
            place
                .world
                .archive
                .state()
                .keeping
                .node
                .say([node(true, answer, "")]);
            place
                .holdfast(&["node", verb, "two-1", "--as", "operator"])
                .expect(code);
            let asked = place
                .world
                .archive
                .state()
                .keeping
                .node
                .asked
                .pop()
                .unwrap();
            assert_eq!(asked.order.unwrap().mode(), mode);
        }
        place
            .world
            .archive
            .state()
            .keeping
            .volume
            .say([node(true, mode, "")]);
        let ran = place
            .holdfast(&["volume", verb, "v", "--as", "operator"])
            .expect(0);
        assert!(ran.out.contains("/disk"), "{ran:?}");
        place
            .holdfast(&["volume", verb, "w", "--as", "operator"])
            .expect(1);
    }
    place
        .world
        .archive
        .state()
        .keeping
        .volume
        .say([node(true, Mode::ReadWrite, "")]);
    let volume = |words: &[&str], code| {
        place
            .holdfast(&[&["volume"], words, &["--as", "operator"]].concat())
            .expect(code);
        let asked = place.world.archive.state().keeping.volume.asked.pop();
        asked.map(|asked| {
            let order = asked.order.unwrap();
            (order.order(), order.volume, order.path, asked.node)
        })
    };
    let path = "/disk".to_owned();
    let node_id = "two-1".to_owned();
    let init = volume(&["init", "/disk", "--node", "two-1", "--id", "v"], 0).unwrap();
    assert_eq!(
        init,
        (Order::Init, "v".to_owned(), path.clone(), node_id.clone())
    );
    let fresh = || volume(&["init", "/disk", "--node", "two-1"], 1).unwrap().1;
    let first = fresh();
    let second = fresh();
    assert_eq!((first.len(), second.len()), (32, 32), "{first}, {second}");
    assert_ne!(first, second, "an id that no other volume has");
    let adopt = volume(&["adopt", "/disk", "--node", "two-1"], 0).unwrap();
    assert_eq!(adopt, (Order::Adopt, String::new(), path, node_id));
    let clear = volume(&["clear", "v"], 0).unwrap();
    assert_eq!((clear.0, clear.1.as_str()), (Order::Clear, "v"));
    place.world.archive.state().keeping.volume.asked.clear();
    for words in [&["init", "disk", "--node", "two-1"][..], &["init", "/disk"]] {
        place.holdfast(&[&["volume"], words].concat()).usage();
    }
    assert!(place.world.archive.state().keeping.volume.asked.is_empty());
    let begun = BootstrapResponse {
        files: 3,
        bytes: 4_000_000,
    };
    place.world.archive.state().keeping.bootstrap.say([begun]);
    let ran = place
        .holdfast(&["replica", "bootstrap", "two", "--as", "operator"])
        .expect(0);
    assert!(
        ran.out
            .starts_with("replica two: 3 files, 4.0 MB, are being copied"),
        "{ran:?}"
    );
}
