//! The pages of metrics as operators see them: what was stored, what was turned away, how the disks are.

use archive_client::{Access, ErrorClass, FileRange, Ingest, StoreEvent};
use archive_durable::directory;
use tokio::net::TcpStream;

use super::visits::{deposit, get, name, noise, store};
use super::world::{CHECKSUMS, Cluster, LONG, NODES, REPOSITORY, eventually, on_a_cluster};

/// Returns the value of a series, if it is on the page.
fn value(cluster: &Cluster, part: &str, series: &str) -> Option<i64> {
    let page = cluster.page(part);
    let line = page.lines().find_map(|line| line.strip_prefix(series));
    line.map(|value| value.trim().parse().unwrap())
}

async fn until(cluster: &Cluster, part: &str, series: &str, is_so: impl Fn(i64) -> bool) {
    eventually(series, LONG, async || match value(cluster, part, series) {
        Some(value) if is_so(value) => Ok(()),
        other => Err(other),
    })
    .await;
}

/// Fails if a store or a refusal is not counted where operators look for it, or if a volume that is gone reports that
/// it has no free space.
#[test]
fn stores_and_refusals_are_counted() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let age = "bitarchive_oldest_verification_age_seconds{node=\"one-1\"}";
        let free = "bitarchive_volume_free_bytes{node=\"one-1\",volume=\"volume-one\"}";
        until(cluster, NODES[0], free, |bytes| bytes > 0).await;
        assert_eq!(
            value(cluster, NODES[0], age),
            None,
            "nothing is there to be verified"
        );
        let file = name("a");
        let bytes = noise(100_000, 70);
        store(cluster, &file, &bytes).await.unwrap();
        for (part, series, expected) in [
            (REPOSITORY, "repository_stores_begun_total{}", 1),
            (REPOSITORY, "repository_stores_acknowledged_total{}", 1),
            (REPOSITORY, "repository_received_bytes_total{}", 100_000),
            (
                CHECKSUMS,
                "checksum_replica_recorded_files_total{node=\"three-1\"}",
                1,
            ),
            (
                CHECKSUMS,
                "checksum_replica_hashed_bytes_total{node=\"three-1\"}",
                100_000,
            ),
            (
                NODES[0],
                "bitarchive_volume_online{node=\"one-1\",volume=\"volume-one\"}",
                1,
            ),
            (
                NODES[0],
                "bitarchive_volume_poisoned{node=\"one-1\",volume=\"volume-one\"}",
                0,
            ),
        ] {
            until(cluster, part, series, |value| value == expected).await;
        }
        until(cluster, NODES[0], age, |seconds| seconds >= 0).await;

        let calls = "rpc_calls_refused_total{server=\"repository/kb\"}";
        let connections = "rpc_connections_refused_total{server=\"repository/kb\"}";
        assert_eq!(value(cluster, REPOSITORY, calls), Some(0));
        let reader = cluster.depositor_as("reader/anna");
        let ignore = |_: StoreEvent<'_>| {};
        let refused = reader.store(&deposit(&file, &bytes), &ignore).await;
        assert_eq!(refused.unwrap_err().class(), ErrorClass::Refused);
        assert_eq!(value(cluster, REPOSITORY, calls), Some(1));
        assert_eq!(value(cluster, REPOSITORY, connections), Some(0));
        let stranger = TcpStream::connect(cluster.address(REPOSITORY))
            .await
            .unwrap();
        stranger.writable().await.unwrap();
        stranger.try_write(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        until(cluster, REPOSITORY, connections, |count| count == 1).await;

        // A volume that is gone has no free space, and is not taken for one with none.
        let volume = cluster.path("one").join("volume");
        let aside = cluster.path("aside");
        cluster.stop(NODES[0]).await;
        directory::move_new(&volume, &aside).unwrap();
        cluster.start(NODES[0]).await;
        let online = "bitarchive_volume_online{node=\"one-1\",volume=\"volume-one\"}";
        until(cluster, NODES[0], online, |value| value == 0).await;
        assert_eq!(value(cluster, NODES[0], free), None);
        let (read, end) = get(cluster, &FileRange::whole_file(file)).await;
        end.unwrap();
        assert!(read == bytes);
        assert!(cluster.reader().status().await.is_ok());
    });
}
