//! The status of a job.

use std::time::Duration;

use archive_model::{Gap, JobId, NameList, NodeId, ReplicaId, Root};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::wire::batch_status::State;
use proto_archive::{convert, wire};
use serde::Serialize;

use crate::error::plain;
use crate::file_status::text;

/// The stage that a job has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// The job waits for its turn, or for a monitor.
    Queued,
    /// The job reads files.
    Running,
    /// The job makes its result.
    Reducing,
    /// The job ends early, and counts the files that were not read.
    Closing,
    /// The job has read every file. Some may have failed.
    Done,
    /// The job went to its end, and some files were read by no node.
    Partial,
    /// The job could not go to its end.
    Failed,
    /// A person cancelled the job.
    Cancelled,
}

impl JobState {
    /// Returns the state in one word, as in listings.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Reducing => "reducing",
            Self::Closing => "closing",
            Self::Done => "done",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns whether the job has ended.
    pub const fn has_ended(self) -> bool {
        matches!(
            self,
            Self::Done | Self::Partial | Self::Failed | Self::Cancelled
        )
    }

    fn read(value: i32) -> Result<Self, InvalidMessage> {
        match State::try_from(value) {
            Ok(State::Queued) => Ok(Self::Queued),
            Ok(State::Running) => Ok(Self::Running),
            Ok(State::Reducing) => Ok(Self::Reducing),
            Ok(State::Closing) => Ok(Self::Closing),
            Ok(State::Done) => Ok(Self::Done),
            Ok(State::Partial) => Ok(Self::Partial),
            Ok(State::Failed) => Ok(Self::Failed),
            Ok(State::Cancelled) => Ok(Self::Cancelled),
            Ok(State::Unspecified) | Err(_) => Err(convert::unknown("state", value)),
        }
    }
}

/// The submission of a job, as the archive has taken it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Submitted {
    /// The name of the built-in job; absent: a component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The BLAKE3 root of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<Root>,
    /// The arguments of the job: names and values.
    pub arguments: Vec<(String, String)>,
    /// A regular expression for whole names; absent: every file, or those of `names`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// The files by their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<NameList>,
    /// The replica over whose files the job runs.
    pub replica: ReplicaId,
    /// The time that the whole job may take.
    pub time: Duration,
    /// The time that a component may compute for one file.
    pub file_time: Duration,
    /// The most memory that a component may have, in bytes.
    pub memory: u64,
    /// The most output of the whole job, in bytes.
    pub output: u64,
    /// The time that the outputs of the job are kept after its end; absent if it is as the archive is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<Duration>,
}

/// The work of one node since the run of the job last began.
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
    /// When the node last reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Timestamp>,
}

/// The status of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobStatus {
    /// The id of the job.
    pub id: JobId,
    /// The submission of the job.
    pub spec: Submitted,
    /// The stage that the job has reached.
    pub state: JobState,
    /// The reason why the job waits, is closing, failed or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The person who submitted the job, as `role/name`.
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
    /// The number of files whose output the archive has.
    pub files: u64,
    /// The number of files that have failures.
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
    /// Nodes and volumes that were not read.
    pub gaps: Vec<Gap>,
    /// The nodes at work.
    pub nodes: Vec<JobNode>,
    /// The number of times that the job was begun again.
    pub restarts: u64,
}

impl JobStatus {
    /// Returns whether the job has ended and its result lacks nothing.
    pub const fn is_whole(&self) -> bool {
        matches!(self.state, JobState::Done) && self.failed == 0
    }
}

impl TryFrom<wire::BatchSpec> for Submitted {
    type Error = InvalidMessage;

    fn try_from(message: wire::BatchSpec) -> Result<Self, InvalidMessage> {
        let values = message.arguments.iter();
        Ok(Self {
            job: text(&message.job),
            component: convert::optional_root("component", &message.component)?,
            arguments: values
                .map(|value| (plain(&value.name), plain(&value.value)))
                .collect(),
            files: text(&message.files),
            names: convert::name_list("names", &message.names)?,
            replica: convert::replica_id(&message.replica)?,
            time: Duration::from_millis(message.time_ms),
            file_time: Duration::from_millis(message.file_time_ms),
            memory: message.memory,
            output: message.output,
            keep: (message.keep_ms > 0).then(|| Duration::from_millis(message.keep_ms)),
        })
    }
}

