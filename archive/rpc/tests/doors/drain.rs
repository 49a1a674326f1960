//! The end of a server: graceful, and with an end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use archive_rpc::{CallErrorKind, DrainOutcome, RpcLimits};
use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tools_testing::in_time;

use crate::echo::{call, take};
use crate::environment::{DoorEnvironment, SERVING};

/// Fails if a drain cuts a call or an upload that is under way, or lets in new connections.
#[tokio::test]
async fn drain_finishes_calls_and_refuses_new_connections() {
    let world = DoorEnvironment::new("lab");
    let mut server = world.server(RpcLimits::default()).await;
    let ben = world.credentials(&["reader/ben", "harvester/ben"]);
    let channel = server.channel(&ben).await.expect("connected");
    let (chunks, upload) = mpsc::channel::<Bytes>(1);
    let mut calls = JoinSet::new();
    let uploading = channel.clone();
    let waiting = channel.clone();
    calls.spawn(async move {
        take(&uploading, ReceiverStream::new(upload))
            .await
            .map(|bytes| bytes.to_string())
    });
    calls.spawn(async move { call(&waiting, "Wait").await });
    server
        .echo
        .begun
        .acquire_many(2)
        .await
        .expect("both have begun")
        .forget();

    server.stop();
    // The port is closed before the calls are over.
    let closed = async { while TcpStream::connect(server.address).await.is_ok() {} };
    in_time(closed).await;
    assert!(calls.try_join_next().is_none(), "both still run");
    for _ in 0..5 {
        chunks
            .send(Bytes::from(vec![0; 1 << 20]))
            .await
            .expect("still taken");
    }
    drop(chunks);
    server.echo.open.add_permits(1);
    let mut answers = Vec::new();
    while let Some(answer) = calls.join_next().await {
        answers.push(answer.expect("no panic").expect("answered"));
    }
    answers.sort();
    assert_eq!(answers, ["5242880", "harvester/ben, reader/ben"]);
    assert_eq!(server.ended().await, DrainOutcome::Finished);
}

/// Fails if a call that does not end holds up a drain beyond its limit, or its handler lives on after the cut.
#[tokio::test]
async fn calls_that_do_not_end_are_cut() {
    let world = DoorEnvironment::new("lab");
    let mut server = world
        .server(RpcLimits {
            drain: Duration::from_millis(50),
            ..RpcLimits::default()
        })
        .await;
    let channel = server
        .channel(&world.credentials(&["reader/ben"]))
        .await
        .expect("connected");
    let mut calls = JoinSet::new();
    calls.spawn(async move { call(&channel, "Wait").await });
    server.echo.begun.acquire().await.expect("begun").forget();
    server.stop();
    assert_eq!(server.ended().await, DrainOutcome::Cut);
    let answer = in_time(calls.join_next())
        .await
        .expect("a call")
        .expect("no panic");
    let status = answer.expect_err("cut");
    assert_eq!(
        CallErrorKind::from_status(&status),
        CallErrorKind::Unavailable,
        "{status:?}"
    );
    let dropped = async {
        while server.echo.dropped.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    in_time(dropped).await;
}

/// Fails if a watcher of the health is not told that the server stops, or holds up its drain.
#[tokio::test]
async fn health_watcher_is_notified_without_delaying_drain() {
    let world = DoorEnvironment::new("lab");
    let mut server = world.server(RpcLimits::default()).await;
    let channel = server
        .channel(&world.credentials(&["viewer/web"]))
        .await
        .expect("connected");
    let request = HealthCheckRequest {
        service: "grpc.health.v1.Health".to_owned(),
    };
    let mut watch = HealthClient::new(channel)
        .watch(request)
        .await
        .expect("watched")
        .into_inner();
    assert_eq!(
        watch.next().await.expect("a status").expect("good").status,
        SERVING
    );
    server.stop();
    let not_serving = in_time(watch.next())
        .await
        .expect("a status")
        .expect("good");
    assert_eq!(not_serving.status, 2);
    assert!(in_time(watch.next()).await.is_none());
    assert_eq!(server.ended().await, DrainOutcome::Finished);
}

/// Fails if a server that is dropped keeps its port open, or leaves its calls without an answer.
#[tokio::test]
async fn a_server_that_is_dropped_leaves_nothing_behind() {
    let world = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let channel = server
        .channel(&world.credentials(&["reader/ben"]))
        .await
        .expect("connected");
    let mut calls = JoinSet::new();
    calls.spawn(async move { call(&channel, "Wait").await });
    server.echo.begun.acquire().await.expect("begun").forget();
    let address = server.address;
    drop(server);
    let answer = in_time(calls.join_next())
        .await
        .expect("a call")
        .expect("no panic");
    assert_eq!(
        CallErrorKind::from_status(&answer.expect_err("cut")),
        CallErrorKind::Unavailable
    );
    let closed = async { while TcpStream::connect(address).await.is_ok() {} };
    in_time(closed).await;
}
