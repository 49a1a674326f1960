//! A node with two volumes and a runner of batch jobs.

use std::path::PathBuf;
use std::sync::Arc;

use archive_bitarchive::settings::NodeBatchSettings;
use archive_bitarchive::{AtticSettings, Node, NodeOptions};
use archive_daemon::{Clock, Metrics, Tasks};
use archive_model::{Digests, FileName, Mode, NodeId, ReplicaId, UploadId, VolumeId};
use archive_proof::{Admission, SigningKey, TrustFile, TrustedKey};
use jiff::Timestamp;

use super::root;
use crate::instruments::JobInstruments;
use crate::node_jobs::{NodeJobs, NodeJobsParts};

/// A node with the volumes `v1` in `one` and `v2` in `two`.
pub(super) struct TestNode {
    directory: tempfile::TempDir,
    pub(super) node: Arc<Node>,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
    pub(super) node_jobs: Arc<NodeJobs>,
    pub(super) counters: JobInstruments,
}

fn key() -> SigningKey {
    SigningKey::from_seed([7; 32])
}

impl TestNode {
    pub(super) fn new() -> Self {
        let in_memory = tempfile::tempdir_in("/dev/shm");
        let directory = in_memory.or_else(|_none| tempfile::tempdir()).unwrap();
        for name in ["data", "one", "two"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let options = NodeOptions {
            node: NodeId::new("n1").unwrap(),
            replica: ReplicaId::new("r").unwrap(),
            data: directory.path().join("data"),
            volumes: Vec::new(),
            reserve: 0,
            trust: TrustFile::new(vec![TrustedKey {
                archive: "test".into(),
                public_key: key().public_key(),
                from: Timestamp::MIN,
                until: None,
            }])
            .unwrap(),
            attic: AtticSettings::default(),
        };
        let clock = Clock::system();
        let (node, _) = Node::open(options, clock.now()).unwrap();
        for (volume, place) in [("v1", "one"), ("v2", "two")] {
            let volume = VolumeId::new(volume).unwrap();
            let path = directory.path().join(place);
            node.init_volume(&path, &volume, clock.now()).unwrap();
        }
        let (node, tasks) = (Arc::new(node), Tasks::new());
        let counters = JobInstruments::new(&Metrics::new()).unwrap();
        let node_jobs = NodeJobs::open(NodeJobsParts {
            node: Arc::clone(&node),
            data: node.data().to_owned(),
            settings: NodeBatchSettings::default(),
            clock: clock.clone(),
            tasks: tasks.clone(),
            executable: None,
            instruments: counters.clone(),
        });
        Self {
            node_jobs: Arc::new(node_jobs.unwrap()),
            directory,
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
            data: self.node.data().to_owned(),
            settings: NodeBatchSettings::default(),
            clock: self.clock.clone(),
            tasks: self.tasks.clone(),
            executable: None,
            instruments: self.counters.clone(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn set_mode(&self, volume: &str, mode: Mode) {
        let volume = VolumeId::new(volume).unwrap();
        self.node.set_volume_mode(&volume, mode).unwrap();
    }

    pub(super) fn retire(&self, volume: &str) {
        let volume = VolumeId::new(volume).unwrap();
        self.node.retire_volume(&volume, self.clock.now()).unwrap();
    }

    /// Stores a file.
    pub(super) fn store(&self, name: &str, bytes: &[u8]) {
        let name = FileName::new(name).unwrap();
        let upload = UploadId::new("u1").unwrap();
        let signed = Admission {
            archive: "test".into(),
            name: name.clone(),
            size: bytes.len() as u64,
            root: root(bytes),
            digests: Digests::default(),
            depositor: "harvester/h1".into(),
            admitted: self.clock.now(),
            upload: upload.clone(),
        }
        .sign(&key())
        .unwrap();
        let size = bytes.len() as u64;
        let mut receiving = self.node.begin(&upload, &name, size).unwrap();
        receiving.write_all(bytes).unwrap();
        receiving.commit(&signed, self.clock.now()).unwrap();
    }
}
