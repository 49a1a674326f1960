//! Listings of the archive: according to the admin data, or as one replica reports now.

use archive_ledger::admin::{AdminRow, FileWalk};
use archive_model::limits::MOST_GATHERED_LISTINGS;
use archive_model::{FileName, NamePattern, ReplicaId};
use archive_rpc::answers::{Progress, answer_from};
use archive_rpc::{CallError, Kind};
use archive_stores::coordinator::Times;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::{Answers, Door, admin_failed, convert, send};

/// The number of entries in one message.
const ENTRIES: usize = 1000;

/// A request for a listing.
pub(super) struct ListJob {
    replica: Option<ReplicaId>,
    after: Option<FileName>,
    matching: NamePattern,
}

impl ListJob {
    /// Reads the request.
    pub(super) fn new(request: &wire::ListRequest) -> Result<Self, Status> {
        let replica = match request.replica.as_str() {
            "" => None,
            id => Some(fields::replica_id(id)?),
        };
        let matching = fields::name_pattern("match", &request.r#match)?;
        Ok(Self {
            replica,
            after: fields::after(&request.after)?,
            matching,
        })
    }

    /// Sends the listing.
    pub(super) async fn run(
        self,
        door: &Door,
        answers: &Answers<wire::ListResponse>,
    ) -> Result<(), Status> {
        match self.replica.clone() {
            None => self.decided(door, answers).await,
            Some(replica) => self.gathered(door, &replica, answers).await,
        }
    }

    async fn decided(
        mut self,
        door: &Door,
        answers: &Answers<wire::ListResponse>,
    ) -> Result<(), Status> {
        let (admin, mut page) = (door.archive.admin.clone(), ListPage::default());
        let mut walk = FileWalk::default().behind(self.after.take());
        answer_from(answers, move |outlet| {
            let is_over = walk.each(&admin, |row| {
                if row.record.content.is_none() || !self.matching.matches(row.record.name.as_str())
                {
                    return true;
                }
                page.add(entry(&row));
                page.full().is_none_or(|full| outlet.send(Ok(full)))
            });
            if !is_over.map_err(|error| admin_failed(&error))? {
                return Ok(Progress::Paused);
            }
            outlet.send(Ok(page.end(Vec::new())));
            Ok(Progress::Done)
        })
        .await
    }

    async fn gathered(
        self,
        door: &Door,
        replica: &ReplicaId,
        answers: &Answers<wire::ListResponse>,
    ) -> Result<(), Status> {
        let _place = door.listings.try_acquire().map_err(|_none_left| {
            Kind::Busy.status(format!(
                "{MOST_GATHERED_LISTINGS} listings of replicas are under way; try again when one has ended"
            ))
        })?;
        let calls = &door.archive.calls;
        let named = |error: CallError| {
            if error.kind == Kind::TimedOut {
                return Kind::TimedOut.status(format!("replica {replica}: {error}"));
            }
            Status::from(error)
        };
        let opening = calls.replicas.copies_after(replica, self.after.as_ref());
        let mut copies = calls.answered(opening).await.map_err(named)?;
        let mut page = ListPage::default();
        loop {
            let listed = calls.answered(copies.next()).await.map_err(named)?;
            for copy in listed.items {
                if self.matching.matches(copy.name.as_str()) {
                    let entry = fields::file_entry(copy);
                    page.add(wire::ListEntry {
                        name: entry.name.clone(),
                        size: entry.size,
                        root: entry.root.clone(),
                        entry: Some(entry),
                        replicas: Vec::new(),
                    });
                }
                if let Some(full) = page.full() {
                    send(answers, full).await?;
                }
            }
            if let Some(gaps) = listed.end {
                let gaps = gaps.into_iter().map(fields::gap_message).collect();
                return send(answers, page.end(gaps)).await;
            }
        }
    }
}

/// The entries of the next message.
#[derive(Default)]
struct ListPage {
    entries: Vec<wire::ListEntry>,
    count: u64,
}

impl ListPage {
    fn add(&mut self, entry: wire::ListEntry) {
        self.entries.push(entry);
        self.count += 1;
    }

    fn full(&mut self) -> Option<wire::ListResponse> {
        let is_full = self.entries.len() >= ENTRIES;
        is_full.then(|| wire::ListResponse {
            entries: std::mem::take(&mut self.entries),
            end: None,
        })
    }

    fn end(&mut self, gaps: Vec<wire::Gap>) -> wire::ListResponse {
        let end = wire::list_response::End {
            count: self.count,
            gaps,
        };
        wire::ListResponse {
            entries: std::mem::take(&mut self.entries),
            end: Some(end),
        }
    }
}

fn entry(row: &AdminRow) -> wire::ListEntry {
    let content = row.record.content.as_ref();
    wire::ListEntry {
        name: row.record.name.to_string(),
        size: content.map(|content| content.size).unwrap_or_default(),
        root: content
            .map(|content| fields::root_bytes(&content.root))
            .unwrap_or_default(),
        entry: None,
        replicas: convert::replicas(&row.record, &Times::new()),
    }
}
