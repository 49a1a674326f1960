//! An upload over the wire: open, ready, start, data, close, stored; or forget instead of close.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Tasks};
use archive_model::{FileName, Root, UploadId};
use archive_proof::Envelope;
use archive_rpc::answers::{ROOM, open_answers, send_answer};
use archive_rpc::{CallErrorKind, IdleTimeout, InvalidMessage, run_blocking};
use bytes::Bytes;
use futures_util::FutureExt;
use jiff::Timestamp;
use proto_archive::wire::upload_request::Step;
use proto_archive::{convert as fields, wire};
use tokio_stream::StreamExt;
use tonic::{Response, Status, Streaming};

use super::{AnswerStream, Answers, convert};
use crate::catalog::{CatalogEntry, Condition};
use crate::error::NodeError;
use crate::node::Node;

/// The most points at which a sender may offer to resume: more than an honest one ever offers.
const MOST_POINTS: usize = 1024;

/// The bytes that are taken at once where that many wait: a thread is asked for once for all of them.
const TURN: usize = 1 << 20;

/// The sender's messages.
pub(crate) struct UploadSteps {
    stream: IdleTimeout<Streaming<wire::UploadRequest>>,
    /// A message that came behind bytes, and is not taken yet.
    next: Option<Step>,
}

impl UploadSteps {
    /// Wraps the stream. Must be called within the runtime.
    pub(crate) fn new(stream: Streaming<wire::UploadRequest>, idle: Duration) -> Self {
        Self {
            stream: IdleTimeout::new(stream, idle),
            next: None,
        }
    }

    /// Waits for the next message. A stream that ends before `close` was cut.
    async fn next(&mut self) -> Result<Step, Status> {
        match self.next.take() {
            Some(step) => Ok(step),
            None => read_step(self.stream.next().await),
        }
    }

    /// Returns the bytes of a message, and of those behind it that are here already.
    fn gather(&mut self, first: Bytes) -> Result<Vec<Bytes>, Status> {
        let mut size = first.len();
        let mut bytes = vec![first];
        while size < TURN
            && let Some(message) = self.stream.next().now_or_never()
        {
            match read_step(message)? {
                Step::Data(more) => {
                    size += more.len();
                    bytes.push(more);
                }
                other => {
                    self.next = Some(other);
                    break;
                }
            }
        }
        Ok(bytes)
    }
}

fn read_step(message: Option<Result<wire::UploadRequest, Status>>) -> Result<Step, Status> {
    let message = message.unwrap_or_else(|| {
        Err(CallErrorKind::Unavailable.to_status("the upload ended before `close`"))
    })?;
    Ok(message
        .step
        .ok_or_else(|| InvalidMessage::missing_field("step"))?)
}

/// A receiver of files: the disks of a node, or the table of a checksum replica.
///
/// There are two implementers because both speak the same protocol, with [`receive`], so that a sender need not know to
/// which of them it talks; and what they do with the bytes differs: a [`Node`] writes them to a volume and publishes a
/// file, a checksum replica hashes them and writes a row.
pub(crate) trait FileReceiver: Send + Sync + 'static {
    /// A file that is being received.
    type IncomingFile: IncomingFile;

    /// Begins to receive a file, or resumes where an earlier stream of the same upload was cut, at one of `points`.
    fn begin(
        self: &Arc<Self>,
        upload: &UploadId,
        name: &FileName,
        size: u64,
        points: &[u64],
    ) -> Result<Self::IncomingFile, NodeError>;

    /// Returns the file as an earlier upload left it, if it is whole: a sender that lost the answer gets it again.
    fn earlier(&self, name: &FileName) -> Result<Option<CatalogEntry>, NodeError>;

    /// Writes an entry.
    fn entry(&self, entry: CatalogEntry) -> wire::FileEntry;
}

/// A file that is being received. The [`FileReceiver`] decides what dropping it leaves.
///
/// Each receiver has its implementer: [`NodeUpload`](crate::NodeUpload) has the bytes on disk, and resumes there also after a
/// restart; the file of a checksum replica is only the state of a hash in memory.
pub(crate) trait IncomingFile: Sized + Send + 'static {
    /// Returns the name under which the file will be stored.
    fn name(&self) -> &FileName;
    /// Returns the number of bytes received.
    fn received(&self) -> u64;
    /// Returns the root of the bytes received.
    fn root_so_far(&self) -> Root;
    /// Forgets the bytes beyond `length`.
    fn keep(self, length: u64) -> Result<Self, NodeError>;
    /// Writes the next bytes.
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), NodeError>;
    /// Forgets all bytes.
    fn discard(self) -> Result<(), NodeError>;
    /// Compares the bytes with the admission and stores them, durably.
    fn commit(self, admission: &Envelope, now: Timestamp) -> Result<CatalogEntry, NodeError>;
}

/// Answers an upload into any receiver.
pub(crate) fn answer_upload<I: FileReceiver>(
    tasks: &Tasks,
    intake: &Arc<I>,
    steps: UploadSteps,
    clock: &Clock,
) -> Response<AnswerStream<wire::UploadResponse>> {
    let (stream, task) = open_answers(ROOM, |answers| {
        receive_upload(Arc::clone(intake), steps, answers, clock.clone())
    });
    tasks.spawn_once("upload", task);
    Response::new(stream)
}

/// What a receiver has of a file when its upload begins.
enum Begun<F> {
    /// It takes the bytes.
    Receiving(F),
    /// It has the file already.
    Stored(CatalogEntry),
}

