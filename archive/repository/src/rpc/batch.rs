//! The service `Batch`.

mod convert;
mod replica;

use std::collections::BTreeSet;

use archive_batch::InvalidJob;
use archive_jobs::{
    BatchError, JobRow, PendingSubmission, ReadOutputError, SubmitError, SubmittedJob,
};
use archive_model::JobId;
use archive_rpc::{CallErrorKind, Identity, IdleTimeout, InvalidMessage, Role};
use proto_archive::wire::batch_server::Batch;
use proto_archive::wire::batch_submit_request::{Open, Step};
use proto_archive::{convert as fields, wire};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::{AnswerStream, Answers, Door, send_answer};

/// The longest message of a component, in bytes.
const MESSAGE: usize = 1 << 20;

#[tonic::async_trait]
impl Batch for Door {
    async fn batch_jobs(
        &self,
        _request: Request<wire::BatchJobsRequest>,
    ) -> Result<Response<wire::BatchJobsResponse>, Status> {
        use wire::batch_jobs_response::{Argument, Job, Reduce};
        let jobs = archive_batch::built_in().map(|job| Job {
            name: job.name.to_owned(),
            about: job.about.to_owned(),
            output: job.output.to_owned(),
            arguments: job
                .arguments
                .iter()
                .map(|argument| Argument {
                    name: argument.name.to_owned(),
                    about: argument.about.to_owned(),
                    required: argument.default.is_none(),
                    default: argument.default.unwrap_or_default().to_owned(),
                })
                .collect(),
            reduce: Reduce::from(job.reduce).into(),
        });
        let jobs = jobs.collect();
        Ok(Response::new(wire::BatchJobsResponse { jobs }))
    }

    async fn batch_submit(
        &self,
        request: Request<Streaming<wire::BatchSubmitRequest>>,
    ) -> Result<Response<wire::BatchStatus>, Status> {
        let who = own_name(&*Identity::from_request(&request)?)?;
        let stall = self.settings.stall.duration();
        let mut steps = IdleTimeout::new(request.into_inner(), stall);
        let first = steps.next().await.transpose()?;
        let Some(Step::Open(open)) = first.and_then(|first| first.step) else {
            return Err(InvalidMessage::missing_field("open").into());
        };
        let submission = self.submission(&open, who).await?;
        let submitted = self.batches.begin_submission(submission).await;
        let row = match submitted.map_err(|error| refused(&error))? {
            Err(known) => known,
            Ok(pending) => self.receive(pending, steps).await?,
        };
        Ok(Response::new(self.batch_status(&row)))
    }

    async fn batch_list(
        &self,
        request: Request<wire::BatchListRequest>,
    ) -> Result<Response<AnswerStream<wire::BatchStatus>>, Status> {
        let identity = Identity::from_request(&request)?;
        let wanted = request.into_inner();
        let ids = self.batches.list_jobs(move |row| {
            (!wanted.own || is_own(&identity, row)) && (!wanted.open || row.is_open())
        });
        let ids = ids.await.map_err(|error| stuck(&error))?;
        let door = self.clone();
        Ok(self.answer("batch-list", |answers| async move {
            door.send_all(ids, &answers).await
        }))
    }

    async fn batch_find(
        &self,
        request: Request<wire::BatchRef>,
    ) -> Result<Response<wire::BatchStatus>, Status> {
        let row = self.job_row(&request.into_inner().id).await?;
        Ok(Response::new(self.batch_status(&row)))
    }

    async fn batch_cancel(
        &self,
        request: Request<wire::BatchRef>,
    ) -> Result<Response<wire::BatchStatus>, Status> {
        let identity = Identity::from_request(&request)?;
        let row = self.job_row(&request.into_inner().id).await?;
        let who = if is_own(&identity, &row) {
            row.who.clone()
        } else {
            let operator = identity
                .grants()
                .iter()
                .find(|grant| grant.role() == Role::Operator);
            operator.ok_or_else(|| not_own(&row))?.to_string()
        };
        let cancelled = self.batches.cancel_job(&row.id, who).await;
        let row = cancelled.map_err(|error| stuck(&error))?;
        let row = row.ok_or_else(|| unknown("it"))?;
        Ok(Response::new(self.batch_status(&row)))
    }

