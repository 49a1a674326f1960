//! The door: the service `Node`, and the node's own calls to its monitor. A call decodes, calls one function, and
//! encodes.
//!
//! Disks block, so each call runs on a thread that may block, and waits there for the wire within limits; a slow reader
//! of bytes keeps no thread while it does not read.

mod attic;
pub(crate) mod checksum;
mod convert;
mod jobs;
mod listing;
mod mend;
mod notifier;
mod read;
mod scrub;
#[cfg(test)]
mod tests;
mod upload;
mod verify;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Tasks};
use archive_rpc::answers::{Outlet, ROOM, WorkProgress, answer_from, open_answers, open_blocking};
use archive_rpc::{AnswerStream, Answers, Services, run_blocking};
use jiff::Timestamp;
use proto_archive::wire::node_server::{Node as NodeService, NodeServer};
use proto_archive::{convert as fields, wire};
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

pub(crate) use archive_rpc::answers::send_blocking as send;
#[cfg(test)]
pub(crate) use convert::node_report;
pub use convert::{error_status, wire_gaps};
pub use jobs::{JobRunner, RunnerError, StartRunner};
pub(crate) use notifier::{Notifier, monitor_channel};

use crate::catalog::CatalogEntry;
use crate::error::NodeError;
use crate::metrics::Instruments;
use crate::node::Node;
use crate::scrub::ScrubControl;

/// The service `Node`.
pub(crate) struct Door {
    pub(crate) node: Arc<Node>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) scrub: Arc<ScrubControl>,
    pub(crate) jobs: Box<dyn JobRunner>,
    pub(crate) instruments: Instruments,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    pub(crate) idle: Duration,
}

/// Returns the services of the node's server, and the rules of who may call them.
pub(crate) fn node_services(door: Door) -> Services {
    Services {
        routes: Routes::new(NodeServer::new(door)),
        rules: proto_archive::rules::archive_rules(),
        descriptors: vec![proto_archive::DESCRIPTORS],
    }
}

impl Door {
    /// Runs `work` on a thread that may block. `work` sends the answers, and its error ends them.
    fn answer<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&Node, &Answers<T>) -> Result<(), Status> + Send + 'static,
    ) -> Response<AnswerStream<T>> {
        answer(&self.tasks, &self.node, name, work)
    }

    /// Runs `work`, with one answer, on a thread that may block. `work` runs to its end even if the caller has gone
    /// away.
    async fn act<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Node, Timestamp) -> Result<T, NodeError> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let node = Arc::clone(&self.node);
        let now = self.clock.now();
        run_blocking(move || work(&node, now))
            .await?
            .map(Response::new)
            .map_err(|error| convert::error_status(&error))
    }

    /// Runs `work`, which changes what the node takes. When the answer comes, the monitor knows of the change, unless
    /// the report took longer than a heartbeat may.
    async fn change(
        &self,
        work: impl FnOnce(&Node, Timestamp) -> Result<(), NodeError> + Send + 'static,
    ) -> Result<Response<wire::NodeStatus>, Status> {
        let done = self.act(|node, now| work(node, now).map(|()| node_status(node)));
        let status = done.await?;
        self.notifier.tell_now().await;
        Ok(status)
    }
}

/// Writes the status of the node.
fn node_status(node: &Node) -> wire::NodeStatus {
    fields::node_status(convert::node_report(node))
}

/// Runs `work` of a `part` on a thread that may block. `work` sends the answers, and its error ends them.
fn answer<P: Send + Sync + 'static, T: Send + 'static>(
    tasks: &Tasks,
    part: &Arc<P>,
    name: &str,
    work: impl FnOnce(&P, &Answers<T>) -> Result<(), Status> + Send + 'static,
) -> Response<AnswerStream<T>> {
    let part = Arc::clone(part);
    let (stream, task) = open_blocking(ROOM, move |answers| work(&part, answers));
    tasks.spawn_blocking(name, task);
    Response::new(stream)
}

/// Runs `work` on threads that may block, for as long as its answers are taken: a slow caller keeps no thread.
fn answer_in_turns<T: Send + 'static>(
    tasks: &Tasks,
    name: &str,
    work: impl FnMut(&mut Outlet<Result<T, Status>>) -> Result<WorkProgress, Status> + Send + 'static,
) -> Response<AnswerStream<T>> {
    let (stream, task) = open_answers(
        ROOM,
        |answers| async move { answer_from(&answers, work).await },
    );
    tasks.spawn_once(name, task);
    Response::new(stream)
}

