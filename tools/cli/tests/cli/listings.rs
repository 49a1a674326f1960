//! `list`, `stat` and `status`, for people and for programs.

use std::process::Stdio;

use proto_archive::wire::list_response::End;
use proto_archive::wire::status_response::ReplicaState;
use proto_archive::wire::{
    AnomaliesResponse, AnomalyKind, AnomalyState, AuditLineState, AuditResponse, CopyCondition,
    CopyStanding, FileEntry, Gap, ListEntry, ListResponse, Mode, NodeStatus, ReplicaKind,
    ReplicaProgress, ReplicaStatus, StatResponse, StatusResponse, VolumeStatus, anomaly_state,
};

use crate::holdfast::{Place, Ran, executable};

fn replica(id: &str, progress: ReplicaProgress) -> ReplicaStatus {
    ReplicaStatus {
        replica: id.into(),
        progress: progress.into(),
        ..ReplicaStatus::default()
    }
}

fn entry(name: &str, size: u64) -> ListEntry {
    ListEntry {
        name: name.into(),
        size,
        root: vec![0x0a; 32].into(),
        replicas: vec![replica("one", ReplicaProgress::UploadCompleted)],
    }
}

fn whole(entries: Vec<ListEntry>, gaps: Vec<Gap>) -> ListResponse {
    let count = entries.len() as u64;
    let end = Some(End { count, gaps });
    ListResponse {
        entries,
        end,
        ..ListResponse::default()
    }
}

/// Lists what the archive says.
fn list(place: &Place, messages: Vec<ListResponse>, words: &[&str]) -> Ran {
    place.world.archive.state().list = messages.into_iter().map(Ok).collect();
    place.holdfast(&[&["list", "--as", "reader"], words].concat())
}

/// Fails if a listing with a gap, or one that was cut, exits with 0 or has `complete` in its JSON.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partial_listing_says_that_it_is_partial() {
    let place = Place::new().await;
    let both = || vec![entry("a", 7), entry("b b", 1_234_567_890)];
    let all = || vec![whole(both(), vec![])];
    let ran = list(&place, all(), &[]).expect(0);
    let expected = "           BYTES  REPLICAS  NAME\n               7  1/1       a\n      1234567890  1/1       b b\n";
    assert_eq!(ran.out, expected);
    let ran = list(&place, all(), &["--json"]).expect(0).json();
    assert_eq!(
        (&ran["complete"], &ran["count"], &ran["entries"][1]["name"]),
        (&true.into(), &2.into(), &"b b".into())
    );
    let ran = list(&place, all(), &["--checksums", "--match", ".*"]).expect(0);
    assert_eq!(ran.out, format!("{0}  a\n{0}  b b\n", "0a".repeat(32)));

    let gap = Gap {
        replica: "two".into(),
        node: "n-2".into(),
        volume: String::new(),
        reason: "silent".into(),
    };
    let partial = || vec![whole(both(), vec![gap.clone()])];
    let ran = list(&place, partial(), &[]).expect(1);
    assert!(ran.err.contains("replica two, node n-2: silent"), "{ran:?}");
    assert_eq!(
        list(&place, partial(), &["--json"]).expect(1).json()["complete"],
        false
    );

    let cut = || {
        vec![ListResponse {
            entries: both(),
            ..ListResponse::default()
        }]
    };
    let ran = list(&place, cut(), &[]).expect(4);
    assert!(
        ran.err.contains("not complete") && ran.out.contains("b b"),
        "{ran:?}"
    );
    let ran = list(&place, cut(), &["--json"]).expect(4).json();
    assert_eq!(
        (&ran["complete"], &ran["error"]["class"]),
        (&false.into(), &"unreachable".into())
    );
    assert_eq!(ran["entries"].as_array().unwrap().len(), 2);
}

