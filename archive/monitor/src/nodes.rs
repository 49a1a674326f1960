//! The nodes that are known, and those that are alive. Pure: the time is an argument.
//!
//! A node lives as long as its last sign of life is recent. A node that is known but silent stays known: it is reported
//! as a gap, never dropped, because its files are not missing. Only the repository may leave a node out, after it was
//! retired.
//!
//! The last sign of life says where a node is. Two processes that both claim to be one node show by taking turns: the
//! endpoint goes back to one it had just left. Such a node is *contested*: while it is, it is asked nothing and takes
//! nothing, since each of the two would answer for half of the files.
//!
//! A volume that has copies, as the repository says ([`Nodes::expect_volumes`]), and that its node does not report is a
//! gap as well: a node that lost its data directory has forgotten volumes that are well.
//!
//! Not promised: anything over a restart. The repository remembers which nodes there are, and says so
//! ([`Nodes::expect_nodes`]); until it has, nobody can know what is missing, and every survey has a gap.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use archive_model::{NodeId, NodeState, VolumeId, VolumeName};
use jiff::Timestamp;

use crate::gap::ReplicaGap;
use crate::placement::NodeCandidate;

/// A point in time, on the monotonic clock and on that of people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatTime {
    /// The time to measure from.
    pub instant: Instant,
    /// The time to be shown to people.
    pub time: Timestamp,
}

/// Whether a node can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeLife {
    /// The node's last sign of life is recent.
    Alive,
    /// The node's last sign of life is too old.
    Silent,
    /// Two processes claim to be the node.
    Contested,
    /// The repository knows the node, which was not heard of since the start.
    Unheard,
    /// The node says that it lives, and people took it out of service: it is asked nothing, and nobody misses it.
    Retired,
}

/// The news in a sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeartbeatNews {
    /// The sign of life has no news.
    Usual,
    /// The sign of life is the first one of the node since the start.
    New,
    /// The sign of life is the first one after a silence.
    Back {
        /// The time of the last sign of life before the silence.
        last: Timestamp,
    },
    /// The node takes calls at another endpoint now.
    Moved {
        /// The endpoint of the node until now.
        from: String,
    },
    /// A second process claims to be this node; reported once until that is over.
    Contested {
        /// The endpoint of the other process.
        other: String,
    },
}

/// The address at which a node is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The node.
    pub node: NodeId,
    /// The endpoint at which the node takes calls, `host:port`.
    pub endpoint: String,
}

/// The nodes to ask, and the gaps that the answer will have anyway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSurvey {
    /// The nodes that are alive, sorted by id.
    pub ask: Vec<Address>,
    /// The nodes that cannot be asked, and the volumes that their nodes do not report.
    pub gaps: Vec<ReplicaGap>,
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLiveness<'a> {
    /// The node.
    pub node: &'a NodeId,
    /// Whether the node can be asked.
    pub life: NodeLife,
    /// The last sign of life and its report; `None` if the node was not heard of since the start.
    pub last: Option<(Timestamp, &'a NodeState)>,
    /// The volumes that have copies and that the node did not name in its report.
    pub unreported: Vec<&'a VolumeId>,
}

/// Says what is wrong with a volume that has copies and that its node does not report.
pub const UNREPORTED: &str = "its node does not know it, and copies are recorded on it; if the disk is there, mount it and take it \
     over with `holdfast volume adopt`, else retire the volume";

/// The nodes of one replica.
#[derive(Clone, Debug)]
pub struct Nodes {
    silent_after: Duration,
    heard: BTreeMap<NodeId, HeardNode>,
    expected: Option<BTreeSet<NodeId>>,
    volumes: BTreeMap<NodeId, BTreeSet<VolumeId>>,
    retired: BTreeSet<NodeId>,
}

