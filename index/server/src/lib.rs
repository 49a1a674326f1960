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

use archive_client::{Access, ArchiveReader, Batch, ClientLimits, Researcher};
use archive_daemon::{Daemon, StartError, Starting};
use archive_part::{Part, read_trust_file};
use archive_rpc::Role;

use generation::Generations;
pub use health::NoteError;
use metrics::Instruments;
pub use settings::{IndexSettings, Settings};

/// Starts an index and returns the address it listens on. It runs in the daemon's tasks until their stop.
///
/// # Errors
///
/// Fails when the settings or the certificate cannot be used, or the database cannot be opened. A database that is
/// damaged is not such an error: it is begun anew.
pub fn serve_index(settings: Settings, daemon: Daemon) -> Starting<SocketAddr> {
    Box::pin(start(settings, daemon))
}

async fn start(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    let part = Part::open(&settings, &daemon)?;
    let index = settings.index;
    let instruments = Instruments::new(&daemon.metrics)?;
    let trust = Arc::new(read_trust_file("index.trust", &index.trust)?);
    let channel = part.connect("index.repository", &index.repository, Role::Repository)?;
    let client_limits = ClientLimits::default();
    let access: Arc<dyn Access> =
        Arc::new(ArchiveReader::new(channel.clone(), trust, client_limits));
    let batch: Arc<dyn Batch> = Arc::new(Researcher::new(channel, client_limits));

    let opened = Generations::open_newest(&index).await?;
    let (listener, address) = part.bind().await?;
    // The tasks of a generation are cut before those of all.
    let drain = settings.daemon.drain.duration();
    let generations = Generations {
        settings: index,
        daemon: daemon.clone(),
        access,
        batch,
        client_limits,
        part,
        instruments,
        address,
        drain: drain * 9 / 10,
    };
    let first = generations.start_generation(opened, listener)?;
    daemon.tasks.spawn(
        "generations",
        generations.run_generations(first, daemon.tasks.stop_token()),
    );
    Ok(address)
}