    async fn batch_output(
        &self,
        request: Request<wire::BatchOutputRequest>,
    ) -> Result<Response<AnswerStream<wire::BatchOutputResponse>>, Status> {
        let identity = Identity::from_request(&request)?;
        let asked = request.into_inner();
        let output = fields::job_output("what", asked.what)?;
        let row = self.job_row(&asked.id).await?;
        if !identity.has_role(Role::Researcher) && !is_own(&identity, &row) {
            return Err(not_own(&row));
        }
        if row.is_open() {
            let said = format!("batch job {} has not ended; ask again later", row.id);
            return Err(CallErrorKind::Unavailable.to_status(said));
        }
        let (name, length) = row.output_file(output);
        if asked.offset > length {
            let why = format!("is behind the end, which is at {length}");
            return Err(InvalidMessage::invalid_field("offset", why).into());
        }
        let bytes = self.batches.read_output(&row, name, asked.offset, length);
        Ok(self.answer("batch-output", |answers| async move {
            send_bytes(bytes.into_pieces(), length, &answers).await
        }))
    }
}

impl Door {
    /// Reads a submission, with all defaults filled in.
    async fn submission(&self, open: &Open, who: String) -> Result<SubmittedJob, Status> {
        let id = fields::job_id(&open.id)?;
        let spec = open.spec.as_ref();
        let spec = spec.ok_or_else(|| InvalidMessage::missing_field("spec"))?;
        let known = self.batches.find_job(&id).await;
        let known = known.map_err(|error| stuck(&error))?;
        let replica = match (spec.replica.as_str(), &known) {
            ("", Some(known)) => known.spec.replica.clone(),
            ("", None) => {
                let avoided = open.avoided.iter().map(|id| fields::replica_id(id));
                let avoided = avoided.collect::<Result<BTreeSet<_>, _>>()?;
                let names = fields::name_list("names", &spec.names)?;
                self.choose_replica(names, &avoided).await?
            }
            (named, _) => self.named_replica(named)?,
        };
        let settings = self.batches.settings();
        Ok(SubmittedJob {
            id,
            spec: convert::complete_spec(spec, &replica, known.as_ref(), settings)?,
            component_size: spec.component_size,
            who,
        })
    }

    /// Receives the component, if the job has one, and then accepts the job.
    async fn receive(
        &self,
        mut pending: PendingSubmission,
        mut steps: impl Stream<Item = Result<wire::BatchSubmitRequest, Status>> + Unpin + Send,
    ) -> Result<JobRow, Status> {
        while pending.missing_bytes() > 0 {
            let bytes = match steps.next().await.transpose().map(component) {
                Ok(Ok(bytes)) => bytes,
                Ok(Err(status)) | Err(status) => {
                    let dropped = self.batches.abandon_submission(pending).await;
                    dropped.map_err(|error| refused(&error))?;
                    return Err(status);
                }
            };
            let appended = pending.append_component(bytes).await;
            pending = appended.map_err(|error| refused(&error))?;
        }
        let taken = self.batches.take_submission(pending).await;
        taken.map_err(|error| refused(&error))
    }

    async fn job_row(&self, id: &str) -> Result<JobRow, Status> {
        let id = fields::job_id(id)?;
        let found = self.batches.find_job(&id).await;
        let found = found.map_err(|error| stuck(&error))?;
        found.ok_or_else(|| unknown(id.as_str()))
    }

    fn batch_status(&self, row: &JobRow) -> wire::BatchStatus {
        fields::job_status_message(self.batches.job_status(row), row.component_size)
    }

    async fn send_all(
        &self,
        ids: Vec<JobId>,
        answers: &Answers<wire::BatchStatus>,
    ) -> Result<(), Status> {
        for id in ids {
            let found = self.batches.find_job(&id).await;
            // A job that has expired is not listed.
            if let Some(row) = found.map_err(|error| stuck(&error))? {
                send_answer(answers, self.batch_status(&row)).await?;
            }
        }
        Ok(())
    }
}

