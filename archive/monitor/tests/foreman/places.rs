//! Where files are, and where they go.

use archive_rpc::CallErrorKind;
use proto_archive::wire::{CopyCondition, Mode};

use crate::fake_node::{FakeNode, Find};
use crate::world::{MonitorEnvironment, gaps, status};

/// Fails if a node that is dead, hangs, is partly offline or answers for another file counts as one that does not have
/// the file.
#[tokio::test]
async fn file_is_nowhere_only_if_all_say_so() {
    let world = MonitorEnvironment::new();
    let monitor = world.impatient_monitor().await;
    let mut repository = world.repository(&monitor).await;
    let _empty = FakeNode::finding(&world, &monitor, "a", Find::Nothing, 5).await;
    let nowhere = repository.locate("f").await.unwrap();
    assert!(
        nowhere.entries.is_empty() && nowhere.gaps.is_empty(),
        "{nowhere:?}"
    );

    let _has = FakeNode::finding(&world, &monitor, "b", Find::Has(CopyCondition::Present), 5).await;
    let _also =
        FakeNode::finding(&world, &monitor, "c", Find::Has(CopyCondition::Damaged), 5).await;
    let found = repository.locate("f").await.unwrap();
    let nodes: Vec<&str> = found
        .entries
        .iter()
        .map(|entry| entry.node.as_str())
        .collect();
    assert_eq!(
        (nodes, found.gaps.len()),
        (vec!["b", "c"], 0),
        "both copies are seen"
    );

    let _offline = FakeNode::finding(&world, &monitor, "d", Find::Offline, 5).await;
    let dead = FakeNode::finding(&world, &monitor, "e", Find::Nothing, 5).await;
    dead.kill().await;
    let _hangs = FakeNode::finding(&world, &monitor, "g", Find::Hangs, 5).await;
    let _other = FakeNode::finding(&world, &monitor, "h", Find::Other, 5).await;
    let _everywhere = FakeNode::finding(&world, &monitor, "i", Find::Everywhere, 5).await;
    let found = repository.locate("f").await.unwrap();
    assert_eq!(found.entries.len(), 2);
    let gaps = gaps(&found.gaps);
    assert_eq!(gaps.len(), 5, "{gaps:?}");
    assert_eq!(gaps[0], "d/v2: not mounted");
    assert!(
        gaps[1].starts_with("e/: ") && gaps[1].contains("cannot be reached"),
        "{gaps:?}"
    );
    assert_eq!(gaps[2], "g/: no answer within 2s");
    assert_eq!(
        gaps[3],
        "h/: it was asked for f and answered for other.warc"
    );
    assert!(
        gaps[4].starts_with("i/: it answered for 257 volumes"),
        "{gaps:?}"
    );
    let error = repository.locate("../f").await.unwrap_err();
    assert!(
        CallErrorKind::from_status(&error) == CallErrorKind::Invalid
            && error.message().contains("`name`"),
        "{error}"
    );
    monitor.stop().await;
}

/// Fails if the same room is promised twice, an upload leaves the node that has its bytes, a full replica is reported
/// as a silent one, or a bad field is accepted.
#[tokio::test]
async fn uploads_go_where_room_is_and_stay_there() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let none = repository.place("f", "u", 5, &[]).await.unwrap_err();
    assert!(
        CallErrorKind::from_status(&none) == CallErrorKind::Unavailable
            && none.message().contains("replica one"),
        "{none}"
    );

    let a = FakeNode::finding(&world, &monitor, "a", Find::Nothing, 50).await;
    let _b = FakeNode::finding(&world, &monitor, "b", Find::Nothing, 80).await;
    let placed = repository.place("f", "u1", 40, &[]).await.unwrap();
    assert_eq!(placed.node, "b");
    // Of the 80 bytes of one node 40 are promised; the next file goes to the other, although no heartbeat has said so.
    let placed = repository.place("g", "u2", 40, &[]).await.unwrap();
    assert_eq!(
        (placed.node.as_str(), placed.endpoint),
        ("a", a.address.to_string())
    );
    assert_eq!(
        repository.place("f", "u1", 40, &[]).await.unwrap().node,
        "b",
        "where its bytes are"
    );
    assert_eq!(
        repository.place("f", "u1", 5, &["b"]).await.unwrap().node,
        "a",
        "that one could not"
    );
    let tried = repository
        .place("f", "u1", 5, &["b", "a"])
        .await
        .unwrap_err();
    assert_eq!(
        CallErrorKind::from_status(&tried),
        CallErrorKind::Unavailable
    );
    let full = repository.place("h", "u3", 81, &[]).await.unwrap_err();
    assert_eq!(
        (CallErrorKind::from_status(&full), full.code()),
        (CallErrorKind::NoSpace, tonic::Code::ResourceExhausted)
    );
    world.beat(&monitor, "a", &a.address.to_string(), 81).await;
    assert_eq!(
        repository.place("h", "u3", 81, &[]).await.unwrap().node,
        "a",
        "by itself, once room is free"
    );

    for (name, upload, avoid, field) in [
        ("", "u", "a", "name"),
        ("f", "", "a", "upload"),
        ("f", "u", "A", "avoid"),
    ] {
        let error = repository
            .place(name, upload, 1, &[avoid])
            .await
            .unwrap_err();
        assert!(
            CallErrorKind::from_status(&error) == CallErrorKind::Invalid
                && error.message().contains(field),
            "{error}"
        );
    }
    monitor.stop().await;
}

