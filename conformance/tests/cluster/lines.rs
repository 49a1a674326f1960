//! Lines between the parts that carry nothing, or only one way, while files are stored, repaired and removed.
//!
//! Whatever happens: nothing is acknowledged that is not where it must be, a name has one content, and once the line
//! carries again the archive becomes whole by itself.

mod removal;
mod slow;

use std::time::Duration;

use archive_client::{ClientError, Ingest};
use archive_durable::directory;
use archive_model::{FileName, GROUP_SIZE};
use proto_archive::wire::check_request::Kind;

use super::preservation::{anomalies, check, everything, of, outcomes, repair};
use super::visits::{name, noise, store};
use super::wire::{Silence, Wire};
use super::world::{
    Cluster, LONG, MONITORS, NODES, REPOSITORY, eventually, flip, on_a_cluster,
    on_a_patient_cluster,
};
use super::{SIZE, completed};

const SOON: Duration = Duration::from_mins(1);

/// The lines of replica two.
struct Lines {
    /// The line from the repository to the monitor of the replica.
    monitor: Wire,
    /// The line from the node of the replica to its monitor.
    heartbeat: Wire,
    /// The line from the repository and the monitor to the node of the replica.
    node: Wire,
}

/// Lays the lines of replica two, and restarts the parts at their ends. `settings`: further settings of the repository.
async fn lay(cluster: &mut Cluster, settings: &str) -> Lines {
    let monitor = MONITORS[1];
    let node = NODES[1];
    let lines = Lines {
        monitor: Wire::to(&cluster.address(monitor)).await,
        heartbeat: Wire::to(&cluster.address(monitor)).await,
        node: Wire::to(&cluster.address(node)).await,
    };
    let mut detour = |from: &str, to: &str, wire: &Wire| {
        let way = (from.to_owned(), to.to_owned());
        cluster.detours.insert(way, wire.address());
    };
    detour(REPOSITORY, monitor, &lines.monitor);
    detour(node, monitor, &lines.heartbeat);
    cluster
        .endpoints
        .insert(node.to_owned(), lines.node.address());
    "stall = '8 s'".clone_into(&mut cluster.extra);
    settings.clone_into(&mut cluster.repository_settings);
    // The monitor too: it must not remember where the node was.
    for part in [REPOSITORY, node, monitor] {
        cluster.stop(part).await;
    }
    for part in [monitor, node, REPOSITORY] {
        cluster.start(part).await;
    }
    cluster.until_all_nodes_live().await;
    lines
}

/// Returns the number of replicas that have a file now.
async fn copies(cluster: &Cluster, name: &FileName) -> usize {
    let status = cluster.depositor().stat(name).await;
    status.map_or(0, |status| completed(&status))
}

/// Unasked, every file comes to be in every replica, after a pause that is skipped; all is whole.
async fn assert_retried_and_whole(cluster: &Cluster, files: &[(FileName, Vec<u8>)]) {
    for (name, _) in files {
        let stored = cluster.eventually_retried("everywhere, unasked", async || {
            let copies = copies(cluster, name).await;
            (copies == 3).then_some(()).ok_or(copies)
        });
        stored.await;
    }
    assert_whole(cluster, files).await;
}

/// Every file comes to be in every replica; a check of every byte is complete and finds nothing.
async fn assert_whole(cluster: &Cluster, files: &[(FileName, Vec<u8>)]) {
    for (name, _) in files {
        eventually("everywhere", LONG, async || {
            let copies = copies(cluster, name).await;
            (copies == 3).then_some(()).ok_or(copies)
        })
        .await;
    }
    let clean = check(cluster, of(Kind::Checksums)).await.unwrap();
    assert_eq!(clean.found(), [""; 0]);
    let count = files.len() as u64;
    for replica in ["one", "two"] {
        let report = clean.report(replica);
        assert_eq!((report.files, report.intact), (count, count), "{report:?}");
        assert_eq!(report.gaps, []);
        for (name, bytes) in files {
            let read = std::fs::read(cluster.copy(replica, name)).unwrap();
            assert!(read == *bytes, "{name} in {replica}");
        }
        let attic = cluster.path(replica).join("volume/attic");
        assert_eq!(
            directory::list_directory(&attic).unwrap().len(),
            0,
            "{replica}"
        );
    }
    let open = anomalies(cluster, false).await;
    assert_eq!(open, []);
}

/// A store that was not acknowledged names the replica behind the line, and no other.
fn assert_names_two(error: &ClientError) {
    let said = error.to_string();
    assert!(matches!(error, ClientError::NotEnoughReplicas(_)), "{said}");
    assert!(said.contains("two:") && !said.contains("one:"), "{said}");
}

