//! What the node says of itself to the monitor of its replica.
//!
//! Owns the order in which it is said: the node is looked at and the monitor told under one lock, so that nothing older
//! is heard later, unless a call took longer than its limit. Does not decide when.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, OwnThread};
use archive_model::ReplicaId;
use archive_rpc::{ConnectError, Credentials, Expected, Grant, Kind, Limits, Role, connect_lazy};
use proto_archive::wire::replica_client::ReplicaClient;
use proto_archive::{convert as fields, wire};
use tokio::sync::Mutex;
use tonic::Status;
use tonic::transport::Channel;

use super::convert::report;
use crate::node::Node;

/// How long a look at the node and the call may take: more is a disk that hangs, or a monitor that does not answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Calls the monitor of the replica.
pub(crate) struct Notifier {
    node: Arc<Node>,
    endpoint: String,
    clock: Clock,
    /// The node is looked at here, whatever else keeps the threads of the runtime busy.
    thread: OwnThread,
    monitor: Mutex<ReplicaClient<Channel>>,
}

impl Notifier {
    /// Dials the monitor of `replica` when it is told something first.
    pub(crate) fn new(
        node: &Arc<Node>,
        (monitor, endpoint): (&str, String),
        replica: &ReplicaId,
        credentials: &Credentials,
        limits: &Limits,
        clock: &Clock,
    ) -> Result<Self, ConnectError> {
        let grant = Grant::new(Role::Monitor, replica.as_str())
            .map_err(|error| ConnectError::Address(error.to_string()))?;
        let expected = Expected::named(&grant);
        let channel = connect_lazy(monitor, credentials, &expected, limits)?;
        Ok(Self {
            node: Arc::clone(node),
            endpoint,
            clock: clock.clone(),
            thread: OwnThread::new("heartbeat"),
            monitor: Mutex::new(ReplicaClient::new(channel)),
        })
    }

    /// Tells the monitor that the node lives, where, and with how much room; returns the pause until the next time.
    pub(crate) async fn tell(&self) -> Result<Duration, Status> {
        let mut monitor = self.monitor.lock().await;
        let told = self
            .clock
            .timeout(LIMIT, self.report_to(&mut monitor))
            .await;
        told.map_err(|late| Kind::TimedOut.status(late.to_string()))?
    }

    async fn report_to(&self, monitor: &mut ReplicaClient<Channel>) -> Result<Duration, Status> {
        let node = Arc::clone(&self.node);
        let report = self.thread.run(move || report(&node)).await;
        let mut state = report.map_err(|error| Kind::Unavailable.status(error.to_string()))?;
        state.endpoint.clone_from(&self.endpoint);
        let request = wire::HeartbeatRequest {
            status: Some(fields::node_status(state)),
        };
        let answer = monitor.heartbeat(request).await?;
        Ok(Duration::from_millis(
            answer.into_inner().interval_ms.clamp(100, 60_000),
        ))
    }

    /// Tells it at once what has changed. A monitor that is away, or slow, hears it with the next heartbeat that it hears.
    pub(crate) async fn tell_now(&self) {
        match self.clock.timeout(LIMIT, self.tell()).await {
            Ok(Ok(_pause)) => {}
            Ok(Err(why)) => tracing::info!(%why, "the monitor does not know of a change yet"),
            Err(why) => tracing::info!(%why, "the monitor does not know of a change yet"),
        }
    }
}
