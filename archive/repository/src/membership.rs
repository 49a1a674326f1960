//! Which nodes belong to which replica: learnt from the monitors, remembered for ever.
//!
//! A monitor remembers nothing. It is told after each of its starts which nodes to miss; until then each of its answers
//! has a gap. So a monitor that was restarted never makes a node, or its files, disappear. Only people do, by an act:
//! what they have retired is told to the monitors, and to the nodes once they can be reached.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Step, Worker, WorkerError};
use archive_model::{NodeId, ReplicaId};
use tokio::task::spawn_blocking;

use crate::admin::Admin;
use crate::replicas::Replicas;
use crate::settings::ReplicaSettings;
use crate::standing::Standing;

/// How often each monitor is told and asked.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells every monitor which nodes it has, and learns of new ones.
pub(crate) struct Membership {
    admin: Admin,
    replicas: Arc<Replicas>,
    standing: Arc<Standing>,
    ids: Vec<ReplicaId>,
}

impl Membership {
    pub(crate) fn new(
        admin: Admin,
        replicas: Arc<Replicas>,
        standing: Arc<Standing>,
        settings: &[ReplicaSettings],
    ) -> Self {
        Self {
            admin,
            replicas,
            standing,
            ids: settings.iter().map(|replica| replica.id.clone()).collect(),
        }
    }

    async fn tell(&self, replica: &ReplicaId) -> Result<(), WorkerError> {
        let (admin, id) = (self.admin.clone(), replica.clone());
        let known = spawn_blocking(move || admin.nodes(&id)).await??;
        self.replicas.add_members(replica, &known);
        // A monitor that does not answer is seen by everyone who asks it.
        let Ok(heard) = self.replicas.nodes_heard(replica).await else {
            return Ok(());
        };
        self.tell_retired(replica).await;
        let now = self.standing.now();
        let is_new = |node: &NodeId| !known.contains(node) && !now.is_retired_node(replica, node);
        let new: Vec<NodeId> = heard.into_iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        tracing::info!(%replica, nodes = ?new, "new nodes");
        let (admin, id) = (self.admin.clone(), replica.clone());
        spawn_blocking(move || admin.add_nodes(&id, &new)).await??;
        Ok(())
    }
}

impl Membership {
    /// A volume that was retired while its node could not be reached is retired there too, once it can be.
    async fn tell_retired(&self, replica: &ReplicaId) {
        let now = self.standing.now();
        if !now.volumes.keys().any(|key| key.replica == *replica) {
            return;
        }
        let Ok(volumes) = self.replicas.volumes_in_service(replica).await else {
            return;
        };
        for volume in volumes {
            if now.volumes.contains_key(&volume) {
                match self.replicas.tell_retired(&volume).await {
                    Ok(()) => tracing::info!(%volume, "a node retires a volume"),
                    Err(status) => {
                        tracing::debug!(%volume, %status, "a node does not retire a volume yet");
                    }
                }
            }
        }
    }
}

impl Worker for Membership {
    const NAME: &'static str = "membership";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        for replica in &self.ids {
            self.tell(replica).await?;
        }
        Ok(Step::Idle(PAUSE))
    }
}
