//! Heartbeats, silence, restart, stop.

use std::fs::read;
use std::time::Duration;

use archive_daemon::Clock;
use archive_daemon::clock::ManualClock;
use archive_rpc::CallErrorKind;
use tools_testing::{PATIENCE, eventually, in_time};

use crate::fake_node::{FakeNode, Find, Step};
use crate::world::{MonitorEnvironment, status, write};

/// Fails if a caller can report as another node than the one in its certificate, or a node may ask where files are.
#[tokio::test]
async fn a_certificate_speaks_only_for_its_own_node() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let mut a = world.caller("node/a", &monitor);
    assert_eq!(
        a.heartbeat(status("a", "127.0.0.1:1", 5)).await.unwrap(),
        1000
    );
    let foreign = a
        .heartbeat(status("b", "127.0.0.1:1", 5))
        .await
        .unwrap_err();
    assert_eq!(CallErrorKind::from_status(&foreign), CallErrorKind::Refused);
    assert!(
        foreign.message().contains("node b") && foreign.message().contains("node/a"),
        "{foreign}"
    );
    for other in ["monitor/one", "repository/main", "operator/anna"] {
        let refused = world
            .caller(other, &monitor)
            .heartbeat(status("a", "127.0.0.1:1", 5))
            .await
            .unwrap_err();
        assert_eq!(
            CallErrorKind::from_status(&refused),
            CallErrorKind::Refused,
            "{other}"
        );
    }
    // And a node asks nothing.
    let refused = a.locate("f").await.unwrap_err();
    assert_eq!(CallErrorKind::from_status(&refused), CallErrorKind::Refused);

    let nodes = world.repository(&monitor).await.state(&[]).await;
    assert_eq!(nodes.len(), 1, "b was not believed in: {nodes:?}");
    assert!(
        nodes[0].alive && !nodes[0].seen.is_empty() && nodes[0].volumes.len() == 1,
        "{nodes:?}"
    );
    assert_eq!(
        (nodes[0].node.as_str(), nodes[0].endpoint.as_str()),
        ("a", "127.0.0.1:1")
    );
    let page = monitor.daemon.metrics.render_page().unwrap();
    let refused = "monitor_heartbeats_total{replica=\"one\",outcome=\"refused\"} 1\n";
    assert!(page.contains(refused), "{page}");
    monitor.stop().await;
}

/// Fails if a heartbeat without a status, or with an address that nobody can call, is accepted, or the error does not
/// name the field.
#[tokio::test]
async fn unreadable_heartbeat_names_its_field() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let mut a = world.caller("node/a", &monitor);
    let missing = a.empty_heartbeat().await.unwrap_err();
    assert!(
        CallErrorKind::from_status(&missing) == CallErrorKind::Invalid
            && missing.message().contains("`status`"),
        "{missing}"
    );
    for endpoint in ["", "here", "h:0", "h:99999", "user@h:1"] {
        let error = a.heartbeat(status("a", endpoint, 5)).await.unwrap_err();
        assert!(
            CallErrorKind::from_status(&error) == CallErrorKind::Invalid
                && error.message().contains("`endpoint`"),
            "{error}"
        );
    }
    let error = a
        .heartbeat(status("Not an id", "h:1", 5))
        .await
        .unwrap_err();
    assert!(
        CallErrorKind::from_status(&error) == CallErrorKind::Invalid
            && error.message().contains("`node`"),
        "{error}"
    );
    assert!(world.repository(&monitor).await.state(&[]).await.is_empty());
}

/// Fails if a node that is silent for too long is still asked, is no gap of an answer, or stays out after its next
/// heartbeat.
#[tokio::test]
async fn node_is_silent_after_limit_until_next_heartbeat() {
    let world = MonitorEnvironment::new();
    let hand = ManualClock::new(Clock::system_clock().now());
    let monitor = MonitorEnvironment::try_start(world.settings("monitor/one"), hand.clock())
        .await
        .unwrap();
    let node = FakeNode::honest(&world, &monitor, "a", &["f"]).await;
    let mut repository = world.repository(&monitor).await;
    hand.advance(Duration::from_secs(10));
    assert!(repository.state(&[]).await[0].alive);
    // Both background jobs sleep; the next look of the watch is due.
    hand.advance_sleepers(2, Duration::from_secs(1)).await;
    let state = repository.state(&[]).await;
    assert!(!state[0].alive && !state[0].seen.is_empty(), "{state:?}");
    assert!(
        repository.locate("f").await.unwrap().gaps[0]
            .reason
            .starts_with("silent since")
    );
    let listed = repository.listing("").await;
    assert!(
        listed.entries.is_empty() && listed.gaps()[0].starts_with("a/: silent since"),
        "{listed:?}"
    );
    assert!(
        node.seen.after.lock().is_empty(),
        "a silent node is not asked"
    );
    let page = monitor.daemon.metrics.render_page().unwrap();
    assert!(
        page.contains("monitor_nodes{replica=\"one\",state=\"silent\"} 1\n"),
        "{page}"
    );

    world
        .beat(&monitor, "a", &node.address.to_string(), 5)
        .await;
    assert!(repository.state(&[]).await[0].alive);
    assert_eq!(repository.listing("").await.names(), ["f@a"]);
    monitor.stop().await;
}

