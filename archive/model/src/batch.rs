//! A batch job, and its outcome, as every part speaks of it.
//!
//! A job is one program over many files of one replica. It sees one file at a time; what it writes about a file is kept
//! in the order of the names, so that its output does not depend on how many nodes there are or which was faster. What
//! spans files is its reduce step.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checksum::Root;
use crate::closed_set::closed_set;
use crate::file_name::FileName;
use crate::name_list::NameList;
use crate::name_pattern::{InvalidPattern, NamePattern};
use crate::replica::{InvalidId, NodeId, ReplicaId, UploadId, VolumeId};

/// Which job. Made once, by the client that submits it: submitting again under the same id is the same job.
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

    /// The id as text.
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
    /// A built-in job of this name.
    BuiltIn(String),
    /// A WebAssembly component, by BLAKE3 of its bytes.
    Component(Root),
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
    /// 7 days, 10 minutes, 512 MiB, 64 GiB.
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
    /// The program.
    pub program: Program,
    /// Its arguments: name and value, each name once, in the order given.
    pub arguments: Vec<(String, String)>,
    /// A regular expression that the whole name of a file must match; empty: every file, or those of `names`.
    pub files: String,
    /// The files by their names, instead of an expression.
    pub names: Option<NameList>,
    /// Over the files of which replica.
    pub replica: ReplicaId,
    /// Its limits.
    pub limits: JobLimits,
    /// The time for which its output is kept after its end; `None`: as the repository is set.
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
    /// Files by their names, whether anybody has them or not.
    Names(NameList),
}

impl FileSelection {
    /// Returns whether a file of this name is meant.
    pub fn matches(&self, name: &FileName) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.matches(name.as_str()),
            Self::Names(names) => names.contains(name),
        }
    }
}

impl Default for FileSelection {
    /// Every file.
    fn default() -> Self {
        Self::Pattern(NamePattern::default())
    }
}

/// Jobs of one lane wait for each other and share its places; those of different lanes share nothing but the machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobLane {
    /// Jobs that people submit, which may take days.
    #[default]
    Research,
    /// Jobs of the index, which follows the archive within seconds.
    Index,
}

impl JobLane {
    /// The number of jobs of the index that run at once over one replica, at its monitor and on each node: one that
    /// follows what is stored, and one that rebuilds beside it. The same number for all three, so that none refuses
    /// what another sends.
    pub const MOST_OF_INDEX: usize = 2;

    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Research, Self::Index];
}

closed_set! {
    /// The way in which the outputs of all files become one: the last step of a job.
    Reduce {
        /// One after the other, by the names of the files.
        Concatenate = "concatenate",
        /// Their lines, sorted by bytes.
        Sort = "sort",
        /// Their lines, sorted by bytes, each once.
        Unique = "unique",
        /// Lines `key TAB number [TAB number …]`: the numbers of each key added up, sorted by key.
        Sum = "sum",
        /// The component's own `reduce`.
        Component = "component",
    }
}

/// The reason why something of a file is not in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FailureKind {
    /// Bytes of the file are not what was admitted, or cannot be read: they were not shown to the job. Or a node read
    /// another file under its name than the archive has: the job was shown that one.
    Damaged,
    /// The file is no archive file, or a record in it is broken.
    Format,
    /// The job itself said so.
    Job,
    /// A component did what it must not: trapped, or went over a limit.
    Component,
    /// The file is known to be in the replica and no node has read it.
    Unread,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Damaged,
        Self::Format,
        Self::Job,
        Self::Component,
        Self::Unread,
    ];

    /// The kind in one word, for machines and people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Format => "format",
            Self::Job => "job",
            Self::Component => "component",
            Self::Unread => "unread",
        }
    }
}

/// The reason why something of a file is not in the output, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFailure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// Where in the file, in bytes; nothing: the file as a whole.
    pub offset: Option<u64>,
    /// Why, for people; at most 1000 characters.
    pub reason: String,
}

/// The outcome of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOutcome {
    /// The file.
    pub name: FileName,
    /// The node that read it.
    pub node: NodeId,
    /// The volume it lay on.
    pub volume: VolumeId,
    /// The root that its bytes were proven against.
    pub root: Root,
    /// Its size in bytes.
    pub size: u64,
    /// The number of records that the job was shown; 0 of a job that is shown none.
    pub records: u64,
    /// The number of bytes that the job wrote about it.
    pub output: u64,
    /// The failures; at most [`MOST_FAILURES`]. Empty: nothing failed.
    pub failures: Vec<FileFailure>,
    /// The number of further failures.
    pub more_failures: u64,
}

/// The most failures that are kept of one file.
pub const MOST_FAILURES: usize = 100;
