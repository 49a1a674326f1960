//! A server: one port, mutual TLS, rules before handlers, health and reflection, a graceful end within a limit.
//!
//! A server does not start while one of its RPCs has no rule.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::accept::Acceptor;
use crate::guard::GuardLayer;
use crate::limits::RpcLimits;
use crate::rules::{InvalidDescriptors, Rules, rpc_paths};
use crate::tls::Credentials;

/// The services that a server offers, and the rules of who may call them.
#[derive(Debug)]
pub struct Services {
    /// The routes of the services. Health and reflection are added.
    pub routes: Routes,
    /// The roles that may make each call.
    pub rules: Rules,
    /// Encoded `FileDescriptorSet`s of the services, for reflection and to find RPCs without a rule.
    pub descriptors: Vec<&'static [u8]>,
}

/// The end of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainOutcome {
    /// Every call under way has ended.
    Finished,
    /// The limit for draining passed; calls still under way were cut.
    Cut,
}

/// The reason why a server did not start, or broke.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address in the settings.
        address: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// RPCs have no rule.
    #[error("no rule says who may call {}", .0.join(", "))]
    NoRule(Vec<String>),
    /// A descriptor set cannot be decoded.
    #[error(transparent)]
    Descriptors(#[from] InvalidDescriptors),
    /// The reflection service cannot be built from the descriptor sets.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The server broke.
    #[error("the server broke: {0}")]
    Transport(#[from] tonic::transport::Error),
}

/// Listens on `address`; returns also the bound address, which has the real port for port 0.
///
/// # Errors
///
/// [`ServeError::Bind`] if the address is taken, or is not one of this machine.
pub async fn bind_address(address: &str) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |source| ServeError::Bind {
        address: address.to_owned(),
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// A server that offers services to everybody who has a certificate of its environment, and may make the call.
///
/// ```
/// use archive_rpc::{Credentials, RpcLimits, Rules, ServeError, Server, Services, bind_address};
/// use tonic::service::Routes;
///
/// /// Has nothing but its health to tell, until `stop` is ready.
/// async fn start(credentials: Credentials, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
///     let services = Services {
///         routes: Routes::default(),
///         rules: Rules::new(),
///         descriptors: Vec::new(),
///     };
///     let (listener, address) = bind_address("127.0.0.1:0").await?;
///     println!("it listens on {address}");
///     let limits = RpcLimits { connections: 100, ..RpcLimits::default() };
///     let drained = Server::new(services, credentials)
///         .within_limits(limits)
///         .serve_connections(listener, stop)
///         .await?;
///     println!("it ended: {drained:?}");
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Server {
    services: Services,
    credentials: Credentials,
    limits: RpcLimits,
}

impl Server {
    /// Makes a server with the default limits.
    pub fn new(services: Services, credentials: Credentials) -> Self {
        Self {
            services,
            credentials,
            limits: RpcLimits::default(),
        }
    }

    /// Gives the server other limits.
    #[must_use]
    pub fn within_limits(mut self, limits: RpcLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves until `shutdown` is ready. Then no connection is accepted any more, calls under way run to their end, and
    /// after [`RpcLimits::drain`] are cut. Dropping the future cuts at once.
    ///
    /// # Errors
    ///
    /// [`ServeError`] if an RPC has no rule, or the server broke.
    pub async fn serve_connections(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<DrainOutcome, ServeError> {
        let Self {
            services,
            credentials,
            limits,
        } = self;
        let health = Health::new(&services)?;
        let mut reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
        for descriptors in &services.descriptors {
            reflection = reflection.register_encoded_file_descriptor_set(descriptors);
        }
        let routes = services
            .routes
            .add_service(health.service())
            .add_service(reflection.build_v1()?);
        let server = tonic::transport::Server::builder()
            .initial_stream_window_size(limits.stream_window)
            .initial_connection_window_size(limits.connection_window)
            .max_concurrent_streams(limits.streams)
            .http2_max_pending_accept_reset_streams(Some(limits.given_up))
            .http2_keepalive_interval(Some(limits.keep_alive))
            .http2_keepalive_timeout(Some(limits.keep_alive_timeout))
            .layer(GuardLayer::new(
                credentials.identity().environment(),
                services.rules,
                limits.calls_per_caller,
                credentials.refusals().clone(),
            ))
            .add_routes(routes);

        let draining = CancellationToken::new();
        let cut = CancellationToken::new();
        let _cut_when_dropped = cut.clone().drop_guard();
        let (ready, connections) = mpsc::channel(16);
        let connections = ReceiverStream::new(connections).map(Ok::<_, Infallible>);
        let acceptor = Acceptor {
            credentials,
            limits,
            cut: cut.clone(),
        };
        let accepting = acceptor.accept(listener, ready);
        health.start().await;
        let stop = async {
            shutdown.await;
            health.stop().await;
            draining.cancel();
        };
        // The future is boxed because it is large, and callers keep futures of this function within theirs.
        let mut serving = Box::pin(async {
            tokio::join!(
                server.serve_with_incoming_shutdown(connections, stop),
                accepting
            )
            .0
        });
        let drained = tokio::select! {
            outcome = &mut serving => outcome.map(|()| DrainOutcome::Finished),
            () = async { draining.cancelled().await; sleep(limits.drain).await } => {
                cut.cancel();
                serving.await.map(|()| DrainOutcome::Cut)
            }
        };
        Ok(drained?)
    }

    /// Serves like [`Server::serve_connections`], and logs a warning if calls still under way had to be cut.
    ///
    /// # Errors
    ///
    /// Fails when [`Server::serve_connections`] does.
    pub async fn serve_and_log(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let after = self.limits.drain;
        let drained = self.serve_connections(listener, shutdown).await?;
        if drained == DrainOutcome::Cut {
            tracing::warn!(?after, "calls still under way were cut");
        }
        Ok(())
    }
}

/// The health of the server as a whole (the empty name) and of each service, which start and end together.
struct Health {
    reporter: HealthReporter,
    names: BTreeSet<String>,
}

impl Health {
    fn new(services: &Services) -> Result<Self, ServeError> {
        let mut names = BTreeSet::from([String::new()]);
        for descriptors in &services.descriptors {
            let paths = rpc_paths(descriptors)?;
            let missing = services.rules.missing_paths(&paths);
            if !missing.is_empty() {
                return Err(ServeError::NoRule(missing));
            }
            names.extend(
                paths
                    .iter()
                    .filter_map(|path| path.split('/').nth(1))
                    .map(str::to_owned),
            );
        }
        Ok(Self {
            reporter: HealthReporter::new(),
            names,
        })
    }

    fn service(&self) -> HealthServer<HealthService> {
        HealthServer::new(HealthService::from_health_reporter(self.reporter.clone()))
    }

    async fn start(&self) {
        for name in &self.names {
            self.reporter
                .set_service_status(name, ServingStatus::Serving)
                .await;
        }
    }

    /// Reports the end to health watchers, and ends their calls, which would hold up the drain.
    async fn stop(&self) {
        for name in &self.names {
            self.reporter
                .set_service_status(name, ServingStatus::NotServing)
                .await;
            self.reporter.clone().clear_service_status(name).await;
        }
    }
}
