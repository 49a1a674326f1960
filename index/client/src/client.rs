//! The index over gRPC.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::time::Duration;

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::CaptureQuery;
use archive_model::FileName;
use archive_rpc::limits::LARGEST_MESSAGE;
use archive_rpc::{CallErrorKind, IdleTimeout, StepReader, StepStream};
use bytes::Bytes;
use proto_index::export::ExportFormat;
use proto_index::sets::{ImportOutcome, SetName};
use proto_index::status::IndexStatus;
use proto_index::wire::captures_client::CapturesClient;
use proto_index::wire::import_request::{End, Input, Open, Step};
use proto_index::{capture, query, wire};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};

use crate::IndexFuture;
use crate::captures::{CaptureSearch, CaptureStream};
use crate::error::IndexCallError;

/// The number of bytes of an import that are sent in one message.
const CHUNK: usize = 256 << 10;

/// The longest waits of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimits {
    /// The longest wait for an answer, or for the next message of one.
    pub answer: Duration,
    /// The longest time without the index taking a byte, and the longest wait for the end of an import.
    pub stall: Duration,
}

impl Default for IndexLimits {
    fn default() -> Self {
        Self {
            answer: Duration::from_mins(1),
            stall: Duration::from_mins(5),
        }
    }
}

/// A client at the door of an index. Cheap to clone; clones share the connection.
#[derive(Clone, Debug)]
pub struct IndexClient {
    client: CapturesClient<Channel>,
    limits: IndexLimits,
}

/// The lines of an export as they come: whole lines in every piece. They end only when all of them came.
#[derive(Debug)]
pub struct ExportStream(StepStream<IdleTimeout<Streaming<wire::ExportResponse>>, ExportReader>);

impl IndexClient {
    /// Makes a client over a channel to an index.
    pub fn new(channel: Channel, limits: IndexLimits) -> Self {
        let client = CapturesClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Self { client, limits }
    }

    /// Asks for the status of the index. Only parked files after `parked_after` are named.
    ///
    /// # Errors
    ///
    /// Fails when the index does not answer, or refuses this caller.
    pub async fn index_status(
        &self,
        parked_after: Option<&FileName>,
    ) -> Result<IndexStatus, IndexCallError> {
        let mut client = self.client.clone();
        let request = wire::StatusRequest {
            parked_after: parked_after.map(ToString::to_string).unwrap_or_default(),
        };
        let answer = self.answer(client.status(request)).await?;
        Ok(IndexStatus::try_from(answer)?)
    }

    /// Tries parked files again: those that are named, or all. Returns how many.
    ///
    /// # Errors
    ///
    /// Fails when one of the names is not parked, and tries none of them then; or when the index does not answer.
    pub async fn retry_files(&self, names: &[FileName]) -> Result<u64, IndexCallError> {
        let mut client = self.client.clone();
        let names = names.iter().map(ToString::to_string).collect();
        let answer = self
            .answer(client.retry(wire::RetryRequest { names }))
            .await?;
        Ok(answer.files)
    }

    /// Deletes the captures that came from files, and lets the index follow the archive from a full listing. Returns
    /// how many were deleted.
    ///
    /// # Errors
    ///
    /// Fails when the index does not answer, or refuses this caller.
    pub async fn rebuild_index(&self) -> Result<u64, IndexCallError> {
        let mut client = self.client.clone();
        let call = client.rebuild(wire::RebuildRequest {});
        let answer = within(self.limits.stall, call).await?;
        Ok(answer.captures)
    }

    /// Imports index files as a set, in the place of what the set had.
    ///
    /// # Errors
    ///
    /// Fails when an input cannot be read, or the index does not take it. The set is then as it was before.
    pub async fn import_lines<D>(
        &self,
        set: &SetName,
        inputs: impl Stream<Item = (String, D)> + Send,
    ) -> Result<ImportOutcome, IndexCallError>
    where
        D: Stream<Item = io::Result<Bytes>> + Send,
    {
        let (sender, receiver) = mpsc::channel(4);
        let mut client = self.client.clone();
        let call = client.import(ReceiverStream::new(receiver));
        let set = set.to_string();
        tokio::select! {
            answer = call => match answer {
                Ok(answer) => Ok(ImportOutcome::try_from(answer.into_inner())?),
                Err(status) => Err(IndexCallError::from_status(&status)),
            },
            failed = send_all(sender, set, inputs, self.limits.stall) => match failed {
                Err(error) => Err(error),
                Ok(never) => match never {},
            },
        }
    }

