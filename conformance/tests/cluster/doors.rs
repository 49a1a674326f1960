//! Every door of a running archive, and who gets through it.

use std::sync::Arc;
use std::time::Duration;

use archive_client::{Access, ClientError, ErrorClass, Ingest, Selection, StoreEvent};
use archive_rpc::testing::TestAuthority;
use archive_rpc::{
    ConnectError, CredentialPem, Credentials, ExpectedIdentity, Role, RpcLimits, connect_channel,
    rpc_paths,
};
use proto_archive::DESCRIPTORS;
use proto_archive::wire::access_client::AccessClient;
use proto_archive::wire::{GetRequest, ListRequest, StatusRequest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::captures::{INDEX, start_index};
use super::roles;
use super::visits::{deposit, name, noise};
use super::world::{CHECKSUMS, Cluster, MONITORS, NODES, REPOSITORY, on_a_cluster};

const SOON: Duration = Duration::from_secs(20);

/// Every part that serves calls, with the role in which it serves them. A checksum replica is its own monitor.
const SERVERS: [(&str, Role); 6] = [
    (REPOSITORY, Role::Repository),
    (MONITORS[0], Role::Monitor),
    (NODES[0], Role::Node),
    (CHECKSUMS, Role::Monitor),
    (CHECKSUMS, Role::Node),
    (INDEX, Role::Index),
];

/// Returns the role of the parts that serve a path.
fn server(path: &str) -> Role {
    if path.contains(".Node/") {
        Role::Node
    } else if path.contains(".Replica/") {
        Role::Monitor
    } else if path.starts_with("/holdfast.index.") {
        Role::Index
    } else {
        Role::Repository
    }
}

/// Returns a name in that role which the parts of the cluster know.
fn grant(role: Role) -> String {
    let name = match role {
        Role::Node => "one-1",
        Role::Monitor => "one",
        Role::Repository => "kb",
        _ => "x",
    };
    format!("{role}/{name}")
}

/// Calls any RPC with one empty message, and says how that ended: before an answer, or with the first one.
async fn call(channel: Channel, path: &str) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::new(channel);
    let ready = client.ready().await;
    ready.map_err(|error| Status::from_error(error.into()))?;
    let one = Request::new(tokio_stream::iter([()]));
    let path = PathAndQuery::try_from(path).unwrap();
    let codec = ProstCodec::<(), ()>::default();
    let mut answers = client.streaming(one, path, codec).await?.into_inner();
    answers.message().await.map(|_answer| ())
}

/// Fails if a call was added without a rule, lets in a role that the rules do not name, or turns away one that they do.
#[test]
fn every_call_admits_only_roles_in_the_rules() {
    on_a_cluster(async |cluster: &mut Cluster| {
        start_index(cluster).await;
        let mut paths = rpc_paths(DESCRIPTORS).unwrap();
        paths.append(&mut rpc_paths(proto_index::DESCRIPTORS).unwrap());
        let mut written: Vec<String> = roles::paths().collect();
        written.sort();
        let mut known = paths.clone();
        known.sort();
        assert_eq!(known, written, "what is served, and what is written down");
        let mut wrong = Vec::new();
        for role in Role::ALL {
            let credentials = cluster.credentials(&grant(role));
            for (part, kind) in SERVERS {
                let address = cluster.address(part);
                let expected = ExpectedIdentity::any_of_role(kind);
                let channel =
                    connect_channel(&address, &credentials, &expected, &RpcLimits::default()).await;
                let channel = channel.unwrap();
                for path in paths.iter().filter(|path| server(path) == kind) {
                    let may = roles::may(role, path).unwrap_or(false);
                    let ended = timeout(SOON, call(channel.clone(), path)).await;
                    let ended =
                        ended.unwrap_or_else(|_| panic!("{role} at {path} of {part}: no answer"));
                    let code = ended.err().map_or(Code::Ok, |status| status.code());
                    if (code == Code::PermissionDenied) == may || code == Code::Unimplemented {
                        wrong.push(format!("{role} at {path} of {part}: {code:?}"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}

/// Fails if a harvester can read, list, or ask about the file of another harvester, or if a reader, an operator or a
/// node can store.
#[test]
fn a_harvester_puts_in_and_takes_nothing_out() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(1000, 1);
        let ignore = |_: StoreEvent<'_>| {};
        let deposit = deposit(&name, &bytes);
        cluster.depositor().store(&deposit, &ignore).await.unwrap();

        let mut harvester = AccessClient::new(cluster.channel("harvester/h-1"));
        let denied = |status: Status| assert_eq!(status.code(), Code::PermissionDenied, "{status}");
        let request = GetRequest {
            name: name.as_str().to_owned(),
            ..GetRequest::default()
        };
        denied(harvester.get(request).await.unwrap_err());
        denied(harvester.list(ListRequest::default()).await.unwrap_err());
        denied(
            harvester
                .status(StatusRequest::default())
                .await
                .unwrap_err(),
        );
        let another = cluster.depositor_as("harvester/h-2");
        let error = another.stat(&name).await.unwrap_err();
        assert!(matches!(error, ClientError::NotFound(_)), "{error}");

        for grant in ["node/one-1", "reader/anna", "operator/anna", "monitor/one"] {
            let error = cluster.depositor_as(grant).store(&deposit, &ignore).await;
            assert_eq!(error.unwrap_err().class(), ErrorClass::Refused, "{grant}");
        }
        let reader = cluster.reader();
        assert!(reader.list(&Selection::default()).await.is_ok());
    });
}

/// Fails if a part lets in a caller without a certificate, or believes another authority that merely calls its
/// environment the same.
#[test]
fn caller_without_certificate_of_environment_is_refused() {
    on_a_cluster(async |cluster: &mut Cluster| {
        start_index(cluster).await;
        // Another authority that calls its environment the same.
        let foreign = TestAuthority::new().pem(&["officer/anna"]);
        // The caller trusts both authorities, so that only the server can find fault.
        let both = CredentialPem {
            authorities: format!(
                "{}{}",
                foreign.authorities,
                cluster.authority().certificate()
            ),
            ..foreign
        };
        let credentials = Credentials::from_pem(&both, cluster.now().into()).unwrap();
        for (part, role) in SERVERS {
            let address = cluster.address(part);
            let expected = ExpectedIdentity::any_of_role(role);
            let error =
                connect_channel(&address, &credentials, &expected, &RpcLimits::default()).await;
            let error = error.unwrap_err();
            assert!(
                matches!(error, ConnectError::Refused { .. }),
                "{part}: {error}"
            );
            let said = without_a_certificate(cluster, &address).await;
            assert!(said.contains("CertificateRequired"), "{part}: {said}");
        }
    });
}

/// Returns the answer of a server to a client that shows no certificate.
async fn without_a_certificate(cluster: &Cluster, address: &str) -> String {
    let mut roots = rustls::RootCertStore::empty();
    let authority = cluster.authority().certificate();
    roots
        .add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut tls = connector.connect(name, tcp).await.unwrap();
    let answer = timeout(SOON, tls.read_u8()).await.unwrap();
    answer.unwrap_err().to_string()
}
