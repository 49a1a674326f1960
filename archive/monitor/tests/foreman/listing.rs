//! The listing that the monitor merges from those of its nodes, good and bad.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use archive_rpc::CallErrorKind;
use proto_archive::wire::{CopyCondition, FileEntry, Gap, GroupRange};
use tokio::time::sleep;
use tools_testing::{PATIENCE, eventually, in_time};

use crate::fake_node::{FakeNode, Step, entry};
use crate::world::MonitorEnvironment;

fn names(names: &[&str]) -> Step {
    Step::Names(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Fails if the listings of several nodes are not merged by name, a field or a gap is lost, or a node that ignores the
/// name to begin after is not noticed.
#[tokio::test]
async fn many_listings_are_one() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let empty = repository.listing("").await;
    assert!(
        empty.entries.is_empty() && empty.gaps.is_empty(),
        "a replica without nodes: {empty:?}"
    );

    let a = FakeNode::honest(&world, &monitor, "a", &["b", "d", "e"]).await;
    let offline = Gap {
        volume: "v9".to_owned(),
        reason: "not mounted".to_owned(),
        ..Gap::default()
    };
    let steps = vec![
        names(&["a"]),
        names(&["d", "ä"]),
        Step::End(3, vec![offline]),
    ];
    let _b = FakeNode::scripted(&world, &monitor, "b", steps).await;
    let _c = FakeNode::honest(&world, &monitor, "c", &[]).await;
    let listed = repository.listing("").await;
    assert_eq!(
        listed.names(),
        ["a@b", "b@a", "d@a", "d@b", "e@a", "ä@b"],
        "copies of one name are neighbours"
    );
    assert_eq!(
        (listed.count, listed.gaps()),
        (6, vec!["b/v9: not mounted".to_owned()])
    );
    assert_eq!(listed.entries[1], entry("a", "b"), "not a field is lost");

    // `b` and `c` of these tests do not heed it, and are found out.
    let listed = repository.listing("a.warc").await;
    assert_eq!(*a.seen.after.lock(), ["", "a.warc"]);
    assert_eq!(listed.names(), ["b@a", "d@a", "e@a"]);
    assert_eq!(listed.gaps(), ["b/: its listing is out of order at a"]);
    let error = repository.open_listing("../a").await.unwrap_err();
    assert!(
        CallErrorKind::from_status(&error) == CallErrorKind::Invalid
            && error.message().contains("`after`"),
        "{error}"
    );
    monitor.stop().await;
}

/// Fails if a node that stalls, breaks off, miscounts or sends nonsense ends the listing of the others, or is not a gap
/// with its reason.
#[tokio::test]
async fn misbehaving_node_is_named_and_others_are_listed() {
    let world = MonitorEnvironment::new();
    let monitor = world.impatient_monitor().await;
    let mut repository = world.repository(&monitor).await;
    let nameless = FileEntry {
        name: String::new(),
        ..entry("g", "x")
    };
    let foreign = entry("a", "m");
    let misbehaved = [
        (
            "b",
            vec![names(&["c", "g", "f", "z"])],
            "its listing is out of order at f (it listed up to g)",
        ),
        (
            "c",
            vec![names(&["a"]), Step::Stall],
            "stalled: no message within 2s (it listed up to a)",
        ),
        (
            "d",
            vec![names(&["h"]), Step::Fail("the catalog is damaged")],
            "the catalog is damaged (it listed up to h)",
        ),
        (
            "e",
            vec![names(&["i"])],
            "its listing broke off (it listed up to i)",
        ),
        (
            "f",
            vec![names(&["j"]), Step::End(2, vec![])],
            "it lists 2 entries and sent 1 (it listed up to j)",
        ),
        (
            "g",
            vec![names(&["k"]), Step::Entries(vec![nameless])],
            "field `name`",
        ),
        (
            "h",
            vec![names(&["l"]), Step::EmptyForever],
            "it sent a message without entries (it listed up to l)",
        ),
        ("i", vec![Step::Entries(vec![foreign])], "field `node`"),
        ("j", vec![Step::Stall], "stalled: no message within 2s"),
    ];
    let mut nodes = vec![FakeNode::honest(&world, &monitor, "a", &["b", "m", "zz"]).await];
    for (id, steps, _) in misbehaved.clone() {
        nodes.push(FakeNode::scripted(&world, &monitor, id, steps).await);
    }
    let silent = "not heard of since the monitor started";
    repository.state(&["s"]).await;
    let listed = repository.listing("").await;
    assert_eq!(
        listed.names(),
        [
            "a@c", "b@a", "c@b", "g@b", "h@d", "i@e", "j@f", "k@g", "l@h", "m@a", "zz@a"
        ],
        "what was sent in order is listed"
    );
    let mut gaps = listed.gaps();
    gaps.sort();
    assert_eq!(gaps.len(), misbehaved.len() + 1, "{gaps:?}");
    for ((id, _, reason), gap) in misbehaved.iter().zip(&gaps) {
        assert!(gap.starts_with(&format!("{id}/: {reason}")), "{gap}");
    }
    assert_eq!(gaps[misbehaved.len()], format!("s/: {silent}"));
    let page = monitor.daemon.metrics.render_page().unwrap();
    assert!(
        page.contains("monitor_listings_total{replica=\"one\",outcome=\"partial\"} 1\n"),
        "{page}"
    );
    assert!(
        page.contains("monitor_listing_entries_total{replica=\"one\"} 11\n"),
        "{page}"
    );
    monitor.stop().await;
}

/// Fails if a connection that breaks within a listing counts as the end of the node's files, or ends the listing of the
/// others.
#[tokio::test]
async fn node_dying_within_listing_is_a_gap() {
    let world = MonitorEnvironment::new();
    let mut settings = world.settings("monitor/one");
    settings.monitor.idle = archive_daemon::Period::from_secs(3600);
    let monitor = MonitorEnvironment::try_start(settings, archive_daemon::Clock::system_clock())
        .await
        .unwrap();
    let mut repository = world.repository(&monitor).await;
    let dies =
        FakeNode::scripted(&world, &monitor, "a", vec![names(&["f", "h"]), Step::Stall]).await;
    let _lives = FakeNode::honest(&world, &monitor, "b", &["g", "i"]).await;
    let mut listing = repository.open_listing("").await.unwrap();
    let first = in_time(listing.message()).await.unwrap().unwrap();
    assert_eq!(
        first
            .entries
            .iter()
            .map(|entry| entry.name.as_str())
            .collect::<Vec<_>>(),
        ["f", "g", "h"]
    );
    dies.kill().await;
    let last = in_time(listing.message()).await.unwrap().unwrap();
    assert_eq!(
        last.entries
            .iter()
            .map(|entry| entry.name.as_str())
            .collect::<Vec<_>>(),
        ["i"]
    );
    let end = last.end.unwrap();
    assert_eq!(
        (end.count, end.gaps.len(), end.gaps[0].node.as_str()),
        (4, 1, "a")
    );
    assert!(end.gaps[0].reason.contains("it listed up to h"), "{end:?}");
    monitor.stop().await;
}

/// Fails if each entry becomes a message of its own, or entries with long lists of damage make a message larger than a
/// client takes.
#[tokio::test]
async fn messages_are_neither_too_many_nor_too_large() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let mut nodes = Vec::new();
    for (i, id) in ["a", "b", "c"].into_iter().enumerate() {
        let all: Vec<String> = (0..50_000)
            .map(|n| format!("12-34-20260101-{:08}.warc.gz", n * 3 + i))
            .collect();
        let steps = vec![Step::Names(all), Step::End(50_000, vec![])];
        nodes.push(FakeNode::scripted(&world, &monitor, id, steps).await);
    }
    let start = Instant::now();
    let listed = repository.listing("").await;
    println!("{:.0} names/s", 150_000.0 / start.elapsed().as_secs_f64());
    assert_eq!(
        (listed.entries.len(), listed.count, listed.gaps.len()),
        (150_000, 150_000, 0)
    );
    assert!(listed.entries.is_sorted_by(|a, b| a.name < b.name));
    assert!(
        listed.messages.len() < 1500,
        "{} messages",
        listed.messages.len()
    );

    // A file with damage all over is described at length: 200 kB each, 4 MB in all.
    let groups: Vec<GroupRange> = (0..20_000)
        .map(|i| GroupRange {
            start: i * 1000,
            end: i * 1000 + 1,
        })
        .collect();
    let damaged = |i: u32| FileEntry {
        condition: CopyCondition::Damaged.into(),
        corrupt: groups.clone(),
        ..entry("d", &format!("damaged-{i:02}"))
    };
    let steps = (0..20)
        .map(|i| Step::Entries(vec![damaged(i)]))
        .chain([Step::End(20, vec![])])
        .collect();
    let _d = FakeNode::scripted(&world, &monitor, "d", steps).await;
    let listed = repository.listing("12-35").await;
    assert_eq!(listed.entries.len(), 20);
    assert!(
        listed.messages.iter().all(|size| *size < (1 << 20) + 100),
        "{:?}",
        listed.messages
    );
    monitor.stop().await;
}

