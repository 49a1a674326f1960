//! Faults on the way to a node: flipped bytes, liars, silence.

use archive_client::{FileRange, Ingest};
use tokio::time::Instant;

use super::super::visits::{get, name, noise, store};
use super::super::wire::{MARK, Wire};
use super::super::world::{
    Cluster, LONG, NODES, REPOSITORY, eventually, flip, on_a_cluster, on_a_patient_cluster,
};
use super::super::{SIZE, completed, preservation};
use super::SOON;

/// Puts a wire before a node, and waits until the repository uses it.
async fn put_before(cluster: &mut Cluster, node: &str, wire: &Wire) {
    cluster.stop(node).await;
    cluster.endpoints.insert(node.to_owned(), wire.address());
    cluster.start(node).await;
    cluster.until_all_nodes_live().await;
    let mut number = 0;
    eventually("the wire is used", LONG, async || {
        number += 1;
        let file = name(&format!("{node}-{number}"));
        store(cluster, &file, b"x")
            .await
            .map_err(|error| error.to_string())?;
        (wire.carried() > 0)
            .then_some(())
            .ok_or("nothing was carried".to_owned())
    })
    .await;
}

/// Returns bytes with marks in them.
fn marked(size: usize, seed: u64) -> Vec<u8> {
    let mut bytes = noise(size, seed);
    for part in bytes.chunks_exact_mut(500) {
        part[..MARK.len()].copy_from_slice(MARK);
    }
    bytes
}

/// Fails if bytes that changed on the way to a node get a final name there, whether a line flipped a bit or the holder
/// of a valid key lied.
#[test]
fn byte_flipped_in_transit_never_bears_a_name() {
    on_a_cluster(async |cluster: &mut Cluster| {
        // Below TLS: the connection breaks.
        let wire = Wire::to(&cluster.address(NODES[1])).await;
        put_before(cluster, NODES[1], &wire).await;
        let bytes = noise(4 * SIZE, 60);
        wire.flip_after(1 << 20);
        let begin = store(cluster, &name("below"), &bytes).await;
        let said = begin.unwrap_err().to_string();
        assert!(said.contains("two") && !said.contains("one:"), "{said}");
        assert!(!cluster.copy("two", &name("below")).try_exists().unwrap());
        let stored = store(cluster, &name("below"), &bytes).await.unwrap();
        assert_eq!(stored.receipt.replicas.len(), 3);

        // Within: the node that holds the key of another lies, and the root tells.
        let node = cluster.pem("node/two-1");
        let repository = cluster.pem("repository/kb");
        let liar = Wire::lying(&cluster.address(NODES[1]), &node, &repository).await;
        put_before(cluster, NODES[1], &liar).await;
        let bytes = marked(4 * SIZE, 61);
        liar.lie(1, 0);
        let said = store(cluster, &name("within"), &bytes).await.unwrap_err();
        let said = said.to_string();
        assert!(said.contains("two") && !said.contains("one:"), "{said}");
        assert_eq!(liar.untold(), [0, 0], "the lie was told");
        assert!(!cluster.copy("two", &name("within")).try_exists().unwrap());
        let stored = store(cluster, &name("within"), &bytes).await.unwrap();
        assert_eq!(stored.receipt.replicas.len(), 3);
        for replica in ["one", "two"] {
            let path = cluster.copy(replica, &name("within"));
            assert!(std::fs::read(path).unwrap() == bytes, "{replica}");
        }
    });
}

/// Fails if a repair or a reader believes bytes that a node made up, or if one node that lies keeps the bytes of
/// another from being used.
#[test]
fn lying_donor_is_caught_and_another_is_asked() {
    on_a_cluster(async |cluster: &mut Cluster| {
        cluster.add_replica("four");
        for part in ["monitor-four", "bitarchive-four"] {
            cluster.start(part).await;
        }
        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        let node = cluster.pem("node/one-1");
        let repository = cluster.pem("repository/kb");
        let liar = Wire::lying(&cluster.address(NODES[0]), &node, &repository).await;
        put_before(cluster, NODES[0], &liar).await;
        let file = name("a");
        let bytes = marked(4 * SIZE, 62);
        store(cluster, &file, &bytes).await.unwrap();
        flip(&cluster.copy("two", &file), 100_000);
        liar.lie(0, i64::MAX / 2);
        let said = preservation::mend(cluster, &file).await;
        assert_eq!(said, ["repaired"], "one donor lies");
        let copy = cluster.copy("two", &file);
        assert!(std::fs::read(copy).unwrap() == bytes);
        // A reader is not lied to either.
        let (read, end) = get(cluster, &FileRange::whole_file(file)).await;
        end.unwrap();
        assert!(read == bytes);
        assert!(liar.untold()[1] < i64::MAX / 2, "it has lied");
    });
}

/// Fails if a node that hangs in the middle of an upload holds up the store beyond the time for stalls, or never gets
/// its copy.
#[test]
fn hanging_node_is_dropped_and_filled_later() {
    on_a_cluster(async |cluster: &mut Cluster| {
        cluster.extra = "stall = '8 s'".to_owned();
        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        let wire = Wire::to(&cluster.address(NODES[1])).await;
        put_before(cluster, NODES[1], &wire).await;
        let file = name("a");
        let bytes = noise(64 * SIZE, 63);
        let begin = Instant::now();
        let held = wire.carried();
        let holding = eventually("it is under way", LONG, async || {
            (wire.carried() > held + (8 << 20)).then(|| wire.hold())
        });
        let (stored, ()) = tokio::join!(store(cluster, &file, &bytes), holding);
        let said = stored.unwrap_err().to_string();
        assert!(begin.elapsed() < SOON, "{:?}: {said}", begin.elapsed());
        assert!(said.contains("two") && !said.contains("one:"), "{said}");
        let (read, end) = get(cluster, &FileRange::whole_file(file.clone())).await;
        end.unwrap();
        assert!(read == bytes, "the others are unaffected");
        wire.release();
        eventually("copied", LONG, async || store(cluster, &file, &bytes).await).await;
        let status = cluster.depositor().stat(&file).await.unwrap();
        assert_eq!(completed(&status), 3);
        assert!(std::fs::read(cluster.copy("two", &file)).unwrap() == bytes);
    });
}

/// Fails if a store waits for a replica that hangs and is not required, names that replica in the receipt, or never
/// copies the file into it.
#[test]
fn a_replica_that_is_not_required_delays_nothing() {
    on_a_patient_cluster(async |cluster: &mut Cluster| {
        cluster.extra = "stall = '8 s'".to_owned();
        cluster.optional.push("two".to_owned());
        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        let wire = Wire::to(&cluster.address(NODES[1])).await;
        put_before(cluster, NODES[1], &wire).await;
        wire.hold();
        let file = name("a");
        let bytes = noise(8 * SIZE, 64);
        let begin = Instant::now();
        let stored = store(cluster, &file, &bytes).await.unwrap();
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        let holders: Vec<&str> = stored
            .receipt
            .replicas
            .iter()
            .map(|custody| custody.replica.as_str())
            .collect();
        assert_eq!(holders, ["one", "three"]);
        wire.release();
        let copied = cluster.eventually_retried("copied", async || {
            let status = cluster.depositor().stat(&file).await.unwrap();
            (completed(&status) == 3).then_some(()).ok_or(status)
        });
        copied.await;
    });
}
