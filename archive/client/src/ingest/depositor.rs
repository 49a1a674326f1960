//! Ingest over gRPC: opens a stream, waits for the offset, sends, closes, and verifies the receipt.

use std::sync::Arc;

use archive_model::FileName;
use archive_proof::{Envelope, Receipt, TrustFile};
use bytes::Bytes;
use proto_archive::wire::ingest_client::IngestClient;
use proto_archive::wire::store_request::{Close, Open, Step as Request};
use proto_archive::wire::store_response::{self, Step as Response};
use proto_archive::wire::{StatRequest, StoreRequest, StoreResponse};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use super::{AnnouncedDigests, CHUNK, Deposit, DigestComparison, Ingest, StoreEvent, StoredFile};
use crate::CallFuture;
use crate::error::ClientError;
use crate::file_status::{FileStatus, nonempty_text, read_replicas};
use crate::limits::ClientLimits;
use crate::retry::Retry;

/// The number of messages that wait for the connection: enough to read ahead of it.
const AHEAD: usize = 4;

/// A depositor at the door of a repository. Cheap to clone; clones share the connection.
///
/// ```
/// use std::fs::File;
/// use std::sync::Arc;
///
/// use archive_client::{AnnouncedDigests, ClientError, Deposit, Depositor, Ingest, StoredFile};
/// use archive_model::FileName;
///
/// /// Stores a file of which no digest is known.
/// async fn store(archive: &Depositor, name: FileName, file: File, size: u64) -> Result<StoredFile, ClientError> {
///     let deposit = Deposit {
///         name,
///         size,
///         source: Arc::new(file),
///         announced: AnnouncedDigests::default(),
///         no_digest: true,
///     };
///     archive.store(&deposit, &|event| println!("{event:?}")).await
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Depositor {
    client: IngestClient<Channel>,
    trust: Arc<TrustFile>,
    limits: ClientLimits,
}

impl Depositor {
    /// Takes a channel to the repository and the keys whose receipts count.
    pub fn new(channel: Channel, trust: Arc<TrustFile>, limits: ClientLimits) -> Self {
        let client = IngestClient::new(channel);
        Self {
            client,
            trust,
            limits,
        }
    }

    async fn keep_storing(
        &self,
        deposit: &Deposit,
        watch: &(dyn Fn(StoreEvent<'_>) + Send + Sync),
    ) -> Result<StoredFile, ClientError> {
        deposit.check_source()?;
        let begin = Instant::now();
        let mut retry = Retry::new(self.limits);
        let mut furthest = 0;
        loop {
            let mut attempt = Attempt {
                depositor: self,
                deposit,
                watch,
                offset: 0,
                sent: 0,
                closed: false,
            };
            let error = match attempt.run().await {
                Ok(stored) => return Ok(stored),
                Err(error) if error.is_passing() => error,
                Err(error) => return Err(error),
            };
            if attempt.offset > furthest {
                furthest = attempt.offset;
                retry.note_progress(begin.elapsed());
            }
            let Some(pause) = retry.next_pause(begin.elapsed()) else {
                return Err(error);
            };
            watch(StoreEvent::Retrying {
                failed: retry.failed_tries(),
                pause,
                error: &error,
            });
            sleep(pause).await;
        }
    }

    async fn ask_status(&self, name: &FileName) -> Result<FileStatus, ClientError> {
        let mut client = self.client.clone();
        let request = StatRequest {
            name: name.as_str().to_owned(),
        };
        let status = within_limit(
            self.limits.answer_limit(),
            "waiting for the archive's answer",
            async {
                client
                    .stat(request)
                    .await
                    .map_err(|status| ClientError::from_status(&status))
            },
        );
        let status = FileStatus::try_from(status.await??.into_inner())?;
        if status.name != *name {
            let found = status.name;
            return Err(ClientError::Untrusted(format!(
                "asked for {name}, the archive speaks of {found}"
            )));
        }
        Ok(status)
    }
}

impl Ingest for Depositor {
    fn store<'a>(
        &'a self,
        deposit: &'a Deposit,
        watch: &'a (dyn Fn(StoreEvent<'_>) + Send + Sync),
    ) -> CallFuture<'a, StoredFile> {
        Box::pin(self.keep_storing(deposit, watch))
    }

    fn stat<'a>(&'a self, name: &'a FileName) -> CallFuture<'a, FileStatus> {
        Box::pin(self.ask_status(name))
    }
}

