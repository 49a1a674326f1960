//! What people should look at in the replicas: monitors and nodes that are silent, volumes that are offline.
//!
//! Only says what is so now; how long it must be so before anybody is told is the notifier's business.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Notifier, Step, Worker, WorkerError};
use archive_model::ReplicaId;

use crate::replicas::Replicas;

/// How often the replicas are looked at.
const PAUSE: Duration = Duration::from_secs(10);

/// How long a monitor may take for its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is wrong with a replica: by the key of the incident, what is told.
type Wrong = BTreeMap<String, String>;

/// One node, as its monitor sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeSeen {
    pub(crate) node: String,
    pub(crate) is_alive: bool,
    /// Its last sign of life; empty: none since the monitor started.
    pub(crate) seen: String,
    /// Volumes with why they are offline; those that are retired are none of anybody's concern.
    pub(crate) offline: Vec<(String, String)>,
}

/// What is wrong with a replica, from what its monitor said.
fn wrong(replica: &ReplicaId, said: &Result<Vec<NodeSeen>, String>) -> Wrong {
    let nodes = match said {
        Err(why) => {
            let text = format!("the monitor of replica {replica} does not answer: {why}");
            return BTreeMap::from([(format!("replica/{replica}"), text)]);
        }
        Ok(nodes) => nodes,
    };
    let mut wrong = BTreeMap::new();
    for node in nodes {
        let name = &node.node;
        if !node.is_alive {
            let last = match node.seen.as_str() {
                "" => "it was not heard of since the monitor started".to_owned(),
                seen => format!("its last sign of life was at {seen}"),
            };
            let text = format!("node {name} of replica {replica} is silent: {last}");
            wrong.insert(format!("node/{name}"), text);
            // What its volumes were is not known to be so now.
            continue;
        }
        for (volume, why) in &node.offline {
            let text =
                format!("volume {volume} of node {name}, replica {replica}, is offline: {why}");
            wrong.insert(format!("volume/{volume}"), text);
        }
    }
    wrong
}

/// The job that looks.
pub(crate) struct Attention {
    replicas: Arc<Replicas>,
    ids: Vec<ReplicaId>,
    notifier: Notifier,
    clock: Clock,
    /// What was wrong the last time.
    before: BTreeMap<ReplicaId, Wrong>,
}

impl Attention {
    pub(crate) fn new(
        replicas: Arc<Replicas>,
        ids: Vec<ReplicaId>,
        notifier: Notifier,
        clock: Clock,
    ) -> Self {
        Self {
            replicas,
            ids,
            notifier,
            clock,
            before: BTreeMap::new(),
        }
    }

    fn tell(&mut self, replica: &ReplicaId, now: &Wrong) {
        for (key, text) in now {
            self.notifier.raise(key, text);
        }
        let before = self
            .before
            .insert(replica.clone(), now.clone())
            .unwrap_or_default();
        for key in before.keys().filter(|key| !now.contains_key(*key)) {
            self.notifier.resolve(key);
        }
    }
}

impl Worker for Attention {
    const NAME: &'static str = "attention";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        for replica in self.ids.clone() {
            let asked = self.replicas.nodes_seen(&replica);
            let said = match self.clock.timeout(PATIENCE, asked).await {
                Ok(Ok(nodes)) => Ok(nodes),
                Ok(Err(status)) => Err(status.message().to_owned()),
                Err(late) => Err(late.to_string()),
            };
            let now = wrong(&replica, &said);
            self.tell(&replica, &now);
        }
        Ok(Step::Idle(PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, is_alive: bool, offline: &[(&str, &str)]) -> NodeSeen {
        NodeSeen {
            node: name.to_owned(),
            is_alive,
            seen: String::new(),
            offline: offline
                .iter()
                .map(|(volume, why)| ((*volume).to_owned(), (*why).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn what_is_wrong_is_named_once_and_nothing_is_blamed_that_nobody_sees() {
        let replica = ReplicaId::new("one").unwrap();
        let keys = |said: Result<Vec<NodeSeen>, String>| {
            wrong(&replica, &said).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(keys(Err("refused".to_owned())), ["replica/one"]);
        assert!(keys(Ok(vec![node("n", true, &[])])).is_empty());
        let volumes = [("v-1", "absent"), ("v-2", "foreign")];
        assert_eq!(
            keys(Ok(vec![
                node("n", true, &volumes),
                node("m", false, &volumes)
            ])),
            ["node/m", "volume/v-1", "volume/v-2"]
        );
    }
}
