//! The state of a batch job, and the progress of its nodes, in both directions.
//!
//! # Errors
//! Every function that reads names the first field that is missing or invalid.

use archive_model::{JobId, JobNode, JobSpec, JobStatus, Program};
use archive_rpc::InvalidMessage;

use super::{
    gap_message, job_state, node_id, optional_time, plain_text, read_gap, read_spec, read_time,
    text_of, visible_text, write_spec,
};
use crate::wire;
use crate::wire::batch_run_response::Progress;
use crate::wire::batch_status::{Node, State};

/// Reads the id of a job.
pub fn job_id(value: &str) -> Result<JobId, InvalidMessage> {
    if value.is_empty() {
        return Err(InvalidMessage::missing_field("id"));
    }
    JobId::new(value).map_err(|error| InvalidMessage::invalid_field("id", error.to_string()))
}

/// Reads the progress that a node reports. It has no time: the receiver knows when it came.
pub fn job_progress(message: &Progress) -> Result<JobNode, InvalidMessage> {
    Ok(JobNode {
        node: node_id(&message.node)?,
        files: message.files,
        files_total: counted(message.files_total),
        bytes: message.bytes,
        seen: None,
    })
}

/// Writes the progress that a node reports.
pub fn job_progress_message(progress: JobNode) -> Progress {
    Progress {
        node: progress.node.into(),
        files: progress.files,
        files_total: progress.files_total.unwrap_or_default(),
        bytes: progress.bytes,
    }
}

