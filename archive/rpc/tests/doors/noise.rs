//! Clients that send nothing, or the wrong thing, or too much.

use std::time::Duration;

use archive_rpc::{
    CallErrorKind, ConnectError, ExpectedIdentity, Role, RpcLimits, connect_channel, connect_lazy,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tools_testing::in_time;

use crate::echo::{call, give};
use crate::environment::{DoorEnvironment, SERVING, TestServer, health};

fn quick() -> RpcLimits {
    RpcLimits {
        handshake: Duration::from_millis(200),
        ..RpcLimits::default()
    }
}

/// Fails if connections without a handshake take all places for handshakes, so that no other caller gets in.
#[tokio::test]
async fn idle_handshakes_block_no_other_caller() {
    let world = DoorEnvironment::new("lab");
    let server = world
        .server(RpcLimits {
            handshakes: 4,
            handshake: Duration::from_hours(1),
            ..RpcLimits::default()
        })
        .await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(server.address).await.expect("tcp"));
    }
    let channel = server
        .channel(&world.credentials(&["reader/ben"]))
        .await
        .expect("connected");
    assert_eq!(health(&channel).await.expect("healthy"), SERVING);
    // The oldest connection had to make room, long before the hour of a handshake.
    let closed = in_time(silent[0].read(&mut [0; 1])).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
}

/// Fails if a connection that never begins its handshake stays open.
#[tokio::test]
async fn a_handshake_has_a_limit() {
    let world = DoorEnvironment::new("lab");
    let server = world.server(quick()).await;
    let mut silent = TcpStream::connect(server.address).await.expect("tcp");
    let closed = in_time(silent.read(&mut [0; 1])).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
}

/// Fails if bytes that are no TLS end the server, or keep it from answering others.
#[tokio::test]
async fn garbage_harms_nobody() {
    let world = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let huge_record = [&[0x16, 3, 1, 0xff, 0xff][..], &vec![0; 70_000]].concat();
    let half_hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    for noise in [
        &http2[..],
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 300],
        &[0xff; 300],
        &huge_record,
        &half_hello,
        b"\n",
    ] {
        let mut client = TcpStream::connect(server.address).await.expect("tcp");
        // The server may close before it has read everything.
        let sent = client.write_all(noise).await;
        drop((sent, client));
    }
    let channel = server
        .channel(&world.credentials(&["reader/ben"]))
        .await
        .expect("connected");
    assert_eq!(call(&channel, "Who").await.expect("answered"), "reader/ben");
}

/// Fails if more connections are open than the limit allows, or a closed one keeps its place.
#[tokio::test]
async fn excess_connections_are_refused_until_one_closes() {
    let world = DoorEnvironment::new("lab");
    let server = world
        .server(RpcLimits {
            connections: 2,
            ..RpcLimits::default()
        })
        .await;
    let ben = world.credentials(&["reader/ben"]);
    let first = server.channel(&ben).await.expect("connected");
    let second = server.channel(&ben).await.expect("connected");
    match server.channel(&ben).await {
        Err(error @ ConnectError::Broken { .. }) => {
            assert_eq!(error.kind(), CallErrorKind::Unavailable);
        }
        other => panic!("let in: {other:?}"),
    }
    drop(first);
    let again = async {
        loop {
            if let Ok(channel) = server.channel(&ben).await {
                return channel;
            }
        }
    };
    let third = in_time(again).await;
    for channel in [second, third] {
        assert_eq!(health(&channel).await.expect("healthy"), SERVING);
    }
}

/// Fails if a silent server, one without TLS, an absent one and an invalid address cannot be told apart by the error.
#[tokio::test]
async fn client_error_says_what_the_peer_lacks() {
    let world = DoorEnvironment::new("lab");
    let ben = world.credentials(&["reader/ben"]);
    let expected = ExpectedIdentity::any_of_role(Role::Repository);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address").to_string();
    // The listener never answers.
    let error = connect_channel(&address, &ben, &expected, &quick())
        .await
        .expect_err("no answer");
    assert_eq!(
        error,
        ConnectError::TimedOut {
            address: address.clone(),
            limit: quick().handshake
        }
    );
    assert_eq!(error.kind(), CallErrorKind::TimedOut);
    // The server answers, but not with TLS.
    let mut impostor = JoinSet::new();
    impostor.spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.expect("accepted");
            client
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .await
                .expect("written");
        }
    });
    let error = connect_channel(&address, &ben, &expected, &RpcLimits::default())
        .await
        .expect_err("not TLS");
    assert!(matches!(error, ConnectError::Broken { .. }), "{error}");
    // No server listens at the address.
    impostor.shutdown().await;
    let error = connect_channel(&address, &ben, &expected, &RpcLimits::default())
        .await
        .expect_err("nobody");
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    for bad in [
        "",
        "localhost",
        "localhost:",
        ":4000",
        "localhost:0",
        "localhost:70000",
        "http://localhost:1",
        "a/b:1",
    ] {
        let error = connect_channel(bad, &ben, &expected, &RpcLimits::default())
            .await
            .expect_err(bad);
        assert_eq!(error, ConnectError::Address(bad.to_owned()));
    }
    for bad in [
        "::1:4000",
        "user@host:1",
        "localhost:+1",
        "ho st:1",
        "https://a:1/x",
    ] {
        let error = connect_lazy(bad, &ben, &expected, &RpcLimits::default());
        assert!(error.is_err(), "{bad}");
    }
}

