//! Waits for what a cluster comes to by itself.

use std::time::{Duration, Instant};

use archive_client::{Access, ReplicaOverview};
use tools_testing::Observation;

use super::world::{Cluster, LONG, PATIENT, eventually};

/// More than the first pause before a part tries something again.
const PAUSE: Duration = Duration::from_secs(61);

impl Cluster {
    /// Waits until the repository has heard from every node.
    pub(crate) async fn until_all_nodes_live(&self) {
        let reader = self.reader();
        eventually("all nodes live", LONG, async || {
            let status = reader.status().await.map_err(|error| error.to_string())?;
            let lives = |replica: &ReplicaOverview| {
                replica.nodes.len() == 1 && replica.nodes.iter().all(|node| node.alive)
            };
            let all_live = status.replicas.iter().all(lives);
            all_live.then_some(()).ok_or_else(|| format!("{status:#?}"))
        })
        .await;
    }

    /// Looks as [`eventually`] does, without waiting for the pauses before a part tries something again: the time is
    /// moved over them. What has begun meanwhile is left alone for a while, each time longer, so that a slow machine
    /// comes to its end, too. Needs a patient cluster: else every node would be silent at each move.
    pub(crate) async fn eventually_retried<O: Observation>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> O,
    ) -> O::Value {
        assert_eq!(self.silent_after, PATIENT, "use `on_a_patient_cluster`");
        let mut pause = PAUSE;
        let mut calm = Duration::from_secs(3);
        let mut next = Instant::now();
        eventually(what, LONG, async || {
            let looked = look().await.into_result();
            if looked.is_err() && Instant::now() >= next {
                self.advance(pause);
                next = Instant::now() + calm;
                (pause, calm) = (pause * 2, calm * 2);
            }
            looked
        })
        .await
    }
}
