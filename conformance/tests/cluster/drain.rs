//! Volumes and nodes that are drained: everything ends up elsewhere, and at no moment is there less than before.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use archive_bitarchive::Layout;
use archive_client::FileRange;
use archive_durable::directory;
use archive_model::{FileName, GROUP_SIZE};
use proto_archive::wire::ask_request::{Act, Remove, RetireNode};
use proto_archive::wire::check_request::Kind;
use proto_archive::wire::request_state::State as RequestStage;
use proto_archive::wire::status_response::Drain;
use proto_archive::wire::{
    AdoptFileRequest, AnomalyKind, AuditRequest, Mode, NodeRequest, SetModeRequest,
    SetVolumeRequest, VolumeRequest, anomaly_state, set_volume_request,
};

use super::people::{approve, ask, decide, node_of, people, stat, status, until_live};
use super::preservation::{anomalies, check, of};
use super::visits::{get, list, name, noise, root, store};
use super::world::{
    Cluster, LONG, NODES, REPOSITORY, eventually, flip, on_a_cluster, on_a_patient_cluster,
};

/// More than a node puts aside within an hour, unless its settings say more.
const FILES: u64 = 110;

/// The files that a drain moves at once.
const AT_ONCE: u64 = 4;

const SIZE: usize = 3 * 16384 + 11;

fn at(cluster: &Cluster, node: &str, name: &FileName) -> PathBuf {
    let volume = cluster.path(node).join("volume");
    Layout::new(&volume).target_paths(name).file
}

/// Returns whether the replica has a whole copy. The old place is looked at first: what is not there any more is in the
/// new one.
fn has_whole(cluster: &Cluster, places: [&str; 2], name: &FileName, bytes: &[u8]) -> bool {
    let is_whole = |node: &&str| {
        let read = std::fs::read(at(cluster, node, name));
        read.is_ok_and(|read| read == bytes)
    };
    places.iter().any(is_whole)
}

async fn set_node(cluster: &Cluster, node: &str, mode: Mode) {
    let order = SetModeRequest { mode: mode.into() };
    let request = NodeRequest {
        node: node.to_owned(),
        order: Some(order),
        ..NodeRequest::default()
    };
    let said = people(cluster, "operator/otto")
        .node(request)
        .await
        .unwrap();
    assert_eq!(said.into_inner().mode(), mode);
}

async fn set_volume(cluster: &Cluster, volume: &str, order: set_volume_request::Order) {
    let order = SetVolumeRequest {
        order: order.into(),
        volume: volume.to_owned(),
        path: String::new(),
    };
    let request = VolumeRequest {
        order: Some(order),
        ..VolumeRequest::default()
    };
    people(cluster, "operator/otto")
        .volume(request)
        .await
        .unwrap();
}

async fn drains(cluster: &Cluster) -> Vec<Drain> {
    status(cluster).await.drains
}

async fn until_drained(cluster: &Cluster, sample: impl Fn()) -> Drain {
    eventually("drained", LONG, async || {
        sample();
        match drains(cluster).await.pop() {
            Some(drain) if !drain.drained.is_empty() => Ok(drain),
            other => Err(other),
        }
    })
    .await
}

/// Returns the lines of the audit trail, each with its file.
async fn trail(cluster: &Cluster) -> Vec<(String, String)> {
    let mut pages = people(cluster, "officer/olga")
        .audit(AuditRequest::default())
        .await
        .unwrap()
        .into_inner();
    let mut lines = Vec::new();
    while let Some(page) = pages.message().await.unwrap() {
        lines.extend(page.lines.into_iter().map(|line| (line.what, line.file)));
    }
    lines
}

