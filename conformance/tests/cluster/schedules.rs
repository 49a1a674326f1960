//! Random schedules: the lives of many files at once, while nodes are drained, parts start again and time passes.
//!
//! A seed decides the acts on each file and their order, and the events around them; the machine decides how they
//! meet. `HOLDFAST_SCHEDULES=SEED` runs the archive of one seed, and `SEED..SEED` those of many; a failure names its
//! seed.

mod life;

use std::env;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto_archive::wire::check_request::Kind;
use proto_archive::wire::{Mode, NodeRequest, SetModeRequest};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tools_testing::Random;

use self::life::{Doors, Life};
use super::people::{people, status, until_live};
use super::preservation::{anomalies, check, of};
use super::world::{Cluster, LONG, MONITORS, NODES, REPOSITORY, eventually, on_a_patient_cluster};

/// The lives in the archive of one seed.
const LIVES: u64 = 200;

/// The events around these.
const EVENTS: u64 = 10;

/// The seeds of an ordinary run.
const SEEDS: std::ops::Range<u64> = 1..3;

/// Returns the seeds to run.
#[expect(
    clippy::disallowed_methods,
    reason = "a test is no part of the archive"
)]
fn seeds() -> std::ops::Range<u64> {
    let Ok(wanted) = env::var("HOLDFAST_SCHEDULES") else {
        return SEEDS;
    };
    let number = |text: &str| text.parse::<u64>().unwrap();
    match wanted.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => number(&wanted)..number(&wanted) + 1,
    }
}

/// Fails if, however the acts on a file meet drains, restarts and each other, an acknowledged byte is lost, a replica
/// keeps two copies of a file or none, a removed one is there again, or damage leaves that nobody was told of.
#[test]
fn random_schedules_lose_and_forget_nothing() {
    let begin = Instant::now();
    let seeds = seeds();
    let lives = LIVES * (seeds.end - seeds.start);
    for seed in seeds {
        println!("seed {seed}");
        on_a_patient_cluster(async |cluster: &mut Cluster| live_and_judge(cluster, seed).await);
    }
    let seconds = begin.elapsed().as_secs().max(1);
    println!("{} schedules a minute", 60 * lives / seconds);
}

async fn live_and_judge(cluster: &mut Cluster, seed: u64) {
    let mut random = Random::new(seed);
    // The brake is another test's.
    "[attic]\nremovals_per_hour = 100000\n".clone_into(&mut cluster.node_settings);
    cluster.add_node("one", "-2");
    // A move takes its time, in which other things happen.
    "[drain]\nbytes_per_second = '2 MB'\n".clone_into(&mut cluster.repository_settings);
    for part in [NODES[0], NODES[1], REPOSITORY] {
        cluster.stop(part).await;
        cluster.start(part).await;
    }
    cluster.start("bitarchive-one-2").await;
    until_live(cluster, "one", 2).await;
    let doors = Arc::new(Doors::open(cluster));
    let mut living = JoinSet::new();
    for number in 0..LIVES {
        let doors = Arc::clone(&doors);
        living.spawn(async move { Life::new(seed, number).live(&doors).await });
    }
    let drained = disturb(cluster, &mut random).await;
    let lives = living.join_all().await;
    eventually("no request is under way", LONG, async || {
        doors.close_requests().await
    })
    .await;
    let mut settling = JoinSet::new();
    for life in lives {
        let doors = Arc::clone(&doors);
        settling.spawn(async move { life.settle(&doors).await });
    }
    let lives = settling.join_all().await;
    if let Some(node) = drained {
        eventually("the drain ends", LONG, async || {
            cluster.advance(Duration::from_secs(5));
            let mut drains = status(cluster).await.drains.into_iter();
            let own = drains.find(|drain| drain.node == node);
            match own {
                Some(drain) if !drain.drained.is_empty() => Ok(()),
                other => Err(other),
            }
        })
        .await;
        set_mode(cluster, node, Mode::ReadWrite).await;
    }
    eventually("a check finds nothing", LONG, async || {
        let checked = check(cluster, of(Kind::Checksums)).await;
        let found = checked.map_err(|status| vec![status.to_string()])?.found();
        // What a drain leaves that was cut is for an officer.
        let mut said = found.clone();
        for life in lives.iter().filter(|life| life.is_among(&found)) {
            let (repaired, _) = life.repair(&doors).await;
            said.push(format!("{}: {}; {repaired}", life.name, life.past()));
        }
        cluster.advance(Duration::from_secs(5));
        if found.is_empty() { Ok(()) } else { Err(said) }
    })
    .await;
    let ever = anomalies(cluster, true).await;
    let mut wrong = String::new();
    for life in &lives {
        for fault in life.faults(&doors, &ever).await {
            writeln!(wrong, "{}: {fault}; {}", life.name, life.past()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "seed {seed}:\n{wrong}");
}

/// Drains nodes and lets them be, starts parts again, and moves the time. Returns the node that is drained at last.
async fn disturb(cluster: &mut Cluster, random: &mut Random) -> Option<&'static str> {
    let nodes = ["bitarchive-one-2", NODES[0], NODES[1]];
    let mut drained = None;
    for _ in 0..EVENTS {
        sleep(Duration::from_millis(random.below(200))).await;
        match random.below(8) {
            0..4 => {
                if let Some(node) = drained {
                    set_mode(cluster, node, Mode::ReadWrite).await;
                }
                let node = ["one-1", "one-2-1"][random.index(2)];
                set_mode(cluster, node, Mode::Draining).await;
                drained = Some(node);
            }
            4 => restart(cluster, REPOSITORY).await,
            5 => restart(cluster, nodes[random.index(nodes.len())]).await,
            6 => restart(cluster, MONITORS[0]).await,
            _ => cluster.advance(Duration::from_secs(random.below(30))),
        }
    }
    drained
}

/// Sets the mode of a node, once the repository knows of it again.
async fn set_mode(cluster: &Cluster, node: &str, mode: Mode) {
    eventually("the node takes the order", LONG, async || {
        let order = SetModeRequest { mode: mode.into() };
        let request = NodeRequest {
            node: node.to_owned(),
            order: Some(order),
            ..NodeRequest::default()
        };
        people(cluster, "operator/otto").node(request).await
    })
    .await;
}

async fn restart(cluster: &mut Cluster, part: &str) {
    cluster.stop(part).await;
    cluster.start(part).await;
    until_live(cluster, "one", 2).await;
    until_live(cluster, "two", 1).await;
}
