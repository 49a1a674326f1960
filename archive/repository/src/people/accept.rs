//! Anomalies that are lived with: found by the id that people have read, accepted when two persons have said so.
//!
//! Both block: for a thread that may.

use archive_rpc::Kind;
use tonic::Status;

use crate::anomalies::{Anomalies, AnomalyRow};
use crate::replicas::Cause;

/// Whether there is an open anomaly of that id; else why not.
pub(super) fn acceptable(anomalies: &Anomalies, id: &str) -> Result<(), Status> {
    let row = find(anomalies, id)?;
    match row.filed.accepted {
        None => Ok(()),
        Some(_) => Err(Kind::Exists.status(format!("anomaly `{id}` is accepted already"))),
    }
}

/// Makes an open anomaly an accepted one, and says what it is. One that is accepted stays so: the act is done again
/// after a restart.
pub(super) fn accept(anomalies: &Anomalies, id: &str, cause: &Cause) -> Result<String, Status> {
    let row = find(anomalies, id)?;
    if row.filed.accepted.is_none() {
        let is_accepted = anomalies
            .accept(&row, &cause.why, &cause.who)
            .map_err(|error| super::failed_db(&error))?;
        if !is_accepted {
            return Err(unknown(id));
        }
    }
    Ok(format!(
        "{} of {} in replica {} is lived with from now on",
        row.filed.kind, row.file, row.replica
    ))
}

fn find(anomalies: &Anomalies, id: &str) -> Result<AnomalyRow, Status> {
    let number = id
        .strip_prefix('a')
        .and_then(|digits| digits.parse().ok())
        .filter(|number| format!("a{number}") == id)
        .ok_or_else(|| unknown(id))?;
    anomalies
        .by_id(number)
        .map_err(|error| super::failed_db(&error))?
        .ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Status {
    Kind::NotFound.status(format!(
        "there is no open anomaly `{id}`; `holdfast anomalies` lists them"
    ))
}