#[derive(Clone, Debug)]
struct HeardNode {
    report: NodeState,
    last: HeartbeatTime,
    /// The endpoint that the node left when it moved while it was alive, and when it moved.
    left: Option<(String, Instant)>,
    /// The time when the node last went back to an endpoint that it had just left.
    contested: Option<Instant>,
    /// The room on each volume of the node, less the files that were sent there since the last sign of life: the report
    /// does not show them yet.
    rooms: Vec<u64>,
}

impl Nodes {
    /// Creates an empty list of nodes. A node is silent when its last sign of life is older than `silent_after`.
    pub const fn new(silent_after: Duration) -> Self {
        Self {
            silent_after,
            heard: BTreeMap::new(),
            expected: None,
            volumes: BTreeMap::new(),
            retired: BTreeSet::new(),
        }
    }

    /// Takes a sign of life of a node, and returns the news in it.
    pub fn note_heartbeat(
        &mut self,
        node: &NodeId,
        report: NodeState,
        now: HeartbeatTime,
    ) -> HeartbeatNews {
        let limit = self.silent_after;
        let Some(heard) = self.heard.get_mut(node) else {
            let heard = HeardNode {
                rooms: report.free_rooms(),
                report,
                last: now,
                left: None,
                contested: None,
            };
            self.heard.insert(node.clone(), heard);
            return HeartbeatNews::New;
        };
        let was_contested = heard.is_contested(now.instant, limit);
        let was_alive = is_recent(heard.last.instant, now.instant, limit);
        let last = std::mem::replace(&mut heard.last, now).time;
        heard.rooms = report.free_rooms();
        let from = std::mem::replace(&mut heard.report, report).endpoint;
        if !was_alive {
            heard.left = None;
            return HeartbeatNews::Back { last };
        }
        if from == heard.report.endpoint {
            return HeartbeatNews::Usual;
        }
        let goes_back = heard.left.as_ref().is_some_and(|(endpoint, when)| {
            *endpoint == heard.report.endpoint && is_recent(*when, now.instant, limit)
        });
        heard.left = Some((from.clone(), now.instant));
        if !goes_back {
            return HeartbeatNews::Moved { from };
        }
        heard.contested = Some(now.instant);
        if was_contested {
            HeartbeatNews::Usual
        } else {
            HeartbeatNews::Contested { other: from }
        }
    }

    /// Sets the nodes that the repository knows, in place of those set before. Signs of life are not forgotten.
    pub fn expect_nodes(&mut self, known: BTreeSet<NodeId>) {
        self.expected = Some(known);
    }

    /// Sets the volumes that have copies, as the repository says, in place of those set before.
    pub fn expect_volumes(&mut self, volumes: BTreeMap<NodeId, BTreeSet<VolumeId>>) {
        self.volumes = volumes;
    }

    /// Sets the nodes that people took out of service, as the repository says, in place of those set before.
    pub fn retire_nodes(&mut self, retired: BTreeSet<NodeId>) {
        self.retired = retired;
    }

