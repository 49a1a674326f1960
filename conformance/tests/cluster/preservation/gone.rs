//! The copies that the archive answers for: only those that are there and good; a file that is gone everywhere is taken
//! again.

use archive_client::{Access, ClientError};

use super::super::visits::root;
use super::*;

async fn refusal(cluster: &Cluster, name: &FileName) -> String {
    let error = cluster.reader().receipt(name).await.unwrap_err();
    assert!(
        matches!(error, ClientError::NotEnoughReplicas(_)),
        "{error}"
    );
    error.to_string()
}

async fn holders(cluster: &Cluster, name: &FileName) -> Vec<String> {
    let receipt = cluster.reader().receipt(name).await.unwrap();
    let replicas = receipt.receipt.replicas.iter();
    replicas.map(|copy| copy.replica.to_string()).collect()
}

/// Fails if a file that no replica has any more counts as stored, so that its depositor cannot send it again, or if the
/// name then takes other bytes.
#[test]
fn file_gone_everywhere_can_be_stored_again() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a.warc.gz");
        let bytes = noise(SIZE, 31);
        let first = store(cluster, &name, &bytes).await.unwrap();
        for repairs in [false, true] {
            for (node, replica) in [(0, "one"), (1, "two")] {
                take_away(cluster, node, replica, &name).await;
            }
            let found = check(cluster, of(Kind::Files)).await.unwrap();
            let gone = [
                "one lost a.warc.gz",
                "one missing a.warc.gz",
                "two lost a.warc.gz",
                "two missing a.warc.gz",
            ];
            assert_eq!(found.found(), gone, "known before anybody tries a repair");
            if repairs {
                let done = repair(cluster, everything()).await.unwrap();
                assert_eq!(outcomes(&done), ["lost"; 4], "{done:?}");
            }
            let said = refusal(cluster, &name).await;
            assert!(said.contains("one") && said.contains("two"), "{said}");
            let other = store(cluster, &name, &noise(SIZE, 32)).await.unwrap_err();
            assert!(matches!(other, ClientError::Exists(_)), "{other}");

            let again = store(cluster, &name, &bytes).await.unwrap();
            assert!(!again.already, "its bytes were taken");
            assert_eq!(again.admission, first.admission);
            for replica in ["one", "two"] {
                assert!(std::fs::read(cluster.copy(replica, &name)).unwrap() == bytes);
                assert_reads(cluster, &name, &bytes, replica).await;
            }
            assert_eq!(holders(cluster, &name).await, ["one", "three", "two"]);
            assert_eq!(anomalies(cluster, false).await, []);
            let clean = check(cluster, of(Kind::Checksums)).await.unwrap();
            assert_eq!(clean.found(), [""; 0]);
        }
    });
}

/// Fails if a receipt or an acknowledgement counts a copy that is known to be damaged, or leaves it out after its
/// repair.
#[test]
fn damaged_copy_does_not_count_until_whole() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(SIZE, 33);
        store(cluster, &name, &bytes).await.unwrap();
        flip(&cluster.copy("one", &name), 2 * GROUP_SIZE);
        assert_eq!(holders(cluster, &name).await.len(), 3, "nobody knows yet");
        check(cluster, of(Kind::Checksums)).await.unwrap();
        let said = refusal(cluster, &name).await;
        assert!(said.contains("one: corrupt groups 2"), "{said}");
        let error = store(cluster, &name, &bytes).await.unwrap_err();
        assert!(
            matches!(error, ClientError::NotEnoughReplicas(_)),
            "{error}"
        );
        assert!(error.to_string().contains("corrupt groups 2"), "{error}");
        let done = repair(cluster, everything()).await.unwrap();
        assert_eq!(outcomes(&done), ["repaired"], "{done:?}");
        assert_eq!(holders(cluster, &name).await, ["one", "three", "two"]);
        assert!(store(cluster, &name, &bytes).await.unwrap().already);

        // A file that is missing in one replica only is copied while the depositor waits.
        take_away(cluster, 1, "two", &name).await;
        check(cluster, of(Kind::Files)).await.unwrap();
        let stored = store(cluster, &name, &bytes).await.unwrap();
        assert!(stored.already, "no byte was asked for");
        assert_reads(cluster, &name, &bytes, "two").await;
        assert_eq!(anomalies(cluster, false).await, []);
        assert_eq!(root(&bytes), stored.admission.root);
    });
}

/// Fails if a check believes the catalog of a running node about what is on its disk.
#[test]
fn check_of_files_asks_the_disks() {
    on_a_cluster(async |cluster: &mut Cluster| {
        cluster.stop(REPOSITORY).await;
        "[repair]\nautomatic = 'off'\n".clone_into(&mut cluster.repository_settings);
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        let bytes = noise(SIZE, 23);
        for file in ["a", "b"] {
            store(cluster, &name(file), &bytes).await.unwrap();
        }
        std::fs::remove_file(cluster.copy("two", &name("a"))).unwrap();
        let home = cluster.copy("two", &name("stray"));
        let elsewhere = cluster.copy("two", &name("b")).with_file_name("stray");
        assert_ne!(home, elsewhere, "it has another place");
        std::fs::copy(cluster.copy("one", &name("b")), &elsewhere).unwrap();
        let found = check(cluster, of(Kind::Files)).await.unwrap();
        let expected = ["two missing a", "two unexpected stray"];
        assert_eq!(found.found(), expected, "{found:?}");
        assert!(home.try_exists().unwrap());
    });
}
