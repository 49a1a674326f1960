//! A service by hand, with one method of each kind of streaming.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use archive_rpc::Identity;
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codegen::http;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::server::{ClientStreamingService, NamedService, ServerStreamingService, UnaryService};
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;

/// `Who` answers the caller's identity. `Wait` answers when `open` has a permit. `Take` counts bytes until the end of
/// the stream. `Give` streams without end.
#[derive(Clone)]
pub(crate) struct Echo {
    /// The permits for calls of `Wait` to end, one for each.
    pub(crate) open: Arc<Semaphore>,
    /// The permits of calls of `Wait` or `Take` that have begun, one for each.
    pub(crate) begun: Arc<Semaphore>,
    /// The number of calls of `Wait` that have ended without an answer.
    pub(crate) dropped: Arc<AtomicUsize>,
}

impl Default for Echo {
    fn default() -> Self {
        let none = || Arc::new(Semaphore::new(0));
        Self {
            open: none(),
            begun: none(),
            dropped: Arc::default(),
        }
    }
}

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

type Future<T> = Pin<Box<dyn std::future::Future<Output = T> + Send>>;
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Future<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let echo = self.clone();
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            Ok(match path.as_str() {
                "/test.Echo/Take" => {
                    server::<Bytes, u64>()
                        .client_streaming(Take(echo), request)
                        .await
                }
                "/test.Echo/Give" => {
                    server::<String, Bytes>()
                        .server_streaming(Give, request)
                        .await
                }
                _ => {
                    server::<String, String>()
                        .unary(Whole(echo, path), request)
                        .await
                }
            })
        })
    }
}

fn server<I, O>() -> tonic::server::Grpc<ProstCodec<O, I>>
where
    I: prost::Message + Default + 'static,
    O: prost::Message + Default + 'static,
{
    tonic::server::Grpc::new(ProstCodec::default())
}

struct Whole(Echo, String);

struct CountDropped(Arc<AtomicUsize>, bool);

impl Drop for CountDropped {
    fn drop(&mut self) {
        if !self.1 {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl UnaryService<String> for Whole {
    type Response = String;
    type Future = Future<Result<Response<String>, Status>>;

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let echo = self.0.clone();
        let wait = self.1.ends_with("/Wait");
        Box::pin(async move {
            if wait {
                let mut guard = CountDropped(Arc::clone(&echo.dropped), false);
                echo.begun.add_permits(1);
                echo.open.acquire().await.expect("never closed").forget();
                guard.1 = true;
            }
            let caller = Identity::from_request(&request)?;
            Ok(Response::new(caller.to_string()))
        })
    }
}

struct Take(Echo);

impl ClientStreamingService<Bytes> for Take {
    type Response = u64;
    type Future = Future<Result<Response<u64>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        self.0.begun.add_permits(1);
        Box::pin(async move {
            let mut messages = request.into_inner();
            let mut total = 0;
            while let Some(message) = messages.next().await {
                total += message?.len() as u64;
            }
            Ok(Response::new(total))
        })
    }
}

struct Give;

impl ServerStreamingService<String> for Give {
    type Response = Bytes;
    type ResponseStream = Answers<Bytes>;
    type Future = Future<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, _: Request<String>) -> Self::Future {
        let chunk = Bytes::from(vec![7; 64 << 10]);
        let stream = tokio_stream::iter(std::iter::repeat(chunk)).map(Ok);
        Box::pin(async move { Ok(Response::new(Box::pin(stream) as Answers<Bytes>)) })
    }
}

async fn client(channel: &Channel) -> Result<Grpc<Channel>, Status> {
    let mut client = Grpc::new(channel.clone());
    client
        .ready()
        .await
        .map_err(|error| Status::from_error(Box::new(error)))?;
    Ok(client)
}

/// Makes a unary call.
pub(crate) async fn call(channel: &Channel, method: &str) -> Result<String, Status> {
    let path = PathAndQuery::try_from(format!("/test.Echo/{method}")).expect("path");
    let codec = ProstCodec::<String, String>::default();
    client(channel)
        .await?
        .unary(Request::new(String::new()), path, codec)
        .await
        .map(Response::into_inner)
}

/// Uploads until the stream ends.
pub(crate) async fn take(
    channel: &Channel,
    bytes: impl Stream<Item = Bytes> + Send + 'static,
) -> Result<u64, Status> {
    let path = PathAndQuery::from_static("/test.Echo/Take");
    let codec = ProstCodec::<Bytes, u64>::default();
    client(channel)
        .await?
        .client_streaming(Request::new(bytes), path, codec)
        .await
        .map(Response::into_inner)
}

/// Downloads; the stream has no end.
pub(crate) async fn give(channel: &Channel) -> Result<Streaming<Bytes>, Status> {
    let path = PathAndQuery::from_static("/test.Echo/Give");
    let codec = ProstCodec::<String, Bytes>::default();
    client(channel)
        .await?
        .server_streaming(Request::new(String::new()), path, codec)
        .await
        .map(Response::into_inner)
}
