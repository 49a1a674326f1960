//! Checks by the clock, and what is repaired without being asked.

use super::*;

/// Fails if no check begins by the clock, or if what such a check finds waits for an order although repairs are
/// automatic.
#[test]
fn findings_of_scheduled_check_are_repaired_automatically() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let gone = name("gone");
        let flipped = name("flipped");
        let bytes = noise(SIZE, 28);
        for name in [&gone, &flipped] {
            store(cluster, name, &bytes).await.unwrap();
        }
        flip(&cluster.copy("one", &flipped), 7 * GROUP_SIZE);
        take_away(cluster, 1, "two", &gone).await;
        cluster.stop(REPOSITORY).await;
        "[repair]\ndelay = '1 s'\nsettled = '1 s'\n[checks]\nfiles = '2 s'\nchecksums = '3 s'\n"
            .clone_into(&mut cluster.repository_settings);
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        for class in [AnomalyClass::Missing, AnomalyClass::Corrupt] {
            eventually(class.as_str(), LONG, async || {
                let ever = anomalies(cluster, true).await;
                let is_closed = |found: &wire::AnomalyState| {
                    kind(found) == class && found.state() == State::Closed
                };
                let is_so = ever.iter().any(is_closed);
                is_so.then_some(()).ok_or(ever)
            })
            .await;
        }
        assert_reads(cluster, &gone, &bytes, "two").await;
        assert_reads(cluster, &flipped, &bytes, "one").await;
    });
}
