//! One node's machine for crash tests: a disk and a data directory that survive whatever happens to the node.
//!
//! The content of a file follows from its name, and its size is the last part of it (`left-20000`). So a reader who
//! finds a file knows what it must be, and no bookkeeping of a test can be wrong about it.
//!
//! # Errors
//!
//! All functions fail if the disk or the node refuses; those that return a second `Result` hand the node's refusal on
//! in it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use archive_bitarchive::testing::options;
use archive_bitarchive::{AtticSettings, CatalogEntry, Node, NodeError, NodeOptions};
use archive_durable::{VolumeProblem, directory};
use archive_model::file_name::MANIFEST_NAME;
use archive_model::{FileName, Root, UploadId, VolumeId};
use archive_proof::Admission;
use archive_proof::testing::signing_key;
use jiff::Timestamp;

pub mod acts;

/// The number of bytes handed to an upload at a time.
const BLOCK: usize = 48 * 1024;

/// A directory with `disk/`, the only volume of a node, and `data/`, where the node keeps the rest.
#[derive(Debug)]
pub struct CrashMachine {
    directory: PathBuf,
}

impl CrashMachine {
    /// Returns the machine in `directory`, as it was left.
    pub fn at(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// Makes a new machine in `directory`, with its volume initialised.
    pub fn prepare(directory: &Path) -> Result<Self> {
        let machine = Self::at(directory);
        for place in [directory, &machine.disk(), &machine.data()] {
            directory::make_directory(place)?;
        }
        let node = machine.start(0)?;
        node.disks
            .volumes
            .init_volume(&machine.disk(), &volume()?)?;
        Ok(machine)
    }

    /// Returns the directory of the machine.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the directory of the volume.
    pub fn disk(&self) -> PathBuf {
        self.directory.join("disk")
    }

    /// Returns the directory in which the node keeps what is not on the volume.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Starts the node. `now` is the time, in seconds.
    pub fn start(&self, now: i64) -> Result<Node> {
        self.start_with(now, 0)
    }

    /// Starts the node with a reserve on its volume, in bytes: with a large one there is no room for a second copy.
    pub fn start_with(&self, now: i64, reserve: u64) -> Result<Node> {
        let options = NodeOptions {
            reserve,
            attic: AtticSettings {
                removals_per_hour: 1_000_000,
                ..AtticSettings::default()
            },
            ..options(&self.data(), vec![self.disk()])
        };
        let (node, _) = Node::open(options, Timestamp::from_second(now)?)?;
        Ok(node)
    }

    /// Returns the files that bear a final name on the disk, manifests apart, with what is in them.
    pub fn files(&self) -> Result<Vec<(FileName, Vec<u8>)>> {
        let mut found = Vec::new();
        for (path, name) in self.list()? {
            if let Ok(name) = FileName::new(&name) {
                let bytes = std::fs::read(&path).with_context(|| format!("{}", path.display()))?;
                found.push((name, bytes));
            }
        }
        Ok(found)
    }

    /// Returns the lines of all manifests, sorted.
    pub fn manifest_lines(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for (path, name) in self.list()? {
            if name == MANIFEST_NAME {
                lines.extend(std::fs::read_to_string(path)?.lines().map(str::to_owned));
            }
        }
        lines.sort_unstable();
        Ok(lines)
    }

    /// Returns the names of the files in `incoming/`.
    pub fn incoming(&self) -> Result<Vec<String>> {
        let listed = directory::list_directory(&self.disk().join("incoming"))?;
        let text = |entry: directory::DirectoryEntry| entry.name.to_string_lossy().into_owned();
        Ok(listed.into_iter().map(text).collect())
    }

    fn list(&self) -> Result<Vec<(PathBuf, String)>> {
        let mut found = Vec::new();
        let top = self.disk().join("files");
        for folder in directory::list_directory(&top)? {
            let folder = top.join(folder.name);
            for entry in directory::list_directory(&folder)? {
                let name = entry.name.to_string_lossy().into_owned();
                found.push((folder.join(&entry.name), name));
            }
        }
        Ok(found)
    }
}

/// Stores the file that `name` stands for, as a repository would: signed, and going on where an earlier attempt of
/// the same upload was cut, if what is there is right.
pub fn store(node: &Node, name: &FileName, now: i64) -> Result<Result<CatalogEntry, NodeError>> {
    let bytes = content(name)?;
    let upload = upload(name)?;
    let signed = admission(name, now)?.sign(&signing_key())?;
    let now = Timestamp::from_second(now)?;
    let send = || {
        let mut receiving = node.files.begin_upload(&upload, name, bytes.len() as u64)?;
        let agreed_length = usize::try_from(receiving.received()).ok().filter(|length| {
            let prefix = bytes.get(..*length);
            prefix.is_some_and(|prefix| root(prefix) == receiving.root_so_far())
        });
        let here = if let Some(length) = agreed_length {
            length
        } else {
            receiving = receiving.keep_prefix(0)?;
            0
        };
        for block in bytes[here..].chunks(BLOCK) {
            receiving.write_all(block)?;
        }
        receiving.commit_upload(&signed, now)
    };
    Ok(send())
}

fn admission(name: &FileName, now: i64) -> Result<Admission> {
    Ok(Admission {
        admitted: Timestamp::from_second(now)?,
        upload: upload(name)?,
        ..archive_proof::testing::admission(name.as_str(), &content(name)?)
    })
}

/// Receives the first `length` bytes of the file that `name` stands for, makes them durable, and hears no more.
pub fn cut(node: &Node, name: &FileName, length: usize) -> Result<()> {
    let bytes = content(name)?;
    let mut receiving = node
        .files
        .begin_upload(&upload(name)?, name, bytes.len() as u64)?;
    receiving.write_all(bytes.get(..length).context("shorter than that")?)?;
    receiving.sync_bytes()?;
    Ok(())
}

/// Comes back with the upload of the file that `name` stands for, and is cut again before the first byte.
pub fn come_back(node: &Node, name: &FileName) -> Result<Result<(), NodeError>> {
    let size = content(name)?.len() as u64;
    Ok(node
        .files
        .begin_upload(&upload(name)?, name, size)
        .map(drop))
}

/// Returns the reason why the node's volume was taken offline after a failed call; `None` if it was not.
pub fn poison(node: &Node) -> Option<String> {
    let problem = node
        .disks
        .volumes
        .list_volumes()
        .into_iter()
        .find_map(|volume| volume.problem);
    problem
        .filter(|problem| matches!(problem, VolumeProblem::Poisoned(_)))
        .map(|problem| problem.to_string())
}

/// Returns the only volume of a machine.
pub fn volume() -> Result<VolumeId> {
    Ok(VolumeId::new("v1")?)
}

/// Returns the bytes of the file that `name` stands for.
pub fn content(name: &FileName) -> Result<Vec<u8>> {
    let size = name.as_str().rsplit('-').next().unwrap_or_default();
    let size = size
        .parse()
        .with_context(|| format!("{name} does not end in a size"))?;
    let mut bytes = vec![0; size];
    blake3::Hasher::new()
        .update(name.as_str().as_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    Ok(bytes)
}

/// Returns the root of `bytes`, computed by another way than the node's.
pub fn root(bytes: &[u8]) -> Root {
    Root::from_bytes(*blake3::hash(bytes).as_bytes())
}

/// Always the same for one name, as for a depositor who continues with an upload.
fn upload(name: &FileName) -> Result<UploadId> {
    let id: String = format!("u-{name}").chars().take(64).collect();
    Ok(UploadId::new(id.trim_end_matches('-'))?)
}
