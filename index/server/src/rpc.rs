//! The door: the service `Captures`. It decodes, asks or decides, and encodes.

mod bulk;

use std::sync::Arc;

use archive_daemon::{Tasks, catch_panic};
use archive_db::DbError;
use archive_rpc::answers::{AnswerStream, Answers, ROOM, open_blocking, send_blocking};
use archive_rpc::{CallErrorKind, Services};
use index_captures::{FileProgress, QueryError};
use proto_index::sets::SetName;
use proto_index::status::{
    IndexStatus, MOST_PARKED, ParkedFile, SetStatus, optional_name, read_names,
};
use proto_index::wire::captures_server::{Captures, CapturesServer};
use proto_index::{capture, query, wire};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;
use tokio_stream::StreamExt;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use crate::answer::answer_query;
use crate::blocking::run_blocking;
use crate::board::StatusBoard;
use crate::follower::{Follower, split_reason};
use crate::health::Health;
use crate::metrics::Instruments;

/// The most captures of one message.
const TOGETHER: usize = 1000;

/// About how many bytes of captures one message has.
const MESSAGE_SIZE: usize = 256 << 10;

/// Imports and exports at once.
const BULK: usize = 2;

/// The service of the index, as the wire calls it.
pub(crate) struct Door {
    pub(crate) follower: Arc<Follower>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) health: Health,
    pub(crate) instruments: Instruments,
    /// Woken when files may wait.
    pub(crate) wake: Arc<Notify>,
    /// Woken when everything was forgotten.
    pub(crate) forgotten: Arc<Notify>,
    /// Queries at once.
    pub(crate) queries: Arc<Semaphore>,
    /// Imports and exports ([`Door::bulk_places`]).
    pub(crate) bulk: Arc<Semaphore>,
    /// The directory for the temporary files of exports.
    pub(crate) temporary: std::path::PathBuf,
    pub(crate) tasks: Tasks,
}

/// Returns what the server offers, and the roles that may call it.
pub(crate) fn index_services(door: Door) -> Services {
    Services {
        routes: Routes::new(CapturesServer::new(door)),
        rules: proto_index::rules::index_rules(),
        descriptors: vec![proto_index::DESCRIPTORS],
    }
}

type Answer<T> = Result<Response<T>, Status>;

impl Door {
    /// Makes the places of the imports and exports at once.
    pub(crate) fn bulk_places() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(BULK))
    }

    fn bulk_place(&self) -> Result<OwnedSemaphorePermit, Status> {
        let place = Arc::clone(&self.bulk).try_acquire_owned();
        place.map_err(|_taken| {
            CallErrorKind::Busy.to_status(format!(
                "the index runs {BULK} imports and exports, as many as it may; ask again when one has ended"
            ))
        })
    }
}

#[tonic::async_trait]
impl Captures for Door {
    async fn query(
        &self,
        request: Request<wire::QueryRequest>,
    ) -> Answer<AnswerStream<wire::QueryResponse>> {
        let query = query::read_query(request.into_inner())?;
        let place = Arc::clone(&self.queries).try_acquire_owned();
        let place = place.map_err(|_taken| {
            CallErrorKind::Busy
                .to_status("the index answers as many queries as it may; ask again in a moment")
        })?;
        let follower = Arc::clone(&self.follower);
        let instruments = self.instruments.clone();
        let health = self.health.clone();
        let mut messages = start_answer(&self.tasks, "query", move |answers| {
            let _place = place;
            let mut page = CaptureMessage::new(answers.clone());
            let given = answer_query(follower.captures(), &query, |capture| page.push(capture));
            let ended = given.map_err(|error| query_status(&health, &error));
            ended.and_then(|_count| page.finish())?;
            instruments.queries.inc();
            Ok(())
        });
        // Most answers are one message: it goes out together with the head before it and the end behind it, and either
        // side writes and wakes up once, not three times.
        let first = messages.next().await.transpose()?;
        let is_whole = first.as_ref().is_some_and(|message| message.end.is_some());
        let first = tokio_stream::iter(first.map(Ok));
        let stream: AnswerStream<_> = if is_whole {
            Box::pin(first)
        } else {
            Box::pin(first.chain(messages))
        };
        Ok(Response::new(stream))
    }

