//! A replica behind a line of a kilobyte a second.

use archive_client::FileRange;
use tokio::time::{Instant, timeout};

use super::super::visits::get;
use super::*;

/// Bytes a second.
const CRAWL: usize = 1000;

fn holders(stored: &archive_client::StoredFile) -> Vec<&str> {
    let replicas = stored.receipt.replicas.iter();
    replicas.map(|custody| custody.replica.as_str()).collect()
}

/// Fails if a small file is given up on a slow line, or if a large one holds up its depositor or is not copied when the
/// line is fast again.
#[test]
fn slow_replica_is_awaited_or_dropped_by_rule() {
    on_a_patient_cluster(async |cluster: &mut Cluster| {
        let lines = lay(cluster, "").await;
        let before = name("before");
        let small = name("small");
        let large = name("large");
        let few = noise(2000, 91);
        let bytes = noise(64 * SIZE, 92);
        store(cluster, &before, &few).await.unwrap();
        lines.node.slow(CRAWL);
        let begin = Instant::now();
        let stored = store(cluster, &small, &few).await.unwrap();
        assert_eq!(holders(&stored), ["one", "three", "two"]);
        let took = begin.elapsed();
        assert!(
            took > Duration::from_secs(1),
            "the line was not slow: {took:?}"
        );

        let begin = Instant::now();
        let refused = store(cluster, &large, &bytes).await.unwrap_err();
        assert_names_two(&refused);
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        for (name, bytes) in [(&before, &few), (&small, &few), (&large, &bytes)] {
            let (read, end) = get(cluster, &FileRange::whole_file(name.clone())).await;
            end.unwrap();
            assert!(read == *bytes, "{name}");
        }
        lines.node.quick();
        let files = [(before, few.clone()), (small, few), (large, bytes)];
        assert_retried_and_whole(cluster, &files).await;
    });
}

/// Fails if a store or a read waits for a slow replica that is not required.
#[test]
fn slow_optional_replica_delays_no_store() {
    on_a_patient_cluster(async |cluster: &mut Cluster| {
        cluster.optional.push("two".to_owned());
        let lines = lay(cluster, "").await;
        let bytes = noise(32 * SIZE, 93);
        let first = name("first");
        store(cluster, &first, &bytes).await.unwrap();
        lines.node.slow(CRAWL);
        let mut files = vec![(first, bytes.clone())];
        for number in 0..3 {
            let file = name(&format!("f-{number}"));
            let stored = timeout(SOON, store(cluster, &file, &bytes)).await;
            let stored = stored.expect("the others are not slowed").unwrap();
            let holders = holders(&stored);
            assert!(holders.starts_with(&["one", "three"]), "{holders:?}");
            let read = timeout(SOON, get(cluster, &FileRange::whole_file(file.clone()))).await;
            let (read, end) = read.expect("readers are not slowed");
            end.unwrap();
            assert!(read == bytes);
            files.push((file, bytes.clone()));
        }
        assert!(
            copies(cluster, &files[3].0).await < 3,
            "the line was not slow"
        );
        lines.node.quick();
        assert_retried_and_whole(cluster, &files).await;
    });
}
