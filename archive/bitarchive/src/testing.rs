//! Helpers of tests: the machine of a node, whose disks and data directory outlive the node.
//!
//! Owns the options with which a node starts in tests, and the way of a file onto it. Other crates see it with the
//! feature `testing`. Machines are in memory, where a sync costs nothing: disks that fail have tests of their own, and
//! whole archives are tested on real ones.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "helpers of tests"
)]

use std::path::{Path, PathBuf};

use archive_durable::FinalPaths;
use archive_model::{FileName, NodeId, ReplicaId, UploadId, VolumeId};
use archive_proof::testing::{signing_key, trust_in};
use archive_proof::{Admission, Envelope};
use jiff::Timestamp;
use tempfile::TempDir;

use crate::catalog::CatalogEntry;
use crate::error::NodeError;
use crate::layout::Layout;
use crate::node::{Node, NodeOptions};
use crate::reconcile::ReconcileReport;
use crate::settings::AtticSettings;

/// Makes a directory in memory, where that is possible.
pub fn directory() -> TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory
        .or_else(|_none| tempfile::tempdir())
        .expect("a directory")
}

/// Returns the options of the node `n1` of the replica `one`, which trusts the key of tests and reserves nothing.
pub fn options(data: &Path, volumes: Vec<PathBuf>) -> NodeOptions {
    NodeOptions {
        node: NodeId::new("n1").expect("an id"),
        replica: ReplicaId::new("one").expect("an id"),
        data: data.to_owned(),
        volumes,
        reserve: 0,
        trust: trust_in(&signing_key()),
        attic: AtticSettings::default(),
    }
}

/// The machine of a node: a directory for each disk, and `data` for the rest.
///
/// ```
/// use archive_bitarchive::testing::NodeMachine;
///
/// let machine = NodeMachine::new();
/// let (node, _) = machine.start();
/// machine.store(&node, "a.warc", b"abc")?;
/// drop(node);
/// assert_eq!(machine.start().1.unchanged, 1);
/// # Ok::<(), archive_bitarchive::NodeError>(())
/// ```
#[derive(Debug)]
pub struct NodeMachine {
    directory: TempDir,
    first: String,
    /// The options of the next start.
    pub options: NodeOptions,
    /// The time of the next start, and of what is stored.
    pub now: Timestamp,
}

impl NodeMachine {
    /// Makes a machine with one disk, `disk`, which is the volume `v1`.
    #[expect(clippy::new_without_default, reason = "it makes directories")]
    pub fn new() -> Self {
        let mut machine = Self::with_disks(&["disk"]);
        machine.options.volumes = vec![machine.path("disk")];
        machine.init("v1", "disk");
        machine
    }

    /// Makes a machine with these disks, which no setting names, and which are no volumes yet.
    pub fn with_disks(names: &[&str]) -> Self {
        let directory = directory();
        for name in names.iter().chain(&["data"]) {
            let path = directory.path().join(name);
            archive_durable::directory::make_directory(&path).expect("a directory");
        }
        Self {
            first: (*names.first().expect("a disk")).to_owned(),
            options: options(&directory.path().join("data"), Vec::new()),
            now: Timestamp::from_second(4_000_000_000).expect("a time"),
            directory,
        }
    }

    /// Makes a volume of a disk, as an operator does.
    pub fn init(&self, volume: &str, disk: &str) {
        let (node, _) = self.start();
        let volume = VolumeId::new(volume).expect("an id");
        node.disks
            .init_volume(&self.path(disk), &volume, self.now)
            .expect("a volume");
    }

    /// Returns the path of a disk, of `data`, or of what is in one of them.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts the node.
    pub fn start(&self) -> (Node, ReconcileReport) {
        self.open().expect("the node starts")
    }

    /// Starts the node with these limits on removals.
    pub fn start_with(&self, attic: AtticSettings) -> (Node, ReconcileReport) {
        let options = NodeOptions {
            attic,
            ..self.options.clone()
        };
        Node::open(options, self.now).expect("the node starts")
    }

    /// Starts the node, if it does start.
    ///
    /// # Errors
    ///
    /// Returns the refusal of the node.
    pub fn open(&self) -> Result<(Node, ReconcileReport), NodeError> {
        Node::open(self.options.clone(), self.now)
    }

    /// Returns the paths of a file on the first disk.
    pub fn target(&self, file: &str) -> FinalPaths {
        let name = FileName::new(file).expect("a name");
        Layout::new(&self.path(&self.first)).target_paths(&name)
    }

    /// Stores a file whole, as a repository does.
    ///
    /// # Errors
    ///
    /// Returns the refusal of the node.
    pub fn store(&self, node: &Node, file: &str, bytes: &[u8]) -> Result<CatalogEntry, NodeError> {
        let admission = admission(file, bytes, self.now);
        let size = bytes.len() as u64;
        let mut receiving = node
            .files
            .begin_upload(&admission.upload, &admission.name, size)?;
        receiving.write_all(bytes)?;
        receiving.commit_upload(&sign(&admission), self.now)
    }
}

/// Returns the admission of a file at this time. Its upload has the name of the file in its id.
pub fn admission(file: &str, bytes: &[u8], now: Timestamp) -> Admission {
    let upload = format!("u-{}", file.replace('.', "-"));
    Admission {
        admitted: now,
        upload: UploadId::new(&upload).expect("an id"),
        ..archive_proof::testing::admission(file, bytes)
    }
}

/// Signs an admission with the key that nodes of tests trust.
pub fn sign(admission: &Admission) -> Envelope {
    admission.sign(&signing_key()).expect("signed")
}
