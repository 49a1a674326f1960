//! The service `Access`.

use std::sync::Arc;

use archive_model::ArchiveError;
use archive_rpc::Kind;
use proto_archive::wire::access_server::Access;
use proto_archive::{convert as fields, wire};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{AnswerStream, Door, admin_failed, get, list};

#[tonic::async_trait]
impl Access for Door {
    async fn get(
        &self,
        request: Request<wire::GetRequest>,
    ) -> Result<Response<AnswerStream<wire::GetResponse>>, Status> {
        let request = request.into_inner();
        let name = fields::file_name("name", &request.name)?;
        let row = self
            .admin
            .file(&name)
            .map_err(|error| admin_failed(&error))?;
        let unknown = || fields::to_status(&ArchiveError::NotFound(name.to_string()));
        let job = get::Job::new(row.ok_or_else(unknown)?, &request)?;
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
        let (admin, standing) = (self.admin.clone(), self.people.standing.now());
        let now = Arc::clone(&standing);
        let counted = tokio::task::spawn_blocking(move || {
            let (mut files, mut bytes, mut below_required) = (0_u64, 0_u64, 0_u64);
            for row in admin.files(None)? {
                let record = row?.record;
                let Some(content) = &record.content else {
                    continue;
                };
                files += 1;
                bytes = bytes.saturating_add(content.size);
                below_required += u64::from(now.is_below_required(&record));
            }
            Ok::<_, archive_db::DbError>((files, bytes, below_required))
        });
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
            });
        }
        let counted = counted
            .await
            .map_err(|error| Kind::Internal.status(error.to_string()))?;
        let (files, bytes, below_required) = counted.map_err(|error| admin_failed(&error))?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Response::new(wire::StatusResponse {
            replicas,
            files,
            bytes,
            below_required,
            version,
            ..wire::StatusResponse::default()
        }))
    }
}