    async fn status(&self, request: Request<wire::StatusRequest>) -> Answer<wire::StatusResponse> {
        let after = optional_name("parked_after", &request.into_inner().parked_after)?;
        let follower = Arc::clone(&self.follower);
        let board = Arc::clone(&self.board);
        let health = self.health.clone();
        let work = move || {
            let after = after.as_ref().map(|name| name.as_str().to_owned());
            let status = status(&follower, &board, &health, after.as_deref());
            status.map_err(|error| storage(&health, &error))
        };
        let status = run_blocking(work, |error| panicked(&error));
        Ok(Response::new(status.await?.into()))
    }

    async fn retry(&self, request: Request<wire::RetryRequest>) -> Answer<wire::RetryResponse> {
        let names = read_names("names", &request.into_inner().names)?;
        let follower = Arc::clone(&self.follower);
        let health = self.health.clone();
        let work = move || {
            let retried = follower.retry_files(&names);
            retried.map_err(|error| storage(&health, &error))
        };
        let retried = run_blocking(work, |error| panicked(&error));
        match retried.await? {
            Ok(files) => {
                self.wake.notify_one();
                self.instruments.show_counts(&self.follower.counts());
                Ok(Response::new(wire::RetryResponse { files }))
            }
            Err(name) => Err(CallErrorKind::NotFound.to_status(format!(
                "{name} is not parked, so that nothing was done; `holdfast index status` names the parked files"
            ))),
        }
    }

    async fn rebuild(
        &self,
        _request: Request<wire::RebuildRequest>,
    ) -> Answer<wire::RebuildResponse> {
        let follower = Arc::clone(&self.follower);
        let health = self.health.clone();
        let work = move || {
            let forgotten = follower.forget_files();
            forgotten.map_err(|error| storage(&health, &error))
        };
        let captures = run_blocking(work, |error| panicked(&error));
        let captures = captures.await?;
        tracing::warn!(
            captures,
            "the captures of all files were deleted and are extracted again"
        );
        self.forgotten.notify_one();
        self.wake.notify_one();
        self.instruments.show_counts(&self.follower.counts());
        Ok(Response::new(wire::RebuildResponse { captures }))
    }

    async fn import(
        &self,
        request: Request<Streaming<wire::ImportRequest>>,
    ) -> Answer<wire::ImportResponse> {
        let place = self.bulk_place()?;
        let captures = self.follower.captures().clone();
        let health = self.health.clone();
        let imported = bulk::run_import(captures, health, request.into_inner(), place).await?;
        self.instruments.show_counts(&self.follower.counts());
        Ok(Response::new(imported.into()))
    }

    async fn export(
        &self,
        request: Request<wire::ExportRequest>,
    ) -> Answer<AnswerStream<wire::ExportResponse>> {
        let export = bulk::read_export(request.into_inner())?;
        let place = self.bulk_place()?;
        let captures = self.follower.captures().clone();
        let temporary = self.temporary.clone();
        let health = self.health.clone();
        let stream = start_answer(&self.tasks, "export", move |answers| {
            let _place = place;
            bulk::run_export(&captures, &health, &export, &temporary, answers)
        });
        Ok(Response::new(stream))
    }
}

/// Returns the answer to a caller whose work panicked.
fn panicked(error: &JoinError) -> Status {
    CallErrorKind::Internal.to_status(error.to_string())
}

/// Starts the work of an answer, which reads captures and changes none: where it panics, this answer ends, and nothing
/// else.
fn start_answer<T: Send + 'static>(
    tasks: &Tasks,
    name: &str,
    work: impl FnOnce(&Answers<T>) -> Result<(), Status> + Send + 'static,
) -> AnswerStream<T> {
    let (stream, task) = open_blocking(ROOM, move |answers| {
        let ended = catch_panic(|| work(answers));
        ended
            .unwrap_or_else(|panicked| Err(CallErrorKind::Internal.to_status(panicked.to_string())))
    });
    tasks.spawn_blocking(name, task);
    stream
}

/// Captures that make the next message.
struct CaptureMessage {
    answers: Answers<wire::QueryResponse>,
    captures: Vec<wire::Capture>,
    size: usize,
    count: u64,
    /// The reason why the caller takes no more of them.
    ended: Option<Status>,
}

impl CaptureMessage {
    fn new(answers: Answers<wire::QueryResponse>) -> Self {
        Self {
            answers,
            captures: Vec::new(),
            size: 0,
            count: 0,
            ended: None,
        }
    }

