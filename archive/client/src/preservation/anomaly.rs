//! Anomalies, as they are filed.

use std::collections::VecDeque;

use archive_model::{
    AnomalyClass, AnomalyState, FileName, Finder, Groups, NodeId, ReplicaId, VolumeId,
};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::{convert, wire};
use serde::Serialize;

use crate::error::{ClientError, plain};
use crate::file_status::{some, text};
use crate::steps::StepReader;
use crate::word::id;

/// One thing that is wrong with one file in one replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FiledAnomaly {
    /// Names it, also after it is closed.
    pub id: String,
    /// The file.
    pub file: FileName,
    /// The replica.
    pub replica: ReplicaId,
    /// The kind of the anomaly, in one word.
    pub kind: AnomalyClass,
    /// The description of the anomaly, for people.
    pub what: String,
    /// The groups that are corrupt or unreadable.
    #[serde(skip_serializing_if = "Groups::is_empty")]
    pub groups: Groups,
    /// The byte ranges that are lost, half-open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<(u64, u64)>,
    /// The size of the file in bytes.
    pub size: u64,
    /// The node, where one is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The volume, where one is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeId>,
    /// When it was first seen.
    pub since: Timestamp,
    /// The state of the anomaly.
    pub state: AnomalyState,
    /// The act that found it.
    pub found_by: Finder,
    /// When it was closed or accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The reason why it was closed or accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_why: Option<String>,
    /// The reason why it is not repaired yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// Which anomalies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnomalySelection {
    /// Also those that are closed or accepted.
    pub all: bool,
    /// Only of this file.
    pub file: Option<FileName>,
}

impl TryFrom<wire::AnomalyState> for FiledAnomaly {
    type Error = InvalidMessage;

    fn try_from(message: wire::AnomalyState) -> Result<Self, InvalidMessage> {
        Ok(Self {
            id: id("id", &message.id)?,
            file: convert::file_name("file", &message.file)?,
            replica: convert::replica_id(&message.replica)?,
            kind: convert::anomaly_class("kind", message.kind)?,
            what: plain(&message.what),
            groups: convert::groups("groups", &message.groups)?,
            lost: convert::groups("lost", &message.lost)?.into(),
            size: message.size,
            node: some(&message.node, convert::node_id)?,
            volume: some(&message.volume, convert::volume_id)?,
            since: convert::time("since", &message.since)?,
            state: convert::anomaly_state("state", message.state)?,
            found_by: convert::finder("found_by", message.found_by)?,
            ended: convert::optional_time("ended", &message.ended)?,
            ended_why: text(&message.ended_why),
            held: text(&message.held),
        })
    }
}

/// Takes anomalies as they were asked for.
pub(super) struct Anomalies(pub(super) AnomalySelection);

impl StepReader for Anomalies {
    type Message = wire::AnomaliesResponse;
    type Item = FiledAnomaly;

    fn read(
        &mut self,
        message: wire::AnomaliesResponse,
        out: &mut VecDeque<FiledAnomaly>,
    ) -> Result<(), ClientError> {
        for anomaly in message.anomalies {
            let anomaly = FiledAnomaly::try_from(anomaly)?;
            if let Some(file) = self.0.file.as_ref().filter(|file| **file != anomaly.file) {
                let found = anomaly.file;
                return Err(ClientError::Untrusted(format!(
                    "asked for the anomalies of {file}, the archive speaks of {found}"
                )));
            }
            out.push_back(anomaly);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::steps::tests::read;

    pub(in crate::preservation) fn message(
        file: &str,
        kind: wire::AnomalyKind,
    ) -> wire::AnomalyState {
        wire::AnomalyState {
            id: "17".into(),
            file: file.into(),
            replica: "one".into(),
            kind: kind.into(),
            what: "said\u{1b}[2J\u{202e} why".into(),
            since: "2026-03-04T05:06:07Z".into(),
            state: wire::anomaly_state::State::Open.into(),
            found_by: wire::anomaly_state::Finder::Scrub.into(),
            size: 100_000,
            ..wire::AnomalyState::default()
        }
    }

    type Break = fn(&mut wire::AnomalyState);

    #[test]
    fn an_anomaly_is_read_field_by_field() {
        let range = |start, end| wire::GroupRange { start, end };
        let corrupt = wire::AnomalyState {
            groups: vec![range(3, 4), range(7, 10)],
            ..message("a", wire::AnomalyKind::Corrupt)
        };
        let anomaly = FiledAnomaly::try_from(corrupt.clone()).unwrap();
        assert_eq!(anomaly.groups.len(), 4);
        assert_eq!(anomaly.what, "said [2J  why", "nothing steers the terminal");
        let json = serde_json::to_value(&anomaly).unwrap();
        assert_eq!(json["groups"], serde_json::json!([[3, 4], [7, 10]]));
        assert_eq!(json["kind"], "corrupt");
        assert!(json.get("ended").is_none() && json.get("lost").is_none());

        let cases: [(Break, &str); 10] = [
            (|m| m.id = "a b".into(), "`id`"),
            (|m| m.file = "../a".into(), "`file`"),
            (|m| m.replica.clear(), "`replica`"),
            (|m| m.kind = 99, "`kind`"),
            (|m| m.groups[1].start = 4, "`groups`"),
            (
                |m| m.lost = vec![wire::GroupRange { start: 2, end: 2 }],
                "`lost`",
            ),
            (|m| m.since = "yesterday".into(), "`since`"),
            (|m| m.state = 0, "`state`"),
            (|m| m.found_by = 99, "`found_by`"),
            (|m| m.node = "N 1".into(), "`node`"),
        ];
        for (break_it, field) in cases {
            let mut broken = corrupt.clone();
            break_it(&mut broken);
            let error = FiledAnomaly::try_from(broken).unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
    }

    #[tokio::test]
    async fn anomalies_of_another_file_are_no_answer() {
        let messages = |file: &str| {
            vec![Ok(wire::AnomaliesResponse {
                anomalies: vec![
                    message("a", wire::AnomalyKind::Missing),
                    message(file, wire::AnomalyKind::Lost),
                ],
            })]
        };
        let selection = AnomalySelection {
            all: true,
            file: Some(FileName::new("a").unwrap()),
        };
        let (found, end) = read(Anomalies(selection.clone()), messages("a")).await;
        assert_eq!((found.len(), end), (2, Ok(())));
        let (found, end) = read(Anomalies(selection), messages("b")).await;
        assert_eq!(found.len(), 0);
        assert!(end.unwrap_err().contains("speaks of b"));
        let (found, _) = read(Anomalies(AnomalySelection::default()), messages("b")).await;
        assert_eq!(found.len(), 2);
    }
}
