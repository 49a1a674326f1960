//! The reports of the node to the monitor of its replica.
//!
//! Owns their order: a report is made and sent under one lock, so that no older report arrives later, unless a call
//! took longer than its limit. Does not decide when to report.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, OwnThread};
use archive_model::ReplicaId;
use archive_rpc::{
    CallErrorKind, ConnectError, Credentials, ExpectedIdentity, Grant, Role, RpcLimits,
    connect_lazy,
};
use proto_archive::wire::replica_client::ReplicaClient;
use proto_archive::{convert as fields, wire};
use tokio::sync::Mutex;
use tonic::Status;
use tonic::transport::Channel;

use super::convert::node_report;
use crate::node::Node;

/// The time that a report and its call may take: more is a disk that hangs, or a monitor that does not answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Makes the channel to the monitor of `replica`, which dials at the first report.
pub(crate) fn monitor_channel(
    replica: &ReplicaId,
    address: &str,
    credentials: &Credentials,
    limits: &RpcLimits,
) -> Result<Channel, ConnectError> {
    let grant = Grant::new(Role::Monitor, replica.as_str())
        .map_err(|error| ConnectError::Address(error.to_string()))?;
    connect_lazy(
        address,
        credentials,
        &ExpectedIdentity::named_grant(&grant),
        limits,
    )
}

/// The link to the monitor of the replica.
pub(crate) struct Notifier {
    node: Arc<Node>,
    endpoint: String,
    clock: Clock,
    /// The thread on which reports are made, however busy the threads of the runtime are.
    thread: OwnThread,
    monitor: Mutex<ReplicaClient<Channel>>,
}

impl Notifier {
    /// Makes the link of a node that is reached at `endpoint`.
    pub(crate) fn new(node: &Arc<Node>, endpoint: String, monitor: Channel, clock: &Clock) -> Self {
        Self {
            node: Arc::clone(node),
            endpoint,
            clock: clock.clone(),
            thread: OwnThread::new("heartbeat"),
            monitor: Mutex::new(ReplicaClient::new(monitor)),
        }
    }

    /// Tells the monitor that the node lives, with its address and its room. Returns the pause until the next report.
    pub(crate) async fn notify_monitor(&self) -> Result<Duration, Status> {
        let mut monitor = self.monitor.lock().await;
        let answered = self
            .clock
            .run_with_timeout(LIMIT, self.report_to(&mut monitor))
            .await;
        answered.map_err(|late| CallErrorKind::TimedOut.to_status(late.to_string()))?
    }

    async fn report_to(&self, monitor: &mut ReplicaClient<Channel>) -> Result<Duration, Status> {
        let node = Arc::clone(&self.node);
        let report = self.thread.run_on_thread(move || node_report(&node)).await;
        let mut state =
            report.map_err(|error| CallErrorKind::Unavailable.to_status(error.to_string()))?;
        state.endpoint.clone_from(&self.endpoint);
        let request = wire::HeartbeatRequest {
            status: Some(fields::node_status(state)),
        };
        let answer = monitor.heartbeat(request).await?;
        Ok(Duration::from_millis(
            answer.into_inner().interval_ms.clamp(100, 60_000),
        ))
    }

    /// Tells the monitor of a change at once. A monitor that is away, or slow, hears of it with a later heartbeat.
    pub(crate) async fn tell_now(&self) {
        match self
            .clock
            .run_with_timeout(LIMIT, self.notify_monitor())
            .await
        {
            Ok(Ok(_pause)) => {}
            Ok(Err(why)) => tracing::info!(%why, "the monitor does not know of a change yet"),
            Err(why) => tracing::info!(%why, "the monitor does not know of a change yet"),
        }
    }
}
