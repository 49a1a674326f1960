//! Callers that are admitted, callers that are not, and the errors that they get.

use std::sync::Arc;

use archive_rpc::{
    CallErrorKind, ConnectError, Credentials, ExpectedIdentity, Role, RpcLimits, Rules, ServeError,
    Server, Services, bind_address,
};
use bytes::Bytes;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::Code;
use tonic::service::Routes;
use tools_testing::in_time;

use crate::echo::{call, take};
use crate::environment::{DoorEnvironment, SERVING, TestServer, health, now, refused, years};

/// Fails if a caller whose role may call is refused, or the handler sees only some of its grants.
#[tokio::test]
async fn right_identity_is_admitted_and_known_to_handler() {
    let world = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let anna = world.credentials(&["officer/anna", "operator/anna"]);
    let channel = server.channel(&anna).await.expect("connected");
    assert_eq!(health(&channel).await.expect("healthy"), SERVING);
    // An officer is a reader.
    assert_eq!(
        call(&channel, "Who").await.expect("answered"),
        "officer/anna, operator/anna"
    );
    let harvester = server
        .channel(&world.credentials(&["harvester/h1"]))
        .await
        .expect("connected");
    let bytes = tokio_stream::iter(vec![Bytes::from(vec![1; 100_000]); 50]);
    assert_eq!(take(&harvester, bytes).await.expect("taken"), 5_000_000);
}

/// Fails if a handler runs before the role of its caller was judged, or the refusal does not name the roles that may
/// call.
#[tokio::test]
async fn wrong_role_is_refused_before_handler_with_roles() {
    let world = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let channel = server
        .channel(&world.credentials(&["custodian/carl"]))
        .await
        .expect("connected");
    let told = refused(call(&channel, "Who").await, Code::PermissionDenied);
    assert_eq!(
        told,
        "`who` is for reader, operator; this certificate is custodian/carl"
    );
    refused(call(&channel, "Wait").await, Code::PermissionDenied);
    assert_eq!(server.echo.begun.available_permits(), 0, "no handler ran");
    // Any valid certificate may ask for the health.
    assert_eq!(health(&channel).await.expect("healthy"), SERVING);
}

