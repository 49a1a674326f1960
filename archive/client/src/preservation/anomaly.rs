//! Filed anomalies.

use std::collections::VecDeque;

use archive_model::{FileName, FiledAnomaly};
use archive_rpc::StepReader;
use proto_archive::{convert, wire};

use crate::error::ClientError;

/// The anomalies to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnomalySelection {
    /// Whether to list closed and accepted anomalies too.
    pub all: bool,
    /// Lists only anomalies of this file.
    pub file: Option<FileName>,
}

/// Reads anomalies, and checks that they are those that were asked for.
pub(super) struct Anomalies(pub(super) AnomalySelection);

impl StepReader for Anomalies {
    type Message = wire::AnomaliesResponse;
    type Item = FiledAnomaly;
    type Error = ClientError;

    fn read(
        &mut self,
        message: wire::AnomaliesResponse,
        out: &mut VecDeque<FiledAnomaly>,
    ) -> Result<(), ClientError> {
        for anomaly in message.anomalies {
            let anomaly = convert::filed_anomaly(&anomaly)?;
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
    use archive_rpc::testing::read_steps;

    pub(in crate::preservation) fn wire_anomaly(
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

    /// Fails if a script that reads an anomaly in JSON finds another field or word.
    #[test]
    fn json_has_documented_fields() {
        let range = |start, end| wire::GroupRange { start, end };
        let corrupt = wire::AnomalyState {
            groups: vec![range(3, 4), range(7, 10)],
            ..wire_anomaly("a", wire::AnomalyKind::Corrupt)
        };
        let json = serde_json::to_value(convert::filed_anomaly(&corrupt).unwrap()).unwrap();
        assert_eq!(json["groups"], serde_json::json!([[3, 4], [7, 10]]));
        assert_eq!(json["kind"], "corrupt");
        assert!(json.get("ended").is_none() && json.get("lost").is_none());
    }

    /// Fails if the anomalies of another file pass for those of the file that was asked for.
    #[tokio::test]
    async fn anomalies_of_another_file_are_no_answer() {
        let messages = |file: &str| {
            vec![Ok(wire::AnomaliesResponse {
                anomalies: vec![
                    wire_anomaly("a", wire::AnomalyKind::Missing),
                    wire_anomaly(file, wire::AnomalyKind::Lost),
                ],
            })]
        };
        let selection = AnomalySelection {
            all: true,
            file: Some(FileName::new("a").unwrap()),
        };
        let (found, end) = read_steps(Anomalies(selection.clone()), messages("a")).await;
        assert_eq!((found.len(), end), (2, Ok(())));
        let (found, end) = read_steps(Anomalies(selection), messages("b")).await;
        assert_eq!(found.len(), 0);
        assert!(end.unwrap_err().contains("speaks of b"));
        let (found, _) = read_steps(Anomalies(AnomalySelection::default()), messages("b")).await;
        assert_eq!(found.len(), 2);
    }
}
