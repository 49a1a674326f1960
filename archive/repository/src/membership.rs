//! Which nodes belong to which replica: learnt from the monitors, remembered for ever.
//!
//! A monitor remembers nothing. It is told after each of its starts which nodes to miss; until then each of its answers
//! has a gap. So a monitor that was restarted never makes a node, or its files, disappear.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Step, Worker, WorkerError};
use archive_model::{NodeId, ReplicaId};
use tokio::task::spawn_blocking;

use crate::admin::Admin;
use crate::replicas::Replicas;
use crate::settings::ReplicaSettings;

/// How often each monitor is told and asked.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells every monitor which nodes it has, and learns of new ones.
pub(crate) struct Membership {
    admin: Admin,
    replicas: Arc<Replicas>,
    ids: Vec<ReplicaId>,
}

impl Membership {
    pub(crate) fn new(admin: Admin, replicas: Arc<Replicas>, settings: &[ReplicaSettings]) -> Self {
        Self {
            admin,
            replicas,
            ids: settings.iter().map(|replica| replica.id.clone()).collect(),
        }
    }

    async fn tell(&self, replica: &ReplicaId) -> Result<(), WorkerError> {
        let (admin, id) = (self.admin.clone(), replica.clone());
        let known = spawn_blocking(move || admin.nodes(&id)).await??;
        self.replicas.set_members(replica, known.clone());
        // A monitor that does not answer is seen by everyone who asks it.
        let Ok(heard) = self.replicas.nodes_heard(replica).await else {
            return Ok(());
        };
        let new: Vec<NodeId> = heard
            .into_iter()
            .filter(|node| !known.contains(node))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        tracing::info!(%replica, nodes = ?new, "new nodes");
        let (admin, id) = (self.admin.clone(), replica.clone());
        spawn_blocking(move || admin.add_nodes(&id, &new)).await??;
        Ok(())
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
