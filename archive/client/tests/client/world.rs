//! An environment with a server and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;

use archive_client::{ArchiveReader, ClientLimits, Depositor, Keeper};
use archive_proof::testing::trust_in;
use archive_proof::{SigningKey, TrustFile};
use archive_rpc::testing::TestAuthority;
use archive_rpc::{
    Credentials, ExpectedIdentity, Role, RpcLimits, Server, Services, bind_address, connect_lazy,
};
use proto_archive::wire::access_server::AccessServer;
use proto_archive::wire::ingest_server::IngestServer;
use proto_archive::wire::preservation_server::PreservationServer;
use proto_archive::{DESCRIPTORS, rules};
use tokio::task::JoinSet;
use tonic::service::Routes;
use tonic::transport::Channel;

use crate::archive::Archive;

/// Quick, and long enough for a machine that is busy.
pub fn limits() -> ClientLimits {
    ClientLimits {
        answer_seconds: 20,
        stall_seconds: 20,
        verify_seconds: 20,
        attempts: 4,
        first_pause_ms: 10,
        longest_pause_ms: 50,
        ..ClientLimits::default()
    }
}

/// The key that is trusted, and others.
pub fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed([seed; 32])
}

pub struct ServedArchive {
    pub authority: TestAuthority,
    pub archive: Archive,
    pub address: SocketAddr,
    running: JoinSet<()>,
}

impl ServedArchive {
    pub async fn new() -> Self {
        let mut world = Self {
            authority: TestAuthority::new(),
            archive: Archive::default(),
            address: ([127, 0, 0, 1], 0).into(),
            running: JoinSet::new(),
        };
        world.start("repository/main").await;
        world
    }

    /// Starts the server, on the port it had before if it had one.
    pub async fn start(&mut self, grant: &str) {
        let (listener, address) = bind_address(&self.address.to_string()).await.expect("bind");
        self.address = address;
        let routes = Routes::new(IngestServer::new(self.archive.clone()))
            .add_service(AccessServer::new(self.archive.clone()))
            .add_service(PreservationServer::new(self.archive.clone()));
        let services = Services {
            routes,
            rules: rules::archive_rules(),
            descriptors: vec![DESCRIPTORS],
        };
        let credentials = self.credentials(grant);
        self.running.spawn(async move {
            let for_ever = std::future::pending();
            let server = Server::new(services, credentials);
            let ended = server.serve_connections(listener, for_ever).await;
            ended.expect("serve");
        });
    }

    /// Kills the server: every connection is cut.
    pub async fn kill(&mut self) {
        self.running.shutdown().await;
    }

    pub fn credentials(&self, grant: &str) -> Credentials {
        self.authority.credentials(&[grant])
    }

    pub fn channel(&self, grant: &str) -> Channel {
        connect_lazy(
            &self.address.to_string(),
            &self.credentials(grant),
            &ExpectedIdentity::any_of_role(Role::Repository),
            &RpcLimits::default(),
        )
        .expect("an address")
    }

    pub fn depositor(&self) -> Depositor {
        Depositor::new(self.channel("harvester/h-1"), trust(), limits())
    }

    pub fn keeper(&self, grant: &str) -> Keeper {
        Keeper::new(self.channel(grant), limits())
    }

    pub fn reader(&self) -> ArchiveReader {
        ArchiveReader::new(self.channel("reader/anna"), trust(), limits())
    }
}

pub fn trust() -> Arc<TrustFile> {
    Arc::new(trust_in(&key(1)))
}
