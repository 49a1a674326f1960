//! The service `Access`.

use archive_model::ArchiveError;
use archive_rpc::Kind;
use proto_archive::wire::access_server::Access;
use proto_archive::{convert as fields, wire};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{AnswerStream, Door, admin_failed, get, list, salvage};

impl Door {
    /// What is to be read of a file that the archive has.
    fn job(&self, request: &wire::GetRequest) -> Result<get::Job, Status> {
        let name = fields::file_name("name", &request.name)?;
        let replica = request.replica.as_str();
        if !replica.is_empty() && self.specs.iter().all(|spec| spec.id.as_str() != replica) {
            let said = format!("replica {replica:?} is not in the settings of this archive");
            return Err(Kind::NotFound.status(said));
        }
        let row = self.admin.file(&name);
        let row = row.map_err(|error| admin_failed(&error))?;
        let unknown = || fields::to_status(&ArchiveError::NotFound(name.to_string()));
        get::Job::new(&row.ok_or_else(unknown)?, request)
    }
}

#[tonic::async_trait]
impl Access for Door {
    async fn get(
        &self,
        request: Request<wire::GetRequest>,
    ) -> Result<Response<AnswerStream<wire::GetResponse>>, Status> {
        let job = self.job(&request.into_inner())?;
        let (answers, stream) = mpsc::channel(4);
        let door = self.clone();
        self.tasks.spawn_once("get", async move {
            if let Err(status) = job.run(&door, &answers).await {
                drop(answers.send(Err(status)).await);
            }
            Ok::<(), std::convert::Infallible>(())
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn salvage(
        &self,
        request: Request<wire::GetRequest>,
    ) -> Result<Response<AnswerStream<wire::SalvageResponse>>, Status> {
        let job = self.job(&request.into_inner())?;
        let (answers, stream) = mpsc::channel(4);
        let door = self.clone();
        self.tasks.spawn_once("salvage", async move {
            if let Err(status) = salvage::run(job, &door, &answers).await {
                drop(answers.send(Err(status)).await);
            }
            Ok::<(), std::convert::Infallible>(())
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn list(
        &self,
        request: Request<wire::ListRequest>,
    ) -> Result<Response<AnswerStream<wire::ListResponse>>, Status> {
        let job = list::Job::new(&request.into_inner())?;
        let (answers, stream) = mpsc::channel(4);
        let door = self.clone();
        self.tasks.spawn_once("list", async move {
            if let Err(status) = job.run(&door, &answers).await {
                drop(answers.send(Err(status)).await);
            }
            Ok::<(), std::convert::Infallible>(())
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn receipt(
        &self,
        request: Request<wire::ReceiptRequest>,
    ) -> Result<Response<wire::ReceiptResponse>, Status> {
        Ok(Response::new(self.issue_receipt(&request)?))
    }

    async fn status(
        &self,
        _request: Request<wire::StatusRequest>,
    ) -> Result<Response<wire::StatusResponse>, Status> {
        let standing = self.people.standing.now();
        let mut replicas = Vec::new();
        for spec in self.specs.iter() {
            let retired = standing.is_retired(&spec.id);
            let (nodes, problem) = match self.replicas.state(&spec.id).await {
                Err(_) if retired => (Vec::new(), String::new()),
                Ok(nodes) => (nodes, String::new()),
                Err(status) => (Vec::new(), status.message().to_owned()),
            };
            replicas.push(wire::status_response::ReplicaState {
                replica: spec.id.to_string(),
                kind: wire::ReplicaKind::from(spec.kind).into(),
                required: spec.required,
                problem,
                nodes,
                filling: standing.is_filling(&spec.id),
                retired,
                site: spec.site.clone().unwrap_or_default(),
            });
        }
        let Some(counts) = self.admin.counts() else {
            return Err(Kind::Unavailable.status("the files are still being counted; ask again"));
        };
        let anomalies = self.preserver.anomalies.kinds();
        let anomalies = anomalies.into_iter().filter(|(_, count)| *count > 0);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Response::new(wire::StatusResponse {
            replicas,
            files: counts.files,
            bytes: counts.bytes,
            below_required: counts.below_required(|id| standing.is_excused(id)),
            version,
            anomalies: anomalies
                .map(|(kind, count)| (kind.to_owned(), count))
                .collect(),
            held: self.preserver.held_at_all().unwrap_or_default(),
            drains: self.drains(),
        }))
    }
}
