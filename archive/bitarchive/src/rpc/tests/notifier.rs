//! The reports of a node to its monitor, and their order.

use std::pin::pin;

use archive_model::Mode;
use archive_rpc::testing::TestAuthority;
use archive_rpc::{RpcLimits, Server, bind_address};
use parking_lot::Mutex;
use proto_archive::wire::replica_server::{Replica, ReplicaServer};
use tokio::sync::Semaphore;

use super::*;

/// Makes the notifier of a node whose monitor is away.
pub(super) fn unheard(node: &Arc<Node>, clock: &Clock) -> Notifier {
    notifier(&TestAuthority::new(), node, "127.0.0.1:1", clock)
}

fn notifier(authority: &TestAuthority, node: &Arc<Node>, monitor: &str, clock: &Clock) -> Notifier {
    let credentials = authority.credentials(&["node/n1"]);
    let limits = RpcLimits::default();
    let monitor = monitor_channel(&node.replica, monitor, &credentials, &limits).unwrap();
    Notifier::new(node, "127.0.0.1:2".to_owned(), monitor, clock)
}

/// A monitor that answers when the test lets it.
#[derive(Clone, Default)]
struct PlayedMonitor(Arc<HeardReport>);

struct HeardReport {
    modes: Mutex<Vec<wire::Mode>>,
    arrived: Semaphore,
    answers: Semaphore,
}

impl Default for HeardReport {
    fn default() -> Self {
        Self {
            modes: Mutex::default(),
            arrived: Semaphore::new(0),
            answers: Semaphore::new(0),
        }
    }
}

#[tonic::async_trait]
impl Replica for PlayedMonitor {
    async fn heartbeat(
        &self,
        request: Request<wire::HeartbeatRequest>,
    ) -> Result<Response<wire::HeartbeatResponse>, Status> {
        self.0.arrived.add_permits(1);
        self.0.answers.acquire().await.unwrap().forget();
        let status = request.into_inner().status.unwrap();
        self.0.modes.lock().push(status.mode());
        Ok(Response::new(wire::HeartbeatResponse { interval_ms: 1000 }))
    }
}

/// Fails if two heartbeats are on their way at once, so that an older status can arrive after a newer one.
#[tokio::test(flavor = "multi_thread")]
async fn second_heartbeat_waits_for_first() {
    let test = TestDoor::with_two().await;
    let node = &test.door.node;
    let clock = &test.door.clock;
    let authority = TestAuthority::new();
    let played = PlayedMonitor::default();
    let (listener, address) = bind_address("127.0.0.1:0").await.unwrap();
    let services = Services {
        routes: Routes::new(ReplicaServer::new(played.clone())),
        rules: proto_archive::rules::archive_rules(),
        descriptors: vec![proto_archive::DESCRIPTORS],
    };
    let credentials = authority.credentials(&["monitor/one"]);
    let stop = test.door.tasks.stop_token().cancelled_owned();
    let served = Server::new(services, credentials).serve_connections(listener, stop);
    test.door
        .tasks
        .spawn("monitor", async move { served.await.map(drop) });

    let notifier = notifier(&authority, node, &address.to_string(), clock);
    let said = &played.0;
    let second = async {
        said.arrived.acquire().await.unwrap().forget();
        node.disks.set_node_mode(Mode::ReadOnly).unwrap();
        let mut second = pin!(notifier.notify_monitor());
        // Nothing may come of it before the first is answered, however long that takes: this is how long is looked.
        tokio::select! {
            heard = &mut second => panic!("heard before the first: {heard:?}"),
            _two = said.arrived.acquire() => panic!("both are on their way"),
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
        said.answers.add_permits(2);
        second.await
    };
    let (first, second) = tokio::join!(notifier.notify_monitor(), second);
    assert_eq!(first.unwrap(), Duration::from_secs(1));
    second.unwrap();
    assert_eq!(
        *said.modes.lock(),
        [wire::Mode::ReadWrite, wire::Mode::ReadOnly]
    );
    test.door.tasks.stop_all();
    test.door
        .tasks
        .join_tasks(Duration::from_secs(20))
        .await
        .unwrap();
}
