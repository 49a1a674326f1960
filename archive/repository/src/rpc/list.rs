//! Listings of the archive: according to the admin data, or as one replica reports now.

use archive_ledger::admin::{AdminRow, FileWalk};
use archive_model::limits::MOST_GATHERED_LISTINGS;
use archive_model::{FileName, NamePattern, ReplicaId};
use archive_rpc::answers::{Progress, answer_from};
use archive_rpc::{CallError, Kind, Page};
use archive_stores::coordinator::Times;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::{Answers, Door, admin_failed, convert, send};

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
                let full = page.push(entry(&row));
                full.is_none_or(|full| outlet.send(Ok(full)))
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
                if !self.matching.matches(copy.name.as_str()) {
                    continue;
                }
                let entry = fields::file_entry(copy);
                let full = page.push(wire::ListEntry {
                    name: entry.name.clone(),
                    size: entry.size,
                    root: entry.root.clone(),
                    entry: Some(entry),
                    replicas: Vec::new(),
                });
                if let Some(full) = full {
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

/// The entries of the next message, and the number of all so far.
#[derive(Default)]
struct ListPage {
    page: Page<wire::ListEntry>,
    count: u64,
}

impl ListPage {
    /// Adds an entry. Returns the message that is to be sent first, if there is no room in it.
    fn push(&mut self, entry: wire::ListEntry) -> Option<wire::ListResponse> {
        self.count += 1;
        let entries = self.page.push(entry)?;
        Some(wire::ListResponse { entries, end: None })
    }

    fn end(&mut self, gaps: Vec<wire::Gap>) -> wire::ListResponse {
        let end = wire::list_response::End {
            count: self.count,
            gaps,
        };
        wire::ListResponse {
            entries: self.page.take(),
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

#[cfg(test)]
mod tests {
    use archive_rpc::limits::LARGEST_MESSAGE;
    use prost::Message;

    use super::*;

    /// Fails if a listing of files that are all damaged in many places has a message that no client reads.
    #[test]
    fn messages_of_scattered_damage_stay_readable() {
        let damage: Vec<_> = (1..=1000)
            .map(|number| wire::GroupRange {
                start: number << 34,
                end: (number << 34) + 1,
            })
            .collect();
        let damaged = wire::ListEntry {
            entry: Some(wire::FileEntry {
                corrupt: damage.clone(),
                unreadable: damage,
                ..wire::FileEntry::default()
            }),
            ..wire::ListEntry::default()
        };
        let mut page = ListPage::default();
        let full = (0..1000).filter_map(|_| page.push(damaged.clone()));
        let mut messages: Vec<_> = full.collect();
        messages.push(page.end(Vec::new()));
        let entries = messages.iter().map(|message| message.entries.len());
        assert_eq!(entries.sum::<usize>(), 1000);
        for message in messages {
            let bytes = message.encoded_len();
            assert!(bytes < LARGEST_MESSAGE / 2, "{bytes}");
        }
    }
}
