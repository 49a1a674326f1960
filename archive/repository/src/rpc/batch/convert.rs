//! Conversions between jobs and the wire: submissions, and the states of jobs.

use std::time::Duration;

use archive_jobs::{BatchPhase, Ending, JobFile, JobRow, NodeProgress};
use archive_model::{JobId, JobLimits, JobSpec, Program, ReplicaId, Root};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::batch_run::write_spec;
use proto_archive::wire::batch_status::{Node, State};
use proto_archive::{convert as fields, wire};

use crate::settings::BatchSettings;

/// Reads the id of a job.
pub(super) fn id(text: &str) -> Result<JobId, InvalidMessage> {
    if text.is_empty() {
        return Err(InvalidMessage::missing("id"));
    }
    JobId::new(text).map_err(|error| InvalidMessage::invalid("id", error.to_string()))
}

/// Reads the program.
pub(super) fn program(spec: &wire::BatchSpec) -> Result<Program, InvalidMessage> {
    let component: Option<Root> = fields::optional_root("component", &spec.component)?;
    match (spec.job.as_str(), component) {
        ("", Some(root)) => Ok(Program::Component(root)),
        ("", None) => Err(InvalidMessage::missing("job")),
        (_, Some(_)) => Err(InvalidMessage::invalid(
            "component",
            "is set for a built-in job; leave it empty",
        )),
        (_, None) if spec.component_size > 0 => Err(InvalidMessage::invalid(
            "component_size",
            "is set for a built-in job; leave it empty",
        )),
        (job, None) => Ok(Program::BuiltIn(job.to_owned())),
    }
}

/// Reads the specification of a job. Missing fields are taken from the `known` job of this id, else from the settings.
pub(super) fn spec(
    wire: &wire::BatchSpec,
    replica: ReplicaId,
    known: Option<&JobRow>,
    settings: &BatchSettings,
) -> Result<JobSpec, InvalidMessage> {
    let most = JobLimits {
        time: settings.time.duration(),
        file_time: settings.file_time.duration(),
        memory: settings.memory.bytes(),
        output: settings.output.bytes(),
    };
    let default = known.map_or(most, |row| row.spec.limits);
    let time = |field, asked: u64, default: Duration, most: Duration| {
        let asked = match asked {
            0 => default,
            asked => Duration::from_millis(asked),
        };
        bounded(field, asked, default.max(most))
    };
    let bytes = |field, asked: u64, default: u64, most: u64| {
        let asked = if asked == 0 { default } else { asked };
        bounded(field, asked, default.max(most))
    };
    let names = fields::name_list("names", &wire.names)?;
    if names.is_some() && !wire.files.is_empty() {
        let why = "are set together with `files`; select files by an expression or by their names, not both";
        return Err(InvalidMessage::invalid("names", why));
    }
    let keep = (wire.keep_ms > 0).then(|| Duration::from_millis(wire.keep_ms));
    let longest = known
        .and_then(|row| row.spec.keep)
        .unwrap_or_default()
        .max(settings.keep.duration());
    let arguments = wire.arguments.iter();
    Ok(JobSpec {
        program: program(wire)?,
        arguments: arguments
            .map(|argument| (argument.name.clone(), argument.value.clone()))
            .collect(),
        files: wire.files.clone(),
        names,
        replica,
        limits: JobLimits {
            time: time("time_ms", wire.time_ms, default.time, most.time)?,
            file_time: time(
                "file_time_ms",
                wire.file_time_ms,
                default.file_time,
                most.file_time,
            )?,
            memory: bytes("memory", wire.memory, default.memory, most.memory)?,
            output: bytes("output", wire.output, default.output, most.output)?,
        },
        keep: keep
            .map(|keep| bounded("keep_ms", keep, longest))
            .transpose()?,
    })
}

fn bounded<T: PartialOrd + std::fmt::Debug + Copy>(
    field: &'static str,
    asked: T,
    most: T,
) -> Result<T, InvalidMessage> {
    if asked > most {
        let why = format!("the repository allows at most {most:?}");
        return Err(InvalidMessage::invalid(field, why));
    }
    Ok(asked)
}

/// Writes the state of a job.
pub(super) fn status(row: &JobRow, nodes: Vec<(NodeProgress, Timestamp)>) -> wire::BatchStatus {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    let (life, checkpoint) = (&row.life, &row.checkpoint);
    let gaps = life.gaps.iter().map(|gap| wire::Gap {
        replica: row.spec.replica.to_string(),
        node: gap.node.clone(),
        volume: gap.volume.clone(),
        reason: gap.reason.clone(),
    });
    let nodes = nodes.into_iter().map(|(progress, seen)| Node {
        node: progress.node.to_string(),
        files: progress.files,
        files_total: progress.files_total,
        bytes: progress.bytes,
        seen: seen.to_string(),
    });
    wire::BatchStatus {
        id: row.id.to_string(),
        spec: Some(write_spec(&row.spec, row.component_size)),
        state: state(row).into(),
        reason: life.reason.clone(),
        who: row.who.clone(),
        submitted: row.submitted.to_string(),
        started: time(row.started),
        ended: time(row.ended),
        expires: time(row.expires),
        files: checkpoint.files,
        failed: checkpoint.failed,
        unread: life.unread,
        records: checkpoint.records,
        bytes: checkpoint.bytes,
        output_bytes: checkpoint.output,
        result_bytes: if has_result(row) {
            left(row, wire::batch_output_request::What::Result).1
        } else {
            0
        },
        error_bytes: checkpoint.errors,
        manifest_bytes: checkpoint.manifest,
        gaps: gaps.collect(),
        nodes: nodes.collect(),
        restarts: life.restarts,
    }
}

/// Returns the requested file of a job, and its length.
pub(super) fn left(row: &JobRow, what: wire::batch_output_request::What) -> (JobFile, u64) {
    use wire::batch_output_request::What;
    match (what, row.result) {
        (What::Errors, _) => (JobFile::Errors, row.checkpoint.errors),
        (What::Manifest, _) => (JobFile::Manifest, row.checkpoint.manifest),
        (What::Result | What::Unspecified, Some(length)) if has_result(row) => {
            (JobFile::Result, length)
        }
        (What::Result | What::Unspecified, _) => (JobFile::Output, row.checkpoint.output),
    }
}

fn has_result(row: &JobRow) -> bool {
    match row.life.phase {
        BatchPhase::Ended(Ending::Done | Ending::Partial) => true,
        BatchPhase::Ended(Ending::Failed | Ending::Cancelled)
        | BatchPhase::Waiting
        | BatchPhase::Reading
        | BatchPhase::Comparing
        | BatchPhase::Closing(_)
        | BatchPhase::Reducing => false,
    }
}

fn state(row: &JobRow) -> State {
    match row.life.phase {
        BatchPhase::Waiting => State::Queued,
        BatchPhase::Reading if row.life.silent => State::Queued,
        BatchPhase::Reading | BatchPhase::Comparing => State::Running,
        BatchPhase::Reducing => State::Reducing,
        BatchPhase::Closing(_) => State::Closing,
        BatchPhase::Ended(Ending::Done) => State::Done,
        BatchPhase::Ended(Ending::Partial) => State::Partial,
        BatchPhase::Ended(Ending::Failed) => State::Failed,
        BatchPhase::Ended(Ending::Cancelled) => State::Cancelled,
    }
}