    /// Begins to export captures as lines: those of a set, or all.
    ///
    /// # Errors
    ///
    /// Fails when there is no such set, or the index does not answer.
    pub async fn export_lines(
        &self,
        format: &ExportFormat,
        set: Option<&SetName>,
    ) -> Result<ExportStream, IndexCallError> {
        let mut client = self.client.clone();
        let request = wire::ExportRequest {
            format: Some(format.write_format()),
            set: set.map(ToString::to_string).unwrap_or_default(),
        };
        let stream = self.answer(client.export(request)).await?;
        let stream = IdleTimeout::new(stream, self.limits.stall);
        Ok(ExportStream(StepStream::new(
            stream,
            ExportReader::default(),
        )))
    }

    async fn answer<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, IndexCallError> {
        within(self.limits.answer, call).await
    }

    async fn begin_query(&self, query: &CaptureQuery) -> Result<CaptureStream, IndexCallError> {
        query
            .validate_query()
            .map_err(|error| IndexCallError::new(CallErrorKind::Invalid, error.to_string()))?;
        let mut client = self.client.clone();
        let stream = self.answer(client.query(query::write_query(query))).await?;
        let stream = IdleTimeout::new(stream, self.limits.answer);
        let reader = CaptureReader::default();
        Ok(CaptureStream::new(StepStream::new(stream, reader)))
    }
}

impl CaptureSearch for IndexClient {
    fn query<'a>(&'a self, query: &'a CaptureQuery) -> IndexFuture<'a, CaptureStream> {
        Box::pin(self.begin_query(query))
    }
}

impl ExportStream {
    /// Reads the next piece of whole lines; `None` after the last one.
    ///
    /// # Errors
    ///
    /// Fails when the index cannot continue, or the answer was cut.
    pub async fn next(&mut self) -> Result<Option<Bytes>, IndexCallError> {
        self.0.next().await.transpose()
    }

    /// Returns how many lines came, once all of them did.
    pub const fn line_count(&self) -> Option<u64> {
        self.0.reader().lines
    }
}

/// Reads an export: pieces until the message that says how many lines there are.
#[derive(Debug, Default)]
struct ExportReader {
    lines: Option<u64>,
}

impl StepReader for ExportReader {
    type Message = wire::ExportResponse;
    type Item = Bytes;
    type Error = IndexCallError;

    fn read(
        &mut self,
        message: wire::ExportResponse,
        out: &mut VecDeque<Bytes>,
    ) -> Result<(), IndexCallError> {
        if self.lines.is_some() {
            return Err(IndexCallError::endless_answer());
        }
        self.lines = message.end.map(|end| end.lines);
        if !message.data.is_empty() {
            out.push_back(message.data);
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut VecDeque<Bytes>) -> Result<(), IndexCallError> {
        match self.lines {
            Some(_) => Ok(()),
            None => Err(IndexCallError::cut_answer()),
        }
    }
}

/// Reads the answer to a query: captures until the message that says how many there are.
#[derive(Debug, Default)]
struct CaptureReader {
    count: u64,
    has_ended: bool,
}

impl StepReader for CaptureReader {
    type Message = wire::QueryResponse;
    type Item = Capture;
    type Error = IndexCallError;

    fn read(
        &mut self,
        message: wire::QueryResponse,
        out: &mut VecDeque<Capture>,
    ) -> Result<(), IndexCallError> {
        if self.has_ended {
            return Err(IndexCallError::endless_answer());
        }
        for capture in message.captures {
            out.push_back(capture::read_capture(capture)?);
            self.count = self.count.saturating_add(1);
        }
        self.has_ended = message.end.is_some();
        match message.end {
            Some(end) if end.count != self.count => Err(IndexCallError::cut_answer()),
            _ => Ok(()),
        }
    }

