//! The list of anomalies on the wire.

use archive_db::DbError;
use archive_ledger::anomalies::{Anomalies, AnomalyRow};
use archive_model::{AnomalyKind, AnomalyState, FileName, FiledAnomaly, Groups};
use archive_rpc::Page;
use archive_rpc::answers::{Outlet, WorkProgress, answer_from};
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::super::admin_failed;
use super::{Answers, Door};

/// The anomalies that a caller asks for.
pub(super) struct AnomalyFilter {
    all: bool,
    file: Option<FileName>,
}

impl AnomalyFilter {
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

    /// Sends the anomalies that pass the filter: the open and accepted ones by file, and then the closed ones.
    pub(super) async fn run_filter(
        self,
        door: &Door,
        answers: &Answers<wire::AnomaliesResponse>,
    ) -> Result<(), Status> {
        let door = door.clone();
        let mut walk = AnomalyWalk::new(self, Page::new());
        answer_from(answers, move |outlet| {
            let sent = walk.send_on(
                &door.archive.anomalies,
                |row| wire_state(&door, row),
                outlet,
            );
            sent.map_err(|error| admin_failed(&error).into())
        })
        .await
    }

    fn has(&self, row: &AnomalyRow) -> bool {
        self.file.as_ref().is_none_or(|file| *file == row.file)
            && (self.all || row.filed.accepted.is_none())
    }
}

/// A walk through the anomalies, as far as the caller has read.
struct AnomalyWalk {
    wanted: AnomalyFilter,
    /// The last one that was put into a page before the caller stopped reading. It may not have been sent yet.
    last: Option<AnomalyRow>,
    page: Page<wire::AnomalyState>,
}

impl AnomalyWalk {
    const fn new(wanted: AnomalyFilter, page: Page<wire::AnomalyState>) -> Self {
        Self {
            wanted,
            last: None,
            page,
        }
    }

    /// Sends the remaining anomalies, as long as the caller receives them.
    fn send_on(
        &mut self,
        anomalies: &Anomalies,
        state: impl Fn(&AnomalyRow) -> Result<wire::AnomalyState, DbError>,
        outlet: &mut Outlet<Result<wire::AnomaliesResponse, Status>>,
    ) -> Result<WorkProgress, DbError> {
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
            if let Some(anomalies) = self.page.push(state(&row)?)
                && !outlet.send_message(Ok(wire::AnomaliesResponse { anomalies }))
            {
                self.last = Some(row);
                return Ok(WorkProgress::Paused);
            }
        }
        if !self.page.is_empty() {
            let anomalies = self.page.take_page();
            outlet.send_message(Ok(wire::AnomaliesResponse { anomalies }));
        }
        Ok(WorkProgress::Done)
    }
}

/// Writes an anomaly.
pub(super) fn wire_state(door: &Door, row: &AnomalyRow) -> Result<wire::AnomalyState, DbError> {
    filed_anomaly(door, row).map(fields::anomaly_message)
}

/// Returns the anomaly as lists show it to people.
pub(super) fn filed_anomaly(door: &Door, row: &AnomalyRow) -> Result<FiledAnomaly, DbError> {
    let filed = &row.filed;
    let (groups, lost) = match &filed.kind {
        AnomalyKind::Corrupt(groups) | AnomalyKind::Unreadable(groups) => {
            (groups.clone(), Vec::new())
        }
        AnomalyKind::Lost(ranges) => (Groups::none(), ranges.clone()),
        _ => (Groups::none(), Vec::new()),
    };
    let (state, ended) = match (&row.closed, &filed.accepted) {
        (Some(closed), _) => (AnomalyState::Closed, Some(closed)),
        (None, Some(accepted)) => (AnomalyState::Accepted, Some(accepted)),
        (None, None) => (AnomalyState::Open, None),
    };
    let held = door.preserver.held_reason(row, &door.volumes)?;
    Ok(FiledAnomaly {
        id: format!("a{}", filed.id),
        file: row.file.clone(),
        replica: row.replica.clone(),
        kind: filed.kind.class(),
        what: filed.kind.to_string(),
        groups,
        lost,
        size: filed.size,
        node: filed.node.clone(),
        volume: filed.volume.clone(),
        since: filed.since,
        state,
        found_by: filed.found_by,
        ended: ended.map(|ended| ended.at),
        ended_why: ended.map(|ended| ended.why.clone()),
        held: (!held.is_empty()).then_some(held),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archive_daemon::Clock;
    use archive_ledger::admin::Admin;
    use archive_ledger::anomalies::{Filing, Look, LookQuality};
    use archive_model::Finder;
    use tokio::sync::mpsc;
    use tokio::task::spawn_blocking;
    use tools_testing::in_time;

    use super::*;

    /// Returns the ids for a caller who reads nothing before the walk has paused, which is after one page more than
    /// there is `room` for.
    async fn read(anomalies: &Arc<Anomalies>, room: usize) -> Vec<String> {
        let (answers, mut pages) = mpsc::channel(room);
        let wanted = AnomalyFilter {
            all: true,
            file: None,
        };
        let mut walk = AnomalyWalk::new(wanted, Page::with_most(2));
        let of = Arc::clone(anomalies);
        let sending = async move {
            let state = |row: &AnomalyRow| {
                Ok(wire::AnomalyState {
                    id: format!("a{}", row.filed.id),
                    ..wire::AnomalyState::default()
                })
            };
            let sent = answer_from(&answers, move |outlet| {
                walk.send_on(&of, state, outlet)
                    .map_err(|error| admin_failed(&error).into())
            });
            sent.await.unwrap();
        };
        let reading = async {
            let mut ids = Vec::new();
            loop {
                // The runtime has one blocking thread, which is free once the walk has paused, or is finished.
                spawn_blocking(|| ()).await.unwrap();
                let Some(page) = pages.recv().await else {
                    return ids;
                };
                ids.extend(page.unwrap().anomalies.into_iter().map(|state| state.id));
                assert!(ids.len() < 50, "it never ends: {ids:?}");
            }
        };
        tokio::join!(sending, reading).1
    }

    /// Fails if the list lacks an anomaly, or has it twice, because its reader paused.
    #[test]
    fn list_continues_after_each_pause() {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        let anomalies = Anomalies::open(&admin, Clock::system_clock()).unwrap();
        let missing = vec![AnomalyKind::Missing];
        let each = (0..14).map(|number| (number, missing.clone()));
        let closed = (0..7).map(|number| (number, Vec::new()));
        for (number, found) in each.chain(closed) {
            let filing = Filing {
                file: &FileName::new(&format!("f-{number:02}")).unwrap(),
                replica: &"one".parse().unwrap(),
                who: "repository/kb",
            };
            let look = Look {
                found,
                quality: LookQuality::Listing,
                by: Finder::Check,
                is_second: false,
                size: 1,
                place: None,
            };
            anomalies.file_look(filing, &look).unwrap();
        }
        // The open anomalies come first.
        let expected = (8..=14).chain(1..=7).map(|id| format!("a{id}"));
        let expected: Vec<_> = expected.collect();
        let anomalies = Arc::new(anomalies);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(in_time(async {
            for room in 1..7 {
                assert_eq!(read(&anomalies, room).await, expected, "{room}");
            }
        }));
    }
}
