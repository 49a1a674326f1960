//! Batch jobs over gRPC. Each answer is checked against its request before it is handed out.

use std::collections::VecDeque;
use std::time::Duration;

use archive_model::JobId;
use archive_rpc::limits::LARGEST_MESSAGE;
use archive_rpc::{IdleTimeout, StepReader, StepStream};
use bytes::Bytes;
use proto_archive::wire::batch_client::BatchClient;
use proto_archive::wire::batch_output_request::What;
use proto_archive::{convert, wire};
use tokio::time::{Instant, sleep};
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};

use super::{Batch, JobDescription, JobOutput, JobStatus, JobSubmission};
use crate::CallFuture;
use crate::error::{ClientError, call_failed};
use crate::ingest::within_limit;
use crate::limits::ClientLimits;
use crate::retry::Retry;
use crate::steps::ArchiveSteps;

/// A researcher, who runs jobs, at the door of the repository. Cheap to clone; clones share the connection.
///
/// ```
/// use archive_client::batch::{JobOutput, JobLines, read_output_lines};
/// use archive_client::{ClientError, Researcher};
/// use archive_model::JobId;
///
/// /// Reads which files a job could not read.
/// async fn failures(archive: &Researcher, id: &JobId) -> Result<JobLines, ClientError> {
///     read_output_lines(archive, id, JobOutput::Errors).await
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Researcher {
    client: BatchClient<Channel>,
    limits: ClientLimits,
}

impl Researcher {
    /// Takes a channel to the repository.
    pub fn new(channel: Channel, limits: ClientLimits) -> Self {
        let client = BatchClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Self { client, limits }
    }

    async fn answer<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, ClientError> {
        let doing = "waiting for the archive's answer";
        match within_limit(limit, doing, call).await? {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => Err(call_failed("batch jobs", &status)),
        }
    }

    /// Begins to read steps that the archive sends without pauses.
    async fn steps<T: StepReader<Error = ClientError>>(
        &self,
        reader: T,
        call: impl Future<Output = Result<Response<Streaming<T::Message>>, Status>>,
    ) -> Result<ArchiveSteps<T::Item>, ClientError> {
        let limit = self.limits.answer_limit();
        let stream = IdleTimeout::new(self.answer(limit, call).await?, limit);
        Ok(ArchiveSteps::new(StepStream::of_optional_call(
            stream,
            reader,
            "batch jobs",
        )))
    }

    async fn submit_once(&self, submission: &JobSubmission) -> Result<JobStatus, ClientError> {
        let mut client = self.client.clone();
        let messages = tokio_stream::iter(submission.submit_messages());
        // The limit includes the time for the component to arrive.
        let limit = self.limits.verification_limit(0);
        let answer = self.answer(limit, client.batch_submit(messages)).await?;
        meant(answer, &submission.id)
    }

    async fn submit_until_known(
        &self,
        submission: &JobSubmission,
    ) -> Result<JobStatus, ClientError> {
        let begin = Instant::now();
        let mut retry = Retry::new(self.limits);
        loop {
            let error = match self.submit_once(submission).await {
                Err(error) if error.is_passing() => error,
                answer => return answer,
            };
            match retry.next_pause(begin.elapsed()) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
        }
    }
}

/// Reads the status of the job `id`; fails if it is of another job.
fn meant(message: wire::BatchStatus, id: &JobId) -> Result<JobStatus, ClientError> {
    let status = convert::job_status(message)?;
    if status.id == *id {
        return Ok(status);
    }
    let found = status.id;
    Err(ClientError::Untrusted(format!(
        "asked for job {id}, the archive speaks of {found}"
    )))
}

/// Reads a list of jobs.
struct Jobs;

impl StepReader for Jobs {
    type Message = wire::BatchStatus;
    type Item = JobStatus;
    type Error = ClientError;

    fn read(
        &mut self,
        message: wire::BatchStatus,
        out: &mut VecDeque<JobStatus>,
    ) -> Result<(), ClientError> {
        out.push_back(convert::job_status(message)?);
        Ok(())
    }
}

/// Reads an output of a job: as many bytes as its last message says.
struct Output {
    at: u64,
    ended: bool,
}

impl StepReader for Output {
    type Message = wire::BatchOutputResponse;
    type Item = Bytes;
    type Error = ClientError;