    fn end(&mut self, _out: &mut VecDeque<Capture>) -> Result<(), IndexCallError> {
        if self.has_ended {
            return Ok(());
        }
        Err(IndexCallError::cut_answer())
    }
}

/// Sends the set and its inputs, then waits: the call ends when its answer comes.
async fn send_all<D>(
    sender: mpsc::Sender<wire::ImportRequest>,
    set: String,
    inputs: impl Stream<Item = (String, D)> + Send,
    stall: Duration,
) -> Result<Infallible, IndexCallError>
where
    D: Stream<Item = io::Result<Bytes>> + Send,
{
    let mut inputs = std::pin::pin!(inputs);
    let mut taken = send(&sender, Step::Open(Open { set }), stall).await?;
    while taken && let Some((name, data)) = inputs.next().await {
        let mut data = std::pin::pin!(data);
        let input = Input { name: name.clone() };
        taken = send(&sender, Step::Input(input), stall).await?;
        while taken && let Some(piece) = data.next().await {
            let mut piece = piece.map_err(|error| {
                let said = format!("cannot read {name}: {error}; nothing was imported");
                IndexCallError::new(CallErrorKind::Mismatch, said)
            })?;
            while taken && !piece.is_empty() {
                let chunk = piece.split_to(CHUNK.min(piece.len()));
                taken = send(&sender, Step::Data(chunk), stall).await?;
            }
        }
    }
    if taken {
        send(&sender, Step::End(End {}), stall).await?;
    }
    drop(sender);
    // After the last byte the index has this long to say what became of all.
    tokio::time::sleep(stall).await;
    Err(IndexCallError::silent_index(stall))
}

/// Sends one step of an import. Returns `false` if the call has ended: its answer then says why.
async fn send(
    sender: &mpsc::Sender<wire::ImportRequest>,
    step: Step,
    stall: Duration,
) -> Result<bool, IndexCallError> {
    let message = wire::ImportRequest { step: Some(step) };
    match timeout(stall, sender.send(message)).await {
        Ok(sent) => Ok(sent.is_ok()),
        Err(_elapsed) => Err(IndexCallError::silent_index(stall)),
    }
}

/// Waits for the answer to a call, at most for `limit`.
async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, IndexCallError> {
    match timeout(limit, call).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(IndexCallError::from_status(&status)),
        Err(_elapsed) => Err(IndexCallError::silent_index(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(urls: &[&str], end: Option<u64>) -> wire::QueryResponse {
        let time = || "20260102030405".parse().unwrap();
        let captures = urls
            .iter()
            .map(|url| capture::write_capture(Capture::new(*url, time())));
        wire::QueryResponse {
            captures: captures.collect(),
            end: end.map(|count| wire::query_response::End { count }),
        }
    }

    /// Fails if an answer that was cut, lies about its length or breaks off passes for a whole one.
    #[tokio::test]
    async fn answers_are_whole_or_errors() {
        let check = async |messages: Vec<Result<_, Status>>,
                           expected: &[&str],
                           error: Option<CallErrorKind>| {
            let stream = tokio_stream::iter(messages);
            let stream = StepStream::new(stream, CaptureReader::default());
            let mut captures = CaptureStream::new(stream);
            let mut keys = Vec::new();
            let ended = loop {
                match captures.next().await {
                    Ok(Some(capture)) => keys.push(capture.key),
                    Ok(None) => break None,
                    Err(error) => break Some(error.kind),
                }
            };
            assert_eq!(
                (keys.as_slice(), ended),
                (
                    &expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..],
                    error
                )
            );
            assert_eq!(captures.next().await, Ok(None), "nothing follows the end");
        };
        check(vec![Ok(message(&[], Some(0)))], &[], None).await;
        check(
            vec![Ok(message(&["a", "b"], None)), Ok(message(&["c"], Some(3)))],
            &["a", "b", "c"],
            None,
        )
        .await;
        check(
            vec![Ok(message(&["a"], None))],
            &["a"],
            Some(CallErrorKind::Unavailable),
        )
        .await;
        check(
            vec![Ok(message(&["a"], Some(2)))],
            &[],
            Some(CallErrorKind::Unavailable),
        )
        .await;
        let broken = Err(CallErrorKind::Storage.to_status("the disk"));
        check(
            vec![Ok(message(&["a"], None)), broken],
            &["a"],
            Some(CallErrorKind::Storage),
        )
        .await;
        check(
            vec![Ok(message(&[""], Some(1)))],
            &[],
            Some(CallErrorKind::Damaged),
        )
        .await;
        let more = vec![Ok(message(&["a"], Some(1))), Ok(message(&["b"], None))];
        check(more, &["a"], Some(CallErrorKind::Damaged)).await;
    }

    /// Fails if an export that was cut, or that continues after its end, passes for a whole one.
    #[tokio::test]
    async fn exports_are_whole_or_errors() {
        let message = |data: &'static str, lines: Option<u64>| {
            Ok(wire::ExportResponse {
                data: Bytes::from_static(data.as_bytes()),
                end: lines.map(|lines| wire::export_response::End { lines }),
            })
        };
        let check = async |messages: Vec<Result<_, Status>>,
                           expected: &str,
                           end: Result<Option<u64>, CallErrorKind>| {
            let stream = tokio_stream::iter(messages);
            let mut stream = StepStream::new(stream, ExportReader::default());
            let mut text = Vec::new();
            let mut ended = None;
            while let Some(piece) = stream.next().await {
                match piece {
                    Ok(piece) => text.extend_from_slice(&piece),
                    Err(error) => ended = Some(error.kind),
                }
            }
            assert_eq!(text, expected.as_bytes());
            let lines = stream.reader().lines;
            assert_eq!(ended.map_or(Ok(lines), Err), end);
        };
        let all = vec![
            message("a\n", None),
            message("b\n", None),
            message("", Some(2)),
        ];
        check(all, "a\nb\n", Ok(Some(2))).await;
        check(vec![message("a\n", Some(1))], "a\n", Ok(Some(1))).await;
        let cut = vec![message("a\n", None)];
        check(cut, "a\n", Err(CallErrorKind::Unavailable)).await;
        let more = vec![message("", Some(0)), message("a\n", None)];
        check(more, "", Err(CallErrorKind::Damaged)).await;
    }
}
