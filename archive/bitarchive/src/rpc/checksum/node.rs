//! The service `Node` of a checksum replica: it takes files as a node does, and has no bytes to give.

use archive_model::{AtticItem, AtticKind, AtticPlace, FileName, ScrubActivity, ScrubOrder};
use archive_proof::Envelope;
use archive_rpc::{CallErrorKind, InvalidMessage, Page};
use proto_archive::wire::node_server::Node;
use proto_archive::{convert as fields, wire};
use tonic::{Request, Response, Status, Streaming};

use super::super::{AnswerStream, Answers, convert, listing, send, upload};
use super::{ChecksumReplica, Door, failed, has_none, replica, stays, table};
use crate::checksum::{RemovedRow, removed_lines};
use crate::rpc::upload::FileReceiver;

type Answer<T> = Result<Response<T>, Status>;
type Stream<T> = Answer<AnswerStream<T>>;

/// Returns the only entry of a file, or `NOT_FOUND`.
fn the_entry(replica: &ChecksumReplica, name: &FileName) -> Result<wire::FileEntry, Status> {
    let found = replica.find_entry(name).map_err(|error| failed(&error))?;
    let unknown = || CallErrorKind::NotFound.to_status(format!("this replica has no file {name}"));
    Ok(replica.entry(found.ok_or_else(unknown)?))
}

/// Sends the lines of `removed.jsonl`, all of them or those of one file.
fn removed(
    replica: &ChecksumReplica,
    only: &str,
    answers: &Answers<wire::AtticResponse>,
) -> Result<(), Status> {
    let lines = removed_lines(replica.data());
    let lines = lines.map_err(|error| CallErrorKind::Storage.to_status(error.to_string()))?;
    let mut count = 0;
    let mut page = Page::new();
    for line in lines {
        let item = item(replica, line);
        if !only.is_empty() && item.name != only {
            continue;
        }
        count += 1;
        if let Some(items) = page.push(item) {
            send(answers, wire::AtticResponse { items, end: None })?;
        }
    }
    let gaps = Vec::new();
    let end = Some(wire::files_response::End { count, gaps });
    let items = page.take_page();
    send(answers, wire::AtticResponse { items, end })
}

/// Writes a line as an item. A line that cannot be read has no name.
fn item(replica: &ChecksumReplica, line: Result<RemovedRow, String>) -> wire::AtticItem {
    fields::attic_item_message(match line {
        Ok(row) => row_item(replica, row),
        Err(why) => AtticItem {
            why,
            ..unread_item(replica)
        },
    })
}

/// Returns a removed row as an item.
fn row_item(replica: &ChecksumReplica, row: RemovedRow) -> AtticItem {
    AtticItem {
        name: Some(row.name),
        at: Some(row.at),
        who: row.who,
        why: row.why,
        admission: row.admission,
        approval: row.approval,
        ..unread_item(replica)
    }
}

/// Returns the item of a row of which nothing can be read. No row lies in an attic, so that its place has no id.
fn unread_item(replica: &ChecksumReplica) -> AtticItem {
    AtticItem {
        place: AtticPlace {
            replica: replica.replica().clone(),
            node: replica.node().clone(),
            volume: replica.volume().clone(),
            id: String::new(),
        },
        name: None,
        at: None,
        who: String::new(),
        why: String::new(),
        kind: AtticKind::Row,
        bytes: 0,
        admission: None,
        approval: None,
    }
}

#[tonic::async_trait]
impl Node for Door {
    async fn upload(
        &self,
        request: Request<Streaming<wire::UploadRequest>>,
    ) -> Stream<wire::UploadResponse> {
        let steps = upload::UploadSteps::new(request.into_inner(), self.idle);
        Ok(upload::answer_upload(
            &self.tasks,
            &self.replica,
            steps,
            &self.clock,
        ))
    }

    async fn read(&self, request: Request<wire::ReadRequest>) -> Stream<wire::Segment> {
        let name = fields::file_name("name", &request.into_inner().name)?;
        Err(has_none(&format!("no bytes of {name}; ask another one")))
    }

    async fn find(&self, request: Request<wire::FindRequest>) -> Answer<wire::FindResponse> {
        let name = fields::file_name("name", &request.into_inner().name)?;
        Self::find(self, name).await
    }

    async fn files(&self, request: Request<wire::FilesRequest>) -> Stream<wire::FilesResponse> {
        Self::files(self, &request.into_inner())
    }

    async fn node_state(&self, _: Request<wire::NodeStateRequest>) -> Answer<wire::NodeStatus> {
        let endpoint = self.endpoint.clone();
        let seen = self.clock.now();
        self.ask(move |replica| {
            let state = replica::replica_report(replica, endpoint, seen);
            Ok(fields::node_status(state))
        })
        .await
    }

    /// Answers with the row: there is nothing to read.
    async fn verify(&self, request: Request<wire::VerifyRequest>) -> Stream<wire::VerifyResponse> {
        let request = request.into_inner();
        let name = fields::file_name("name", &request.name)?;
        table(&request.name, &request.volume)?;
        Ok(self.answer("verify", move |replica, answers| {
            let entry = the_entry(replica, &name)?;
            let said = wire::VerifyResponse {
                bytes: 0,
                found: entry.root.clone(),
                entry: Some(entry),
            };
            send(answers, said)
        }))
    }