/// Fails if a caller with every role reaches a path without a rule, or a path with one under another spelling.
#[tokio::test]
async fn path_without_rule_is_denied_to_all() {
    let world = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let all: Vec<String> = Role::ALL.iter().map(|role| format!("{role}/x")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let channel = server
        .channel(&world.credentials(&all))
        .await
        .expect("connected");
    for path in ["Unknown", "who", "Who/", "Who/x", "%57ho"] {
        let told = refused(call(&channel, path).await, Code::PermissionDenied);
        assert!(told.contains("no rule"), "{path}: {told}");
    }
    // The text behind a question mark is no part of the path.
    call(&channel, "Who?x=/test.Echo/Wait")
        .await
        .expect("answered");
}

/// Fails if a caller that was refused learns so only when its upload has ended.
#[tokio::test]
async fn refused_upload_is_answered_while_still_sending() {
    let world = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let channel = server
        .channel(&world.credentials(&["reader/ben"]))
        .await
        .expect("connected");
    for _ in 0..20 {
        let endless = tokio_stream::iter(std::iter::repeat(Bytes::from(vec![1; 64 << 10])));
        let answer = in_time(take(&channel, endless)).await;
        refused(answer, Code::PermissionDenied);
    }
}

/// Fails if a client that shows no certificate gets past the handshake.
#[tokio::test]
async fn without_a_certificate_nobody_gets_in() {
    let world = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let mut roots = rustls::RootCertStore::empty();
    let authority =
        CertificateDer::from_pem_slice(world.authority.certificate().as_bytes()).expect("pem");
    roots.add(authority).expect("root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = TcpStream::connect(server.address).await.expect("tcp");
    let name = ServerName::try_from("127.0.0.1").expect("name");
    let mut tls = TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await
        .expect("the server shows its own");
    let error = in_time(tls.read_u8()).await.expect_err("refused");
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
}

/// Connects with these credentials and says how the server refused them.
async fn alert(server: &TestServer, credentials: &Credentials) -> String {
    match server.channel(credentials).await {
        Err(error @ ConnectError::Refused { .. }) => {
            assert_eq!(error.kind(), CallErrorKind::Refused);
            error.to_string()
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// Fails if a certificate that expired after its owner had loaded it is let in.
#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let world = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let old = world.issue(&["officer/anna"], years(2000, 2001));
    // The certificate was valid when it was loaded.
    let old = Credentials::from_pem(&world.pem(&old, None), years(2000, 2001).not_before)
        .expect("credentials");
    assert!(alert(&server, &old).await.contains("CertificateExpired"));
}

/// Fails if a revoked certificate is let in, or a revocation list shuts out the others as well.
#[tokio::test]
async fn only_the_revoked_certificate_is_refused() {
    let world = DoorEnvironment::new("lab");
    let anna = world.issue(&["officer/anna"], years(2000, 2200));
    let ben = world.credentials(&["reader/ben"]);
    let list = world
        .authority
        .revoke_serials(
            None,
            std::slice::from_ref(&anna.serial),
            years(2025, 2026).not_before,
            now(),
        )
        .expect("list");
    let issued = world.issue(&["repository/main"], years(2000, 2200));
    let server =
        Credentials::from_pem(&world.pem(&issued, Some(list)), now()).expect("credentials");
    let server = TestServer::start(server, RpcLimits::default()).await;
    let anna = Credentials::from_pem(&world.pem(&anna, None), now()).expect("credentials");
    assert!(alert(&server, &anna).await.contains("CertificateRevoked"));
    let channel = server.channel(&ben).await.expect("connected");
    assert_eq!(call(&channel, "Who").await.expect("answered"), "reader/ben");
}

/// Fails if client or server trusts a certificate of another authority because its environment has the same name.
#[tokio::test]
async fn certificate_of_foreign_authority_is_refused_both_ways() {
    // The other environment has the same name.
    let world = DoorEnvironment::new("lab");
    let impostor = DoorEnvironment::new("lab");
    let server = world.server(RpcLimits::default()).await;
    let foreign = impostor.credentials(&["officer/anna"]);
    match server.channel(&foreign).await {
        Err(error @ ConnectError::WrongServer { .. }) => {
            assert_eq!(error.kind(), CallErrorKind::Refused);
        }
        other => panic!("not refused: {other:?}"),
    }
    // The client trusts the server, and is not trusted.
    let issued = impostor.issue(&["officer/anna"], years(2000, 2200));
    let mut pem = impostor.pem(&issued, None);
    pem.authorities.push_str(world.authority.certificate());
    let foreign = Credentials::from_pem(&pem, now()).expect("credentials");
    let told = alert(&server, &foreign).await;
    assert!(
        told.contains("UnknownCA") || told.contains("DecryptError"),
        "{told}"
    );
}

/// Fails if a client that trusts the authorities of two environments takes a server of the other one for its own.
#[tokio::test]
async fn server_of_another_environment_is_refused_despite_trust() {
    // Both trust both authorities, as when a bundle is reused.
    let lab = DoorEnvironment::new("lab");
    let field = DoorEnvironment::new("field");
    let both = format!(
        "{}{}",
        lab.authority.certificate(),
        field.authority.certificate()
    );
    let credentials = |world: &DoorEnvironment, grant: &str| {
        let mut pem = world.pem(&world.issue(&[grant], years(2000, 2200)), None);
        pem.authorities.clone_from(&both);
        Credentials::from_pem(&pem, now()).expect("credentials")
    };
    let server =
        TestServer::start(credentials(&lab, "repository/main"), RpcLimits::default()).await;
    match server.channel(&credentials(&field, "officer/anna")).await {
        Err(ConnectError::WrongServer { reason, .. }) => {
            assert_eq!(reason, "it is of environment \"lab\", not \"field\"");
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// Fails if a client talks to a server of another role or name than the one that it expects.
#[tokio::test]
async fn only_the_server_one_meant_will_do() {
    let world = DoorEnvironment::new("lab");
    let server = TestServer::start(world.credentials(&["node/kb-3"]), RpcLimits::default()).await;
    let anna = world.credentials(&["officer/anna"]);
    let named = |text: &str| ExpectedIdentity::named_grant(&text.parse().expect("grant"));
    for right in [
        ExpectedIdentity::any_of_role(Role::Node),
        named("node/kb-3"),
    ] {
        let channel = server.channel_to(&anna, &right).await.expect("connected");
        assert_eq!(health(&channel).await.expect("healthy"), SERVING);
    }
    for wrong in [
        ExpectedIdentity::any_of_role(Role::Repository),
        named("node/kb-4"),
        named("repository/kb-3"),
    ] {
        match server.channel_to(&anna, &wrong).await {
            Err(error @ ConnectError::WrongServer { .. }) => {
                assert!(
                    error
                        .to_string()
                        .contains(&format!("it is node/kb-3, not {wrong}")),
                    "{error}"
                );
            }
            other => panic!("{wrong}: {other:?}"),
        }
    }
}

/// Fails if a server starts although no rule says who may call one of its RPCs.
#[tokio::test]
async fn server_with_rpc_lacking_rule_does_not_start() {
    let world = DoorEnvironment::new("lab");
    let (listener, _) = bind_address("127.0.0.1:0").await.expect("bind");
    // The package google.protobuf.compiler has no service; a hand-made descriptor set has one.
    let method = prost_types::MethodDescriptorProto {
        name: Some("Burn".into()),
        ..Default::default()
    };
    let service = prost_types::ServiceDescriptorProto {
        name: Some("Fire".into()),
        method: vec![method],
        ..Default::default()
    };
    let file = prost_types::FileDescriptorProto {
        name: Some("fire.proto".into()),
        package: Some("test".into()),
        service: vec![service],
        ..Default::default()
    };
    let set = prost::Message::encode_to_vec(&prost_types::FileDescriptorSet { file: vec![file] });
    let services = Services {
        routes: Routes::default(),
        rules: Rules::new(),
        descriptors: vec![set.leak()],
    };
    let server = Server::new(services, world.credentials(&["node/a"]));
    let serving = server.serve_connections(listener, std::future::pending());
    match in_time(Box::pin(serving)).await {
        Err(error @ ServeError::NoRule(_)) => {
            assert_eq!(
                error.to_string(),
                "no rule says who may call /test.Fire/Burn"
            );
        }
        other => panic!("started: {other:?}"),
    }
}
