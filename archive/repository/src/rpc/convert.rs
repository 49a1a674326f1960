//! Conversions between the repository's own types and the wire.

use archive_decisions::store::{FileRecord, ReplicaRecord};
use archive_ledger::admin::AdminRow;
use archive_ledger::anomalies::AnomalyRow;
use archive_ledger::custody::{Doubt, Vouched};
use archive_ledger::standing::Now;
use archive_model::{CopyDoubt, CopyStanding, ReplicaId, ReplicaState};
use archive_stores::coordinator::Times;
use bytes::Bytes;
use proto_archive::convert as fields;
use proto_archive::wire;

/// Writes the state of a file in each replica, and the time of the next try for failed copies, as far as it is known.
pub(super) fn replicas(record: &FileRecord, retries: &Times) -> Vec<wire::ReplicaStatus> {
    let status = |(id, copy): (&ReplicaId, &ReplicaRecord)| {
        let (progress, reason) = match &copy.state {
            ReplicaState::UploadStarted => (wire::ReplicaProgress::UploadStarted, String::new()),
            ReplicaState::DataUploaded => (wire::ReplicaProgress::DataUploaded, String::new()),
            ReplicaState::UploadCompleted => {
                (wire::ReplicaProgress::UploadCompleted, String::new())
            }
            ReplicaState::UploadFailed(reason) => {
                let again = retries.get(id);
                let again = again.map_or_else(String::new, |at| format!("; tried again at {at}"));
                let text = format!("{reason}{again}");
                (wire::ReplicaProgress::UploadFailed, text)
            }
            ReplicaState::Withdrawn(why) => (wire::ReplicaProgress::Withdrawn, why.clone()),
        };
        let is_completed = copy.state.is_completed();
        let node = copy.node.as_ref().filter(|_| is_completed);
        let volume = copy.volume.as_ref().filter(|_| is_completed);
        wire::ReplicaStatus {
            replica: id.to_string(),
            progress: progress.into(),
            reason,
            node: node.map(ToString::to_string).unwrap_or_default(),
            volume: volume.map(ToString::to_string).unwrap_or_default(),
            completed: if is_completed {
                copy.since.to_string()
            } else {
                String::new()
            },
            ..wire::ReplicaStatus::default()
        }
    };
    record.replicas.iter().map(status).collect()
}

/// Writes the state of a file in each replica, and which of its copies count.
fn vouched(vouched: &Vouched<'_>, retries: &Times) -> Vec<wire::ReplicaStatus> {
    let of = |(mut status, (id, copy)): (wire::ReplicaStatus, (&ReplicaId, &ReplicaRecord))| {
        let standing = match vouched.doubt(id, copy) {
            None => CopyStanding::Good,
            Some(Doubt::State(_)) => return status,
            Some(doubt @ Doubt::Retired) => {
                status = doubtful(CopyDoubt::Retired, &doubt, status);
                if vouched.now.is_retired(id) {
                    CopyStanding::Accepted
                } else {
                    CopyStanding::Bad
                }
            }
            Some(doubt @ Doubt::Filed(filed)) => {
                status = doubtful(CopyDoubt::Filed(filed.kind.class()), &doubt, status);
                match filed.accepted {
                    Some(_) => CopyStanding::Accepted,
                    None => CopyStanding::Bad,
                }
            }
        };
        status.set_standing(standing.into());
        status
    };
    let copies = vouched.record.replicas.iter();
    replicas(vouched.record, retries)
        .into_iter()
        .zip(copies)
        .map(of)
        .collect()
}

/// Writes why a copy does not count, for programs and for people.
fn doubtful(why: CopyDoubt, doubt: &Doubt<'_>, status: wire::ReplicaStatus) -> wire::ReplicaStatus {
    let reason = doubt.to_string();
    fields::with_doubt(why, wire::ReplicaStatus { reason, ..status })
}

/// Writes the state of a file.
pub(super) fn stat(
    row: &AdminRow,
    admitted: String,
    (now, filed): (&Now, &[AnomalyRow]),
    retries: &Times,
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
            &Vouched {
                record: &row.record,
                now,
                filed,
            },
            retries,
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
            let replicas = replicas(&row.record, &times);
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