/// Fails if a line that carries nothing, or only one way, leads to a false acknowledgement, to a name with two
/// contents, or to a copy that is never made.
#[test]
fn silent_line_falsifies_no_store() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let lines = lay(cluster, "").await;
        let named = [
            ("monitor", &lines.monitor),
            ("heartbeat", &lines.heartbeat),
            ("node", &lines.node),
        ];
        let mut files = Vec::new();
        for (line, wire) in named {
            for silence in [Silence::Both, Silence::Requests, Silence::Answers] {
                let what = format!("{line}-{silence:?}");
                let file = name(&what);
                let bytes = noise(SIZE, files.len() as u64);
                let other = noise(SIZE, 1000);
                wire.hold_only(silence);
                let meanwhile = async {
                    eventually("in the other replicas", LONG, async || {
                        let copies = copies(cluster, &file).await;
                        (copies >= 2).then_some(()).ok_or(copies)
                    })
                    .await;
                    // The name is bound, whatever is behind the line.
                    let refused = store(cluster, &file, &other).await.unwrap_err();
                    assert!(matches!(refused, ClientError::Exists(_)), "{refused}");
                    wire.release();
                };
                let (stored, ()) = tokio::join!(store(cluster, &file, &bytes), meanwhile);
                match stored {
                    Ok(stored) => {
                        assert_eq!(stored.receipt.replicas.len(), 3, "{what}");
                        let copy = cluster.copy("two", &file);
                        assert!(
                            copy.try_exists().unwrap(),
                            "{what}: what is acknowledged is there"
                        );
                    }
                    Err(error) => assert_names_two(&error),
                }
                files.push((file, bytes));
            }
        }
        assert_whole(cluster, &files).await;
    });
}

/// Fails if a store of which the node's last answer is lost is acknowledged all the same, or if the copy that the node
/// has is uploaded again.
#[test]
fn unanswered_store_is_neither_acknowledged_nor_repeated() {
    on_a_patient_cluster(async |cluster: &mut Cluster| {
        let lines = lay(cluster, "").await;
        let first = name("first");
        let file = name("lost");
        let bytes = noise(SIZE, 71);
        store(cluster, &first, &bytes).await.unwrap();
        lines.node.mute_after(i64::try_from(SIZE / 2).unwrap());
        let refused = store(cluster, &file, &bytes).await.unwrap_err();
        assert_names_two(&refused);
        let copy = cluster.copy("two", &file);
        let before = inode(&copy);
        assert_eq!(copies(cluster, &file).await, 2, "nobody has said so");
        lines.node.release();
        let stored = eventually("acknowledged", LONG, async || {
            store(cluster, &file, &bytes).await
        })
        .await;
        assert_eq!(stored.receipt.replicas.len(), 3);
        assert_eq!(inode(&copy), before, "it is the one that was there");
        let files = [(first, bytes.clone()), (file, bytes)];
        assert_retried_and_whole(cluster, &files).await;
    });
}

fn inode(path: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).unwrap().ino()
}

/// Fails if a repair of which the node's answer is lost is reported as done, or cannot be ordered again afterwards.
#[test]
fn cut_repair_is_neither_believed_nor_wrong() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let lines = lay(cluster, "[repair]\nautomatic = 'off'\n").await;
        let file = name("a");
        let bytes = noise(SIZE, 72);
        store(cluster, &file, &bytes).await.unwrap();
        let copy = cluster.copy("two", &file);
        flip(&copy, 5 * GROUP_SIZE + 7);
        let found = check(cluster, of(Kind::Checksums)).await.unwrap();
        assert_eq!(found.found(), ["two corrupt a"]);

        // The group goes there, and nothing comes back any more.
        lines.node.mute_after(12 * 1024);
        let lost = repair(cluster, everything()).await.unwrap();
        assert!(!outcomes(&lost).contains(&"repaired"), "{lost:?}");
        assert_eq!(anomalies(cluster, false).await.len(), 1, "still open");
        lines.node.release();
        eventually("repaired, and known to be", LONG, async || {
            repair(cluster, everything()).await.unwrap();
            let open = anomalies(cluster, false).await;
            open.is_empty().then_some(()).ok_or(open)
        })
        .await;
        assert!(std::fs::read(&copy).unwrap() == bytes);
        let clean = check(cluster, of(Kind::Checksums)).await.unwrap();
        assert_eq!((clean.found(), clean.report("two").intact), (vec![], 1));
    });
}