/// Receives one file into any receiver. A thread is held only while there are bytes to write: a slow sender costs none.
async fn receive_upload<I: FileReceiver>(
    intake: Arc<I>,
    mut steps: UploadSteps,
    answers: Answers<wire::UploadResponse>,
    clock: Clock,
) -> Result<(), Status> {
    let Step::Open(open) = steps.next().await? else {
        return Err(InvalidMessage::unexpected_step("open").into());
    };
    let name = fields::file_name("name", &open.name)?;
    let id = fields::upload_id(&open.upload)?;
    if open.points.len() > MOST_POINTS {
        let reason = format!(
            "are {}; at most {MOST_POINTS} are allowed",
            open.points.len()
        );
        return Err(InvalidMessage::invalid_field("points", reason).into());
    }
    let size = open.size;
    let of = (Arc::clone(&intake), id.clone());
    let begun = in_turn(move || {
        let (intake, id) = of;
        match intake.begin(&id, &name, size, &open.points) {
            Err(taken @ NodeError::Taken { .. }) => {
                let earlier = intake.earlier(&name)?;
                earlier.map(Begun::Stored).ok_or(taken)
            }
            other => other.map(Begun::Receiving),
        }
    });
    let mut upload = match begun.await? {
        Begun::Receiving(upload) => upload,
        Begun::Stored(entry) => return send_answer(&answers, stored(&*intake, entry)).await,
    };
    let ready = wire::upload_response::Ready {
        offset: upload.received(),
        root: fields::root_bytes(&upload.root_so_far()),
    };
    let ready = wire::UploadResponse {
        step: Some(wire::upload_response::Step::Ready(ready)),
    };
    send_answer(&answers, ready).await?;
    let Step::Start(start) = steps.next().await? else {
        return Err(InvalidMessage::unexpected_step("start").into());
    };
    if start.offset < upload.received() {
        upload = in_turn(move || upload.keep(start.offset)).await?;
    }
    if start.offset != upload.received() {
        let reason = format!(
            "is {}, but whole groups up to {} are here",
            start.offset,
            upload.received()
        );
        return Err(InvalidMessage::invalid_field("offset", reason).into());
    }
    let admission = loop {
        match steps.next().await? {
            Step::Data(first) => {
                let bytes = steps.gather(first)?;
                let id = id.clone();
                let writing = in_turn(move || {
                    for bytes in bytes {
                        write_next(&mut upload, &bytes, &id, size)?;
                    }
                    Ok(upload)
                });
                upload = writing.await?;
            }
            Step::Close(close) => break close.admission,
            Step::Forget(_) => return in_turn(move || upload.discard()).await,
            Step::Open(_) | Step::Start(_) => {
                return Err(InvalidMessage::unexpected_step("data, close or forget").into());
            }
        }
    };
    let admission = Envelope::parse(admission.as_bytes())
        .map_err(|error| InvalidMessage::invalid_field("admission", error.to_string()))?;
    let entry = in_turn(move || upload.commit(&admission, clock.now())).await?;
    send_answer(&answers, stored(&*intake, entry)).await
}

/// Runs a piece of work that blocks, to its end even if nobody waits for it any more.
async fn in_turn<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
) -> Result<T, Status> {
    run_blocking(work)
        .await?
        .map_err(|error| convert::error_status(&error))
}

/// Writes the next bytes. A sender that sends more than it announced is stopped at the first surplus byte.
fn write_next(
    upload: &mut impl IncomingFile,
    bytes: &Bytes,
    id: &UploadId,
    announced: u64,
) -> Result<(), NodeError> {
    let total = upload.received().saturating_add(bytes.len() as u64);
    if total > announced {
        return Err(NodeError::Mismatch {
            name: upload.name().clone(),
            what: "size",
            admitted: announced.to_string(),
            received: format!("{total} bytes or more in upload {id}"),
        });
    }
    upload.write_all(bytes)
}

fn stored(intake: &impl FileReceiver, entry: CatalogEntry) -> wire::UploadResponse {
    wire::UploadResponse {
        step: Some(wire::upload_response::Step::Stored(intake.entry(entry))),
    }
}

/// Received bytes stay when the sender goes away, for the same upload to resume.
impl FileReceiver for Node {
    type IncomingFile = crate::NodeUpload;

    fn begin(
        self: &Arc<Self>,
        upload: &UploadId,
        name: &FileName,
        size: u64,
        points: &[u64],
    ) -> Result<crate::NodeUpload, NodeError> {
        if points.is_empty() {
            self.files.begin_upload_anew(upload, name, size)
        } else {
            self.files.begin_upload_at(upload, name, size, points)
        }
    }

    fn earlier(&self, name: &FileName) -> Result<Option<CatalogEntry>, NodeError> {
        let is_whole = |entry: &CatalogEntry| {
            entry.row.condition == Condition::Present
                && entry.row.root.is_some()
                && self.disks.is_online(&entry.volume)
        };
        Ok(self.files.find_copies(name)?.into_iter().find(is_whole))
    }

    fn entry(&self, entry: CatalogEntry) -> wire::FileEntry {
        convert::wire_entry(self, entry)
    }
}

impl IncomingFile for crate::NodeUpload {
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
        Self::keep_prefix(self, length)
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), NodeError> {
        self.write_all(bytes)
    }

    fn discard(self) -> Result<(), NodeError> {
        Self::discard_upload(self)
    }

    fn commit(self, admission: &Envelope, now: Timestamp) -> Result<CatalogEntry, NodeError> {
        Self::commit_upload(self, admission, now)
    }
}
