//! What is in the archive: as was decided, or as one replica says now.

use archive_model::{FileName, NamePattern, ReplicaId};
use archive_rpc::Kind;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::{Answers, Door, admin_failed, convert, send};
use crate::admin::AdminRow;

/// How many entries one message has.
const ENTRIES: usize = 1000;

/// What is to be listed.
pub(super) struct Job {
    replica: Option<ReplicaId>,
    after: Option<FileName>,
    matching: NamePattern,
}

impl Job {
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

    /// Sends it.
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
        self,
        door: &Door,
        answers: &Answers<wire::ListResponse>,
    ) -> Result<(), Status> {
        let (admin, answers) = (door.admin.clone(), answers.clone());
        let listed = tokio::task::spawn_blocking(move || {
            let mut page = Page::default();
            for row in admin
                .files(self.after.as_ref())
                .map_err(|error| admin_failed(&error))?
            {
                let row = row.map_err(|error| admin_failed(&error))?;
                if row.record.content.is_some() && self.matching.matches(row.record.name.as_str()) {
                    page.add(entry(&row));
                    if let Some(full) = page.full() {
                        answers
                            .blocking_send(Ok(full))
                            .map_err(|_gone| Status::cancelled("the caller is gone"))?;
                    }
                }
            }
            let last = page.end(Vec::new());
            answers
                .blocking_send(Ok(last))
                .map_err(|_gone| Status::cancelled("the caller is gone"))
        });
        listed
            .await
            .map_err(|error| Kind::Internal.status(error.to_string()))?
    }

    async fn gathered(
        self,
        door: &Door,
        replica: &ReplicaId,
        answers: &Answers<wire::ListResponse>,
    ) -> Result<(), Status> {
        let after = self
            .after
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let mut messages = door.replicas.listing(replica, &after).await?;
        let mut page = Page::default();
        loop {
            let message = door
                .clock
                .timeout(door.settings.stall.duration(), messages.message())
                .await;
            let message = message
                .map_err(|late| Kind::TimedOut.status(format!("replica {replica}: {late}")))??;
            let cut = || {
                Kind::Unavailable.status(format!(
                    "the listing of replica {replica} ended before its end"
                ))
            };
            let message = message.ok_or_else(cut)?;
            for found in message.entries {
                if self.matching.matches(&found.name) {
                    page.add(wire::ListEntry {
                        name: found.name.clone(),
                        size: found.size,
                        root: found.root.clone(),
                        entry: Some(found),
                        replicas: Vec::new(),
                    });
                }
                if let Some(full) = page.full() {
                    send(answers, full).await?;
                }
            }
            if let Some(end) = message.end {
                return send(answers, page.end(end.gaps)).await;
            }
        }
    }
}

/// Entries that wait for a message to be full.
#[derive(Default)]
struct Page {
    entries: Vec<wire::ListEntry>,
    count: u64,
}

impl Page {
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

    fn end(self, gaps: Vec<wire::Gap>) -> wire::ListResponse {
        let end = wire::list_response::End {
            count: self.count,
            gaps,
        };
        wire::ListResponse {
            entries: self.entries,
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
        replicas: convert::replicas(&row.record),
    }
}