    /// Adds a capture; `false`: the caller takes no more.
    fn push(&mut self, found: archive_formats::cdx::Capture) -> bool {
        let message = capture::write_capture(found);
        self.size += message.key.len() + message.original.len() + message.file.len() + 100;
        self.captures.push(message);
        self.count = self.count.saturating_add(1);
        if self.captures.len() < TOGETHER && self.size < MESSAGE_SIZE {
            return true;
        }
        let captures = std::mem::take(&mut self.captures);
        self.size = 0;
        let sent = send_blocking(
            &self.answers,
            wire::QueryResponse {
                captures,
                end: None,
            },
        );
        self.ended = sent.err();
        self.ended.is_none()
    }

    fn finish(self) -> Result<(), Status> {
        if let Some(status) = self.ended {
            return Err(status);
        }
        let end = wire::query_response::End { count: self.count };
        send_blocking(
            &self.answers,
            wire::QueryResponse {
                captures: self.captures,
                end: Some(end),
            },
        )
    }
}

fn status(
    follower: &Follower,
    board: &StatusBoard,
    health: &Health,
    parked_after: Option<&str>,
) -> Result<IndexStatus, DbError> {
    let counts = follower.counts();
    let notes = board.work_notes();
    let captures = follower.captures();
    let mut sets = Vec::new();
    for set in captures.list_sets()? {
        let set = set?;
        // Only this door imports sets, and it takes no other names.
        if let Ok(name) = SetName::new(&set.name) {
            let captures = set.captures;
            sets.push(SetStatus { name, captures });
        }
    }
    let lost_sets = health.lost_sets();
    let lost_sets = lost_sets.iter().filter_map(|name| SetName::new(name).ok());
    let mut parked = Vec::new();
    for name in captures.parked_files()? {
        let name = name?;
        if parked_after.is_some_and(|after| name.as_str() <= after) {
            continue;
        }
        if parked.len() >= MOST_PARKED {
            break;
        }
        let entry = captures.file_entry(&name)?;
        let progress = entry.map(|entry| entry.progress);
        if let (Some(FileProgress::Parked { attempts, reason }), Ok(name)) =
            (progress, name.parse())
        {
            let (since, reason) = split_reason(&reason);
            parked.push(ParkedFile {
                name,
                reason: reason.to_owned(),
                failures: attempts,
                since: since.unwrap_or(jiff::Timestamp::UNIX_EPOCH),
            });
        }
    }
    let files = counts.indexed.saturating_add(counts.nothing_to_index);
    Ok(IndexStatus {
        state: notes.state,
        problem: notes.feed_problem.or(notes.job_problem),
        position: follower.feed_position()?.map(|position| position.number),
        captures: counts.captures.saturating_add(counts.set_captures),
        indexed: files,
        behind: counts.pending,
        parked_files: counts.parked,
        sets,
        lost_sets: lost_sets.collect(),
        parked,
        comparison: notes.comparison,
        compared: notes.compared,
        differed: notes.differed,
        rebuilt: notes.rebuilt,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn query_status(health: &Health, error: &QueryError) -> Status {
    if error.is_invalid() {
        return CallErrorKind::Invalid.to_status(error.to_string());
    }
    if let QueryError::Database(error) = error {
        health.check_error(error);
    }
    CallErrorKind::Storage.to_status(error.to_string())
}

fn storage(health: &Health, error: &DbError) -> Status {
    health.check_error(error);
    CallErrorKind::Storage.to_status(format!("cannot read the database of the index: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Fails if a panic in the work of one answer ends more than that answer, or lets it pass for whole.
    #[tokio::test]
    async fn panic_ends_one_answer_only() {
        let tasks = Tasks::new();
        let mut broken = start_answer(&tasks, "query", |answers| {
            send_blocking(answers, 1)?;
            panic!("at the second capture");
        });
        assert_eq!(broken.next().await.unwrap().unwrap(), 1);
        let status = broken.next().await.unwrap().unwrap_err();
        assert_eq!(
            CallErrorKind::from_status(&status),
            CallErrorKind::Internal,
            "{status}"
        );
        assert!(broken.next().await.is_none());
        let mut whole = start_answer(&tasks, "query", |answers| send_blocking(answers, 2));
        assert_eq!(whole.next().await.unwrap().unwrap(), 2);
        assert!(!tasks.stop_token().is_cancelled());
        tasks.stop_all();
        tasks.join_tasks(Duration::from_secs(10)).await.unwrap();
    }
}
