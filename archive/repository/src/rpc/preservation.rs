//! The door `Preservation`: checks, anomalies, repairs, and the verbs of people. Decodes, asks, and encodes.

use proto_archive::wire;
use proto_archive::wire::preservation_server::Preservation;
use tonic::{Request, Response, Status};

use super::{AnswerStream, Door};

#[tonic::async_trait]
impl Preservation for Door {
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