/// Fails if the monitor buffers what a slow reader does not read, cuts that reader off, or keeps asking the nodes once
/// nobody reads.
#[tokio::test]
async fn a_reader_that_pauses_holds_up_the_nodes() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let node = FakeNode::scripted(&world, &monitor, "a", vec![Step::Forever]).await;
    let mut listing = repository.open_listing("").await.unwrap();
    in_time(listing.message()).await.unwrap().unwrap();
    // Two windows of 2 MiB lie between the node and the reader: about 40 messages of 110 kB.
    let blocked = async {
        loop {
            let before = node.seen.messages.load(Ordering::SeqCst);
            sleep(Duration::from_millis(700)).await;
            if node.seen.messages.load(Ordering::SeqCst) == before {
                return before;
            }
        }
    };
    let sent = in_time(blocked).await;
    assert!((2..300).contains(&sent), "{sent} messages lie somewhere");
    assert!(
        in_time(listing.message()).await.unwrap().is_some(),
        "a slow reader is not cut off, and the node not blamed"
    );
    assert_eq!(node.seen.listings.load(Ordering::SeqCst), 1);
    drop(listing);
    eventually("the node hears of it", PATIENCE, async || {
        match node.seen.listings.load(Ordering::SeqCst) {
            0 => Ok(()),
            open => Err(open),
        }
    })
    .await;
    monitor.stop().await;
}

