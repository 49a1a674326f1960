//! Incidents of the replicas, for people: silent monitors and nodes, volumes that are offline, and scrubs that miss
//! their deadlines.
//!
//! Reports only what is wrong now, and of what nothing is known now. The notifier owns how long an incident must last
//! before it is reported, and which were reported before. A silent monitor reports nothing of its nodes, a silent node
//! nothing of its volumes: their incidents do not end for that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use archive_daemon::notify::incident::Problem;
use archive_daemon::{Notifier, Worker, WorkerStep, WorkerStepError};
use archive_model::{NodeState, ReplicaId};
use archive_replicas::Silence;
use jiff::Timestamp;

use crate::preserver::Preserver;

/// The time between two looks at the replicas.
const PAUSE: Duration = Duration::from_secs(10);

/// The pause while some monitor was not heard of since the start.
const SOON: Duration = Duration::from_secs(1);

/// The incidents of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ReplicaIncidents {
    /// The incidents, by their keys.
    wrong: BTreeMap<String, Problem>,
    /// The keys under which nothing is known now.
    unclear: BTreeSet<String>,
}

/// Returns the key of all incidents of a replica.
fn scope(replica: &ReplicaId) -> String {
    format!("replica/{replica}")
}

/// Returns the incidents of a replica, from the last states of its nodes; no incidents if its monitor was not asked
/// yet.
fn known(
    replica: &ReplicaId,
    seen: Option<Result<Vec<NodeState>, Silence>>,
    now: Timestamp,
) -> ReplicaIncidents {
    let mut known = ReplicaIncidents::default();
    let scope = scope(replica);
    let nodes = match seen {
        None => {
            known.unclear.insert(scope);
            return known;
        }
        Some(Err(Silence { reason, since })) => {
            let wrong = Problem {
                text: format!("the monitor of replica {replica} does not answer: {reason}"),
                since: Some(since),
            };
            known.wrong.insert(format!("{scope}/monitor"), wrong);
            known.unclear.insert(format!("{scope}/node"));
            return known;
        }
        Some(Ok(nodes)) => nodes,
    };
    for node in &nodes {
        let name = &node.node;
        let key = format!("{scope}/node/{}", node.node);
        if let Some(problem) = &node.problem {
            let text = format!("node {name} of replica {replica}: {problem}");
            known
                .wrong
                .insert(format!("{key}/id"), Problem::begun_now(text));
        }
        if !node.alive {
            let last = match node.seen {
                None => "it was not heard of since the monitor started".to_owned(),
                Some(seen) => format!("its last sign of life was at {seen}"),
            };
            let text = format!("node {name} of replica {replica} is silent: {last}");
            known.unclear.insert(format!("{key}/volume"));
            known.unclear.insert(format!("{key}/scrub"));
            known.wrong.insert(key, Problem::begun_now(text));
            continue;
        }
        if let Some(until) = node.verify_by.filter(|until| *until < now) {
            let text = format!(
                "the scrub of node {name}, replica {replica}, does not keep its deadline: a copy was to be read again by \
                 {until}\n`holdfast scrub status` says whether it is paused, and how fast it reads"
            );
            known
                .wrong
                .insert(format!("{key}/scrub"), Problem::begun_now(text));
        }
        let offline = node.volumes.iter();
        let offline = offline.filter_map(|volume| Some((volume.name(), volume.offline_reason()?)));
        for (volume, why) in offline {
            let text =
                format!("volume {volume} of node {name}, replica {replica}, is offline: {why}");
            known
                .wrong
                .insert(format!("{key}/volume/{volume}"), Problem::begun_now(text));
        }
    }
    known
}

/// The worker that looks at the replicas.
pub(crate) struct Attention {
    own: Preserver,
    notifier: Notifier,
}

impl Attention {
    pub(crate) const fn new(own: Preserver, notifier: Notifier) -> Self {
        Self { own, notifier }
    }

    fn look(&self, replica: &ReplicaId) -> ReplicaIncidents {
        if self
            .own
            .archive
            .standing
            .current_snapshot()
            .is_retired(replica)
        {
            // A retired replica has no incidents.
            return ReplicaIncidents::default();
        }
        let seen = self.own.archive.calls.replicas.last_in_service(replica);
        known(replica, seen, self.own.archive.calls.clock.now())
    }
}

impl Worker for Attention {
    const NAME: &'static str = "attention";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let mut pause = PAUSE;
        for spec in self.own.archive.specs.iter() {
            let known = self.look(&spec.id);
            let scope = scope(&spec.id);
            self.notifier
                .declare_incidents(&scope, &known.wrong, &known.unclear);
            if known.unclear.contains(&scope) {
                pause = SOON;
            }
        }
        Ok(WorkerStep::Idle(pause))
    }
}

#[cfg(test)]
mod tests {
    use archive_model::VolumeState;

    use super::*;

    fn node(name: &str, is_alive: bool, offline: &[(&str, &str)]) -> NodeState {
        let volume = |(volume, why): &(&str, &str)| VolumeState {
            volume: Some(volume.parse().unwrap()),
            problem: Some((*why).to_owned()),
            ..VolumeState::default()
        };
        NodeState {
            alive: is_alive,
            volumes: offline.iter().map(volume).collect(),
            ..NodeState::unheard_node(name.parse().unwrap())
        }
    }

    /// Fails if an incident is named twice, or one ends because its monitor or node is silent.
    #[test]
    fn each_incident_is_named_once_and_unseen_skipped() {
        let replica = ReplicaId::new("one").unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let keys = |seen: Result<Vec<NodeState>, Silence>| {
            let ReplicaIncidents { wrong, unclear } = known(&replica, Some(seen), now);
            assert!(wrong.keys().all(|key| key.starts_with("replica/one/")));
            let wrong: Vec<_> = wrong.into_keys().collect();
            (wrong.join(" "), Vec::from_iter(unclear).join(" "))
        };
        let silence = || Silence {
            reason: "refused".to_owned(),
            since: now,
        };
        let both = |wrong: &str, unclear: &str| (wrong.to_owned(), unclear.to_owned());
        assert_eq!(
            keys(Err(silence())),
            both("replica/one/monitor", "replica/one/node")
        );
        assert_eq!(keys(Ok(vec![node("n", true, &[])])), both("", ""));
        let volumes = [("v-1", "absent"), ("v-2", "foreign")];
        assert_eq!(
            keys(Ok(vec![
                node("n", true, &volumes),
                node("m", false, &volumes)
            ])),
            both(
                "replica/one/node/m replica/one/node/n/volume/v-1 replica/one/node/n/volume/v-2",
                "replica/one/node/m/scrub replica/one/node/m/volume"
            )
        );
        let until = |seconds, is_alive| NodeState {
            verify_by: Some(now + jiff::SignedDuration::from_secs(seconds)),
            ..node("n", is_alive, &[])
        };
        let late = "replica/one/node/n/scrub";
        assert_eq!(keys(Ok(vec![until(-1, true)])), both(late, ""));
        assert_eq!(keys(Ok(vec![until(0, true)])), both("", ""));
        let gone = "replica/one/node/n/scrub replica/one/node/n/volume";
        let silent = keys(Ok(vec![until(-1, false)]));
        assert_eq!(silent, both("replica/one/node/n", gone));
    }
}