/// Fails if the listing of a replica with a damaged copy exits with 0, or shows other facts in JSON than in lines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_shows_what_is_wrong_with_it() {
    let place = Place::new().await;
    let copy = |name: &str, condition: CopyCondition| FileEntry {
        name: name.into(),
        node: "n-1".into(),
        volume: "v-1".into(),
        size: 7,
        root: vec![10; 32].into(),
        condition: condition.into(),
        stored: "2026-01-01T00:00:01Z".parse().ok(),
        verified: "2026-01-02T03:04:05.678Z".parse().ok(),
        ..FileEntry::default()
    };
    let whole = |copies: Vec<FileEntry>| {
        let end = End {
            count: copies.len() as u64,
            gaps: vec![],
        };
        vec![ListResponse {
            copies,
            end: Some(end),
            ..ListResponse::default()
        }]
    };
    let good = copy("a", CopyCondition::Present);
    let damaged = copy("b", CopyCondition::Damaged);
    let both = whole(vec![good.clone(), damaged.clone()]);
    let ran = list(&place, both, &["--replica", "one"]).expect(1);
    assert!(
        ran.out
            .contains("damaged     2026-01-02T03:04:06Z  n-1/v-1"),
        "{ran:?}"
    );
    assert_eq!(
        place
            .world
            .archive
            .state()
            .list_asked
            .clone()
            .unwrap()
            .replica,
        "one"
    );
    let words = ["--replica", "one", "--json"];
    let said = list(&place, whole(vec![damaged]), &words).expect(1);
    let entry = format!(
        r#"{{"name":"b","size":7,"root":"{}","found":{{"node":"n-1","volume":"v-1","condition":"damaged","stored":"2026-01-01T00:00:01Z","verified":"2026-01-02T03:04:05.678Z"}}}}"#,
        "0a".repeat(32)
    );
    assert!(said.out.contains(&entry), "{said:?}");
    list(&place, whole(vec![good]), &["--replica", "one"]).expect(0);
}

/// Fails if `holdfast list | head` ends in a panic or an error message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reader_may_close_the_pipe_early() {
    let place = Place::new().await;
    let entries = (0..20_000)
        .map(|n| entry(&format!("file-{n:06}"), 1))
        .collect();
    place.world.archive.state().list = vec![Ok(whole(entries, vec![]))];
    let mut child = executable()
        .args(["list", "--as", "reader"])
        .current_dir(place.directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// Fails if `stat` exits with 0 for a file that one replica has damaged or never got, or if a bad name hides the other
/// files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stat_shows_every_replica() {
    let place = Place::new().await;
    let stat = |last| StatResponse {
        name: "a".into(),
        size: 7,
        root: vec![0x0a; 32].into(),
        depositor: "anna".into(),
        admitted: "2026-01-02T03:04:05Z".into(),
        replicas: vec![
            replica("one", ReplicaProgress::UploadCompleted),
            replica("two", last),
        ],
        ..StatResponse::default()
    };
    place.world.archive.state().stat = stat(ReplicaProgress::UploadCompleted);
    let ran = place.holdfast(&["stat", "a"]).expect(0);
    assert!(
        ran.out.contains("two") && ran.out.contains("from anna"),
        "{ran:?}"
    );
    let mut bad = stat(ReplicaProgress::UploadCompleted);
    bad.replicas[1].standing = CopyStanding::Bad.into();
    bad.replicas[1].doubt = AnomalyKind::Corrupt.into();
    place.world.archive.state().stat = bad;
    let ran = place.holdfast(&["stat", "a"]).expect(1);
    assert!(ran.out.contains("corrupt"), "{ran:?}");
    place.world.archive.state().stat = stat(ReplicaProgress::UploadFailed);
    let ran = place
        .holdfast(&["stat", "a", "../b", "--json"])
        .expect(1)
        .json();
    assert_eq!(ran["files"][0]["replicas"][1]["progress"], "upload-failed");
    assert_eq!(ran["files"][1]["error"]["class"], "usage");
    place.holdfast(&["stat", "../b"]).expect(2);
}

