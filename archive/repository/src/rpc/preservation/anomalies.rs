//! What is filed, as the wire says it.

use std::sync::Arc;

use archive_model::{AnomalyKind, FileName, Groups};
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::{Answers, Door};
use crate::anomalies::AnomalyRow;
use crate::preserver::blocking;

/// How many anomalies one message has.
const ENTRIES: usize = 500;

/// Which are asked for.
pub(super) struct Wanted {
    all: bool,
    file: Option<FileName>,
}

impl Wanted {
    pub(super) fn new(request: &wire::AnomaliesRequest) -> Result<Self, Status> {
        let file = match request.file.as_str() {
            "" => None,
            name => Some(fields::file_name("file", name)?),
        };
        Ok(Self {
            all: request.all,
            file,
        })
    }

    /// Sends them: the open and accepted ones by file, then those that are closed.
    pub(super) async fn run(
        self,
        door: &Door,
        answers: &Answers<wire::AnomaliesResponse>,
    ) -> Result<(), Status> {
        let (door, answers) = (door.clone(), answers.clone());
        blocking(move || {
            let anomalies = Arc::clone(&door.preserver.anomalies);
            let mut page = Vec::new();
            let closed = self.all.then(|| anomalies.closed()).transpose()?;
            for row in anomalies.rows()?.chain(closed.into_iter().flatten()) {
                let row = row?;
                let is_wanted = self.file.as_ref().is_none_or(|file| *file == row.file)
                    && (self.all || row.filed.accepted.is_none());
                if !is_wanted {
                    continue;
                }
                page.push(state(&door, &row)?);
                if page.len() >= ENTRIES && !send(&answers, std::mem::take(&mut page)) {
                    return Ok(());
                }
            }
            if !page.is_empty() {
                send(&answers, page);
            }
            Ok(())
        })
        .await
    }
}

/// `false`: nobody listens any more.
fn send(answers: &Answers<wire::AnomaliesResponse>, anomalies: Vec<wire::AnomalyState>) -> bool {
    let answer = wire::AnomaliesResponse { anomalies };
    answers.blocking_send(Ok(answer)).is_ok()
}

/// Writes one.
pub(super) fn state(
    door: &Door,
    row: &AnomalyRow,
) -> Result<wire::AnomalyState, archive_db::DbError> {
    let filed = &row.filed;
    let (groups, lost) = match &filed.kind {
        AnomalyKind::Corrupt(groups) | AnomalyKind::Unreadable(groups) => {
            (groups.clone(), Vec::new())
        }
        AnomalyKind::Lost(ranges) => (Groups::none(), ranges.clone()),
        AnomalyKind::Missing
        | AnomalyKind::Unexpected
        | AnomalyKind::Duplicate(_)
        | AnomalyKind::Conflicting(_)
        | AnomalyKind::Disputed(_)
        | AnomalyKind::Unverified { .. }
        | AnomalyKind::Transient
        | AnomalyKind::Incomplete => (Groups::none(), Vec::new()),
    };
    let (state, ended) = match (&row.closed, &filed.accepted) {
        (Some(closed), _) => ("closed", Some(closed)),
        (None, Some(accepted)) => ("accepted", Some(accepted)),
        (None, None) => ("open", None),
    };
    let text = |text: Option<String>| text.unwrap_or_default();
    Ok(wire::AnomalyState {
        id: format!("a{}", filed.id),
        file: row.file.to_string(),
        replica: row.replica.to_string(),
        kind: filed.kind.word().to_owned(),
        what: filed.kind.to_string(),
        groups: fields::group_ranges(&groups),
        lost: lost
            .into_iter()
            .map(|(start, end)| wire::GroupRange { start, end })
            .collect(),
        node: text(filed.node.as_ref().map(ToString::to_string)),
        volume: text(filed.volume.as_ref().map(ToString::to_string)),
        since: filed.since.to_string(),
        state: state.to_owned(),
        found_by: filed.found_by.word().to_owned(),
        ended: text(ended.map(|ended| ended.at.to_string())),
        ended_why: text(ended.map(|ended| ended.why.clone())),
        held: door.preserver.held(row, &door.volumes)?,
        size: filed.size,
    })
}
