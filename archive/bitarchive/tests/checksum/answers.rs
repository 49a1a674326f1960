//! The answers of a checksum replica: its listings, its refusals of calls for bytes, and the removal of rows.

use archive_bitarchive::checksum::{ChecksumTable, RecordedFile};
use archive_rpc::CallErrorKind;
use jiff::Timestamp;
use proto_archive::wire::{
    AtticRequest, FilesRequest, FindRequest, HeartbeatRequest, NodeStateRequest, PlaceRequest,
    PutAsideRequest, ReadRequest, ReplicaStateRequest, ScrubRequest, SetVolumeRequest,
    VerifyRequest,
};
use tools_testing::noise;

use crate::replica::{TestReplica, root};
use proto_archive::wire::scrub_state::Activity;

/// Fails if a listing is out of order, or its end cannot be distinguished from a cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listing_is_sorted_and_says_its_end() {
    let test = TestReplica::new();
    let running = test.start().await;
    assert_eq!(running.names().await, Vec::<String>::new());
    for name in ["b", "a", "å", "a.b", "c"] {
        test.store(&running, name, b"x").await.unwrap();
    }
    assert_eq!(running.names().await, ["a", "a.b", "b", "c", "å"]);
    let after = running.list("a.b").await;
    let names: Vec<_> = after.iter().flat_map(|one| &one.entries).collect();
    assert_eq!(names.len(), 3);
    assert_eq!(after.last().unwrap().end.as_ref().unwrap().count, 3);
    let request = FilesRequest {
        after: String::new(),
        only_findings: true,
        on_disk: false,
    };
    let mut findings = running
        .node
        .clone()
        .files(request)
        .await
        .unwrap()
        .into_inner();
    let only = findings.message().await.unwrap().unwrap();
    assert_eq!((only.entries.len(), only.end.unwrap().count), (0, 0));
    running.stop().await;
}

/// Fails if a message of a listing is larger than a client reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_listing_comes_in_bounded_messages() {
    let test = TestReplica::new();
    let node = "three-1".parse().unwrap();
    let replica = "three".parse().unwrap();
    let record = ChecksumTable::open(&test.data(), &node, &replica).unwrap();
    let row = RecordedFile {
        size: 1,
        root: root(b"x"),
        stored: Timestamp::UNIX_EPOCH,
    };
    // An admission may be long: a client reads at most 4 MiB at once.
    let admission = "x".repeat(400_000);
    let names: Vec<String> = (0..2001).map(|n| format!("f-{n:04}")).collect();
    for (n, name) in names.iter().enumerate() {
        let admission = if n < 20 { admission.as_str() } else { "y" };
        record
            .add_file(&name.parse().unwrap(), row, admission)
            .unwrap();
    }
    drop(record);
    let running = test.start().await;
    assert_eq!(running.names().await, names);
    let lengths: Vec<_> = running
        .list("")
        .await
        .iter()
        .map(|one| one.entries.len())
        .collect();
    assert_eq!(lengths, [1000, 1000, 1]);

    let mut node = running.node.clone();
    let mut stream = node
        .admissions(FilesRequest::default())
        .await
        .unwrap()
        .into_inner();
    let mut listed = Vec::new();
    let mut messages = 0;
    let mut end = None;
    while let Some(message) = stream.message().await.unwrap() {
        messages += 1;
        listed.extend(
            message
                .admissions
                .into_iter()
                .map(|one| one.entry.unwrap().name),
        );
        end = message.end;
    }
    assert_eq!((listed, end.unwrap().count), (names, 2001));
    assert!(messages >= 10, "{messages}");
    running.stop().await;
}

/// Fails if a checksum replica names another node, or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checksum_replica_reports_itself_as_only_node() {
    let test = TestReplica::new();
    let running = test.start().await;
    let mut replica = running.replica.clone();
    let place = PlaceRequest {
        name: "a".to_owned(),
        upload: "u".to_owned(),
        size: 1 << 60,
        avoid: vec!["three-1".to_owned()],
    };
    let place = replica.place(place).await.unwrap().into_inner();
    assert_eq!(place.node, "three-1");
    assert!(place.endpoint.starts_with("127.0.0.1:"), "{place:?}");
    let known = vec!["three-1".to_owned(), "three-2".to_owned()];
    let state = replica
        .replica_state(ReplicaStateRequest {
            known,
            retired: Vec::new(),
            volumes: Vec::new(),
        })
        .await;
    let state = state.unwrap().into_inner();
    let alive: Vec<_> = state
        .nodes
        .iter()
        .map(|node| (node.node.as_str(), node.alive))
        .collect();
    assert_eq!(alive, [("three-1", true), ("three-2", false)]);
    assert_eq!(state.nodes[0].volumes[0].volume, "table");
    let node = running.node.clone().node_state(NodeStateRequest {}).await;
    assert_eq!(node.unwrap().into_inner().endpoint, place.endpoint);
    let beat = replica.heartbeat(HeartbeatRequest::default()).await;
    let said = beat.unwrap_err();
    assert!(said.message().contains("checksums only"), "{said}");
    running.stop().await;
}

