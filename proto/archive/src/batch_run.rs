//! The messages of a batch job between repository and nodes: orders, and outcomes of files, in both directions.

use std::collections::BTreeSet;
use std::time::Duration;

use archive_model::batch::{JobClass, JobId, JobLimits, JobSpec};
use archive_model::limits::{LARGEST_COMPONENT, LONGEST_ARGUMENTS, LONGEST_REASON, MOST_ARGUMENTS};
use archive_model::{BatchFileOutcome, FileName};
use archive_rpc::InvalidMessage;

use crate::convert::{self, read_spec, whole_millis, write_spec};
use crate::wire;

/// The longest time that a job may take; a job that asks for more gets this time.
const LONGEST_TIME: Duration = Duration::from_hours(366 * 24);

/// A run of a batch job on one node, or its reduce step there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// The id of the job.
    pub id: JobId,
    /// The program of the job, its files and its limits.
    pub spec: JobSpec,
    /// The size of the component in bytes; 0 for a built-in job.
    pub component_size: u64,
    /// The name behind which files are read; `None`: all.
    pub after: Option<FileName>,
    /// The time that the job may still take.
    pub left: Duration,
    /// The class in which the job has its place.
    pub class: JobClass,
}

impl JobRun {
    /// Reads the message that begins a run.
    ///
    /// # Errors
    /// The first field that is missing or invalid.
    pub fn read_open(open: wire::batch_run_request::Open) -> Result<Self, InvalidMessage> {
        let class = if open.of_index {
            JobClass::Index
        } else {
            JobClass::Research
        };
        let after = convert::read_after(&open.after)?;
        Ok(Self {
            after,
            class,
            ..Self::from_parts(&open.id, open.spec, open.left_ms)?
        })
    }

    /// Reads the message that begins a reduce step.
    ///
    /// # Errors
    /// The first field that is missing or invalid, as for [`JobRun::read_open`].
    pub fn read_reduce(open: wire::batch_reduce_request::Open) -> Result<Self, InvalidMessage> {
        Self::from_parts(&open.id, open.spec, open.left_ms)
    }

    fn from_parts(
        id: &str,
        spec: Option<wire::BatchSpec>,
        left_ms: u64,
    ) -> Result<Self, InvalidMessage> {
        let id = convert::job_id(id)?;
        let spec = spec.ok_or_else(|| InvalidMessage::missing_field("spec"))?;
        let component_size = spec.component_size;
        Ok(Self {
            id,
            spec: read_complete(spec)?,
            component_size,
            after: None,
            left: Duration::from_millis(left_ms).min(LONGEST_TIME),
            class: JobClass::Research,
        })
    }

    /// Writes the message that begins a run.
    pub fn write_open(&self) -> wire::batch_run_request::Open {
        wire::batch_run_request::Open {
            id: self.id.to_string(),
            spec: Some(write_spec(&self.spec, self.component_size)),
            after: self
                .after
                .as_ref()
                .map(FileName::to_string)
                .unwrap_or_default(),
            left_ms: whole_millis(self.left),
            of_index: self.class == JobClass::Index,
        }
    }

    /// Writes the message that begins a reduce step.
    pub fn write_reduce(&self) -> wire::batch_reduce_request::Open {
        wire::batch_reduce_request::Open {
            id: self.id.to_string(),
            spec: Some(write_spec(&self.spec, self.component_size)),
            left_ms: whole_millis(self.left),
        }
    }
}

