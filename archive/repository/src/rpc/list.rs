//! Listings of the archive: according to the admin data, or as one replica reports now.

use archive_ledger::admin::{AdminRow, FileWalk};
use archive_model::limits::MOST_GATHERED_LISTINGS;
use archive_model::{FileName, NamePattern, ReplicaId};
use archive_rpc::answers::{WorkProgress, answer_from};
use archive_rpc::{CallError, CallErrorKind, Page};
use archive_stores::coordinator::Times;
use prost::Message;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::{Answers, Door, admin_failed, convert, send_answer};

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
            after: fields::read_after(&request.after)?,
            matching,
        })
    }

    /// Sends the listing.
    pub(super) async fn run_list(
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
        let admin = door.archive.admin.clone();
        let mut page = ListPage::new(files);
        let mut walk = FileWalk::default().after_name(self.after.take());
        answer_from(answers, move |outlet| {
            let is_over = walk.walk_each(&admin, |row| {
                if row.record.content.is_none() || !self.matching.matches(row.record.name.as_str())
                {
                    return true;
                }
                let full = page.push(entry(&row));
                full.is_none_or(|full| outlet.send_message(Ok(full)))
            });
            if !is_over.map_err(|error| admin_failed(&error))? {
                return Ok(WorkProgress::Paused);
            }
            outlet.send_message(Ok(page.end(Vec::new())));
            Ok(WorkProgress::Done)
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
            CallErrorKind::Busy.to_status(format!(
                "{MOST_GATHERED_LISTINGS} listings of replicas are under way; try again when one has ended"
            ))
        })?;
        let calls = &door.archive.calls;
        let named = |error: CallError| {
            if error.kind == CallErrorKind::TimedOut {
                return CallErrorKind::TimedOut.to_status(format!("replica {replica}: {error}"));
            }
            Status::from(error)
        };
        let opening = calls.replicas.copies_after(replica, self.after.as_ref());
        let mut listing = calls.answered_call(opening).await.map_err(named)?;
        let mut page = ListPage::new(copies);
        loop {
            let listed = calls.answered_call(listing.next()).await.map_err(named)?;
            for copy in listed.items {
                if !self.matching.matches(copy.name.as_str()) {
                    continue;
                }
                if let Some(full) = page.push(fields::file_entry(copy)) {
                    send_answer(answers, full).await?;
                }
            }
            if let Some(gaps) = listed.end {
                let gaps = gaps.into_iter().map(fields::gap_message).collect();
                return send_answer(answers, page.end(gaps)).await;
            }
        }
    }
}

/// The items of the next message, and the number of all so far.
struct ListPage<T> {
    page: Page<T>,
    count: u64,
    message: fn(Vec<T>) -> wire::ListResponse,
}

impl<T: Message> ListPage<T> {
    const fn new(message: fn(Vec<T>) -> wire::ListResponse) -> Self {
        Self {
            page: Page::new(),
            count: 0,
            message,
        }
    }

    /// Adds an item. Returns the message that is to be sent first, if there is no room in it.
    fn push(&mut self, item: T) -> Option<wire::ListResponse> {
        self.count += 1;
        self.page.push(item).map(self.message)
    }

    fn end(&mut self, gaps: Vec<wire::Gap>) -> wire::ListResponse {
        let end = wire::list_response::End {
            count: self.count,
            gaps,
        };
        wire::ListResponse {
            end: Some(end),
            ..(self.message)(self.page.take_page())
        }
    }
}

const fn files(entries: Vec<wire::ListEntry>) -> wire::ListResponse {
    wire::ListResponse {
        entries,
        copies: Vec::new(),
        end: None,
    }
}

const fn copies(copies: Vec<wire::FileEntry>) -> wire::ListResponse {
    wire::ListResponse {
        entries: Vec::new(),
        copies,
        end: None,
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
        replicas: convert::wire_replicas(&row.record, &Times::new()),
    }
}

#[cfg(test)]
mod tests {
    use archive_rpc::limits::LARGEST_MESSAGE;

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
        let damaged = wire::FileEntry {
            corrupt: damage.clone(),
            unreadable: damage,
            ..wire::FileEntry::default()
        };
        let mut page = ListPage::new(copies);
        let full = (0..1000).filter_map(|_| page.push(damaged.clone()));
        let mut messages: Vec<_> = full.collect();
        messages.push(page.end(Vec::new()));
        let sent = messages.iter().map(|message| message.copies.len());
        assert_eq!(sent.sum::<usize>(), 1000);
        for message in messages {
            let bytes = message.encoded_len();
            assert!(bytes < LARGEST_MESSAGE / 2, "{bytes}");
        }
    }
}
