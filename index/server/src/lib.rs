//! The part `index`: it follows the archive, and answers where and when each URL was captured.
//!
//! Owner of: which files are read next ([`queue`]), what changes of the archive mean for them, and the door
//! `holdfast.index.v1`. The captures themselves are `index-captures`'. All that came from files is a cache: it comes
//! back from a full listing of the archive by itself. Imported sets do not.
//!
//! The rooms, in reading order:
//! - [`settings`], `metrics`: as in every part; `board`: the live state that `status` shows; `blocking`: the thread for
//!   work that may wait for the disk;
//! - pure: `decide` (what a change means for a file), [`queue`] (which files are read next), `judge` (what the report
//!   of a job is worth);
//! - `follower`: decisions and rows, in this order; `follow`: the loops that read the feed and dispatch files;
//! - `extract` and `job`: a batch of files, read where their bytes are, or why not (`batch_error`); `work`: the jobs in
//!   the background;
//! - `health`: notices that the database is damaged, and ends all that works on it; `generation`: begins the database
//!   anew then, and starts all of that again, in the same process;
//! - `rpc`: the service; `answer`: a query of it.
//!
//! Not promised: that a capture can be read, or that who may see it was asked. That is the viewer's.

mod answer;
mod batch_error;
mod blocking;
mod board;
mod decide;
mod extract;
mod follow;
mod follower;
mod generation;
mod health;
mod job;
mod judge;
mod metrics;
pub mod queue;
mod rpc;
pub mod settings;
mod work;

use std::net::SocketAddr;
use std::sync::Arc;

use archive_client::client_file::read_trust_file;
use archive_client::{Access, Batch, ClientFileError, ClientLimits, Reader, Researcher};
use archive_daemon::metrics::MetricError;
use archive_daemon::worker::DuplicateWorker;
use archive_daemon::{Daemon, ReloadWorker};
use archive_durable::DiskError;
use archive_rpc::{
    ConnectError, CredentialsError, ExpectedIdentity, Limits, Role, ServeError, connect_lazy,
};
use index_captures::{DbError, OpenError};
use tokio::task::JoinError;

use generation::Generations;
pub use health::NoteError;
use metrics::Instruments;
pub use settings::{IndexSettings, InvalidSettings, Settings};

/// The reason why an index does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// The certificate, the key or the authorities cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The certificate is not that of an index: the archive would not talk to it.
    #[error("the certificate is {0}, not that of an index; issue one with `holdfast pki issue`")]
    Identity(String),
    /// The trust file cannot be used.
    #[error("cannot use index.trust: {0}")]
    Trust(#[from] ClientFileError),
    /// The address of the repository is not an address.
    #[error("cannot use index.repository: {0}")]
    Repository(#[from] ConnectError),
    /// The database of captures cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database of captures is damaged, and cannot be deleted either.
    #[error("cannot delete the damaged database of captures: {0}")]
    Destroy(#[from] DbError),
    /// The file beside the database cannot be read or written.
    #[error("cannot read or write the state of the database of captures: {0}")]
    State(#[from] DiskError),
    /// The database, or the file beside it, cannot be written.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The address of the index cannot be listened on.
    #[error(transparent)]
    Bind(#[from] ServeError),
    /// An instrument of that name is taken.
    #[error(transparent)]
    Metrics(#[from] MetricError),
    /// A second index in this process.
    #[error(transparent)]
    Duplicate(#[from] DuplicateWorker),
    /// A bug: opening the database panicked.
    #[error(transparent)]
    Join(#[from] JoinError),
}

/// Starts an index and returns the address it listens on. It runs in the daemon's tasks until their stop.
///
/// # Errors
///
/// Fails when the settings or the certificate cannot be used, or the database cannot be opened. A database that is
/// damaged is not such an error: it is begun anew.
pub async fn serve(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    let index = settings.index;
    index.check()?;
    let credentials = settings.rpc.credentials(daemon.clock.now().into())?;
    let identity = credentials.identity();
    if !identity.has(Role::Index) {
        return Err(StartError::Identity(identity.to_string()));
    }
    let refused = daemon.metrics.refusals(&identity.to_string())?;
    credentials.on_refusal(move |what| {
        what.choose(&refused.calls, &refused.connections).inc();
    });
    let instruments = Instruments::new(&daemon.metrics)?;
    let trust = Arc::new(read_trust_file(&index.trust)?);
    let expected = ExpectedIdentity::role(Role::Repository);
    let channel = connect_lazy(
        &index.repository,
        &credentials,
        &expected,
        &Limits::default(),
    )?;
    let client_limits = ClientLimits::default();
    let access: Arc<dyn Access> = Arc::new(Reader::new(channel.clone(), trust, client_limits));
    let batch: Arc<dyn Batch> = Arc::new(Researcher::new(channel, client_limits));

    let opened = Generations::open(&index).await?;
    let (listener, address) = archive_rpc::bind(&settings.rpc.listen).await?;
    let renewed = credentials.clone();
    let reload = ReloadWorker::new(daemon.clock.clone(), move |now| {
        Ok(renewed.reload(now.into())?)
    });
    daemon.workers.spawn(reload)?;
    // Calls are cut before the tasks are, so that a client that does not read ends as a call and not as a failure; and
    // the tasks of a generation before that of all.
    let drain = settings.daemon.drain.duration();
    let generations = Generations {
        settings: index,
        daemon: daemon.clone(),
        access,
        batch,
        client_limits,
        credentials,
        limits: settings.rpc.limits(drain / 2),
        instruments,
        address,
        drain: drain * 9 / 10,
    };
    let first = generations.start(opened, listener)?;
    daemon
        .tasks
        .spawn("generations", generations.run(first, daemon.tasks.stop()));
    tracing::info!(%address, "the index listens");
    Ok(address)
}