/// Fails if a running monitor lists, or fills, one of two processes that claim to be the same node.
#[tokio::test]
async fn two_processes_claiming_one_node_are_a_gap() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let one = FakeNode::honest(&world, &monitor, "a", &["f"]).await;
    let two = FakeNode::honest(&world, &monitor, "a", &["g"]).await;
    assert_eq!(
        repository.listing("").await.names(),
        ["g@a"],
        "it has moved"
    );
    world.beat(&monitor, "a", &one.address.to_string(), 5).await;
    let listed = repository.listing("").await;
    assert!(
        listed.entries.is_empty() && listed.gaps()[0].contains("stop one"),
        "{listed:?}"
    );
    assert_eq!(
        CallErrorKind::from_status(&repository.place("h", "u", 1, &[]).await.unwrap_err()),
        CallErrorKind::Unavailable
    );
    assert!(!repository.state(&[]).await[0].alive);
    drop(two);
}

/// Fails if a restarted monitor gives a complete answer before it has heard of every node: all their files would count
/// as missing.
#[tokio::test]
async fn a_monitor_that_was_restarted_makes_nothing_vanish() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let a = FakeNode::honest(&world, &monitor, "a", &["f"]).await;
    let _b = FakeNode::honest(&world, &monitor, "b", &["g"]).await;
    let mut repository = world.repository(&monitor).await;
    assert_eq!(repository.listing("").await.names(), ["f@a", "g@b"]);
    let address = monitor.address;
    monitor.stop().await;

    let mut settings = world.settings("monitor/one");
    settings.rpc.listen = address.to_string();
    let monitor = MonitorEnvironment::try_start(settings, Clock::system_clock())
        .await
        .expect("on the same port");
    // The repository's channel connects again by itself. No repository has named the nodes that the monitor is to miss.
    let listed = repository.listing("").await;
    assert!(listed.entries.is_empty(), "{listed:?}");
    assert!(listed.gaps()[0].contains("was not told"), "{listed:?}");
    assert_eq!(repository.locate("f").await.unwrap().gaps.len(), 1);

    let nodes = repository.state(&["b", "a"]).await;
    let seen: Vec<_> = nodes
        .iter()
        .map(|node| (node.node.as_str(), node.alive, node.seen.as_str()))
        .collect();
    assert_eq!(seen, [("a", false, ""), ("b", false, "")]);
    let listed = repository.listing("").await;
    let reason = "not heard of since the monitor started";
    assert_eq!(
        listed.gaps(),
        [format!("a/: {reason}"), format!("b/: {reason}")]
    );

    world.beat(&monitor, "a", &a.address.to_string(), 5).await;
    let listed = repository.listing("").await;
    assert_eq!(
        (listed.names(), listed.gaps()),
        (vec!["f@a".to_owned()], vec![format!("b/: {reason}")])
    );
    monitor.stop().await;
}

/// Fails if a monitor does not stop while a listing waits for a node, or the reader of the listing is not given the
/// reason.
#[tokio::test]
async fn a_stop_ends_listings_that_wait() {
    let world = MonitorEnvironment::new();
    let mut settings = world.settings("monitor/one");
    settings.monitor.idle = archive_daemon::Period::from_secs(3600);
    let monitor = MonitorEnvironment::try_start(settings, Clock::system_clock())
        .await
        .unwrap();
    let _stalls = FakeNode::scripted(
        &world,
        &monitor,
        "a",
        vec![Step::Names(vec!["f".to_owned()]), Step::Stall],
    )
    .await;
    let mut listing = world
        .repository(&monitor)
        .await
        .open_listing("")
        .await
        .unwrap();
    assert_eq!(
        in_time(listing.message())
            .await
            .unwrap()
            .unwrap()
            .entries
            .len(),
        1
    );
    let reading = async { in_time(listing.message()).await.unwrap_err() };
    let (error, ()) = tokio::join!(reading, monitor.stop());
    assert!(
        CallErrorKind::from_status(&error) == CallErrorKind::Unavailable
            && error.message().contains("stopping"),
        "{error}"
    );
}

