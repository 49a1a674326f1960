//! Reads the submissions of jobs: what the caller leaves open is set by the repository.

use std::time::Duration;

use archive_jobs::JobRow;
use archive_model::{JobLimits, JobSpec, ReplicaId};
use archive_rpc::InvalidMessage;
use proto_archive::convert::read_spec;
use proto_archive::wire;

use crate::settings::BatchSettings;

/// Reads the specification of a job. Missing fields are taken from the `known` job of this id, else from the settings.
pub(super) fn complete_spec(
    wire: &wire::BatchSpec,
    replica: &ReplicaId,
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
    let longest = known
        .and_then(|row| row.spec.keep)
        .unwrap_or_default()
        .max(settings.keep.duration());
    let limits = JobLimits {
        time: time("time_ms", wire.time_ms, default.time, most.time)?,
        file_time: time(
            "file_time_ms",
            wire.file_time_ms,
            default.file_time,
            most.file_time,
        )?,
        memory: bytes("memory", wire.memory, default.memory, most.memory)?,
        output: bytes("output", wire.output, default.output, most.output)?,
    };
    let spec = read_spec(wire::BatchSpec {
        replica: replica.to_string(),
        ..wire.clone()
    })?;
    let keep = spec.keep.map(|keep| bounded("keep_ms", keep, longest));
    Ok(JobSpec {
        limits,
        keep: keep.transpose()?,
        ..spec
    })
}

fn bounded<T: PartialOrd + std::fmt::Debug + Copy>(
    field: &'static str,
    asked: T,
    most: T,
) -> Result<T, InvalidMessage> {
    if asked > most {
        let why = format!("the repository allows at most {most:?}");
        return Err(InvalidMessage::invalid_field(field, why));
    }
    Ok(asked)
}