#[tonic::async_trait]
impl NodeService for Door {
    async fn upload(
        &self,
        request: Request<Streaming<wire::UploadRequest>>,
    ) -> Result<Response<AnswerStream<wire::UploadResponse>>, Status> {
        let steps = upload::UploadSteps::new(request.into_inner(), self.idle);
        Ok(upload::answer_upload(
            &self.tasks,
            &self.node,
            steps,
            &self.clock,
        ))
    }

    async fn read(
        &self,
        request: Request<wire::ReadRequest>,
    ) -> Result<Response<AnswerStream<wire::Segment>>, Status> {
        let request = request.into_inner();
        let wanted = read::WantedRange {
            name: fields::file_name("name", &request.name)?,
            root: fields::read_root("root", &request.root)?,
            start: request.start,
            end: request.end,
        };
        let node = Arc::clone(&self.node);
        let sent = self.instruments.read_bytes.clone();
        let mut reader = read::SegmentReader::new(node, wanted, sent);
        Ok(answer_in_turns(&self.tasks, "read", move |outlet| {
            reader.send_on(outlet)
        }))
    }

    async fn find(
        &self,
        request: Request<wire::FindRequest>,
    ) -> Result<Response<wire::FindResponse>, Status> {
        let request = request.into_inner();
        let name = fields::file_name("name", &request.name)?;
        self.act(move |node, now| {
            convert::find_response(node, &name, request.on_disk.then_some(now))
        })
        .await
    }

    async fn files(
        &self,
        request: Request<wire::FilesRequest>,
    ) -> Result<Response<AnswerStream<wire::FilesResponse>>, Status> {
        let request = request.into_inner();
        let after = fields::read_after(&request.after)?;
        let clock = self.clock.clone();
        Ok(self.answer("files", move |node, answers| {
            let failed = |error: NodeError| convert::error_status(&error);
            if request.on_disk {
                walk(node, &clock, answers)?;
            }
            if request.only_findings {
                let entries = node.files.list_findings(after.as_ref()).map_err(failed)?;
                files(node, entries, answers)
            } else {
                let entries = node.files.list_entries(after.as_ref()).map_err(failed)?;
                files(node, entries, answers)
            }
        }))
    }

    async fn node_state(
        &self,
        _request: Request<wire::NodeStateRequest>,
    ) -> Result<Response<wire::NodeStatus>, Status> {
        self.act(|node, _| Ok(node_status(node))).await
    }

    async fn set_volume(
        &self,
        request: Request<wire::SetVolumeRequest>,
    ) -> Result<Response<wire::NodeStatus>, Status> {
        let order = fields::disk_order(request.get_ref())?;
        self.change(move |node, now| volumes::carry_out(node, order, now))
            .await
    }

    async fn set_mode(
        &self,
        request: Request<wire::SetModeRequest>,
    ) -> Result<Response<wire::NodeStatus>, Status> {
        let mode = volumes::mode_order(request.into_inner())?;
        self.change(move |node, _| node.disks.set_node_mode(mode))
            .await
    }

    async fn attic(
        &self,
        request: Request<wire::AtticRequest>,
    ) -> Result<Response<AnswerStream<wire::AtticResponse>>, Status> {
        let only = attic::only_name(&request.get_ref().name)?;
        Ok(self.answer("attic", move |node, answers| {
            attic::list_attic(node, only.as_ref(), answers)
        }))
    }

    async fn put_aside(
        &self,
        request: Request<wire::PutAsideRequest>,
    ) -> Result<Response<wire::AtticItem>, Status> {
        let of = attic::removal_order(request.get_ref())?;
        self.act(move |node, now| {
            node.attic
                .put_copy_aside(&of, now)
                .map(|item| attic::wire_item(node, item, None))
        })
        .await
    }

    async fn restore_item(
        &self,
        request: Request<wire::AtticRef>,
    ) -> Result<Response<wire::FileEntry>, Status> {
        let of = attic::item_reference(request.get_ref())?;
        self.act(move |node, now| {
            node.attic
                .restore_item(&of.volume, &of.id, &of.cause, now)
                .map(|entry| convert::wire_entry(node, entry))
        })
        .await
    }

