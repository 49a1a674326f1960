//! Repairs as they go.

use std::collections::VecDeque;

use archive_model::{FileName, FiledAnomaly, RepairOutcome};
use archive_rpc::{InvalidMessage, StepReader};
use proto_archive::{convert, wire};
use serde::Serialize;

use crate::error::{ClientError, visible_text};
use crate::file_status::nonempty_text;

/// The order for a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairOrder {
    /// The files to repair; empty: everything that can be repaired.
    pub names: Vec<FileName>,
    /// Whether only to plan, and repair nothing.
    pub dry_run: bool,
    /// The number of files that are expected to be repaired.
    pub confirm: Option<u64>,
    /// The reason, for the audit trail.
    pub reason: Option<String>,
}

/// A step of a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The outcome of the repair.
    pub outcome: RepairOutcome,
    /// The file that the step is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileName>,
    /// The anomaly that is repaired; absent if none is filed of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anomaly: Option<Box<FiledAnomaly>>,
    /// The act that is, or would be, done, in one line.
    pub what: String,
    /// The bytes that came from donors, or would, and proofs with them.
    pub bytes_moved: u64,
    /// The bytes that were read for verification so far.
    pub bytes_verified: u64,
    /// The item with the replaced groups, in the attic of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attic: Option<String>,
}

impl From<&RepairOrder> for wire::RepairRequest {
    fn from(order: &RepairOrder) -> Self {
        Self {
            names: order.names.iter().map(ToString::to_string).collect(),
            all: order.names.is_empty(),
            dry_run: order.dry_run,
            confirm: order.confirm.unwrap_or(0),
            reason: order.reason.clone().unwrap_or_default(),
        }
    }
}

impl TryFrom<wire::RepairResponse> for Repair {
    type Error = InvalidMessage;

    fn try_from(message: wire::RepairResponse) -> Result<Self, InvalidMessage> {
        let outcome = convert::repair_outcome("outcome", message.outcome)?;
        let (file, anomaly) = match message.anomaly {
            None => (None, None),
            Some(bare)
                if bare.id.is_empty()
                    && matches!(outcome, RepairOutcome::Nothing | RepairOutcome::Waiting) =>
            {
                (Some(convert::file_name("file", &bare.file)?), None)
            }
            Some(anomaly) => {
                let anomaly = convert::filed_anomaly(&anomaly)?;
                (Some(anomaly.file.clone()), Some(Box::new(anomaly)))
            }
        };
        Ok(Self {
            outcome,
            file,
            anomaly,
            what: visible_text(&message.what),
            bytes_moved: message.bytes_moved,
            bytes_verified: message.bytes_verified,
            attic: nonempty_text(&message.attic),
        })
    }
}

/// Reads repairs, and checks that they are of the files that were asked for.
pub(super) struct Repairs {
    names: Vec<FileName>,
    dry_run: bool,
}

impl Repairs {
    pub(super) fn new(order: &RepairOrder) -> Self {
        let mut names = order.names.clone();
        names.sort_unstable();
        let dry_run = order.dry_run;
        Self { names, dry_run }
    }
}

impl StepReader for Repairs {
    type Message = wire::RepairResponse;
    type Item = Repair;
    type Error = ClientError;

    fn read(
        &mut self,
        message: wire::RepairResponse,
        out: &mut VecDeque<Repair>,
    ) -> Result<(), ClientError> {
        let repair = Repair::try_from(message)?;
        let asked_for =
            |file: &FileName| self.names.is_empty() || self.names.binary_search(file).is_ok();
        if let Some(file) = repair.file.as_ref().filter(|file| !asked_for(file)) {
            return Err(ClientError::Untrusted(format!(
                "the archive repairs {file}, which was not asked for"
            )));
        }
        // A dry run also reads copies again: that is progress, and moves nothing.
        let moved = repair.outcome == RepairOutcome::Progress && repair.bytes_moved > 0;
        if self.dry_run && (moved || repair.outcome == RepairOutcome::Repaired) {
            return Err(ClientError::Untrusted(
                "the archive repairs although it was only asked what it would do".to_owned(),
            ));
        }
        out.push_back(repair);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wire::repair_response::Outcome;

    use super::*;
    use crate::preservation::anomaly::tests::wire_anomaly as anomaly;
    use archive_rpc::testing::read_steps;

    async fn ends(order: &RepairOrder, outcome: i32, file: Option<&str>) -> Result<(), String> {
        let message = wire::RepairResponse {
            outcome,
            anomaly: file.map(|file| anomaly(file, wire::AnomalyKind::Corrupt)),
            what: "3 groups from two".into(),
            ..wire::RepairResponse::default()
        };
        read_steps(Repairs::new(order), vec![Ok(message)]).await.1
    }

    /// Fails if a repair of a file that was not named, or a repair during a dry run, passes unnoticed, or an order for
    /// some files is sent as one for all.
    #[tokio::test]
    async fn only_requested_files_are_repaired() {
        let name = |text: &str| FileName::new(text).unwrap();
        let all = RepairOrder::default();
        let some = RepairOrder {
            names: vec![name("b"), name("a")],
            ..all.clone()
        };
        let dry = RepairOrder {
            dry_run: true,
            ..all.clone()
        };
        for (order, outcome, file, error) in [
            (&all, Outcome::Repaired, Some("z"), None),
            (&some, Outcome::Repaired, Some("a"), None),
            (&some, Outcome::Nothing, None, None),
            (&dry, Outcome::Planned, Some("a"), None),
            (&dry, Outcome::Progress, Some("a"), None),
            (&some, Outcome::Repaired, Some("z"), Some("not asked for")),
            (&dry, Outcome::Repaired, Some("a"), Some("only asked")),
            (&all, Outcome::Unspecified, None, Some("`outcome`")),
            (&all, Outcome::Repaired, Some("../z"), Some("`file`")),
        ] {
            match (ends(order, outcome.into(), file).await, error) {
                (Ok(()), None) => {}
                (Err(said), Some(reason)) => assert!(said.contains(reason), "{reason}: {said}"),
                (ended, expected) => panic!("{outcome:?} {file:?}: {ended:?}, not {expected:?}"),
            }
        }
        let newer = ends(&all, 99, None).await.unwrap_err();
        assert!(newer.contains("`outcome`"), "{newer}");
        assert!(wire::RepairRequest::from(&all).all);
        assert!(!wire::RepairRequest::from(&some).all);
    }

    /// Fails if a repair that found nothing to do, or could not look, loses the name of its file, or one that is said to be done names no
    /// filed anomaly.
    #[test]
    fn repair_names_file_without_anomaly() {
        let bare = |outcome: Outcome| wire::RepairResponse {
            outcome: outcome.into(),
            anomaly: Some(wire::AnomalyState {
                file: "a".into(),
                ..wire::AnomalyState::default()
            }),
            ..wire::RepairResponse::default()
        };
        for outcome in [Outcome::Nothing, Outcome::Waiting] {
            let nothing = Repair::try_from(bare(outcome)).unwrap();
            assert_eq!(nothing.file, Some(FileName::new("a").unwrap()));
            assert_eq!(nothing.anomaly, None);
        }
        assert!(
            Repair::try_from(bare(Outcome::Repaired)).is_err(),
            "what was repaired was filed"
        );
    }
}