    /// Returns the state of every node that was heard of or is expected, sorted by id.
    pub fn list_nodes(&self, now: Instant) -> Vec<NodeLiveness<'_>> {
        let known: BTreeSet<&NodeId> = self
            .heard
            .keys()
            .chain(self.expected.iter().flatten())
            .collect();
        let liveness = |node| match self.heard.get(node) {
            Some(heard) => NodeLiveness {
                node,
                life: self.life(node, heard, now),
                last: Some((heard.last.time, &heard.report)),
                unreported: self.unreported(node, &heard.report),
            },
            None => NodeLiveness {
                node,
                life: NodeLife::Unheard,
                last: None,
                unreported: Vec::new(),
            },
        };
        known.into_iter().map(liveness).collect()
    }

    /// Returns the nodes to ask now, and the gaps.
    pub fn survey_nodes(&self, now: Instant) -> NodeSurvey {
        let mut survey = NodeSurvey::default();
        if self.expected.is_none() {
            survey.gaps.push(ReplicaGap::unknown_nodes());
        }
        for NodeLiveness {
            node,
            life,
            last,
            unreported,
        } in self.list_nodes(now)
        {
            let endpoint = last.map_or("nowhere", |(_, report)| &report.endpoint);
            match life {
                NodeLife::Alive => {
                    survey.ask.push(Address {
                        node: node.clone(),
                        endpoint: endpoint.to_owned(),
                    });
                    let gap = |volume: &VolumeId| {
                        let volume = VolumeName::Id(volume.clone());
                        ReplicaGap::volume_gap(node, volume, &UNREPORTED)
                    };
                    survey.gaps.extend(unreported.into_iter().map(gap));
                }
                NodeLife::Silent => {
                    let since = last.map_or(Timestamp::UNIX_EPOCH, |(time, _)| time);
                    survey.gaps.push(ReplicaGap::node_gap(
                        node,
                        &format_args!("silent since {since}"),
                    ));
                }
                NodeLife::Contested => {
                    let reason = format_args!(
                        "another process than that at {endpoint} claims to be it; stop one"
                    );
                    survey.gaps.push(ReplicaGap::node_gap(node, &reason));
                }
                NodeLife::Retired => {}
                NodeLife::Unheard => survey.gaps.push(ReplicaGap::node_gap(
                    node,
                    &"not heard of since the monitor started",
                )),
            }
        }
        survey
    }

    /// Returns the nodes that are alive, with the room that is left after all promises.
    pub fn list_candidates(&self, now: Instant) -> Vec<NodeCandidate> {
        let alive = self
            .heard
            .iter()
            .filter(|(node, heard)| self.life(node, heard, now) == NodeLife::Alive);
        let candidate = |(node, heard): (&NodeId, &HeardNode)| NodeCandidate {
            node: node.clone(),
            endpoint: heard.report.endpoint.clone(),
            takes_files: heard.report.takes_files(),
            room: heard.rooms.iter().copied().max().unwrap_or(0),
        };
        alive.map(candidate).collect()
    }

    fn unreported(&self, node: &NodeId, report: &NodeState) -> Vec<&VolumeId> {
        let is_reported = |id: &&VolumeId| {
            let mut volumes = report.volumes.iter();
            volumes.any(|volume| volume.volume.as_ref() == Some(*id))
        };
        let expected = self.volumes.get(node).into_iter().flatten();
        expected.filter(|id| !is_reported(id)).collect()
    }

    fn life(&self, node: &NodeId, heard: &HeardNode, now: Instant) -> NodeLife {
        if self.retired.contains(node) {
            NodeLife::Retired
        } else {
            heard.life(now, self.silent_after)
        }
    }

    /// Notes that a file of this size is on its way to the node. Until the next sign of life its room counts as taken
    /// on the volume with most room, where the node will put the file.
    pub fn promise_bytes(&mut self, node: &NodeId, bytes: u64) {
        let rooms = self.heard.get_mut(node).map(|heard| &mut heard.rooms);
        if let Some(most) = rooms.into_iter().flatten().max() {
            *most = most.saturating_sub(bytes);
        }
    }
}

impl HeardNode {
    fn is_contested(&self, now: Instant, limit: Duration) -> bool {
        self.contested
            .is_some_and(|when| is_recent(when, now, limit))
    }

    fn life(&self, now: Instant, limit: Duration) -> NodeLife {
        if !is_recent(self.last.instant, now, limit) {
            NodeLife::Silent
        } else if self.is_contested(now, limit) {
            NodeLife::Contested
        } else {
            NodeLife::Alive
        }
    }
}

impl NodeLife {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Alive,
        Self::Silent,
        Self::Contested,
        Self::Unheard,
        Self::Retired,
    ];

    /// Returns the state in one word, as in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Silent => "silent",
            Self::Contested => "contested",
            Self::Unheard => "unheard",
            Self::Retired => "retired",
        }
    }
}

fn is_recent(then: Instant, now: Instant, limit: Duration) -> bool {
    now.saturating_duration_since(then) <= limit
}

#[cfg(test)]
mod tests;