/// Fails if the history of a file lists its acts and its anomalies one after the other in place of by their times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_has_acts_and_findings_in_order() {
    let place = Place::new().await;
    let line = |number, at: &str, what: &str| AuditLineState {
        number,
        at: at.into(),
        who: "harvester/h".into(),
        file: "a".into(),
        what: what.into(),
        previous: String::new(),
    };
    let anomaly = AnomalyState {
        id: "a7".into(),
        file: "a".into(),
        replica: "two".into(),
        kind: AnomalyKind::Missing.into(),
        what: "missing".into(),
        size: 7,
        since: "2026-01-02T00:00:00Z".into(),
        state: anomaly_state::State::Closed.into(),
        found_by: anomaly_state::Finder::Scrub.into(),
        ended: "2026-01-04T00:00:00Z".into(),
        ended_why: "repaired".into(),
        ..AnomalyState::default()
    };
    let prepare = || {
        let mut state = place.world.archive.state();
        state.stat = StatResponse {
            name: "a".into(),
            size: 7,
            root: vec![0x0a; 32].into(),
            depositor: "harvester/h".into(),
            admitted: "2026-01-01T00:00:00Z".into(),
            replicas: vec![replica("one", ReplicaProgress::UploadCompleted)],
            ..StatResponse::default()
        };
        let lines = vec![
            line(3, "2026-01-01T00:00:00Z", "stored"),
            line(9, "2026-01-03T00:00:00Z", "replaced"),
        ];
        state.keeping.audit.say([AuditResponse { lines }]);
        let anomalies = vec![anomaly.clone()];
        state
            .keeping
            .anomalies
            .say([AnomaliesResponse { anomalies }]);
    };
    prepare();
    let words = ["stat", "--history", "a", "--as", "officer"];
    let ran = place.holdfast(&words).expect(0);
    let places: Vec<_> = ["stored", "found  scrub", "replaced", "ended  -"]
        .iter()
        .map(|what| {
            ran.out
                .find(what)
                .unwrap_or_else(|| panic!("{what}: {ran:?}"))
        })
        .collect();
    assert!(places.is_sorted(), "{ran:?}");
    prepare();
    let said = place
        .holdfast(&[&words[..], &["--json"]].concat())
        .expect(0)
        .json();
    let history = &said["files"][0]["history"];
    assert_eq!(history[0]["kind"], "act");
    assert_eq!(
        (&history[3]["kind"], &history[3]["anomaly"]),
        (&"ended".into(), &"a7".into())
    );
}

/// Fails if `status` exits with 0 although a volume is offline, or keeps the reason out of its JSON.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_says_what_to_look_at() {
    let place = Place::new().await;
    let volume = |problem: &str| VolumeStatus {
        volume: "v-1".into(),
        path: "/disk".into(),
        problem: problem.into(),
        mode: Mode::ReadWrite.into(),
        total: 2_000_000_000_000,
        free: 1_500_000_000_000,
        retired: false,
        warnings: Vec::new(),
        unreported: false,
    };
    let status = |problem: &str| StatusResponse {
        version: "0.1.0".into(),
        replicas: vec![ReplicaState {
            replica: "one".into(),
            kind: ReplicaKind::Bitarchive.into(),
            required: true,
            problem: String::new(),
            nodes: vec![NodeStatus {
                node: "n-1".into(),
                endpoint: "127.0.0.1:1".into(),
                volumes: vec![volume(problem)],
                alive: true,
                ..NodeStatus::default()
            }],
            ..Default::default()
        }],
        ..StatusResponse::default()
    };
    place.world.archive.state().status = status("");
    let ran = place.holdfast(&["status", "--as", "reader"]).expect(0);
    assert!(
        ran.out.contains("1.5 TB  2.0 TB  /disk") && ran.err.is_empty(),
        "{ran:?}"
    );
    place.world.archive.state().status = status("EIO");
    let ran = place
        .holdfast(&["status", "--as", "reader", "--json"])
        .expect(1);
    assert!(ran.err.contains("offline, for reading too: EIO"), "{ran:?}");
    assert_eq!(
        ran.json()["replicas"][0]["nodes"][0]["volumes"][0]["problem"],
        "EIO"
    );
}

/// Fails if `status` keeps to itself that all required copies stand at one site, or makes a failure of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_site_is_reported_without_failure() {
    let place = Place::new().await;
    let replica = |id: &str, site: &str| ReplicaState {
        replica: id.into(),
        kind: ReplicaKind::Bitarchive.into(),
        required: true,
        site: site.into(),
        ..ReplicaState::default()
    };
    for (other, is_said) in [("aarhus", true), ("odense", false)] {
        place.world.archive.state().status = StatusResponse {
            version: "0.1.0".into(),
            replicas: vec![replica("one", "aarhus"), replica("two", other)],
            ..StatusResponse::default()
        };
        let ran = place.holdfast(&["status", "--as", "reader"]).expect(0);
        let said = "every required copy stands at one site (aarhus)";
        assert_eq!(ran.err.contains(said), is_said, "{other}: {ran:?}");
    }
}
