//! Conversions between the repository's own types and the wire.

use archive_decisions::store::{FileRecord, ReplicaRecord};
use archive_ledger::admin::AdminRow;
use archive_ledger::anomalies::AnomalyRow;
use archive_ledger::custody::{CustodyDoubt, FileEvidence};
use archive_ledger::standing::StandingSnapshot;
use archive_model::{CopyDoubt, CopyStanding, ReplicaId, ReplicaState, ReplicaStatus};
use archive_stores::coordinator::Times;
use bytes::Bytes;
use proto_archive::convert as fields;
use proto_archive::wire;

/// Writes the state of a file in each replica, and the time of the next try for failed copies, as far as it is known.
pub(super) fn wire_replicas(record: &FileRecord, retries: &Times) -> Vec<wire::ReplicaStatus> {
    let statuses = statuses(record, retries);
    statuses.map(fields::replica_status_message).collect()
}

/// Returns the state of a file in each replica, in the order of the record. Whether a copy counts is left open.
fn statuses(record: &FileRecord, retries: &Times) -> impl Iterator<Item = ReplicaStatus> {
    let status = move |(id, copy): (&ReplicaId, &ReplicaRecord)| {
        let reason = match &copy.state {
            ReplicaState::UploadStarted
            | ReplicaState::DataUploaded
            | ReplicaState::UploadCompleted => None,
            ReplicaState::UploadFailed(reason) => {
                let again = retries.get(id);
                let again = again.map_or_else(String::new, |at| format!("; tried again at {at}"));
                Some(format!("{reason}{again}"))
            }
            ReplicaState::Withdrawn(why) => Some(why.clone()),
        };
        let is_completed = copy.state.is_completed();
        ReplicaStatus {
            replica: id.clone(),
            progress: copy.state.progress(),
            reason,
            node: copy.node.clone().filter(|_| is_completed),
            volume: copy.volume.clone().filter(|_| is_completed),
            completed: is_completed.then_some(copy.since),
            standing: None,
            doubt: None,
        }
    };
    record.replicas.iter().map(status)
}

/// Writes the state of a file in each replica, and which of its copies count; `silence` says why nobody answers for one
/// now.
fn vouched(
    vouched: &FileEvidence<'_>,
    retries: &Times,
    silence: impl Fn(&ReplicaId, &ReplicaRecord) -> Option<String>,
) -> Vec<wire::ReplicaStatus> {
    let of = |(status, (id, copy)): (ReplicaStatus, (&ReplicaId, &ReplicaRecord))| {
        let Some(doubt) = vouched.doubt_copy(id, copy) else {
            let reason = silence(id, copy);
            let standing = if reason.is_none() {
                CopyStanding::Good
            } else {
                CopyStanding::Unverified
            };
            return ReplicaStatus {
                reason,
                standing: Some(standing),
                ..status
            };
        };
        let (why, is_accepted) = match doubt {
            CustodyDoubt::State(_) => return status,
            CustodyDoubt::Retired => (CopyDoubt::Retired, vouched.now.is_retired(id)),
            CustodyDoubt::Filed(filed) => (
                CopyDoubt::Filed(filed.kind.class()),
                filed.accepted.is_some(),
            ),
        };
        let standing = if is_accepted {
            CopyStanding::Accepted
        } else {
            CopyStanding::Bad
        };
        ReplicaStatus {
            reason: Some(doubt.to_string()),
            standing: Some(standing),
            doubt: Some(why),
            ..status
        }
    };
    statuses(vouched.record, retries)
        .zip(&vouched.record.replicas)
        .map(of)
        .map(fields::replica_status_message)
        .collect()
}

/// Writes the state of a file, by what is out of service and what is filed.
pub(super) fn wire_stat(
    row: &AdminRow,
    admitted: String,
    (now, filed): (&StandingSnapshot, &[AnomalyRow]),
    retries: &Times,
    silence: impl Fn(&ReplicaId, &ReplicaRecord) -> Option<String>,
) -> wire::StatResponse {
    let content = row.record.content.as_ref();
    let digest = |bytes: Option<&[u8]>| bytes.map(Bytes::copy_from_slice).unwrap_or_default();
    wire::StatResponse {
        name: row.record.name.to_string(),
        size: content.map(|content| content.size).unwrap_or_default(),
        root: content
            .map(|content| fields::root_bytes(&content.root))
            .unwrap_or_default(),
        sha256: digest(
            content
                .and_then(|content| content.digests.sha256.as_ref())
                .map(<[u8; 32]>::as_slice),
        ),
        md5: digest(
            content
                .and_then(|content| content.digests.md5.as_ref())
                .map(<[u8; 16]>::as_slice),
        ),
        depositor: row.depositor.clone(),
        admitted,
        replicas: vouched(
            &FileEvidence {
                record: &now.complete_record(&row.record),
                now,
                filed,
            },
            retries,
            silence,
        ),
    }
}

#[cfg(test)]
mod tests {
    use archive_ledger::restore::testing::row;
    use archive_model::StoreFailure;
    use jiff::Timestamp;

    use super::*;

    /// Fails if a failed copy that is tried again by itself does not say when.
    #[test]
    fn failed_copy_says_when_it_is_retried() {
        let mut row = row("a", 7);
        let two = ReplicaId::new("two").unwrap();
        row.record.replicas.get_mut(&two).unwrap().state =
            ReplicaState::UploadFailed(StoreFailure::NoSpace);
        let at: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let reason = |times: Times| {
            let replicas = wire_replicas(&row.record, &times);
            let two = replicas.into_iter().find(|copy| copy.replica == "two");
            two.unwrap().reason
        };
        assert_eq!(reason(Times::new()), "no node has room for it");
        assert_eq!(
            reason([(two.clone(), at)].into()),
            "no node has room for it; tried again at 2026-01-01T00:01:00Z"
        );
    }
}