/// Reads the state of a job. Its texts are made fit for people.
pub fn job_status(message: wire::BatchStatus) -> Result<JobStatus, InvalidMessage> {
    let spec = message
        .spec
        .ok_or_else(|| InvalidMessage::missing_field("spec"))?;
    let gaps = message.gaps.iter().map(read_gap);
    let nodes = message.nodes.iter().map(job_node);
    Ok(JobStatus {
        id: job_id(&message.id)?,
        spec: plain_spec(read_spec(spec)?),
        state: job_state("state", message.state)?,
        reason: plain_text(&message.reason),
        who: visible_text(&message.who),
        submitted: read_time("submitted", &message.submitted)?,
        started: optional_time("started", &message.started)?,
        ended: optional_time("ended", &message.ended)?,
        expires: optional_time("expires", &message.expires)?,
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

/// Writes the state of a job. `component_size` is in bytes; 0 for a built-in job.
pub fn job_status_message(status: JobStatus, component_size: u64) -> wire::BatchStatus {
    wire::BatchStatus {
        id: status.id.to_string(),
        spec: Some(write_spec(&status.spec, component_size)),
        state: State::from(status.state).into(),
        reason: status.reason.unwrap_or_default(),
        who: status.who,
        submitted: status.submitted.to_string(),
        started: text_of(status.started),
        ended: text_of(status.ended),
        expires: text_of(status.expires),
        files: status.files,
        failed: status.failed,
        unread: status.unread,
        records: status.records,
        bytes: status.bytes,
        output_bytes: status.output_bytes,
        result_bytes: status.result_bytes,
        error_bytes: status.error_bytes,
        manifest_bytes: status.manifest_bytes,
        gaps: status.gaps.into_iter().map(gap_message).collect(),
        nodes: status.nodes.into_iter().map(job_node_message).collect(),
        restarts: status.restarts,
    }
}

fn job_node(message: &Node) -> Result<JobNode, InvalidMessage> {
    Ok(JobNode {
        node: node_id(&message.node)?,
        files: message.files,
        files_total: counted(message.files_total),
        bytes: message.bytes,
        seen: optional_time("seen", &message.seen)?,
    })
}

fn job_node_message(node: JobNode) -> Node {
    Node {
        node: node.node.into(),
        files: node.files,
        files_total: node.files_total.unwrap_or_default(),
        bytes: node.bytes,
        seen: text_of(node.seen),
    }
}

/// Returns the number of files of a node; 0 stands for a number that is not counted yet.
fn counted(total: u64) -> Option<u64> {
    (total > 0).then_some(total)
}

/// Makes the texts of a specification fit for people.
fn plain_spec(spec: JobSpec) -> JobSpec {
    let arguments = spec.arguments.iter();
    JobSpec {
        program: match spec.program {
            Program::BuiltIn(name) => Program::BuiltIn(visible_text(&name)),
            Program::Component(root) => Program::Component(root),
        },
        arguments: arguments
            .map(|(name, value)| (visible_text(name), visible_text(value)))
            .collect(),
        files: visible_text(&spec.files),
        ..spec
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use archive_model::{Gap, JobLimits, JobState, NameList, Root};
    use jiff::Timestamp;

    use super::*;

    fn spec(program: Program, names: Option<NameList>, files: &str) -> JobSpec {
        JobSpec {
            program,
            arguments: vec![("a".to_owned(), "b".to_owned())],
            files: files.to_owned(),
            names,
            replica: "one".parse().unwrap(),
            limits: JobLimits {
                time: Duration::from_millis(1),
                file_time: Duration::from_millis(2),
                memory: 3,
                output: 4,
            },
            keep: Some(Duration::from_millis(5)),
        }
    }

    fn status(spec: JobSpec) -> JobStatus {
        let time = |second| Some(Timestamp::from_second(second).unwrap());
        let node = |files_total, seen| JobNode {
            node: "n".parse().unwrap(),
            files: 6,
            files_total,
            bytes: 7,
            seen,
        };
        JobStatus {
            id: JobId::new("j-1").unwrap(),
            spec,
            state: JobState::Closing,
            reason: Some("why".to_owned()),
            who: "researcher/rita".to_owned(),
            submitted: Timestamp::UNIX_EPOCH,
            started: time(1),
            ended: time(2),
            expires: time(3),
            files: 8,
            failed: 9,
            unread: 10,
            records: 11,
            bytes: 12,
            output_bytes: 13,
            result_bytes: 14,
            error_bytes: 15,
            manifest_bytes: 16,
            gaps: vec![Gap::of_replica("one".parse().unwrap(), "off".to_owned())],
            nodes: vec![node(Some(17), time(18)), node(None, None)],
            restarts: 19,
        }
    }

    fn message() -> wire::BatchStatus {
        let built_in = Program::BuiltIn("file-list".to_owned());
        job_status_message(status(spec(built_in, None, "")), 0)
    }

    /// Fails if a field of a job is lost or exchanged on its way.
    #[test]
    fn job_status_is_read_as_written() {
        let names = NameList::new(vec!["a.warc".parse().unwrap()]).unwrap();
        let component = Program::Component(Root::from_bytes([7; 32]));
        let built_in = Program::BuiltIn("file-list".to_owned());
        for (spec, size) in [
            (spec(component, Some(names), ""), 20),
            (spec(built_in, None, "x.*"), 0),
        ] {
            let status = status(spec);
            let message = job_status_message(status.clone(), size);
            assert_eq!(message.spec.as_ref().unwrap().component_size, size);
            assert_eq!(job_status(message), Ok(status));
        }
    }

    /// Fails if a field that is missing or invalid is believed, or the error does not name it.
    #[test]
    fn invalid_job_status_is_refused_by_field() {
        type Break = fn(&mut wire::BatchStatus);
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
            let error = job_status(broken).unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
        let mut steering = message();
        steering.who = "researcher/\u{1b}[31m".to_owned();
        steering.spec.as_mut().unwrap().job = "a\u{1b}".to_owned();
        let read = job_status(steering).unwrap();
        assert_eq!(read.who, "researcher/ [31m");
        assert_eq!(read.spec.program, Program::BuiltIn("a ".to_owned()));
    }

    /// Fails if the progress of a node is lost on its way, or files that nobody has counted are taken for none.
    #[test]
    fn job_progress_is_read_as_written() {
        for files_total in [None, Some(2)] {
            let progress = JobNode {
                node: "n".parse().unwrap(),
                files: 1,
                files_total,
                bytes: 3,
                seen: None,
            };
            let message = job_progress_message(progress.clone());
            assert_eq!(job_progress(&message), Ok(progress));
        }
    }
}
