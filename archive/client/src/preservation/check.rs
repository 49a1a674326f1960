//! A check as it goes: progress, anomalies, and a report of every replica. Without all reports it is not complete.

use std::collections::{BTreeSet, VecDeque};

use archive_model::{CheckKind, CheckStep, FileName, ReplicaId};
use archive_rpc::StepReader;
use proto_archive::wire::check_request::Kind;
use proto_archive::{convert, wire};

use crate::error::ClientError;

/// The largest number of replicas that is believed: more than any archive has.
const MOST_REPLICAS: usize = 1000;

/// The order for a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOrder {
    /// The depth of the check.
    pub kind: CheckKind,
    /// Checks only these files; empty: all.
    pub names: Vec<FileName>,
    /// Checks only names that match this regular expression as a whole.
    pub matching: Option<String>,
    /// Checks only this replica.
    pub replica: Option<ReplicaId>,
    /// Whether to ask every copy for random groups with their proofs too.
    pub challenge: bool,
}

impl From<&CheckOrder> for wire::CheckRequest {
    fn from(order: &CheckOrder) -> Self {
        Self {
            kind: Kind::from(order.kind).into(),
            names: order.names.iter().map(ToString::to_string).collect(),
            r#match: order.matching.clone().unwrap_or_default(),
            replica: order
                .replica
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            challenge: order.challenge,
        }
    }
}

/// Reads a check: every replica that is named must be reported, once.
pub(super) struct Checks {
    wanted: Option<ReplicaId>,
    spoken: BTreeSet<ReplicaId>,
    reported: BTreeSet<ReplicaId>,
}

impl Checks {
    pub(super) fn new(order: &CheckOrder) -> Self {
        Self {
            wanted: order.replica.clone(),
            spoken: BTreeSet::new(),
            reported: BTreeSet::new(),
        }
    }

    fn speak(&mut self, replica: &ReplicaId) -> Result<(), ClientError> {
        if let Some(wanted) = self.wanted.as_ref().filter(|wanted| *wanted != replica) {
            return Err(ClientError::Untrusted(format!(
                "asked to check replica {wanted}, the archive speaks of {replica}"
            )));
        }
        if !self.spoken.contains(replica) {
            self.spoken.insert(replica.clone());
        }
        if self.spoken.len() > MOST_REPLICAS {
            return Err(ClientError::Untrusted(format!(
                "the archive speaks of more than {MOST_REPLICAS} replicas"
            )));
        }
        Ok(())
    }
}

impl StepReader for Checks {
    type Message = wire::CheckResponse;
    type Item = CheckStep;
    type Error = ClientError;

    fn read(
        &mut self,
        message: wire::CheckResponse,
        out: &mut VecDeque<CheckStep>,
    ) -> Result<(), ClientError> {
        let step = convert::check_step(message)?;
        match &step {
            CheckStep::Progress(progress) => self.speak(&progress.replica)?,
            CheckStep::Anomaly(anomaly) => self.speak(&anomaly.replica)?,
            CheckStep::Report(report) => {
                self.speak(&report.replica)?;
                if !self.reported.insert(report.replica.clone()) {
                    let replica = &report.replica;
                    return Err(ClientError::Untrusted(format!(
                        "the archive reports replica {replica} twice"
                    )));
                }
            }
        }
        out.push_back(step);
        Ok(())
    }

    fn end(&mut self, _out: &mut VecDeque<CheckStep>) -> Result<(), ClientError> {
        let cut = |reason: String| Err(ClientError::Unavailable(reason));
        if let Some(replica) = self.spoken.difference(&self.reported).next() {
            return cut(format!(
                "the check was cut before replica {replica} was reported; it is not complete"
            ));
        }
        if self.reported.is_empty() {
            return cut(
                "the check was cut before any replica was reported; it is not complete".to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proto_archive::wire::check_response::{Progress, Report, Step};

    use super::*;
    use crate::preservation::anomaly::tests::wire_anomaly as anomaly;
    use archive_rpc::testing::read_steps;

    fn step(step: Step) -> wire::CheckResponse {
        wire::CheckResponse { step: Some(step) }
    }

    fn progress(replica: &str) -> Step {
        Step::Progress(Progress {
            replica: replica.into(),
            files: 1,
            ..Progress::default()
        })
    }

    fn report(replica: &str, kinds: &[i32]) -> Step {
        Step::Report(Report {
            replica: replica.into(),
            files: 1,
            anomalies: kinds
                .iter()
                .map(|kind| wire::AnomalyCount {
                    kind: *kind,
                    count: 1,
                })
                .collect(),
            ..Report::default()
        })
    }

    fn order(replica: Option<&str>) -> CheckOrder {
        CheckOrder {
            kind: CheckKind::Files,
            names: vec![],
            matching: None,
            replica: replica.map(|id| id.parse().unwrap()),
            challenge: false,
        }
    }

    async fn ends(replica: Option<&str>, steps: Vec<Step>) -> Result<(), String> {
        let messages = steps.into_iter().map(|one| Ok(step(one))).collect();
        read_steps(Checks::new(&order(replica)), messages).await.1
    }

    /// Fails if a check that ends before the report of every replica that it spoke of counts as complete.
    #[tokio::test]
    async fn a_check_is_complete_when_everyone_was_reported() {
        let missing = || Step::Anomaly(anomaly("a", wire::AnomalyKind::Missing));
        let whole = vec![
            progress("one"),
            progress("two"),
            missing(),
            report("two", &[]),
            report("one", &[wire::AnomalyKind::Missing.into()]),
        ];
        assert_eq!(ends(None, whole.clone()).await, Ok(()));
        for cut in 0..whole.len() {
            let error = ends(None, whole.iter().take(cut).cloned().collect())
                .await
                .unwrap_err();
            assert!(error.contains("not complete"), "{cut}: {error}");
        }
        assert_eq!(
            ends(Some("one"), vec![progress("one"), report("one", &[])]).await,
            Ok(())
        );
    }

    /// Fails if a check is believed that reports one replica twice, speaks of a replica that was not asked for, or
    /// names replicas without end.
    #[tokio::test]
    async fn check_that_does_not_add_up_is_untrusted() {
        for (replica, steps, reason) in [
            (None, vec![report("one", &[]), report("one", &[])], "twice"),
            (Some("two"), vec![progress("one")], "speaks of one"),
            (None, vec![report("one", &[99])], "99"),
            (None, vec![report("One", &[])], "`replica`"),
        ] {
            let error = ends(replica, steps).await.unwrap_err();
            assert!(error.contains(reason), "{reason}: {error}");
        }
        let newer = Ok(wire::CheckResponse { step: None });
        let (_, end) = read_steps(Checks::new(&order(None)), vec![newer]).await;
        assert!(end.unwrap_err().contains("`step`"));
        let many = (0..2000).map(|n| progress(&format!("r-{n}"))).collect();
        assert!(
            ends(None, many)
                .await
                .unwrap_err()
                .contains("more than 1000")
        );
    }
}
