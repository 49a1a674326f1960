//! The doors of a checksum replica, which is its own monitor and its only node. To the repository it is a replica like
//! any other.
//!
//! A call for bytes is refused, because the replica keeps none. See [`crate::checksum`].

mod node;
mod replica;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Tasks};
use archive_model::{FileName, Root, UploadId};
use archive_proof::Envelope;
use archive_rpc::{CallErrorKind, Services, run_blocking};
use jiff::Timestamp;
use proto_archive::wire;
use proto_archive::wire::node_server::NodeServer;
use proto_archive::wire::replica_server::ReplicaServer;
use tonic::service::Routes;
use tonic::{Response, Status};

use super::upload::{FileReceiver, IncomingFile};
use super::verify::ProgressReport;
use super::{AnswerStream, Answers, convert, listing, send};
use crate::catalog::CatalogEntry;
use crate::checksum::{ChecksumReplica, ChecksumTableError, PutAsideError, ReceivingFile, VOLUME};
use crate::error::NodeError;

/// The services `Node` and `Replica`.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) replica: Arc<ChecksumReplica>,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    pub(crate) idle: Duration,
    pub(crate) endpoint: String,
}

/// Returns the services of its server, and the rules of who may call them.
pub(crate) fn checksum_services(door: Door) -> Services {
    let routes = Routes::new(NodeServer::new(door.clone())).add_service(ReplicaServer::new(door));
    Services {
        routes,
        rules: proto_archive::rules::archive_rules(),
        descriptors: vec![proto_archive::DESCRIPTORS],
    }
}

impl Door {
    fn answer<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&ChecksumReplica, &Answers<T>) -> Result<(), Status> + Send + 'static,
    ) -> Response<AnswerStream<T>> {
        super::answer(&self.tasks, &self.replica, name, work)
    }

    /// Runs `work` on a thread that may block, and waits for its answer.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ChecksumReplica) -> Result<T, Status> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let replica = Arc::clone(&self.replica);
        run_blocking(move || work(&replica))
            .await?
            .map(Response::new)
    }

    /// Finds a file, for the node and for the replica.
    async fn find(&self, name: FileName) -> Result<Response<wire::FindResponse>, Status> {
        self.ask(move |replica| {
            // First, as a node with disks does.
            let receiving = replica.receiving_upload(&name);
            let own = replica.replica();
            let node = replica.node();
            let gap = convert::being_received(own, node, receiving.as_ref());
            let found = replica.find_entry(&name).map_err(|error| failed(&error))?;
            Ok(wire::FindResponse {
                entries: found
                    .into_iter()
                    .map(|found| replica.entry(found))
                    .collect(),
                gaps: gap.into_iter().collect(),
                receiving: receiving.map(String::from).unwrap_or_default(),
            })
        })
        .await
    }

    /// Lists every file, for the node and for the replica.
    fn files(
        &self,
        request: &wire::FilesRequest,
    ) -> Result<Response<AnswerStream<wire::FilesResponse>>, Status> {
        let after = proto_archive::convert::read_after(&request.after)?;
        // A row is right or absent: a checksum replica has no findings.
        let is_wanted = !request.only_findings;
        let on_disk = request.on_disk;
        let clock = self.clock.clone();
        Ok(self.answer("files", move |replica, answers| {
            if on_disk {
                // The listing reads the rest of the table.
                let mut news = ProgressReport::new(&clock);
                let verified = replica.table().verify_admissions(&mut |rows| {
                    news.report_progress(rows, |looked| {
                        send(answers, listing::still_looking(looked))
                    })
                });
                news.end_report(verified.map_err(|error| failed(&error)))?;
            }
            let rows = replica
                .list_entries(after.as_ref())
                .map_err(|error| failed(&error))?;
            let entries = rows.take_while(|_| is_wanted).map(|row| {
                row.map(|entry| replica.entry(entry))
                    .map_err(|error| failed(&error))
            });
            listing::send_all(entries, Vec::new, answers)
        }))
    }
}

/// Checks the volume that a request names: no volume, or the only one.
fn table(name: &str, volume: &str) -> Result<(), Status> {
    if volume.is_empty() || volume == VOLUME {
        return Ok(());
    }
    Err(CallErrorKind::NotFound.to_status(format!(
        "{name} is not on volume {volume}; this replica has none"
    )))
}

/// Makes the refusal of a call that needs bytes or disks.
fn has_none(what: &str) -> Status {
    CallErrorKind::NotFound.to_status(format!("this replica keeps checksums only, and has {what}"))
}

fn failed(error: &ChecksumTableError) -> Status {
    tracing::error!(%error, "the table of checksums cannot be read");
    CallErrorKind::Storage.to_status(error.to_string())
}

fn stays(error: &PutAsideError) -> Status {
    let kind = match error {
        PutAsideError::NotFound(_) => CallErrorKind::NotFound,
        PutAsideError::Differs(_) => CallErrorKind::Mismatch,
        PutAsideError::Node(error) => return convert::error_status(error),
    };
    kind.to_status(error.to_string())
}

impl FileReceiver for ChecksumReplica {
    type IncomingFile = ReceivingFile;

    fn begin(
        self: &Arc<Self>,
        upload: &UploadId,
        name: &FileName,
        size: u64,
        points: &[u64],
    ) -> Result<ReceivingFile, NodeError> {
        self.begin_receiving(upload, name, size, points)
    }

    fn earlier(&self, name: &FileName) -> Result<Option<CatalogEntry>, NodeError> {
        Ok(self.find_entry(name)?)
    }

    fn entry(&self, entry: CatalogEntry) -> wire::FileEntry {
        convert::entry_of(self.node(), entry)
    }
}

impl IncomingFile for ReceivingFile {
    fn name(&self) -> &FileName {
        self.name()
    }

    fn received(&self) -> u64 {
        self.received()
    }

    fn root_so_far(&self) -> Root {
        self.root_so_far()
    }

    fn keep(self, length: u64) -> Result<Self, NodeError> {
        Ok(self.back_to(length))
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), NodeError> {
        self.write_all(bytes)
    }

    fn discard(self) -> Result<(), NodeError> {
        drop(self.back_to(0));
        Ok(())
    }

    fn commit(self, admission: &Envelope, now: Timestamp) -> Result<CatalogEntry, NodeError> {
        Self::commit_file(self, admission, now)
    }
}
