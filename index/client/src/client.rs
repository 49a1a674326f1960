//! The index over gRPC.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::CaptureQuery;
use archive_model::FileName;
use archive_rpc::{Idle, Kind};
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

use crate::Answer;
use crate::captures::{CaptureStream, Captures};
use crate::error::IndexError;

/// The largest message that is read, in bytes.
const LARGEST_MESSAGE: usize = 8 << 20;

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
pub struct ExportStream {
    stream: Option<Idle<Streaming<wire::ExportResponse>>>,
    lines: Option<u64>,
}

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
    pub async fn status(&self, parked_after: Option<&FileName>) -> Result<IndexStatus, IndexError> {
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
    pub async fn retry(&self, names: &[FileName]) -> Result<u64, IndexError> {
        let mut client = self.client.clone();
        let names = names.iter().map(ToString::to_string).collect();
        let answer = self
            .answer(client.retry(wire::RetryRequest { names }))
            .await?;
        Ok(answer.files)
    }

    /// Deletes the captures that came from files, and lets the index follow the archive from a full listing. Returns how many
    /// were deleted.
    ///
    /// # Errors
    ///
    /// Fails when the index does not answer, or refuses this caller.
    pub async fn rebuild(&self) -> Result<u64, IndexError> {
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
    pub async fn import<D>(
        &self,
        set: &SetName,
        inputs: impl Stream<Item = (String, D)> + Send,
    ) -> Result<ImportOutcome, IndexError>
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
                Err(status) => Err(IndexError::from_status(&status)),
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
    pub async fn export(
        &self,
        format: &ExportFormat,
        set: Option<&SetName>,
    ) -> Result<ExportStream, IndexError> {
        let mut client = self.client.clone();
        let request = wire::ExportRequest {
            format: Some(format.write()),
            set: set.map(ToString::to_string).unwrap_or_default(),
        };
        let stream = self.answer(client.export(request)).await?;
        Ok(ExportStream {
            stream: Some(Idle::new(stream, self.limits.stall)),
            lines: None,
        })
    }

    async fn answer<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, IndexError> {
        within(self.limits.answer, call).await
    }

    async fn begin_query(&self, query: &CaptureQuery) -> Result<CaptureStream, IndexError> {
        query
            .validate()
            .map_err(|error| IndexError::new(Kind::Invalid, error.to_string()))?;
        let mut client = self.client.clone();
        let stream = self.answer(client.query(query::write(query))).await?;
        let stream = Idle::new(stream, self.limits.answer);
        Ok(CaptureStream::new(CaptureReader::new(stream)))
    }
}

impl Captures for IndexClient {
    fn query<'a>(&'a self, query: &'a CaptureQuery) -> Answer<'a, CaptureStream> {
        Box::pin(self.begin_query(query))
    }
}

impl ExportStream {
    /// Reads the next piece of whole lines; `None` after the last one.
    ///
    /// # Errors
    ///
    /// Fails when the index cannot go on, or the answer was cut.
    pub async fn next(&mut self) -> Result<Option<Bytes>, IndexError> {
        while let Some(stream) = &mut self.stream {
            let step = stream.next().await;
            if !matches!(step, Some(Ok(_))) {
                self.stream = None;
            }
            match step {
                Some(Ok(message)) => {
                    if self.lines.is_some() {
                        self.stream = None;
                        return Err(IndexError::new(
                            Kind::Damaged,
                            "the index sends more after its last message; tell its operator",
                        ));
                    }
                    self.lines = message.end.map(|end| end.lines);
                    if !message.data.is_empty() {
                        return Ok(Some(message.data));
                    }
                }
                Some(Err(status)) => return Err(IndexError::from_status(&status)),
                None if self.lines.is_some() => return Ok(None),
                None => return Err(IndexError::cut()),
            }
        }
        Ok(None)
    }

    /// Returns how many lines came, once all of them did.
    pub const fn lines(&self) -> Option<u64> {
        self.lines
    }
}

/// An answer to a query, as far as it was read: captures until the message that says how many there are.
struct CaptureReader<S> {
    /// Absent: the answer has ended.
    stream: Option<S>,
    ready: VecDeque<wire::Capture>,
    count: u64,
}

impl<S> CaptureReader<S> {
    fn new(stream: S) -> Self {
        Self {
            stream: Some(stream),
            ready: VecDeque::new(),
            count: 0,
        }
    }

    /// Decodes a message.
    fn take(&mut self, message: wire::QueryResponse) -> Result<(), IndexError> {
        let came = u64::try_from(message.captures.len()).unwrap_or(u64::MAX);
        self.count = self.count.saturating_add(came);
        self.ready.extend(message.captures);
        if let Some(end) = message.end {
            if end.count != self.count {
                return Err(IndexError::cut());
            }
            self.stream = None;
        }
        Ok(())
    }
}

impl<S> Stream for CaptureReader<S>
where
    S: Stream<Item = Result<wire::QueryResponse, Status>> + Unpin,
{
    type Item = Result<Capture, IndexError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(message) = this.ready.pop_front() {
                return Poll::Ready(Some(capture::read(message).map_err(IndexError::from)));
            }
            let Some(stream) = &mut this.stream else {
                return Poll::Ready(None);
            };
            let error = match ready!(Pin::new(stream).poll_next(cx)) {
                Some(Ok(message)) => match this.take(message) {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Some(Err(status)) => IndexError::from_status(&status),
                None => IndexError::cut(),
            };
            this.stream = None;
            this.ready.clear();
            return Poll::Ready(Some(Err(error)));
        }
    }
}

/// Sends the set and its inputs, then waits: the call ends when its answer comes.
async fn send_all<D>(
    sender: mpsc::Sender<wire::ImportRequest>,
    set: String,
    inputs: impl Stream<Item = (String, D)> + Send,
    stall: Duration,
) -> Result<Infallible, IndexError>
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
                IndexError::new(Kind::Mismatch, said)
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
    Err(IndexError::silent(stall))
}

/// Sends one step of an import. Returns `false` if the call has ended: its answer then says why.
async fn send(
    sender: &mpsc::Sender<wire::ImportRequest>,
    step: Step,
    stall: Duration,
) -> Result<bool, IndexError> {
    let message = wire::ImportRequest { step: Some(step) };
    match timeout(stall, sender.send(message)).await {
        Ok(sent) => Ok(sent.is_ok()),
        Err(_elapsed) => Err(IndexError::silent(stall)),
    }
}

/// Waits for the answer to a call, at most for `limit`.
async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, IndexError> {
    match timeout(limit, call).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(IndexError::from_status(&status)),
        Err(_elapsed) => Err(IndexError::silent(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(urls: &[&str], end: Option<u64>) -> wire::QueryResponse {
        let time = || "20260102030405".parse().unwrap();
        let captures = urls
            .iter()
            .map(|url| capture::write(Capture::new(*url, time())));
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
                           error: Option<Kind>| {
            let mut captures = CaptureStream::new(CaptureReader::new(tokio_stream::iter(messages)));
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
            Some(Kind::Unavailable),
        )
        .await;
        check(
            vec![Ok(message(&["a"], Some(2)))],
            &[],
            Some(Kind::Unavailable),
        )
        .await;
        let broken = Err(Kind::Storage.status("the disk"));
        check(
            vec![Ok(message(&["a"], None)), broken],
            &["a"],
            Some(Kind::Storage),
        )
        .await;
        check(vec![Ok(message(&[""], Some(1)))], &[], Some(Kind::Damaged)).await;
    }
}