/// Fails if a file is given a second home while another node has it or misses it, or goes to a node without room
/// because that one misses it.
#[tokio::test]
async fn a_file_goes_where_it_is() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let _roomy = FakeNode::finding(&world, &monitor, "a", Find::Nothing, 900).await;
    let _misses =
        FakeNode::finding(&world, &monitor, "b", Find::Has(CopyCondition::Missing), 10).await;
    assert_eq!(
        repository.place("f", "u1", 5, &[]).await.unwrap().node,
        "b",
        "it misses it no longer then"
    );
    assert_eq!(
        repository.place("f", "u2", 11, &[]).await.unwrap().node,
        "a",
        "no room there"
    );
    // Full and read-only, but it has the file and will say so.
    let has = FakeNode::finding(&world, &monitor, "c", Find::Has(CopyCondition::Present), 0).await;
    let mut read_only = status("c", &has.address.to_string(), 0);
    read_only.volumes[0].mode = Mode::ReadOnly.into();
    world
        .caller("node/c", &monitor)
        .heartbeat(read_only)
        .await
        .unwrap();
    assert_eq!(repository.place("f", "u3", 5, &[]).await.unwrap().node, "c");
    let refused = repository
        .place("f", "u3", 5, &["a", "b", "c"])
        .await
        .unwrap_err();
    assert_eq!(
        CallErrorKind::from_status(&refused),
        CallErrorKind::Unavailable
    );
    monitor.stop().await;
}

/// Fails if a file goes to a node that could not say whether it has the file already, or a node with one offline volume
/// gets none.
#[tokio::test]
async fn a_node_that_cannot_answer_gets_no_file() {
    let world = MonitorEnvironment::new();
    let monitor = world.impatient_monitor().await;
    let mut repository = world.repository(&monitor).await;
    let _hangs = FakeNode::finding(&world, &monitor, "a", Find::Hangs, 900).await;
    let error = repository.place("f", "u", 5, &[]).await.unwrap_err();
    assert_eq!(
        CallErrorKind::from_status(&error),
        CallErrorKind::Unavailable
    );
    let _offline = FakeNode::finding(&world, &monitor, "b", Find::Offline, 10).await;
    assert_eq!(
        repository.place("f", "u", 5, &[]).await.unwrap().node,
        "b",
        "one offline volume is no hindrance"
    );
    monitor.stop().await;
}

/// Fails if a file is given a second home while its first one receives it, or if that one is taken for silent.
#[tokio::test]
async fn a_file_goes_where_it_is_being_received() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let _receives = FakeNode::finding(&world, &monitor, "a", Find::Receives, 0).await;
    let placed = repository.place("f", "u", 5, &[]).await.unwrap();
    assert_eq!(placed.node, "a", "it says when it is done");
    let _roomy = FakeNode::finding(&world, &monitor, "b", Find::Nothing, 900).await;
    let placed = repository.place("f", "u", 5, &[]).await.unwrap();
    assert_eq!(placed.node, "a", "also where another has room");
    let found = repository.locate("f").await.unwrap();
    assert_eq!(gaps(&found.gaps), ["a/: "], "nobody knows yet");
    let placed = repository.place("f", "u", 5, &["a"]).await.unwrap();
    assert_eq!(placed.node, "b", "that one could not");
    let _has = FakeNode::finding(&world, &monitor, "c", Find::Has(CopyCondition::Present), 0).await;
    let placed = repository.place("f", "u", 5, &[]).await.unwrap();
    assert_eq!(placed.node, "c", "one that has it can say so now");
    monitor.stop().await;
}
