//! The specification of a batch job, in both directions.

use std::time::Duration;

use archive_model::batch::{JobLimits, JobSpec, Program};
use archive_rpc::InvalidMessage;
use bytes::Bytes;

use super::{name_list, optional_root, replica_id, root_bytes, wire_names};
use crate::wire;

/// Writes a time in milliseconds, as messages have it.
pub(crate) fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes the specification of a job. `component_size` is in bytes; 0 for a built-in job.
pub fn write_spec(spec: &JobSpec, component_size: u64) -> wire::BatchSpec {
    let (job, component) = match &spec.program {
        Program::BuiltIn(name) => (name.clone(), Bytes::new()),
        Program::Component(root) => (String::new(), root_bytes(root)),
    };
    let arguments = spec.arguments.iter();
    let arguments = arguments.map(|(name, value)| wire::batch_spec::Value {
        name: name.clone(),
        value: value.clone(),
    });
    wire::BatchSpec {
        job,
        component,
        component_size,
        arguments: arguments.collect(),
        files: spec.files.clone(),
        replica: spec.replica.to_string(),
        time_ms: whole_millis(spec.limits.time),
        file_time_ms: whole_millis(spec.limits.file_time),
        memory: spec.limits.memory,
        output: spec.limits.output,
        names: wire_names(spec.names.as_ref()),
        keep_ms: spec.keep.map_or(0, whole_millis),
    }
}

/// Reads the specification of a job, as the repository was given it or tells it.
///
/// # Errors
/// The first field that is missing or invalid. Limits may be 0, and the expression and the arguments are not checked.
pub fn read_spec(spec: wire::BatchSpec) -> Result<JobSpec, InvalidMessage> {
    let program = read_program(&spec)?;
    let names = name_list("names", &spec.names)?;
    if names.is_some() && !spec.files.is_empty() {
        let reason = "are set together with `files`; select files by an expression or by their names, not both";
        return Err(InvalidMessage::invalid_field("names", reason));
    }
    let pair = |one: wire::batch_spec::Value| (one.name, one.value);
    Ok(JobSpec {
        program,
        arguments: spec.arguments.into_iter().map(pair).collect(),
        files: spec.files,
        names,
        replica: replica_id(&spec.replica)?,
        limits: JobLimits {
            time: Duration::from_millis(spec.time_ms),
            file_time: Duration::from_millis(spec.file_time_ms),
            memory: spec.memory,
            output: spec.output,
        },
        keep: (spec.keep_ms > 0).then(|| Duration::from_millis(spec.keep_ms)),
    })
}

fn read_program(spec: &wire::BatchSpec) -> Result<Program, InvalidMessage> {
    let is_set = "is set for a built-in job; leave it empty";
    match (
        spec.job.as_str(),
        optional_root("component", &spec.component)?,
    ) {
        ("", Some(root)) => Ok(Program::Component(root)),
        ("", None) => Err(InvalidMessage::missing_field("job")),
        (_, Some(_)) => Err(InvalidMessage::invalid_field("component", is_set)),
        (_, None) if spec.component_size > 0 => {
            Err(InvalidMessage::invalid_field("component_size", is_set))
        }
        (job, None) => Ok(Program::BuiltIn(job.to_owned())),
    }
}