fn component(message: Option<wire::BatchSubmitRequest>) -> Result<bytes::Bytes, Status> {
    match message.and_then(|message| message.step) {
        Some(Step::Component(bytes)) if bytes.len() <= MESSAGE => Ok(bytes),
        Some(Step::Component(_)) => Err(InvalidMessage::invalid_field(
            "component",
            "has more than 1 MiB in one message",
        )
        .into()),
        Some(Step::Open(_)) => {
            Err(InvalidMessage::invalid_field("open", "is sent twice; send it once").into())
        }
        None => Err(InvalidMessage::invalid_field(
            "component",
            "is incomplete: the stream ended early",
        )
        .into()),
    }
}

async fn send_bytes(
    mut pieces: impl Stream<Item = Result<bytes::Bytes, ReadOutputError>> + Unpin,
    size: u64,
    answers: &Answers<wire::BatchOutputResponse>,
) -> Result<(), Status> {
    while let Some(piece) = pieces.next().await {
        let data = piece.map_err(|error| {
            tracing::error!(%error, "cannot read a file of a batch job");
            CallErrorKind::Storage.to_status(format!(
                "cannot read the files of the batch job: {error}; run the job again"
            ))
        })?;
        let answer = wire::BatchOutputResponse {
            data,
            size: 0,
            end: false,
        };
        send_answer(answers, answer).await?;
    }
    let end = wire::BatchOutputResponse {
        data: bytes::Bytes::new(),
        size,
        end: true,
    };
    send_answer(answers, end).await
}

/// Returns the name and role under which the caller submits, which also decide the class. A person who holds both roles
/// is a researcher.
fn own_name(identity: &Identity) -> Result<String, Status> {
    let of = |role| identity.grants().iter().find(|grant| grant.role() == role);
    let grant = of(Role::Researcher).or_else(|| of(Role::Index));
    let refused = || {
        CallErrorKind::Refused
            .to_status("batch jobs need a certificate with the role researcher or index")
    };
    grant.map(ToString::to_string).ok_or_else(refused)
}

fn not_own(row: &JobRow) -> Status {
    CallErrorKind::Refused.to_status(format!(
        "batch job {} belongs to {}, not to you",
        row.id, row.who
    ))
}

fn is_own(identity: &Identity, row: &JobRow) -> bool {
    let mut grants = identity.grants().iter();
    grants.any(|grant| grant.to_string() == row.who)
}

fn unknown(id: &str) -> Status {
    CallErrorKind::NotFound.to_status(format!("there is no batch job {id}, or it has expired"))
}

/// Returns the status of a refused submission.
fn refused(error: &SubmitError) -> Status {
    let kind = match error {
        SubmitError::Job(InvalidJob::Unknown(_)) => CallErrorKind::NotFound,
        SubmitError::Job(InvalidJob::Component(_)) | SubmitError::Component(_) => {
            CallErrorKind::Mismatch
        }
        SubmitError::Field(..)
        | SubmitError::Job(InvalidJob::Missing { .. } | InvalidJob::Argument { .. }) => {
            CallErrorKind::Invalid
        }
        SubmitError::Taken(..) => CallErrorKind::Exists,
        SubmitError::IndexComponent => CallErrorKind::Refused,
        SubmitError::BeingSubmitted(_) | SubmitError::TooManyUploads => CallErrorKind::Busy,
        SubmitError::TooManyWaiting(_)
        | SubmitError::TooManyOfOnePerson(_)
        | SubmitError::Space(_) => CallErrorKind::NoSpace,
        SubmitError::Folder(error) => {
            tracing::error!(%error, "cannot write the files of a batch job");
            if error.is_full() {
                CallErrorKind::NoSpace
            } else {
                CallErrorKind::Storage
            }
        }
        SubmitError::Batch(error) => return stuck(error),
    };
    kind.to_status(error.to_string())
}

fn stuck(error: &BatchError) -> Status {
    match error {
        BatchError::Db(error) => super::admin_failed(error).into(),
        BatchError::Join(error) => CallErrorKind::Internal.to_status(error.to_string()),
    }
}