impl TryFrom<wire::batch_status::Node> for JobNode {
    type Error = InvalidMessage;

    fn try_from(message: wire::batch_status::Node) -> Result<Self, InvalidMessage> {
        Ok(Self {
            node: convert::node_id(&message.node)?,
            files: message.files,
            files_total: (message.files_total != 0).then_some(message.files_total),
            bytes: message.bytes,
            seen: convert::optional_time("seen", &message.seen)?,
        })
    }
}

impl TryFrom<wire::BatchStatus> for JobStatus {
    type Error = InvalidMessage;

    fn try_from(message: wire::BatchStatus) -> Result<Self, InvalidMessage> {
        let spec = message
            .spec
            .ok_or_else(|| InvalidMessage::missing("spec"))?;
        let id = JobId::new(&message.id)
            .map_err(|error| InvalidMessage::invalid("id", error.to_string()))?;
        let gaps = message.gaps.iter().map(convert::gap);
        let nodes = message.nodes.into_iter().map(JobNode::try_from);
        Ok(Self {
            id,
            spec: spec.try_into()?,
            state: JobState::read(message.state)?,
            reason: text(&message.reason),
            who: plain(&message.who),
            submitted: convert::time("submitted", &message.submitted)?,
            started: convert::optional_time("started", &message.started)?,
            ended: convert::optional_time("ended", &message.ended)?,
            expires: convert::optional_time("expires", &message.expires)?,
            files: message.files,
            failed: message.failed,
            unread: message.unread,
            records: message.records,
            bytes: message.bytes,
            output_bytes: message.output_bytes,
            result_bytes: message.result_bytes,
            error_bytes: message.error_bytes,
            manifest_bytes: message.manifest_bytes,
            gaps: gaps.collect::<Result<_, _>>()?,
            nodes: nodes.collect::<Result<_, _>>()?,
            restarts: message.restarts,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn message() -> wire::BatchStatus {
        wire::BatchStatus {
            id: "j-1".into(),
            spec: Some(wire::BatchSpec {
                job: "file-list".into(),
                replica: "one".into(),
                ..wire::BatchSpec::default()
            }),
            state: State::Running.into(),
            who: "researcher/rita".into(),
            submitted: "2026-01-02T03:04:05Z".into(),
            ..wire::BatchStatus::default()
        }
    }

    type Break = fn(&mut wire::BatchStatus);

    #[test]
    fn a_status_is_read_field_by_field() {
        let status = JobStatus::try_from(message()).unwrap();
        assert_eq!(
            (status.state, status.spec.files, status.ended),
            (JobState::Running, None, None)
        );
        let cases: [(Break, &str); 6] = [
            (|m| m.id = "../j".into(), "`id`"),
            (|m| m.spec = None, "`spec`"),
            (|m| m.state = 0, "`state`"),
            (|m| m.state = 99, "`state`"),
            (|m| m.submitted.clear(), "`submitted`"),
            (|m| m.ended = "soon".into(), "`ended`"),
        ];
        for (break_it, field) in cases {
            let mut broken = message();
            break_it(&mut broken);
            let error = JobStatus::try_from(broken).unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
    }

    #[test]
    fn only_what_is_whole_is_called_whole() {
        let check = |state: State, failed, whole| {
            let message = wire::BatchStatus {
                state: state.into(),
                failed,
                ..message()
            };
            let status = JobStatus::try_from(message).unwrap();
            assert_eq!(status.is_whole(), whole, "{state:?}");
            status.state.has_ended()
        };
        assert!(check(State::Done, 0, true));
        assert!(check(State::Done, 1, false));
        assert!(check(State::Partial, 0, false));
        assert!(check(State::Failed, 0, false));
        assert!(check(State::Cancelled, 0, false));
        assert!(!check(State::Running, 0, false));
        assert!(!check(State::Queued, 0, false));
        assert!(!check(State::Reducing, 0, false));
    }
}