    async fn purge(
        &self,
        request: Request<wire::AtticRef>,
    ) -> Result<Response<wire::PurgeResponse>, Status> {
        let of = attic::item_reference(request.get_ref())?;
        self.act(move |node, now| {
            node.attic
                .purge_item(&of, now)
                .map(|bytes| wire::PurgeResponse { bytes })
        })
        .await
    }

    async fn adopt(
        &self,
        request: Request<wire::AdoptRequest>,
    ) -> Result<Response<wire::FileEntry>, Status> {
        let of = attic::adoption_order(request.get_ref())?;
        self.act(move |node, now| {
            node.files
                .adopt_file(&of.name, &of.volume, &of.admission, now)
                .map(|entry| convert::wire_entry(node, entry))
        })
        .await
    }

    async fn admissions(
        &self,
        request: Request<wire::FilesRequest>,
    ) -> Result<Response<AnswerStream<wire::AdmissionsResponse>>, Status> {
        let after = fields::read_after(&request.get_ref().after)?;
        let only_findings = request.get_ref().only_findings;
        Ok(self.answer("admissions", move |node, answers| {
            attic::attic_admissions(node, after.as_ref(), only_findings, answers)
        }))
    }

    async fn verify(
        &self,
        request: Request<wire::VerifyRequest>,
    ) -> Result<Response<AnswerStream<wire::VerifyResponse>>, Status> {
        let request = request.into_inner();
        let name = fields::file_name("name", &request.name)?;
        let volume = match request.volume.as_str() {
            "" => None,
            volume => Some(fields::volume_id(volume)?),
        };
        let clock = self.clock.clone();
        Ok(self.answer("verify", move |node, answers| {
            verify::verify_files(node, &name, volume.as_ref(), &clock, answers)
        }))
    }

    async fn mend(
        &self,
        request: Request<Streaming<wire::MendRequest>>,
    ) -> Result<Response<AnswerStream<wire::MendResponse>>, Status> {
        let mut steps = mend::MendSteps::new(request.into_inner(), self.idle);
        let clock = self.clock.clone();
        let instruments = self.instruments.clone();
        Ok(self.answer("mend", move |node, answers| {
            steps.mend(node, answers, &clock, &instruments)
        }))
    }

    async fn scrub(
        &self,
        request: Request<wire::ScrubRequest>,
    ) -> Result<Response<wire::ScrubState>, Status> {
        let node = Arc::clone(&self.node);
        let control = Arc::clone(&self.scrub);
        let request = request.into_inner();
        let now = self.clock.now();
        run_blocking(move || scrub::order_scrub(&node, &control, &request, now))
            .await?
            .map(Response::new)
    }

    async fn run_batch(
        &self,
        request: Request<Streaming<wire::BatchRunRequest>>,
    ) -> Result<Response<AnswerStream<wire::BatchRunResponse>>, Status> {
        Ok(self.jobs.run(request.into_inner(), self.idle))
    }

    async fn reduce_batch(
        &self,
        request: Request<Streaming<wire::BatchReduceRequest>>,
    ) -> Result<Response<AnswerStream<wire::BatchReduceResponse>>, Status> {
        Ok(self.jobs.reduce(request.into_inner(), self.idle))
    }
}

/// Compares the names on the disks with the catalog; the caller receives its progress.
fn walk(node: &Node, clock: &Clock, answers: &Answers<wire::FilesResponse>) -> Result<(), Status> {
    let mut news = verify::ProgressReport::new(clock);
    let walked = node.disks.walk_volumes(clock.now(), &mut |names| {
        news.report_progress(names, |looked| {
            send(answers, listing::still_looking(looked))
        })
    });
    news.end_report(walked.map_err(|error| convert::error_status(&error)))?;
    Ok(())
}

fn files(
    node: &Node,
    found: impl Iterator<Item = Result<CatalogEntry, NodeError>>,
    answers: &Answers<wire::FilesResponse>,
) -> Result<(), Status> {
    let entries = found.map(|entry| {
        entry
            .map(|entry| convert::wire_entry(node, entry))
            .map_err(|error| convert::error_status(&error))
    });
    listing::send_all(entries, || convert::wire_gaps(node), answers)
}