/// Fails if a channel whose server was not there at first, or went away, never connects again.
#[tokio::test]
async fn lazy_channel_waits_for_server_and_reconnects() {
    let world = DoorEnvironment::new("lab");
    let ben = world.credentials(&["reader/ben"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address");
    drop(listener);
    let expected = ExpectedIdentity::any_of_role(Role::Repository);
    let text = format!("https://{address}/");
    let channel = connect_lazy(&text, &ben, &expected, &RpcLimits::default()).expect("address");
    let error = call(&channel, "Who").await.expect_err("nobody there yet");
    assert_eq!(
        CallErrorKind::from_status(&error),
        CallErrorKind::Unavailable,
        "{error:?}"
    );
    assert!(error.message().contains(&address.to_string()), "{error}");
    for _ in 0..2 {
        let listener = TcpListener::bind(address).await.expect("bind");
        let mut server = TestServer::on(
            listener,
            world.credentials(&["repository/main"]),
            RpcLimits::default(),
        );
        let answered = async {
            loop {
                if let Ok(answer) = call(&channel, "Who").await {
                    return answer;
                }
            }
        };
        assert_eq!(in_time(answered).await, "reader/ben");
        server.stop();
        server.ended().await;
    }
}

/// Starts a server, and connects a reader to it whose streams are independent of each other.
async fn independent_streams() -> (TestServer, Channel) {
    let world = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let anna = world.credentials(&["reader/anna"]);
    let limits = RpcLimits::default().with_independent_streams();
    let expected = ExpectedIdentity::any_of_role(Role::Repository);
    let address = server.address.to_string();
    let channel = connect_channel(&address, &anna, &expected, &limits).await;
    (server, channel.expect("connected"))
}

/// Fails if streams that nobody reads fill the window of their connection, so that no other call on it is answered.
#[tokio::test]
async fn unread_streams_delay_no_other_call() {
    let (_server, channel) = independent_streams().await;
    let mut unread = Vec::new();
    for _ in 0..5 {
        unread.push(give(&channel).await.expect("given"));
    }
    // The calls last until everything was sent that may be sent unread.
    for _ in 0..500 {
        let who = in_time(call(&channel, "Who")).await;
        assert_eq!(who.expect("answered"), "reader/anna");
    }
}

/// Fails if one caller can take all places of a server, or keeps a place that it has given back.
#[tokio::test]
async fn caller_with_too_many_calls_is_refused() {
    let world = DoorEnvironment::new("lab");
    let limits = RpcLimits {
        calls_per_caller: 2,
        ..RpcLimits::default()
    };
    let server = world.server(limits).await;
    let anna = world.credentials(&["reader/anna"]);
    let ben = world.credentials(&["reader/ben"]);
    // The calls go over two connections: only the caller counts.
    let mut channels = Vec::new();
    for _ in 0..2 {
        channels.push(server.channel(&anna).await.expect("connected"));
    }
    let mut streams = Vec::new();
    for channel in &channels {
        streams.push(give(channel).await.expect("given"));
    }
    let refused = call(&channels[0], "Who").await.expect_err("refused");
    assert_eq!(
        CallErrorKind::from_status(&refused),
        CallErrorKind::Unavailable,
        "{refused:?}"
    );
    assert!(
        refused.message().contains("`rpc.calls_per_caller`"),
        "{refused}"
    );
    let bens = server.channel(&ben).await.expect("connected");
    assert_eq!(call(&bens, "Who").await.expect("answered"), "reader/ben");
    drop(streams.pop());
    let again = async {
        while call(&channels[0], "Who").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    in_time(again).await;
}

/// Fails if a peer takes many calls that are given up at once for an attack, and closes the connection under all
/// others.
#[tokio::test]
async fn calls_given_up_together_harm_no_other() {
    let world = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let anna = world.credentials(&["reader/anna"]);
    let channel = server.channel(&anna).await.expect("connected");
    // Calls are cancelled at any moment: before they are sent, on their way, or when they are answered.
    for moment in 0..60 {
        let mut calls = JoinSet::new();
        for _ in 0..100 {
            let channel = channel.clone();
            calls.spawn(async move { call(&channel, "Who").await });
        }
        for _ in 0..moment {
            tokio::task::yield_now().await;
        }
        drop(calls);
        let who = in_time(call(&channel, "Who")).await;
        assert_eq!(who.expect("answered"), "reader/anna", "{moment}");
    }
}

/// Fails if a caller that lets many streams go at once takes what still comes of them for an attack, and closes the
/// connection under all other calls.
#[tokio::test]
async fn streams_given_up_together_harm_no_other() {
    let (_server, channel) = independent_streams().await;
    // The calls are more in all than a caller remembers as cancelled, or forgives as mistakes, by default.
    for round in 0..12 {
        let mut streams = Vec::new();
        for _ in 0..100 {
            streams.push(give(&channel).await.expect("given"));
        }
        let mut readers = JoinSet::new();
        for mut stream in streams {
            readers.spawn(async move { while let Ok(Some(_)) = stream.message().await {} });
        }
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        // Bytes of all streams are on their way.
        drop(readers);
        let who = in_time(call(&channel, "Who")).await;
        assert_eq!(who.expect("answered"), "reader/anna", "{round}");
    }
}
