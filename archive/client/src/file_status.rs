//! The status of a file, with its progress into each replica.

use archive_model::{CopyStanding, Digests, FileName, Root};
pub use archive_model::{ReplicaProgress, ReplicaStatus};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::{convert, wire};
use serde::Serialize;

use crate::error::visible_text;

/// The facts that the archive knows of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileStatus {
    /// The name of the file.
    pub name: FileName,
    /// The size of the file in bytes.
    pub size: u64,
    /// The root of the file.
    pub root: Root,
    /// The digests of the file that other tools compare.
    pub digests: Digests,
    /// The depositor of the file.
    pub depositor: String,
    /// When the file was admitted.
    pub admitted: Timestamp,
    /// The status of the file in each replica.
    pub replicas: Vec<ReplicaStatus>,
}

impl FileStatus {
    /// Returns whether each copy counts or people have decided otherwise. Where they accepted a bad copy, or nobody
    /// answers for one now, another one has to be good.
    pub fn is_whole(&self) -> bool {
        let is_settled = |one: &ReplicaStatus| match one.progress {
            ReplicaProgress::Withdrawn => true,
            ReplicaProgress::UploadCompleted => one.standing != Some(CopyStanding::Bad),
            ReplicaProgress::UploadStarted
            | ReplicaProgress::DataUploaded
            | ReplicaProgress::UploadFailed => false,
        };
        let is_doubtful = |one: &ReplicaStatus| {
            matches!(
                one.standing,
                Some(CopyStanding::Accepted | CopyStanding::Unverified)
            )
        };
        let is_good = |one: &ReplicaStatus| one.standing == Some(CopyStanding::Good);
        self.replicas.iter().all(is_settled)
            && (!self.replicas.iter().any(is_doubtful) || self.replicas.iter().any(is_good))
    }
}

impl TryFrom<wire::StatResponse> for FileStatus {
    type Error = InvalidMessage;

    fn try_from(message: wire::StatResponse) -> Result<Self, InvalidMessage> {
        Ok(Self {
            name: convert::file_name("name", &message.name)?,
            size: message.size,
            root: convert::read_root("root", &message.root)?,
            digests: Digests {
                sha256: convert::optional_bytes("sha256", &message.sha256)?,
                md5: convert::optional_bytes("md5", &message.md5)?,
            },
            depositor: visible_text(&message.depositor),
            admitted: convert::read_time("admitted", &message.admitted)?,
            replicas: read_replicas(&message.replicas)?,
        })
    }
}

/// Reads the status of a file in each replica.
pub(crate) fn read_replicas(
    messages: &[wire::ReplicaStatus],
) -> Result<Vec<ReplicaStatus>, InvalidMessage> {
    messages.iter().map(convert::replica_status).collect()
}

/// Returns a text for people; `None` if it is empty.
pub(crate) fn nonempty_text(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| visible_text(value))
}

/// Reads a value; `None` if its text is empty.
pub(crate) fn read_optional<T>(
    value: &str,
    read: impl FnOnce(&str) -> Result<T, InvalidMessage>,
) -> Result<Option<T>, InvalidMessage> {
    if value.is_empty() {
        Ok(None)
    } else {
        read(value).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> wire::StatResponse {
        wire::StatResponse {
            name: "a.warc".into(),
            size: 7,
            root: vec![1; 32].into(),
            sha256: vec![2; 32].into(),
            md5: Vec::new().into(),
            depositor: "harvester-1".into(),
            admitted: "2026-03-04T05:06:07Z".into(),
            replicas: vec![wire::ReplicaStatus {
                replica: "one".into(),
                progress: wire::ReplicaProgress::UploadFailed.into(),
                reason: "disk\u{7} full".into(),
                ..wire::ReplicaStatus::default()
            }],
        }
    }

    /// Fails if a script that reads the replicas of a file's status finds another field or word, or a reason with
    /// control characters.
    #[test]
    fn a_status_is_read_field_by_field() {
        let status = FileStatus::try_from(message()).unwrap();
        assert_eq!(status.replicas[0].reason.as_deref(), Some("disk  full"));
        assert_eq!(
            serde_json::to_value(&status.replicas).unwrap(),
            serde_json::json!([{ "replica": "one", "progress": "upload-failed", "reason": "disk  full" }])
        );
    }

    /// Fails if a file is called whole whose copies are recorded and known to be bad.
    #[test]
    fn bad_copy_makes_file_not_whole() {
        use wire::CopyStanding::{Accepted, Bad, Good, Unspecified};
        let copy = |standing: &wire::CopyStanding| wire::ReplicaStatus {
            replica: "one".into(),
            progress: wire::ReplicaProgress::UploadCompleted.into(),
            standing: (*standing).into(),
            ..wire::ReplicaStatus::default()
        };
        for (standings, is_whole) in [
            (&[Good, Good][..], true),
            (&[Good, Bad], false),
            (&[Bad, Bad], false),
            (&[Good, Accepted], true),
            (&[Accepted, Accepted], false),
            (&[Unspecified, Unspecified], true),
        ] {
            let status = FileStatus::try_from(wire::StatResponse {
                replicas: standings.iter().map(copy).collect(),
                ..message()
            });
            assert_eq!(status.unwrap().is_whole(), is_whole, "{standings:?}");
        }
    }

    /// Fails if a file status with an invalid name, checksum, time or progress is accepted, or the error does not name
    /// the field.
    #[test]
    fn a_field_that_breaks_a_rule_is_named() {
        type Break = fn(&mut wire::StatResponse);
        let cases: [(Break, &str); 8] = [
            (|m| m.replicas[0].standing = 99, "`standing`"),
            (|m| m.name = "../a".into(), "`name`"),
            (|m| m.root = vec![1; 31].into(), "`root`"),
            (|m| m.sha256 = vec![1; 16].into(), "`sha256`"),
            (|m| m.admitted.clear(), "`admitted`"),
            (|m| m.replicas[0].replica.clear(), "`replica`"),
            (|m| m.replicas[0].progress = 99, "`progress`"),
            (|m| m.replicas[0].node = "N 1".into(), "`node`"),
        ];
        for (break_it, field) in cases {
            let mut broken = message();
            break_it(&mut broken);
            let error = FileStatus::try_from(broken).unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
    }
}
