//! `holdfast up`: a whole archive in one process, on an embedded default.
//!
//! Two bitarchive replicas of one node each, their monitors, a checksum replica and the repository, with mutual TLS on
//! loopback, all below one data directory. It reads the same settings files as the parts do when they run alone.

mod demonstration;
mod prepare;
mod processes;

use std::path::PathBuf;

use archive_daemon::{Clock, Daemon};
use clap::Args;

use self::prepare::{Prepared, prepare};
use crate::commands::Context;
use crate::commands::parts::{live, load};
use crate::exit::{Exit, Failure};

/// Start a whole archive
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast up                          in ./holdfast-data, until Ctrl-C\n  \
    holdfast up --data /srv/archive      elsewhere\n  \
    holdfast up --demo --once            show what it does, and end")]
pub(crate) struct Up {
    /// Where everything is kept; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "holdfast-data")]
    data: PathBuf,
    /// Start each part as a process of its own; their ids are in DIR/run
    #[arg(long)]
    processes: bool,
    /// Store, damage and read real files through the command line, and say what was proven
    #[arg(long)]
    demo: bool,
    /// End after the demonstration
    #[arg(long, requires = "demo")]
    once: bool,
}

/// Why `up` ended.
#[derive(Debug, thiserror::Error)]
enum UpError {
    #[error(transparent)]
    Monitor(#[from] archive_monitor::StartError),
    #[error(transparent)]
    Node(#[from] archive_bitarchive::StartError),
    #[error(transparent)]
    Repository(#[from] archive_repository::StartError),
    #[error("{0}")]
    Process(String),
    #[error("the demonstration did not prove what it should: {0}")]
    Demonstration(String),
}

/// The settings of every part, read before anything starts.
struct Parts {
    monitors: Vec<archive_monitor::Settings>,
    nodes: Vec<archive_bitarchive::Settings>,
    checksums: archive_bitarchive::checksum::Settings,
    repository: archive_repository::Settings,
}

impl Up {
    /// Runs the archive until a signal.
    pub(crate) fn run(self, context: &Context) -> Result<Exit, Failure> {
        let prepared = prepare(&self.data, Clock::system().now())?;
        let parts = Parts::load(&prepared, &context.global.set)?;
        context.output.line(&prepared.greeting())?;
        let settings = parts.repository.daemon.clone();
        let set = context.global.set.clone();
        live("up", &settings, move |daemon| async move {
            if self.processes {
                processes::start(&prepared, &set, &daemon).map_err(UpError::Process)?;
            } else {
                start(parts, &daemon).await?;
            }
            self.show(&prepared, &daemon).await
        })
    }

    /// The demonstration, where it is wanted.
    async fn show(&self, prepared: &Prepared, daemon: &Daemon) -> Result<(), UpError> {
        if self.demo {
            let stop = daemon.tasks.stop();
            let shown = tokio::select! {
                shown = demonstration::run(prepared) => shown,
                () = stop.cancelled() => Ok(()),
            };
            shown.map_err(UpError::Demonstration)?;
        }
        if self.once {
            daemon.tasks.stop_all();
        }
        Ok(())
    }
}

impl Parts {
    fn load(prepared: &Prepared, set: &[String]) -> Result<Self, Failure> {
        let file = |name: &str| prepared.settings(name);
        Ok(Self {
            monitors: prepare::REPLICAS
                .iter()
                .map(|replica| load(&file(&format!("monitor-{replica}")), set))
                .collect::<Result<_, _>>()?,
            nodes: prepare::REPLICAS
                .iter()
                .map(|replica| load(&file(&format!("bitarchive-{replica}")), set))
                .collect::<Result<_, _>>()?,
            checksums: load(&file(prepare::CHECKSUM_PART), set)?,
            repository: load(&file("repository"), set)?,
        })
    }
}

async fn start(parts: Parts, daemon: &Daemon) -> Result<(), UpError> {
    for settings in parts.monitors {
        let part = daemon.part(&format!("monitor-{}", settings.monitor.replica));
        archive_monitor::serve(settings, part).await?;
    }
    for settings in parts.nodes {
        let part = daemon.part(&format!("bitarchive-{}", settings.bitarchive.node));
        archive_bitarchive::serve(settings, part).await?;
    }
    let part = daemon.part(prepare::CHECKSUM_PART);
    archive_bitarchive::checksum::serve(parts.checksums, part).await?;
    archive_repository::serve(parts.repository, daemon.part("repository")).await?;
    Ok(())
}
