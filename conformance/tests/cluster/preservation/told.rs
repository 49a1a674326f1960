//! The messages to people: damage once, also over a restart of the repository, and once that it is over.

use serde_json::Value;

use super::*;
use crate::cluster::world::on_a_patient_cluster;

/// Returns the messages about `key`, in order.
fn told(cluster: &Cluster, key: &str) -> Vec<(String, String)> {
    let said = std::fs::read_to_string(cluster.path("told")).unwrap_or_default();
    let messages = said.lines().map(|line| serde_json::from_str(line).unwrap());
    let items = messages.flat_map(|message: Value| message["items"].as_array().unwrap().clone());
    let text = |item: &Value, field: &str| item[field].as_str().unwrap().to_owned();
    items
        .filter(|item| item["key"] == key)
        .map(|item| (text(&item, "what"), text(&item, "text")))
        .collect()
}

async fn until_told(cluster: &Cluster, key: &str, what: &str) -> String {
    eventually(&format!("{key} {what}"), LONG, async || {
        match told(cluster, key).pop() {
            Some((last, text)) if last == what => Ok(text),
            other => Err(other),
        }
    })
    .await
}

fn whats(cluster: &Cluster, key: &str) -> Vec<String> {
    told(cluster, key)
        .into_iter()
        .map(|(what, _)| what)
        .collect()
}

/// Fails if there is a message for each file, one comes again after a restart, or a restart forgets an incident.
#[test]
fn incident_and_its_end_are_told_once() {
    on_a_cluster(async |cluster: &mut Cluster| {
        cluster.stop(REPOSITORY).await;
        let path = cluster.path("told");
        cluster.repository_settings = format!(
            "[repair]\nautomatic = 'off'\n[notify]\ndelay = '1 s'\ncommand = ['/bin/sh', '-c', 'cat >> {}']\n",
            path.display()
        );
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        let names: Vec<FileName> = (0..7).map(|n| name(&format!("f-{n}"))).collect();
        let bytes = noise(SIZE, 9);
        for name in &names {
            store(cluster, name, &bytes).await.unwrap();
            flip(&cluster.copy("one", name), 5);
        }
        let checked = check(cluster, of(Kind::Checksums)).await.unwrap();
        assert_eq!(checked.found().len(), 7);
        let text = until_told(cluster, "anomalies/one/damaged", "began").await;
        // How many, depends on how far the check had come.
        assert!(
            text.contains(" of replica one must be repaired: "),
            "{text}"
        );
        assert!(text.contains(" corrupt\nf-"), "{text}");

        // The repository and a node restart; what was told stays told, though the hook may not have ended yet, and what
        // is new is told.
        cluster.stop(REPOSITORY).await;
        cluster.stop(NODES[0]).await;
        cluster.start(REPOSITORY).await;
        let node = "replica/one/node/one-1";
        let text = until_told(cluster, node, "began").await;
        assert!(text.contains("is silent"), "{text}");
        assert_eq!(whats(cluster, "anomalies/one/damaged"), ["began"]);

        // Repaired while nobody is told: the repository stops before it could say so.
        cluster.start(NODES[0]).await;
        cluster.until_all_nodes_live().await;
        let repaired = repair(cluster, everything()).await.unwrap();
        assert_eq!(outcomes(&repaired), ["repaired"; 7]);
        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        until_told(cluster, "anomalies/one/damaged", "over").await;
        until_told(cluster, node, "over").await;
        assert_eq!(whats(cluster, "anomalies/one/damaged"), ["began", "over"]);
        assert_eq!(whats(cluster, node), ["began", "over"]);
    });
}

/// Fails if nobody is told that a node reads too slowly for its scrub deadline, or that it is fast enough again, or if
/// a node in time is accused.
#[test]
fn missed_scrub_deadline_is_told_until_met_again() {
    on_a_patient_cluster(async |cluster: &mut Cluster| {
        let path = cluster.path("told");
        cluster.repository_settings = format!(
            "[notify]\ndelay = '1 s'\ncommand = ['/bin/sh', '-c', 'cat >> {}']\n",
            path.display()
        );
        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        store(cluster, &name("a"), &noise(SIZE, 10)).await.unwrap();
        // Two looks at a node that keeps its own.
        let worker = "attention";
        let looked = cluster.steps(REPOSITORY, worker);
        let looks = cluster.eventually_retried("looked at", async || {
            cluster.steps(REPOSITORY, worker) >= looked + 2
        });
        looks.await;
        let late = ["one", "two"].map(|id| format!("replica/{id}/node/{id}-1/scrub"));
        for key in &late {
            assert_eq!(told(cluster, key), []);
        }

        let slow = "[scrub]\ndeadline = '1 s'\nyoung = '0 s'\nrate = '1 B'\n";
        slow.clone_into(&mut cluster.node_settings);
        cluster.stop(NODES[1]).await;
        cluster.start(NODES[1]).await;
        let text = until_told(cluster, &late[1], "began").await;
        assert!(
            text.contains("node two-1") && text.contains("scrub status"),
            "{text}"
        );
        cluster.node_settings.clear();
        cluster.stop(NODES[1]).await;
        cluster.start(NODES[1]).await;
        until_told(cluster, &late[1], "over").await;
        assert_eq!(whats(cluster, &late[1]), ["began", "over"]);
        assert_eq!(told(cluster, &late[0]), []);
    });
}
