//! A node with two volumes and a runner of batch jobs.

use std::path::PathBuf;
use std::sync::Arc;

use archive_bitarchive::Node;
use archive_bitarchive::settings::NodeBatchSettings;
use archive_bitarchive::testing::NodeMachine;
use archive_daemon::{Clock, Metrics, Tasks};
use archive_model::{Mode, VolumeId};

use crate::instruments::JobInstruments;
use crate::node_jobs::{NodeJobs, NodeJobsParts};

/// A node with the volumes `v1` in `one` and `v2` in `two`.
pub(super) struct TestNode {
    machine: NodeMachine,
    pub(super) node: Arc<Node>,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
    pub(super) node_jobs: Arc<NodeJobs>,
    pub(super) counters: JobInstruments,
}

impl TestNode {
    pub(super) fn new() -> Self {
        let clock = Clock::system_clock();
        let mut machine = NodeMachine::with_disks(&["one", "two"]);
        machine.now = clock.now();
        machine.init("v1", "one");
        machine.init("v2", "two");
        let node = Arc::new(machine.start().0);
        let tasks = Tasks::new();
        let counters = JobInstruments::new(&Metrics::new()).unwrap();
        let node_jobs = NodeJobs::open(NodeJobsParts {
            node: Arc::clone(&node),
            data: node.data.clone(),
            settings: NodeBatchSettings::default(),
            clock: clock.clone(),
            tasks: tasks.clone(),
            executable: None,
            instruments: counters.clone(),
        });
        Self {
            node_jobs: Arc::new(node_jobs.unwrap()),
            machine,
            node,
            clock,
            tasks,
            counters,
        }
    }

    /// The parts for other jobs on the same node.
    pub(super) fn parts(&self) -> NodeJobsParts {
        NodeJobsParts {
            node: Arc::clone(&self.node),
            data: self.node.data.clone(),
            settings: NodeBatchSettings::default(),
            clock: self.clock.clone(),
            tasks: self.tasks.clone(),
            executable: None,
            instruments: self.counters.clone(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.machine.path(name)
    }

    pub(super) fn set_mode(&self, volume: &str, mode: Mode) {
        let volume = VolumeId::new(volume).unwrap();
        self.node.disks.set_volume_mode(&volume, mode).unwrap();
    }

    pub(super) fn retire(&self, volume: &str) {
        let volume = VolumeId::new(volume).unwrap();
        self.node
            .disks
            .retire_volume(&volume, self.clock.now())
            .unwrap();
    }

    /// Stores a file.
    pub(super) fn store(&self, name: &str, bytes: &[u8]) {
        self.machine.store(&self.node, name, bytes).unwrap();
    }
}
