//! What is filed, as the wire says it.

use archive_db::DbError;
use archive_model::{AnomalyKind, FileName, Groups};
use archive_rpc::answers::{Outlet, Progress, answer_from};
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::super::admin_failed;
use super::{Answers, Door};
use crate::anomalies::AnomalyRow;

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
        let door = door.clone();
        let mut walk = Walk {
            wanted: self,
            last: None,
            page: Vec::new(),
        };
        answer_from(answers, move |outlet| {
            let sent = walk.send_on(&door, outlet);
            sent.map_err(|error| admin_failed(&error))
        })
        .await
    }

    fn has(&self, row: &AnomalyRow) -> bool {
        self.file.as_ref().is_none_or(|file| *file == row.file)
            && (self.all || row.filed.accepted.is_none())
    }
}

/// A walk through what is filed, as far as the caller has read.
struct Walk {
    wanted: Wanted,
    /// The last one that was sent before the caller stopped reading.
    last: Option<AnomalyRow>,
    page: Vec<wire::AnomalyState>,
}

impl Walk {
    /// Sends what is left, for as long as it is taken.
    fn send_on(
        &mut self,
        door: &Door,
        outlet: &mut Outlet<Result<wire::AnomaliesResponse, Status>>,
    ) -> Result<Progress, DbError> {
        let anomalies = &door.preserver.anomalies;
        let last = self.last.take();
        let closed_before = last.as_ref().filter(|row| row.closed.is_some());
        let open = match closed_before {
            None => Some(anomalies.rows_after(last.as_ref())?),
            Some(_) => None,
        };
        let closed = if self.wanted.all {
            Some(anomalies.closed_after(closed_before)?)
        } else {
            None
        };
        for row in open
            .into_iter()
            .flatten()
            .chain(closed.into_iter().flatten())
        {
            let row = row?;
            if !self.wanted.has(&row) {
                continue;
            }
            self.page.push(state(door, &row)?);
            if self.page.len() >= ENTRIES && !outlet.send(Ok(self.take_page())) {
                self.last = Some(row);
                return Ok(Progress::Paused);
            }
        }
        if !self.page.is_empty() {
            outlet.send(Ok(self.take_page()));
        }
        Ok(Progress::Done)
    }

    fn take_page(&mut self) -> wire::AnomaliesResponse {
        let anomalies = std::mem::take(&mut self.page);
        wire::AnomaliesResponse { anomalies }
    }
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
