//! A batch job, and its outcome, as every part speaks of it.
//!
//! A job is a program over many files of one replica. It sees one file at a time; its output about a file is kept in
//! the order of the names, so that it does not depend on the number or speed of nodes. A reduce step joins the outputs
//! of all files.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checksum::Root;
use crate::closed_set::closed_set;
use crate::file_name::FileName;
use crate::name_list::NameList;
use crate::name_pattern::{InvalidPattern, NamePattern};
use crate::replica::{InvalidId, NodeId, ReplicaId, UploadId, VolumeId};

/// The id of a job, made once by the client that submits it: submitting again under the same id is the same job.
///
/// ```
/// use archive_model::JobId;
///
/// assert_eq!(JobId::new("titles-2026")?.to_string(), "titles-2026");
/// assert!(JobId::new("Titles 2026").is_err());
/// # Ok::<(), archive_model::InvalidId>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(UploadId);

impl JobId {
    /// Accepts what every id accepts: 1–64 characters of `a–z`, `0–9` and inner `-`.
    ///
    /// # Errors
    ///
    /// [`InvalidId`] if the text is not an id.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        UploadId::new(text).map(Self)
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobId({})", self.0)
    }
}

/// The program that a job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// A built-in job, by its name.
    BuiltIn(String),
    /// A WebAssembly component, by the BLAKE3 root of its bytes.
    Component(Root),
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => f.write_str(name),
            Self::Component(root) => write!(f, "component {root}"),
        }
    }
}

/// The limits of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLimits {
    /// The time that the whole job may take from its start, waiting not counted before it starts.
    pub time: Duration,
    /// The time that a component may compute for one file (its own computing, not waiting for others).
    pub file_time: Duration,
    /// The most memory that a component may have at once, in bytes.
    pub memory: u64,
    /// The most bytes of output of the whole job, before it is reduced and after.
    pub output: u64,
}

impl Default for JobLimits {
    /// Returns 7 days, 10 minutes for a file, 512 MiB of memory and 64 GiB of output.
    fn default() -> Self {
        Self {
            time: Duration::from_hours(7 * 24),
            file_time: Duration::from_mins(10),
            memory: 512 << 20,
            output: 64 << 30,
        }
    }
}

/// The order for a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The program that the job runs.
    pub program: Program,
    /// The arguments of the job: name and value, each name once, in the order given.
    pub arguments: Vec<(String, String)>,
    /// A regular expression that the whole name of a file must match; empty: every file, or those of `names`.
    pub files: String,
    /// The files by their names, instead of an expression.
    pub names: Option<NameList>,
    /// The replica over whose files the job runs.
    pub replica: ReplicaId,
    /// The limits of the job.
    pub limits: JobLimits,
    /// The time for which the output of the job is kept after its end; `None`: as the repository is set.
    pub keep: Option<Duration>,
}

impl JobSpec {
    /// Returns the files that the job is about.
    ///
    /// # Errors
    /// The expression is not one that names can be held against.
    pub fn selection(&self) -> Result<FileSelection, InvalidPattern> {
        match &self.names {
            Some(names) => Ok(FileSelection::Names(names.clone())),
            None => NamePattern::parse(&self.files).map(FileSelection::Pattern),
        }
    }
}

/// The files that a job is about. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSelection {
    /// Every file whose name matches.
    Pattern(NamePattern),
    /// Files by their names, whether any node has them or not.
    Names(NameList),
}

impl FileSelection {
    /// Returns whether the job is about a file of this name.
    pub fn matches(&self, name: &FileName) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.matches(name.as_str()),
            Self::Names(names) => names.contains(name),
        }
    }
}

impl Default for FileSelection {
    /// Returns the selection of every file.
    fn default() -> Self {
        Self::Pattern(NamePattern::default())
    }
}

/// A class of jobs: jobs of one class wait for each other and share its places; those of different classes share
/// nothing but the machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobClass {
    /// Jobs that people submit, which may take days.
    #[default]
    Research,
    /// Jobs of the index, which follows the archive within seconds.
    Index,
}

impl JobClass {
    /// The number of jobs of the index that run at once over one replica, at its monitor and on each node: one that
    /// follows what is stored, and one that rebuilds beside it. The same number for all three, so that none refuses
    /// what another sends.
    pub const MOST_OF_INDEX: usize = 2;

    /// Every class.
    pub const ALL: [Self; 2] = [Self::Research, Self::Index];
}

closed_set! {
    /// The way in which the outputs of all files become one: the last step of a job.
    Reduce {
        /// Joins the outputs, by the names of the files.
        Concatenate = "concatenate",
        /// Sorts the lines of all outputs by bytes.
        Sort = "sort",
        /// Sorts the lines of all outputs by bytes, and keeps each once.
        Unique = "unique",
        /// Adds up the numbers of each key in lines `key TAB number [TAB number …]`, sorted by key.
        Sum = "sum",
        /// Runs the component's own `reduce`.
        Component = "component",
    }
}

closed_set! {
    /// The reason why something of a file is not in the output.
    FailureKind {
        /// Bytes of the file are not what was admitted, or cannot be read: they were not shown to the job. Or a node
        /// read another file under its name than the archive has: the job was shown that one.
        Damaged = "damaged",
        /// The file is no archive file, or a record in it is broken.
        Format = "format",
        /// The job itself reported the failure.
        Job = "job",
        /// A component trapped or went over a limit.
        Component = "component",
        /// The file is known to be in the replica and no node has read it.
        Unread = "unread",
    }
}

/// The reason why something of a file is not in the output, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFailure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The offset of the failure in the file, in bytes; `None`: it is about the file as a whole.
    pub offset: Option<u64>,
    /// The reason for people; at most 1000 characters.
    pub reason: String,
}

/// The outcome of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchFileOutcome {
    /// The file that was read.
    pub name: FileName,
    /// The node that read the file.
    pub node: NodeId,
    /// The volume on which the file lay.
    pub volume: VolumeId,
    /// The root that the bytes of the file were proven against.
    pub root: Root,
    /// The size of the file in bytes.
    pub size: u64,
    /// The number of records that the job was shown; 0 if the job is shown no records.
    pub records: u64,
    /// The number of bytes that the job wrote about the file.
    pub output: u64,
    /// The failures; at most [`MOST_FAILURES`]. Empty: nothing failed.
    pub failures: Vec<FileFailure>,
    /// The number of further failures.
    pub more_failures: u64,
}

/// The most failures that are kept of one file.
pub const MOST_FAILURES: usize = 100;
