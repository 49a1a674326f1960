//! The service `Preservation`: checks, anomalies, repairs, and the acts of people. Decodes, calls the core, and
//! encodes.

mod adopt;
mod anomalies;
mod attics;
mod check;
mod people;
mod repair;
mod replace;
mod scrubs;

use std::sync::Arc;

use archive_rpc::{CallErrorKind, Identity, Role};
use proto_archive::wire;
use proto_archive::wire::preservation_server::Preservation;
use tonic::{Request, Response, Status, Streaming};

use super::{AnswerStream, Answers, Door};

#[tonic::async_trait]
impl Preservation for Door {
    async fn check(
        &self,
        request: Request<wire::CheckRequest>,
    ) -> Result<Response<AnswerStream<wire::CheckResponse>>, Status> {
        let who = acting(&request, Role::Officer)?;
        let scope = check::check_scope(&request.into_inner(), who)?;
        let door = self.clone();
        Ok(self.answer_until_stop("check", |answers| async move {
            check::run_check(&door, &scope, &answers).await
        }))
    }

    async fn anomalies(
        &self,
        request: Request<wire::AnomaliesRequest>,
    ) -> Result<Response<AnswerStream<wire::AnomaliesResponse>>, Status> {
        let wanted = anomalies::AnomalyFilter::new(&request.into_inner())?;
        let door = self.clone();
        Ok(self.answer_until_stop("anomalies", |answers| async move {
            wanted.run_filter(&door, &answers).await
        }))
    }

    async fn repair(
        &self,
        request: Request<wire::RepairRequest>,
    ) -> Result<Response<AnswerStream<wire::RepairResponse>>, Status> {
        let who = acting(&request, Role::Officer)?;
        let mut job = repair::RepairJob::new(&request.into_inner(), who)?;
        job.look_first(self).await?;
        job.allow_repair(self).await?;
        let door = self.clone();
        Ok(self.answer_until_stop("repair", |answers| async move {
            job.run_repair(&door, &answers).await
        }))
    }

    async fn scrubs(
        &self,
        request: Request<wire::ScrubsRequest>,
    ) -> Result<Response<wire::ScrubsResponse>, Status> {
        scrubs::run_scrubs(self, request).await.map(Response::new)
    }

    async fn replace(
        &self,
        request: Request<Streaming<wire::ReplaceRequest>>,
    ) -> Result<Response<wire::ReplaceResponse>, Status> {
        replace::replace_copy(self, request)
            .await
            .map(Response::new)
    }

    async fn adopt(
        &self,
        request: Request<wire::AdoptFileRequest>,
    ) -> Result<Response<wire::AdoptFileResponse>, Status> {
        adopt::adopt_copy(self, request).await.map(Response::new)
    }

    async fn attics(
        &self,
        request: Request<wire::AtticsRequest>,
    ) -> Result<Response<AnswerStream<wire::AtticsResponse>>, Status> {
        attics::list_attics(self, &request.into_inner())
    }

    async fn restore(
        &self,
        request: Request<wire::AtticsRef>,
    ) -> Result<Response<wire::FileEntry>, Status> {
        people::restore_file(self, request).await.map(Response::new)
    }

    async fn ask(
        &self,
        request: Request<wire::AskRequest>,
    ) -> Result<Response<wire::RequestState>, Status> {
        people::ask_request(self, request).await.map(Response::new)
    }

    async fn requests(
        &self,
        request: Request<wire::RequestsRequest>,
    ) -> Result<Response<wire::RequestsResponse>, Status> {
        people::list_requests(self, request.into_inner().all)
            .await
            .map(Response::new)
    }

    async fn approve(
        &self,
        request: Request<wire::RequestRef>,
    ) -> Result<Response<wire::RequestState>, Status> {
        people::approve_request(self, request)
            .await
            .map(Response::new)
    }

    async fn withdraw(
        &self,
        request: Request<wire::RequestRef>,
    ) -> Result<Response<wire::RequestState>, Status> {
        people::withdraw_request(self, request)
            .await
            .map(Response::new)
    }

    async fn volume(
        &self,
        request: Request<wire::VolumeRequest>,
    ) -> Result<Response<wire::NodeStatus>, Status> {
        people::order_volume(self, request).await.map(Response::new)
    }

    async fn node(
        &self,
        request: Request<wire::NodeRequest>,
    ) -> Result<Response<wire::NodeStatus>, Status> {
        people::order_node(self, request).await.map(Response::new)
    }

    async fn bootstrap(
        &self,
        request: Request<wire::BootstrapRequest>,
    ) -> Result<Response<wire::BootstrapResponse>, Status> {
        people::bootstrap_replica(self, request)
            .await
            .map(Response::new)
    }

    async fn audit(
        &self,
        request: Request<wire::AuditRequest>,
    ) -> Result<Response<AnswerStream<wire::AuditResponse>>, Status> {
        self.send_audit(&request.into_inner())
    }

    async fn export(
        &self,
        _request: Request<wire::ExportRequest>,
    ) -> Result<Response<AnswerStream<wire::ExportResponse>>, Status> {
        Ok(self.send_export())
    }

    async fn notify_test(
        &self,
        _request: Request<wire::NotifyTestRequest>,
    ) -> Result<Response<wire::NotifyTestResponse>, Status> {
        Ok(Response::new(self.test_notifications().await))
    }
}

impl Door {
    /// Runs work that may take days, as [`Door::answer`] does. A stop of the repository ends it.
    fn answer_until_stop<T: Send + 'static, F>(
        &self,
        name: &str,
        work: impl FnOnce(Answers<T>) -> F,
    ) -> Response<AnswerStream<T>>
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let stop = self.archive.tasks.stop_token();
        self.answer(name, |answers| {
            let work = Box::pin(work(answers));
            async move {
                let stopping = "the repository is stopping; try again when it is back";
                tokio::select! {
                    () = stop.cancelled() => Err(CallErrorKind::Unavailable.to_status(stopping)),
                    done = work => done,
                }
            }
        })
    }
}

/// Returns the caller as `role/name`, under the role in which it acts.
fn acting<T>(request: &Request<T>, role: Role) -> Result<Arc<str>, Status> {
    let identity = Identity::from_request(request)?;
    let grants = identity.grants();
    let exact = grants.iter().find(|grant| grant.role() == role);
    let grant = exact.or_else(|| grants.iter().find(|grant| grant.role().includes(role)));
    Ok(grant
        .map_or_else(|| identity.to_string(), ToString::to_string)
        .into())
}
