//! What a caller brings, keeps back, or takes away.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proto_archive::wire::batch_run_response::Want;
use testing::{PATIENCE, eventually};
use tokio::time::sleep;

use super::*;

#[tokio::test]
async fn the_component_is_asked_for_once_and_goes_to_who_wants_it() {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| i.to_le_bytes()[1]).collect();
    let world = World::new();
    let monitor = world.impatient_monitor().await;
    let mut repository = world.repository(&monitor).await;
    let wants = |node: &str, name: &str| {
        acts([
            vec![Act::Want(bytes.len())],
            whole(node, name),
            vec![end(1, vec![])],
        ])
    };
    let a = BatchNode::start(&world, &monitor, "a", wants("a", "k1")).await;
    let b = BatchNode::start(&world, &monitor, "b", wants("b", "k2")).await;
    let has = acts([whole("c", "k3"), vec![end(1, vec![])]]);
    let c = BatchNode::start(&world, &monitor, "c", has).await;
    let mut run = Run::begin(&mut repository, open(component(&bytes))).await;
    assert!(matches!(run.next().await.unwrap(), Step::Want(_)));
    for piece in bytes.chunks(1 << 20) {
        let piece = piece.to_vec().into();
        Run::say(&run.says, batch_run_request::Step::Component(piece)).await;
    }
    let mut ran = Ran::default();
    run.rest(&mut ran).await.unwrap();
    assert_eq!(ran.names(), ["k1@a", "k2@b", "k3@c"]);
    assert!(*a.seen.component.lock().unwrap() == bytes);
    assert!(*b.seen.component.lock().unwrap() == bytes);
    assert!(c.seen.component.lock().unwrap().is_empty());

    // And who sends more, other things, or nothing, is told so.
    let piece = |length: usize| batch_run_request::Step::Component(vec![0; length].into());
    for (steps, kind, says) in [
        (
            vec![piece(1 << 20), piece((1 << 20) + 1)],
            Kind::Invalid,
            "1048577",
        ),
        (
            vec![piece(1 << 20), piece(1 << 20), piece(1 << 20)],
            Kind::Invalid,
            "larger",
        ),
        (vec![piece(0)], Kind::Invalid, "0 bytes"),
        (
            vec![batch_run_request::Step::Open(open(spec()))],
            Kind::Invalid,
            "step",
        ),
    ] {
        let mut run = Run::begin(&mut repository, open(component(&bytes))).await;
        assert!(matches!(run.next().await.unwrap(), Step::Want(_)));
        for step in steps {
            Run::say(&run.says, step).await;
        }
        let status = run.next().await.unwrap_err();
        assert_eq!(Kind::of(&status), kind, "{status}");
        assert!(status.message().contains(says), "{status}");
    }
    // The node lives, and the caller does not send the rest.
    let asks = vec![Act::Send(Step::Want(Want {})), Act::Compute];
    a.kill().await;
    b.kill().await;
    let _a = BatchNode::start(&world, &monitor, "a", asks.clone()).await;
    let _b = BatchNode::start(&world, &monitor, "b", asks).await;
    let mut run = Run::begin(&mut repository, open(component(&bytes))).await;
    let mut asked = 0;
    let status = loop {
        match run.next().await {
            Ok(Step::Want(_)) => {
                asked += 1;
                Run::say(&run.says, piece(5)).await;
            }
            Ok(Step::Progress(_)) => {}
            Ok(other @ (Step::Output(_) | Step::Done(_) | Step::End(_) | Step::Begin(_))) => {
                panic!("{other:?}")
            }
            Err(status) => break status,
        }
    };
    assert_eq!(asked, 1);
    assert_eq!(Kind::of(&status), Kind::TimedOut, "{status}");
    assert!(status.message().contains("stalled"), "{status}");
    monitor.stop().await;
}