/// An attempt to store a file: one stream.
struct Attempt<'a> {
    depositor: &'a Depositor,
    deposit: &'a Deposit,
    watch: &'a (dyn Fn(StoreEvent<'_>) + Send + Sync),
    /// The number of bytes that the archive had when the attempt began.
    offset: u64,
    /// The number of bytes that were handed to the connection.
    sent: u64,
    /// Whether all bytes and the close were sent.
    closed: bool,
}

impl Attempt<'_> {
    async fn run(&mut self) -> Result<StoredFile, ClientError> {
        let limits = self.depositor.limits;
        let (requests, outgoing) = mpsc::channel(AHEAD);
        // The channel has room: the open is its first message.
        self.hand_over(&requests, self.open()).await?;
        let mut client = self.depositor.client.clone();
        let mut answers = within_limit(
            limits.answer_limit(),
            "waiting for the archive's answer",
            async {
                let answers = client.store(ReceiverStream::new(outgoing)).await;
                answers.map_err(|status| ClientError::from_status(&status))
            },
        )
        .await??
        .into_inner();

        // `Taken` may come before `Ready`: the replicas verify what they have of an earlier stream.
        let longest = limits.verification_limit(self.deposit.size);
        let first = within_limit(longest, "waiting for the archive to be ready", async {
            loop {
                match self.next(&mut answers, limits.answer_limit()).await {
                    Ok(Response::Taken(0)) => {}
                    other => return other,
                }
            }
        });
        match first.await?? {
            Response::Ready(ready) if ready.offset <= self.deposit.size => {
                self.offset = ready.offset;
            }
            Response::Ready(ready) => {
                let offset = ready.offset;
                let size = self.deposit.size;
                return Err(self.nonsense(&format!("it asks for byte {offset} of {size}")));
            }
            Response::Stored(stored) => return self.believe(stored),
            Response::Taken(_) => return Err(self.nonsense("it takes bytes before it is ready")),
        }
        self.sent = self.offset;
        (self.watch)(StoreEvent::Sent(self.sent));
        if let Some(stored) = self.send(&requests, &mut answers).await? {
            return self.believe(stored);
        }
        drop(requests);
        let verification = limits.verification_limit(self.deposit.size);
        loop {
            match self.next(&mut answers, verification).await? {
                Response::Stored(stored) => return self.believe(stored),
                Response::Taken(_) => {}
                Response::Ready(_) => return Err(self.nonsense("it is ready twice")),
            }
        }
    }

    /// Sends the rest of the file and the close, unless the archive answers first.
    async fn send(
        &mut self,
        requests: &mpsc::Sender<StoreRequest>,
        answers: &mut Streaming<StoreResponse>,
    ) -> Result<Option<store_response::Stored>, ClientError> {
        loop {
            let rest = self.deposit.size - self.sent;
            let length = rest.min(CHUNK);
            let step = match length {
                0 => Request::Close(Close {}),
                _ => Request::Data(self.deposit.read_block(self.sent, length).await?),
            };
            let stall = self.depositor.limits.stall_limit();
            let deadline = Instant::now() + stall;
            loop {
                tokio::select! {
                    room = requests.reserve() => match room {
                        Ok(room) => { room.send(request(step)); break; }
                        // The archive has ended the call: its answer says why.
                        Err(_closed) => return self.answer_instead(answers).await.map(Some),
                    },
                    answer = self.next(answers, stall) => match answer? {
                        Response::Taken(_) => {}
                        Response::Stored(stored) => return Ok(Some(stored)),
                        Response::Ready(_) => return Err(self.nonsense("it is ready twice")),
                    },
                    () = tokio::time::sleep_until(deadline) => {
                        let name = &self.deposit.name;
                        let sent = self.sent;
                        return Err(ClientError::TimedOut(format!(
                            "{name}: the archive took no byte after {sent} for {stall:?}"
                        )));
                    }
                }
            }
            if rest == 0 {
                self.closed = true;
                return Ok(None);
            }
            self.sent += length;
            (self.watch)(StoreEvent::Sent(self.sent));
        }
    }

    async fn answer_instead(
        &self,
        answers: &mut Streaming<StoreResponse>,
    ) -> Result<store_response::Stored, ClientError> {
        let limit = self.depositor.limits.answer_limit();
        loop {
            match self.next(answers, limit).await? {
                Response::Stored(stored) => return Ok(stored),
                Response::Taken(_) => {}
                Response::Ready(_) => return Err(self.nonsense("it is ready twice")),
            }
        }
    }

    async fn hand_over(
        &self,
        requests: &mpsc::Sender<StoreRequest>,
        step: Request,
    ) -> Result<(), ClientError> {
        let handed = requests.send(request(step)).await;
        handed.map_err(|_closed| {
            ClientError::Bug(format!(
                "{}: the call ended before it began",
                self.deposit.name
            ))
        })
    }

    fn open(&self) -> Request {
        let AnnouncedDigests {
            blake3,
            sha256,
            md5,
        } = self.deposit.announced;
        Request::Open(Open {
            name: self.deposit.name.as_str().to_owned(),
            size: self.deposit.size,
            blake3: blake3
                .map_or_else(Bytes::new, |root| proto_archive::convert::root_bytes(&root)),
            sha256: sha256.map_or_else(Bytes::new, |bytes| Bytes::copy_from_slice(&bytes)),
            md5: md5.map_or_else(Bytes::new, |bytes| Bytes::copy_from_slice(&bytes)),
            no_digest: self.deposit.no_digest,
        })
    }

    async fn next(
        &self,
        answers: &mut Streaming<StoreResponse>,
        limit: Duration,
    ) -> Result<Response, ClientError> {
        let name = &self.deposit.name;
        let doing = "waiting for the archive to continue";
        let message = within_limit(limit, doing, answers.message()).await?;
        let message = message.map_err(|status| ClientError::from_status(&status))?;
        let message = message.ok_or_else(|| {
            ClientError::Unavailable(format!(
                "{name}: the archive ended the call without a receipt"
            ))
        })?;
        message.step.ok_or_else(|| self.nonsense("it says nothing"))
    }

    /// Verifies the receipt, without which no store is a success.
    fn believe(&self, stored: store_response::Stored) -> Result<StoredFile, ClientError> {
        let Deposit {
            name,
            size,
            announced,
            ..
        } = self.deposit;
        let untrusted = |reason: String| ClientError::Untrusted(format!("{name}: {reason}"));
        let envelope =
            Envelope::parse(stored.receipt.as_bytes()).map_err(|e| untrusted(e.to_string()))?;
        let (receipt, admission) = Receipt::verify(&envelope, &self.depositor.trust)
            .map_err(|e| untrusted(e.to_string()))?;
        if admission.name != *name || admission.size != *size {
            let found = &admission.name;
            let bytes = admission.size;
            return Err(untrusted(format!(
                "the receipt is for {found}, {bytes} bytes"
            )));
        }
        match announced.compare_digests(&admission) {
            DigestComparison::Same => {}
            DigestComparison::Differs(which) => {
                return Err(untrusted(format!(
                    "the receipt is for other content ({which} differs)"
                )));
            }
            // The archive compared the announced digests with the bytes, if it got them all.
            DigestComparison::Unknown if self.closed => {}
            DigestComparison::Unknown => {
                return Err(untrusted(
                    "nothing in the receipt says that it is for this content".to_owned(),
                ));
            }
        }
        Ok(StoredFile {
            envelope: stored.receipt,
            receipt,
            admission,
            already: stored.already,
            replicas: read_replicas(&stored.replicas)?,
            similar_name: nonempty_text(&stored.similar_name),
        })
    }

    fn nonsense(&self, what: &str) -> ClientError {
        ClientError::Untrusted(format!(
            "{}: the archive does not keep to the protocol: {what}",
            self.deposit.name
        ))
    }
}

fn request(step: Request) -> StoreRequest {
    StoreRequest { step: Some(step) }
}

/// Returns what `future` yields, unless `limit` passes first.
pub(crate) async fn within_limit<F: Future>(
    limit: Duration,
    doing: &str,
    future: F,
) -> Result<F::Output, ClientError> {
    let result = timeout(limit, future).await;
    result.map_err(|_elapsed| {
        ClientError::TimedOut(format!("nothing happened for {limit:?} while {doing}"))
    })
}
