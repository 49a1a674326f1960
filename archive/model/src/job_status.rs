//! The state of a batch job, as the archive reports it.
//!
//! Owns the stages of a job, and the JSON that `holdfast batch --json` prints of it. Does not decide when a job reaches
//! a stage: the repository does.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::batch::{JobId, JobSpec, Program};
use crate::checksum::Root;
use crate::closed_set::closed_set;
use crate::gap::Gap;
use crate::name_list::NameList;
use crate::replica::{NodeId, ReplicaId};

closed_set! {
    /// The stage that a job has reached.
    JobState {
        /// The job waits for its turn, or for a monitor.
        Queued = "queued",
        /// The job reads files.
        Running = "running",
        /// The job makes its result.
        Reducing = "reducing",
        /// The job ends early, and counts the files that were not read.
        Closing = "closing",
        /// The job has read every file. Some may have failed.
        Done = "done",
        /// The job went to its end, and some files were read by no node.
        Partial = "partial",
        /// The job could not go to its end.
        Failed = "failed",
        /// A person cancelled the job.
        Cancelled = "cancelled",
    }
}

impl JobState {
    /// Returns whether the job has ended: its state does not change any more.
    pub const fn has_ended(self) -> bool {
        match self {
            Self::Done | Self::Partial | Self::Failed | Self::Cancelled => true,
            Self::Queued | Self::Running | Self::Reducing | Self::Closing => false,
        }
    }
}

closed_set! {
    /// An output of a job.
    JobOutput {
        /// The result; of a job that failed or was cancelled, the output as far as it came, not reduced.
        Result = "result",
        /// The failures: a JSON document a line.
        Errors = "errors",
        /// The files that were read: a JSON document a line, the first about the job.
        Manifest = "manifest",
    }
}

/// The work of one node since the run of a job last began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobNode {
    /// The node that works.
    pub node: NodeId,
    /// The number of files that the node has finished.
    pub files: u64,
    /// The number of files that the node has to read; absent if they are not counted yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_total: Option<u64>,
    /// The bytes of files that the node has read.
    pub bytes: u64,
    /// When the node last reported; absent in the report itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Timestamp>,
}

/// The state of a job. The JSON is what `holdfast batch status --json` prints.
///
/// ```
/// use archive_model::JobState;
/// assert!(JobState::Partial.has_ended());
/// assert_eq!(JobState::Closing.as_str(), "closing");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobStatus {
    /// The id of the job.
    pub id: JobId,
    /// The order for the job, as the archive accepted it.
    #[serde(serialize_with = "spec_json")]
    pub spec: JobSpec,
    /// The stage that the job has reached.
    pub state: JobState,
    /// The reason why the job waits, is closing, failed or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The person or part that submitted the job, as `role/name`.
    pub who: String,
    /// When the job was submitted.
    pub submitted: Timestamp,
    /// When the job began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When the job ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The time until which the outputs of the job are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The number of files whose output the repository has.
    pub files: u64,
    /// The number of those files that have failures.
    pub failed: u64,
    /// The number of files that the replica should have and no node has read.
    pub unread: u64,
    /// The number of records that the job was shown.
    pub records: u64,
    /// The bytes of the files that were read.
    pub bytes: u64,
    /// The bytes of the output before it was reduced.
    pub output_bytes: u64,
    /// The bytes of the result.
    pub result_bytes: u64,
    /// The bytes of the list of errors.
    pub error_bytes: u64,
    /// The bytes of the manifest.
    pub manifest_bytes: u64,
    /// The nodes and volumes that were not read.
    pub gaps: Vec<Gap>,
    /// The nodes that work for the job.
    pub nodes: Vec<JobNode>,
    /// The number of times that the job was begun again.
    pub restarts: u64,
}

impl JobStatus {
    /// Returns whether the job has ended and nothing is missing in its result.
    pub const fn is_whole(&self) -> bool {
        matches!(self.state, JobState::Done) && self.failed == 0
    }
}

/// The JSON of an order: the program and the limits are fields of the order itself.
#[derive(Serialize)]
struct SpecJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<Root>,
    arguments: &'a [(String, String)],
    #[serde(skip_serializing_if = "str::is_empty")]
    files: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<&'a NameList>,
    replica: &'a ReplicaId,
    time: Duration,
    file_time: Duration,
    memory: u64,
    output: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep: Option<Duration>,
}