/// Fails if a monitor starts with settings that make no sense, a certificate of another role or replica, no key, or a
/// port in use.
#[tokio::test]
async fn monitor_with_unusable_settings_does_not_start() {
    let world = MonitorEnvironment::new();
    let mut settings = world.settings("monitor/one");
    settings.monitor.silent_after = settings.monitor.heartbeat;
    let refused = MonitorEnvironment::try_start(settings, Clock::system_clock())
        .await
        .err()
        .unwrap();
    assert!(
        refused.is_of_settings() && refused.to_string().contains("at least twice"),
        "{refused}"
    );

    for other in ["monitor/two", "node/one"] {
        let refused = MonitorEnvironment::try_start(world.settings(other), Clock::system_clock())
            .await
            .err()
            .unwrap();
        assert!(refused.to_string().contains("not monitor/one"), "{refused}");
    }

    let monitor = world.monitor().await;
    let mut settings = world.settings("monitor/one");
    settings.rpc.listen = monitor.address.to_string();
    let refused = MonitorEnvironment::try_start(settings, Clock::system_clock())
        .await
        .err()
        .unwrap();
    assert!(
        refused
            .to_string()
            .starts_with("rpc.listen: cannot listen on"),
        "{refused}"
    );

    let mut settings = world.settings("monitor/one");
    settings.rpc.key = "/nowhere/key.pem".into();
    let refused = MonitorEnvironment::try_start(settings, Clock::system_clock())
        .await
        .err()
        .unwrap();
    assert!(
        refused.to_string().contains("/nowhere/key.pem"),
        "{refused}"
    );
}

/// Fails if the monitor asks, at the address that a node gave, a server whose certificate names another node.
#[tokio::test]
async fn a_node_is_who_its_certificate_says() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let b = FakeNode::start(&world, "b", vec![Step::End(0, vec![])], Find::Nothing).await;
    // Node `a` gives the address of node `b` as its own.
    world.beat(&monitor, "a", &b.address.to_string(), 5).await;
    let mut repository = world.repository(&monitor).await;
    let found = repository.locate("f").await.unwrap();
    assert!(found.gaps[0].reason.contains("is not node/a"), "{found:?}");
    let listed = repository.listing("").await;
    assert!(listed.gaps()[0].contains("is not node/a"), "{listed:?}");
    assert!(b.seen.after.lock().is_empty());
}

/// Fails if a half-written certificate stops a running monitor, goes unreported, or keeps the next good one from being
/// read.
#[tokio::test]
async fn certificates_are_exchanged_without_a_restart() {
    let world = MonitorEnvironment::new();
    let hand = ManualClock::new(Clock::system_clock().now());
    let settings = world.settings("monitor/one");
    let monitor = MonitorEnvironment::try_start(settings.clone(), hand.clock())
        .await
        .unwrap();
    let worker = || {
        let all = monitor.daemon.workers.list_workers();
        all.into_iter()
            .find(|worker| &*worker.name == "credentials/one")
            .unwrap()
    };
    let minute = async |until: &dyn Fn() -> bool| {
        hand.advance_sleepers(2, Duration::from_mins(1)).await;
        eventually("the worker's turn", PATIENCE, async || {
            if until() { Ok(()) } else { Err(worker()) }
        })
        .await;
    };
    let good = read(&settings.rpc.certificate).unwrap();
    write(&settings.rpc.certificate, b"half a certifi");
    minute(&|| worker().errors > 0).await;
    let (_, error) = worker().last_error.unwrap();
    assert!(error.contains("certificate"), "{error}");
    world.beat(&monitor, "a", "127.0.0.1:1", 5).await;

    write(&settings.rpc.certificate, &good);
    let steps = worker().steps;
    minute(&|| worker().steps > steps).await;
    world.beat(&monitor, "a", "127.0.0.1:1", 5).await;
    monitor.stop().await;
}
