//! The state of a file in a replica, in both directions.

use archive_model::{CopyDoubt, ReplicaStatus};
use archive_rpc::InvalidMessage;

use super::{
    anomaly_class, copy_standing, optional, optional_time, plain_text, replica_id,
    replica_progress, text_of,
};
use crate::wire;

/// Reads the state of a file in a replica.
///
/// # Errors
/// The first field that is missing or invalid; or two reasons why the copy does not count.
pub fn replica_status(message: &wire::ReplicaStatus) -> Result<ReplicaStatus, InvalidMessage> {
    let standing = match message.standing {
        0 => None,
        standing => Some(copy_standing("standing", standing)?),
    };
    Ok(ReplicaStatus {
        replica: replica_id(&message.replica)?,
        progress: replica_progress("progress", message.progress)?,
        reason: plain_text(&message.reason),
        node: optional("node", &message.node)?,
        volume: optional("volume", &message.volume)?,
        completed: optional_time("completed", &message.completed)?,
        standing,
        doubt: copy_doubt(message)?,
    })
}

/// Writes the state of a file in a replica.
pub fn replica_status_message(status: ReplicaStatus) -> wire::ReplicaStatus {
    let standing = status
        .standing
        .map_or(wire::CopyStanding::Unspecified, wire::CopyStanding::from);
    let (doubt, retired) = match status.doubt {
        None => (wire::AnomalyKind::Unspecified, false),
        Some(CopyDoubt::Filed(class)) => (class.into(), false),
        Some(CopyDoubt::Retired) => (wire::AnomalyKind::Unspecified, true),
    };
    wire::ReplicaStatus {
        replica: status.replica.into(),
        progress: wire::ReplicaProgress::from(status.progress).into(),
        reason: status.reason.unwrap_or_default(),
        node: text_of(status.node),
        volume: text_of(status.volume),
        completed: text_of(status.completed),
        standing: standing.into(),
        doubt: doubt.into(),
        retired,
    }
}

/// Reads why a copy does not count; `None` if it counts.
fn copy_doubt(status: &wire::ReplicaStatus) -> Result<Option<CopyDoubt>, InvalidMessage> {
    match (status.doubt, status.retired) {
        (0, is_retired) => Ok(is_retired.then_some(CopyDoubt::Retired)),
        (class, false) => Ok(Some(CopyDoubt::Filed(anomaly_class("doubt", class)?))),
        (_, true) => Err(InvalidMessage::invalid_field(
            "doubt",
            "is set together with `retired`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use archive_model::{AnomalyClass, CopyStanding, ReplicaProgress};
    use jiff::Timestamp;

    use super::*;

    fn completed(standing: CopyStanding, doubt: Option<CopyDoubt>) -> ReplicaStatus {
        ReplicaStatus {
            replica: "one".parse().unwrap(),
            progress: ReplicaProgress::UploadCompleted,
            reason: Some("why".to_owned()),
            node: Some("n".parse().unwrap()),
            volume: Some("v".parse().unwrap()),
            completed: Some(Timestamp::UNIX_EPOCH),
            standing: Some(standing),
            doubt,
        }
    }

    /// Fails if a field of a copy is lost on its way, or a copy that does not count has another reason.
    #[test]
    fn replica_status_is_read_as_written() {
        let started = ReplicaStatus {
            progress: ReplicaProgress::UploadStarted,
            reason: None,
            node: None,
            volume: None,
            completed: None,
            standing: None,
            ..completed(CopyStanding::Good, None)
        };
        let lost = CopyDoubt::Filed(AnomalyClass::Lost);
        for status in [
            started,
            completed(CopyStanding::Good, None),
            completed(CopyStanding::Bad, Some(lost)),
            completed(CopyStanding::Accepted, Some(CopyDoubt::Retired)),
        ] {
            let message = replica_status_message(status.clone());
            assert_eq!(replica_status(&message), Ok(status));
        }
    }

    /// Fails if a field that breaks a rule is believed, or two reasons at once are accepted.
    #[test]
    fn invalid_replica_status_is_refused_by_field() {
        type Break = fn(&mut wire::ReplicaStatus);
        let cases: [(Break, &str); 6] = [
            (|m| m.standing = 99, "`standing`"),
            (|m| m.replica.clear(), "`replica`"),
            (|m| m.progress = 99, "`progress`"),
            (|m| m.node = "N 1".into(), "`node`"),
            (|m| m.completed = "soon".into(), "`completed`"),
            (|m| m.retired = true, "`doubt`"),
        ];
        for (break_it, field) in cases {
            let doubt = Some(CopyDoubt::Filed(AnomalyClass::Lost));
            let mut broken = replica_status_message(completed(CopyStanding::Bad, doubt));
            break_it(&mut broken);
            let error = replica_status(&broken).unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
    }
}
