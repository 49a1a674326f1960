//! Closed sets: an enumeration of the model is one on the wire too. A number that this build does not know is refused,
//! never guessed.

use std::collections::BTreeMap;

use archive_model::{
    ActKind, AnomalyClass, AnomalyState, AtticKind, CheckKind, CopyStanding, FailureKind, Finder,
    JobOutput, JobState, Reduce, RepairOutcome, ReplicaKind, ReplicaProgress, RequestState, Role,
    ScrubActivity,
};
use archive_rpc::InvalidMessage;

use crate::wire;

/// Creates both directions of one set: a function that reads the number in a field, and `From` for the way to the wire.
macro_rules! closed_set {
    ($(#[$doc:meta])* $read:ident: $model:ident = $wire:path { $($value:ident),+ $(,)? }) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// The field is absent, or has a number that this build does not know.
        pub fn $read(field: &'static str, value: i32) -> Result<$model, InvalidMessage> {
            use $wire as Wire;
            match Wire::try_from(value) {
                Ok(Wire::Unspecified) => Err(InvalidMessage::missing_field(field)),
                $(Ok(Wire::$value) => Ok($model::$value),)+
                Err(_) => Err(unknown_value(field, value)),
            }
        }

        impl From<$model> for $wire {
            fn from(value: $model) -> Self {
                match value {
                    $($model::$value => Self::$value,)+
                }
            }
        }
    };
}

/// Returns the error for a number that no value of a closed set has, as from a newer archive.
pub fn unknown_value(field: &'static str, value: i32) -> InvalidMessage {
    InvalidMessage::invalid_field(field, format!("is {value}, which this build does not know"))
}

closed_set! {
    /// Reads the kind of an anomaly.
    anomaly_class: AnomalyClass = wire::AnomalyKind {
        Missing, Corrupt, Unreadable, Unexpected, Duplicate, Conflicting, Disputed, Lost, Unverified, Transient, Incomplete,
    }
}

closed_set! {
    /// Reads the state of an anomaly.
    anomaly_state: AnomalyState = wire::anomaly_state::State { Open, Accepted, Closed }
}

closed_set! {
    /// Reads the finder of an anomaly.
    finder: Finder = wire::anomaly_state::Finder { Scrub, ScheduledCheck, Check, Read }
}

closed_set! {
    /// Reads the outcome of a repair.
    repair_outcome: RepairOutcome = wire::repair_response::Outcome {
        Planned, Progress, Repaired, Lost, Waiting, Nothing, Officer, Failed,
    }
}

closed_set! {
    /// Reads the kind of an act.
    act_kind: ActKind = wire::request_state::Act { Remove, Purge, Retire, Accept, NewRoot, Reinstate }
}

closed_set! {
    /// Reads the state of a request.
    request_state: RequestState = wire::request_state::State {
        Open, Approved, Done, Failed, Withdrawn, Expired,
    }
}

closed_set! {
    /// Reads a role.
    role: Role = wire::Role {
        Harvester, Reader, Researcher, Officer, Custodian, Operator, Node, Monitor, Repository, Index, Scheduler, Viewer,
    }
}

closed_set! {
    /// Reads the activity of a scrub.
    scrub_activity: ScrubActivity = wire::scrub_state::Activity { Running, Idle, Paused, Off }
}

closed_set! {
    /// Reads the kind of an attic item.
    attic_kind: AtticKind = wire::attic_item::Kind { File, Groups, Leftover, Row }
}

closed_set! {
    /// Reads whether a copy counts.
    copy_standing: CopyStanding = wire::CopyStanding { Good, Unverified, Bad, Accepted }
}

closed_set! {
    /// Reads the kind of a replica.
    replica_kind: ReplicaKind = wire::ReplicaKind { Bitarchive, Checksum }
}

closed_set! {
    /// Reads the progress of a file into a replica.
    replica_progress: ReplicaProgress = wire::ReplicaProgress {
        UploadStarted, DataUploaded, UploadCompleted, UploadFailed, Withdrawn,
    }
}

closed_set! {
    /// Reads what a check compares.
    check_kind: CheckKind = wire::check_request::Kind { Files, Checksums }
}

closed_set! {
    /// Reads the reason why something of a file is not in the output of a batch job.
    failure_kind: FailureKind = wire::batch_failure::Kind { Damaged, Format, Job, Component, Unread }
}

closed_set! {
    /// Reads how the outputs of all files become one.
    reduce: Reduce = wire::batch_jobs_response::Reduce { Concatenate, Sort, Unique, Sum, Component }
}

closed_set! {
    /// Reads the stage that a batch job has reached.
    job_state: JobState = wire::batch_status::State {
        Queued, Running, Reducing, Closing, Done, Partial, Failed, Cancelled,
    }
}

closed_set! {
    /// Reads which output of a batch job is meant.
    job_output: JobOutput = wire::batch_output_request::What { Result, Errors, Manifest }
}

/// Reads the number of anomalies of each kind.
///
/// # Errors
/// A kind is unknown, or is counted twice.
pub fn anomaly_counts(
    field: &'static str,
    counts: &[wire::AnomalyCount],
) -> Result<BTreeMap<AnomalyClass, u64>, InvalidMessage> {
    let mut read = BTreeMap::new();
    for one in counts {
        let class = anomaly_class(field, one.kind)?;
        if read.insert(class, one.count).is_some() {
            return Err(InvalidMessage::invalid_field(
                field,
                format!("counts {class} twice"),
            ));
        }
    }
    Ok(read)
}

/// Writes the number of anomalies of each kind.
pub fn anomaly_count_messages(counts: &BTreeMap<AnomalyClass, u64>) -> Vec<wire::AnomalyCount> {
    let message = |(class, count): (&AnomalyClass, &u64)| wire::AnomalyCount {
        kind: wire::AnomalyKind::from(*class).into(),
        count: *count,
    };
    counts.iter().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two values are exchanged on their way, or a value of the model has no number.
    #[test]
    fn value_is_read_as_written() {
        macro_rules! check {
            ($read:ident, $wire:path, $model:ident) => {
                for value in $model::ALL.iter().copied() {
                    let number = <$wire>::from(value);
                    assert_eq!($read("field", number.into()), Ok(value));
                    assert!(
                        number
                            .as_str_name()
                            .ends_with(&value.as_str().to_uppercase().replace('-', "_"))
                    );
                }
                let refused = |value| $read("field", value).unwrap_err().to_string();
                assert_eq!(refused(0), "field `field`: missing");
                assert_eq!(
                    refused(99),
                    "field `field`: is 99, which this build does not know"
                );
                assert!(refused(-1).contains("`field`"));
            };
        }
        check!(anomaly_class, wire::AnomalyKind, AnomalyClass);
        check!(anomaly_state, wire::anomaly_state::State, AnomalyState);
        check!(finder, wire::anomaly_state::Finder, Finder);
        check!(
            repair_outcome,
            wire::repair_response::Outcome,
            RepairOutcome
        );
        check!(act_kind, wire::request_state::Act, ActKind);
        check!(request_state, wire::request_state::State, RequestState);
        check!(role, wire::Role, Role);
        check!(scrub_activity, wire::scrub_state::Activity, ScrubActivity);
        check!(attic_kind, wire::attic_item::Kind, AtticKind);
        check!(copy_standing, wire::CopyStanding, CopyStanding);
        check!(replica_kind, wire::ReplicaKind, ReplicaKind);
        check!(replica_progress, wire::ReplicaProgress, ReplicaProgress);
        check!(check_kind, wire::check_request::Kind, CheckKind);
        check!(failure_kind, wire::batch_failure::Kind, FailureKind);
        check!(reduce, wire::batch_jobs_response::Reduce, Reduce);
        check!(job_state, wire::batch_status::State, JobState);
        check!(job_output, wire::batch_output_request::What, JobOutput);
    }

    /// Fails if a count is lost, or a kind that is counted twice is accepted.
    #[test]
    fn counts_are_read_as_written() {
        let counts = [(AnomalyClass::Missing, 3), (AnomalyClass::Lost, 0)].into();
        let mut messages = anomaly_count_messages(&counts);
        assert_eq!(anomaly_counts("anomalies", &messages), Ok(counts));
        messages.push(messages[0]);
        let error = anomaly_counts("anomalies", &messages)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`anomalies`") && error.contains("missing twice"),
            "{error}"
        );
    }
}