/// Fails if listings that nobody reads pile up, keep the monitor from answering other questions, or count against the
/// limit after their end.
#[tokio::test]
async fn listings_at_once_are_limited() {
    let world = MonitorEnvironment::new();
    let mut settings = world.settings("monitor/one");
    settings.monitor.idle = archive_daemon::Period::from_secs(3600);
    let monitor = MonitorEnvironment::try_start(settings, archive_daemon::Clock::system_clock())
        .await
        .unwrap();
    let mut repository = world.repository(&monitor).await;
    let _stalls = FakeNode::scripted(&world, &monitor, "a", vec![names(&["f"]), Step::Stall]).await;
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(repository.open_listing("").await.unwrap());
    }
    let error = repository.open_listing("").await.unwrap_err();
    assert_eq!(CallErrorKind::from_status(&error), CallErrorKind::Busy);
    assert!(
        repository.locate("f").await.unwrap().gaps.is_empty(),
        "questions are still answered"
    );
    open.pop();
    eventually("a place is free", PATIENCE, async || {
        repository.open_listing("").await.map(drop)
    })
    .await;
    monitor.stop().await;
}

/// Fails if a listing of findings makes the nodes send all their files, or a listing of all files asks for findings
/// only.
#[tokio::test]
async fn listing_of_findings_asks_only_for_findings() {
    let world = MonitorEnvironment::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let a = FakeNode::honest(&world, &monitor, "a", &["b"]).await;
    repository.listing("").await;
    assert_eq!(a.seen.of_findings.load(Ordering::SeqCst), 0);
    let mut messages = repository.open_findings().await.unwrap();
    while in_time(messages.message()).await.unwrap().is_some() {}
    assert_eq!(a.seen.of_findings.load(Ordering::SeqCst), 1);
}
