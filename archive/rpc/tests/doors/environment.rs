//! An environment with its authority and servers, and helpers for calls.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use archive_rpc::{
    CallErrorKind, CertificateAuthority, CredentialPem, Credentials, DrainOutcome,
    ExpectedIdentity, Grant, IssuedCertificate, Role, RpcLimits, Rules, Server, Services, Validity,
    bind_address, connect_channel,
};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tools_testing::in_time;

use crate::echo::Echo;

pub(crate) fn at(year: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs((year - 1970) * 31_556_952)
}

/// The time at which the tests' certificates are taken up.
pub(crate) fn now() -> SystemTime {
    at(2026)
}

pub(crate) fn years(from: u64, to: u64) -> Validity {
    Validity {
        not_before: at(from),
        not_after: at(to),
    }
}

pub(crate) struct DoorEnvironment {
    pub(crate) authority: CertificateAuthority,
}

impl DoorEnvironment {
    pub(crate) fn new(environment: &str) -> Self {
        Self {
            authority: CertificateAuthority::create_authority(environment, years(2000, 2200))
                .expect("authority"),
        }
    }

    pub(crate) fn issue(&self, grants: &[&str], validity: Validity) -> IssuedCertificate {
        let grants: Vec<Grant> = grants
            .iter()
            .map(|text| text.parse().expect("grant"))
            .collect();
        self.authority
            .issue_certificate(&grants, &["127.0.0.1"], validity)
            .expect("issue")
    }

    /// The text of credentials: `issued`, trusting this world's authority.
    pub(crate) fn pem(&self, issued: &IssuedCertificate, revoked: Option<String>) -> CredentialPem {
        CredentialPem {
            certificate: issued.certificate.clone(),
            key: issued.key.clone(),
            authorities: self.authority.certificate().to_owned(),
            revoked,
        }
    }

    pub(crate) fn credentials(&self, grants: &[&str]) -> Credentials {
        let issued = self.issue(grants, years(2000, 2200));
        Credentials::from_pem(&self.pem(&issued, None), now()).expect("credentials")
    }

    pub(crate) async fn server(&self, limits: RpcLimits) -> TestServer {
        TestServer::start(self.credentials(&["repository/main"]), limits).await
    }
}

/// Returns the rules of the servers of these tests.
pub(crate) fn rules() -> Rules {
    Rules::new()
        .allow_call("/test.Echo/Who", &[Role::Reader, Role::Operator])
        .allow_call("/test.Echo/Wait", &[Role::Reader])
        .allow_call("/test.Echo/Take", &[Role::Harvester])
        .allow_call("/test.Echo/Give", &[Role::Reader])
}

/// A server on a port of its own.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) echo: Echo,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinSet<DrainOutcome>,
}

impl TestServer {
    pub(crate) async fn start(credentials: Credentials, limits: RpcLimits) -> Self {
        let (listener, _) = bind_address("127.0.0.1:0").await.expect("bind");
        Self::on(listener, credentials, limits)
    }

    pub(crate) fn on(listener: TcpListener, credentials: Credentials, limits: RpcLimits) -> Self {
        let address = listener.local_addr().expect("address");
        let echo = Echo::default();
        let services = Services {
            routes: Routes::new(echo.clone()),
            rules: rules(),
            descriptors: vec![tonic_health::pb::FILE_DESCRIPTOR_SET],
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let mut ended = JoinSet::new();
        ended.spawn(async move {
            let shutdown = async { drop(stopped.await) };
            Server::new(services, credentials)
                .within_limits(limits)
                .serve_connections(listener, shutdown)
                .await
                .expect("serve")
        });
        Self {
            address,
            echo,
            stop: Some(stop),
            ended,
        }
    }

    /// Asks the server to stop; it drains.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) async fn ended(&mut self) -> DrainOutcome {
        let ended = in_time(self.ended.join_next()).await;
        ended.expect("a server").expect("no panic")
    }

    /// Returns a channel to this server, or the reason why there cannot be one.
    pub(crate) async fn channel(
        &self,
        credentials: &Credentials,
    ) -> Result<Channel, archive_rpc::ConnectError> {
        self.channel_to(
            credentials,
            &ExpectedIdentity::any_of_role(Role::Repository),
        )
        .await
    }

    pub(crate) async fn channel_to(
        &self,
        credentials: &Credentials,
        expected: &ExpectedIdentity,
    ) -> Result<Channel, archive_rpc::ConnectError> {
        let address = self.address.to_string();
        let limits = RpcLimits::default();
        in_time(connect_channel(&address, credentials, expected, &limits)).await
    }
}

/// Makes a health check on a channel.
pub(crate) async fn health(channel: &Channel) -> Result<i32, Status> {
    let mut client = HealthClient::new(channel.clone());
    let check = client.check(HealthCheckRequest {
        service: String::new(),
    });
    let answer = in_time(check).await;
    answer.map(|response| response.into_inner().status)
}

pub(crate) const SERVING: i32 = 1;

/// The refusal of a call, with its kind and code looked at.
pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>, code: tonic::Code) -> String {
    let status = outcome.expect_err("refused");
    assert_eq!(
        (status.code(), CallErrorKind::from_status(&status)),
        (code, CallErrorKind::Refused),
        "{status:?}"
    );
    status.message().to_owned()
}
