//! Accepted anomalies: bound to their state when a person asks, accepted when two persons have decided it.
//!
//! Owns the binding. An approver reads the file, the replica and the anomaly; if it has grown by then, nothing is
//! accepted.

use std::sync::Arc;

use archive_ledger::anomalies::{Anomalies, AnomalyRow, is_within};
use archive_ledger::requests::{AcceptedAnomaly, ActSubject, RequestedAct};
use archive_model::{Act, Cause};
use archive_rpc::{CallError, CallErrorKind, run_blocking};

use super::People;
use super::refusal::changed_meanwhile;
use crate::tables::admin_failed;

impl People {
    /// Binds an act: one that names an anomaly to its present state, one that names an item of an attic to the present
    /// item, one that names a volume or a node to its place.
    pub(super) async fn bind_act(&self, act: Act) -> Result<RequestedAct, CallError> {
        let subject = match &act {
            Act::Accept { anomaly } => {
                let anomalies = Arc::clone(&self.archive.anomalies);
                let id = anomaly.clone();
                ActSubject::Anomaly(run_blocking(move || acceptable(&anomalies, &id)).await??)
            }
            Act::Purge { place, .. } => ActSubject::Item(self.attic_item(place).await?),
            Act::Remove { .. }
            | Act::RetireVolume { .. }
            | Act::RetireNode { .. }
            | Act::RetireReplica(_)
            | Act::NewRoot { .. }
            | Act::ReinstateCopy { .. }
            | Act::ReinstateVolume(_)
            | Act::ReinstateNode(_) => ActSubject::None,
        };
        let act = self.with_place(act).await?;
        Ok(RequestedAct { act, subject })
    }
}

/// Returns the open anomaly of that id.
///
/// # Errors
/// The reason why it cannot be accepted.
fn acceptable(anomalies: &Anomalies, id: &str) -> Result<AcceptedAnomaly, CallError> {
    let AnomalyRow {
        file,
        replica,
        filed,
        ..
    } = find(anomalies, id)?;
    if filed.accepted.is_some() {
        return Err(CallErrorKind::Exists.to_error(format!("anomaly `{id}` is accepted already")));
    }
    Ok(AcceptedAnomaly {
        file,
        replica,
        kind: filed.kind,
    })
}

/// Accepts an open anomaly, if it is no worse than the one that was asked for. An accepted anomaly stays so: the act is
/// repeated after a restart. Blocks.
pub(super) fn accept_anomaly(
    anomalies: &Anomalies,
    id: &str,
    of: Option<AcceptedAnomaly>,
    cause: &Cause,
) -> Result<String, CallError> {
    let of = of.ok_or_else(|| {
        changed_meanwhile("the request does not name its anomaly; ask again".to_owned())
    })?;
    let row = find(anomalies, id)?;
    let worse = |now: &str| {
        changed_meanwhile(format!(
            "anomaly `{id}` is not what was asked for ({} of {} in replica {}) but {now}; look at it, and ask again",
            of.kind, of.file, of.replica
        ))
    };
    let is_it = (&row.file, &row.replica) == (&of.file, &of.replica);
    if !is_it || !is_within(&row.filed.kind, &of.kind) {
        return Err(worse(&format!(
            "{} of {} in replica {}",
            row.filed.kind, row.file, row.replica
        )));
    }
    if row.filed.accepted.is_none() {
        let is_accepted = anomalies
            .accept_anomaly(&row, &of.kind, (&cause.why, &cause.who))
            .map_err(|error| admin_failed(&error))?;
        if !is_accepted {
            // The anomaly changed just now.
            return Err(worse("something else by now"));
        }
    }
    Ok(format!(
        "{} of {} in replica {} is accepted",
        row.filed.kind, row.file, row.replica
    ))
}

