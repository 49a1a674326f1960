//! A node's service over real TLS, until it is killed.

use std::net::SocketAddr;

use archive_daemon::Tasks;
use archive_rpc::{ServeError, Server, Services, bind_address};
use proto_archive::wire::node_server::{Node, NodeServer};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use tools_testing::PATIENCE;

use crate::world::MonitorEnvironment;

pub(crate) struct FakeNodeServer {
    pub(crate) address: SocketAddr,
    kill: CancellationToken,
    tasks: Tasks,
}

impl FakeNodeServer {
    pub(crate) async fn start(world: &MonitorEnvironment, id: &str, service: impl Node) -> Self {
        let services = Services {
            routes: Routes::new(NodeServer::new(service)),
            rules: proto_archive::rules::archive_rules(),
            descriptors: vec![proto_archive::DESCRIPTORS],
        };
        let (listener, address) = bind_address("127.0.0.1:0").await.expect("bound");
        let credentials = world.credentials(&format!("node/{id}"));
        let kill = CancellationToken::new();
        let tasks = Tasks::new();
        let killed = kill.clone().cancelled_owned();
        let server = Server::new(services, credentials);
        tasks.spawn_once("node", async move {
            tokio::select! {
                ended = server.serve_connections(listener, std::future::pending()) => ended.map(drop),
                () = killed => Ok::<(), ServeError>(()),
            }
        });
        Self {
            address,
            kill,
            tasks,
        }
    }

    /// Stops the part as if its power had gone.
    pub(crate) async fn kill(&self) {
        self.kill.cancel();
        self.tasks.stop_all();
        self.tasks.join_tasks(PATIENCE).await.expect("killed");
    }
}