/// Reads the specification of a run, in which every field is set.
fn read_complete(spec: wire::BatchSpec) -> Result<JobSpec, InvalidMessage> {
    if spec.job.is_empty() && !(1..=LARGEST_COMPONENT).contains(&spec.component_size) {
        let reason = format!("is {}, not 1 to {LARGEST_COMPONENT}", spec.component_size);
        return Err(InvalidMessage::invalid_field("component_size", reason));
    }
    convert::name_pattern("files", &spec.files)?;
    for (field, value) in [
        ("time_ms", spec.time_ms),
        ("file_time_ms", spec.file_time_ms),
        ("memory", spec.memory),
        ("output", spec.output),
    ] {
        if value == 0 {
            return Err(InvalidMessage::missing_field(field));
        }
    }
    check_arguments(&spec.arguments)?;
    let spec = read_spec(spec)?;
    Ok(JobSpec {
        limits: JobLimits {
            time: spec.limits.time.min(LONGEST_TIME),
            file_time: spec.limits.file_time.min(LONGEST_TIME),
            ..spec.limits
        },
        keep: None,
        ..spec
    })
}

fn check_arguments(arguments: &[wire::batch_spec::Value]) -> Result<(), InvalidMessage> {
    let refused = |reason: String| Err(InvalidMessage::invalid_field("arguments", reason));
    if arguments.len() > MOST_ARGUMENTS {
        return refused(format!("are more than {MOST_ARGUMENTS}"));
    }
    let each = arguments.iter();
    let bytes: usize = each.map(|one| one.name.len() + one.value.len()).sum();
    if bytes > LONGEST_ARGUMENTS {
        return refused(format!("are longer than {LONGEST_ARGUMENTS} bytes"));
    }
    let mut seen = BTreeSet::new();
    for argument in arguments {
        if argument.name.is_empty() {
            return refused("have one without a name".to_owned());
        }
        if !seen.insert(&argument.name) {
            return refused(format!("name {:?} twice", argument.name));
        }
    }
    Ok(())
}

/// Writes the outcome of a file.
pub fn write_done(done: BatchFileOutcome) -> wire::batch_run_response::Done {
    let failure = |failure: archive_model::FileFailure| wire::BatchFailure {
        kind: wire::batch_failure::Kind::from(failure.kind).into(),
        offset: failure.offset,
        reason: failure.reason.chars().take(LONGEST_REASON).collect(),
    };
    wire::batch_run_response::Done {
        name: done.name.to_string(),
        node: done.node.to_string(),
        volume: done.volume.to_string(),
        root: convert::root_bytes(&done.root),
        size: done.size,
        records: done.records,
        output: done.output,
        failures: done.failures.into_iter().map(failure).collect(),
        more_failures: done.more_failures,
    }
}

/// Reads the outcome of a file.
///
/// # Errors
/// The first field that is missing or invalid.
pub fn read_done(done: wire::batch_run_response::Done) -> Result<BatchFileOutcome, InvalidMessage> {
    use archive_model::batch::MOST_FAILURES;
    if done.failures.len() > MOST_FAILURES {
        let reason = format!("are more than {MOST_FAILURES}");
        return Err(InvalidMessage::invalid_field("failures", reason));
    }
    if done.failures.is_empty() && done.more_failures > 0 {
        let reason = format!("are none, and {} more", done.more_failures);
        return Err(InvalidMessage::invalid_field("failures", reason));
    }
    let failure = |failure: wire::BatchFailure| {
        if failure.reason.chars().count() > LONGEST_REASON {
            let why = format!("is longer than {LONGEST_REASON} characters");
            return Err(InvalidMessage::invalid_field("reason", why));
        }
        Ok(archive_model::FileFailure {
            kind: convert::failure_kind("kind", failure.kind)?,
            offset: failure.offset,
            reason: failure.reason,
        })
    };
    Ok(BatchFileOutcome {
        name: convert::file_name("name", &done.name)?,
        node: convert::node_id(&done.node)?,
        volume: convert::volume_id(&done.volume)?,
        root: convert::read_root("root", &done.root)?,
        size: done.size,
        records: done.records,
        output: done.output,
        failures: done
            .failures
            .into_iter()
            .map(failure)
            .collect::<Result<_, _>>()?,
        more_failures: done.more_failures,
    })
}

#[cfg(test)]
mod tests;
