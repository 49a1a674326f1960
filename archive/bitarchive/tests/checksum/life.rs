//! Starts, restarts, and the starts that are refused.
#![expect(clippy::disallowed_methods, reason = "tests take files away")]

use archive_bitarchive::checksum::{ChecksumTable, ChecksumTableError};
use tools_testing::noise;

use crate::replica::TestReplica;

/// Fails if a checksum replica forgets a file at a restart, or records it a second time with a new date when it is sent
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_there_after_a_restart() {
    let test = TestReplica::new();
    let running = test.start().await;
    let first = test.store(&running, "a", &noise(1000, 1)).await.unwrap();
    running.stop().await;
    let running = test.start().await;
    let again = test.store(&running, "a", &noise(1000, 1)).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(running.names().await, ["a"]);
    running.stop().await;
}

/// Fails if a replica whose table is absent says that nothing was ever stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_table_is_refused_at_start() {
    let test = TestReplica::new();
    let running = test.start().await;
    test.store(&running, "a", &noise(1000, 1)).await.unwrap();
    running.stop().await;
    let grants = ["monitor/three", "node/three-1"];
    let start = async || test.try_start(test.settings(&grants)).await.err().unwrap();

    let table = test.data().join("table");
    std::fs::rename(&table, test.path("table")).unwrap();
    let error = start().await;
    assert!(
        matches!(error.find_cause(), Some(ChecksumTableError::Damaged { .. })),
        "{error}"
    );
    let said = error.to_string();
    assert!(said.contains("backup") && said.contains("--init"), "{said}");
    let node = "three-1".parse().unwrap();
    let replica = "three".parse().unwrap();
    assert!(
        ChecksumTable::init(&test.data(), &node, &replica).is_err(),
        "to begin anew is to move the rest away first"
    );

    // Nothing of the table is there: perhaps its disk is not mounted.
    std::fs::rename(test.data(), test.path("elsewhere")).unwrap();
    let error = start().await;
    assert!(
        matches!(error.find_cause(), Some(ChecksumTableError::Absent(_))),
        "{error}"
    );
    assert!(error.to_string().contains("mounted"), "{error}");
    assert!(!test.data().try_exists().unwrap(), "it makes nothing");

    std::fs::rename(test.path("elsewhere"), test.data()).unwrap();
    std::fs::rename(test.path("table"), &table).unwrap();
    let running = test.start().await;
    assert_eq!(running.names().await, ["a"]);
    running.stop().await;
}

/// Fails if a checksum replica starts with a certificate that lacks one of its two roles, with the table of another
/// replica or without its trusted keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identity_of_checksum_replica_must_be_right() {
    let test = TestReplica::new();
    for grants in [
        &["monitor/three"][..],
        &["node/three-1"],
        &["monitor/one", "node/three-1"],
    ] {
        let error = test.try_start(test.settings(grants)).await.err().unwrap();
        let said = error.to_string();
        assert!(
            said.contains("not monitor/three and node/three-1"),
            "{grants:?}: {said}"
        );
    }
    let mut settings = test.settings(&["monitor/four", "node/four-1"]);
    settings.checksum_replica.node = "four-1".parse().unwrap();
    settings.checksum_replica.replica = "four".parse().unwrap();
    let error = test.try_start(settings).await.err().unwrap();
    assert!(
        matches!(error.find_cause(), Some(ChecksumTableError::Foreign { .. })),
        "{error}"
    );
    let mut settings = test.settings(&["monitor/three", "node/three-1"]);
    settings.checksum_replica.trust = test.path("none.json");
    let error = test.try_start(settings).await.err().unwrap();
    assert!(
        error.to_string().contains("checksum_replica.trust"),
        "{error}"
    );
}