    fn read(
        &mut self,
        message: wire::BatchOutputResponse,
        out: &mut VecDeque<Bytes>,
    ) -> Result<(), ClientError> {
        let wire::BatchOutputResponse { data, size, end } = message;
        if self.ended || (data.is_empty() && !end) {
            return Err(ClientError::Untrusted(
                "the archive sends more than it says there is".to_owned(),
            ));
        }
        self.at = self.at.saturating_add(data.len() as u64);
        self.ended = end;
        if end && self.at != size {
            let at = self.at;
            return Err(ClientError::Untrusted(format!(
                "the archive says that there are {size} bytes, and sent up to byte {at}"
            )));
        }
        if !data.is_empty() {
            out.push_back(data);
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut VecDeque<Bytes>) -> Result<(), ClientError> {
        if self.ended {
            return Ok(());
        }
        let at = self.at;
        Err(ClientError::Unavailable(format!(
            "the answer was cut at byte {at}"
        )))
    }
}

impl Batch for Researcher {
    fn jobs(&self) -> CallFuture<'_, Vec<JobDescription>> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.batch_jobs(wire::BatchJobsRequest {});
            let answer = self.answer(self.limits.answer_limit(), call).await?;
            let jobs = answer.jobs.into_iter().map(JobDescription::try_from);
            Ok(jobs.collect::<Result<_, _>>()?)
        })
    }

    fn submit<'a>(&'a self, submission: &'a JobSubmission) -> CallFuture<'a, JobStatus> {
        Box::pin(self.submit_until_known(submission))
    }

    fn list(&self, own: bool, open: bool) -> CallFuture<'_, ArchiveSteps<JobStatus>> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.batch_list(wire::BatchListRequest { own, open });
            self.steps(Jobs, call).await
        })
    }

    fn find<'a>(&'a self, id: &'a JobId) -> CallFuture<'a, JobStatus> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.batch_find(wire::BatchRef { id: id.to_string() });
            meant(self.answer(self.limits.answer_limit(), call).await?, id)
        })
    }

    fn cancel<'a>(&'a self, id: &'a JobId) -> CallFuture<'a, JobStatus> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.batch_cancel(wire::BatchRef { id: id.to_string() });
            meant(self.answer(self.limits.answer_limit(), call).await?, id)
        })
    }

    fn output<'a>(
        &'a self,
        id: &'a JobId,
        left: JobOutput,
        offset: u64,
    ) -> CallFuture<'a, ArchiveSteps<Bytes>> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.batch_output(wire::BatchOutputRequest {
                id: id.to_string(),
                what: What::from(left).into(),
                offset,
            });
            let output = Output {
                at: offset,
                ended: false,
            };
            self.steps(output, call).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_rpc::testing::read_steps;

    fn message() -> wire::BatchStatus {
        wire::BatchStatus {
            id: "j-1".to_owned(),
            spec: Some(wire::BatchSpec {
                job: "file-list".to_owned(),
                replica: "one".to_owned(),
                ..wire::BatchSpec::default()
            }),
            state: wire::batch_status::State::Running.into(),
            who: "researcher/rita".to_owned(),
            submitted: "2026-01-02T03:04:05Z".to_owned(),
            ..wire::BatchStatus::default()
        }
    }

    fn data(bytes: &'static [u8]) -> wire::BatchOutputResponse {
        wire::BatchOutputResponse {
            data: Bytes::from_static(bytes),
            ..wire::BatchOutputResponse::default()
        }
    }

    fn end(bytes: &'static [u8], size: u64) -> wire::BatchOutputResponse {
        wire::BatchOutputResponse {
            size,
            end: true,
            ..data(bytes)
        }
    }

    /// Fails if the output of a job that is cut, shorter than announced or continued behind its end counts as complete.
    #[tokio::test]
    async fn an_output_is_whole_or_an_error() {
        let check = async |messages: Vec<_>, expected: &str, reason: &str| {
            let output = Output {
                at: 2,
                ended: false,
            };
            let (pieces, ended) = read_steps(output, messages.into_iter().map(Ok).collect()).await;
            assert_eq!(pieces.concat(), expected.as_bytes());
            match ended {
                Ok(()) => assert_eq!(reason, ""),
                Err(error) => {
                    assert!(!reason.is_empty() && error.contains(reason), "{error}");
                }
            }
        };
        check(vec![data(b"ab"), end(b"", 4)], "ab", "").await;
        check(vec![data(b"ab"), end(b"c", 5)], "abc", "").await;
        check(vec![end(b"", 2)], "", "").await;
        check(vec![data(b"ab")], "ab", "cut at byte 4").await;
        check(vec![data(b"ab"), end(b"", 9)], "ab", "9 bytes").await;
        check(vec![end(b"", 2), data(b"x")], "", "more than").await;
        check(vec![data(b"")], "", "more than").await;
    }

    /// Fails if the status of another job passes for that of the job that was asked for.
    #[test]
    fn another_job_is_not_believed() {
        let id = JobId::new("j-1").unwrap();
        assert!(meant(message(), &id).is_ok());
        let other = JobId::new("j-2").unwrap();
        let error = meant(message(), &other).unwrap_err();
        assert!(matches!(error, ClientError::Untrusted(_)), "{error}");
    }
}