/// Fails if a call that needs bytes or disks is answered as if there were some, or an unknown order to the scrub as a
/// question.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_for_bytes_or_disks_are_refused() {
    let test = TestReplica::new();
    let running = test.start().await;
    let bytes = noise(1000, 1);
    test.store(&running, "a", &bytes).await.unwrap();
    let mut node = running.node.clone();
    let read = ReadRequest {
        name: "a".to_owned(),
        root: root(&bytes).as_bytes().to_vec().into(),
        start: 0,
        end: 0,
    };
    let error = node.read(read).await.unwrap_err();
    assert_eq!(CallErrorKind::from_status(&error), CallErrorKind::NotFound);
    assert!(error.message().contains("checksums only"), "{error}");
    let error = node.set_volume(SetVolumeRequest::default()).await;
    assert_eq!(
        CallErrorKind::from_status(&error.unwrap_err()),
        CallErrorKind::NotFound
    );
    let state = node.scrub(ScrubRequest::default()).await.unwrap();
    assert_eq!(state.into_inner().activity(), Activity::Idle);
    // An order, and the order of a newer archive, which is no question for the state.
    for (order, kind) in [(1, CallErrorKind::NotFound), (99, CallErrorKind::Invalid)] {
        let request = ScrubRequest {
            order,
            ..ScrubRequest::default()
        };
        assert_eq!(
            CallErrorKind::from_status(&node.scrub(request).await.unwrap_err()),
            kind
        );
    }
    let attic = node.attic(AtticRequest::default()).await.unwrap();
    let only = attic.into_inner().message().await.unwrap().unwrap();
    assert!(only.items.is_empty() && only.end.is_some());

    let verify = |name: &str, volume: &str| VerifyRequest {
        name: name.to_owned(),
        volume: volume.to_owned(),
    };
    let said = node.verify(verify("a", "")).await.unwrap();
    let said = said.into_inner().message().await.unwrap().unwrap();
    assert_eq!((said.bytes, said.entry.unwrap().size), (0, 1000));
    for (name, volume) in [("b", ""), ("a", "v-1")] {
        let error = match node.verify(verify(name, volume)).await {
            Err(error) => error,
            Ok(answers) => answers.into_inner().message().await.unwrap_err(),
        };
        assert_eq!(
            CallErrorKind::from_status(&error),
            CallErrorKind::NotFound,
            "{name} {volume}: {error}"
        );
    }
    running.stop().await;
}

/// Fails if a row is removed by its name alone, or without a trace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_row_needs_checksum_and_leaves_line() {
    let test = TestReplica::new();
    let running = test.start().await;
    let bytes = noise(1000, 1);
    for name in ["a", "b", "c"] {
        test.store(&running, name, &bytes).await.unwrap();
    }
    let request = |name: &str, bytes: &[u8]| PutAsideRequest {
        name: name.to_owned(),
        checksum: root(bytes).as_bytes().to_vec().into(),
        who: "officer/anna".to_owned(),
        why: "stored by mistake".to_owned(),
        ..PutAsideRequest::default()
    };
    let mut node = running.node.clone();
    let wrong = node.put_aside(request("a", b"other")).await.unwrap_err();
    assert_eq!(CallErrorKind::from_status(&wrong), CallErrorKind::Mismatch);
    let own = root(&bytes).to_string();
    assert!(!wrong.message().contains(&own), "{wrong}");
    let nameless = PutAsideRequest {
        why: String::new(),
        ..request("a", &bytes)
    };
    let error = node.put_aside(nameless).await.unwrap_err();
    assert_eq!(
        CallErrorKind::from_status(&error),
        CallErrorKind::Invalid,
        "{error}"
    );
    assert_eq!(running.names().await, ["a", "b", "c"]);

    let item = node.put_aside(request("a", &bytes)).await.unwrap();
    assert_eq!(item.into_inner().who, "officer/anna");
    let again = node.put_aside(request("a", &bytes)).await.unwrap_err();
    assert_eq!(CallErrorKind::from_status(&again), CallErrorKind::NotFound);
    node.put_aside(request("b", &bytes)).await.unwrap();
    let third = node.put_aside(request("c", &bytes)).await.unwrap_err();
    assert_eq!(
        CallErrorKind::from_status(&third),
        CallErrorKind::Refused,
        "{third}"
    );
    assert_eq!(running.names().await, ["c"]);

    let removed = std::fs::read_to_string(test.data().join("removed.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = removed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["name"], "a");
    assert_eq!(lines[0]["root"], own);
    assert!(lines[0]["admission"].as_str().unwrap().contains("payload"));

    // Removed is not forbidden: what is stored again is recorded again.
    test.store(&running, "a", &bytes).await.unwrap();
    let find = FindRequest {
        name: "a".to_owned(),
        on_disk: false,
    };
    let found = node.find(find).await.unwrap().into_inner();
    assert_eq!(found.entries.len(), 1);
    running.stop().await;
}