    async fn mend(&self, _: Request<Streaming<wire::MendRequest>>) -> Stream<wire::MendResponse> {
        Err(has_none("no groups to mend"))
    }

    /// Answers that the scrub is idle: a checksum replica has nothing to read again.
    async fn scrub(&self, request: Request<wire::ScrubRequest>) -> Answer<wire::ScrubState> {
        match fields::scrub_order(request.get_ref())? {
            ScrubOrder::Tell => Ok(Response::new(wire::ScrubState {
                node: self.replica.node().to_string(),
                activity: wire::scrub_state::Activity::from(ScrubActivity::Idle).into(),
                ..wire::ScrubState::default()
            })),
            ScrubOrder::Pause(_) | ScrubOrder::Resume | ScrubOrder::Throttle(_) => {
                Err(has_none("nothing to scrub"))
            }
        }
    }

    async fn run_batch(
        &self,
        _: Request<Streaming<wire::BatchRunRequest>>,
    ) -> Stream<wire::BatchRunResponse> {
        Err(has_none("no bytes to run a job over"))
    }

    async fn reduce_batch(
        &self,
        _: Request<Streaming<wire::BatchReduceRequest>>,
    ) -> Stream<wire::BatchReduceResponse> {
        Err(has_none("no bytes to run a job over"))
    }

    async fn set_volume(&self, _: Request<wire::SetVolumeRequest>) -> Answer<wire::NodeStatus> {
        Err(has_none("no volumes"))
    }

    async fn set_mode(&self, _: Request<wire::SetModeRequest>) -> Answer<wire::NodeStatus> {
        Err(has_none("no other node to take its place"))
    }

    /// Answers with the lines of `removed.jsonl`, which nobody can take back or destroy: there is no attic.
    async fn attic(&self, request: Request<wire::AtticRequest>) -> Stream<wire::AtticResponse> {
        let name = request.into_inner().name;
        if !name.is_empty() {
            fields::file_name("name", &name)?;
        }
        Ok(self.answer("attic", move |replica, answers| {
            removed(replica, &name, answers)
        }))
    }

    async fn put_aside(&self, request: Request<wire::PutAsideRequest>) -> Answer<wire::AtticItem> {
        let request = request.into_inner();
        let name = fields::file_name("name", &request.name)?;
        table(&request.name, &request.volume)?;
        let root = fields::read_root("checksum", &request.checksum)?;
        let cause = fields::read_cause(&request.who, &request.why)?
            .with_approval(fields::read_approval(request.approval)?);
        let now = self.clock.now();
        self.ask(move |replica| {
            let removed = replica.put_aside(&name, &root, &cause, now);
            let removed = removed.map_err(|error| stays(&error))?;
            let row = RemovedRow {
                // Only a listing shows it.
                admission: None,
                ..removed
            };
            Ok(fields::attic_item_message(row_item(replica, row)))
        })
        .await
    }

    async fn restore_item(&self, _: Request<wire::AtticRef>) -> Answer<wire::FileEntry> {
        Err(has_none(
            "no attic; store the file there again from another replica",
        ))
    }

    async fn purge(&self, _: Request<wire::AtticRef>) -> Answer<wire::PurgeResponse> {
        Err(has_none("no attic"))
    }

    async fn adopt(&self, request: Request<wire::AdoptRequest>) -> Answer<wire::FileEntry> {
        let request = request.into_inner();
        table(&request.name, &request.volume)?;
        let name = fields::file_name("name", &request.name)?;
        let admission = Envelope::parse(request.admission.as_bytes())
            .map_err(|error| InvalidMessage::invalid_field("admission", error.to_string()))?;
        let now = self.clock.now();
        self.ask(move |replica| {
            let adopted = replica.adopt_row(&name, &admission, now);
            let entry = adopted.map_err(|error| convert::error_status(&error))?;
            Ok(replica.entry(entry))
        })
        .await
    }

    async fn admissions(
        &self,
        request: Request<wire::FilesRequest>,
    ) -> Stream<wire::AdmissionsResponse> {
        let request = request.into_inner();
        let after = fields::read_after(&request.after)?;
        let is_wanted = !request.only_findings;
        Ok(self.answer("admissions", move |replica, answers| {
            let rows = replica.list_entries(after.as_ref());
            let rows = rows.map_err(|error| failed(&error))?;
            let all = rows.take_while(|_| is_wanted).map(|row| {
                let entry = row.map_err(|error| failed(&error))?;
                let admission = replica.table().admission(&entry.name);
                Ok(wire::admissions_response::One {
                    // Empty only if the row was removed while it was listed.
                    admission: admission
                        .map_err(|error| failed(&error))?
                        .unwrap_or_default(),
                    entry: Some(replica.entry(entry)),
                })
            });
            listing::send_admissions(all, Vec::new, answers)
        }))
    }
}