/// Fails if a drain puts a copy aside before another place has it whole, copies a damaged one, does not continue after
/// a restart of the repository, or if the trail lacks what is to be done or what was done.
#[test]
fn drained_node_moves_all_copies_to_the_other() {
    on_a_cluster(async |cluster: &mut Cluster| {
        // As an operator does who drains a whole node.
        cluster.node_settings = format!("[attic]\nremovals_per_hour = {}\n", 2 * FILES);
        for node in NODES {
            cluster.stop(node).await;
            cluster.start(node).await;
        }
        cluster.until_all_nodes_live().await;
        let mut files = Vec::new();
        for number in 0..FILES {
            let name = name(&format!("f-{number}"));
            let bytes = noise(SIZE, number);
            store(cluster, &name, &bytes).await.unwrap();
            files.push((name, bytes));
        }
        let (hurt, rest) = files.split_last().unwrap();
        flip(&cluster.copy("one", &hurt.0), GROUP_SIZE + 5);
        cluster.add_node("one", "-2");
        cluster.start("bitarchive-one-2").await;
        until_live(cluster, "one", 2).await;

        set_node(cluster, "one-1", Mode::Draining).await;
        let places = ["one", "one-2"];
        let all_are_whole = |cluster: &Cluster| {
            for (name, bytes) in rest {
                assert!(has_whole(cluster, places, name, bytes), "{name}");
            }
        };
        // In its middle the repository goes away.
        eventually("some have left", LONG, async || {
            all_are_whole(cluster);
            let drains = drains(cluster).await;
            let have_left = |drain: &Drain| drain.counted && drain.files < FILES;
            let is_so = drains.first().is_some_and(have_left);
            is_so.then_some(()).ok_or(drains)
        })
        .await;
        cluster.stop(REPOSITORY).await;
        all_are_whole(cluster);
        cluster.start(REPOSITORY).await;
        let drain = until_drained(cluster, || all_are_whole(cluster)).await;
        assert_eq!(
            (
                drain.replica.as_str(),
                drain.node.as_str(),
                drain.volume.as_str()
            ),
            ("one", "one-1", "")
        );
        assert_eq!((drain.files, drain.bytes, drain.held.as_str()), (0, 0, ""));

        for (name, bytes) in &files {
            let status = stat(cluster, name).await;
            assert_eq!(
                node_of(&status, "one").as_deref(),
                Some("one-2-1"),
                "{name}"
            );
            assert!(
                has_whole(cluster, ["one-2", "one-2"], name, bytes),
                "{name}"
            );
            assert!(!at(cluster, "one", name).try_exists().unwrap(), "{name}");
        }
        let attic =
            directory::list_directory(&Layout::new(&cluster.path("one").join("volume")).attic());
        assert_eq!(attic.unwrap().len() as u64, FILES, "each once");
        let (entries, end) = list(&cluster.reader(), Some("one")).await.unwrap();
        assert_eq!((entries.len() as u64, end.gaps), (FILES, vec![]));

        // What was damaged where it lay was filed, and was never copied.
        let ever = anomalies(cluster, true).await;
        let met = ever
            .iter()
            .find(|met| met.kind() == AnomalyKind::Corrupt)
            .unwrap();
        assert_eq!(
            (met.file.as_str(), met.replica.as_str(), met.node.as_str()),
            (hurt.0.as_str(), "one", "one-1"),
            "{ever:?}"
        );
        let clean = check(cluster, of(Kind::Checksums)).await.unwrap();
        assert_eq!(clean.found(), [""; 0]);
        assert_eq!(clean.report("one").intact, FILES);
        // Filed by the read after the copy had moved, it is closed by the check at the latest.
        eventually("what was met is closed", LONG, async || {
            let ever = anomalies(cluster, true).await;
            let are_closed = ever
                .iter()
                .all(|met| met.state() == anomaly_state::State::Closed);
            are_closed.then_some(()).ok_or(ever)
        })
        .await;

        let lines = trail(cluster).await;
        let count =
            |text: &str| lines.iter().filter(|(what, _)| what.contains(text)).count() as u64;
        assert_eq!(
            count("node one-1 of replica one is being drained: "),
            1,
            "also over a restart"
        );
        assert_eq!(
            count("node one-1 of replica one is drained, and may be retired"),
            1
        );
        let of_files = |text: &str| {
            let matching = lines.iter().filter(|(what, _)| what.starts_with(text));
            matching
                .map(|(_, file)| file.as_str())
                .collect::<BTreeSet<_>>()
        };
        let announced = of_files(
            "the copy in replica one on volume volume-one of node one-1 to be put into the attic there: ",
        );
        assert_eq!(announced.len() as u64, FILES);
        let moved = of_files(
            "moved in replica one from volume volume-one of node one-1 to volume volume-one-2 of node one-2-1; \
             the old copy is in the attic there as ",
        );
        // The repository went away over a few at once: it finds them moved, and does not know that it was their mover.
        assert!(moved.len() as u64 + AT_ONCE >= FILES, "{lines:#?}");
        for file in moved {
            let place = |text: &str| {
                let is_it = |(what, of): &(String, String)| of == file && what.starts_with(text);
                lines.iter().position(is_it)
            };
            let before = place("the copy in replica one on ");
            let after = place("moved in ");
            assert!(before.is_some() && before < after, "{file}: {lines:#?}");
        }

        let retire = Act::RetireNode(RetireNode {
            node: "one-1".to_owned(),
            ..RetireNode::default()
        });
        assert_eq!(decide(cluster, retire).await.state(), RequestStage::Done);
        eventually("what is retired is drained no more", LONG, async || {
            assert_eq!(status(cluster).await.below_required, 0);
            let drains = drains(cluster).await;
            drains.is_empty().then_some(()).ok_or(drains)
        })
        .await;
        let (read, end) = get(cluster, &FileRange::whole_file(hurt.0.clone())).await;
        end.unwrap();
        assert_eq!(root(&read), root(&hurt.1));
    });
}

