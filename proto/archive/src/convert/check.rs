//! A check as it goes, in both directions.

use archive_model::{CheckProgress, CheckStep, Gap, ReplicaReport};
use archive_rpc::InvalidMessage;

use super::{
    anomaly_count_messages, anomaly_counts, anomaly_message, filed_anomaly, gap_message, read_gap,
    replica_id,
};
use crate::wire;
use crate::wire::check_response::{Progress, Report, Step};

/// Reads an event of a check.
///
/// # Errors
/// The event is of a kind that this build does not know, or a field of it is invalid.
pub fn check_step(message: wire::CheckResponse) -> Result<CheckStep, InvalidMessage> {
    let step = message
        .step
        .ok_or_else(|| InvalidMessage::missing_field("step"))?;
    Ok(match step {
        Step::Progress(progress) => CheckStep::Progress(self::progress(&progress)?),
        Step::Anomaly(anomaly) => CheckStep::Anomaly(Box::new(filed_anomaly(&anomaly)?)),
        Step::Report(report) => CheckStep::Report(self::report(&report)?),
    })
}

fn progress(message: &Progress) -> Result<CheckProgress, InvalidMessage> {
    let known = |total: u64| (total > 0).then_some(total);
    Ok(CheckProgress {
        replica: replica_id(&message.replica)?,
        files: message.files,
        bytes: message.bytes,
        files_total: known(message.files_total),
        bytes_total: known(message.bytes_total),
    })
}

fn report(message: &Report) -> Result<ReplicaReport, InvalidMessage> {
    let gaps = message.gaps.iter().map(read_gap);
    Ok(ReplicaReport {
        replica: replica_id(&message.replica)?,
        files: message.files,
        intact: message.intact,
        withdrawn: message.withdrawn,
        not_stored: message.not_stored,
        anomalies: anomaly_counts("anomalies", &message.anomalies)?,
        gaps: gaps.collect::<Result<Vec<Gap>, _>>()?,
    })
}

/// Writes an event of a check.
pub fn check_response(step: CheckStep) -> wire::CheckResponse {
    let step = match step {
        CheckStep::Progress(progress) => Step::Progress(Progress {
            replica: progress.replica.into(),
            files: progress.files,
            bytes: progress.bytes,
            files_total: progress.files_total.unwrap_or_default(),
            bytes_total: progress.bytes_total.unwrap_or_default(),
        }),
        CheckStep::Anomaly(anomaly) => Step::Anomaly(anomaly_message(*anomaly)),
        CheckStep::Report(report) => Step::Report(Report {
            replica: report.replica.into(),
            files: report.files,
            intact: report.intact,
            withdrawn: report.withdrawn,
            not_stored: report.not_stored,
            anomalies: anomaly_count_messages(&report.anomalies),
            gaps: report.gaps.into_iter().map(gap_message).collect(),
        }),
    };
    wire::CheckResponse { step: Some(step) }
}

#[cfg(test)]
mod tests {
    use archive_model::AnomalyClass;

    use super::super::anomaly::tests::anomaly;
    use super::*;

    /// Fails if an event of a check loses a field on its way, or is taken for another one.
    #[test]
    fn step_is_read_as_written() {
        let replica = || "one".parse().unwrap();
        let progress = CheckProgress {
            replica: replica(),
            files: 1,
            bytes: 2,
            files_total: Some(3),
            bytes_total: None,
        };
        let report = ReplicaReport {
            replica: replica(),
            files: 4,
            intact: 3,
            withdrawn: 1,
            not_stored: 5,
            anomalies: [(AnomalyClass::Lost, 2)].into(),
            gaps: vec![Gap::of_replica(replica(), "silent".to_owned())],
        };
        for step in [
            CheckStep::Progress(progress),
            CheckStep::Anomaly(Box::new(anomaly())),
            CheckStep::Report(report),
        ] {
            assert_eq!(check_step(check_response(step.clone())), Ok(step));
        }
    }
}