fn find(anomalies: &Anomalies, id: &str) -> Result<AnomalyRow, CallError> {
    let number = id
        .strip_prefix('a')
        .and_then(|digits| digits.parse().ok())
        .filter(|number| format!("a{number}") == id)
        .ok_or_else(|| unknown(id))?;
    anomalies
        .by_id(number)
        .map_err(|error| admin_failed(&error))?
        .ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> CallError {
    CallErrorKind::NotFound.to_error(format!(
        "there is no open anomaly `{id}`; `holdfast anomalies` lists them"
    ))
}

#[cfg(test)]
mod tests {
    use archive_daemon::Clock;
    use archive_ledger::admin::Admin;
    use archive_ledger::anomalies::{Filing, Look, LookQuality};
    use archive_model::{AnomalyKind, FileName, Finder, Groups, ReplicaId};

    use super::*;

    fn found(anomalies: &Anomalies, of: &[u64]) {
        let file = FileName::new("a").unwrap();
        let replica = ReplicaId::new("one").unwrap();
        let filing = Filing {
            file: &file,
            replica: &replica,
            who: "node/one-1",
        };
        let look = Look {
            found: vec![AnomalyKind::Corrupt(of.iter().copied().collect())],
            quality: LookQuality::Bytes,
            by: Finder::Scrub,
            is_second: false,
            size: 65536,
            place: None,
        };
        anomalies.file_look(filing, &look).unwrap();
    }

    /// Fails if an anomaly that has grown is accepted by its id alone, an accepted one stays accepted although it
    /// grows, or one that has shrunk is refused.
    #[test]
    fn anomaly_is_accepted_only_as_requested() {
        let cause = Cause {
            who: "officer/olga, approved by custodian/c".to_owned(),
            approval: None,
            why: "r1: old paper".to_owned(),
        };
        for (at_approval, is_accepted) in [
            (&[1][..], true),
            (&[1, 2], true),
            (&[2], true),
            (&[1, 2, 3], false),
            (&[3], false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let admin = Admin::init(directory.path()).unwrap();
            let anomalies = Anomalies::open(&admin, Clock::system_clock()).unwrap();
            found(&anomalies, &[1, 2]);
            let asked = acceptable(&anomalies, "a1").unwrap();
            assert_eq!(asked.kind, AnomalyKind::Corrupt(Groups::from_iter([1, 2])));
            found(&anomalies, at_approval);
            let accepted = accept_anomaly(&anomalies, "a1", Some(asked.clone()), &cause);
            assert_eq!(accepted.is_ok(), is_accepted, "{accepted:?}");
            let row = || anomalies.by_id(1).unwrap().unwrap().filed;
            assert_eq!(row().accepted.is_some(), is_accepted);
            if !is_accepted {
                let said = accepted.unwrap_err().reason;
                assert!(
                    said.contains("groups 1-2") && said.contains("ask again"),
                    "{said}"
                );
                continue;
            }
            assert!(
                accept_anomaly(&anomalies, "a1", Some(asked), &cause).is_ok(),
                "after a restart"
            );
            assert!(acceptable(&anomalies, "a1").is_err(), "twice");
            found(&anomalies, at_approval);
            assert!(row().accepted.is_some(), "no worse");
            found(&anomalies, &[1, 2, 3]);
            assert!(row().accepted.is_none(), "worse: it is open again");
            assert!(row().confirmed.is_none());
        }
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        let anomalies = Anomalies::open(&admin, Clock::system_clock()).unwrap();
        found(&anomalies, &[1]);
        assert!(
            accept_anomaly(&anomalies, "a1", None, &cause).is_err(),
            "bound to nothing"
        );
        let other = AcceptedAnomaly {
            file: FileName::new("b").unwrap(),
            replica: ReplicaId::new("one").unwrap(),
            kind: AnomalyKind::Corrupt(Groups::from_iter([1])),
        };
        assert!(
            accept_anomaly(&anomalies, "a1", Some(other), &cause).is_err(),
            "another file"
        );
        for unknown in ["", "a", "1", "a01", "a2", "b1"] {
            assert!(acceptable(&anomalies, unknown).is_err(), "{unknown}");
        }
    }
}