/// Fails if a drain waits for ever for an old copy whose bytes have changed since its node last read them, after the
/// file was recorded elsewhere and the repository was started again.
#[test]
fn old_copy_that_rots_after_its_move_is_found_and_leaves() {
    on_a_patient_cluster(async |cluster: &mut Cluster| {
        cluster.node_settings = "[attic]\nremovals_per_hour = 2\n".to_owned();
        for node in NODES {
            cluster.stop(node).await;
            cluster.start(node).await;
        }
        cluster.until_all_nodes_live().await;
        let mut files = Vec::new();
        for number in 0..3 {
            let name = name(&format!("f-{number}"));
            let bytes = noise(SIZE, number);
            store(cluster, &name, &bytes).await.unwrap();
            files.push((name, bytes));
        }
        cluster.add_node("one", "-2");
        cluster.start("bitarchive-one-2").await;
        until_live(cluster, "one", 2).await;
        set_node(cluster, "one-1", Mode::Draining).await;
        let left = |cluster: &Cluster| -> Vec<FileName> {
            let names = files.iter().map(|(name, _)| name);
            let is_left = |name: &&FileName| at(cluster, "one", name).try_exists().unwrap();
            names.filter(is_left).cloned().collect()
        };
        // Several files leave at once: one may be held while another is still on its way.
        let rotten = eventually("the brake holds one", LONG, async || {
            let drains = drains(cluster).await;
            let is_held = |drain: &Drain| drain.held.contains("into the attic");
            match <[FileName; 1]>::try_from(left(cluster)) {
                Ok([only]) if drains.first().is_some_and(is_held) => Ok(only),
                _ => Err(drains),
            }
        })
        .await;
        let rotten = &rotten;
        flip(&at(cluster, "one", rotten), GROUP_SIZE + 5);
        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        // The brake counts an hour. Slowly: a call that takes too long by this clock is tried again only later.
        let until_left = || {
            cluster.advance(Duration::from_secs(20));
            left(cluster).is_empty()
        };
        eventually("the rotten one has left", LONG, async || {
            let drains = drains(cluster).await;
            until_left().then_some(()).ok_or(drains)
        })
        .await;
        until_drained(cluster, || cluster.advance(Duration::from_secs(20))).await;
        for (name, bytes) in &files {
            assert!(!at(cluster, "one", name).try_exists().unwrap(), "{name}");
            assert!(
                has_whole(cluster, ["one-2", "one-2"], name, bytes),
                "{name}"
            );
        }
        let ever = anomalies(cluster, true).await;
        let met = ever.iter().find(|met| met.kind() == AnomalyKind::Corrupt);
        let met = met.map(|met| (met.file.as_str(), met.node.as_str()));
        assert_eq!(met, Some((rotten.as_str(), "one-1")), "{ever:?}");
    });
}

