//! Starts, restarts, and the starts that are refused.
#![expect(clippy::disallowed_methods, reason = "tests take files away")]

use archive_bitarchive::StartError;
use archive_bitarchive::checksum::{Record, RecordError};

use crate::world::{TestReplica, noise};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_there_after_a_restart() {
    let world = TestReplica::new();
    let running = world.start().await;
    let first = world.store(&running, "a", &noise(1000, 1)).await.unwrap();
    running.stop().await;
    let running = world.start().await;
    let again = world.store(&running, "a", &noise(1000, 1)).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(running.names().await, ["a"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_gone_is_no_empty_replica() {
    let world = TestReplica::new();
    let running = world.start().await;
    world.store(&running, "a", &noise(1000, 1)).await.unwrap();
    running.stop().await;
    let grants = ["monitor/three", "node/three-1"];
    let start = async || {
        world
            .try_start(world.settings(&grants))
            .await
            .err()
            .unwrap()
    };

    let table = world.data().join("table");
    std::fs::rename(&table, world.path("table")).unwrap();
    let error = start().await;
    assert!(
        matches!(&error, StartError::Record(RecordError::Damaged { .. })),
        "{error}"
    );
    let said = error.to_string();
    assert!(said.contains("backup") && said.contains("--init"), "{said}");
    let (node, replica) = ("three-1".parse().unwrap(), "three".parse().unwrap());
    assert!(
        Record::init(&world.data(), &node, &replica).is_err(),
        "to begin anew is to move the rest away first"
    );

    // Nothing of it is there: perhaps a disk that is not mounted.
    std::fs::rename(world.data(), world.path("elsewhere")).unwrap();
    let error = start().await;
    assert!(
        matches!(&error, StartError::Record(RecordError::Absent(_))),
        "{error}"
    );
    assert!(error.to_string().contains("mounted"), "{error}");
    assert!(!world.data().try_exists().unwrap(), "it makes nothing");

    std::fs::rename(world.path("elsewhere"), world.data()).unwrap();
    std::fs::rename(world.path("table"), &table).unwrap();
    let running = world.start().await;
    assert_eq!(running.names().await, ["a"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_it_is_must_be_right() {
    let world = TestReplica::new();
    for grants in [
        &["monitor/three"][..],
        &["node/three-1"],
        &["monitor/one", "node/three-1"],
    ] {
        let error = world.try_start(world.settings(grants)).await.err().unwrap();
        assert!(
            matches!(error, StartError::BothIdentities { .. }),
            "{grants:?}: {error}"
        );
    }
    let mut settings = world.settings(&["monitor/four", "node/four-1"]);
    settings.checksum_replica.node = "four-1".parse().unwrap();
    settings.checksum_replica.replica = "four".parse().unwrap();
    let error = world.try_start(settings).await.err().unwrap();
    assert!(
        matches!(&error, StartError::Record(RecordError::Foreign { .. })),
        "{error}"
    );
    let mut settings = world.settings(&["monitor/three", "node/three-1"]);
    settings.checksum_replica.trust = world.path("none.json");
    let error = world.try_start(settings).await.err().unwrap();
    assert!(
        error.to_string().contains("checksum_replica.trust"),
        "{error}"
    );
}
