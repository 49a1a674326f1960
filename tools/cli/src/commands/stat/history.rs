//! The history of one file: the acts of its audit trail and its anomalies together, in order.

use archive_client::preservation::{AnomalySelection, AuditSelection};
use archive_client::{ClientError, Keeper, Preservation};
use archive_model::{AnomalyState, FileName, FiledAnomaly};
use jiff::Timestamp;
use serde::Serialize;
use tools_terminal::describe;

/// A moment in the life of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Moment {
    at: Timestamp,
    /// `act`, `found` or `ended`.
    kind: &'static str,
    /// The person or part that did or found it.
    who: String,
    what: String,
    /// The id of the anomaly that the moment is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    anomaly: Option<String>,
}

/// Asks for everything that is known of a file: the role officer is needed.
pub(super) async fn file_history(
    keeper: &Keeper,
    name: &FileName,
) -> Result<Vec<Moment>, ClientError> {
    let file = Some(name.clone());
    let selection = AuditSelection {
        file: file.clone(),
        since: None,
    };
    let mut lines = keeper.audit(&selection).await?;
    let mut moments = Vec::new();
    while let Some(line) = lines.next().await? {
        moments.push(Moment {
            at: line.at,
            kind: "act",
            who: line.who,
            what: line.what,
            anomaly: None,
        });
    }
    let selection = AnomalySelection { all: true, file };
    let mut anomalies = keeper.anomalies(&selection).await?;
    while let Some(anomaly) = anomalies.next().await? {
        moments.extend(anomaly_moments(&anomaly));
    }
    // Stable: what happened in one moment stays in the order of the trail, and is done before it is found.
    moments.sort_by_key(|moment| moment.at);
    Ok(moments)
}

/// Returns the moments at which an anomaly was found, and at which it ended.
fn anomaly_moments(anomaly: &FiledAnomaly) -> Vec<Moment> {
    let moment = |at, kind, who: &str, what| Moment {
        at,
        kind,
        who: who.to_owned(),
        what,
        anomaly: Some(anomaly.id.clone()),
    };
    let found = describe::describe_anomaly(anomaly);
    let mut moments = vec![moment(
        anomaly.since,
        "found",
        anomaly.found_by.as_str(),
        found,
    )];
    if anomaly.state != AnomalyState::Open
        && let Some(at) = anomaly.ended
    {
        let why = anomaly.ended_why.as_deref().unwrap_or("no reason is kept");
        let what = format!(
            "{} in {} {}: {why}",
            anomaly.kind, anomaly.replica, anomaly.state
        );
        moments.push(moment(at, "ended", "-", what));
    }
    moments
}

/// Returns the line of a moment for people.
pub(super) fn moment_line(moment: &Moment) -> String {
    let about = moment.anomaly.as_ref().map(|id| format!("  [{id}]"));
    let Moment {
        at,
        kind,
        who,
        what,
        ..
    } = moment;
    let about = about.unwrap_or_default();
    format!(
        "  {}  {kind:<5}  {who}  {what}{about}",
        describe::describe_time(*at)
    )
}

#[cfg(test)]
mod tests {
    use archive_model::AnomalyClass;
    use tools_terminal::testing::filed_anomaly;

    use super::*;

    /// Fails if the history of a file shows that an anomaly was found and not that, when and why it ended.
    #[test]
    fn an_anomaly_is_found_and_ends() {
        let open = filed_anomaly(AnomalyClass::Missing, AnomalyState::Open);
        let moments = anomaly_moments(&open);
        assert_eq!(moments.len(), 1);
        assert_eq!(
            moment_line(&moments[0]),
            "  2026-01-02T03:04:06Z  found  scrub  missing      a.warc.gz  two  [17]"
        );
        let closed = FiledAnomaly {
            state: AnomalyState::Closed,
            ended: Some("2026-01-03T00:00:00Z".parse().unwrap()),
            ended_why: Some("repaired from one".into()),
            ..open
        };
        assert_eq!(
            moment_line(&anomaly_moments(&closed)[1]),
            "  2026-01-03T00:00:00Z  ended  -  missing in two closed: repaired from one  [17]"
        );
    }
}