/// Fails if a second copy stays that a drain had made when two persons removed the file, or if one person can have it
/// counted again.
#[test]
fn removal_takes_both_copies_of_a_cut_drain() {
    on_a_patient_cluster(async |cluster: &mut Cluster| {
        cluster.node_settings = "[attic]\nremovals_per_hour = 1\n".to_owned();
        for node in NODES {
            cluster.stop(node).await;
            cluster.start(node).await;
        }
        cluster.until_all_nodes_live().await;
        let mut files = Vec::new();
        for number in 0..3 {
            let name = name(&format!("f-{number}"));
            let bytes = noise(SIZE, number);
            store(cluster, &name, &bytes).await.unwrap();
            files.push((name, bytes));
        }
        cluster.add_node("one", "-2");
        cluster.start("bitarchive-one-2").await;
        until_live(cluster, "one", 2).await;
        set_node(cluster, "one-1", Mode::Draining).await;
        let is_twice = |cluster: &Cluster, name: &FileName| {
            at(cluster, "one", name).try_exists().unwrap()
                && at(cluster, "one-2", name).try_exists().unwrap()
        };
        let (name, bytes) = eventually("the brake holds two", LONG, async || {
            let drains = drains(cluster).await;
            let is_held = |drain: &Drain| drain.held.contains("into the attic");
            let are_twice = files.iter().filter(|(name, _)| is_twice(cluster, name));
            match are_twice.collect::<Vec<_>>()[..] {
                [first, _] if drains.first().is_some_and(is_held) => Ok(first),
                _ => Err(drains),
            }
        })
        .await;
        // The brake has no room for the drain and the removal both.
        set_node(cluster, "one-1", Mode::ReadWrite).await;
        eventually("the drain is over", LONG, async || {
            let drains = drains(cluster).await;
            drains.is_empty().then_some(()).ok_or(drains)
        })
        .await;
        assert!(is_twice(cluster, name));
        cluster.advance(Duration::from_hours(2));
        let act = Act::Remove(Remove {
            name: name.to_string(),
            replica: "one".to_owned(),
            checksum: root(bytes).as_bytes().to_vec().into(),
            last_copies: false,
        });
        let asked = ask(cluster, "custodian/anna", act, "a court order").await;
        let id = asked.unwrap().id;
        let ended = approve(cluster, "custodian/bert", &id).await.unwrap();
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        for node in ["one", "one-2"] {
            assert!(!at(cluster, node, name).try_exists().unwrap(), "{node}");
        }
        let adopt = AdoptFileRequest {
            name: name.to_string(),
            replica: "one".to_owned(),
        };
        let mut olga = people(cluster, "officer/olga");
        let alone = olga.adopt(adopt).await.unwrap_err();
        assert!(alone.message().contains("holdfast reinstate"), "{alone}");
        let checked = check(cluster, of(Kind::Files)).await.unwrap();
        let found = checked.found();
        assert!(
            !found.iter().any(|said| said.ends_with(name.as_str())),
            "{found:?}"
        );
    });
}

/// Fails if a drain puts copies aside for which no other place has room, or waits without saying that room is what it
/// lacks.
#[test]
fn drain_without_room_keeps_copies_and_says_so() {
    on_a_cluster(async |cluster: &mut Cluster| {
        use set_volume_request::Order;
        let mut files = Vec::new();
        for number in 0..5 {
            let name = name(&format!("f-{number}"));
            let bytes = noise(SIZE, number);
            store(cluster, &name, &bytes).await.unwrap();
            files.push(name);
        }
        set_volume(cluster, "volume-two", Order::Drain).await;
        let held = eventually("it says why", LONG, async || {
            let drains = drains(cluster).await;
            let drain = drains.first().filter(|drain| !drain.held.is_empty())?;
            assert_eq!((drain.files, drain.volume.as_str()), (5, "volume-two"));
            drain.held.contains("5 file(s)").then(|| drain.held.clone())
        })
        .await;
        assert!(held.contains("node two-1: no volume has room"), "{held}");
        for name in &files {
            assert!(cluster.copy("two", name).try_exists().unwrap(), "{name}");
        }
        set_volume(cluster, "volume-two", Order::ReadWrite).await;
        eventually("it is over", LONG, async || {
            let drains = drains(cluster).await;
            drains.is_empty().then_some(()).ok_or(drains)
        })
        .await;
        store(cluster, &name("after"), b"more").await.unwrap();
        files.push(name("after"));

        cluster.add_node("two", "-2");
        cluster.start("bitarchive-two-2").await;
        until_live(cluster, "two", 2).await;
        set_volume(cluster, "volume-two", Order::Drain).await;
        let drain = until_drained(cluster, || {}).await;
        assert_eq!(
            (drain.volume.as_str(), drain.held.as_str()),
            ("volume-two", "")
        );
        for name in &files {
            let status = stat(cluster, name).await;
            assert_eq!(
                node_of(&status, "two").as_deref(),
                Some("two-2-1"),
                "{name}"
            );
        }
        let clean = check(cluster, of(Kind::Files)).await.unwrap();
        assert_eq!(clean.found(), [""; 0]);
    });
}
