//! The door `Preservation`: checks, anomalies, repairs, and the verbs of people. Decodes, asks, and encodes.

mod attics;
mod people;
mod replace;

use proto_archive::wire;
use proto_archive::wire::preservation_server::Preservation;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use super::{AnswerStream, Door};

#[tonic::async_trait]
impl Preservation for Door {
    async fn replace(
        &self,
        request: Request<Streaming<wire::ReplaceRequest>>,
    ) -> Result<Response<wire::ReplaceResponse>, Status> {
        replace::replace(self, request).await.map(Response::new)
    }

    async fn adopt(
        &self,
        request: Request<wire::AdoptFileRequest>,
    ) -> Result<Response<wire::AdoptFileResponse>, Status> {
        people::adopt(self, request).await.map(Response::new)
    }

    async fn attics(
        &self,
        request: Request<wire::AtticsRequest>,
    ) -> Result<Response<BoxStream<wire::AtticsResponse>>, Status> {
        attics::attics(self, &request.into_inner()).map(Response::new)
    }

    async fn restore(
        &self,
        request: Request<wire::AtticsRef>,
    ) -> Result<Response<wire::FileEntry>, Status> {
        people::restore(self, request).await.map(Response::new)
    }

    async fn ask(
        &self,
        request: Request<wire::AskRequest>,
    ) -> Result<Response<wire::RequestState>, Status> {
        people::ask(self, request).await.map(Response::new)
    }

    async fn requests(
        &self,
        request: Request<wire::RequestsRequest>,
    ) -> Result<Response<wire::RequestsResponse>, Status> {
        people::requests(self, request.into_inner().all)
            .await
            .map(Response::new)
    }

    async fn approve(
        &self,
        request: Request<wire::RequestRef>,
    ) -> Result<Response<wire::RequestState>, Status> {
        people::approve(self, request).await.map(Response::new)
    }

    async fn withdraw(
        &self,
        request: Request<wire::RequestRef>,
    ) -> Result<Response<wire::RequestState>, Status> {
        people::withdraw(self, request).await.map(Response::new)
    }

    async fn volume(
        &self,
        request: Request<wire::VolumeRequest>,
    ) -> Result<Response<wire::NodeStatus>, Status> {
        people::volume(self, request).await.map(Response::new)
    }

    async fn node(
        &self,
        request: Request<wire::NodeRequest>,
    ) -> Result<Response<wire::NodeStatus>, Status> {
        people::node(self, request).await.map(Response::new)
    }

    async fn bootstrap(
        &self,
        request: Request<wire::BootstrapRequest>,
    ) -> Result<Response<wire::BootstrapResponse>, Status> {
        people::bootstrap(self, request).await.map(Response::new)
    }

    async fn audit(
        &self,
        request: Request<wire::AuditRequest>,
    ) -> Result<Response<AnswerStream<wire::AuditResponse>>, Status> {
        Ok(Response::new(self.send_audit(&request.into_inner())?))
    }

    async fn export(
        &self,
        _request: Request<wire::ExportRequest>,
    ) -> Result<Response<AnswerStream<wire::ExportResponse>>, Status> {
        Ok(Response::new(self.send_export()))
    }

    async fn notify_test(
        &self,
        _request: Request<wire::NotifyTestRequest>,
    ) -> Result<Response<wire::NotifyTestResponse>, Status> {
        Ok(Response::new(self.test_notifications().await))
    }
}
