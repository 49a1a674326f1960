//! The preservation service of an archive in memory: it sends the answers of a test, and keeps the requests.

use std::pin::Pin;

use proto_archive::wire::preservation_server::Preservation;
use proto_archive::wire::replace_request::Step;
use proto_archive::wire::{
    AdoptFileRequest, AdoptFileResponse, AnomaliesRequest, AnomaliesResponse, AskRequest,
    AtticsRef, AtticsRequest, AtticsResponse, AuditRequest, AuditResponse, BootstrapRequest,
    BootstrapResponse, CheckRequest, CheckResponse, ExportRequest, ExportResponse, FileEntry,
    NodeRequest, NodeStatus, NotifyTestRequest, NotifyTestResponse, RepairRequest, RepairResponse,
    ReplaceRequest, ReplaceResponse, RequestRef, RequestState, RequestsRequest, RequestsResponse,
    ScrubsRequest, ScrubsResponse, VolumeRequest,
};
use tokio_stream::StreamExt;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use crate::archive::Archive;

/// The answers of a call, and the requests that it got. Without answers the call is not offered.
pub struct ScriptedCall<Q, A> {
    pub asked: Vec<Q>,
    pub answers: Option<Vec<Result<A, Status>>>,
    /// After the answers the stream stays open, silent.
    pub then_silent: bool,
}

impl<Q, A> Default for ScriptedCall<Q, A> {
    fn default() -> Self {
        Self {
            asked: Vec::new(),
            answers: None,
            then_silent: false,
        }
    }
}

impl<Q, A: Clone + Send + 'static> ScriptedCall<Q, A> {
    /// Sets the answers of the call.
    pub fn say(&mut self, answers: impl IntoIterator<Item = A>) {
        self.answers = Some(answers.into_iter().map(Ok).collect());
    }

    /// Sets the answers of the call, and the error behind them.
    pub fn fail(&mut self, answers: impl IntoIterator<Item = A>, status: Status) {
        let answers = answers.into_iter().map(Ok);
        self.answers = Some(answers.chain([Err(status)]).collect());
    }

    fn answers(&mut self, asked: Request<Q>) -> Result<Vec<Result<A, Status>>, Status> {
        self.asked.push(asked.into_inner());
        let answers = self.answers.clone();
        answers.ok_or_else(|| Status::unimplemented("Not yet implemented"))
    }

    fn one(&mut self, asked: Request<Q>) -> Result<Response<A>, Status> {
        let first = self.answers(asked)?.into_iter().next();
        first.expect("an answer").map(Response::new)
    }

    fn stream(&mut self, asked: Request<Q>) -> Result<Response<BoxStream<A>>, Status> {
        let answers = tokio_stream::iter(self.answers(asked)?);
        if self.then_silent {
            return Ok(Response::new(Box::pin(
                answers.chain(tokio_stream::pending()),
            )));
        }
        Ok(Response::new(Box::pin(answers)))
    }
}

#[derive(Default)]
pub struct Script {
    pub check: ScriptedCall<CheckRequest, CheckResponse>,
    pub anomalies: ScriptedCall<AnomaliesRequest, AnomaliesResponse>,
    pub repair: ScriptedCall<RepairRequest, RepairResponse>,
    pub scrubs: ScriptedCall<ScrubsRequest, ScrubsResponse>,
    pub replace: ScriptedCall<ReplaceRequest, ReplaceResponse>,
    /// The bytes that came as a replacement.
    pub replaced: Vec<u8>,
    /// Answers after the open, without waiting for the bytes.
    pub replace_early: bool,
    pub adopt: ScriptedCall<AdoptFileRequest, AdoptFileResponse>,
    pub attics: ScriptedCall<AtticsRequest, AtticsResponse>,
    pub restore: ScriptedCall<AtticsRef, FileEntry>,
    pub ask: ScriptedCall<AskRequest, RequestState>,
    pub requests: ScriptedCall<RequestsRequest, RequestsResponse>,
    pub approve: ScriptedCall<RequestRef, RequestState>,
    pub withdraw: ScriptedCall<RequestRef, RequestState>,
    pub volume: ScriptedCall<VolumeRequest, NodeStatus>,
    pub node: ScriptedCall<NodeRequest, NodeStatus>,
    pub bootstrap: ScriptedCall<BootstrapRequest, BootstrapResponse>,
    pub audit: ScriptedCall<AuditRequest, AuditResponse>,
    pub export: ScriptedCall<ExportRequest, ExportResponse>,
    pub notify_test: ScriptedCall<NotifyTestRequest, NotifyTestResponse>,
}

/// A call that answers with one message.
macro_rules! one {
    ($name:ident, $request:ty, $response:ty) => {
        fn $name<'a, 'async_trait>(
            &'a self,
            request: Request<$request>,
        ) -> Pin<
            Box<dyn Future<Output = Result<Response<$response>, Status>> + Send + 'async_trait>,
        >
        where
            'a: 'async_trait,
            Self: 'async_trait,
        {
            Box::pin(async move { self.state().keeping.$name.one(request) })
        }
    };
}

/// A call that answers with a stream.
macro_rules! stream {
    ($name:ident, $request:ty, $response:ty) => {
        fn $name<'a, 'async_trait>(
            &'a self,
            request: Request<$request>,
        ) -> Pin<
            Box<
                dyn Future<Output = Result<Response<BoxStream<$response>>, Status>>
                    + Send
                    + 'async_trait,
            >,
        >
        where
            'a: 'async_trait,
            Self: 'async_trait,
        {
            Box::pin(async move { self.state().keeping.$name.stream(request) })
        }
    };
}

#[tonic::async_trait]
impl Preservation for Archive {
    stream!(check, CheckRequest, CheckResponse);
    stream!(anomalies, AnomaliesRequest, AnomaliesResponse);
    stream!(repair, RepairRequest, RepairResponse);
    stream!(attics, AtticsRequest, AtticsResponse);
    stream!(audit, AuditRequest, AuditResponse);
    stream!(export, ExportRequest, ExportResponse);
    one!(scrubs, ScrubsRequest, ScrubsResponse);
    one!(adopt, AdoptFileRequest, AdoptFileResponse);
    one!(restore, AtticsRef, FileEntry);
    one!(ask, AskRequest, RequestState);
    one!(requests, RequestsRequest, RequestsResponse);
    one!(approve, RequestRef, RequestState);
    one!(withdraw, RequestRef, RequestState);
    one!(volume, VolumeRequest, NodeStatus);
    one!(node, NodeRequest, NodeStatus);
    one!(bootstrap, BootstrapRequest, BootstrapResponse);
    one!(notify_test, NotifyTestRequest, NotifyTestResponse);

    async fn replace(
        &self,
        request: Request<Streaming<ReplaceRequest>>,
    ) -> Result<Response<ReplaceResponse>, Status> {
        let mut messages = request.into_inner();
        let mut open = None;
        let mut bytes = Vec::new();
        while let Some(message) = messages.next().await {
            let message = message?;
            match message.step {
                Some(Step::Data(data)) => bytes.extend_from_slice(&data),
                Some(Step::Open(_)) => open = Some(message),
                None => panic!("a step"),
            }
            if self.state().keeping.replace_early {
                break;
            }
        }
        let mut state = self.state();
        state.keeping.replaced = bytes;
        state
            .keeping
            .replace
            .one(Request::new(open.expect("an open")))
    }
}