#[tokio::test]
async fn when_the_caller_goes_away_the_nodes_hear_it_at_once() {
    let world = World::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let forever = vec![begin("k"), Act::Forever];
    let a = BatchNode::start(&world, &monitor, "a", forever).await;
    let b = BatchNode::start(&world, &monitor, "b", vec![begin("l"), Act::Compute]).await;
    let idle = async || {
        let asked = Instant::now();
        eventually("no node works", PATIENCE, async || {
            let jobs = [&a, &b].map(|node| node.seen.jobs.load(Ordering::SeqCst));
            if jobs == [0, 0] { Ok(()) } else { Err(jobs) }
        })
        .await;
        asked.elapsed()
    };
    // It says no more.
    let mut run = Run::begin(&mut repository, open(spec())).await;
    run.next().await.unwrap();
    drop(run.says);
    let ended = async { while let Ok(Some(_)) = run.answers.message().await {} };
    let (took, ()) = tokio::join!(idle(), in_time(ended));
    assert!(took < Duration::from_secs(10), "{took:?}");
    // It reads no more, and then it is gone.
    let mut run = Run::begin(&mut repository, open(spec())).await;
    run.next().await.unwrap();
    let mut before = usize::MAX;
    let mut taken = async || {
        loop {
            let now = a.seen.messages.load(Ordering::SeqCst);
            if now == before {
                return now;
            }
            before = now;
            sleep(Duration::from_millis(300)).await;
        }
    };
    let taken = in_time(taken()).await;
    assert!(taken < 1000, "{taken} messages of 64 KiB, and nobody reads");
    drop(run);
    let took = idle().await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    monitor.stop().await;
}

#[tokio::test]
async fn what_cannot_be_run_is_refused() {
    let world = World::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let other = BatchSpec {
        replica: "two".to_owned(),
        ..spec()
    };
    let no_memory = BatchSpec {
        memory: 0,
        ..spec()
    };
    let mut no_id = open(spec());
    no_id.id.clear();
    for (bad, field) in [
        (open(other), "`replica`"),
        (open(no_memory), "`memory`"),
        (no_id, "`id`"),
    ] {
        let (_, ended) = ran(&mut repository, bad).await;
        let status = ended.unwrap_err();
        assert_eq!(Kind::of(&status), Kind::Invalid);
        assert!(status.message().contains(field), "{status}");
    }
    let mut short = open(spec());
    short.left_ms = 300;
    let _node = BatchNode::start(&world, &monitor, "a", vec![begin("k"), Act::Compute]).await;
    let (_, ended) = ran(&mut repository, short).await;
    assert_eq!(Kind::of(&ended.unwrap_err()), Kind::TimedOut);

    let mut runs = Vec::new();
    for _ in 0..4 {
        let mut run = Run::begin(&mut repository, open(spec())).await;
        run.next().await.unwrap();
        runs.push(run);
    }
    let (_, ended) = ran(&mut repository, open(spec())).await;
    let status = ended.unwrap_err();
    assert_eq!(Kind::of(&status), Kind::Busy, "{status}");
    // The index has places of its own, and no more than those.
    for _ in 0..2 {
        let mut of_index = open(spec());
        of_index.of_index = true;
        let mut run = Run::begin(&mut repository, of_index).await;
        run.next().await.unwrap();
        runs.push(run);
    }
    let mut third = open(spec());
    third.of_index = true;
    let (_, ended) = ran(&mut repository, third).await;
    let status = ended.unwrap_err();
    assert_eq!(Kind::of(&status), Kind::Busy, "{status}");
    assert!(status.message().contains("of the index"), "{status}");
    // Nobody but the repository.
    let (_says, said) = mpsc::channel::<BatchRunRequest>(1);
    let requests = futures_util::stream::unfold(said, async |mut said| {
        let next = mpsc::Receiver::<BatchRunRequest>::recv(&mut said).await?;
        Some((next, said))
    });
    let mut node = world.caller("node/a", &monitor);
    let refused = in_time(node.client().run_batch(requests))
        .await
        .unwrap_err();
    assert_eq!(Kind::of(&refused), Kind::Refused);
    // A stop ends what runs.
    let ending = async {
        let status = runs[0].rest(&mut Ran::default()).await.unwrap_err();
        assert_eq!(Kind::of(&status), Kind::Unavailable, "{status}");
        drop(runs);
    };
    tokio::join!(monitor.stop(), ending);
}