/// Writes the order as it is printed. Its own form is that of the row on disk.
fn spec_json<S: Serializer>(spec: &JobSpec, serializer: S) -> Result<S::Ok, S::Error> {
    let (job, component) = match &spec.program {
        Program::BuiltIn(name) => (Some(name.as_str()), None),
        Program::Component(root) => (None, Some(*root)),
    };
    let json = SpecJson {
        job,
        component,
        arguments: &spec.arguments,
        files: &spec.files,
        names: spec.names.as_ref(),
        replica: &spec.replica,
        time: spec.limits.time,
        file_time: spec.limits.file_time,
        memory: spec.limits.memory,
        output: spec.limits.output,
        keep: spec.keep,
    };
    json.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::JobLimits;

    fn status(spec: JobSpec) -> JobStatus {
        JobStatus {
            id: JobId::new("j-1").unwrap(),
            spec,
            state: JobState::Done,
            reason: None,
            who: "researcher/rita".to_owned(),
            submitted: Timestamp::UNIX_EPOCH,
            started: None,
            ended: None,
            expires: None,
            files: 1,
            failed: 0,
            unread: 2,
            records: 3,
            bytes: 4,
            output_bytes: 5,
            result_bytes: 6,
            error_bytes: 7,
            manifest_bytes: 8,
            gaps: Vec::new(),
            nodes: Vec::new(),
            restarts: 9,
        }
    }

    fn spec(program: Program) -> JobSpec {
        JobSpec {
            program,
            arguments: vec![("a".to_owned(), "b".to_owned())],
            files: String::new(),
            names: None,
            replica: "one".parse().unwrap(),
            limits: JobLimits {
                time: Duration::from_millis(1500),
                file_time: Duration::from_secs(2),
                memory: 3,
                output: 4,
            },
            keep: None,
        }
    }

    /// Fails if a script that reads the JSON of a job finds another field, or other words in one.
    #[test]
    fn json_of_job_keeps_its_fields() {
        let json = |spec| serde_json::to_string(&status(spec)).unwrap();
        let limits = r#""time":{"secs":1,"nanos":500000000},"file_time":{"secs":2,"nanos":0},"memory":3,"output":4"#;
        let rest = r#""state":"done","who":"researcher/rita","submitted":"1970-01-01T00:00:00Z","files":1,"failed":0,"unread":2,"records":3,"bytes":4,"output_bytes":5,"result_bytes":6,"error_bytes":7,"manifest_bytes":8,"gaps":[],"nodes":[],"restarts":9}"#;
        assert_eq!(
            json(spec(Program::BuiltIn("checksum".to_owned()))),
            format!(
                r#"{{"id":"j-1","spec":{{"job":"checksum","arguments":[["a","b"]],"replica":"one",{limits}}},{rest}"#
            )
        );
        let names = NameList::new(vec!["a.warc".parse().unwrap()]).unwrap();
        let component = JobSpec {
            files: "x.*".to_owned(),
            names: Some(names),
            keep: Some(Duration::from_secs(5)),
            ..spec(Program::Component(Root::from_bytes([0; 32])))
        };
        let digest = "0".repeat(64);
        assert_eq!(
            json(component),
            format!(
                r#"{{"id":"j-1","spec":{{"component":"{digest}","arguments":[["a","b"]],"files":"x.*","names":["a.warc"],"replica":"one",{limits},"keep":{{"secs":5,"nanos":0}}}},{rest}"#
            )
        );
    }

    /// Fails if a job with failures is called whole, or one that is at work is called ended.
    #[test]
    fn only_done_job_without_failures_is_whole() {
        let is_whole = |state, failed| {
            let status = JobStatus {
                state,
                failed,
                ..status(spec(Program::BuiltIn("checksum".to_owned())))
            };
            status.is_whole()
        };
        assert!(is_whole(JobState::Done, 0));
        assert!(!is_whole(JobState::Done, 1));
        for state in JobState::ALL.iter().copied() {
            assert_eq!(is_whole(state, 0), state == JobState::Done, "{state}");
        }
        let ended = JobState::ALL.iter().filter(|state| state.has_ended());
        assert_eq!(ended.count(), 4);
    }
}
